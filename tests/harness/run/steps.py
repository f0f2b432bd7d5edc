"""A run as data: the calls that are made of a store, named so that they mean the same in every run."""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen

from peeklock.spec.notation.actions import Call
from peeklock.spec.reading.timed_store import PRESENTING, Fault

NEVER_ISSUED = "never-issued"
"""A token that no store has given out."""
NEVER_ENQUEUED = "never-enqueued"
"""An item that no store has."""


def item_name(number: int) -> str:
    """The name of the n-th item, from 1. One name begins another, for stores that compare carelessly."""
    return f"i{'1' if number == 1 else 10 ** (number - 1)}"


@frozen
class Step:
    """One call, or a wait."""

    call: Call | None = None
    """None lets time pass."""
    items: tuple[str, ...] = ()
    """What is enqueued or cancelled, or what is to be fetched where that is not the store's choice."""
    delivery: int = 0
    """Whose token is presented: the n-th delivery of the run, from 1; 0 for a token that was never issued."""
    ms: int = 0
    """The lock timeout, the extension, the delay or the wait, in milliseconds."""
    fault: Fault = Fault.NONE

    @property
    def presents(self) -> bool:
        """Does the call present a token?"""
        return self.call in PRESENTING


Program: TypeAlias = tuple[Step, ...]
