"""Faulty stores that take a token for what it is not."""

from __future__ import annotations

from attrs import define, field
from mutant import caught_by
from twin_store import Row, Twin

from peeklock.harness.adapter.interface import Delivery, PermanentError


@define
class SupersededTokenAccepted(Twin):
    """Any token that the row ever had will do: a late ack settles the delivery of another worker.

    https://github.com/nats-io/nats-server/issues/4786
    """

    ever: dict[str, str] = field(factory=dict)

    def new_token(self, row: Row) -> str:
        token = super().new_token(row)
        self.ever[token] = row.item
        return token

    def current(self, token: str) -> Row:
        row = self.rows.get(self.ever.get(token, ""))
        return super().current(token) if row is None or row.token is None else row


@define
class StaleAbandonReleasesNewLock(SupersededTokenAccepted):
    """An abandon clears the lock of whoever has the item now.

    https://github.com/OptimalBits/bull/pull/539
    """

    def valid(self, token: str) -> Row:
        row = Twin.current(self, token)
        if self.expired(row):
            raise PermanentError("expired")
        return row


@define
class StaleRenewProlongsNewLock(SupersededTokenAccepted):
    """A renewal prolongs the lock of whoever has the item now."""

    def renew(self, token: str, extend_for_ms: int) -> None:
        self.current(token).locked_until_ms = self.now_ms + extend_for_ms

    def valid(self, token: str) -> Row:
        row = Twin.current(self, token)
        if self.expired(row):
            raise PermanentError("expired")
        return row

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        self.give_back(Twin.current(self, token), delay_ms, ignore_attempt)


@define
class AckAfterExpiryAccepted(Twin):
    """An ack is accepted although its lock has run out.

    https://github.com/microsoft/duroxide-pg/blob/main/CHANGELOG.md
    """

    def ack(self, token: str, completion: str | None) -> None:
        row = self.current(token)
        self.remove(row)
        if completion is not None:
            self.complete(row.item, completion)


@define
class RenewAfterExpiryAccepted(Twin):
    """A renewal brings a lock back that has run out."""

    def renew(self, token: str, extend_for_ms: int) -> None:
        self.current(token).locked_until_ms = self.now_ms + extend_for_ms


@define
class ValidAtItsVeryEnd(Twin):
    """At the very millisecond of its end a lock is still good for ack and renew, and for fetch it is over."""

    def valid(self, token: str) -> Row:
        row = self.current(token)
        if row.locked_until_ms < self.now_ms:
            raise PermanentError("expired")
        return row


@define
class LockedAtItsVeryEnd(Twin):
    """At the very millisecond of its end a lock still keeps the item from being fetched."""

    def fetchable(self, row: Row) -> bool:
        return row.visible_at_ms <= self.now_ms and (row.token is None or row.locked_until_ms < self.now_ms)


@define
class LiveLockRefused(Twin):
    """When a worker's control stream drops, the renewals of its good locks are refused.

    https://github.com/hatchet-dev/hatchet/pull/4784
    """

    dropped: set[str] = field(factory=set)

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        got = super().fetch(lock_timeout_ms)
        if got is not None and self.tokens % 3 == 0:
            self.dropped.add(got.token)
        return got

    def renew(self, token: str, extend_for_ms: int) -> None:
        if token in self.dropped:
            raise PermanentError("no such session")
        super().renew(token, extend_for_ms)


@define
class AbandonOfExpiredRefused(Twin):
    """An abandon is refused once the lock has run out, although nobody has fetched the item since."""

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        self.give_back(self.valid(token), delay_ms, ignore_attempt)


@define
class UnknownAbandonSilentlyOk(Twin):
    """An abandon of a token that is nobody's answers ok."""

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        if any(row.token == token for row in self.rows.values()):
            super().abandon(token, delay_ms, ignore_attempt)


@define
class TokenFromAttemptCount(Twin):
    """The token is the item's name with its attempt count; given back uncounted, the next delivery has it again."""

    def new_token(self, row: Row) -> str:
        return f"{row.item}#{row.attempt_count + 1}"


@define
class TagOfChannel(Twin):
    """Tokens are numbered by channel, and a new channel begins at one: an old ack settles another item.

    https://github.com/EasyNetQ/EasyNetQ/issues/1329
    """

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        if any(row.token and self.expired(row) for row in self.rows.values()):
            self.tokens = 0
        return super().fetch(lock_timeout_ms)


@define
class TokenLivesOnAfterAbandon(Twin):
    """A renewal with the token that was given back locks the row anew."""

    given_back: dict[str, str] = field(factory=dict)

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        row = self.current(token)
        self.give_back(row, delay_ms, ignore_attempt)
        self.given_back[token] = row.item

    def renew(self, token: str, extend_for_ms: int) -> None:
        row = self.rows.get(self.given_back.get(token, ""))
        if row is not None and row.token is None:
            row.token = token
        super().renew(token, extend_for_ms)


_NATS = "https://github.com/nats-io/nats-server/issues/4786"
_BULL = "https://github.com/OptimalBits/bull/pull/539"
_PG = "https://github.com/microsoft/duroxide-pg/blob/main/CHANGELOG.md"
_HATCHET = "https://github.com/hatchet-dev/hatchet/pull/4784"
_EASY = "https://github.com/EasyNetQ/EasyNetQ/issues/1329"

MUTANTS = (
    caught_by("late-ack-settles-someone-elses-delivery", SupersededTokenAccepted, _NATS, "S5"),
    caught_by("stale-abandon-releases-new-lock", StaleAbandonReleasesNewLock, _BULL, "S5"),
    caught_by("stale-renew-prolongs-new-lock", StaleRenewProlongsNewLock, None, "S5"),
    caught_by("ack-after-expiry-accepted", AckAfterExpiryAccepted, _PG, "S5"),
    caught_by("renew-after-expiry-accepted", RenewAfterExpiryAccepted, None, "S5"),
    caught_by("valid-at-its-very-end", ValidAtItsVeryEnd, None, "S5"),
    caught_by("locked-at-its-very-end", LockedAtItsVeryEnd, None, "C1"),
    caught_by("live-worker-refused-heartbeat", LiveLockRefused, _HATCHET, "C4"),
    caught_by("abandon-of-expired-refused", AbandonOfExpiredRefused, None, "C4"),
    caught_by("unknown-abandon-silently-ok", UnknownAbandonSilentlyOk, None, "S5"),
    caught_by("token-from-attempt-count", TokenFromAttemptCount, None, "S4"),
    caught_by("ack-on-a-new-channel", TagOfChannel, _EASY, "S4"),
    caught_by("token-lives-on-after-abandon", TokenLivesOnAfterAbandon, None, "S5"),
)
