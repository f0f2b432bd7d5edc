"""What a worker does about each kind of error, as data.

`RETRY` is the protocol; `BEFORE` is what it replaced; `HARDENED` mends what RETRY leaves open.
"""

from typing import Any, Literal

from attrs import Attribute, evolve, field, frozen
from attrs.validators import ge, in_, instance_of


def _number(default: int, least: int = 0) -> Any:
    return field(default=default, validator=[instance_of(int), ge(least)])


def _choice(*allowed: str) -> Any:
    return field(default=allowed[0], validator=in_(allowed))


def _waits(policy: object, attribute: "Attribute[Any]", value: object) -> None:
    if not isinstance(value, tuple) or not all(isinstance(wait, int) and wait >= 0 for wait in value):
        raise ValueError(f"{attribute.name} must be a tuple of integers of at least 0, not {value!r}")


@frozen
class Policy:
    """Numbers (times in milliseconds) and choices of a worker. ValueError or TypeError when malformed."""

    max_attempts: int = _number(10, least=1)
    """A delivery with a higher attempt count is poison."""

    lock_timeout_ms: int = _number(30_000, least=1)
    """How long a fetch or a renewal holds the lock."""

    renewal_buffer_ms: int = _number(5_000)
    """How long before the lock's end it is renewed, when lock_timeout_ms is at least 15 s."""

    renewal_retry_ms: int = _number(1_000, least=1)
    """The pause between tries of a renewal, where it is tried again."""

    cancellation_grace_ms: int = _number(10_000)
    """What a handler gets to stop by itself."""

    shutdown_grace_ms: int = _number(1_000)
    """What work in hand gets at shutdown, all of it together."""

    ack_waits_ms: tuple[int, ...] = field(default=(100, 200, 400, 800), validator=_waits)
    """The waits before the second and later attempts of an ack: one less than there are attempts."""

    abandon_delay_ms: int = _number(100)
    """How long an abandoned item stays invisible, unless its handler is missing."""

    missing_handler_backoff_ms: int = _number(1_000)
    """The same at the first attempt of an item without a handler; doubled with each further attempt."""

    missing_handler_backoff_cap_ms: int = _number(60_000)
    """Where that doubling ends."""

    abandon_ignores_attempt: bool = field(default=False, validator=instance_of(bool))
    """Whether an abandoned delivery is taken off the attempt count."""

    after_first_permanent: Literal["abandon", "uncertain"] = _choice("abandon", "uncertain")
    """The first answer to an ack is permanent: a failure, or an uncertain outcome."""

    after_later_permanent: Literal["uncertain", "abandon"] = _choice("uncertain", "abandon")
    """The same after a retryable error, when an earlier attempt may have committed."""

    after_uncertain: Literal["leave", "abandon"] = _choice("leave", "abandon")
    """Leave an uncertain item to its lock, or abandon it."""

    after_exhaustion: Literal["abandon", "abandon-decides", "leave"] = _choice(
        "abandon", "abandon-decides", "leave"
    )
    """The last attempt failed retryably: count a failure and abandon (or leave the item to its lock),
    or abandon first, and count a failure if that is accepted, else an uncertain outcome."""

    after_retryable_renewal: Literal["cancel", "abandon", "retry"] = _choice("cancel", "abandon", "retry")
    """Stop the handler and send a cancellation ack, or stop it and abandon, or renew again until the
    lock's own end as this worker knows it."""

    after_permanent_renewal: Literal["cancel", "abandon"] = _choice("cancel", "abandon")
    """Stop the handler and send a cancellation ack, or stop it and abandon."""

    after_cancellation_ack: Literal["abandon", "leave"] = _choice("abandon", "leave")
    """What follows a cancellation ack that failed."""

    poison_ack: Literal["once", "retried"] = _choice("once", "retried")
    """One attempt, counted whatever the answer, or an ack sequence, counted when confirmed."""

    @property
    def renewal_interval_ms(self) -> int:
        """From one renewal to the next, in milliseconds.

        With a lock of 1 s or less this is no earlier than the lock's end: it cannot be kept.
        """
        if self.lock_timeout_ms >= 15_000:
            return max(1_000, self.lock_timeout_ms - self.renewal_buffer_ms)
        half_in_whole_seconds = -(-self.lock_timeout_ms // 2_000)
        return half_in_whole_seconds * 1_000  # at least one, since the lock lasts at least 1 ms

    def missing_handler_delay_ms(self, attempt_count: int) -> int:
        """How long an item without a handler stays invisible after this attempt, in milliseconds."""
        doublings = min(attempt_count - 1, 62)  # any sensible limit is reached by then
        return min(self.missing_handler_backoff_ms << doublings, self.missing_handler_backoff_cap_ms)


RETRY = Policy()
"""Retryable ack errors are retried with the same token and completion. The default."""

BEFORE = evolve(RETRY, ack_waits_ms=())
"""One ack attempt; every error of it is followed by abandon."""

HARDENED = evolve(
    RETRY,
    after_exhaustion="abandon-decides",
    after_retryable_renewal="retry",
    after_permanent_renewal="abandon",
    poison_ack="retried",
)
"""RETRY, without verdicts that an error does not bear out."""
