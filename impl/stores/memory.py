"""A store in the memory of one process."""

import secrets
from collections.abc import Iterable

from attrs import evolve

from peeklock.impl.clock import Clock
from peeklock.impl.errors import PermanentError
from peeklock.impl.store import (
    Completion,
    Delivery,
    Row,
    WorkItem,
    check_belongs,
    check_ms,
    unique_ids,
)


class MemoryStore:
    """Keeps both queues in dictionaries, whose insertion order is the age of the items.

    For one thread. `incarnation` begins every token, so that a token of another store is never
    current here; by default it is random.
    """

    def __init__(self, clock: Clock, incarnation: str | None = None) -> None:
        self._clock = clock
        self._incarnation = incarnation or secrets.token_hex(8)
        self._last_token = 0
        self._rows: dict[str, Row] = {}
        self._completions: dict[str, Completion] = {}

    def enqueue(self, item: WorkItem, delay_ms: int = 0) -> None:
        """See Store.enqueue."""
        check_ms("enqueue", "delay_ms", delay_ms, 0)
        if item.id in self._rows or item.id in self._completions:
            raise PermanentError("enqueue", f"item {item.id!r} is already queued or completed")
        self._rows[item.id] = Row(item, self._clock.now_ms() + delay_ms, 0, None, None)

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        """See Store.fetch."""
        check_ms("fetch", "lock_timeout_ms", lock_timeout_ms, 1)
        now_ms = self._clock.now_ms()
        for row in self._rows.values():
            if row.visible_at_ms <= now_ms and (row.locked_until_ms is None or row.locked_until_ms <= now_ms):
                return self._lock(row, now_ms + lock_timeout_ms)
        return None

    def renew(self, token: str, extend_for_ms: int) -> None:
        """See Store.renew."""
        check_ms("renew", "extend_for_ms", extend_for_ms, 1)
        now_ms = self._clock.now_ms()
        row = self._locked("renew", token, now_ms)
        self._rows[row.item.id] = evolve(row, locked_until_ms=now_ms + extend_for_ms)

    def ack(self, token: str, completion: Completion | None) -> None:
        """See Store.ack."""
        row = self._locked("ack", token, self._clock.now_ms())
        check_belongs(row.item.id, completion)
        del self._rows[row.item.id]
        if completion is not None:
            self._completions[row.item.id] = completion

    def abandon(self, token: str, delay_ms: int = 0, ignore_attempt: bool = False) -> None:
        """See Store.abandon."""
        check_ms("abandon", "delay_ms", delay_ms, 0)
        row = self._current("abandon", token)
        self._rows[row.item.id] = Row(
            row.item,
            self._clock.now_ms() + delay_ms,
            max(0, row.attempt_count - 1) if ignore_attempt else row.attempt_count,
            None,
            None,
        )

    def cancel(self, item_ids: Iterable[str]) -> tuple[str, ...]:
        """See Store.cancel."""
        removed = tuple(item_id for item_id in unique_ids(item_ids) if item_id in self._rows)
        for item_id in removed:
            del self._rows[item_id]
        return removed

    def rows(self) -> tuple[Row, ...]:
        """See Store.rows."""
        return tuple(self._rows.values())

    def completions(self) -> tuple[Completion, ...]:
        """See Store.completions."""
        return tuple(self._completions.values())

    def _lock(self, row: Row, locked_until_ms: int) -> Delivery:
        self._last_token += 1
        token = f"{self._incarnation}-{self._last_token}"
        attempt_count = row.attempt_count + 1
        self._rows[row.item.id] = evolve(
            row, attempt_count=attempt_count, token=token, locked_until_ms=locked_until_ms
        )
        return Delivery(row.item, token, attempt_count, locked_until_ms)

    def _current(self, operation: str, token: str) -> Row:
        for row in self._rows.values():
            if row.token is not None and row.token == token:
                return row
        raise PermanentError(operation, f"token {token!r} is not current")

    def _locked(self, operation: str, token: str, now_ms: int) -> Row:
        row = self._current(operation, token)
        if row.locked_until_ms is None or row.locked_until_ms <= now_ms:
            raise PermanentError(operation, f"the lock of token {token!r} has expired")
        return row
