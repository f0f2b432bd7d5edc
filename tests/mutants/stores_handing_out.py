"""Faulty stores that hand out what they may not, or no longer hand out what they must."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, evolve, field
from mutant import caught_by
from twin_store import Row, Twin

from peeklock.harness.adapter.interface import Delivery, PermanentError


@define
class PopIsDelete(Twin):
    """The row goes when it is fetched; the lock is kept apart and is lost with its worker.

    https://github.com/coleifer/huey/issues/844
    """

    held: dict[str, Row] = field(factory=dict)

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        got = super().fetch(lock_timeout_ms)
        if got is not None:
            self.held[got.token] = self.rows.pop(got.item)
        return got

    def current(self, token: str) -> Row:
        if token not in self.held:
            raise PermanentError("not current")
        return self.held[token]

    def remove(self, row: Row) -> None:
        self.held = {t: r for t, r in self.held.items() if r is not row}
        self.rows.pop(row.item, None)

    def give_back(self, row: Row, delay_ms: int, ignore_attempt: bool) -> None:
        self.remove(row)
        super().give_back(row, delay_ms, ignore_attempt)
        self.rows[row.item] = row

    def cancel(self, items: Sequence[str]) -> Sequence[str]:
        for row in tuple(self.held.values()):
            self.rows.setdefault(row.item, row)
        return super().cancel(items)


@define
class NoExpiry(Twin):
    """A lock never ends by itself.

    https://github.com/litements/litequeue/issues/1
    """

    def fetchable(self, row: Row) -> bool:
        return row.visible_at_ms <= self.now_ms and row.token is None


@define
class RecoveryNeedsWorkersRow(Twin):
    """What is recovered are the items of the workers that are on record; a worker is pruned soon after its lock.

    https://github.com/procrastinate-org/procrastinate/issues/1518
    """

    def fetchable(self, row: Row) -> bool:
        pruned = row.token is not None and row.locked_until_ms + 60_000 < self.now_ms
        return super().fetchable(row) and not pruned


@define
class ExpiryGoesStraightToDead(Twin):
    """An item whose lock ran out is dead at once, whatever its attempt count.

    https://github.com/contribsys/faktory/issues/409
    """

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        for row in self.in_order():
            if row.token is not None and self.expired(row):
                self.remove(row)
        return super().fetch(lock_timeout_ms)


@define
class ExpiryDuringAckPinsItem(Twin):
    """An ack that is in flight when the lock ends stops the timer: when it fails, the item never comes back.

    https://github.com/apache/kafka/pull/20286
    """

    pinned: set[str] = field(factory=set)

    def ack(self, token: str, completion: str | None) -> None:
        row = self.current(token)
        if self.expired(row):
            self.pinned.add(row.item)
        super().ack(token, completion)

    def fetchable(self, row: Row) -> bool:
        return super().fetchable(row) and row.item not in self.pinned


@define
class ExpiryDuringAckRevivesItem(Twin):
    """An ack in the last moments of a lock is accepted, and then the timer gives the item back.

    https://github.com/apache/kafka/pull/20286
    """

    def ack(self, token: str, completion: str | None) -> None:
        row = self.valid(token)
        super().ack(token, completion)
        if row.locked_until_ms - self.now_ms <= 1:
            self.rows[row.item] = evolve(row, token=None)


@define
class RescuerWritesLate(Twin):
    """The recovery reads which locks have run out, and unlocks those items a call later, whatever they are by then.

    https://github.com/riverqueue/river/issues/1302
    """

    read: tuple[Row, ...] = ()

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        for row in self.read:
            row.token = None
            self.rows.setdefault(row.item, row)
        self.read = tuple(r for r in self.in_order() if r.token is not None and self.expired(r))
        return super().fetch(lock_timeout_ms)


@define
class FreshLockTakenForOrphan(Twin):
    """A lock that was never renewed counts as one of a dead worker when another looks for work.

    https://github.com/sidekiq/sidekiq/issues/4611
    """

    beaten: set[str] = field(factory=set)

    def renew(self, token: str, extend_for_ms: int) -> None:
        super().renew(token, extend_for_ms)
        self.beaten.add(token)

    def fetchable(self, row: Row) -> bool:
        orphan = row.token is not None and row.token not in self.beaten
        return super().fetchable(row) or (row.visible_at_ms <= self.now_ms and orphan)


@define
class TwoClocks(Twin):
    """The lock is written by one machine's clock and judged by that of another, which is ahead.

    https://github.com/johanhaleby/occurrent/issues/659
    """

    def fetchable(self, row: Row) -> bool:
        ahead_ms = 900
        over = row.token is None or row.locked_until_ms <= self.now_ms + ahead_ms
        return row.visible_at_ms <= self.now_ms and over


@define
class DelayedItemIsCopied(Twin):
    """A delayed item that becomes due is copied to the ready ones; the original is deleted by a later step.

    https://github.com/Bogdanp/dramatiq/issues/431
    """

    copies: dict[str, Row] = field(factory=dict)

    def enqueue(self, item: str, delay_ms: int) -> None:
        super().enqueue(item, delay_ms)
        if delay_ms:
            self.copies[item] = evolve(self.rows[item])

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        got = super().fetch(lock_timeout_ms)
        if got is None:
            for item, copy in tuple(self.copies.items()):
                if self.fetchable(copy):
                    del self.copies[item]
                    self.rows[item] = copy
                    return super().fetch(lock_timeout_ms)
        return got


@define
class DelayedIsHandedOut(Twin):
    """A delay is not heeded."""

    def fetchable(self, row: Row) -> bool:
        return row.token is None or self.expired(row)


@define
class NewestFirst(Twin):
    """The newest item is handed out first."""

    def in_order(self) -> Sequence[Row]:
        return tuple(reversed(self.rows.values()))


@define
class AbandonedGoesToTheBack(Twin):
    """An item that is given back loses its place."""

    def give_back(self, row: Row, delay_ms: int, ignore_attempt: bool) -> None:
        super().give_back(row, delay_ms, ignore_attempt)
        self.rows[row.item] = self.rows.pop(row.item)


@define
class EnqueuedTwice(Twin):
    """An enqueue leaves two rows: when the first is settled, the second is there."""

    spare: dict[str, Row] = field(factory=dict)

    def enqueue(self, item: str, delay_ms: int) -> None:
        super().enqueue(item, delay_ms)
        self.spare[item] = evolve(self.rows[item])

    def remove(self, row: Row) -> None:
        super().remove(row)
        if row.item in self.spare:
            self.rows[row.item] = self.spare.pop(row.item)


@define
class RenewDoesNothing(Twin):
    """A renewal answers ok, and the lock ends when it would have ended."""

    def renew(self, token: str, extend_for_ms: int) -> None:
        self.valid(token)


@define
class RenewOnce(Twin):
    """Only the first renewal of a delivery moves the end of its lock."""

    renewed: set[str] = field(factory=set)

    def renew(self, token: str, extend_for_ms: int) -> None:
        row = self.valid(token)
        if token not in self.renewed:
            self.renewed.add(token)
            row.locked_until_ms = self.now_ms + extend_for_ms


@define
class RenewNeverShortens(Twin):
    """A renewal that asks for less leaves the lock as long as it was."""

    def renew(self, token: str, extend_for_ms: int) -> None:
        row = self.valid(token)
        row.locked_until_ms = max(row.locked_until_ms, self.now_ms + extend_for_ms)


@define
class RenewAddsToTheEnd(Twin):
    """A renewal adds to the lock's end, where its length counts from now."""

    def renew(self, token: str, extend_for_ms: int) -> None:
        self.valid(token).locked_until_ms += extend_for_ms


@define
class WholeSeconds(Twin):
    """The lock's end is kept in whole seconds, rounded down."""

    def lock(self, row: Row, lock_timeout_ms: int) -> None:
        super().lock(row, lock_timeout_ms)
        row.locked_until_ms = row.locked_until_ms // 1_000 * 1_000


@define
class RefetchNotCounted(Twin):
    """A delivery after an expiry is not counted, so that an item that kills its workers is never poison."""

    def lock(self, row: Row, lock_timeout_ms: int) -> None:
        again = row.token is not None
        super().lock(row, lock_timeout_ms)
        row.attempt_count -= again


@define
class CountBegunAnew(Twin):
    """An abandon sets the attempt count back to nothing."""

    def give_back(self, row: Row, delay_ms: int, ignore_attempt: bool) -> None:
        super().give_back(row, delay_ms, ignore_attempt)
        row.attempt_count = 0


@define
class IgnoredAttemptIsCounted(Twin):
    """An abandon that should take its attempt back does not."""

    def give_back(self, row: Row, delay_ms: int, ignore_attempt: bool) -> None:
        super().give_back(row, delay_ms, False)


@define
class RenewalIsCounted(Twin):
    """A renewal counts as an attempt."""

    def renew(self, token: str, extend_for_ms: int) -> None:
        super().renew(token, extend_for_ms)
        self.current(token).attempt_count += 1


_GH = "https://github.com/"

MUTANTS = (
    caught_by("pop-is-delete", PopIsDelete, _GH + "coleifer/huey/issues/844", "C1"),
    caught_by("no-expiry-at-all", NoExpiry, _GH + "litements/litequeue/issues/1", "C1"),
    caught_by(
        "recovery-keyed-on-worker-row",
        RecoveryNeedsWorkersRow,
        _GH + "procrastinate-org/procrastinate/issues/1518",
        "C1",
    ),
    caught_by(
        "expiry-goes-straight-to-dead",
        ExpiryGoesStraightToDead,
        _GH + "contribsys/faktory/issues/409",
        "C1",
    ),
    caught_by(
        "lock-ends-during-inflight-ack: pinned",
        ExpiryDuringAckPinsItem,
        _GH + "apache/kafka/pull/20286",
        "C1",
    ),
    caught_by(
        "lock-ends-during-inflight-ack: revived",
        ExpiryDuringAckRevivesItem,
        _GH + "apache/kafka/pull/20286",
        "C1 C4",
    ),
    caught_by(
        "rescuer-overwrites-completion",
        RescuerWritesLate,
        _GH + "riverqueue/river/issues/1302",
        "C1",
    ),
    caught_by(
        "live-item-recovered-at-boot",
        FreshLockTakenForOrphan,
        _GH + "sidekiq/sidekiq/issues/4611",
        "S6",
    ),
    caught_by(
        "lock-time-judged-by-several-clocks",
        TwoClocks,
        _GH + "johanhaleby/occurrent/issues/659",
        "S6",
    ),
    caught_by("promote-copy-then-ack", DelayedItemIsCopied, _GH + "Bogdanp/dramatiq/issues/431", "C1"),
    caught_by("delayed-is-handed-out", DelayedIsHandedOut, None, "C1"),
    caught_by("newest-first", NewestFirst, None, "C1"),
    caught_by("abandoned-goes-to-the-back", AbandonedGoesToTheBack, None, "C1"),
    caught_by("enqueued-twice", EnqueuedTwice, None, "C1"),
    caught_by("renew-does-nothing", RenewDoesNothing, None, "C1 C4"),
    caught_by("renew-once", RenewOnce, None, "C1 C4"),
    caught_by("renew-never-shortens", RenewNeverShortens, None, "C1 C4"),
    caught_by("renew-adds-to-the-end", RenewAddsToTheEnd, None, "C1 C4"),
    caught_by("whole-seconds", WholeSeconds, None, "C1 C4"),
    caught_by("refetch-not-counted", RefetchNotCounted, None, "C2"),
    caught_by("count-begun-anew", CountBegunAnew, None, "C2"),
    caught_by("ignored-attempt-is-counted", IgnoredAttemptIsCounted, None, "C2"),
    caught_by("renewal-is-counted", RenewalIsCounted, None, "C2"),
)
