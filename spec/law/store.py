"""The store's contract: how each call can be answered, and what then changes in the store.

An outcome is atomic: all that it writes, or nothing. ``i`` is the item, ``t`` the token that the caller presents.
"""

from __future__ import annotations

from attrs import evolve

from peeklock.spec.law.faults import FIFO, fault
from peeklock.spec.law.state import Row, attempt_count, completions, current, issued, row
from peeklock.spec.notation.actions import (
    ABANDONS,
    ACKS,
    Answer,
    Call,
    Clause,
    Item,
    Piece,
    Timer,
    Token,
    outcome,
    when,
)
from peeklock.spec.notation.terms import ITEM, Term, either, every, implies


def in_queue(i: Item) -> Term:
    """The item has a row."""
    return either(
        row[i] == Row.DELAYED,
        row[i] == Row.READY,
        row[i] == Row.LOCKED,
        row[i] == Row.EXPIRED,
    )


def fetchable(i: Item) -> Term:
    """visible_at <= now, and unlocked or locked_until <= now."""
    return (row[i] == Row.READY) | (row[i] == Row.EXPIRED)


def is_current(i: Item, t: Token) -> Term:
    """The token is the row's own; its lock may have expired, but nobody has fetched the row since."""
    return in_queue(i) & (current[i] == t)


def lock_is_valid(i: Item, t: Token) -> Term:
    """The token is the row's own and locked_until > now."""
    return (row[i] == Row.LOCKED) & (current[i] == t)


@outcome(Call.ENQUEUE, answer=Answer.OK, takes_effect=True)
def enqueued(i: Item) -> Clause:
    """The item gets a row, visible from now + delay, with attempt count 0."""
    return when(
        row[i] == Row.ABSENT,
    ).then(
        row[i].becomes(Row.DELAYED),
    ).starting(Timer.VISIBILITY)  # fmt: skip


@outcome(Call.FETCH, answer=Answer.OK, takes_effect=True)
def fetched(i: Item) -> Clause:
    """The item is locked for the caller: a fresh token, locked_until = now + lock_timeout, attempt count + 1."""
    return (
        when(
            fetchable(i),
            # The oldest first, in a store that keeps an order.
            implies(FIFO, every(ITEM, lambda j: implies(j < i, ~fetchable(j)))),
        )
        .then(
            row[i].becomes(Row.LOCKED),
            current[i].becomes(issued[i] + 1),
            issued[i].becomes(issued[i] + 1),
            attempt_count[i].becomes(attempt_count[i] + 1),
        )
        .starting(Timer.LOCK)
    )


@outcome(Call.FETCH, answer=Answer.NOTHING)
def nothing_to_fetch() -> Clause:
    """No item is visible and unlocked."""
    return when(
        every(ITEM, lambda j: ~fetchable(j)),
    )


@outcome(Call.FETCH, answer=Answer.RETRYABLE)
def fetch_failed() -> Clause:
    """The store cannot fetch just now."""
    return when(
        fault("fetch-lost"),
    )


@outcome(Call.RENEW, answer=Answer.OK, takes_effect=True)
def renewed(i: Item, t: Token) -> Clause:
    """locked_until = now + extend_for."""
    return when(
        lock_is_valid(i, t),
    ).starting(Timer.LOCK)


@outcome(Call.ACK, answer=Answer.OK, takes_effect=True)
def ack_committed(i: Item, t: Token) -> Clause:
    """The row is deleted and the completion enqueued: both or neither."""
    return when(
        lock_is_valid(i, t),
    ).then(
        row[i].becomes(Row.ACKED),
        current[i].becomes(0),
        completions[i].becomes(completions[i] + 1),
    )


@outcome(Call.CANCELLATION_ACK, answer=Answer.OK, takes_effect=True)
def cancellation_ack_committed(i: Item, t: Token) -> Clause:
    """The row is deleted, and nothing is enqueued."""
    return when(
        lock_is_valid(i, t),
    ).then(
        row[i].becomes(Row.ACKED),
        current[i].becomes(0),
    )


@outcome(Call.ABANDON, answer=Answer.OK, takes_effect=True)
def abandoned(i: Item, t: Token) -> Clause:
    """The lock is cleared and the row visible from now + delay."""
    return when(
        # Also when the lock has expired: the row is still this delivery's until somebody fetches it.
        is_current(i, t),
    ).then(
        row[i].becomes(Row.DELAYED),
        current[i].becomes(0),
    ).starting(Timer.VISIBILITY)  # fmt: skip


@outcome(Call.ABANDON_IGNORING_ATTEMPT, answer=Answer.OK, takes_effect=True)
def abandoned_uncounted(i: Item, t: Token) -> Clause:
    """The lock is cleared, the row visible from now + delay, and the attempt count goes down by one, never below 0."""
    return when(
        is_current(i, t),
    ).then(
        row[i].becomes(Row.DELAYED),
        current[i].becomes(0),
        attempt_count[i].becomes(attempt_count[i] - 1),
    ).starting(Timer.VISIBILITY)  # fmt: skip


@outcome(Call.RENEW, *ACKS, answer=Answer.PERMANENT)
def refused(i: Item, t: Token) -> Clause:
    """The token is not the row's current one, or its lock has expired: nothing changes."""
    return when(
        ~lock_is_valid(i, t),
    )


@outcome(*ABANDONS, answer=Answer.PERMANENT)
def abandon_refused(i: Item, t: Token) -> Clause:
    """The token is not the row's current one: nothing changes."""
    return when(
        ~is_current(i, t),
    )


@outcome(Call.CANCEL, answer=Answer.OK, takes_effect=True)
def cancelled(i: Item) -> Clause:
    """The row is deleted, queued or locked, without a completion."""
    return when(
        fault("cancel"),
        in_queue(i),
    ).then(
        row[i].becomes(Row.CANCELLED),
        current[i].becomes(0),
    )


def _failing(calls: tuple[Call, ...], retryable: Term, spurious: Term) -> tuple[Piece, ...]:
    @outcome(*calls, answer=Answer.RETRYABLE)
    def failed_before_effect(i: Item, t: Token) -> Clause:
        """The store fails before anything took effect."""
        return when(retryable)

    @outcome(*calls, answer=Answer.PERMANENT, spurious=True)
    def refused_wrongly(i: Item, t: Token) -> Clause:
        """The store refuses what it could have done (corruption, a bug): nothing changes."""
        allowed = is_current(i, t) if calls == ABANDONS else lock_is_valid(i, t)
        return when(
            spurious,
            allowed,
        )

    return failed_before_effect, refused_wrongly


def _with_fault(outcome: Piece, name: str, sentence: str, answer: Answer, *faults: Term) -> Piece:
    clause = evolve(outcome.clause, guards=(*faults, *outcome.clause.guards))
    return evolve(
        outcome,
        name=f"{outcome.name}_{name}",
        sentence=f"{outcome.sentence} {sentence}",
        clause=clause,
        answers=(answer,),
    )


def _response_lost(outcome: Piece, *faults: Term) -> Piece:
    return _with_fault(
        outcome, "response_lost", "The caller sees a retryable error.", Answer.RETRYABLE, *faults
    )


OUTCOMES: tuple[Piece, ...] = (
    enqueued,
    fetched,
    nothing_to_fetch,
    fetch_failed,
    _response_lost(fetched, fault("fetch-lost")),
    renewed,
    _response_lost(renewed, fault("renewal-retryable"), fault("response-lost")),
    ack_committed,
    _response_lost(ack_committed, fault("response-lost")),
    cancellation_ack_committed,
    _response_lost(cancellation_ack_committed, fault("response-lost")),
    *(
        _with_fault(
            o,
            "dishonestly",
            "The caller sees a permanent error.",
            Answer.PERMANENT,
            fault("dishonest-permanent"),
        )
        for o in (ack_committed, cancellation_ack_committed)
    ),
    refused,
    abandoned,
    _response_lost(abandoned, fault("abandon-fails"), fault("response-lost")),
    abandoned_uncounted,
    _response_lost(abandoned_uncounted, fault("abandon-fails"), fault("response-lost")),
    abandon_refused,
    *_failing((Call.RENEW,), fault("renewal-retryable"), fault("renewal-permanent")),
    *_failing(ACKS, fault("ack-retryable"), fault("ack-permanent")),
    *_failing(ABANDONS, fault("abandon-fails"), fault("abandon-fails")),
    cancelled,
)
"""Every outcome of every call. ``fetched`` names the token that it issues: it is ``issued + 1``."""
