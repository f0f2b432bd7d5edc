"""The worker: what it makes of each answer, and what it does between its calls.

``w`` is the worker and ``i`` the item in its hand. What it believes is all it has to go by: no guard here looks
into the store, but for the attempt count that fetch returned with the item.
"""

from __future__ import annotations

from peeklock.spec.law.faults import fault
from peeklock.spec.law.policy import (
    AfterCancellationAck,
    AfterPermanentRenewal,
    AfterRetryableRenewal,
    PoisonAck,
    rule,
)
from peeklock.spec.law.state import (
    Last,
    Phase,
    Result,
    Trouble,
    attempt_count,
    attempts,
    draining,
    issued,
    last,
    phase,
    renewing,
    result,
    token,
    trouble,
    working_on,
)
from peeklock.spec.notation.actions import (
    Answer,
    Call,
    Clause,
    Event,
    Item,
    Worker,
    event,
    reaction,
    when,
)
from peeklock.spec.notation.terms import NO_ITEM, Assignment, Term, either

ERRORS = (Answer.RETRYABLE, Answer.PERMANENT)


def forget(w: Worker) -> tuple[Assignment, ...]:
    """The worker has nothing in hand: it will not present this token again."""
    return (
        phase[w].becomes(Phase.IDLE),
        working_on[w].becomes(NO_ITEM),
        token[w].becomes(0),
        renewing[w].becomes(False),
        result[w].becomes(Result.NONE),
        attempts[w].becomes(0),
        last[w].becomes(Last.NONE),
        trouble[w].becomes(Trouble.NONE),
    )


def may_fetch(w: Worker) -> Term:
    """The worker is free, and no shutdown has begun."""
    return (phase[w] == Phase.IDLE) & ~draining[w]


def one_shot_poison(w: Worker) -> Term:
    """The poison ack is sent once: there is no sequence."""
    return (result[w] == Result.POISON) & (rule.poison_ack == PoisonAck.ONCE)


def in_sequence(w: Worker) -> Term:
    """The worker is in an ack sequence, which a poison ack that is sent only once does not have."""
    return (phase[w] == Phase.ACKING) & ~one_shot_poison(w)


def may_renew(w: Worker) -> Term:
    """Renewals go on while the handler runs and during the whole ack sequence."""
    return renewing[w] & ((phase[w] == Phase.HANDLING) | in_sequence(w))


# Fetch


@reaction(Call.FETCH, to=(Answer.OK,))
def takes_it_in_hand(w: Worker, i: Item) -> Clause:
    """The worker takes the delivery in hand and keeps its lock renewed."""
    return when(
        may_fetch(w),
        # The attempt count that fetch returns is one more than the row had.
        attempt_count[i] + 1 <= rule.max_attempts,
    ).then(
        phase[w].becomes(Phase.FETCHED),
        working_on[w].becomes(i),
        token[w].becomes(issued[i] + 1),
        renewing[w].becomes(True),
    )


@reaction(Call.FETCH, to=(Answer.OK,))
def finds_poison(w: Worker, i: Item) -> Clause:
    """The attempt count is over max_attempts: the completion is a poison failure, and no handler runs."""
    return when(
        may_fetch(w),
        attempt_count[i] + 1 > rule.max_attempts,
    ).then(
        phase[w].becomes(Phase.ACKING),
        working_on[w].becomes(i),
        token[w].becomes(issued[i] + 1),
        renewing[w].becomes(True),
        result[w].becomes(Result.POISON),
    )


@reaction(Call.FETCH, to=(Answer.NOTHING, Answer.RETRYABLE))
def stays_idle(w: Worker) -> Clause:
    """The worker has got nothing and will ask again."""
    return when(
        may_fetch(w),
    )


# The handler


@event(Event.HANDLER_MISSING)
def handler_is_missing(w: Worker, i: Item) -> Clause:
    """No handler is registered for the item: it is given back with a backoff."""
    return when(
        phase[w] == Phase.FETCHED,
        working_on[w] == i,
    ).then(
        phase[w].becomes(Phase.ABANDONING),
        trouble[w].becomes(Trouble.HANDLER_MISSING),
        renewing[w].becomes(False),
    )


@event(Event.HANDLER_STARTS)
def handler_starts(w: Worker, i: Item) -> Clause:
    """The handler begins to run."""
    return when(
        phase[w] == Phase.FETCHED,
        working_on[w] == i,
    ).then(
        phase[w].becomes(Phase.HANDLING),
    )


@event(Event.HANDLER_SUCCEEDS)
def handler_succeeds(w: Worker, i: Item) -> Clause:
    """The handler ends with a result: an ack sequence begins that carries it."""
    return when(
        phase[w] == Phase.HANDLING,
        working_on[w] == i,
    ).then(
        phase[w].becomes(Phase.ACKING),
        result[w].becomes(Result.SUCCESS),
    )


@event(Event.HANDLER_FAILS)
def handler_fails(w: Worker, i: Item) -> Clause:
    """The handler ends with an application error: an ack sequence begins that carries it."""
    return when(
        phase[w] == Phase.HANDLING,
        working_on[w] == i,
    ).then(
        phase[w].becomes(Phase.ACKING),
        result[w].becomes(Result.APPLICATION_ERROR),
    )


# Renewal while the handler runs


@reaction(Call.RENEW, to=(Answer.OK,))
def keeps_renewing(w: Worker, i: Item) -> Clause:
    """The lock is prolonged; the next renewal comes in good time."""
    return when(
        may_renew(w),
    )


@reaction(Call.RENEW, to=(Answer.RETRYABLE,))
def cancels_at_a_retryable_renewal_error(w: Worker, i: Item) -> Clause:
    """A renewal error, even a retryable one, tells the handler to stop."""
    return when(
        phase[w] == Phase.HANDLING,
        renewing[w],
        rule.after_retryable_renewal != AfterRetryableRenewal.RETRY,
    ).then(
        phase[w].becomes(Phase.STOPPING),
        renewing[w].becomes(False),
        trouble[w].becomes(Trouble.RENEWAL_RETRYABLE),
    )


@reaction(Call.RENEW, to=(Answer.PERMANENT,))
def cancels_at_a_permanent_renewal_error(w: Worker, i: Item) -> Clause:
    """A permanent renewal error tells the handler to stop."""
    return when(
        phase[w] == Phase.HANDLING,
        renewing[w],
    ).then(
        phase[w].becomes(Phase.STOPPING),
        renewing[w].becomes(False),
        trouble[w].becomes(Trouble.RENEWAL_PERMANENT),
    )


@reaction(Call.RENEW, to=(Answer.RETRYABLE,))
def renews_again(w: Worker, i: Item) -> Clause:
    """A retryable renewal error is no verdict: the worker tries again while its lock lasts."""
    return when(
        may_renew(w),
        rule.after_retryable_renewal == AfterRetryableRenewal.RETRY,
    )


@event(Event.LOCK_OVER)
def renews_no_more(w: Worker, i: Item) -> Clause:
    """Renewals have failed until the lock is over by the worker's own time: the handler is told to stop."""
    return when(
        phase[w] == Phase.HANDLING,
        working_on[w] == i,
        renewing[w],
        rule.after_retryable_renewal == AfterRetryableRenewal.RETRY,
        # It cannot be over while renewals succeed.
        fault("renewal-retryable"),
    ).then(
        phase[w].becomes(Phase.STOPPING),
        renewing[w].becomes(False),
        trouble[w].becomes(Trouble.LOCK_OVER),
    )


@event(Event.HANDLER_STOPPED)
def stopped_handler_is_left(w: Worker, i: Item) -> Clause:
    """The handler has ended within its grace or was aborted; the lock is over, so there is nothing to give back."""
    return when(
        phase[w] == Phase.STOPPING,
        working_on[w] == i,
        trouble[w] == Trouble.LOCK_OVER,
        rule.after_retryable_renewal == AfterRetryableRenewal.RETRY,
    ).then(
        forget(w),
    )


def _stopped_by(w: Worker, retryable_means: Term, permanent_means: Term) -> Term:
    return either(
        (trouble[w] == Trouble.RENEWAL_RETRYABLE) & retryable_means,
        (trouble[w] == Trouble.RENEWAL_PERMANENT) & permanent_means,
    )


@event(Event.HANDLER_STOPPED)
def stopped_handler_is_cancelled(w: Worker, i: Item) -> Clause:
    """The handler has ended within its grace or was aborted; its result is dropped, a cancellation ack follows."""
    return when(
        phase[w] == Phase.STOPPING,
        working_on[w] == i,
        _stopped_by(
            w,
            rule.after_retryable_renewal == AfterRetryableRenewal.CANCEL,
            rule.after_permanent_renewal == AfterPermanentRenewal.CANCEL,
        ),
    ).then(
        phase[w].becomes(Phase.CANCELLING),
    )


@event(Event.HANDLER_STOPPED)
def stopped_handler_is_abandoned(w: Worker, i: Item) -> Clause:
    """The handler has ended within its grace or was aborted; its result is dropped and the item given back."""
    return when(
        phase[w] == Phase.STOPPING,
        working_on[w] == i,
        _stopped_by(
            w,
            rule.after_retryable_renewal == AfterRetryableRenewal.ABANDON,
            rule.after_permanent_renewal == AfterPermanentRenewal.ABANDON,
        ),
    ).then(
        phase[w].becomes(Phase.ABANDONING),
    )


# The cancellation ack


@reaction(Call.CANCELLATION_ACK, to=(Answer.OK,))
def cancellation_is_settled(w: Worker, i: Item) -> Clause:
    """The worker is done with the item."""
    return when(
        phase[w] == Phase.CANCELLING,
    ).then(
        forget(w),
    )


@reaction(Call.CANCELLATION_ACK, to=ERRORS)
def cancellation_ack_failed(w: Worker, i: Item) -> Clause:
    """There is one attempt only: the item is given back."""
    return when(
        phase[w] == Phase.CANCELLING,
        rule.after_cancellation_ack == AfterCancellationAck.ABANDON,
    ).then(
        phase[w].becomes(Phase.ABANDONING),
        trouble[w].becomes(Trouble.CANCELLATION_ACK_FAILED),
    )


@reaction(Call.CANCELLATION_ACK, to=ERRORS)
def cancellation_ack_failure_ignored(w: Worker, i: Item) -> Clause:
    """There is one attempt only: the worker leaves the item to its lock."""
    return when(
        phase[w] == Phase.CANCELLING,
        rule.after_cancellation_ack == AfterCancellationAck.LEAVE,
    ).then(
        forget(w),
    )


# Renewal during the ack sequence


def _ends_renewing(w: Worker) -> Clause:
    return when(
        in_sequence(w),
        renewing[w],
    ).then(
        renewing[w].becomes(False),
    )


@reaction(Call.RENEW, to=(Answer.PERMANENT,))
def refused_renewal_ends_renewing(w: Worker, i: Item) -> Clause:
    """During the ack sequence a permanent renewal error only ends the renewing."""
    return _ends_renewing(w)


@reaction(Call.RENEW, to=(Answer.RETRYABLE,))
def failed_renewal_ends_renewing(w: Worker, i: Item) -> Clause:
    """During the ack sequence a retryable renewal error only ends the renewing."""
    clause = _ends_renewing(w)
    return when(*clause.guards, rule.after_retryable_renewal != AfterRetryableRenewal.RETRY).then(
        *clause.effects
    )


OWN_STEPS = (
    handler_is_missing,
    handler_starts,
    handler_succeeds,
    handler_fails,
    stopped_handler_is_cancelled,
    stopped_handler_is_abandoned,
    renews_no_more,
    stopped_handler_is_left,
)
REACTIONS = (
    takes_it_in_hand,
    finds_poison,
    stays_idle,
    keeps_renewing,
    cancels_at_a_retryable_renewal_error,
    cancels_at_a_permanent_renewal_error,
    renews_again,
    refused_renewal_ends_renewing,
    failed_renewal_ends_renewing,
    cancellation_is_settled,
    cancellation_ack_failed,
    cancellation_ack_failure_ignored,
)
