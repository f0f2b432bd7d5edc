"""Faulty stores whose ack, abandon or cancel does too much, too little, or not what it answers."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field
from mutant import caught_by
from twin_store import Row, Twin

from peeklock.harness.adapter.interface import Delivery, PermanentError


@define
class CompletionThoughRefused(Twin):
    """The completion is sent before the ack is decided, so that a refused ack enqueues it too.

    https://github.com/Particular/NServiceBus.AzureServiceBus/issues/532
    """

    item_of: dict[str, str] = field(factory=dict)

    def new_token(self, row: Row) -> str:
        token = super().new_token(row)
        self.item_of[token] = row.item
        return token

    def ack(self, token: str, completion: str | None) -> None:
        if completion is not None:
            self.complete(self.item_of[token], completion)
        super().ack(token, None)


@define
class StaleSettleSilentlyOk(Twin):
    """An ack of a lost delivery answers ok, and removes nothing.

    https://github.com/gkinsman/AlmostServiceBus/pull/20
    """

    def ack(self, token: str, completion: str | None) -> None:
        try:
            super().ack(token, completion)
        except PermanentError:
            return


@define
class RepeatedAckSilentlyOk(Twin):
    """An ack that is repeated after it committed answers ok."""

    acked: set[str] = field(factory=set)

    def ack(self, token: str, completion: str | None) -> None:
        if token not in self.acked:
            super().ack(token, completion)
            self.acked.add(token)


@define
class RepeatedAckEnqueuesAgain(Twin):
    """An ack that is repeated after it committed answers an error, and enqueues its completion once more."""

    acked: dict[str, str] = field(factory=dict)

    def ack(self, token: str, completion: str | None) -> None:
        if completion is not None and token in self.acked:
            self.complete(self.acked[token], completion)
        item = self.current(token).item
        super().ack(token, completion)
        self.acked[token] = item


@define
class FailureAfterSuccess(Twin):
    """An acked item stays in the set of those in flight, and the cleanup writes a failure for it.

    https://github.com/rq/rq/issues/2424
    """

    in_flight: dict[str, int] = field(factory=dict)

    def ack(self, token: str, completion: str | None) -> None:
        row = self.valid(token)
        self.in_flight[row.item] = row.locked_until_ms
        super().ack(token, completion)

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        for item, until_ms in tuple(self.in_flight.items()):
            if until_ms <= self.now_ms:
                del self.in_flight[item]
                self.complete(item, "abandoned")
        return super().fetch(lock_timeout_ms)


@define
class CompletionLost(Twin):
    """The ack removes the row, and its completion is never enqueued."""

    def complete(self, item: str, completion: str) -> None:
        pass


@define
class CompletionLater(Twin):
    """The completion is enqueued by the next call, and not with the row's removal."""

    later: list[tuple[str, str]] = field(factory=list)

    def complete(self, item: str, completion: str) -> None:
        self.later.append((item, completion))

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        self.enqueued += self.later
        self.later = []
        return super().fetch(lock_timeout_ms)


@define
class CompletionOfAnother(Twin):
    """Where several items are in the queue, the completion is filed under the oldest of them."""

    def ack(self, token: str, completion: str | None) -> None:
        row = self.valid(token)
        oldest = next(iter(self.rows))
        self.remove(row)
        if completion is not None:
            self.complete(oldest, completion)


@define
class AckOfNothingCompletes(Twin):
    """An ack without a completion enqueues an empty one."""

    def ack(self, token: str, completion: str | None) -> None:
        super().ack(token, completion or "")


@define
class AckLeavesRow(Twin):
    """The ack enqueues its completion, and only unlocks the row."""

    def ack(self, token: str, completion: str | None) -> None:
        row = self.valid(token)
        row.token = None
        if completion is not None:
            self.complete(row.item, completion)


@define
class AbandonRevivesAcked(Twin):
    """An abandon after the ack puts the item back."""

    acked: dict[str, Row] = field(factory=dict)

    def ack(self, token: str, completion: str | None) -> None:
        row = self.valid(token)
        super().ack(token, completion)
        self.acked[token] = row

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        row = self.acked.pop(token, None)
        if row is not None:
            self.rows[row.item] = row
        super().abandon(token, delay_ms, ignore_attempt)


@define
class AbandonKeepsLock(Twin):
    """An abandon answers ok, and the item stays locked until its time is up."""

    def give_back(self, row: Row, delay_ms: int, ignore_attempt: bool) -> None:
        token = row.token
        super().give_back(row, delay_ms, ignore_attempt)
        row.token = token


@define
class AbandonIgnoresDelay(Twin):
    """An item that is given back is visible at once."""

    def give_back(self, row: Row, delay_ms: int, ignore_attempt: bool) -> None:
        super().give_back(row, 0, ignore_attempt)


@define
class AbandonDeletes(Twin):
    """An item that is given back is gone."""

    def give_back(self, row: Row, delay_ms: int, ignore_attempt: bool) -> None:
        self.remove(row)


@define
class CancelSparesLocked(Twin):
    """A cancellation of a locked item says that it removed it, and leaves it to its worker."""

    def cancel(self, items: Sequence[str]) -> Sequence[str]:
        found = [i for i in dict.fromkeys(items) if i in self.rows]
        for item in found:
            if self.rows[item].token is None:
                self.remove(self.rows[item])
        return found


@define
class CancelByPrefix(Twin):
    """A cancellation also takes the items whose names begin alike."""

    def cancel(self, items: Sequence[str]) -> Sequence[str]:
        found = super().cancel(items)
        for name in [n for n in self.rows if any(n.startswith(i) for i in items)]:
            self.remove(self.rows[name])
        return found


@define
class CancelCompletes(Twin):
    """A cancellation enqueues a completion that says so."""

    def cancel(self, items: Sequence[str]) -> Sequence[str]:
        found = super().cancel(items)
        for item in found:
            self.complete(item, "cancelled")
        return found


_PARTICULAR = "https://github.com/Particular/NServiceBus.AzureServiceBus/issues/532"
_ALMOST = "https://github.com/gkinsman/AlmostServiceBus/pull/20"
_RQ = "https://github.com/rq/rq/issues/2424"

MUTANTS = (
    caught_by("completion-sent-though-ack-refused", CompletionThoughRefused, _PARTICULAR, "S3"),
    caught_by("stale-settle-silently-ok", StaleSettleSilentlyOk, _ALMOST, "C4"),
    caught_by("repeated-ack-silently-ok", RepeatedAckSilentlyOk, None, "S5"),
    caught_by("repeated-ack-enqueues-again", RepeatedAckEnqueuesAgain, None, "S3"),
    caught_by("success-later-marked-abandoned", FailureAfterSuccess, _RQ, "S2 S3"),
    caught_by("completion-lost", CompletionLost, None, "S3"),
    caught_by("completion-later", CompletionLater, None, "S3"),
    caught_by("completion-of-another", CompletionOfAnother, None, "S3"),
    caught_by("ack-of-nothing-completes", AckOfNothingCompletes, None, "S3"),
    caught_by("ack-leaves-row", AckLeavesRow, None, "S4"),
    caught_by("abandon-revives-acked", AbandonRevivesAcked, None, "S4"),
    caught_by("abandon-keeps-lock", AbandonKeepsLock, None, "C1 C4"),
    caught_by("abandon-ignores-delay", AbandonIgnoresDelay, None, "C1"),
    caught_by("abandon-deletes", AbandonDeletes, None, "C1 C4"),
    caught_by("cancel-spares-locked", CancelSparesLocked, None, "C1 C4"),
    caught_by("cancel-by-prefix", CancelByPrefix, None, "C1"),
    caught_by("cancel-completes", CancelCompletes, None, "S3"),
)
