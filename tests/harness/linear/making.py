"""A world in the making: an operation takes effect, and what it relies on and changes is gathered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from attrs import frozen

from peeklock.harness.linear.worlds import Item, Undecided, World
from peeklock.harness.linear.zone import Draft

Touched: TypeAlias = Mapping[int, bool]
"""The items on whose standing an operation depends; True for those that it changes."""


@frozen
class Way:
    """One way in which an operation takes effect."""

    world: World
    touched: Touched


class Making:
    """A world that is being made: the zone, and what becomes of the items."""

    __slots__ = ("draft", "drop", "effort", "items", "past", "set_to", "touched")

    def __init__(
        self, draft: Draft, items: dict[int, Item], past: set[tuple[int, Item]], effort: list[int]
    ) -> None:
        self.draft, self.items, self.past, self.effort = draft, items, past, effort
        self.touched: dict[int, bool] = {}
        self.set_to: dict[int, tuple[int, int]] = {}
        self.drop: list[int] = []

    def copy(self) -> Making:
        self.effort[0] += (len(self.draft.place) + 1) ** 2
        if self.effort[0] > self.effort[1]:
            raise Undecided
        other = Making(self.draft.copy(), dict(self.items), set(self.past), self.effort)
        other.touched, other.set_to, other.drop = dict(self.touched), dict(self.set_to), list(self.drop)
        return other
