"""Bounded worlds: how many workers, items and deliveries, under which variant of the protocol."""

from __future__ import annotations

from functools import cached_property

from attrs import Factory, evolve, field, frozen

from peeklock.spec.compose import specialized
from peeklock.spec.law.state import issued
from peeklock.spec.notation.actions import Action, Call
from peeklock.spec.notation.terms import FALSE, Term, both
from peeklock.spec.reading.evaluate import State, initial_state
from peeklock.spec.reading.wording import many
from peeklock.spec.variants.deviations import protocol_over
from peeklock.spec.variants.variant import Variant

LARGEST = 250
"""No size of a world may be larger: a variable of a record is a byte."""


class WorldError(ValueError):
    """A world that cannot be."""


@frozen(slots=False)
class World:
    """The sizes under which a verdict is found.

    With ``max_attempts`` 2, an item is poison at its third delivery and can be counted as poison twice at its
    fourth, so fewer deliveries cannot show every promise broken.
    """

    variant: Variant
    workers: int = 2
    items: int = 2
    deliveries: int = 4
    actions_of_protocol: tuple[Action, ...] = field(
        default=Factory(lambda self: protocol_over(self.variant.store), takes_self=True), repr=False, eq=False
    )

    def __attrs_post_init__(self) -> None:
        policy = self.variant.policy
        sizes = {n: getattr(self, n) for n in ("workers", "items", "deliveries")}
        sizes |= {n: getattr(policy, n) for n in ("max_attempts", "ack_attempts")}
        for name, size in sizes.items():
            if not 1 <= size <= LARGEST:
                raise WorldError(f"{name} is {size}; allowed in a bounded world: 1 to {LARGEST}")

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """The actions of the variant, within the bound on deliveries."""
        bounded = []
        for action in specialized(self.actions_of_protocol, self.variant.settings):
            if action.label.call is Call.FETCH and action.label.takes_effect and action.item is not None:
                within = issued[action.item] < self.deliveries
                action = evolve(action, guards=(*action.guards, within))
            bounded.append(action)
        return tuple(bounded)

    @cached_property
    def quiet_guards(self) -> tuple[Term, ...]:
        """For each action, when it can happen although no further fault does (FALSE for a fault)."""
        calm = evolve(self.variant, faults=frozenset())
        by_name = {a.name: a for a in specialized(self.actions_of_protocol, calm.settings)}
        return tuple(both(*by_name[a.name].guards) if a.name in by_name else FALSE for a in self.actions)

    @property
    def is_small(self) -> bool:
        """Has it too few deliveries to show every promise broken that is stated to fail?

        One worker and one item are enough for that.
        """
        return self.deliveries < self.variant.policy.max_attempts + 2

    def initial(self) -> State:
        """Nothing is enqueued, and every worker is idle."""
        return initial_state(self.workers, self.items)

    def __str__(self) -> str:
        return (
            f"{many(self.workers, 'worker')}, {many(self.items, 'item')}, at most {self.deliveries} deliveries each, "
            f"max_attempts {self.variant.policy.max_attempts}"
        )
