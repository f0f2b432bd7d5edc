"""Lines of a trace file that are each the beginning or the end of a call: a run of a store under concurrent calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from peeklock.harness.linear.history import Invoke, Outcome, Return
from peeklock.harness.linear.item_model import NEVER_MS, StoreAnswer, StoreCall
from peeklock.harness.monitor.world import STARTS_TIMER
from peeklock.harness.trace.line import Enqueued, Line, Times, quoted
from peeklock.spec.notation.actions import Answer, Call

OF_BEGINNINGS = ("id", "client", "invoke", "item", "items", "token", "lasts_ms", "t_ms")
OF_ENDS = ("id", "client", "return", "answer", "item", "items", "token", "attempt", "t_ms")
ENDINGS = {
    (Outcome.OK, None): Answer.OK,
    (Outcome.OK, Answer.OK): Answer.OK,
    (Outcome.OK, Answer.NOTHING): Answer.NOTHING,
    (Outcome.FAIL, None): None,
    (Outcome.FAIL, Answer.RETRYABLE): None,
    (Outcome.FAIL, Answer.PERMANENT): Answer.PERMANENT,
    (Outcome.INFO, None): None,
    (Outcome.INFO, Answer.RETRYABLE): Answer.RETRYABLE,
}
"""How a call may end, by ``return`` and ``answer``, and the answer that is judged; None where there is none."""


@frozen
class _Open:
    call: Call
    client: str | None
    items: tuple[str, ...]


def is_of_call(line: Line) -> bool:
    """Is it the beginning or the end of a call?"""
    return "invoke" in line.data or "return" in line.data


def calls(path: Path, lines: Iterator[Line], times: Times) -> Iterator[Invoke | Return]:
    """The beginnings and ends of calls; ``TraceError`` for a line that is wrong.

    The file is read once before, for the calls that never end, so that nothing has to wait for their ends.
    """
    endless = _endless(path)
    running: dict[int, _Open] = {}
    enqueued = Enqueued()
    latest = 0
    for line in lines:
        if not is_of_call(line):
            raise line.wrong("allowed in a file of calls that begin and end: invoke, return")
        number = line.typed("id", int)
        if number is None:
            raise line.wrong("no id; allowed: a whole number that the call's other line has too")
        if "invoke" in line.data:
            if number <= latest:
                again = (
                    "is open already"
                    if number in running
                    else f"is not above {latest}, which was used before"
                )
                raise line.wrong(f"id {number} {again}; allowed: ids that grow from call to call", "id")
            latest = number
            called = _begins(line, times)
            if called.call is Call.ENQUEUE:
                enqueued.refuse(line, called.items[0], "item")
            running[number] = _Open(called.call, called.caller or None, called.items)
            yield Invoke(number, called, number not in endless)
            continue
        if number not in running:
            was = "ended before" if number <= latest else "never began"
            raise line.wrong(f"the call {number} {was}; allowed: one return for each invoke, after it", "id")
        begun = running.pop(number)
        ended = _ends(line, times, number, begun)
        if begun.call is Call.ENQUEUE and ended.outcome is Outcome.OK and ended.result.answer is Answer.OK:
            enqueued.refuse(line, begun.items[0], "return")  # both may have been open
            enqueued.add(line, begun.items[0])
        yield ended


def _endless(path: Path) -> frozenset[int]:
    """The calls that never end, or not before an id is used again. What is wrong is said when it is come to."""
    found: set[int] = set()
    latest = 0
    with path.open(encoding="utf-8", errors="replace") as file:
        for text in file:
            try:
                data = json.loads(text)
                number = data["id"]
                if "invoke" not in data:
                    found.discard(number)
                    continue
                if number <= latest:
                    break
                latest = number
                found.add(number)
            except (ValueError, TypeError, KeyError, RecursionError):
                continue
    return frozenset(found)


def _begins(line: Line, times: Times) -> StoreCall:
    line.known(OF_BEGINNINGS)
    call = line.one_of("invoke", Call)
    assert call is not None
    item, items, token = line.typed("item", str), line.texts("items"), line.typed("token", str)
    items = items if item is None else (item, *items)
    if call is Call.ENQUEUE and len(items) != 1:
        raise line.wrong("enqueue needs one item", "invoke")
    if call is Call.CANCEL and not items:
        raise line.wrong("cancel needs an item or items", "invoke")
    if call not in (Call.ENQUEUE, Call.CANCEL, Call.FETCH) and token is None and len(items) != 1:
        raise line.wrong(f"{call.value} needs a token or an item, to say whose it is", "invoke")
    at_ms, lasts_ms = times.of(line), line.at_least("lasts_ms", 0)
    if times.clock and lasts_ms is None and call in STARTS_TIMER:
        raise line.wrong("with a clock recorded, this call needs lasts_ms", "invoke")
    return StoreCall(
        call,
        0 if at_ms is None else at_ms - times.slack_ms,
        items,
        token,
        lasts_ms or 0,
        line.typed("client", str) or "",
        line.place,
    )


def _ends(line: Line, times: Times, number: int, begun: _Open) -> Return:
    line.known(OF_ENDS)
    client = line.typed("client", str)
    if client is not None and client != begun.client:
        raise line.wrong(
            f"client is {quoted(client)}; allowed: {quoted(begun.client)}, who began the call {number}",
            "client",
        )
    outcome, answer = line.one_of("return", Outcome), line.one_of("answer", Answer)
    assert outcome is not None
    if (outcome, answer) not in ENDINGS:
        answers = [a.value for o, a in ENDINGS if o is outcome and a is not None]
        raise line.wrong(
            f"answer is {quoted(line.data['answer'])}; allowed with {outcome.value}: {', '.join(answers)}",
            "answer",
        )
    item, token, attempt = line.typed("item", str), line.typed("token", str), line.typed("attempt", int)
    judged, at_ms = ENDINGS[outcome, answer], times.of(line)
    if begun.call is not Call.FETCH or judged is not Answer.OK:
        for name, value in (("item", item), ("token", token), ("attempt", attempt)):
            if value is not None:
                raise line.wrong(f"{name} is of a fetch that returned one; allowed here: leave it out", name)
        if judged is Answer.NOTHING and begun.call is not Call.FETCH:
            raise line.wrong("answer is 'nothing'; allowed: for a fetch", "answer")
    elif item is None:
        raise line.wrong("a fetch that returned an item needs it; allowed: item, or answer nothing", "return")
    if judged is Answer.PERMANENT and begun.call in (Call.ENQUEUE, Call.FETCH):
        raise line.wrong("answer is 'permanent error'; allowed: for a call that can be refused", "answer")
    if "items" in line.data and begun.call is not Call.CANCEL:
        raise line.wrong("items is of a cancel: what had a row; allowed here: leave it out", "items")
    if judged is None:
        return Return(number, outcome)
    told = StoreAnswer(
        judged,
        NEVER_MS if at_ms is None else at_ms + times.slack_ms,
        line.texts("items") if item is None else (item,),
        token,
        attempt,
        begun.call is not Call.CANCEL or "items" in line.data,
        line.place,
    )
    return Return(number, Outcome.OK, told)


def begin_line(number: int, made: StoreCall) -> str:
    """The line of a call that begins, with its time."""
    items = (
        {"items": list(made.items)} if made.call is Call.CANCEL else {"item": next(iter(made.items), None)}
    )
    lasts_ms = made.lasts_ms if made.call in STARTS_TIMER else None
    return _line(
        id=number,
        client=made.caller or None,
        invoke=made.call.value,
        **items,
        token=made.token,
        lasts_ms=lasts_ms,
        t_ms=made.at_ms,
    )


def end_line(number: int, made: StoreCall, told: StoreAnswer | None, at_ms: int) -> str:
    """The line of a call that ends, with its time; without an answer, of one of which nobody knows."""
    if told is None:
        return _line(id=number, **{"return": Outcome.INFO.value}, t_ms=at_ms)
    outcome = next(outcome for (outcome, _), answer in ENDINGS.items() if answer is told.answer)
    items = (
        {"items": list(told.items)} if made.call is Call.CANCEL else {"item": next(iter(told.items), None)}
    )
    return _line(
        id=number,
        **{"return": outcome.value},
        answer=None if told.answer is Answer.OK else told.answer.value,
        **items,
        token=told.token,
        attempt=told.attempt,
        t_ms=at_ms,
    )


def _line(**fields: object) -> str:
    return json.dumps({name: value for name, value in fields.items() if value is not None})
