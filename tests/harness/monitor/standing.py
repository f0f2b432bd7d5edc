"""Where everything stands, in one state that explains a run: what a monitor tells of itself, with names."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from peeklock.spec.notation.actions import Timer
from peeklock.spec.reading.evaluate import Record


@frozen
class Until:
    """When a timer of an item runs out: not before ``earliest_ms``, and not after ``latest_ms``."""

    timer: Timer
    earliest_ms: int
    latest_ms: int


@frozen
class Standing:
    """One state that explains a run. Names are those that were seen."""

    items: Mapping[str, Record]
    """The record of each item, in the order in which they were first seen."""
    workers: Mapping[str, Record] = field(factory=dict)
    """The record of each worker; none where only the store is judged."""
    tokens: Mapping[tuple[str, int], str] = field(factory=dict)
    """The text of the n-th token of an item, where it was seen."""
    until: Mapping[str, Until] = field(factory=dict)
    """When an item's timer runs out, where a clock is watched."""
