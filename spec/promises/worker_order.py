"""Duties: what a worker does next, by what it was told and by its policy; the promise C5 is made of them.

Said from outside, as one table of steps and not sentence by sentence, so that a slip in a sentence of the worker
does not go unnoticed because no safety promise is about it.
"""

from __future__ import annotations

from peeklock.spec.law.policy import (
    AfterCancellationAck,
    AfterExhaustion,
    AfterPermanentRenewal,
    AfterRefusal,
    AfterRetryableRenewal,
    AfterUncertain,
    PoisonAck,
    rule,
)
from peeklock.spec.law.state import Phase, Result, Trouble, attempts, phase, renewing, result, trouble
from peeklock.spec.notation.actions import Answer, Call, Event, Metric
from peeklock.spec.notation.terms import FALSE, TRUE, Term, after, both, either, implies
from peeklock.spec.promises.promise import Step


def phases_in_order(s: Step) -> Term:
    """Which phase a step begins in and which one it leads to, by what the worker was told and by its policy."""
    was, now, p = phase[s.w], after(phase[s.w]), s.policy
    match s.label.call or s.label.event:
        case Call.RENEW:
            lost = s.label.answer is Answer.PERMANENT
            lost |= (
                s.label.answer is Answer.RETRYABLE
                and p.after_retryable_renewal is not AfterRetryableRenewal.RETRY
            )
            handling = now == (Phase.STOPPING if lost else Phase.HANDLING)
            goes_on = either(
                (was == Phase.HANDLING) & handling, both(was == Phase.ACKING, now == was, ~sent_once(s))
            )
            return goes_on & (after(renewing[s.w]) == (not lost))
        case Call.ACK:
            return (was == Phase.ACKING) & _after_an_attempt(s)
        case Call.CANCELLATION_ACK:
            given_back = (
                p.after_cancellation_ack is AfterCancellationAck.ABANDON and s.label.answer is not Answer.OK
            )
            return (was == Phase.CANCELLING) & (now == (Phase.ABANDONING if given_back else Phase.IDLE))
        case Call.ABANDON | Call.ABANDON_IGNORING_ATTEMPT:
            due = Phase.ABANDONING if s.label.counts is None else Phase.DECIDING
            uncounted = s.label.call is Call.ABANDON_IGNORING_ATTEMPT
            return both(was == due, now == Phase.IDLE, rule.abandon_ignores_attempt == uncounted)
        case Event.HANDLER_STOPPED:
            return (was == Phase.STOPPING) & _after_the_handler_stopped(s)
        case Event.LOCK_OVER:
            return both(was == Phase.HANDLING, now == Phase.STOPPING, renewing[s.w])
        case Event.HANDLER_MISSING:
            return (was == Phase.FETCHED) & (now == Phase.ABANDONING)
        case Event.HANDLER_STARTS:
            return (was == Phase.FETCHED) & (now == Phase.HANDLING)
        case Event.HANDLER_SUCCEEDS | Event.HANDLER_FAILS:
            carried = Result.SUCCESS if s.label.event is Event.HANDLER_SUCCEEDS else Result.APPLICATION_ERROR
            return both(was == Phase.HANDLING, now == Phase.ACKING, after(result[s.w]) == carried)
        case _:
            return TRUE


def sent_once(s: Step) -> Term:
    """The completion in hand is a poison failure, and the policy sends that once."""
    return result[s.w] == Result.POISON if s.policy.poison_ack is PoisonAck.ONCE else FALSE


def _after_an_attempt(s: Step) -> Term:
    now, p = after(phase[s.w]), s.policy
    if s.label.answer is Answer.OK:
        return now == Phase.IDLE
    if s.label.answer is Answer.RETRYABLE:
        spent = rule.ack_attempts <= attempts[s.w] + 1
        end = {
            AfterExhaustion.ABANDON: Phase.ABANDONING,
            AfterExhaustion.ABANDON_DECIDES: Phase.DECIDING,
            AfterExhaustion.LEAVE: Phase.IDLE,
        }[p.after_exhaustion]
        follows = either(spent & (now == end), ~spent & (now == Phase.ACKING))
    else:
        end = Phase.IDLE if p.after_uncertain is AfterUncertain.LEAVE else Phase.ABANDONING
        said = s.label.counts is Metric.UNCERTAIN
        follows = (now == (end if said else Phase.ABANDONING)) & (is_uncertain(s) == said)
    poison = (now == Phase.IDLE) & (s.label.counts is Metric.POISON)
    return either(sent_once(s) & poison, ~sent_once(s) & follows)


def is_uncertain(s: Step) -> Term:
    """A permanent answer now would leave the outcome uncertain, as the policy has it."""
    first = s.policy.after_first_permanent is AfterRefusal.UNCERTAIN
    later = s.policy.after_later_permanent is AfterRefusal.UNCERTAIN
    return either(both(attempts[s.w] == 0, first), both(attempts[s.w] > 0, later))


def _after_the_handler_stopped(s: Step) -> Term:
    now, p = after(phase[s.w]), s.policy
    retryable = {
        AfterRetryableRenewal.CANCEL: now == Phase.CANCELLING,
        AfterRetryableRenewal.ABANDON: now == Phase.ABANDONING,
        AfterRetryableRenewal.RETRY: FALSE,
    }[p.after_retryable_renewal]
    permanent = (
        Phase.CANCELLING if p.after_permanent_renewal is AfterPermanentRenewal.CANCEL else Phase.ABANDONING
    )
    return either(
        (trouble[s.w] == Trouble.RENEWAL_RETRYABLE) & retryable,
        (trouble[s.w] == Trouble.RENEWAL_PERMANENT) & (now == permanent),
        (trouble[s.w] == Trouble.LOCK_OVER) & (now == Phase.IDLE),
    )


def trouble_is_remembered(s: Step) -> Term:
    now, over = after(trouble[s.w]), after(phase[s.w]) == Phase.IDLE
    met_by: dict[tuple[Answer | None, Call | Event | None], Trouble] = {
        (None, Event.HANDLER_MISSING): Trouble.HANDLER_MISSING,
        (None, Event.LOCK_OVER): Trouble.LOCK_OVER,
        (Answer.RETRYABLE, Call.RENEW): Trouble.RENEWAL_RETRYABLE,
        (Answer.PERMANENT, Call.RENEW): Trouble.RENEWAL_PERMANENT,
        (Answer.RETRYABLE, Call.CANCELLATION_ACK): Trouble.CANCELLATION_ACK_FAILED,
        (Answer.PERMANENT, Call.CANCELLATION_ACK): Trouble.CANCELLATION_ACK_FAILED,
    }
    met = met_by.get((s.label.answer, s.label.call or s.label.event))
    kept = now == trouble[s.w]
    if met is None:
        return over | kept
    return (
        over | (kept & (after(phase[s.w]) == phase[s.w])) | ((now == met) & (after(phase[s.w]) != phase[s.w]))
    )


def renewing_goes_on(s: Step) -> Term:
    works = (Phase.FETCHED, Phase.HANDLING, Phase.ACKING)
    return implies(either(*(after(phase[s.w]) == p for p in works)), after(renewing[s.w]) == renewing[s.w])
