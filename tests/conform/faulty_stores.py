"""A small store that keeps the contract, and stores that break it in one way each."""

from __future__ import annotations

import contextlib
import itertools
import random
import time
from collections.abc import Sequence
from typing import Any

from attrs import define

from peeklock.harness.adapter.interface import Delivery, PermanentError, RetryableError


@define
class Row:
    """A queued item."""

    item: str
    visible_ms: int
    attempts: int = 0
    token: str | None = None
    until_ms: int = 0


class PlainStore:
    """Keeps the contract; written against the adapter's interface."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.rows: dict[str, Row] = {}
        self.done: list[tuple[str, str]] = []
        self.numbers = itertools.count(1)
        self.owner: dict[str, str] = {}

    def advance(self, ms: int) -> None:
        self.now_ms += ms

    def enqueue(self, item: str, delay_ms: int) -> None:
        self.rows[item] = Row(item, self.now_ms + delay_ms)

    def is_free(self, row: Row) -> bool:
        return row.visible_ms <= self.now_ms and (row.token is None or row.until_ms <= self.now_ms)

    def new_token(self) -> str:
        return f"t{next(self.numbers)}"

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        for row in self.rows.values():
            if self.is_free(row):
                row.token, row.until_ms = self.new_token(), self.now_ms + lock_timeout_ms
                row.attempts += 1
                self.owner[row.token] = row.item
                return Delivery(row.item, row.token, row.attempts)
        return None

    def current(self, token: str) -> Row:
        for row in self.rows.values():
            if row.token == token:
                return row
        raise PermanentError(token)

    def locked(self, token: str) -> Row:
        row = self.current(token)
        if row.until_ms <= self.now_ms:
            raise PermanentError(token)
        return row

    def renew(self, token: str, extend_for_ms: int) -> None:
        self.locked(token).until_ms = self.now_ms + extend_for_ms

    def ack(self, token: str, completion: str | None) -> None:
        row = self.locked(token)
        del self.rows[row.item]
        if completion is not None:
            self.done.append((row.item, completion))

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        row = self.current(token)
        row.token, row.visible_ms = None, self.now_ms + delay_ms
        if ignore_attempt:
            row.attempts = max(0, row.attempts - 1)

    def cancel(self, items: Sequence[str]) -> Sequence[str]:
        return [item for item in dict.fromkeys(items) if self.rows.pop(item, None)]

    def completions(self) -> Sequence[tuple[str, str]]:
        return list(self.done)


class AcceptsStaleTokens(PlainStore):
    def current(self, token: str) -> Row:
        row = self.rows.get(self.owner.get(token, ""))
        if row is None or row.token is None:
            raise PermanentError(token)
        return row


class AcceptsAcksAfterExpiry(PlainStore):
    def ack(self, token: str, completion: str | None) -> None:
        self.current(token).until_ms = self.now_ms + 1
        super().ack(token, completion)


class LocksLastOneMillisecondLonger(PlainStore):
    def locked(self, token: str) -> Row:
        row = self.current(token)
        if row.until_ms < self.now_ms:
            raise PermanentError(token)
        return row


class LocksNeverExpire(PlainStore):
    def is_free(self, row: Row) -> bool:
        return row.visible_ms <= self.now_ms and row.token is None


class FetchingDeletes(PlainStore):
    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        found = super().fetch(lock_timeout_ms)
        if found is not None:
            del self.rows[found.item]
        return found


class AbandonClearsAnothersLock(PlainStore):
    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        row = self.rows.get(self.owner.get(token, ""))
        if row is None or row.token is None:
            raise PermanentError(token)
        super().abandon(row.token, delay_ms, ignore_attempt)


class RepeatedAcksEnqueueAgain(PlainStore):
    def ack(self, token: str, completion: str | None) -> None:
        if (self.owner.get(token), completion) and token in self.owner and self._is_done(token):
            if completion is not None:
                self.done.append((self.owner[token], completion))
            return
        super().ack(token, completion)

    def _is_done(self, token: str) -> bool:
        return any(item == self.owner[token] for item, _ in self.done)


class RefusedAcksEnqueue(PlainStore):
    def ack(self, token: str, completion: str | None) -> None:
        try:
            super().ack(token, completion)
        except PermanentError:
            if token in self.owner and completion is not None:
                self.done.append((self.owner[token], completion))
            raise


class CompletionsAreLost(PlainStore):
    def ack(self, token: str, completion: str | None) -> None:
        super().ack(token, completion)
        if completion is not None and len(self.done) > 1:
            self.done.pop()


class TheYoungestFirst(PlainStore):
    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        self.rows = dict(reversed(self.rows.items()))
        found = super().fetch(lock_timeout_ms)
        self.rows = dict(reversed(self.rows.items()))
        return found


class AttemptsAreNotCounted(PlainStore):
    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        found = super().fetch(lock_timeout_ms)
        return None if found is None else Delivery(found.item, found.token, 1)


class TokensAreTheItemsNames(PlainStore):
    def new_token(self) -> str:
        return f"t{next(self.numbers) % 2}"


class RenewalsDoNothing(PlainStore):
    def renew(self, token: str, extend_for_ms: int) -> None:
        self.locked(token)


class RenewalsOnlyProlong(PlainStore):
    def renew(self, token: str, extend_for_ms: int) -> None:
        row = self.locked(token)
        row.until_ms = max(row.until_ms, self.now_ms + extend_for_ms)


class AbandonIgnoresTheDelay(PlainStore):
    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        super().abandon(token, 0, ignore_attempt)


class AbandonedItemsAreLost(PlainStore):
    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        row = self.current(token)
        super().abandon(token, delay_ms, ignore_attempt)
        if row.attempts > 1:
            del self.rows[row.item]


class ThriceAbandonedItemsAreLost(PlainStore):
    """Rare enough that only a drawn run finds it."""

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        row = self.current(token)
        super().abandon(token, delay_ms, ignore_attempt)
        if row.attempts > 2:
            del self.rows[row.item]


class CancelLeavesLockedRows(PlainStore):
    def cancel(self, items: Sequence[str]) -> Sequence[str]:
        free = [i for i in items if i in self.rows and self.rows[i].token is None]
        return super().cancel(free)


class CancelSaysNothing(PlainStore):
    def cancel(self, items: Sequence[str]) -> Sequence[str]:
        super().cancel(items)
        return []


class StrangersMayAbandon(PlainStore):
    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        if token in self.owner:
            super().abandon(token, delay_ms, ignore_attempt)


class CarriesAnotherCompletion(PlainStore):
    def ack(self, token: str, completion: str | None) -> None:
        super().ack(token, None if completion is None else "done")


class Moody(PlainStore):
    """Sometimes, and never twice at the same place, an ack is accepted after its lock has expired."""

    chance: Any = random.Random()

    def locked(self, token: str) -> Row:
        row = self.current(token)
        if row.until_ms <= self.now_ms and self.chance.random() < 0.5:
            raise PermanentError(token)
        return row


class Hangs(PlainStore):
    def renew(self, token: str, extend_for_ms: int) -> None:
        time.sleep(60)


class ProlongsLocks(PlainStore):
    """Keeps the contract of a store whose renewals add to what is left."""

    def renew(self, token: str, extend_for_ms: int) -> None:
        self.locked(token).until_ms += extend_for_ms


class KeepsNoOrder(PlainStore):
    """Keeps the contract of a store that hands out any item."""

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        self.rows = dict(sorted(self.rows.items(), key=lambda entry: entry[1].attempts, reverse=True))
        return super().fetch(lock_timeout_ms)


class AbandonsInSilence(PlainStore):
    """Keeps the contract of a store that says nothing about unknown tokens."""

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        with contextlib.suppress(PermanentError):
            super().abandon(token, delay_ms, ignore_attempt)


class OnlyFetchesAndAcks:
    """Keeps the contract of a store that has little else."""

    def __init__(self) -> None:
        store = PlainStore()
        self.enqueue, self.fetch, self.ack, self.advance = (
            store.enqueue,
            store.fetch,
            store.ack,
            store.advance,
        )


class FailsOnDemand(PlainStore):
    """Keeps the contract, and can be told to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.next: dict[str, bool] = {}

    def fail_next(self, call: str, after_effect: bool) -> None:
        self.next[call] = after_effect

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        if name not in ("fetch", "renew", "ack", "abandon"):
            return method

        def failing(*args: Any) -> Any:
            after_effect = self.next.pop(name, None)
            if after_effect is False:
                raise RetryableError(name)
            value = method(*args)
            if after_effect:
                raise RetryableError(name)
            return value

        return failing


class IsOftenBusy(PlainStore):
    """Keeps the contract, but every third call finds it busy."""

    def __init__(self, busy: int = 3) -> None:
        super().__init__()
        self.busy, self.count = busy, 0

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        self.count += 1
        if self.count % self.busy == 0:
            raise RetryableError("busy")
        return super().fetch(lock_timeout_ms)


class InRealTime(PlainStore):
    """Keeps the contract on the machine's clock."""

    advance = None  # type: ignore[assignment]

    @property
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    @now_ms.setter
    def now_ms(self, value: int) -> None: ...


class InRealTimeLocksNeverExpire(InRealTime):
    def is_free(self, row: Row) -> bool:
        return row.visible_ms <= self.now_ms and row.token is None
