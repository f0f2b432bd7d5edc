"""A failed run of a store as a Python program of plain calls, and as a trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from peeklock.harness.adapter import Delivery
from peeklock.harness.drive import completion_of, letter, method_of
from peeklock.harness.observation import Observation, shown
from peeklock.harness.steps import NEVER_ISSUED, Program, Step
from peeklock.harness.tracefile import header_line
from peeklock.harness.world import Violation
from peeklock.spec.actions import ACKS, Answer, Call
from peeklock.spec.capabilities import Capabilities
from peeklock.spec.timed_store import Fault


class Said:
    """What a call answered, in words; and, of a fetch, the token. Made by ``ask``."""

    def __init__(self, words: str, token: str = "") -> None:
        self.words, self.token = words, token


def ask(call: Callable[..., Any], *args: object) -> Said:
    """Make a call of an adapter; an error is an answer as well."""
    try:
        value = call(*args)
    except Exception as error:
        return Said(f"error {type(error).__name__}")
    if isinstance(value, Delivery):
        return Said(_delivered(value.item, value.attempt_count), value.token)
    if call.__name__ == "fetch":
        return Said("nothing")
    return Said("ok" if value is None else ", ".join(map(str, value)) or "none had a row")


def _delivered(item: str, attempt: int | None) -> str:
    return item if attempt is None else f"{item}, attempt {attempt}"


def source(
    subject: str,
    made_by: str | None,
    capabilities: Capabilities,
    steps: Program,
    numbers: Sequence[int],
    seen: Sequence[Observation],
    looks: Mapping[int, tuple[tuple[str, str], ...]],
    violation: Violation,
    promises: Sequence[str],
) -> str:
    """The program; ``made_by`` is ``module:name`` of the function that makes the store, where it can be imported.

    ``numbers`` says for each observation which step it is of. The program ends with an ``AssertionError`` as long as
    the store answers as it did.
    """
    of_step: dict[int, list[Observation]] = {}
    for number, one in zip(numbers, seen, strict=True):
        of_step.setdefault(number, []).append(one)
    module, _, name = (made_by or "").partition(":")
    lines = [
        f'"""{_quoted(subject)} does not keep its contract.',
        "",
        *map(_quoted, promises or (violation.reason,)),
        '"""',
        "",
        "from peeklock.harness.reproduction import ask",
        "",
        "",
        "def reproduce(store):",
    ]
    issued: list[str] = []
    for number, step in enumerate(steps, 1):
        last = number == len(steps)
        lines += _lines(number, step, of_step.get(number, []), issued, capabilities, last)
    told = sorted({a.partition(" -> ")[2] or a for a in violation.allowed if _is_about(a, violation.seen)})
    lines.append(f"    # allowed here: {', '.join(map(shown, told)) or 'nothing of the kind'}")
    lines.append(f"    {_assertion(seen, looks, issued)}")
    if name:
        lines += [
            "",
            "",
            'if __name__ == "__main__":',
            f"    from {module} import {name}",
            "",
            f"    reproduce({name}())",
        ]
    return "\n".join(lines) + "\n"


def _is_about(allowed: str, seen: Observation) -> bool:
    call, arrow, _ = allowed.partition(" -> ")
    return not arrow or seen.call is None or call.startswith(seen.call.value)


def _lines(
    number: int,
    step: Step,
    seen: list[Observation],
    issued: list[str],
    capabilities: Capabilities,
    last: bool,
) -> Iterator[str]:
    if step.call is None:
        yield (
            f"    store.advance({step.ms})"
            if capabilities.virtual_clock
            else f"    time.sleep({step.ms / 1000})"
        )
        return
    if not seen:
        return
    one = seen[-1]
    comment = "" if one.answer is None else f"  # {_answered(seen)}"
    if step.fault is not Fault.NONE and capabilities.fault_injection:
        yield f"    store.fail_next({_method(step.call)!r}, {step.fault is Fault.AFTER_EFFECT})"
    elif step.fault is Fault.BEFORE_EFFECT:
        yield f"    # {step.call.value}: fails on its way, and the store never hears of it"
        return
    elif step.fault is Fault.AFTER_EFFECT and one.answer is Answer.RETRYABLE:
        comment = "  # its answer is lost on the way"
    target = "said = " if last else ""
    if step.call is Call.FETCH and one.token is not None:
        issued.append(letter(len(issued)).lower())
        target = f"{issued[-1]} = "
    yield f"    {target}ask(store.{_method(step.call)}, {_arguments(number, step, one, issued)}){comment}"


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
        return ", ".join(str(s.item) for s in seen if s.answer is Answer.OK) or "none had a row"
    if one.call is Call.FETCH and one.item is not None:
        return _delivered(shown(one.item), one.attempt)
    return "" if one.answer is None else one.answer.value


def _assertion(
    seen: Sequence[Observation], looks: Mapping[int, tuple[tuple[str, str], ...]], issued: list[str]
) -> str:
    last = seen[-1]
    if len(seen) in looks:
        there = ", ".join(f"({json.dumps(item)}, {json.dumps(text)})" for item, text in looks[len(seen)])
        return f"assert list(map(tuple, store.completions())) != [{there}]"
    if last.call is Call.FETCH and last.token is not None:
        tokens = [one.token for one in seen if one.call is Call.FETCH and one.token is not None]
        if last.token in tokens[:-1]:
            return f"assert {issued[-1]}.token != {issued[tokens.index(last.token)]}.token"
        return f"assert {issued[-1]}.words != {json.dumps(_delivered(last.item or '', last.attempt))}"
    if last.answer in (Answer.PERMANENT, Answer.RETRYABLE) and not last.effect:
        return 'assert not said.words.startswith("error")'
    if last.call is Call.CANCEL:
        names = [s.item for s in seen if s.call is Call.CANCEL and s.at_ms == last.at_ms]
        removed = last.answer is Answer.OK
        assert last.item in names
        return f'assert {json.dumps(last.item)} {"not " if removed else ""}in said.words.split(", ")'
    return f'assert said.words != "{"nothing" if last.answer is Answer.NOTHING else "ok"}"'


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
