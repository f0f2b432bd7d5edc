"""Further promises, C1 to C7: the store's contract and the worker's duties, each said once more from outside.

They are what notices a change of the protocol that S1 to S14 have no opinion on.
"""

from __future__ import annotations

from peeklock.spec.law.faults import DISHONEST, FIFO, fault
from peeklock.spec.law.life import allowed_by, is_in
from peeklock.spec.law.policy import rule, settings_of
from peeklock.spec.law.state import (
    BELIEF,
    Phase,
    Result,
    Row,
    attempt_count,
    current,
    draining,
    issued,
    phase,
    renewing,
    result,
    row,
    token,
    working_on,
)
from peeklock.spec.law.store import fetchable, in_queue, is_current, lock_is_valid
from peeklock.spec.notation.actions import ABANDONS, ACKS, Answer, Call, Event, Item, Label, Metric, Worker
from peeklock.spec.notation.terms import (
    FALSE,
    ITEM,
    TRUE,
    WORKER,
    Term,
    after,
    before,
    both,
    either,
    every,
    implies,
    substitute,
)
from peeklock.spec.promises.promise import Promise, Step, always, at, calling, counting, happening
from peeklock.spec.promises.settlement import PRESENTING, unchanged, worker_steps
from peeklock.spec.promises.worker_order import phases_in_order, renewing_goes_on, trouble_is_remembered

takes = calling(Call.FETCH, effect=True)
delivers = calling(Call.FETCH, answers=(Answer.OK,))

C1 = Promise(
    "C1",
    "an item is handed out only when it is visible and not locked, the oldest first",
    (
        at("the row was visible, and unlocked or expired", takes, lambda s: fetchable(s.i)),
        at(
            "in a store that keeps an order, no older row could have been handed out",
            takes,
            lambda s: implies(FIFO, every(ITEM, lambda j: implies(j < s.i, ~fetchable(j)))),
        ),
        at(
            "the row is locked now, under the token that was issued",
            takes,
            lambda s: _locked_under_new_token(s.i),
        ),
        at(
            "nothing is answered only when there is nothing to hand out",
            calling(Call.FETCH, answers=(Answer.NOTHING,)),
            lambda s: every(ITEM, lambda j: ~fetchable(j)),
        ),
    ),
    about=takes,
)


def _locked_under_new_token(i: Item) -> Term:
    return both(
        after(row[i]) == Row.LOCKED, after(current[i]) == issued[i] + 1, after(issued[i]) == issued[i] + 1
    )


def _counted(s: Step) -> Term:
    now = attempt_count[s.i] + 1 if s.label.call is Call.FETCH else attempt_count[s.i] - 1
    return after(attempt_count[s.i]) == now


def _changes_the_count(label: Label) -> bool:
    return takes(label) or calling(Call.ABANDON_IGNORING_ATTEMPT, effect=True)(label)


C2 = Promise(
    "C2",
    "the attempt count is the number of deliveries, less those that were given back uncounted",
    (
        at(
            "a fetch adds one; an abandon that ignores the attempt takes one away, never below 0",
            _changes_the_count,
            _counted,
        ),
        at(
            "nothing else changes it",
            lambda label: not _changes_the_count(label),
            lambda s: every(ITEM, lambda j: after(attempt_count[j]) == attempt_count[j]),
        ),
    ),
)

C3 = Promise(
    "C3",
    "an item is poison exactly when its attempt count is over max_attempts; no handler runs for poison",
    (
        at(
            "the worker prepares a poison failure exactly when the attempt count says so",
            delivers,
            lambda s: (after(result[s.w]) == Result.POISON) == (rule.max_attempts < attempt_count[s.i] + 1),
        ),
        at(
            "the handler starts for an item that is no poison",
            happening(Event.HANDLER_STARTS),
            lambda s: result[s.w] == Result.NONE,
        ),
        at(
            "poison is counted for a poison failure",
            counting(Metric.POISON),
            lambda s: result[s.w] == Result.POISON,
        ),
    ),
    about=delivers,
)

failed = calling(Call.FETCH, *PRESENTING, answers=(Answer.RETRYABLE, Answer.PERMANENT))


def _allowed(s: Step) -> Term:
    call = is_current if s.label.call in ABANDONS else lock_is_valid
    return call(s.i, token[s.w])


def _has_a_reason(s: Step) -> Term:
    retryable, spurious = {
        Call.FETCH: ("fetch-lost", ""),
        Call.RENEW: ("renewal-retryable", "renewal-permanent"),
        **dict.fromkeys(ACKS, ("ack-retryable", "ack-permanent")),
        **dict.fromkeys(ABANDONS, ("abandon-fails", "abandon-fails")),
    }[s.label.call or Call.FETCH]
    if s.label.answer is Answer.PERMANENT:
        return fault(DISHONEST.name) if s.label.takes_effect else ~_allowed(s) | fault(spurious)
    if s.label.takes_effect and s.label.call is not Call.FETCH:
        return fault("response-lost") & (TRUE if s.label.call in ACKS else fault(retryable))
    return fault(retryable)


C4 = Promise(
    "C4",
    "an answer is honest: ok and permanent say what happened, and an error without effect changes nothing",
    (
        at(
            "a call that had no effect changed nothing",
            lambda label: label.call is not None and not label.takes_effect,
            lambda s: every(ITEM, unchanged),
        ),
        at("an error is a refusal with a reason, or a fault that is switched on", failed, _has_a_reason),
        at(
            "a call that took effect was one that the token allowed",
            calling(*PRESENTING, effect=True),
            lambda s: _allowed(s),
        ),
        at(
            "a call that answers permanent took no effect",
            calling(*Call, answers=(Answer.PERMANENT,), effect=True),
            lambda s: FALSE,
        ),
        at(
            "an abandon that is accepted gives the row back",
            calling(*ABANDONS, effect=True),
            lambda s: (after(row[s.i]) == Row.DELAYED) & (after(current[s.i]) == 0),
        ),
        at(
            "a cancellation leaves no row and no completion",
            calling(Call.CANCEL, effect=True),
            lambda s: after(row[s.i]) == Row.CANCELLED,
        ),
        at(
            "an ack that is accepted leaves no row",
            calling(*ACKS, effect=True),
            lambda s: after(row[s.i]) == Row.ACKED,
        ),
        at(
            "an item is enqueued once",
            calling(Call.ENQUEUE),
            lambda s: (row[s.i] == Row.ABSENT) & (after(row[s.i]) == Row.DELAYED),
        ),
    ),
)


def _goes_on(label: Label) -> bool:
    return worker_steps(label) and label.call is not Call.RENEW and label.event is not Event.SHUTDOWN


def _is_about_the_hand(s: Step) -> Term:
    same_item = TRUE if s.item is None else working_on[s.w] == s.i
    return same_item & ((after(token[s.w]) == token[s.w]) | (after(token[s.w]) == 0))


OF_A_DELIVERY = tuple(v for v in BELIEF if v not in (draining, working_on))
"""What a worker believes about the delivery in its hand, but for the item itself."""

C5 = Promise(
    "C5",
    "a worker takes its steps in order, about the item in its hand, fetches when it has none, and renews its lock "
    "until it shuts down, tells its handler to stop or gives the item up",
    (
        at(
            "a worker that fetches has nothing in hand and is not shutting down",
            calling(Call.FETCH),
            lambda s: (phase[s.w] == Phase.IDLE) & ~draining[s.w],
        ),
        at(
            "what was handed out is in the hand of the worker: that item, under that token",
            delivers,
            lambda s: (after(working_on[s.w]) == s.i) & (after(token[s.w]) == after(current[s.i])),
        ),
        at("the phases follow each other as the answers and the policy say", worker_steps, phases_in_order),
        at("a step is about the item and the token in hand", worker_steps, _is_about_the_hand),
        at("what went wrong is remembered as what it was", worker_steps, trouble_is_remembered),
        at(
            "renewing ends by a renewal error, a shutdown or with the work, and does not begin again",
            _goes_on,
            renewing_goes_on,
        ),
        always(
            "a handler has its lock renewed, but for a shutdown",
            every(
                WORKER,
                lambda w: implies(
                    (phase[w] == Phase.FETCHED) | (phase[w] == Phase.HANDLING), renewing[w] | draining[w]
                ),
            ),
        ),
        always("no worker that drains keeps its lock", every(WORKER, lambda w: ~(draining[w] & renewing[w]))),
        always(
            "no worker keeps the lock of an item that it is giving up",
            every(
                WORKER,
                lambda w: implies(
                    renewing[w],
                    either(phase[w] == Phase.FETCHED, phase[w] == Phase.HANDLING, phase[w] == Phase.ACKING),
                ),
            ),
        ),
        always(
            "a worker has an item in hand exactly when it is not idle",
            every(WORKER, lambda w: (phase[w] == Phase.IDLE) == every(ITEM, lambda i: working_on[w] != i)),
        ),
        always(
            "a worker that is idle remembers nothing of a delivery",
            every(
                WORKER,
                lambda w: implies(phase[w] == Phase.IDLE, both(*(v[w] == v.initial for v in OF_A_DELIVERY))),
            ),
        ),
        at("a renewal is a live worker's", calling(Call.RENEW), lambda s: renewing[s.w] & ~draining[s.w]),
    ),
)

by_time = happening(Event.VISIBLE, Event.EXPIRES)

_FAULTY = {Event.CRASH: "crash", Event.SHUTDOWN: "shutdown", Event.LOCK_OVER: "renewal-retryable"}


def _is_switched_on(s: Step) -> Term:
    assert s.label.event is not None
    return fault(_FAULTY[s.label.event])


def _keeps(w: Worker, i: Item) -> Term:
    return both(working_on[w] == i, token[w] == current[i], renewing[w])


C6 = Promise(
    "C6",
    "the store changes by calls and by time only; a crash or a shutdown leaves the row as it is",
    (
        at(
            "what goes wrong is a fault that is switched on",
            lambda label: label.event in _FAULTY,
            _is_switched_on,
        ),
        at(
            "the orchestrator cancels what is in the queue, where it may",
            calling(Call.CANCEL),
            lambda s: fault("cancel") & in_queue(s.i),
        ),
        at(
            "a lock that is renewed does not run out, unless something holds the renewals up",
            happening(Event.EXPIRES),
            lambda s: fault("expiry") | every(WORKER, lambda w: ~_keeps(w, s.i)),
        ),
        at(
            "a shutdown begins once, and its grace ends when it has begun",
            happening(Event.SHUTDOWN, Event.GRACE_ENDS),
            lambda s: (
                (draining[s.w] == (s.label.event is Event.GRACE_ENDS))
                & (after(draining[s.w]) != draining[s.w])
            ),
        ),
        at(
            "what a worker does by itself changes nothing in the store",
            lambda label: label.event is not None and not by_time(label),
            lambda s: every(ITEM, unchanged),
        ),
        at(
            "time makes a delayed row visible and a locked one expired, and changes nothing else",
            by_time,
            lambda s: _time_passes(s),
        ),
        at(
            "a worker that crashed or was shut down has nothing in hand",
            happening(Event.CRASH, Event.GRACE_ENDS),
            lambda s: (after(phase[s.w]) == Phase.IDLE) & ~after(draining[s.w]),
        ),
    ),
)


def _time_passes(s: Step) -> Term:
    was, now = (Row.DELAYED, Row.READY) if s.label.event is Event.VISIBLE else (Row.LOCKED, Row.EXPIRED)
    rest = both(*(after(v[s.i]) == v[s.i] for v in (current, issued, attempt_count)))
    others = every(ITEM, lambda j: (j == s.i) | unchanged(j))
    return both(row[s.i] == was, after(row[s.i]) == now, rest, others)


def _verdict_fits_the_truth(s: Step) -> Term:
    assert s.label.counts is not None
    held = before(token[s.w])
    lives = allowed_by(s.label.counts, s.policy)
    truth = either(*(after(is_in(life, s.i, held)) for life in lives))
    return substitute(truth, settings_of(s.policy))


def _says_what_it_sent(s: Step) -> Term:
    return result[s.w] == (Result.SUCCESS if s.label.counts is Metric.SUCCESS else Result.APPLICATION_ERROR)


_VERDICTS_ON = {
    Answer.OK: (Metric.SUCCESS, Metric.APPLICATION_ERROR),
    Answer.RETRYABLE: (Metric.INFRASTRUCTURE_ERROR,),
    Answer.PERMANENT: (Metric.INFRASTRUCTURE_ERROR, Metric.UNCERTAIN),
}


def _follows_from_the_answer(s: Step) -> Term:
    verdicts = () if s.label.answer is None else _VERDICTS_ON.get(s.label.answer, ())
    if s.label.call in ABANDONS:
        verdicts = (Metric.INFRASTRUCTURE_ERROR if s.label.answer is Answer.OK else Metric.UNCERTAIN,)
    return TRUE if s.label.counts in (*verdicts, Metric.POISON) else FALSE


def _is_counted(s: Step) -> Term:
    goes_on = either(after(phase[s.w]) == Phase.ACKING, after(phase[s.w]) == Phase.DECIDING)
    return ~goes_on if s.label.counts is not None else goes_on


C7 = Promise(
    "C7",
    "a verdict of the worker is one that the truth allows, and every ack sequence ends with one",
    (
        at("a sequence that ends is counted, and no other", calling(Call.ACK), _is_counted),
        at("what is counted follows from the answer", counting(*Metric), _follows_from_the_answer),
        at(
            "what is counted is what was sent",
            counting(Metric.SUCCESS, Metric.APPLICATION_ERROR),
            _says_what_it_sent,
        ),
        at(
            "success and application error are counted for a delivery that is acked",
            counting(Metric.SUCCESS, Metric.APPLICATION_ERROR),
            _verdict_fits_the_truth,
        ),
        at(
            "uncertain is counted for a delivery that is acked, expired, cancelled or still locked, "
            "or was given back unheard",
            counting(Metric.UNCERTAIN),
            _verdict_fits_the_truth,
        ),
    ),
)

PROMISES = (C1, C2, C3, C4, C5, C6, C7)
