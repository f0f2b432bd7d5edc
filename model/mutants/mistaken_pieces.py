"""What a mistaken store or worker does: sentences to be added to the protocol, or put in the place of others."""

from __future__ import annotations

from peeklock.spec.law.policy import rule
from peeklock.spec.law.state import (
    Last,
    Phase,
    Result,
    Row,
    acked_by,
    attempts,
    completions,
    current,
    last,
    phase,
    renewing,
    result,
    row,
    token,
    working_on,
)
from peeklock.spec.law.store import is_current, lock_is_valid
from peeklock.spec.law.worker import forget, in_sequence
from peeklock.spec.notation.actions import (
    ABANDONS,
    ACKS,
    Answer,
    Call,
    Clause,
    Event,
    Item,
    Metric,
    Token,
    Worker,
    event,
    outcome,
    reaction,
    when,
)

# Stores


@outcome(Call.ACK, answer=Answer.PERMANENT)
def refused_but_enqueued(i: Item, t: Token) -> Clause:
    """The ack is refused, but its completion was enqueued before that was known."""
    return when(~lock_is_valid(i, t)).then(completions[i].becomes(completions[i] + 1))


@outcome(Call.ACK, answer=Answer.RETRYABLE)
def enqueued_but_not_deleted(i: Item, t: Token) -> Clause:
    """The completion is enqueued in one transaction, and the second one, which deletes the row, fails."""
    return when(lock_is_valid(i, t)).then(completions[i].becomes(completions[i] + 1))


@outcome(*ACKS, answer=Answer.OK)
def ok_without_effect(i: Item, t: Token) -> Clause:
    """An ack with a token that is no longer good is answered ok."""
    return when(~lock_is_valid(i, t))


@outcome(Call.RENEW, answer=Answer.OK, takes_effect=True)
def expired_lock_renewed(i: Item, t: Token) -> Clause:
    """A lock that has expired is renewed."""
    return when(is_current(i, t), row[i] == Row.EXPIRED).then(row[i].becomes(Row.LOCKED))


@outcome(Call.ABANDON, answer=Answer.OK, takes_effect=True)
def acked_item_abandoned(i: Item, t: Token) -> Clause:
    """An item that this token has acked is put back."""
    return when(row[i] == Row.ACKED, acked_by[i] == t).then(row[i].becomes(Row.DELAYED))


@event(Event.EXPIRES)
def recovered_at_boot(i: Item) -> Clause:
    """A starting runtime takes every locked row for an orphan."""
    return when(row[i] == Row.LOCKED).then(row[i].becomes(Row.READY), current[i].becomes(0))


@event(Event.EXPIRES)
def rescued_after_completion(i: Item) -> Clause:
    """The rescuer read that the lock had expired, and writes when the item has been completed."""
    return when(row[i] == Row.ACKED).then(row[i].becomes(Row.READY))


@event(Event.CRASH)
def crash_unlocks(w: Worker, i: Item) -> Clause:
    """The connection of the crashed worker is gone, and its locks with it."""
    return when(working_on[w] == i, current[i] == token[w], row[i] == Row.LOCKED).then(
        forget(w), row[i].becomes(Row.READY), current[i].becomes(0)
    )


# Workers


@reaction(Call.ACK, to=(Answer.RETRYABLE,), counts=Metric.INFRASTRUCTURE_ERROR)
def abandons_at_once(w: Worker, i: Item) -> Clause:
    """The first retryable error ends the sequence: the item is given back."""
    return when(in_sequence(w)).then(
        phase[w].becomes(Phase.ABANDONING),
        attempts[w].becomes(attempts[w] + 1),
        last[w].becomes(Last.RETRYABLE),
        renewing[w].becomes(False),
    )


@reaction(Call.ACK, to=(Answer.PERMANENT,))
def retries_a_refusal(w: Worker, i: Item) -> Clause:
    """A permanent error is taken for a retryable one."""
    return when(in_sequence(w)).then(attempts[w].becomes(attempts[w] + 1), last[w].becomes(Last.PERMANENT))


@reaction(Call.ACK, to=(Answer.PERMANENT,))
def retries_a_refusal_for_ever(w: Worker, i: Item) -> Clause:
    """The same settle is sent again without being counted."""
    return when(in_sequence(w))


@reaction(Call.ACK, to=(Answer.RETRYABLE,))
def retries_for_ever(w: Worker, i: Item) -> Clause:
    """Attempts are not counted: there is always another one."""
    return when(in_sequence(w)).then(last[w].becomes(Last.RETRYABLE))


@reaction(Call.ACK, to=(Answer.RETRYABLE,), counts=Metric.SUCCESS)
def takes_a_timeout_for_success(w: Worker, i: Item) -> Clause:
    """No answer within the time is taken for a good one."""
    return when(in_sequence(w)).then(forget(w))


@reaction(Call.ACK, to=(Answer.RETRYABLE,))
def drops_it_silently(w: Worker, i: Item) -> Clause:
    """The budget is spent: the worker drops the result and tells nobody."""
    return when(in_sequence(w), attempts[w] + 1 >= rule.ack_attempts).then(forget(w))


@reaction(Call.ACK, to=(Answer.PERMANENT,), counts=Metric.UNCERTAIN)
def uncertain_and_again(w: Worker, i: Item) -> Clause:
    """The uncertain delivery stays in hand, and its ack is sent again."""
    return when(in_sequence(w), attempts[w] > 0)


@reaction(*ABANDONS, to=(Answer.RETRYABLE, Answer.PERMANENT))
def abandons_until_it_works(w: Worker, i: Item) -> Clause:
    """A failed abandon is sent again."""
    return when(phase[w] == Phase.ABANDONING)


@reaction(Call.RENEW, to=(Answer.RETRYABLE,))
def goes_on_without_renewing(w: Worker, i: Item) -> Clause:
    """One failed renewal ends the renewing, and the handler runs on."""
    return when(phase[w] == Phase.HANDLING, renewing[w]).then(renewing[w].becomes(False))


@reaction(Call.RENEW, to=(Answer.PERMANENT,))
def lets_the_handler_run_on(w: Worker, i: Item) -> Clause:
    """The lock is lost, and the handler is not told."""
    return when(phase[w] == Phase.HANDLING, renewing[w])


@event(Event.HANDLER_STOPPED)
def stopped_handler_is_acked(w: Worker, i: Item) -> Clause:
    """The handler was told to stop and ended with a result all the same: its completion is sent."""
    return when(phase[w] == Phase.STOPPING, working_on[w] == i).then(
        phase[w].becomes(Phase.ACKING), result[w].becomes(Result.SUCCESS)
    )
