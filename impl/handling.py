"""Running a handler while its lock is renewed."""

import logging
import sys

from peeklock.impl.context import Context, GraceOver
from peeklock.impl.effects import AbortHandler, Outcome, StartHandler, StepHandler, Steps
from peeklock.impl.events import HandlerAborted, HandlerCancelled, HandlerEnded, HandlerStarted
from peeklock.impl.lease import Lease, Loss
from peeklock.impl.store import Delivery

log = logging.getLogger(__name__)


def handle(context: Context, delivery: Delivery, lease: Lease) -> Steps[Outcome | Loss]:
    """Run the handler; return how it ended, or what follows the loss of the lock that stopped it.

    A handler that was cancelled has cancellation_grace_ms to end; what it returns is dropped.
    GraceOver, with the handler aborted, at the end of the shutdown grace.
    """
    yield StartHandler(delivery)
    context.tell(HandlerStarted(context.name, context.now_ms(), delivery))
    try:
        return (yield from _run(context, delivery.token, lease))
    except GraceOver:
        yield from _abort(context, delivery.token)
        raise


def _run(context: Context, token: str, lease: Lease) -> Steps[Outcome | Loss]:
    while True:
        loss = yield from lease.renew_if_due()
        if loss is not None:
            yield from _cancel(context, token, loss)
            return loss
        outcome = yield from _step(context, token, lease.before_due(sys.maxsize), cancelled=False)
        if outcome is not None:
            return outcome


def _cancel(context: Context, token: str, loss: Loss) -> Steps[None]:
    """Signal the handler, let it run for the grace, then abort it."""
    log.info("%s: handler cancelled, lock lost or in doubt (next: %s)", token, loss.value)
    context.tell(HandlerCancelled(context.name, context.now_ms(), token))
    stop_at_ms = context.now_ms() + context.policy.cancellation_grace_ms
    while context.now_ms() < stop_at_ms:
        if (yield from _step(context, token, stop_at_ms, cancelled=True)) is not None:
            return
    yield from _abort(context, token)


def _step(context: Context, token: str, until_ms: int, cancelled: bool) -> Steps[Outcome | None]:
    """Let the handler run; return its outcome when it has ended. GraceOver when it may not run on."""
    if context.is_grace_over():
        raise GraceOver
    step = StepHandler(token, context.before_drop(until_ms), cancelled)
    outcome = yield step
    if outcome is None:
        return None
    if not isinstance(outcome, Outcome):
        raise TypeError(f"{step} must be answered with an Outcome or None, not {outcome!r}")
    context.tell(HandlerEnded(context.name, context.now_ms(), token, outcome.payload, outcome.failed))
    return outcome


def _abort(context: Context, token: str) -> Steps[None]:
    yield AbortHandler(token)
    context.tell(HandlerAborted(context.name, context.now_ms(), token))
