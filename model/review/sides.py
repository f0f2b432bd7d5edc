"""Sides of a comparison: what is found of one policy under one protocol, as plain data.

Plain, because the protocol of another revision is searched by another process, which can only send data.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from attrs import AttrsInstance, asdict, evolve, fields, frozen

from peeklock.model.review.behaviours import Automaton, Behaviours, Letter, Place
from peeklock.model.search.engine import NO_LIMITS, Limits
from peeklock.model.search.traces import Trace
from peeklock.model.search.verdicts import Judged, Report, check
from peeklock.model.search.world import World
from peeklock.spec.law.policy import Policy
from peeklock.spec.notation.actions import Action
from peeklock.spec.reading.narrative import Line, line

Word: TypeAlias = "tuple[Letter, ...]"
_NOT_COMPARED = ("name", "source", "given", "stands_for")
_BOUND = re.compile(r"\b(item|worker)_\d+\b")
"""A bound variable, whose number says only how many were made before it."""


@frozen
class Found:
    """One promise under one policy: its verdict, what breaks it, and the shortest run that does."""

    id: str
    text: str
    verdict: str
    causes: tuple[tuple[str, ...], ...] = ()
    false: str = ""
    """The part that is false at the end of the run."""
    lines: tuple[Line, ...] = ()
    by_cause: tuple[tuple[str, tuple[Line, ...]], ...] = ()
    """For each of the causes the shortest run with those faults only, with the part that is false at its end."""


@frozen
class Account:
    """All that is found of one side."""

    title: str
    policy: Mapping[str, Any]
    """The policy's fields, as they would stand in a file."""
    world: str
    faults: tuple[str, ...]
    promises: tuple[Found, ...]
    possibilities: Mapping[str, tuple[str, bool | None]]
    """For each possibility its sentence, and whether it was found (None: the search ended before)."""
    distinct: int
    generated: int
    depth: int
    stuck: bool
    stopped: str
    automaton: Automaton
    protocol: Mapping[str, str]
    """Every step of the protocol for any policy, by its name."""

    def found(self, promise: str) -> Found | None:
        """What was found of a promise; None where this protocol does not have it."""
        return next((f for f in self.promises if f.id == promise), None)


class Side(Protocol):
    """One side of a comparison, which can be asked for runs."""

    account: Account

    def runs(self, words: tuple[Word, ...]) -> list[tuple[Line, ...]]:
        """For each word a shortest run, told; ``LookupError`` for a word that no delivery has."""
        ...


class Present:
    """A side under the protocol that this program was built with."""

    def __init__(
        self,
        title: str,
        policy: Policy,
        world: World,
        limits: Limits = NO_LIMITS,
        report: Report | None = None,
    ) -> None:
        """Search the world. Its policy may have a smaller ``max_attempts`` than the policy that is spoken of."""
        self.behaviours = Behaviours(world)
        self.account = _account(title, policy, world, self.behaviours, limits, report)

    def runs(self, words: tuple[Word, ...]) -> list[tuple[Line, ...]]:
        """For each word a shortest run, told; ``LookupError`` for a word that no delivery has."""
        return [told(self.behaviours.run(word)) for word in words]


def told(trace: Trace) -> tuple[Line, ...]:
    """The steps of a trace, told."""
    return tuple(
        line(step.action, trace.states[k], trace.states[k + 1], step.worker, step.item)
        for k, step in enumerate(trace.steps)
    )


def _account(
    title: str,
    policy: Policy,
    world: World,
    behaviours: Behaviours,
    limits: Limits,
    report: Report | None,
) -> Account:
    result = check(world, limits=limits, report=report)
    statistics = result.statistics
    return Account(
        title,
        _fields(policy)
        | ({"store": deviating} if (deviating := _fields(world.variant.store, False)) else {}),
        str(world),
        tuple(sorted(world.variant.faults)),
        tuple(_found(j) for j in result.promises),
        {r.possibility.id: (r.possibility.text, r.found) for r in result.possibilities},
        statistics.distinct,
        statistics.generated,
        statistics.depth,
        result.stuck is not None,
        result.stopped,
        behaviours.automaton(),
        {a.name: _written(a) for a in world.actions_of_protocol},
    )


def _fields(record: AttrsInstance, with_defaults: bool = True) -> dict[str, Any]:
    """The fields as they would stand in a file."""
    found: dict[str, Any] = {}
    for field in fields(type(record)):
        value = getattr(record, field.name)
        if field.name in _NOT_COMPARED or (not with_defaults and value == field.default):
            continue
        if isinstance(value, tuple):
            found[field.name] = list(value)
        else:
            found[field.name] = value.value if isinstance(value, enum.Enum) else value
    return found


def _found(judged: Judged) -> Found:
    found = Found(judged.promise.id, judged.promise.text, judged.verdict.value)
    if not judged.broken:
        return found
    first = judged.broken[0]
    by_cause = sorted(
        (tuple(sorted(cause)), broken.part.text, told(broken.trace))
        for cause, broken in zip(judged.causes, judged.by_cause, strict=True)
    )
    return evolve(
        found,
        causes=tuple(cause for cause, *_ in by_cause),
        false=first.part.text,
        lines=told(first.trace),
        by_cause=tuple((false, lines) for _, false, lines in by_cause),
    )


def _written(action: Action) -> str:
    text = "\n".join([*(f"when {g}" for g in action.guards), *(f"then {e}" for e in action.effects)])
    return _BOUND.sub(lambda m: m[1], text)


# As data


def to_data(account: Account) -> dict[str, Any]:
    """The account as it can be written as JSON."""
    data = {f.name: getattr(account, f.name) for f in fields(Account)}
    data["promises"] = [asdict(p) for p in account.promises]
    data["automaton"] = {
        "places": [asdict(p) for p in account.automaton.places],
        "steps": [[[*word_data((a,))[0], t] for a, t in row.items()] for row in account.automaton.steps],
    }
    return data


def from_data(data: dict[str, Any]) -> Account:
    """The account that was written as JSON; ``KeyError`` or ``TypeError`` for anything else."""
    promises = tuple(
        Found(
            **{
                **p,
                "causes": tuple(map(tuple, p["causes"])),
                "lines": tuple(line_of(x) for x in p["lines"]),
                "by_cause": tuple((false, tuple(map(line_of, lines))) for false, lines in p["by_cause"]),
            }
        )
        for p in data["promises"]
    )
    automaton = Automaton(
        tuple(Place(**p) for p in data["automaton"]["places"]),
        tuple({Letter(*a): t for *a, t in row} for row in data["automaton"]["steps"]),
    )
    possibilities = {k: tuple(v) for k, v in data["possibilities"].items()}
    return Account(
        **{
            **data,
            "promises": promises,
            "automaton": automaton,
            "possibilities": possibilities,
            "faults": tuple(data["faults"]),
        }
    )


def line_of(data: dict[str, Any]) -> Line:
    """A told step that was written as JSON."""
    told: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
    return Line(**told)


def word_data(word: Word) -> list[list[str]]:
    """A word as it can be written as JSON."""
    return [[a.does, a.answer, a.counts] for a in word]
