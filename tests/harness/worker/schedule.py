"""Duties of time: what a worker must have done by when, and what it must not do before.

The specification has steps and no clock of the worker's; these are the rules about when its steps are due. Time
that passes in a slow call is the store's doing: a duty that falls due there is due when the call is over.
"""

from __future__ import annotations

from attrs import define, field, frozen

from peeklock.spec.law.policy import AfterRetryableRenewal, PoisonAck, Policy
from peeklock.spec.law.state import Phase, Result


@frozen
class Duty:
    """One rule about when a step is due."""

    name: str
    sentence: str
    source: str
    """The fields of the policy, or the options of the check, that set its time."""


BEGINS = Duty("begins at once", "a delivery is begun with at once: its handler is started or missed", "")
RENEWS = Duty(
    "renews in time",
    "while the handler runs and in the ack sequence the lock is renewed every lock_timeout - renewal_buffer where "
    "lock_timeout is 15 s or more, else every half of it rounded up to whole seconds, never under 1 s",
    "lock_timeout_ms, renewal_buffer_ms",
)
RENEWS_AGAIN = Duty(
    "renews again",
    "where a retryable renewal error is no verdict, the renewal is tried again while the lock lasts",
    "renewal_retry_ms of the check",
)
LOCK_OVER = Duty(
    "stops at the lock's end",
    "where renewals fail until the lock is over by the worker's own time, the handler is told to stop then, and not "
    "before",
    "lock_timeout_ms",
)
LOCK_LENGTH = Duty(
    "asks for the lock timeout", "a fetch and a renewal ask for lock_timeout", "lock_timeout_ms"
)
SIGNALS = Duty(
    "signals cancellation at once", "a renewal error that stops the handler tells it so at once", ""
)
GRACE = Duty(
    "gives the cancellation grace",
    "a handler that was told to stop is aborted when the cancellation grace is over, and not before",
    "cancellation_grace_ms",
)
CANCELS = Duty(
    "sends the cancellation ack at once", "the cancellation ack follows at once when the handler is over", ""
)
ACKS = Duty("acks at once", "the first ack of a completion is sent at once", "")
WAITS = Duty(
    "waits between attempts",
    "after a retryable ack error the same ack is sent again when its wait is over, and not before; the calls' own "
    "time is not counted",
    "ack_waits_ms",
)
GIVES_BACK = Duty("gives back at once", "an abandon that is due is sent at once", "")
DELAYS = Duty(
    "names the delay",
    "an abandon names abandon_delay; where the handler is missing, the backoff that doubles with each attempt up to "
    "its cap",
    "abandon_delay_ms, missing_handler_backoff_ms, missing_handler_backoff_cap_ms",
)
COUNTS = Duty("counts at once", "a verdict is counted before the worker's next call", "")
FETCHES = Duty("fetches again", "a worker with nothing in hand asks for work again", "poll_ms of the check")
DRAINS = Duty(
    "is done in the grace",
    "after a shutdown the worker fetches and renews nothing more, and returns when it has nothing in hand, at the "
    "latest when the grace is over",
    "shutdown_grace_ms",
)
DROPS = Duty(
    "uses the grace", "work in hand is not dropped before the shutdown grace is over", "shutdown_grace_ms"
)
STAYS = Duty("stays", "a worker that nobody asked to shut down neither returns nor raises", "")
RESTS = Duty("rests", "a worker makes only so many calls before it lets time pass", "most_calls of the check")
SAME = Duty(
    "carries the handler's own result",
    "a completion says what the handler returned or raised, in every attempt the same",
    "",
)
KNOWS = Duty("knows its handlers", "a handler is called missing when none is registered, and only then", "")
COMPLETES = Duty(
    "completes at last",
    "when nothing goes wrong any more, every item that is not cancelled is at last completed (L1)",
    "patience_ms of the check",
)
DUTIES = (
    BEGINS,
    RENEWS,
    RENEWS_AGAIN,
    LOCK_OVER,
    LOCK_LENGTH,
    SIGNALS,
    GRACE,
    CANCELS,
    ACKS,
    WAITS,
    GIVES_BACK,
    DELAYS,
    COUNTS,
    FETCHES,
    DRAINS,
    DROPS,
    STAYS,
    RESTS,
    SAME,
    KNOWS,
    COMPLETES,
)


@frozen
class Tolerances:
    """How exact a worker has to be, in milliseconds."""

    late_ms: int = 100
    """How much later than due a step may come."""
    early_ms: int = 0
    """How much earlier than its time a step may come that has one."""
    poll_ms: int = 10_000
    """The longest pause of a worker with nothing in hand."""
    renewal_retry_ms: int = 1_000
    """The longest pause between tries of a renewal, where it is tried again."""
    most_calls: int = 500
    """Calls without letting time pass, beyond which a worker is said to be busy for nothing."""
    patience_ms: int = 600_000
    """How long nothing may happen to an item before it is said never to be completed."""


@frozen
class Due:
    """A duty and the time until which it may be done."""

    duty: Duty
    at_ms: int


def renewal_interval_ms(policy: Policy) -> int:
    """From one renewal to the next, in milliseconds."""
    if policy.lock_timeout_ms >= LONG_LOCK_MS:
        return max(LEAST_INTERVAL_MS, policy.lock_timeout_ms - policy.renewal_buffer_ms)
    return max(LEAST_INTERVAL_MS, -(-policy.lock_timeout_ms // 2_000) * 1_000)


LONG_LOCK_MS = 15_000
LEAST_INTERVAL_MS = 1_000


def backoff_ms(policy: Policy, attempt_count: int) -> int:
    """How long an item without a handler stays away after this attempt, in milliseconds."""
    doubled = policy.missing_handler_backoff_ms << min(attempt_count - 1, 62)
    return min(doubled, policy.missing_handler_backoff_cap_ms)


@define
class Schedule:
    """When each step of one worker is due. What has happened is written into it by the stage."""

    policy: Policy
    tolerances: Tolerances
    handlers: bool
    since_ms: int = 0
    """When the worker came to its present phase, or was last answered in it."""
    control_ms: int = 0
    """When the last slow call was over."""
    asked_ms: int = 0
    """When the fetch or the renewal that took effect last was asked for."""
    held_ms: int = 0
    """When it took effect."""
    renewal_due_ms: int = 0
    renewal_failing: bool = False
    signalled_ms: int | None = None
    """When the handler was told to stop."""
    shutdown_ms: int | None = None
    _seen: set[str] = field(factory=set)

    def dues(self, phase: Phase, attempts: int, result: Result, renewing: bool) -> list[Due]:
        """Everything that is due in this phase."""
        found = list(self._in_phase(phase, attempts))
        once = result is Result.POISON and self.policy.poison_ack is PoisonAck.ONCE
        handling = phase is Phase.HANDLING or (phase is Phase.FETCHED and not self.handlers)
        if renewing and (handling or (phase is Phase.ACKING and not once)):
            found += self._renewal(handling)
        if self.shutdown_ms is not None:
            found.append(Due(DRAINS, self.shutdown_ms + self.policy.shutdown_grace_ms))
        late_ms = self.tolerances.late_ms
        return [Due(d.duty, max(d.at_ms, self.control_ms) + late_ms) for d in found]

    def _in_phase(self, phase: Phase, attempts: int) -> list[Due]:
        match phase:
            case Phase.IDLE if self.shutdown_ms is None:
                return [Due(FETCHES, self.since_ms + self.tolerances.poll_ms)]
            case Phase.FETCHED if self.handlers:
                return [Due(BEGINS, self.since_ms)]
            case Phase.STOPPING if not self.handlers:
                return [Due(GRACE, self.since_ms + self.policy.cancellation_grace_ms)]
            case Phase.STOPPING if self.signalled_ms is None:
                return [Due(SIGNALS, self.since_ms)]
            case Phase.STOPPING:
                assert self.signalled_ms is not None
                return [Due(GRACE, self.signalled_ms + self.policy.cancellation_grace_ms)]
            case Phase.CANCELLING:
                return [Due(CANCELS, self.since_ms)]
            case Phase.ABANDONING | Phase.DECIDING:
                return [Due(GIVES_BACK, self.since_ms)]
            case Phase.ACKING if attempts == 0:
                return [Due(ACKS, self.since_ms)]
            case Phase.ACKING:
                return [Due(WAITS, self.since_ms + self.policy.ack_waits_ms[attempts - 1])]
            case _:
                return []

    def _renewal(self, handling: bool) -> list[Due]:
        if self.renewal_failing:
            over_ms = self.held_ms + self.policy.lock_timeout_ms
            if self.renewal_due_ms >= over_ms:
                return [Due(LOCK_OVER, over_ms)] if handling else []
            return [Due(RENEWS_AGAIN, self.renewal_due_ms)]
        return [Due(RENEWS, self.renewal_due_ms)]

    def taken(self, asked_ms: int, now_ms: int) -> None:
        """The lock begins anew, by a fetch or a renewal."""
        self.asked_ms, self.held_ms = asked_ms, now_ms
        self.renewal_due_ms = now_ms + renewal_interval_ms(self.policy)
        self.renewal_failing = False

    def renewal_failed(self, now_ms: int) -> None:
        """A renewal was answered with an error that is to be tried again."""
        if self.policy.after_retryable_renewal is AfterRetryableRenewal.RETRY:
            self.renewal_failing = True
            self.renewal_due_ms = now_ms + self.tolerances.renewal_retry_ms
