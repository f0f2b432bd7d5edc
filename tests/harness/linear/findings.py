"""What the decision says of a history: what nothing explains, and where an item may stand."""

from __future__ import annotations

from attrs import frozen

from peeklock.harness.linear.worlds import Item, Op, World


class Unexplained(Exception):
    """No moment of the operation explains it, in any order of those beside it."""

    def __init__(self, op: Op, worlds: tuple[World, ...], in_the_way: tuple[int, ...]) -> None:
        super().__init__(op)
        self.op, self.worlds = op, worlds
        """The worlds that were tried."""
        self.in_the_way = in_the_way
        """The items because of which it was not explained, in one world or the other."""


@frozen
class Place:
    """Where an item may stand, and when its timer runs out: not before, and not after, in milliseconds."""

    item: Item
    earliest_ms: float
    latest_ms: float
