"""A delivery's lock, as the worker that holds it knows it, and its renewal."""

import enum

from attrs import define

from peeklock.impl.context import Context
from peeklock.impl.effects import Ok, Renew, Steps


class Loss(enum.Enum):
    """What follows when the lock must be taken for lost."""

    CANCELLATION_ACK = "cancellation ack"
    ABANDON = "abandon"
    NOTHING = "nothing"
    """It has run out: the store gives the item back by itself."""


@define
class Lease:
    """Renews one lock when it is due, until an error ends that.

    All times are the worker's own and count from before the call that took the lock, so the lock
    cannot end earlier than the worker thinks, whatever the store's clock says.
    """

    _context: Context
    _token: str
    _held_until_ms: int
    _due_ms: int | None
    """When to renew next; None when an error has ended the renewing."""
    _failing: bool = False
    """The last renewal failed, and is to be tried again."""

    @classmethod
    def taken(cls, context: Context, token: str, asked_ms: int) -> "Lease":
        """The lease of a delivery whose fetch was asked for at `asked_ms`."""
        policy = context.policy
        return cls(context, token, asked_ms + policy.lock_timeout_ms, asked_ms + policy.renewal_interval_ms)

    def before_due(self, until_ms: int) -> int:
        """`until_ms`, or the time of the next renewal if that comes first."""
        due_ms = self._next_ms()
        return until_ms if due_ms is None else min(until_ms, due_ms)

    def renew_if_due(self) -> Steps[Loss | None]:
        """Renew the lock if it is time to; return what an error means, None if nothing was lost."""
        context, policy = self._context, self._context.policy
        asked_ms = context.now_ms()
        due_ms = self._next_ms()
        if due_ms is None or asked_ms < due_ms:
            return None
        if self._failing and asked_ms >= self._held_until_ms:
            self._due_ms = None
            return Loss.NOTHING
        answer = yield from context.call(Renew(self._token, policy.lock_timeout_ms))
        if isinstance(answer, Ok):
            self._failing = False
            self._held_until_ms = asked_ms + policy.lock_timeout_ms
            self._due_ms = asked_ms + policy.renewal_interval_ms
            return None
        if answer.error.retryable and policy.after_retryable_renewal == "retry":
            self._failing = True
            self._due_ms = min(context.now_ms() + policy.renewal_retry_ms, self._held_until_ms)
            return None
        self._due_ms = None
        retryable = answer.error.retryable
        choice = policy.after_retryable_renewal if retryable else policy.after_permanent_renewal
        return Loss.ABANDON if choice == "abandon" else Loss.CANCELLATION_ACK

    def _next_ms(self) -> int | None:
        # Renewing stops as soon as shutdown is requested: the lock outlasts the grace or it does not.
        return self._due_ms if self._context.drop_at_ms is None else None
