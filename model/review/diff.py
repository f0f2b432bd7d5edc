"""The difference of two sides: what can now happen that could not before, and what no longer can."""

from __future__ import annotations

import enum
from functools import cached_property
from typing import Any

from attrs import frozen

from peeklock.model.review.behaviours import Automaton, Letter
from peeklock.model.review.divergences import Group, counted, partings, shortest
from peeklock.model.review.sides import Account, Found
from peeklock.model.review.timing import TIMES, Timing, timing
from peeklock.model.search.verdicts import Verdict
from peeklock.spec.notation.actions import ABANDONS, ACKS, Call
from peeklock.spec.reading.narrative import Line

_KEPT = (Verdict.HOLDS.value, Verdict.SILENT.value, Verdict.NOT_SHOWN.value)


class Change(enum.Enum):
    """What became of a promise."""

    BROKEN = "broken"
    """It was kept and is broken now."""
    WORSE = "easier to break"
    """It was broken before, and is broken now by faults under which it was kept."""
    MENDED = "mended"
    BETTER = "harder to break"
    SPEAKS = "now speaks"
    SILENT = "now silent"
    ADDED = "is new"
    REMOVED = "is gone"
    UNKNOWN = "unknown"
    """A search ended before it could say."""
    NONE = "as before"


FINDINGS = (Change.BROKEN, Change.WORSE)
"""The changes for the worse: with one of these the new side breaks what the old one kept."""


@frozen
class Witness:
    """A run that breaks a promise, of one side."""

    is_new: bool
    false: str
    """The part that is false at its end."""
    lines: tuple[Line, ...]
    causes: tuple[tuple[str, ...], ...]
    """All that breaks the promise on that side."""


@frozen
class Promised:
    """One promise on both sides; None on a side that does not have it."""

    id: str
    text: str
    old: Found | None
    new: Found | None

    @property
    def change(self) -> Change:
        """What became of it."""
        old, new = self.old, self.new
        if old is None or new is None:
            if new is not None and new.verdict not in _KEPT:
                return Change.BROKEN if new.verdict == Verdict.FAILS.value else Change.UNKNOWN
            return Change.ADDED if old is None else Change.REMOVED
        if Verdict.UNKNOWN.value in (old.verdict, new.verdict):
            return Change.UNKNOWN
        if old.verdict == new.verdict:
            return _by_causes(old, new) if new.causes and old.causes else Change.NONE
        if new.verdict == Verdict.FAILS.value:
            return Change.BROKEN
        if old.verdict == Verdict.FAILS.value:
            return Change.MENDED
        if old.verdict == Verdict.SILENT.value:
            return Change.SPEAKS
        return Change.SILENT if new.verdict == Verdict.SILENT.value else Change.NONE

    @property
    def witness(self) -> Witness | None:
        """The run to show; None where no side breaks it.

        Where it is easier to break than before, the shortest run with the faults of a new cause only; else the
        shortest of all, of the new side where that breaks it.
        """
        if self.change is Change.WORSE:
            assert self.old is not None
            assert self.new is not None
            runs = zip(self.new.causes, self.new.by_cause, strict=True)
            new = [run for cause, run in runs if not _is_covered(cause, self.old)]
            return Witness(True, *min(new, key=lambda run: len(run[1])), self.new.causes)
        sides = ((True, self.new), (False, self.old))
        return next(
            (Witness(n, f.false, f.lines, f.causes) for n, f in sides if f is not None and f.lines), None
        )


def _by_causes(old: Found, new: Found) -> Change:
    """Does it take more faults to break it, or fewer?"""
    if not _covered(new, old):
        return Change.WORSE
    return Change.NONE if _covered(old, new) else Change.BETTER


def _covered(some: Found, others: Found) -> bool:
    """Where some of these faults break it, do they on the other side, too?"""
    return all(_is_covered(c, others) for c in some.causes)


def _is_covered(cause: tuple[str, ...], others: Found) -> bool:
    return any(set(o) <= set(cause) for o in others.causes)


@frozen
class Calls:
    """The longest ack sequence: its acks, and its calls with what follows them; renewals are not counted."""

    acks: int
    calls: int


@frozen(slots=False)
class Difference:
    """Two sides compared."""

    old: Account
    new: Account

    @cached_property
    def fields(self) -> tuple[tuple[str, Any, Any], ...]:
        """The fields in which the policies differ: name, old value, new value (None: there is no such field)."""
        a, b = self.old.policy, self.new.policy
        return tuple((k, a.get(k), b.get(k)) for k in {**a, **b} if a.get(k) != b.get(k))

    @cached_property
    def steps(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """The steps of the protocol, whatever the policy, that are gone, new, and changed."""
        a, b = self.old.protocol, self.new.protocol
        return (
            tuple(k for k in a if k not in b),
            tuple(k for k in b if k not in a),
            tuple(k for k in a if k in b and a[k] != b[k]),
        )

    @cached_property
    def promises(self) -> tuple[Promised, ...]:
        """Every promise of either side."""
        ids = {f.id: f.text for account in (self.old, self.new) for f in account.promises}
        return tuple(Promised(k, text, self.old.found(k), self.new.found(k)) for k, text in ids.items())

    @cached_property
    def changed(self) -> tuple[Promised, ...]:
        """The promises of which something else was found, what is broken first."""
        order = list(Change)
        changed = [p for p in self.promises if p.change is not Change.NONE]
        return tuple(sorted(changed, key=lambda p: order.index(p.change)))

    @cached_property
    def possibilities(self) -> tuple[tuple[str, str, bool | None, bool | None], ...]:
        """What can now happen and could not, or the reverse: id, sentence, before, now."""
        a, b = self.old.possibilities, self.new.possibilities
        nothing: tuple[str, bool | None] = ("", False)
        return tuple(
            (k, text, a.get(k, nothing)[1], b.get(k, nothing)[1])
            for k, (text, _) in {**a, **b}.items()
            if a.get(k, nothing)[1] is not b.get(k, nothing)[1]
        )

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Where the behaviours part, and what follows."""
        return partings(self.old.automaton, self.new.automaton)

    @cached_property
    def lost(self) -> tuple[Letter, ...] | None:
        """The shortest behaviour of the old side that the new one does not have."""
        return shortest(self.groups, gains=False)

    @cached_property
    def gained(self) -> tuple[Letter, ...] | None:
        """The shortest behaviour of the new side that the old one did not have."""
        return shortest(self.groups, gains=True)

    @property
    def timings(self) -> tuple[Timing, Timing]:
        """The times of both policies."""
        return _timing(self.old), _timing(self.new)

    @property
    def calls(self) -> tuple[Calls, Calls]:
        """The longest ack sequences of both."""
        return longest(self.old.automaton), longest(self.new.automaton)

    @property
    def stopped(self) -> str:
        """Why a search ended before it was complete; empty when both were."""
        return next((s.stopped for s in (self.old, self.new) if s.stopped), "")

    @property
    def is_empty(self) -> bool:
        """Is nothing different, and was all of it searched? Numbers of states are not compared."""
        told = (self.fields, *self.steps, self.changed, self.possibilities, self.groups, self.stopped)
        return not any(told) and self.old.stuck == self.new.stuck

    @property
    def findings(self) -> tuple[Promised, ...]:
        """The promises that the new side breaks where the old one kept them."""
        return tuple(p for p in self.promises if p.change in FINDINGS)

    @property
    def is_for_the_worse(self) -> bool:
        """Does the new side break what the old one kept, or was a search stopped, so that it may?"""
        return bool(self.findings or self.newly_stuck or self.stopped)

    @property
    def newly_stuck(self) -> bool:
        """Can a run get stuck that could not before?"""
        return self.new.stuck and not self.old.stuck


def _timing(account: Account) -> Timing:
    waits, *others = (account.policy[name] for name in TIMES)
    return timing(tuple(waits), *others)


def longest(automaton: Automaton) -> Calls:
    """The longest ack sequence that a delivery can have."""
    known: dict[int, tuple[int, int]] = {1: (0, 0)}
    settles = {c.value for c in (*ACKS, *ABANDONS)}

    def from_here(state: int) -> tuple[int, int]:
        if state not in known:
            ways = [
                (acks + (letter.does == Call.ACK.value), calls + (letter.does in settles))
                for letter, target in automaton.steps[state].items()
                if counted(automaton, state, letter)
                for acks, calls in (from_here(target),)
            ]
            known[state] = max(ways, default=(0, 0))
        return known[state]

    return Calls(*from_here(0))
