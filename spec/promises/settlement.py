"""Promises S1 to S14: what settlement keeps, and what the policies ``before`` and ``retry`` do not."""

from __future__ import annotations

from peeklock.spec.law.policy import AfterPermanentRenewal
from peeklock.spec.law.state import (
    STORE,
    Last,
    Phase,
    Result,
    Row,
    Trouble,
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
    result,
    row,
    said_error,
    said_uncertain,
    token,
    trouble,
    working_on,
)
from peeklock.spec.law.store import in_queue, is_current, lock_is_valid
from peeklock.spec.notation.actions import ABANDONS, ACKS, Answer, Call, Event, Item, Label, Metric, Worker
from peeklock.spec.notation.terms import FALSE, ITEM, TRUE, WORKER, Term, after, both, either, every, implies
from peeklock.spec.promises.history import PROMISED_ATTEMPTS
from peeklock.spec.promises.promise import (
    Promise,
    Step,
    always,
    any_step,
    at,
    calling,
    causes,
    counting,
    happening,
)
from peeklock.spec.promises.worker_order import is_uncertain, sent_once

PRESENTING = (Call.RENEW, *ACKS, *ABANDONS)
"""The calls that present a token."""

commits = calling(Call.ACK, effect=True)


def unchanged(j: Item) -> Term:
    """The step leaves the store as it is about this item."""
    return both(*(after(v[j]) == v[j] for v in STORE))


S1 = Promise(
    "S1",
    "never two completions per token",
    (
        at(
            "a token that has enqueued a completion enqueues no other",
            commits,
            lambda s: (completed_by[s.i] != token[s.w]) & (after(completed_by[s.i]) == token[s.w]),
        ),
    ),
    about=commits,
)

S2 = Promise(
    "S2",
    "never two completions per item",
    (always("an item has at most one completion", every(ITEM, lambda i: completions[i] <= 1)),),
)


def _with_its_row(s: Step) -> Term:
    removed = in_queue(s.i) & (after(row[s.i]) == Row.ACKED)
    others = every(ITEM, lambda j: (j == s.i) | (after(completions[j]) == completions[j]))
    return both(removed, after(completions[s.i]) == completions[s.i] + 1, others)


S3 = Promise(
    "S3",
    "a completion is enqueued exactly when its row is removed by an ack that carries it",
    (
        at(
            "an ack that takes effect removes the row and enqueues its completion, both or neither",
            commits,
            _with_its_row,
        ),
        at(
            "a cancellation ack that takes effect removes the row",
            calling(Call.CANCELLATION_ACK, effect=True),
            lambda s: in_queue(s.i) & (after(row[s.i]) == Row.ACKED),
        ),
        at(
            "nothing else enqueues a completion",
            lambda label: not commits(label),
            lambda s: every(ITEM, lambda j: after(completions[j]) == completions[j]),
        ),
        at(
            "nothing but an ack that takes effect removes a row as acked",
            lambda label: not calling(*ACKS, effect=True)(label),
            lambda s: every(ITEM, lambda j: implies(after(row[j]) == Row.ACKED, row[j] == Row.ACKED)),
        ),
    ),
)


def _is_fresh(j: Item) -> Term:
    return (after(current[j]) > issued[j]) & (after(issued[j]) == after(current[j]))


S4 = Promise(
    "S4",
    "tokens are never reused; a settled token never becomes valid again",
    (
        at(
            "a token that a row gets is one that was never issued",
            any_step,
            lambda s: every(
                ITEM, lambda j: either(after(current[j]) == current[j], after(current[j]) == 0, _is_fresh(j))
            ),
        ),
        at(
            "a row that is gone stays gone",
            any_step,
            lambda s: every(
                ITEM,
                lambda j: implies((row[j] == Row.ACKED) | (row[j] == Row.CANCELLED), after(row[j]) == row[j]),
            ),
        ),
        always(
            "a row that is unlocked or gone has no token",
            every(ITEM, lambda i: either(row[i] == Row.LOCKED, row[i] == Row.EXPIRED, current[i] == 0)),
        ),
    ),
)


def _unless(allowed: Term, s: Step) -> Term:
    """Where the call is not allowed, it is refused and changes nothing."""
    accepted = s.label.answer is Answer.OK or s.label.takes_effect
    return allowed | (FALSE if accepted else unchanged(s.i))


S5 = Promise(
    "S5",
    "a call with a token that is not current changes nothing",
    (
        at(
            "a superseded or settled token is refused and changes nothing",
            calling(*PRESENTING),
            lambda s: _unless(is_current(s.i, token[s.w]), s),
        ),
        at(
            "an ack or a renewal after the lock's end is refused and changes nothing",
            calling(Call.RENEW, *ACKS),
            lambda s: _unless(lock_is_valid(s.i, token[s.w]), s),
        ),
        at(
            "a call changes no other item",
            calling(*PRESENTING),
            lambda s: every(ITEM, lambda j: (j == s.i) | unchanged(j)),
        ),
    ),
)


def _lock_is_not_taken(s: Step) -> Term:
    def may_end(j: Item) -> Term:
        if s.label.call is Call.CANCEL:
            return j == s.i
        return (j == s.i) & (token[s.w] == current[j]) if s.label.call in PRESENTING else FALSE

    return every(
        ITEM, lambda j: implies((row[j] == Row.LOCKED) & (after(current[j]) != current[j]), may_end(j))
    )


S6 = Promise(
    "S6",
    "at any time at most one delivery of an item is locked",
    (
        always(
            "two workers never hold a valid lock of the same item",
            every(
                ITEM,
                lambda i: every(
                    WORKER,
                    lambda a: every(
                        WORKER,
                        lambda b: either(
                            a == b,
                            ~((working_on[a] == i) & lock_is_valid(i, token[a])),
                            ~((working_on[b] == i) & lock_is_valid(i, token[b])),
                        ),
                    ),
                ),
            ),
        ),
        at(
            "a lock ends by its own token, its expiry or the orchestrator, never by another fetch",
            any_step,
            _lock_is_not_taken,
        ),
    ),
)

uncertain = counting(Metric.UNCERTAIN)
refused = calling(Call.ACK, answers=(Answer.PERMANENT,))


def _is_said(s: Step) -> Term:
    if uncertain(s.label):
        return TRUE
    return either(phase[s.w] != Phase.ACKING, sent_once(s), ~is_uncertain(s))


S7 = Promise(
    "S7",
    "an uncertain verdict is final, counted once, never also an infrastructure error",
    (
        at("no later call presents that token", calling(*PRESENTING), lambda s: ~said_uncertain[s.w]),
        at("what the policy calls uncertain is counted so", refused, _is_said),
        at("it is counted once", uncertain, lambda s: ~said_uncertain[s.w]),
        at("it is not an infrastructure error before", uncertain, lambda s: ~said_error[s.w]),
        at(
            "it is not an infrastructure error afterwards",
            counting(Metric.INFRASTRUCTURE_ERROR),
            lambda s: ~said_uncertain[s.w],
        ),
    ),
    about=uncertain,
    silent_in=("before",),
)

S8 = Promise(
    "S8",
    "uncertain only after a retryable error in the same sequence",
    (
        at(
            "an attempt before was answered by a retryable error",
            uncertain,
            lambda s: last[s.w] == Last.RETRYABLE,
        ),
    ),
    about=uncertain,
    silent_in=("before",),
)


def _same_sequence(s: Step) -> Term:
    goes_on = (phase[s.w] == Phase.ACKING) & (after(phase[s.w]) == Phase.ACKING)
    same = both(*(after(v[s.w]) == v[s.w] for v in (token, working_on, result)))
    return implies(goes_on, same)


def _is_in_order(w: Worker) -> Term:
    goes_well = either(phase[w] == Phase.FETCHED, phase[w] == Phase.HANDLING, phase[w] == Phase.ACKING)
    return implies(goes_well, trouble[w] == Trouble.NONE) & implies(
        phase[w] == Phase.ACKING, result[w] != Result.NONE
    )


_REMEMBERED = {Answer.RETRYABLE: Last.RETRYABLE, Answer.PERMANENT: Last.PERMANENT}


def worker_steps(label: Label) -> bool:
    """The steps that a worker takes with an item in its hand."""
    return label.call in PRESENTING or (
        label.event is not None and label.event not in (Event.VISIBLE, Event.EXPIRES)
    )


def _attempts(s: Step) -> Term:
    over = after(phase[s.w]) == Phase.IDLE
    if s.label.call is not Call.ACK:
        return over | ((after(attempts[s.w]) == attempts[s.w]) & (after(last[s.w]) == last[s.w]))
    if s.label.answer is None or s.label.answer is Answer.OK:
        return over
    again = TRUE if s.label.answer is Answer.RETRYABLE else after(phase[s.w]) != Phase.ACKING
    counted = (after(attempts[s.w]) == attempts[s.w] + 1) & (after(last[s.w]) == _REMEMBERED[s.label.answer])
    return over | (again & counted)


S9 = Promise(
    "S9",
    "at most five attempts, one token, one completion; a cancellation ack has one attempt",
    (
        at("no sixth attempt begins", calling(Call.ACK), lambda s: attempts[s.w] < PROMISED_ATTEMPTS),
        at("every attempt has the same token and completion", calling(Call.ACK), _same_sequence),
        always("what is sent is a completion, and nothing went wrong before it", every(WORKER, _is_in_order)),
        at(
            "every attempt is counted, once, with its answer; another one follows a retryable error only",
            worker_steps,
            _attempts,
        ),
        at(
            "a cancellation ack is not repeated",
            calling(Call.CANCELLATION_ACK),
            lambda s: (
                (trouble[s.w] != Trouble.CANCELLATION_ACK_FAILED) & (after(phase[s.w]) != Phase.CANCELLING)
            ),
        ),
    ),
    about=calling(*ACKS),
)


def _abandon_has_a_cause(s: Step) -> Term:
    causes = [
        (attempts[s.w] == PROMISED_ATTEMPTS) & (last[s.w] == Last.RETRYABLE),
        (attempts[s.w] == 1) & (last[s.w] == Last.PERMANENT),
        trouble[s.w] == Trouble.CANCELLATION_ACK_FAILED,
        trouble[s.w] == Trouble.HANDLER_MISSING,
    ]
    if s.policy.after_permanent_renewal is AfterPermanentRenewal.ABANDON:
        causes.append(trouble[s.w] == Trouble.RENEWAL_PERMANENT)
    return either(*causes)


S10 = Promise(
    "S10",
    "abandon only after exhaustion, a permanent first attempt, a failed cancellation ack "
    "(or, without one, a permanent renewal error), a missing handler",
    (
        at(
            "five retryable errors, a permanent first answer, a failed cancellation ack (or, where there is none, a "
            "permanent renewal error) or a missing handler came before",
            calling(*ABANDONS),
            _abandon_has_a_cause,
        ),
    ),
    about=calling(*ABANDONS),
    broken_by={"before": causes("ack-retryable", "response-lost")},
)

S11 = Promise(
    "S11",
    "no avoidable re-execution: a second run of an item's handler implies a crash, shutdown, expiry, exhaustion, "
    "a permanent error or a renewal error, never only retryable ack failures",
    (
        at(
            "something other than a retryable ack failure came before the second run",
            happening(Event.HANDLER_STARTS),
            lambda s: implies(ran[s.i], excused[s.i]),
        ),
    ),
    about=happening(Event.HANDLER_STARTS),
    broken_by={"before": causes("ack-retryable")},
)

S12 = Promise(
    "S12",
    "no lost work: an item that the orchestrator did not cancel is in the queue or has its completion",
    (
        always(
            "an item that is neither in the queue nor cancelled has its completion",
            every(
                ITEM,
                lambda i: either(
                    row[i] == Row.ABSENT,
                    in_queue(i),
                    row[i] == Row.CANCELLED,
                    completions[i] >= 1,
                ),
            ),
        ),
    ),
    broken_by={
        "before": causes("renewal-retryable", "renewal-permanent"),
        "retry": causes("renewal-retryable", "renewal-permanent"),
    },
)

S13 = Promise(
    "S13",
    "a confirmed failure is one: an infrastructure error is never counted for a delivery whose completion was enqueued",
    (
        at(
            "no completion was enqueued under that token",
            counting(Metric.INFRASTRUCTURE_ERROR),
            lambda s: (
                (after(completed_by[s.i]) != token[s.w]) & (after(said_error[s.w]) | (after(token[s.w]) == 0))
            ),
        ),
        at("no completion is enqueued under it afterwards", commits, lambda s: ~said_error[s.w]),
    ),
    about=counting(Metric.INFRASTRUCTURE_ERROR),
    broken_by={"before": causes("response-lost"), "retry": causes("ack-retryable+response-lost")},
)

poison = counting(Metric.POISON)
_UNHEARD = causes("ack-retryable", "ack-permanent", "expiry", "shutdown")

S14 = Promise(
    "S14",
    "poison is counted at most once per item",
    (
        at(
            "the item was not counted as poison before",
            poison,
            lambda s: ~poisoned[s.i] & after(poisoned[s.i]),
        ),
    ),
    about=poison,
    broken_by={"before": _UNHEARD, "retry": _UNHEARD},
)

PROMISES = (S1, S2, S3, S4, S5, S6, S7, S8, S9, S10, S11, S12, S13, S14)
