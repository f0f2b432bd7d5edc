"""The promises about steps and states, ready to be asked of one concrete step or state."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, frozen

from peeklock.harness.monitor.world import Core
from peeklock.spec.compose import PROMISES
from peeklock.spec.notation.actions import Action
from peeklock.spec.notation.terms import substitute
from peeklock.spec.reading.evaluate import State, predicate
from peeklock.spec.variants.variant import Variant


@frozen
class _Asked:
    promise: str
    keeps: Callable[..., bool]
    of_counts: bool
    """It speaks of the step for what is counted in it."""


class StepPromises:
    """Says which promises a step or a state breaks."""

    def __init__(self, variant: Variant) -> None:
        self._variant = variant
        self._steps: dict[Action, list[_Asked]] = {}
        self._states = [
            (p.id, predicate(substitute(part.state, variant.settings)))
            for p in PROMISES
            for part in p.parts
            if part.state is not None
        ]

    def broken_by(
        self, action: Action, state: State, w: int, i: int, *, of_counts: bool = False
    ) -> frozenset[str]:
        """The promises that this step breaks; with ``of_counts``, those only that speak of what it counts."""
        asked = self._steps.get(action)
        if asked is None:
            asked = self._steps[action] = self._of(action)
        spoken = (one for one in asked if one.of_counts or not of_counts)
        return frozenset(one.promise for one in spoken if not one.keeps(*state, w, i))

    def broken_in(self, core: Core) -> frozenset[str]:
        """The promises that were broken on the way to this world, or are by its state."""
        return core.broken | frozenset(pid for pid, keeps in self._states if not keeps(*core.state))

    def _of(self, action: Action) -> list[_Asked]:
        uncounted = evolve(action.label, counts=None)
        return [
            _Asked(promise.id, predicate(term), not part.kind(uncounted))
            for promise, part, term in self._variant.obligations(action)
        ]
