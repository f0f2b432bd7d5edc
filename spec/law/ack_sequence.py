"""Settlement: what the worker makes of the answers in its ack sequence, and how it gives an item back."""

from __future__ import annotations

from peeklock.spec.law.policy import AfterExhaustion, AfterRefusal, AfterUncertain, PoisonAck, rule
from peeklock.spec.law.state import Last, Phase, Result, attempts, last, phase, renewing, result
from peeklock.spec.law.worker import ERRORS, forget, in_sequence, one_shot_poison
from peeklock.spec.notation.actions import (
    ABANDONS,
    Answer,
    Call,
    Clause,
    Item,
    Metric,
    Worker,
    reaction,
    when,
)
from peeklock.spec.notation.terms import Term, either

# The ack sequence: ok


@reaction(Call.ACK, to=(Answer.OK,), counts=Metric.SUCCESS)
def success_is_confirmed(w: Worker, i: Item) -> Clause:
    """The worker knows that the result is delivered."""
    return when(
        phase[w] == Phase.ACKING,
        result[w] == Result.SUCCESS,
    ).then(
        forget(w),
    )


@reaction(Call.ACK, to=(Answer.OK,), counts=Metric.APPLICATION_ERROR)
def application_error_is_confirmed(w: Worker, i: Item) -> Clause:
    """The worker knows that the application error is delivered."""
    return when(
        phase[w] == Phase.ACKING,
        result[w] == Result.APPLICATION_ERROR,
    ).then(
        forget(w),
    )


@reaction(Call.ACK, to=(Answer.OK,), counts=Metric.POISON)
def poison_is_confirmed(w: Worker, i: Item) -> Clause:
    """The worker knows that the poison failure is delivered, and counts it only now."""
    return when(
        phase[w] == Phase.ACKING,
        result[w] == Result.POISON,
        rule.poison_ack == PoisonAck.RETRIED,
    ).then(
        forget(w),
    )


@reaction(Call.ACK, to=(Answer.OK, *ERRORS), counts=Metric.POISON)
def poison_is_counted_whatever_the_answer(w: Worker, i: Item) -> Clause:
    """A poison ack is sent once, its answer ignored, and the item counted as poison."""
    return when(
        phase[w] == Phase.ACKING,
        one_shot_poison(w),
    ).then(
        forget(w),
    )


# The ack sequence: a retryable error


@reaction(Call.ACK, to=(Answer.RETRYABLE,))
def will_try_again(w: Worker, i: Item) -> Clause:
    """The worker waits and sends the same ack again: same token, same completion."""
    return when(
        in_sequence(w),
        attempts[w] + 1 < rule.ack_attempts,
    ).then(
        attempts[w].becomes(attempts[w] + 1),
        last[w].becomes(Last.RETRYABLE),
    )


def _exhausted(w: Worker, then: AfterExhaustion) -> Term:
    return in_sequence(w) & (attempts[w] + 1 >= rule.ack_attempts) & (rule.after_exhaustion == then)


@reaction(Call.ACK, to=(Answer.RETRYABLE,), counts=Metric.INFRASTRUCTURE_ERROR)
def gives_up_and_abandons(w: Worker, i: Item) -> Clause:
    """The last attempt failed: the worker counts a failure and gives the item back."""
    return when(
        _exhausted(w, AfterExhaustion.ABANDON),
    ).then(
        phase[w].becomes(Phase.ABANDONING),
        attempts[w].becomes(attempts[w] + 1),
        last[w].becomes(Last.RETRYABLE),
        renewing[w].becomes(False),
    )


@reaction(Call.ACK, to=(Answer.RETRYABLE,))
def gives_up_and_lets_abandon_decide(w: Worker, i: Item) -> Clause:
    """The last attempt failed: the worker gives the item back, and the answer to that tells what happened."""
    return when(
        _exhausted(w, AfterExhaustion.ABANDON_DECIDES),
    ).then(
        phase[w].becomes(Phase.DECIDING),
        attempts[w].becomes(attempts[w] + 1),
        last[w].becomes(Last.RETRYABLE),
        renewing[w].becomes(False),
    )


@reaction(Call.ACK, to=(Answer.RETRYABLE,), counts=Metric.INFRASTRUCTURE_ERROR)
def gives_up_and_leaves_it(w: Worker, i: Item) -> Clause:
    """The last attempt failed: the worker counts a failure and leaves the item to its lock."""
    return when(
        _exhausted(w, AfterExhaustion.LEAVE),
    ).then(
        forget(w),
    )


# The ack sequence: a permanent error


def _is_uncertain(w: Worker) -> Term:
    return either(
        (attempts[w] == 0) & (rule.after_first_permanent == AfterRefusal.UNCERTAIN),
        (attempts[w] > 0) & (rule.after_later_permanent == AfterRefusal.UNCERTAIN),
    )


@reaction(Call.ACK, to=(Answer.PERMANENT,), counts=Metric.INFRASTRUCTURE_ERROR)
def refusal_is_a_failure(w: Worker, i: Item) -> Clause:
    """A permanent first answer: nothing was committed, the worker counts a failure and gives the item back."""
    return when(
        in_sequence(w),
        ~_is_uncertain(w),
    ).then(
        phase[w].becomes(Phase.ABANDONING),
        attempts[w].becomes(attempts[w] + 1),
        last[w].becomes(Last.PERMANENT),
        renewing[w].becomes(False),
    )


@reaction(Call.ACK, to=(Answer.PERMANENT,), counts=Metric.UNCERTAIN)
def refusal_is_uncertain(w: Worker, i: Item) -> Clause:
    """After a retryable error: an earlier attempt may have committed, or the lock was lost; the worker lets it be."""
    return when(
        in_sequence(w),
        _is_uncertain(w),
        rule.after_uncertain == AfterUncertain.LEAVE,
    ).then(
        forget(w),
    )


@reaction(Call.ACK, to=(Answer.PERMANENT,), counts=Metric.UNCERTAIN)
def refusal_is_uncertain_and_abandoned(w: Worker, i: Item) -> Clause:
    """After a retryable error the outcome is uncertain, and the worker gives the item back all the same."""
    return when(
        in_sequence(w),
        _is_uncertain(w),
        rule.after_uncertain == AfterUncertain.ABANDON,
    ).then(
        phase[w].becomes(Phase.ABANDONING),
        attempts[w].becomes(attempts[w] + 1),
        last[w].becomes(Last.PERMANENT),
        renewing[w].becomes(False),
    )


# Abandon


@reaction(*ABANDONS, to=(Answer.OK, *ERRORS))
def abandon_is_best_effort(w: Worker, i: Item) -> Clause:
    """Whatever the answer, the worker is done with the item."""
    return when(
        phase[w] == Phase.ABANDONING,
    ).then(
        forget(w),
    )


@reaction(*ABANDONS, to=(Answer.OK,), counts=Metric.INFRASTRUCTURE_ERROR)
def accepted_abandon_is_a_failure(w: Worker, i: Item) -> Clause:
    """The store took the item back, so no attempt had committed: a confirmed failure."""
    return when(
        phase[w] == Phase.DECIDING,
        rule.after_exhaustion == AfterExhaustion.ABANDON_DECIDES,
    ).then(
        forget(w),
    )


@reaction(*ABANDONS, to=ERRORS, counts=Metric.UNCERTAIN)
def refused_abandon_is_uncertain(w: Worker, i: Item) -> Clause:
    """The store did not say that it took the item back: an attempt may have committed."""
    return when(
        phase[w] == Phase.DECIDING,
        rule.after_exhaustion == AfterExhaustion.ABANDON_DECIDES,
    ).then(
        forget(w),
    )


REACTIONS = (
    success_is_confirmed,
    application_error_is_confirmed,
    poison_is_confirmed,
    poison_is_counted_whatever_the_answer,
    will_try_again,
    gives_up_and_abandons,
    gives_up_and_lets_abandon_decide,
    gives_up_and_leaves_it,
    refusal_is_a_failure,
    refusal_is_uncertain,
    refusal_is_uncertain_and_abandoned,
    abandon_is_best_effort,
    accepted_abandon_is_a_failure,
    refused_abandon_is_uncertain,
)
