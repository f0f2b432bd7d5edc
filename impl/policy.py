"""What a worker does about each kind of error, as data.

`RETRY` is the protocol; `BEFORE` is what it replaced; `HARDENED` mends what RETRY leaves open.
"""

from typing import Literal

from attrs import evolve, field, frozen
from attrs.validators import deep_iterable, ge, in_, instance_of

_DURATION = [instance_of(int), ge(0)]


@frozen
class Policy:
    """Numbers (times in milliseconds) and choices of a worker. ValueError or TypeError when malformed."""

    max_attempts: int = field(default=10, validator=[instance_of(int), ge(1)])
    """A delivery with a higher attempt count is poison."""

    lock_timeout_ms: int = field(default=30_000, validator=[instance_of(int), ge(1)])
    """How long a fetch or a renewal holds the lock."""

    renewal_buffer_ms: int = field(default=5_000, validator=_DURATION)
    """How long before the lock's end it is renewed, when lock_timeout_ms is at least 15 s."""

    cancellation_grace_ms: int = field(default=10_000, validator=_DURATION)
    """What a handler gets to stop by itself."""

    shutdown_grace_ms: int = field(default=1_000, validator=_DURATION)
    """What work in hand gets at shutdown, all of it together."""

    ack_waits_ms: tuple[int, ...] = field(
        default=(100, 200, 400, 800),
        validator=deep_iterable(instance_of(int), instance_of(tuple)),
    )
    """The waits before the second and later attempts of an ack: one less than there are attempts."""

    abandon_delay_ms: int = field(default=100, validator=_DURATION)
    """How long an abandoned item stays invisible, unless its handler is missing."""

    missing_handler_base_ms: int = field(default=1_000, validator=_DURATION)
    """The same for the first delivery without a handler; doubled with each further attempt."""

    missing_handler_most_ms: int = field(default=60_000, validator=_DURATION)
    """Where that doubling ends."""

    permanent_after_retryable: Literal["uncertain", "abandon"] = field(
        default="uncertain", validator=in_(("uncertain", "abandon"))
    )
    """An ack is refused for good after it failed retryably: it may have committed, or be lost."""

    after_exhaustion: Literal["infrastructure error", "ask abandon"] = field(
        default="infrastructure error", validator=in_(("infrastructure error", "ask abandon"))
    )
    """All attempts failed retryably: count a failure and abandon, or let abandon's answer decide."""

    retryable_renewal_error: Literal["cancel", "try again"] = field(
        default="cancel", validator=in_(("cancel", "try again"))
    )
    """Cancel the handler, or try again until the lock's own end as this worker knows it."""

    permanent_renewal_error: Literal["cancel", "abandon"] = field(
        default="cancel", validator=in_(("cancel", "abandon"))
    )
    """Stop the handler, then send a cancellation ack, or abandon."""

    renewal_retry_ms: int = field(default=1_000, validator=[instance_of(int), ge(1)])
    """The pause between tries of a renewal, where it is tried again."""

    poison_ack: Literal["once", "like a completion"] = field(
        default="once", validator=in_(("once", "like a completion"))
    )
    """One attempt whose answer is ignored, or a whole ack sequence that must be confirmed."""

    @ack_waits_ms.validator
    def _no_negative_wait(self, attribute: object, value: tuple[int, ...]) -> None:
        if any(wait < 0 for wait in value):
            raise ValueError(f"ack_waits_ms must not be negative: {value}")

    @property
    def renewal_interval_ms(self) -> int:
        """From one renewal to the next, in milliseconds.

        With a lock of 1 s this is no earlier than the lock's end: such a lock cannot be kept.
        """
        if self.lock_timeout_ms >= 15_000:
            return max(1_000, self.lock_timeout_ms - self.renewal_buffer_ms)
        whole_seconds = -(-self.lock_timeout_ms // 2_000)
        return max(1_000, whole_seconds * 1_000)

    def missing_handler_delay_ms(self, attempt_count: int) -> int:
        """How long an item without a handler stays invisible after this attempt, in milliseconds."""
        doublings = min(max(0, attempt_count - 1), 62)  # enough to reach any sensible limit
        return min(self.missing_handler_base_ms << doublings, self.missing_handler_most_ms)


RETRY = Policy()
"""Retryable ack errors are retried with the same token and completion. The default."""

BEFORE = evolve(RETRY, ack_waits_ms=())
"""One ack attempt; every error of it is followed by abandon."""

HARDENED = evolve(
    RETRY,
    after_exhaustion="ask abandon",
    retryable_renewal_error="try again",
    permanent_renewal_error="abandon",
    poison_ack="like a completion",
)
"""RETRY, without verdicts that an error does not bear out."""
