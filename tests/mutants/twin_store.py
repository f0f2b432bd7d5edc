"""The correct store of which every faulty store here is a small change: one dictionary, a clock of its own."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from peeklock.harness.adapter.interface import Delivery, PermanentError


@define
class Row:
    """What the store keeps of an item that is in the queue."""

    item: str
    visible_at_ms: int
    attempt_count: int = 0
    token: str | None = None
    locked_until_ms: int = 0


@define
class Twin:
    """Keeps its contract. What a faulty store overrides is one of the small methods below the calls."""

    now_ms: int = 0
    rows: dict[str, Row] = field(factory=dict)
    enqueued: list[tuple[str, str]] = field(factory=list)
    tokens: int = 0

    def enqueue(self, item: str, delay_ms: int) -> None:
        self.rows[item] = Row(item, self.now_ms + delay_ms)

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        for row in self.in_order():
            if self.fetchable(row):
                self.lock(row, lock_timeout_ms)
                assert row.token is not None
                return Delivery(row.item, row.token, row.attempt_count)
        return None

    def renew(self, token: str, extend_for_ms: int) -> None:
        row = self.valid(token)
        row.locked_until_ms = self.now_ms + extend_for_ms

    def ack(self, token: str, completion: str | None) -> None:
        row = self.valid(token)
        self.remove(row)
        if completion is not None:
            self.complete(row.item, completion)

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        self.give_back(self.current(token), delay_ms, ignore_attempt)

    def cancel(self, items: Sequence[str]) -> Sequence[str]:
        found = [i for i in dict.fromkeys(items) if i in self.rows]
        for item in found:
            self.remove(self.rows[item])
        return found

    def completions(self) -> Sequence[tuple[str, str]]:
        return tuple(self.enqueued)

    def advance(self, ms: int) -> None:
        self.now_ms += ms

    # The rules

    def in_order(self) -> Sequence[Row]:
        """The rows, oldest first."""
        return tuple(self.rows.values())

    def fetchable(self, row: Row) -> bool:
        """Visible, and unlocked or expired."""
        return row.visible_at_ms <= self.now_ms and (row.token is None or self.expired(row))

    def expired(self, row: Row) -> bool:
        """At the end of the lock it is over."""
        return row.locked_until_ms <= self.now_ms

    def current(self, token: str) -> Row:
        """The row whose current token this is."""
        for row in self.rows.values():
            if row.token == token:
                return row
        raise PermanentError(f"token {token} is not current")

    def valid(self, token: str) -> Row:
        """The row whose current token this is, unexpired."""
        row = self.current(token)
        if self.expired(row):
            raise PermanentError(f"the lock of {token} has expired")
        return row

    def lock(self, row: Row, lock_timeout_ms: int) -> None:
        """Lock the row under a new token."""
        row.token = self.new_token(row)
        row.locked_until_ms = self.now_ms + lock_timeout_ms
        row.attempt_count += 1

    def new_token(self, row: Row) -> str:
        """A token that was never issued before."""
        self.tokens += 1
        return f"t{self.tokens}"

    def remove(self, row: Row) -> None:
        """The row goes."""
        del self.rows[row.item]

    def complete(self, item: str, completion: str) -> None:
        """Put a completion on the orchestrator's queue."""
        self.enqueued.append((item, completion))

    def give_back(self, row: Row, delay_ms: int, ignore_attempt: bool) -> None:
        """Unlock the row; it is visible when the delay is over."""
        row.token = None
        row.visible_at_ms = self.now_ms + delay_ms
        if ignore_attempt:
            row.attempt_count = max(0, row.attempt_count - 1)
