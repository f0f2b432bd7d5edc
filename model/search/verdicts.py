"""Verdicts: what a check found of each promise, held against what the spec states."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from attrs import evolve, frozen

from peeklock.model.search.checkpoint import restore, save
from peeklock.model.search.engine import NO_LIMITS, Limits, Search, Statistics, Stopped
from peeklock.model.search.tables import Watch
from peeklock.model.search.traces import Trace, shortest, shortest_to_stuck, steps_found
from peeklock.model.search.world import World
from peeklock.spec.compose import NEVER_TAKEN, POSSIBILITIES, PROMISES
from peeklock.spec.law.faults import FAULTS, KNOWN_FAULTS
from peeklock.spec.notation.terms import TRUE
from peeklock.spec.promises.promise import Part, Possibility, Promise


class Verdict(enum.Enum):
    """What was found of a promise in a bounded world."""

    HOLDS = "holds"
    FAILS = "fails"
    UNKNOWN = "unknown"
    SILENT = "-"
    """The promise says nothing: none of the steps that it is about can happen."""
    NOT_SHOWN = "not shown here"
    """It is stated to fail, and nothing breaks it in a world that is too small to show all that is stated."""


@frozen
class BrokenPart:
    """A part of a promise that is false, and the shortest trace to where it is."""

    part: Part
    level: int
    trace: Trace


@frozen
class Judged:
    """One promise: what was found and what was stated."""

    promise: Promise
    verdict: Verdict
    stated: Verdict
    broken: tuple[BrokenPart, ...] = ()
    causes: tuple[frozenset[str], ...] = ()
    """The smallest sets of fault classes that break it."""
    by_cause: tuple[BrokenPart, ...] = ()
    """For each of these sets the shortest trace with its faults only."""
    restricted: bool = False
    """Fault classes are off, or the world is small: then a promise may have nothing to speak of."""

    @property
    def as_stated(self) -> bool:
        """Is the verdict the stated one? Unknown never is."""
        nothing_to_say = self.restricted and self.verdict is Verdict.SILENT and self.stated is Verdict.HOLDS
        return self.verdict in (self.stated, Verdict.NOT_SHOWN) or nothing_to_say


@frozen
class Reached:
    """One possibility: whether it was found, and whether it was stated to be."""

    possibility: Possibility
    found: bool | None
    stated: bool | None
    """None where it is not stated, because the faults that it needs are off or the world is too small."""

    @property
    def as_stated(self) -> bool:
        """Is the finding the stated one? Not knowing never is."""
        return self.found is not None and self.stated in (None, self.found)


@frozen
class Check:
    """All that a check of one world found."""

    world: World
    promises: tuple[Judged, ...]
    possibilities: tuple[Reached, ...]
    statistics: Statistics
    stuck: Trace | None = None
    stopped: str = ""
    """Why the search ended before it was complete, if it did."""
    never_fired: tuple[str, ...] = ()

    @property
    def silently_gone(self) -> tuple[str, ...]:
        """The actions that are stated to be taken in such a world and never were."""
        policy = self.world.variant.policy
        if (
            policy.name not in NEVER_TAKEN
            or self.stopped
            or self.world.is_small
            or _is_restricted(self.world)
        ):
            return ()
        return tuple(n for n in self.never_fired if not any(word in n for word in NEVER_TAKEN[policy.name]))

    @property
    def as_stated(self) -> bool:
        """Is every verdict as the spec states it, and was everything explored?"""
        rows = [r.as_stated for r in self.promises] + [r.as_stated for r in self.possibilities]
        return not self.stopped and self.stuck is None and not self.silently_gone and bool(rows) and all(rows)


Report = Callable[[Statistics, int], None]


def _watches(
    promises: Iterable[Promise], possibilities: Iterable[Possibility]
) -> dict[Watch, Promise | Possibility]:
    found: dict[Watch, Promise | Possibility] = {}
    for promise in promises:
        found.update({Watch(part, wanted=False): promise for part in promise.parts})
    found.update({Watch(p.part, wanted=True): p for p in possibilities})
    return found


def check(
    world: World,
    promises: tuple[Promise, ...] = PROMISES,
    possibilities: tuple[Possibility, ...] = POSSIBILITIES,
    symmetric: bool = True,
    clearing: bool = True,
    limits: Limits = NO_LIMITS,
    report: Report | None = None,
    with_causes: bool = True,
    checkpoint: Path | None = None,
) -> Check:
    """Explore the world and judge every promise and possibility.

    With a checkpoint, a search that is stopped is written there, and one that was is continued. ``CheckpointError``
    when the file is of another search.
    """
    watches = _watches(promises, possibilities)
    search = Search(world, tuple(watches), symmetric, clearing)
    search.can_be_continued = checkpoint is not None
    stopped = ""
    if checkpoint is not None and checkpoint.exists():
        restore(search, checkpoint)
    try:
        search.run(limits, report)
    except Stopped as stop:
        stopped = stop.reason
    if checkpoint is not None:
        if stopped:
            save(search, checkpoint)
        else:
            checkpoint.unlink(missing_ok=True)
    broken: dict[str, list[BrokenPart]] = {}
    found = set()
    for (watch, owner), bit in zip(watches.items(), range(len(watches)), strict=True):
        if bit in search.found and isinstance(owner, Promise):
            trace = shortest(search, bit)
            broken.setdefault(owner.id, []).append(BrokenPart(watch.part, search.found[bit], trace))
        elif bit in search.found:
            found.add(owner.id)
    fired = search.statistics.fired
    judged = []
    for promise in promises:
        parts = tuple(sorted(broken.get(promise.id, ()), key=lambda b: b.level))
        verdict = _verdict(world, promise, bool(parts), fired, bool(stopped))
        judged.append(
            Judged(
                promise,
                verdict,
                _stated(world, promise),
                parts,
                restricted=_is_restricted(world) or world.is_small,
            )
        )
    if with_causes and not stopped:
        judged = _with_causes(world, judged)
    return Check(
        world,
        tuple(judged),
        tuple(_reached(world, p, p.id in found, bool(stopped)) for p in possibilities),
        search.statistics,
        stuck=None if search.stuck is None else shortest_to_stuck(search),
        stopped=stopped,
        never_fired=tuple(name for name, times in fired.items() if not times),
    )


def _is_restricted(world: World) -> bool:
    return not {f.name for f in FAULTS} <= world.variant.faults


def _can_speak(world: World, promise: Promise, fired: Mapping[str, int]) -> bool:
    about = promise.about
    return about is None or any(fired[a.name] and about(a.label) for a in world.actions)


def _verdict(
    world: World, promise: Promise, broken: bool, fired: Mapping[str, int], stopped: bool
) -> Verdict:
    if broken:
        return Verdict.FAILS
    if stopped:
        return Verdict.UNKNOWN
    if world.is_small and _stated(world, promise) is Verdict.FAILS:
        return Verdict.NOT_SHOWN
    return Verdict.HOLDS if _can_speak(world, promise, fired) else Verdict.SILENT


def _stated(world: World, promise: Promise) -> Verdict:
    policy, faults = world.variant.policy, world.variant.faults
    if policy.stands_for in promise.silent_in:
        return Verdict.SILENT
    return Verdict.FAILS if promise.is_stated_to_fail(policy, faults) else Verdict.HOLDS


def _reached(world: World, possibility: Possibility, found: bool, stopped: bool) -> Reached:
    policy, faults = world.variant.policy, world.variant.faults
    stated = policy.stands_for not in possibility.impossible_in
    if found and possibility.then is not None:
        found = _can_follow(world, possibility)
    wide = possibility.needs <= faults and possibility.needs_workers <= world.workers
    if world.is_small and not found:
        wide = False  # it may take more deliveries than there are
    return Reached(
        possibility,
        found=None if stopped and not found else found,
        stated=stated if wide else None,
    )


def _can_follow(world: World, possibility: Possibility) -> bool:
    """After such a step, can one of the later kind happen? Looked for with one worker and one item."""
    assert possibility.then is not None
    small = evolve(world, workers=1, items=1)
    search = Search(small, (Watch(possibility.part, wanted=True),))
    search.run()
    starts = {after for _, after in steps_found(search, 0)}
    later = Search(small, (Watch(Part("follows", kind=possibility.then, step=lambda s: TRUE), wanted=True),))
    later.run(start=starts)
    return 0 in later.found


def _with_causes(world: World, judged: list[Judged]) -> list[Judged]:
    """For each promise that fails, the smallest sets of fault classes that break it, with one item.

    Where one of these breaks it in as few steps as anything does, the trace with those faults only is the one to tell.
    """
    failing = {j.promise.id: j.promise for j in judged if j.verdict is Verdict.FAILS}
    causes: dict[str, dict[frozenset[str], BrokenPart]] = {}
    small = evolve(world, workers=min(world.workers, 2), items=1)
    on = [f.name for f in KNOWN_FAULTS if f.name in world.variant.faults]
    for size in range(len(on) + 1):
        left = {pid: p for pid, p in failing.items() if pid not in causes}
        for chosen in itertools.combinations(on, size) if left else ():
            faults = frozenset(chosen)
            watches = _watches(left.values(), ())
            search = Search(evolve(small, variant=evolve(world.variant, faults=faults)), tuple(watches))
            search.run()
            for (watch, owner), bit in zip(watches.items(), range(len(watches)), strict=True):
                if bit in search.found:
                    broken = BrokenPart(watch.part, search.found[bit], shortest(search, bit))
                    first = causes.setdefault(owner.id, {}).setdefault(faults, broken)
                    if len(broken.trace.steps) < len(first.trace.steps):
                        causes[owner.id][faults] = broken
    return [
        evolve(
            j,
            causes=tuple(causes.get(j.promise.id, {})),
            by_cause=tuple(causes.get(j.promise.id, {}).values()),
            broken=_simpler(j.broken, causes.get(j.promise.id, {}).values()),
        )
        for j in judged
    ]


def _simpler(broken: tuple[BrokenPart, ...], simplest: Iterable[BrokenPart]) -> tuple[BrokenPart, ...]:
    for candidate in simplest:
        if broken and len(candidate.trace.steps) == len(broken[0].trace.steps):
            return candidate, *(b for b in broken if b.part is not candidate.part)
    return broken
