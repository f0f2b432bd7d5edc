"""Trace files: a recorded run as JSON lines, the first of which says what was recorded.

A line is one call (``call``), one event (``event``) or one counted verdict (``counts``), in the words of the
specification. A committed effect whose answer nobody saw has ``"effect": true`` and no ``answer``; a failure that
was logged has an ``answer`` and no ``effect``. What a line leaves out was not seen, and every possibility is kept.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from attrs import evolve, field, frozen

from peeklock.harness.observation import Observation
from peeklock.harness.world import STARTS_TIMER, Scope
from peeklock.spec.actions import Answer, Call, Event, Metric
from peeklock.spec.state import Result

VERSION = 1
RECORDS = ("clock", "counts", "handlers", "answers", "stops")
_COMPLETIONS = {
    "result": (Result.SUCCESS,),
    "application error": (Result.APPLICATION_ERROR,),
    "poison": (Result.POISON,),
    "failure": (Result.APPLICATION_ERROR, Result.POISON),
}
_TEXTS, _NUMBERS = ("worker", "item", "token"), ("t_ms", "attempt", "lasts_ms")
_FIELDS = ("call", "event", "counts", *_TEXTS, "answer", "effect", "completion", *_NUMBERS)

E_ = TypeVar("E_", bound=enum.Enum)


class TraceError(ValueError):
    """A trace file that cannot be read: file, line, column, what is wrong and what is allowed, in one line."""


@frozen
class Header:
    """The first line of a trace file."""

    scope: Scope
    max_attempts: int | None = None
    source: str = field(default="")


def read(path: Path) -> tuple[Header, Iterator[Observation]]:
    """The header of a trace file, and its observations, read as they are asked for."""
    try:
        lines = _lines(path)
        number, first = next(lines, (1, ""))
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    if not first:
        raise TraceError(
            f'{path}:1:1: the file is empty; allowed: a header such as {{"peeklock_trace": {VERSION}}}'
        )
    header = _header(_Line(path, number, first))
    return header, _observations(path, lines, header.scope.clock)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, text in enumerate(file, 1):
            if text.strip():
                yield number, text.rstrip("\n")


class _Line:
    """One line of the file as data, with a way to say what is wrong with it."""

    def __init__(self, path: Path, number: int, text: str) -> None:
        self.path, self.number, self.text = path, number, text
        try:
            self.data: dict[str, Any] = json.loads(text, object_pairs_hook=self._once)
        except json.JSONDecodeError as error:
            raise self.wrong(f"not JSON: {error.msg}", column=error.colno) from None
        except TraceError:
            raise
        except (ValueError, RecursionError):
            raise self.wrong("not JSON of a trace: a number too long, or nested too deeply") from None
        if not isinstance(self.data, dict):
            raise self.wrong(f"a {type(self.data).__name__}; allowed: an object")

    def _once(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            twice = next(name for name, _ in pairs if [n for n, _ in pairs].count(name) > 1)
            raise self.wrong(f"{twice} stands twice", twice)
        return found

    def wrong(self, what: str, about: str | None = None, column: int = 1) -> TraceError:
        """The error that names this line, and the column of the field that it is about."""
        if about is not None:
            column = self.text.find(f'"{about}"') + 1 or 1
        return TraceError(f"{self.path}:{self.number}:{column}: {what}")

    def one_of(self, name: str, kind: type[E_]) -> E_ | None:
        """The member of an enumeration that a field names."""
        if name not in self.data:
            return None
        allowed = {m.value: m for m in kind}
        if self.data[name] not in allowed:
            raise self.wrong(f"{name} is {self.data[name]!r}; allowed: {', '.join(allowed)}", name)
        return allowed[self.data[name]]

    def typed(self, name: str, kind: type) -> Any:
        """A field's value, of the type that it must have."""
        value = self.data.get(name)
        if value is not None and type(value) is not kind:
            word = {int: "a whole number", str: "a text", bool: "true or false"}[kind]
            raise self.wrong(f"{name} is {value!r}; allowed: {word}", name)
        return value

    def known(self, allowed: Iterable[str]) -> None:
        """Refuse a field that means nothing."""
        for name in self.data:
            if name not in allowed:
                raise self.wrong(f"unknown field {name!r}; allowed: {', '.join(allowed)}", name)


def _header(line: _Line) -> Header:
    if line.data.get("peeklock_trace") != VERSION:
        found = line.data.get("peeklock_trace", "missing")
        raise line.wrong(f"peeklock_trace is {found}; allowed: {VERSION}", "peeklock_trace")
    line.known(("peeklock_trace", "records", "max_attempts", "source"))
    records = line.data.get("records", [])
    for name in records:
        if name not in RECORDS:
            raise line.wrong(f"records names {name!r}; allowed: {', '.join(RECORDS)}", "records")
    maximum = line.typed("max_attempts", int)
    if maximum is not None and maximum < 1:
        raise line.wrong(f"max_attempts is {maximum}; allowed: 1 or more", "max_attempts")
    return Header(
        Scope(**{name: name in records for name in RECORDS}), maximum, line.typed("source", str) or ""
    )


def _observations(path: Path, lines: Iterator[tuple[int, str]], clock: bool) -> Iterator[Observation]:
    latest = None
    holders: dict[str, str] = {}
    for number, text in lines:
        line = _Line(path, number, text)
        seen = _observation(line)
        if clock and seen.at_ms is None:
            raise line.wrong("with a clock recorded, every line needs t_ms")
        if (
            clock
            and seen.lasts_ms is None
            and seen.call in STARTS_TIMER
            and seen.answer is not Answer.NOTHING
        ):
            raise line.wrong("with a clock recorded, this call needs lasts_ms", "call")
        if seen.at_ms is not None:
            if latest is not None and seen.at_ms < latest:
                raise line.wrong(f"t_ms is {seen.at_ms}, before the {latest} of an earlier line", "t_ms")
            latest = seen.at_ms
        yield _with_holder(seen, holders)


def _observation(line: _Line) -> Observation:
    line.known(_FIELDS)
    call, event, counts = (
        line.one_of("call", Call),
        line.one_of("event", Event),
        line.one_of("counts", Metric),
    )
    if sum(x is not None for x in (call, event, counts)) != 1:
        raise line.wrong("allowed: exactly one of call, event, counts")
    texts = {name: line.typed(name, str) for name in _TEXTS}
    if counts is not None and texts["worker"] is None and texts["token"] is None:
        raise line.wrong("a counted verdict needs the worker that counted it, or the token", "counts")
    if call in (Call.ENQUEUE, Call.CANCEL) and texts["item"] is None:
        raise line.wrong(f"{call.value} needs an item" if call else "")
    if (event is not None or call not in (None, Call.ENQUEUE, Call.CANCEL, Call.FETCH)) and not any(
        texts.values()
    ):
        raise line.wrong("allowed: with a token, a worker or an item, to say whose it is")
    answer, effect = line.one_of("answer", Answer), line.typed("effect", bool)
    if answer is Answer.NOTHING and call is not Call.FETCH:
        raise line.wrong("answer is 'nothing'; allowed: for a fetch", "answer")
    if (answer is Answer.OK and effect is False) or (answer is Answer.NOTHING and effect):
        raise line.wrong(f"effect is {effect}, which contradicts the answer", "effect")
    completion = line.typed("completion", str)
    if completion is not None and completion not in _COMPLETIONS:
        raise line.wrong(f"completion is {completion!r}; allowed: {', '.join(_COMPLETIONS)}", "completion")
    return Observation(
        call=call,
        event=event,
        counts=counts,
        answer=answer,
        effect=effect,
        attempt=line.typed("attempt", int),
        completions=_COMPLETIONS.get(completion or "", ()),
        at_ms=line.typed("t_ms", int),
        lasts_ms=line.typed("lasts_ms", int),
        place=f"{line.path}:{line.number}",
        **texts,
    )


def _with_holder(seen: Observation, holders: dict[str, str]) -> Observation:
    """Where no worker is named, each delivery has a worker of its own: workers are interchangeable."""
    if seen.worker is not None or seen.token is None:
        return seen
    holder = holders.setdefault(seen.token, f"of {seen.token}")
    return evolve(seen, worker=holder)
