"""What a promise is: parts that every state or every step must keep, and the faults that are stated to break it.

A promise is a list of parts, so that a broken promise says which part of it is false. A part speaks of every
reachable state (``always``) or of every step of some kind (``at``): there ``after(x)`` is the value of x once the
step is taken. What is stated here is expected; a check finds out, and says where it finds otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from attrs import field, frozen

from peeklock.spec.law.policy import Policy
from peeklock.spec.notation.actions import Answer, Call, Event, Item, Label, Metric, Worker
from peeklock.spec.notation.terms import Term


@frozen
class Step:
    """The step that a part speaks of: what it is, who takes it, and about which item."""

    label: Label
    policy: Policy
    worker: Term | None
    item: Term | None

    @property
    def w(self) -> Worker:
        """The worker that takes the step."""
        assert self.worker is not None, f"{self.label} is not a worker's step"
        return self.worker

    @property
    def i(self) -> Item:
        """The item that the step is about."""
        assert self.item is not None, f"{self.label} is not about one item"
        return self.item


Kind: TypeAlias = Callable[[Label], bool]
"""Which steps a part speaks of."""


def any_step(label: Label) -> bool:
    """Every step."""
    return True


def calling(*calls: Call, effect: bool | None = None, answers: tuple[Answer, ...] = tuple(Answer)) -> Kind:
    """The steps that are one of these calls, with one of these answers, with or without an effect in the store."""
    return lambda a: a.call in calls and a.answer in answers and (effect is None or a.takes_effect == effect)


def counting(*metrics: Metric) -> Kind:
    """The steps in which the worker counts one of these verdicts."""
    return lambda label: label.counts in metrics


def happening(*events: Event) -> Kind:
    """The steps that are one of these events."""
    return lambda label: label.event in events


@frozen(eq=False)
class Part:
    """One sentence of a promise: about every state, or about the steps of a kind."""

    text: str
    state: Term | None = None
    kind: Kind = any_step
    step: Callable[[Step], Term] | None = None


def always(text: str, state: Term) -> Part:
    """A part about every reachable state."""
    return Part(text, state=state)


def at(text: str, kind: Kind, step: Callable[[Step], Term]) -> Part:
    """A part about every step of a kind."""
    return Part(text, kind=kind, step=step)


@frozen(eq=False)
class Promise:
    """A promise, and the smallest sets of fault classes that are stated to break it, by policy."""

    id: str
    text: str
    parts: tuple[Part, ...]
    about: Kind | None = None
    """The steps without which the promise says nothing (shown as "-"); None for one that always speaks."""
    broken_by: Mapping[str, tuple[frozenset[str], ...]] = field(factory=dict)
    silent_in: tuple[str, ...] = ()
    """Policies under which it is stated to say nothing."""

    def is_stated_to_fail(self, policy: Policy, faults: frozenset[str]) -> bool:
        """Is the promise stated to fail under this policy when these fault classes are on?"""
        return any(causes <= faults for causes in self.broken_by.get(policy.stands_for, ()))


@frozen(eq=False)
class Possibility:
    """Something that must be able to happen: a check in which it cannot is safe because nothing happens."""

    id: str
    text: str
    part: Part
    then: Kind | None = None
    """Where given: after such a step, a step of this kind must still be able to follow."""
    impossible_in: tuple[str, ...] = ()
    """Policies under which it is stated to be impossible."""
    needs: frozenset[str] = frozenset()
    """Fault classes without which it is not expected."""
    needs_workers: int = 1
    """How many workers a world must have for it."""


def causes(*sets: str) -> tuple[frozenset[str], ...]:
    """Sets of fault classes, each written as its names with + between them."""
    return tuple(frozenset(names.split("+")) for names in sets)
