"""The reference stores as the harness wants to see a store: what an adapter is in about twenty lines."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import peeklock.impl as impl
from peeklock.harness.adapter.interface import Delivery


class ReferenceAdapter:
    """Any store of the reference implementation."""

    def __init__(self, store: impl.Store, clock: impl.Clock) -> None:
        self.store = store
        if isinstance(clock, impl.VirtualClock):
            self.advance = clock.advance
        self.renew, self.abandon, self.cancel = store.renew, store.abandon, store.cancel
        self.close: Callable[[], None] = store.close if isinstance(store, impl.SqliteStore) else lambda: None

    def enqueue(self, item: str, delay_ms: int) -> None:
        self.store.enqueue(impl.WorkItem(item, "instance", "work"), delay_ms)

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        got = self.store.fetch(lock_timeout_ms)
        return None if got is None else Delivery(got.item.id, got.token, got.attempt_count)

    def ack(self, token: str, completion: str | None) -> None:
        # An item's name is not in its token, and who fetched it may be somebody else.
        items = [row.item.id for row in self.store.rows() if row.token == token]
        kind, item = impl.CompletionKind.SUCCESS, items[0] if items else ""
        self.store.ack(token, None if completion is None else impl.Completion(kind, item, completion))

    def completions(self) -> Sequence[tuple[str, str]]:
        return [(c.item_id, c.payload) for c in self.store.completions()]


class Locked:
    """An adapter of which one call is made at a time."""

    def __init__(self, adapter: ReferenceAdapter) -> None:
        self._adapter, self._lock = adapter, threading.Lock()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._adapter, name)

        @functools.wraps(method)
        def locked(*args: Any) -> Any:
            with self._lock:
                return method(*args)

        return locked


ERRORS = {"retryable": (impl.RetryableError,), "permanent": (impl.PermanentError,)}
"""What these stores raise, for ``check_store``."""


def memory_store() -> ReferenceAdapter:
    """The reference store in memory."""
    clock = impl.VirtualClock()
    return ReferenceAdapter(impl.MemoryStore(clock), clock)


def sqlite_store(folder: Path) -> Callable[[], ReferenceAdapter]:
    """Makes the reference store in a file of its own in this folder."""
    numbers = itertools.count(1)

    def sqlite_store() -> ReferenceAdapter:
        clock = impl.VirtualClock()
        return ReferenceAdapter(impl.SqliteStore(folder / f"{next(numbers)}.db", clock, durable=False), clock)

    return sqlite_store
