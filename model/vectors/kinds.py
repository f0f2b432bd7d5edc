"""Kinds of state: what a call and its answer show, in words. Test vectors are to show every kind that can be reached.

A step can show several at once: where its token and the row stand, how long the row waits, what the other item does.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from peeklock.spec.law.state import Row, attempt_count, current, issued
from peeklock.spec.notation.actions import ABANDONS, Answer, Call
from peeklock.spec.reading.evaluate import PLACE
from peeklock.spec.reading.timed_store import PRESENTING, STRANGER, Fault, Moment, Outcome, Step, TokenName

_ATTEMPTS, _CURRENT, _ISSUED = PLACE[attempt_count], PLACE[current], PLACE[issued]

ERROR = "an error"
"""The answer of a store whose refusals cannot be told from errors that may be retried."""

_AT_ANY_TIME = {
    Row.ABSENT: "is not enqueued",
    Row.DELAYED: "waits for its visible_at",
    Row.READY: "is visible and unlocked",
    Row.LOCKED: "is locked",
    Row.EXPIRED: "has an expired lock",
    Row.ACKED: "was acked",
    Row.CANCELLED: "was cancelled",
}
_AT_ITS_TIME = {
    (Row.DELAYED, 1): "is visible in 1 ms",
    (Row.READY, 0): "is visible as of this millisecond",
    (Row.LOCKED, 1): "is locked for 1 ms more",
    (Row.EXPIRED, 0): "has a lock that ends at this millisecond",
}


@frozen
class Kind:
    """A call, what it is answered, and in what kind of state."""

    call: Call
    answer: str
    state: str

    def __str__(self) -> str:
        return f"{self.call.value} -> {self.answer}: {self.state}"


def answer_text(step: Step, outcome: Outcome) -> str:
    """The answer in words, with the fault that made it."""
    answer = outcome.answers[0].value if len(outcome.answers) == 1 else ERROR
    return answer if step.fault is Fault.NONE else f"{answer} {step.fault.value}"


def stands(moment: Moment, i: int, exactly: bool = True) -> str:
    """Where an item stands; exactly, to the millisecond."""
    row, left_ms = moment.row(i), moment.left_ms[i]
    if exactly and left_ms is not None and (row, left_ms) in _AT_ITS_TIME:
        return _AT_ITS_TIME[row, left_ms]
    return _AT_ANY_TIME[row]


def token_kind(moment: Moment, token: TokenName) -> str:
    """What a token is to its item."""
    i, number = token
    record = moment.items[i]
    if token == STRANGER:
        return "a token never issued"
    if number < record[_ISSUED]:
        return "a superseded token"
    if moment.row(i) is Row.ACKED:
        return "the token of the ack"
    if moment.row(i) is Row.CANCELLED:
        return "the last token"
    return "the current token" if record[_CURRENT] == number else "a token given back"


def kinds(moment: Moment, step: Step, outcome: Outcome) -> tuple[Kind, ...]:
    """What a call shows, the most telling first; nothing for a wait."""
    if step.call is None:
        return ()
    answer = answer_text(step, outcome)
    if step.call in PRESENTING:
        states = _of_token(moment, step, outcome)
    else:
        states = {
            Call.FETCH: _of_fetch,
            Call.ENQUEUE: _of_enqueue,
            Call.CANCEL: _of_cancel,
        }[step.call](moment, step, outcome)
    return tuple(Kind(step.call, answer, state) for state in states)


def _others(moment: Moment, i: int) -> list[int]:
    return [j for j in range(moment.enqueued) if j != i]


def _of_token(moment: Moment, step: Step, outcome: Outcome) -> Iterator[str]:
    assert step.token is not None
    i = step.token[0]
    kind = token_kind(moment, step.token)
    if step.fault is Fault.BEFORE_EFFECT:
        yield kind
        return
    yield f"{kind}; the item {stands(moment, i, exactly=kind == 'the current token')}"
    if not outcome.effect:
        return
    if step.fault is Fault.NONE or step.call in ABANDONS:
        yield f"{kind}; the attempt count is {moment.items[i][_ATTEMPTS]}"
    if step.call in ABANDONS:
        yield f"{kind}, {'with a' if step.ms else 'without'} delay"
    left_ms = max(moment.left_ms[i] or 0, 0)
    if step.call is Call.RENEW and step.ms != left_ms:
        yield f"{kind}, for {'less' if step.ms < left_ms else 'longer'} than is left of the lock"
        if moment.renewed[i] and step.fault is Fault.NONE:
            yield f"{kind}, of a lock that was renewed before"
    for j in _others(moment, i):
        yield f"{kind}; another item {stands(moment, j, exactly=False)}"


def _of_fetch(moment: Moment, step: Step, outcome: Outcome) -> Iterator[str]:
    rows = range(moment.enqueued)
    i = outcome.item
    if step.fault is Fault.BEFORE_EFFECT:
        some = any(moment.is_fetchable(j) for j in rows)
        yield "an item could be fetched" if some else "no item could be fetched"
    elif i is None:
        exactly = len(rows) == 1
        found = [f"{'the' if exactly else 'an'} item {stands(moment, j, exactly)}" for j in rows]
        yield " and ".join(found) or "no item was ever enqueued"
    else:
        yield f"the item {stands(moment, i)}"
        attempt, delivery = moment.items[i][_ATTEMPTS] + 1, moment.items[i][_ISSUED] + 1
        yield f"delivery {delivery} of the item, with attempt count {attempt}"
        for j in _others(moment, i):
            age = "older" if j < i else "younger"
            yield f"the item {stands(moment, i, False)}, an {age} one {stands(moment, j, False)}".replace(
                "an younger", "a younger"
            )


def _of_enqueue(moment: Moment, step: Step, outcome: Outcome) -> Iterator[str]:
    delay = "with a delay" if step.ms else "without delay"
    others = [f"; another item {stands(moment, j, exactly=False)}" for j in range(moment.enqueued)]
    yield delay + "".join(others)


def _of_cancel(moment: Moment, step: Step, outcome: Outcome) -> Iterator[str]:
    named = [stands(moment, i, exactly=False) for i in step.items]
    if not named:
        yield "an item that was never enqueued"
    elif len(named) == 1:
        yield f"the item {named[0]}"
        for j in _others(moment, step.items[0]) if outcome.effect else ():
            yield f"the item {named[0]}; another item, not named, {stands(moment, j, exactly=False)}"
    else:
        yield "of the items, " + " and ".join(f"one {state}" for state in named)


CALLS = tuple(Call)
ANSWERS = (*(a.value for a in Answer), ERROR)
