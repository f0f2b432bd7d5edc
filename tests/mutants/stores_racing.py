"""Faulty stores that are right as long as one call is made at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from attrs import define, field
from mutant import StoreMutant, caught_by
from twin_store import Row, Twin

from peeklock.harness.adapter.interface import Delivery


@define
class LockedTwin(Twin):
    """Keeps its contract, with one lock around every call."""

    guard: threading.RLock = field(factory=threading.RLock)

    def enqueue(self, item: str, delay_ms: int) -> None:
        with self.guard:
            super().enqueue(item, delay_ms)

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        with self.guard:
            return super().fetch(lock_timeout_ms)

    def renew(self, token: str, extend_for_ms: int) -> None:
        with self.guard:
            super().renew(token, extend_for_ms)

    def ack(self, token: str, completion: str | None) -> None:
        with self.guard:
            super().ack(token, completion)

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        with self.guard:
            super().abandon(token, delay_ms, ignore_attempt)

    def cancel(self, items: Sequence[str]) -> Sequence[str]:
        with self.guard:
            return super().cancel(items)


def others_run() -> None:
    """Between two statements of one call, other calls are made."""
    time.sleep(0)


@define
class CheckThenClaim(LockedTwin):
    """A fetch reads that an item is free, and claims it in a second step.

    https://github.com/taskiq-python/taskiq-redis/issues/123
    """

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        with self.guard:
            free = [row for row in self.in_order() if self.fetchable(row)]
        if not free:
            return None
        others_run()
        with self.guard:
            self.lock(free[0], lock_timeout_ms)
            assert free[0].token is not None
            return Delivery(free[0].item, free[0].token, free[0].attempt_count)


@define
class RescueByStaleRead(LockedTwin):
    """The recovery reads which locks have run out, and ends the locks of those items in a second step.

    https://github.com/riverqueue/river/issues/1302
    """

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        with self.guard:
            over = [row for row in self.in_order() if row.token is not None and self.expired(row)]
        others_run()
        with self.guard:
            for row in over:
                row.locked_until_ms = self.now_ms
            return super().fetch(lock_timeout_ms)


@define
class AckOfTwoSteps(LockedTwin):
    """An ack finds its lock valid, and removes the row in a second step, when another worker may have it.

    https://github.com/apache/kafka/pull/20286
    """

    def ack(self, token: str, completion: str | None) -> None:
        with self.guard:
            row = self.valid(token)
        others_run()
        with self.guard:
            self.rows.pop(row.item, None)
            if completion is not None:
                self.complete(row.item, completion)


@define
class LastWriteWins(LockedTwin):
    """A renewal reads the row and writes it back whole, over what another call has done to it."""

    def renew(self, token: str, extend_for_ms: int) -> None:
        with self.guard:
            row = self.valid(token)
            copy = Row(row.item, row.visible_at_ms, row.attempt_count, row.token, self.now_ms + extend_for_ms)
        others_run()
        with self.guard:
            self.rows[row.item] = copy


_GH = "https://github.com/"

MUTANTS: tuple[StoreMutant, ...] = (
    caught_by("check-then-claim", CheckThenClaim, _GH + "taskiq-python/taskiq-redis/issues/123", "S6 C1"),
    caught_by(
        "race: rescuer-overwrites-completion",
        RescueByStaleRead,
        _GH + "riverqueue/river/issues/1302",
        "S6 C1",
    ),
    caught_by(
        "race: lock-ends-during-inflight-ack",
        AckOfTwoSteps,
        _GH + "apache/kafka/pull/20286",
        "S1 S3 S5 C4",
    ),
    caught_by("race: last-write-wins", LastWriteWins, None, "S4 S5 C1 C4"),
)
