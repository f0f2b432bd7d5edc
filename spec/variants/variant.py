"""A variant: the protocol under one policy, over one store, with a choice of fault classes."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from functools import cache

from attrs import frozen

from peeklock.spec.compose import PROMISES, resolved, specialized
from peeklock.spec.law.faults import FAULTS, FIFO, KNOWN_FAULTS, fault
from peeklock.spec.law.policy import Policy, settings_of
from peeklock.spec.notation.actions import Action
from peeklock.spec.notation.terms import Substitution, Term
from peeklock.spec.promises.promise import Part, Promise, Step
from peeklock.spec.variants.deviations import NO_DEVIATIONS, Deviations, protocol_over


@frozen
class Variant:
    """The protocol under one policy, over one store, with a choice of fault classes."""

    policy: Policy
    faults: frozenset[str] = frozenset(f.name for f in FAULTS)
    fifo: bool = False
    store: Deviations = NO_DEVIATIONS
    """How the store deviates from the contract."""

    @property
    def settings(self) -> dict[Term, int | bool | enum.Enum]:
        """The values of all settings."""
        switches = {fault(f.name): f.name in self.faults for f in KNOWN_FAULTS}
        return {**settings_of(self.policy), **switches, FIFO: self.fifo}

    def actions(self) -> tuple[Action, ...]:
        """The actions that this variant has."""
        return specialized(protocol_over(self.store), self.settings)

    def obligation(self, part: Part, action: Action) -> Term | None:
        """What the part asks of a state in which the action is taken; None where it does not speak of it.

        The values after the step are replaced by what the action writes, so the result is a term about the state
        before it.
        """
        if part.step is None or not part.kind(action.label):
            return None
        body = part.step(Step(action.label, self.policy, action.worker, action.item))
        return _fixed(self)(resolved(body, action.effects))

    def obligations(self, action: Action) -> Iterator[tuple[Promise, Part, Term]]:
        """All that the promises ask of a state in which the action is taken, part by part."""
        for promise in PROMISES:
            for part in promise.parts:
                term = self.obligation(part, action)
                if term is not None:
                    yield promise, part, term


@cache
def _fixed(variant: Variant) -> Substitution:
    return Substitution(variant.settings)
