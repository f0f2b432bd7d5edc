"""The worker: fetch an item, run its handler under the lock, settle."""

import logging
from collections.abc import Mapping

from peeklock.impl.clock import Clock
from peeklock.impl.context import Context, GraceOver, Verdict
from peeklock.impl.driver import Driver, Handler
from peeklock.impl.effects import Fetch, Refused, Steps
from peeklock.impl.events import Dropped, Observer
from peeklock.impl.handling import handle
from peeklock.impl.lease import Lease, Loss
from peeklock.impl.metrics import Metrics
from peeklock.impl.policy import RETRY, Policy
from peeklock.impl.settling import abandon, settle, settle_loss, settle_poison
from peeklock.impl.store import Completion, CompletionKind, Delivery, Store

log = logging.getLogger(__name__)


class Worker:
    """Settles deliveries by a policy, and does no input or output itself.

    `cycle()` yields what it wants done and is sent the answers (see effects); `Driver` carries that
    out one step at a time, and `run_once` all at once. A crash is a cycle that nobody continues.

    One call is made at a time. So a renewal that falls due during an ack's own call is sent after
    it: a call must take less than the time between a renewal and the lock's end.
    """

    def __init__(
        self,
        clock: Clock,
        handlers: Mapping[str, Handler],
        *,
        policy: Policy = RETRY,
        metrics: Metrics | None = None,
        observer: Observer | None = None,
        name: str = "worker",
    ) -> None:
        """`handlers` by the name that items carry; `observer` is called with every event."""
        self.clock = clock
        self.handlers = handlers
        self.policy = policy
        self.metrics = Metrics() if metrics is None else metrics
        self._context = Context(name, clock, policy, self.metrics, observer)

    @property
    def drop_at_ms(self) -> int | None:
        """The end of the shutdown grace in milliseconds, None before a shutdown is requested."""
        return self._context.drop_at_ms

    def request_shutdown(self) -> None:
        """Fetch nothing more, stop renewing, and drop work in hand after shutdown_grace_ms."""
        self._context.request_shutdown()

    def run_once(self, store: Store) -> Verdict:
        """Fetch and settle at most one item, waiting on the worker's clock; return what came of it.

        Nothing interrupts Python code from outside. A handler that is a plain function is neither
        renewed for nor cancelled nor aborted until it returns. A handler that is a generator
        function cooperates: at each `yield n` it lets n milliseconds pass and due renewals go out,
        and there it is cancelled (Cancelled is raised) and aborted (it is closed).
        """
        return Driver(self, store).run()

    def cycle(self) -> Steps[Verdict]:
        """One cycle, step by step: at most one fetch, and everything that follows from it."""
        context = self._context
        if context.drop_at_ms is not None:
            return Verdict.STOPPED
        asked_ms = context.now_ms()
        answer = yield from context.call(Fetch(self.policy.lock_timeout_ms))
        if isinstance(answer, Refused):
            log.warning("%s: fetch failed: %s", context.name, answer.error)
            return Verdict.FETCH_FAILED
        delivery = answer.value
        if delivery is None:
            return Verdict.IDLE
        try:
            return (yield from self._work(delivery, Lease.taken(context, delivery.token, asked_ms)))
        except GraceOver:
            log.warning("%s: dropped at the end of the shutdown grace", delivery.token)
            context.tell(Dropped(context.name, context.now_ms(), delivery.token))
            return Verdict.DROPPED

    def _work(self, delivery: Delivery, lease: Lease) -> Steps[Verdict]:
        context, policy = self._context, self.policy
        item, token = delivery.item, delivery.token
        if delivery.attempt_count > policy.max_attempts:
            text = f"delivered {delivery.attempt_count} times, allowed are {policy.max_attempts}"
            poison = Completion(CompletionKind.POISON, item.id, text)
            return (yield from settle_poison(context, token, lease, poison))
        if item.name not in self.handlers:
            log.warning("%s: no handler is registered for %r", token, item.name)
            delay_ms = policy.missing_handler_delay_ms(delivery.attempt_count)
            return (yield from abandon(context, token, delay_ms))
        outcome = yield from handle(context, delivery, lease)
        if isinstance(outcome, Loss):
            return (yield from settle_loss(context, token, outcome))
        kind = CompletionKind.APPLICATION_ERROR if outcome.failed else CompletionKind.SUCCESS
        return (yield from settle(context, token, lease, Completion(kind, item.id, outcome.payload)))
