"""A failed run of a store as a Python program of plain calls, and as a trace."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from peeklock.harness.failure.asking import Asking, ask, cancelled, delivered
from peeklock.harness.failure.excuses import End
from peeklock.harness.monitor.observation import Observation, shown
from peeklock.harness.run.steps import NEVER_ISSUED, Step
from peeklock.harness.run.store_driver import Run, completion_of, letter, method_of
from peeklock.harness.trace.file import header_line
from peeklock.spec.notation.actions import ACKS, Answer, Call
from peeklock.spec.reading.timed_store import Fault
from peeklock.spec.variants.capabilities import Capabilities

WIDTH = 100
UNKNOWN = "make_store = ...  # the function that was checked"
"""Stands in a program for a function that cannot be imported."""


def source(
    subject: str,
    run: Run,
    capabilities: Capabilities,
    ends: Sequence[End],
    sentences: Sequence[str],
    makes: Sequence[str],
    asking: Asking = ask,
) -> str:
    """The program: a test that makes the calls of the run, of which only the last went wrong.

    ``ends`` are those that are allowed, ``sentences`` say what was broken, and ``makes`` are the lines that make
    ``store``. It fails with an ``AssertionError`` until the run ends as is allowed.
    """
    of_step: dict[int, list[Observation]] = {}
    for number, one in zip(run.steps, run.observations, strict=True):
        of_step.setdefault(number, []).append(one)
    last = run.steps[-1]
    issued: list[str] = []
    lines: list[str] = []
    for number, step in enumerate(run.program[:last], 1):
        lines += _lines(number, step, of_step.get(number, []), issued, capabilities, number == last)
    lines += _assertion(run, ends, issued)
    names = "Asking" if asking != ask else "ask"
    return "\n".join(
        [
            f'"""{_quoted(subject)} does not keep its contract.',
            "",
            *map(_quoted, sentences),
            '"""',
            "",
            *_imports(lines, makes),
            f"from peeklock.harness.failure.asking import {names}",
            *([] if asking == ask else ["", f"ask = {asking!r}"]),
            "",
            "",
            "def reproduce(store):",
            *(f"    {line}" for line in lines),
            "",
            "",
            "def test_the_store_keeps_its_contract():",
            *(f"    {line}".rstrip() for line in makes or (UNKNOWN, "reproduce(make_store())")),
            "",
            "",
            'if __name__ == "__main__":',
            "    test_the_store_keeps_its_contract()",
            "",
        ]
    )


def _imports(*parts: Sequence[str]) -> list[str]:
    used = [name for name in ("sys", "time") if any(f"{name}." in line for part in parts for line in part)]
    return [*(f"import {name}" for name in used), *([""] if used else [])]


def _lines(
    number: int,
    step: Step,
    seen: list[Observation],
    issued: list[str],
    capabilities: Capabilities,
    last: bool,
) -> Iterator[str]:
    if step.call is None:
        yield f"store.advance({step.ms})" if capabilities.virtual_clock else f"time.sleep({step.ms / 1000})"
        return
    if not seen:
        return
    one = seen[-1]
    comment = "" if one.answer is None else f"  # {_answered(seen)}"
    if step.fault is not Fault.NONE and capabilities.fault_injection:
        yield f"store.fail_next({_method(step.call)!r}, {step.fault is Fault.AFTER_EFFECT})"
    elif step.fault is Fault.BEFORE_EFFECT:
        yield f"# {step.call.value}: fails on its way, and the store never hears of it"
        return
    elif step.fault is Fault.AFTER_EFFECT and one.answer is Answer.RETRYABLE:
        comment = "  # its answer is lost on the way"
    target = "said = " if last else ""
    if step.call is Call.FETCH and one.token is not None:
        issued.append(letter(len(issued)).lower())
        target = f"{issued[-1]} = "
    yield f"{target}ask(store, {json.dumps(_method(step.call))}, {_arguments(number, step, one, issued)}){comment}"


def _arguments(number: int, step: Step, seen: Observation, issued: list[str]) -> str:
    match step.call:
        case Call.ENQUEUE:
            return f"{json.dumps(step.items[0])}, {step.ms}"
        case Call.FETCH:
            return str(step.ms)
        case Call.CANCEL:
            return json.dumps(list(step.items))
    token = json.dumps(NEVER_ISSUED) if not step.delivery else f"{issued[step.delivery - 1]}.token"
    if step.call is Call.RENEW:
        return f"{token}, {step.ms}"
    if step.call in ACKS:
        return f"{token}, {json.dumps(completion_of(number)) if step.call is Call.ACK else None}"
    return f"{token}, {step.ms}, {step.call is Call.ABANDON_IGNORING_ATTEMPT}"


def _method(call: Call) -> str:
    return call.value if call in (Call.ENQUEUE, Call.FETCH, Call.CANCEL) else method_of(call)


def _answered(seen: list[Observation]) -> str:
    one = seen[-1]
    if one.call is Call.CANCEL and one.answer in (Answer.OK, Answer.NOTHING):
        return cancelled(str(s.item) for s in seen if s.answer is Answer.OK)
    if one.call is Call.FETCH and one.item is not None:
        return delivered(shown(one.item), one.attempt)
    return "" if one.answer is None else one.answer.value


def _assertion(run: Run, ends: Sequence[End], issued: list[str]) -> Iterator[str]:
    """The lines that look at how the run ended, and hold it against how it may."""
    last = run.observations[-1]
    said = "said"
    if last.call is Call.FETCH and last.token is not None:
        said, earlier = issued[-1], [f"{name}.token" for name in issued[:-1]]
        if earlier:
            yield f'assert {said}.token not in [{", ".join(earlier)}], "a token is given out once"'
    heard, looked = ends[0].words is not None, len(run.observations) in run.looks
    ended = [f"{said}.words"] * heard + ["sorted(map(tuple, store.completions()))"] * looked
    yield f"ended = {', '.join(ended)}"
    told = []
    for end in ends:
        there = f"[{', '.join(f'({json.dumps(item)}, {json.dumps(text)})' for item, text in end.completions or ())}]"
        parts = [json.dumps(end.words)] * heard + [there] * looked
        told.append(f"({', '.join(parts)})" if len(parts) > 1 else parts[0])
    one_line = f"allowed = [{', '.join(told)}]"
    yield from (
        [one_line] if len(one_line) <= WIDTH else ["allowed = [", *(f"    {one}," for one in told), "]"]
    )
    yield 'assert ended in allowed, f"it ended with {ended}; allowed: {allowed}"'


def _quoted(text: str) -> str:
    """A text from outside as part of a docstring."""
    return text.encode("ascii", "backslashreplace").decode().replace("\\", "\\\\").replace('"', "'")


def trace_lines(
    subject: str,
    capabilities: Capabilities,
    seen: Iterable[Observation],
    looks: Mapping[int, tuple[tuple[str, str], ...]],
) -> Iterator[str]:
    """The run as the lines of a trace file of a store alone."""
    yield header_line(capabilities, subject)
    for count, one in enumerate(seen, 1):
        assert one.call is not None
        fields = {
            "t_ms": one.at_ms,
            "until_ms": one.until_ms,
            "call": one.call.value,
            "worker": one.worker,
            "item": one.item,
            "token": one.token,
            "attempt": one.attempt,
            "answer": None if one.answer is None else one.answer.value,
            "effect": one.effect,
            "lasts_ms": one.lasts_ms,
            "payload": one.payload,
            "unasked": one.unasked or None,
        }
        yield json.dumps({name: value for name, value in fields.items() if value is not None})
        if count in looks:
            yield json.dumps({"t_ms": one.at_ms, "completions": looks[count]})
