"""Runs to follow in ``peeklock explore``: the shortest that breaks a promise, a recorded run, or a walk of before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from attrs import evolve, frozen

from peeklock.cli.shared.errors import UsageError
from peeklock.cli.shared.progress import Progress
from peeklock.harness.monitor.explanation import Explanation, explain
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.trace.file import Entry, Header, Kind, read
from peeklock.harness.trace.line import TraceError
from peeklock.model.explore.walks import PositionError, position, read_position
from peeklock.model.search.engine import INTERRUPTED, Limits
from peeklock.model.search.traces import Taken
from peeklock.model.search.verdicts import Verdict, check
from peeklock.model.search.world import World
from peeklock.spec.law.faults import FAULTS
from peeklock.spec.law.policy import Policy
from peeklock.spec.promises.promise import Promise
from peeklock.spec.reading.wording import many
from peeklock.spec.variants.variant import Variant

MOST_OBSERVATIONS = 500
"""In a longer run nobody goes from step to step."""


@frozen
class Run:
    """A run that can be followed."""

    title: str
    position: str
    note: str = ""
    """What there is to say of it, in a sentence."""


def runs_of_promises(world: World, promises: tuple[Promise, ...], limits: Limits) -> tuple[Run, ...]:
    """The shortest run that breaks each of these promises; ``UsageError`` for one that is not broken."""
    with Progress(f"{world.variant.policy.name}, {world}") as progress:
        result = check(world, promises, (), limits=limits, report=progress.report, with_causes=False)
    if result.stopped == INTERRUPTED:
        raise KeyboardInterrupt
    found = []
    for judged in result.promises:
        if judged.verdict is not Verdict.FAILS:
            why = f"the search ended at {result.stopped}" if result.stopped else "it is broken nowhere"
            raise UsageError(
                f"--promise {judged.promise.id}: {why} under {world.variant.policy.name} in this world; "
                "allowed: a promise that `peeklock check` shows as failing"
            )
        steps = judged.broken[0].trace.steps
        found.append(Run(f"{judged.promise.id} broken", position(world, steps)))
    return tuple(found)


def is_trace(path: Path) -> bool:
    """Is the file a recorded run, by its first line? ``UsageError`` when it cannot be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            first = next((line for line in file if line.strip()), "")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    return '"peeklock_trace"' in first


def walks_in(path: Path) -> tuple[Run, ...]:
    """The walks that explore or explain wrote with ``--json``."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        walks = [
            (w["position"], str(w.get("note", ""))) for w in data["walks" if "walks" in data else "broken"]
        ]
        for position_of_walk, _ in walks:
            read_position(position_of_walk)
        if not walks:
            raise ValueError
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        why = str(error) if isinstance(error, PositionError) else "no position of a walk in it"
        raise UsageError(
            f"{path}: {why}; allowed: a recorded run, or what `peeklock explore --json` or "
            "`peeklock explain --json` printed"
        ) from None
    titles = [path.name] if len(walks) == 1 else [f"{path.name}, walk {k}" for k in range(1, len(walks) + 1)]
    return tuple(Run(title, *walk) for title, walk in zip(titles, walks, strict=True))


@frozen
class Recorded:
    """A recorded run with one explanation of it, before it is known in which world it is followed."""

    name: str
    policy: Policy
    found: Explanation

    def steps(self) -> Iterator[Taken]:
        """The steps of the explanation."""
        return (Taken(*step) for step in self.found.steps)

    @property
    def sizes(self) -> dict[str, int]:
        """How large a world must be for it."""
        found = self.found
        return {"workers": found.workers, "items": found.items, "deliveries": found.deliveries}

    def run(self, world: World) -> Run:
        """The run in a world; ``UsageError`` where the world is too small for it."""
        for name, size in self.sizes.items():
            most = getattr(world, name)
            if most < size:
                raise UsageError(f"{self.name}: takes {size} {name}; allowed here: {most} at most (--{name})")
        told = [f"One explanation of {many(self.found.observations, 'observation')}"]
        if self.found.ways > 1:
            told.append(f"at the end {self.found.ways} states are possible, and it leads to one of them")
        if self.found.violation is not None:
            told.append(
                f"under policy {self.policy.name} nothing explains the next observation: "
                f"{self.found.violation.seen}; `peeklock trace` says why"
            )
        return Run(self.name, position(world, self.steps()), "; ".join(told) + ".")


def recorded(path: Path, policy: Policy) -> Recorded:
    """One explanation of a recorded run."""
    try:
        header, entries = read(path)
        if header.max_attempts is not None:
            policy = evolve(policy, max_attempts=header.max_attempts)
        found = _explained(path, header, entries, policy)
    except TraceError as error:
        raise UsageError(str(error)) from None
    if found.observations == 0:
        raise UsageError(
            f"{path}: no observation that the specification explains, so there is nothing to follow"
        )
    return Recorded(path.name, policy, found)


def _explained(path: Path, header: Header, entries: Iterator[Entry], policy: Policy) -> Explanation:
    if header.kind is not Kind.WORKERS:
        raise UsageError(f"{path}: records {header.kind.value}; allowed here: {Kind.WORKERS.value}")
    seen = list[Observation]()
    for one in entries:
        assert isinstance(one, Observation), f"{one} is of another kind of record"
        seen.append(one)
        if len(seen) > MOST_OBSERVATIONS:
            raise UsageError(f"{path}: more than {MOST_OBSERVATIONS} observations; allowed: so many at most")
    variant = Variant(policy, frozenset(f.name for f in FAULTS))
    with Progress(path.name) as progress:
        return explain(
            seen, variant, header.scope, lambda n: progress.show(f"{n} of {len(seen)} observations explained")
        )
