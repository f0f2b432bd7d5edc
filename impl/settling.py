"""Telling the store what became of a delivery."""

import logging

from peeklock.impl.context import Context, GraceOver, Verdict
from peeklock.impl.effects import Abandon, Ack, Ok, Refused, Steps, Wait
from peeklock.impl.events import Dropped
from peeklock.impl.lease import Lease, Loss
from peeklock.impl.metrics import APPLICATION_ERROR, INFRASTRUCTURE_ERROR, POISON, SUCCESS, UNCERTAIN
from peeklock.impl.store import Completion, CompletionKind

log = logging.getLogger(__name__)

_CONFIRMED = {
    CompletionKind.SUCCESS: (SUCCESS, Verdict.SUCCESS),
    CompletionKind.APPLICATION_ERROR: (APPLICATION_ERROR, Verdict.APPLICATION_ERROR),
    CompletionKind.POISON: (POISON, Verdict.POISON),
}


def settle(context: Context, token: str, lease: Lease, completion: Completion) -> Steps[Verdict]:
    """The ack sequence: the same token and completion until the answer decides, or the attempts are used up.

    The waits are between the calls; the calls' own time is not counted against them. The lock is
    renewed in the waits.
    """
    policy = context.policy
    waits_ms = iter(policy.ack_waits_ms)
    retried = False
    while True:
        answer = yield from context.call(Ack(token, completion))
        if isinstance(answer, Ok):
            name, verdict = _CONFIRMED[completion.kind]
            context.count(name, token)
            return verdict
        if not answer.error.retryable:
            log.warning("%s: ack refused: %s", token, answer.error)
            choice = policy.after_later_permanent if retried else policy.after_first_permanent
            return (yield from (_uncertain if choice == "uncertain" else _failure)(context, token))
        retried = True
        wait_ms = next(waits_ms, None)
        if wait_ms is None:
            log.warning("%s: the last ack attempt failed: %s", token, answer.error)
            return (yield from _exhausted(context, token))
        log.info("%s: ack failed, next attempt in %d ms: %s", token, wait_ms, answer.error)
        yield from _pause(context, lease, wait_ms)


def settle_poison(context: Context, token: str, lease: Lease, completion: Completion) -> Steps[Verdict]:
    """Complete an item as poison, by the policy: once and counted whatever the answer, or confirmed."""
    if context.policy.poison_ack == "retried":
        return (yield from settle(context, token, lease, completion))
    answer = yield from context.call(Ack(token, completion))
    if not isinstance(answer, Ok):
        log.warning("%s: poison ack failed: %s", token, answer.error)
    context.count(POISON, token)
    return Verdict.POISON


def settle_loss(context: Context, token: str, loss: Loss) -> Steps[Verdict]:
    """End a delivery whose lock must be taken for lost, without a result."""
    if loss is Loss.NOTHING:
        return _leave(context, token)
    if loss is Loss.CANCELLATION_ACK:
        answer = yield from context.call(Ack(token, None))
        if isinstance(answer, Ok):
            return Verdict.CANCELLED
        log.info("%s: cancellation ack failed: %s", token, answer.error)
        if context.policy.after_cancellation_ack == "leave":
            return _leave(context, token)
    return (yield from abandon(context, token, context.policy.abandon_delay_ms))


def abandon(context: Context, token: str, delay_ms: int) -> Steps[Verdict]:
    """Give the delivery back, whatever the answer."""
    yield from _try_abandon(context, token, delay_ms)
    return Verdict.ABANDONED


def _leave(context: Context, token: str) -> Verdict:
    context.tell(Dropped(context.name, context.now_ms(), token))
    return Verdict.LEFT


def _try_abandon(context: Context, token: str, delay_ms: int) -> Steps[bool]:
    answer = yield from context.call(Abandon(token, delay_ms, context.policy.abandon_ignores_attempt))
    if isinstance(answer, Refused):
        log.info("%s: abandon failed: %s", token, answer.error)
    return isinstance(answer, Ok)


def _failure(context: Context, token: str) -> Steps[Verdict]:
    context.count(INFRASTRUCTURE_ERROR, token)
    yield from _try_abandon(context, token, context.policy.abandon_delay_ms)
    return Verdict.FAILED


def _uncertain(context: Context, token: str) -> Steps[Verdict]:
    log.warning("%s: it is unknown whether an ack took effect", token)
    context.count(UNCERTAIN, token)
    if context.policy.after_uncertain == "abandon":
        yield from _try_abandon(context, token, context.policy.abandon_delay_ms)
    return Verdict.UNCERTAIN


def _exhausted(context: Context, token: str) -> Steps[Verdict]:
    policy = context.policy
    if policy.after_exhaustion == "abandon":
        return (yield from _failure(context, token))
    if policy.after_exhaustion == "abandon-decides":
        accepted = yield from _try_abandon(context, token, policy.abandon_delay_ms)
        # Accepted, it proves that the row was still there, so that no attempt had committed.
        if not accepted:
            log.warning("%s: it is unknown whether an ack took effect", token)
            context.count(UNCERTAIN, token)
            return Verdict.UNCERTAIN
    context.count(INFRASTRUCTURE_ERROR, token)
    return Verdict.FAILED


def _pause(context: Context, lease: Lease, wait_ms: int) -> Steps[None]:
    due_ms = context.now_ms() + wait_ms
    while True:
        if context.is_grace_over():
            raise GraceOver
        # What an error means for a running handler is no concern here: the ack's own answers decide.
        yield from lease.renew_if_due()
        if context.now_ms() >= due_ms:
            return
        yield Wait(context.before_drop(lease.before_due(due_ms)))
