"""What the harness asks of a store: the calls of the contract, in plain texts and integers.

A store that lacks something says so in its capabilities, and needs no method for it. Every call is made by one
thread at a time unless the store is checked for concurrency.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from attrs import frozen


class RetryableError(Exception):
    """The call may be repeated. It says nothing about whether the call took effect."""


class PermanentError(Exception):
    """The call is refused, and nothing changed: an unknown, expired or superseded token, or malformed input."""


@frozen
class Delivery:
    """One successful fetch."""

    item: str
    token: str
    attempt_count: int | None = None
    """How often the item was fetched, this time included; None where the store does not say."""


class StoreAdapter(Protocol):
    """A store, as the harness calls it. Times are integer milliseconds.

    Every call may raise ``RetryableError``; all but enqueue and fetch may raise ``PermanentError``. Any other
    exception is a fault of the adapter and ends the check.
    """

    def enqueue(self, item: str, delay_ms: int) -> None:
        """Give the item a row, fetchable from now + delay_ms, with attempt count 0."""
        ...

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        """Lock an item that is visible and unlocked, or whose lock has expired, until now + lock_timeout_ms.

        None when there is none.
        """
        ...

    def renew(self, token: str, extend_for_ms: int) -> None:
        """Let the lock end at now + extend_for_ms; permanent unless the token is current and unexpired."""
        ...

    def ack(self, token: str, completion: str | None) -> None:
        """Remove the item and enqueue the completion, if there is one: both or neither.

        Permanent unless the token is current and unexpired; so also when an earlier ack took effect.
        """
        ...

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        """Give the item back, fetchable from now + delay_ms; permanent unless the token is current."""
        ...

    def cancel(self, items: Sequence[str]) -> Sequence[str]:
        """Remove these items without completions, locked or not; the ids that had a row."""
        ...

    def completions(self) -> Sequence[tuple[str, str]]:
        """Every completion that was enqueued, oldest first, as (item, completion). Changes nothing."""
        ...


class VirtualTime(Protocol):
    """A store that runs on a clock of its own."""

    def advance(self, ms: int) -> None:
        """Let so much time pass."""
        ...


class FaultInjection(Protocol):
    """A store that can be told to fail."""

    def fail_next(self, call: str, after_effect: bool) -> None:
        """Let the next call of this method raise ``RetryableError``, before or after it took effect."""
        ...


class Closing(Protocol):
    """A store that holds something: files, connections, a program."""

    def close(self) -> None:
        """Let go of everything. Called once, at the end of each run."""
        ...
