"""The reference stores as the harness wants to see a store: what an adapter is in about twenty lines."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import peeklock.impl as impl
from peeklock.harness.adapter import Delivery


class ReferenceAdapter:
    """Any store of the reference implementation, on a virtual clock."""

    def __init__(self, store: impl.Store, clock: impl.VirtualClock) -> None:
        self.store, self.advance = store, clock.advance
        self.renew, self.abandon, self.cancel = store.renew, store.abandon, store.cancel
        self._items: dict[str, str] = {}
        self.close: Callable[[], None] = lambda: None

    def enqueue(self, item: str, delay_ms: int) -> None:
        self.store.enqueue(impl.WorkItem(item, "instance", "work"), delay_ms)

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        got = self.store.fetch(lock_timeout_ms)
        if got is None:
            return None
        self._items[got.token] = got.item.id
        return Delivery(got.item.id, got.token, got.attempt_count)

    def ack(self, token: str, completion: str | None) -> None:
        kind, item = impl.CompletionKind.SUCCESS, self._items.get(token, "")
        self.store.ack(token, None if completion is None else impl.Completion(kind, item, completion))

    def completions(self) -> Sequence[tuple[str, str]]:
        return [(c.item_id, c.payload) for c in self.store.completions()]


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
        store = impl.SqliteStore(folder / f"{next(numbers)}.db", clock, durable=False)
        adapter = ReferenceAdapter(store, clock)
        adapter.close = store.close
        return adapter

    return sqlite_store
