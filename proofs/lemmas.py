"""Lemmas: what must be known of every reachable state so that the promises follow by induction.

A lemma is a term like a promise's, so every reader can check it: the proofs show that it holds in every
reachable state for any number of workers and items, and a search or a monitor can look at it in the
states that it meets. One set of lemmas serves every policy and every choice of faults; where they differ,
a lemma reads the setting.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from peeklock.spec.law.faults import fault
from peeklock.spec.law.policy import (
    AfterExhaustion,
    AfterPermanentRenewal,
    AfterRetryableRenewal,
    AfterUncertain,
    PoisonAck,
    rule,
)
from peeklock.spec.law.state import (
    Last,
    Phase,
    Result,
    Row,
    Trouble,
    acked_by,
    attempts,
    completed_by,
    completions,
    current,
    excused,
    issued,
    last,
    phase,
    poisoned,
    ran,
    renewing,
    result,
    row,
    said_error,
    said_uncertain,
    token,
    trouble,
    working_on,
)
from peeklock.spec.law.store import lock_is_valid
from peeklock.spec.law.worker import one_shot_poison
from peeklock.spec.notation.actions import Item, Worker
from peeklock.spec.notation.terms import ITEM, WORKER, Operand, Term, both, either, every, implies


@frozen
class Lemma:
    """A fact about every reachable state, and what it is for."""

    name: str
    state: Term
    why: str
    """What it is needed for."""


def of_item(body: Callable[[Item], Term]) -> Term:
    """It holds of every item."""
    return every(ITEM, body)


def of_worker(body: Callable[[Worker], Term]) -> Term:
    """It holds of every worker."""
    return every(WORKER, body)


def in_hand(body: Callable[[Worker, Item], Operand]) -> Term:
    """It holds of every worker and the item in its hand."""
    return every(WORKER, lambda w: every(ITEM, lambda i: implies(working_on[w] == i, body(w, i))))


def _phase_in(w: Worker, *phases: Phase) -> Term:
    return either(*(phase[w] == p for p in phases))


def _is_gone(i: Item) -> Term:
    return (row[i] == Row.ACKED) | (row[i] == Row.CANCELLED)


def _tokens() -> tuple[Lemma, ...]:
    return (
        Lemma(
            "the token in hand was issued",
            in_hand(lambda w, i: (token[w] >= 1) & (token[w] <= issued[i])),
            "a fresh token differs from every token in a worker's hand (S6)",
        ),
        Lemma(
            "the row's token is the latest",
            of_item(lambda i: (current[i] == 0) | (current[i] == issued[i])),
            "a superseded token is not the row's (S4, C7)",
        ),
        Lemma(
            "no two workers have the same delivery",
            every(
                WORKER,
                lambda a: every(
                    WORKER,
                    lambda b: every(
                        ITEM,
                        lambda i: either(
                            a == b, working_on[a] != i, working_on[b] != i, token[a] != token[b]
                        ),
                    ),
                ),
            ),
            "a valid lock has one holder, and what one worker does cannot be another's doing (S6, S11, S13)",
        ),
        Lemma(
            "the latest delivery, while in hand, is the row's own or the row is gone",
            in_hand(lambda w, i: implies(token[w] == issued[i], (current[i] == token[w]) | _is_gone(i))),
            "it was not given back unheard (C7)",
        ),
    )


def _completions() -> tuple[Lemma, ...]:
    return (
        Lemma(
            "a completed item is acked",
            of_item(lambda i: implies(completions[i] >= 1, row[i] == Row.ACKED)),
            "a row that an ack can still remove has no completion (S2)",
        ),
        Lemma(
            "an item that a token completed is acked",
            of_item(lambda i: implies(completed_by[i] >= 1, row[i] == Row.ACKED)),
            "a row that an ack can still remove was completed by no token (S1, S13)",
        ),
        Lemma(
            "an acked item was acked by its latest delivery",
            of_item(lambda i: implies(row[i] == Row.ACKED, acked_by[i] == issued[i])),
            "a delivery that an ack has settled is acked or superseded (C7)",
        ),
    )


def _sequence() -> tuple[Lemma, ...]:
    before_the_sequence = (Phase.IDLE, Phase.FETCHED, Phase.HANDLING, Phase.STOPPING, Phase.CANCELLING)
    return (
        Lemma(
            "before the ack sequence no attempt was made",
            of_worker(lambda w: implies(_phase_in(w, *before_the_sequence), attempts[w] == 0)),
            "an ack sequence begins with its first attempt (S9, S10)",
        ),
        Lemma(
            "an ack sequence goes on only after retryable errors",
            of_worker(
                lambda w: implies(
                    phase[w] == Phase.ACKING,
                    either(attempts[w] == 0, last[w] == Last.RETRYABLE) & (attempts[w] < rule.ack_attempts),
                )
            ),
            "the number of attempts, and what an uncertain verdict follows (S8, S9)",
        ),
        Lemma(
            "what decides comes after exhaustion",
            of_worker(
                lambda w: implies(
                    phase[w] == Phase.DECIDING,
                    both(
                        rule.after_exhaustion == AfterExhaustion.ABANDON_DECIDES,
                        attempts[w] == rule.ack_attempts,
                        last[w] == Last.RETRYABLE,
                    ),
                )
            ),
            "the verdict that an abandon's answer gives follows the last retryable error (S8, S10)",
        ),
        Lemma(
            "a cancellation ack follows a renewal error that the policy cancels for",
            of_worker(lambda w: implies(phase[w] == Phase.CANCELLING, _cancelled_by_renewal(w))),
            "a cancellation ack is sent once, and not at all by a policy that does not cancel (S9, S12)",
        ),
        Lemma(
            "a worker abandons for a cause",
            of_worker(lambda w: implies(phase[w] == Phase.ABANDONING, _abandon_cause(w))),
            "S10",
        ),
        Lemma(
            "nothing was called uncertain before its delivery is given up",
            of_worker(lambda w: implies(rule.after_uncertain == AfterUncertain.LEAVE, ~said_uncertain[w])),
            "an uncertain delivery is let go of at once (S7)",
        ),
        Lemma(
            "an infrastructure error is counted when giving up",
            of_worker(lambda w: implies(said_error[w], phase[w] == Phase.ABANDONING)),
            "no ack follows that verdict (S7, S13)",
        ),
        Lemma(
            "before the ack sequence there is no result",
            of_worker(
                lambda w: implies(
                    _phase_in(w, Phase.IDLE, Phase.FETCHED, Phase.HANDLING), result[w] == Result.NONE
                )
            ),
            "no handler runs for poison (C3)",
        ),
    )


def _cancelled_by_renewal(w: Worker) -> Term:
    return either(
        (trouble[w] == Trouble.RENEWAL_RETRYABLE)
        & (rule.after_retryable_renewal == AfterRetryableRenewal.CANCEL),
        (trouble[w] == Trouble.RENEWAL_PERMANENT)
        & (rule.after_permanent_renewal == AfterPermanentRenewal.CANCEL),
    )


def _abandon_cause(w: Worker) -> Term:
    return either(
        (attempts[w] == rule.ack_attempts) & (last[w] == Last.RETRYABLE),
        (attempts[w] == 1) & (last[w] == Last.PERMANENT),
        trouble[w] == Trouble.CANCELLATION_ACK_FAILED,
        trouble[w] == Trouble.HANDLER_MISSING,
        (trouble[w] == Trouble.RENEWAL_PERMANENT)
        & (rule.after_permanent_renewal == AfterPermanentRenewal.ABANDON),
    )


def _runs() -> tuple[Lemma, ...]:
    waits = (Row.ABSENT, Row.DELAYED, Row.READY)
    return (
        Lemma(
            "an item that waits after a run is excused",
            of_item(lambda i: implies(either(*(row[i] == r for r in waits)) & ran[i], excused[i])),
            "its next delivery may run the handler (S11)",
        ),
        Lemma(
            "an expired row is excused",
            of_item(lambda i: implies(row[i] == Row.EXPIRED, excused[i])),
            "its next delivery may run the handler (S11)",
        ),
        Lemma(
            "an item whose delivery in hand is superseded is excused",
            in_hand(lambda w, i: implies(token[w] < issued[i], excused[i])),
            "the handler of a superseded delivery may still start (S11)",
        ),
        Lemma(
            "a delivery whose handler would run again is excused",
            in_hand(lambda w, i: implies((phase[w] == Phase.FETCHED) & ran[i], excused[i])),
            "the handler may be about to start (S11)",
        ),
        Lemma(
            "an item that is given back after a run is excused, unless it is gone",
            in_hand(
                lambda w, i: implies(
                    _phase_in(w, Phase.ABANDONING, Phase.DECIDING) & ran[i],
                    excused[i] | _is_gone(i),
                )
            ),
            "its next delivery may run the handler (S11)",
        ),
        Lemma(
            "an item whose handler was stopped by an error is excused",
            in_hand(
                lambda w, i: implies(
                    _phase_in(w, Phase.STOPPING, Phase.CANCELLING) & (trouble[w] != Trouble.LOCK_OVER),
                    excused[i],
                )
            ),
            "a renewal error came before it is given back (S11)",
        ),
    )


def _under_fewer_faults() -> tuple[Lemma, ...]:
    renewals_succeed = ~fault("renewal-retryable") & ~fault("renewal-permanent")
    locks_last = ~fault("expiry") & ~fault("shutdown")
    poison_is_heard = both(locks_last, ~fault("ack-retryable"), ~fault("ack-permanent")) | (
        rule.poison_ack == PoisonAck.RETRIED
    )
    return (
        Lemma(
            "where renewals do not fail, a stopped handler has lost its lock",
            in_hand(
                lambda w, i: implies(
                    renewals_succeed & _phase_in(w, Phase.STOPPING, Phase.CANCELLING),
                    ~lock_is_valid(i, token[w]),
                )
            ),
            "its cancellation ack cannot commit (S12)",
        ),
        Lemma(
            "a delivery in hand is completed only by an attempt whose response was lost",
            in_hand(
                lambda w, i: implies(
                    completed_by[i] == token[w],
                    both(fault("response-lost"), attempts[w] >= 1, last[w] == Last.RETRYABLE),
                )
            ),
            "a refused first attempt committed nothing (S13)",
        ),
        Lemma(
            "where no ack fails before its effect, one that is repeated has committed or lost its lock",
            in_hand(
                lambda w, i: implies(
                    ~fault("ack-retryable") & (phase[w] == Phase.ACKING) & (attempts[w] >= 1),
                    ~lock_is_valid(i, token[w]),
                )
            ),
            "the sequence cannot be exhausted (S13)",
        ),
        Lemma(
            "where no ack is answered by a retryable error, none is remembered",
            of_worker(
                lambda w: implies(
                    ~fault("ack-retryable") & ~fault("response-lost"), last[w] != Last.RETRYABLE
                )
            ),
            "with a single attempt, too, a permanent error is what came before an abandon (S10)",
        ),
        Lemma(
            "where poison is heard of, a poison ack that is sent once keeps its lock until it is sent",
            in_hand(
                lambda w, i: implies(
                    poison_is_heard & (phase[w] == Phase.ACKING) & one_shot_poison(w),
                    both(
                        token[w] == issued[i],
                        ~poisoned[i],
                        (row[i] == Row.CANCELLED) | (renewing[w] & lock_is_valid(i, token[w])),
                    ),
                )
            ),
            "it is refused only when the item was cancelled (S14)",
        ),
        Lemma(
            "where poison is heard of, an item counted as poison is gone",
            of_item(lambda i: implies(poison_is_heard & poisoned[i], _is_gone(i))),
            "it is not delivered again (S14)",
        ),
    )


LEMMAS = (*_tokens(), *_completions(), *_sequence(), *_runs(), *_under_fewer_faults())
