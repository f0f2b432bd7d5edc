"""Narrative: a run of the protocol told in words, for somebody who has not read it.

Every line has a lane: who did what, what the store answered, what became true in the store, and what the worker
now believes. Only what changed is told.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache

from attrs import frozen

from peeklock.spec.actions import Action, Answer, Call, Event, Label, Metric
from peeklock.spec.evaluate import PLACE, Record, State, decoded, predicate
from peeklock.spec.faults import KNOWN_FAULTS, fault
from peeklock.spec.protocol import ACTIONS
from peeklock.spec.state import (
    Phase,
    Result,
    Row,
    attempt_count,
    attempts,
    completions,
    current,
    draining,
    issued,
    phase,
    renewing,
    result,
    row,
    token,
)
from peeklock.spec.terms import Term, Variable, arguments, both, substitute

_BY_NAME = {a.name: a for a in ACTIONS}
_COMPLETIONS = {
    Result.NONE: "nothing",
    Result.SUCCESS: "result",
    Result.APPLICATION_ERROR: "application error",
    Result.POISON: "poison failure",
}


@frozen
class Line:
    """One step, told."""

    who: str
    does: str
    answer: str
    truth: tuple[str, ...]
    belief: tuple[str, ...]
    faults: tuple[str, ...]


def worker_name(w: int) -> str:
    """A, B, C, …"""
    return chr(ord("A") + w) if w < 26 else f"W{w + 1}"


def item_name(i: int) -> str:
    """i1, i2, …"""
    return f"i{i + 1}"


def token_name(i: int, t: int) -> str:
    """The t-th token of item i: t1 for the first token of the first item, t2.1 for that of the second."""
    return f"t{t}" if i == 0 else f"t{i + 1}.{t}"


def get(record: Record, variable: Variable) -> object:
    """A variable's value in a record."""
    return decoded(variable, record[PLACE[variable]])


def _number(record: Record, variable: Variable) -> int:
    return record[PLACE[variable]]


@cache
def faults_in(action: Action) -> tuple[str, ...]:
    """The fault classes that an action of the protocol speaks of."""
    names = {f.name for f in KNOWN_FAULTS}

    def within(term: Term) -> Iterator[str]:
        if term.op == "setting" and str(term.args[0]).removeprefix("fault ") in names:
            yield str(term.args[0]).removeprefix("fault ")
        for argument in arguments(term):
            yield from within(argument)

    general = _BY_NAME.get(action.name, action)
    return tuple(dict.fromkeys(name for guard in general.guards for name in within(guard)))


def faults_needed(action: Action, before: State, w: int, i: int) -> tuple[str, ...]:
    """The fewest fault classes without which the step could not have been taken here."""
    mentioned = faults_in(action)
    if not mentioned:
        return ()
    # What is left of the guards once other settings were fixed is in the action; its faults are in the protocol.
    guards = both(*(g for g in _BY_NAME[action.name].guards if _speaks_of_faults(g)))
    for size in range(len(mentioned) + 1):
        for chosen in itertools.combinations(mentioned, size):
            switches = {fault(f.name): f.name in chosen for f in KNOWN_FAULTS}
            if predicate(substitute(guards, switches))(*before, w, i):
                return chosen
    return mentioned


def _speaks_of_faults(term: Term) -> bool:
    return (term.op == "setting" and str(term.args[0]).startswith("fault ")) or any(
        _speaks_of_faults(a) for a in arguments(term)
    )


def line(action: Action, before: State, after: State, w: int, i: int) -> Line:
    """One step, told."""
    has_worker, has_item = action.worker is not None, action.item is not None
    return Line(
        who=_who(action.label, w if has_worker else None),
        does=_does(action.label, before, w, i),
        answer=_answer(action.label, before, i),
        truth=tuple(_truth(before[1][i], after[1][i], i, before[0][w])) if has_item else (),
        belief=tuple(_belief(action.label, before[0][w], after[0][w])) if has_worker else (),
        faults=faults_needed(action, before, w, i),
    )


def _who(label: Label, w: int | None) -> str:
    if w is not None:
        return f"worker {worker_name(w)}"
    return "orchestrator" if label.call in (Call.ENQUEUE, Call.CANCEL) else "time"


def _does(label: Label, before: State, w: int, i: int) -> str:
    held = token_name(i, _number(before[0][w], token))
    match label.call:
        case Call.ENQUEUE | Call.CANCEL:
            return f"{label.call.value} {item_name(i)}"
        case Call.FETCH:
            return "fetch"
        case Call.RENEW:
            return f"renew {held}"
        case Call.ACK:
            carried = get(before[0][w], result)
            assert isinstance(carried, Result)
            number = _number(before[0][w], attempts) + 1
            return f"ack {held} with the {_COMPLETIONS[carried]}, attempt {number}"
        case Call.CANCELLATION_ACK:
            return f"ack {held} with no completion"
        case Call.ABANDON:
            return f"abandon {held}"
        case Call.ABANDON_IGNORING_ATTEMPT:
            return f"abandon {held}, ignoring the attempt"
        case None:
            assert label.event is not None
            return {
                Event.EXPIRES: f"the lock of {item_name(i)} runs out",
                Event.VISIBLE: f"the delay of {item_name(i)} is over",
            }.get(label.event, label.event.value)


def _answer(label: Label, before: State, i: int) -> str:
    if label.answer is None or label.call in (Call.ENQUEUE, Call.CANCEL):
        return ""
    if label.call is Call.FETCH and label.answer is Answer.OK:
        given = token_name(i, _number(before[1][i], issued) + 1)
        return f"{item_name(i)} under {given}, attempt count {_number(before[1][i], attempt_count) + 1}"
    return label.answer.value


def _truth(before: Record, after: Record, i: int, holder: Record) -> Iterator[str]:
    name, was, now = item_name(i), get(before, row), get(after, row)
    held = token_name(i, _number(after, current))
    if was != now or before[PLACE[current]] != after[PLACE[current]]:
        assert isinstance(now, Row)
        yield row_in_words(name, now, held)
    if before[PLACE[completions]] != after[PLACE[completions]]:
        carried = get(holder, result)
        assert isinstance(carried, Result)
        yield f"{name}'s {_COMPLETIONS[carried]} is enqueued"
    elif now is Row.ACKED and was is not Row.ACKED:
        yield f"nothing is enqueued for {name}"
    if before[PLACE[attempt_count]] > after[PLACE[attempt_count]]:
        yield f"{name}'s attempt count is {after[PLACE[attempt_count]]}"


def _belief(label: Label, before: Record, after: Record) -> Iterator[str]:
    if label.counts is not None:
        yield f"counts {_article(label.counts)}"
    was, now = get(before, phase), get(after, phase)
    if was != now:
        assert isinstance(now, Phase)
        yield now.value
    if get(after, draining) and not get(before, draining):
        yield "takes no new work and stops renewing"
    elif was == now and get(before, renewing) and not get(after, renewing):
        yield "stops renewing"
    if label.call is Call.ACK and was == now and label.answer is Answer.RETRYABLE:
        yield "will send the same ack again"


def _article(metric: Metric) -> str:
    if metric in (Metric.UNCERTAIN, Metric.POISON):
        return f"the delivery as {metric.value}"
    return f"an {metric.value}" if metric.value[0] in "aeiou" else f"a {metric.value}"


def row_in_words(item: str, where: Row, token: str) -> str:
    """Where an item's row stands, as a sentence about the item; ``token`` is the row's own."""
    return {
        Row.ABSENT: f"{item} is not enqueued",
        Row.DELAYED: f"{item} waits for its delay",
        Row.READY: f"{item} is visible and unlocked",
        Row.LOCKED: f"{item} is locked under {token}",
        Row.EXPIRED: f"{item}'s lock {token} has expired",
        Row.ACKED: f"{item}'s row is deleted",
        Row.CANCELLED: f"{item}'s row is deleted by the orchestrator",
    }[where]


def describe_item(record: Record, name_token: Callable[[int], str]) -> str:
    """Where an item stands, in words."""
    where = get(record, row)
    assert isinstance(where, Row)
    held = f" ({name_token(record[PLACE[current]])})" if record[PLACE[current]] else ""
    delivered = f", completions {record[PLACE[completions]]}" if record[PLACE[completions]] else ""
    return f"{where.value}{held}, attempt count {record[PLACE[attempt_count]]}{delivered}"


def describe_worker(record: Record) -> str:
    """What a worker is at, in words."""
    at = get(record, phase)
    assert isinstance(at, Phase)
    made = record[PLACE[attempts]]
    tried = f", {made} attempt{'s' if made > 1 else ''} made" if made else ""
    return at.value + tried + (", shutting down" if get(record, draining) else "")
