"""One line of a trace file as data, and what to say of one that is wrong: file, line, column, and the remedy."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

E_ = TypeVar("E_", bound=enum.Enum)
_KINDS = {
    int: "a whole number",
    str: "a text",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}
MOST_QUOTED = 60
MOST_ENQUEUED = 10_000
"""So many enqueues back it is known whether an item was enqueued before."""
_STRAYS = "\udc00"
"""What a byte that is not UTF-8 is read as is so much more than the byte."""
_STRAY = re.compile("[\udc80-\udcff]")


class TraceError(ValueError):
    """A trace file that cannot be read: file, line, column, what is wrong and what is allowed, in one line."""


def lines_of(path: Path) -> Iterator[Line]:
    """The lines of a file that are not blank, read as they are asked for."""
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        for number, text in enumerate(file, 1):
            if text.strip():
                yield Line(path, number, text)


class Line:
    """One line of the file as data, with a way to say what is wrong with it."""

    def __init__(self, path: Path, number: int, text: str) -> None:
        self.path, self.number, self.text = path, number, text.rstrip("\n")
        stray = _STRAY.search(text)
        if stray:
            byte = ord(stray[0]) - ord(_STRAYS)
            raise self.wrong(
                f"a byte that is not UTF-8, 0x{byte:02x}; allowed: UTF-8", column=stray.start() + 1
            )
        try:
            self.data: dict[str, Any] = json.loads(text, object_pairs_hook=self._once)
        except json.JSONDecodeError as error:
            is_cut = number > 1 and not text.endswith("\n")
            cut = "; it is the last line and was cut off: remove it" if is_cut else ""
            raise self.wrong(f"not JSON: {error.msg}{cut}", column=error.colno) from None
        except TraceError:
            raise
        except (ValueError, RecursionError):
            raise self.wrong("not JSON of a trace: a number too long, or nested too deeply") from None
        if not isinstance(self.data, dict):
            raise self.wrong(f"the line is {quoted(self.data)}; allowed: an object")

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"{self.path}:{self.number}"

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
        return TraceError(f"{self.place}:{column}: {what}")

    def one_of(self, name: str, kind: type[E_]) -> E_ | None:
        """The member of an enumeration that a field names."""
        if name not in self.data:
            return None
        allowed = _members(kind)
        value = self.data[name]
        if not isinstance(value, str) or value not in allowed:
            raise self.wrong(f"{name} is {quoted(value)}; allowed: {', '.join(allowed)}", name)
        return allowed[value]  # type: ignore[return-value]

    def typed(self, name: str, kind: type) -> Any:
        """A field's value, of the type that it must have; None where it is not there."""
        value = self.data.get(name)
        if value is not None and type(value) is not kind:
            raise self.wrong(f"{name} is {quoted(value)}; allowed: {_KINDS[kind]}", name)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A field that is a list of texts; empty where it is not there."""
        values = self.typed(name, list) or []
        for value in values:
            if type(value) is not str:
                raise self.wrong(f"{name} has {quoted(value)}; allowed: texts", name)
        return tuple(values)

    def at_least(self, name: str, least: int) -> int | None:
        """A field that is a whole number, not less than this."""
        value: int | None = self.typed(name, int)
        if value is not None and value < least:
            raise self.wrong(f"{name} is {value}; allowed: {least} or more", name)
        return value

    def known(self, allowed: Iterable[str]) -> None:
        """Refuse a field that means nothing."""
        for name in self.data:
            if name not in allowed:
                raise self.wrong(f"unknown field {quoted(name)}; allowed: {', '.join(allowed)}", name)


@cache
def _members(kind: type[enum.Enum]) -> dict[str, enum.Enum]:
    return {m.value: m for m in kind}


def quoted(value: object) -> str:
    """A value of the file as a message may have it: not too long, and a text by itself in single quotation marks."""
    text = ascii(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= MOST_QUOTED else text[: MOST_QUOTED - 1] + "…"


class Enqueued:
    """Which items of a file were enqueued, and in which lines: of the latest so many, whatever the file's length."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}

    def refuse(self, line: Line, item: str, about: str) -> None:
        """``TraceError`` where the item was enqueued before: the specification has each item once in a run."""
        if item in self._lines:
            raise line.wrong(
                f"item {quoted(item)} was enqueued before (line {self._lines[item]}); "
                "allowed: a name of its own for each enqueue",
                about,
            )

    def add(self, line: Line, item: str) -> None:
        """It is enqueued here."""
        self._lines[item] = line.number
        if len(self._lines) > MOST_ENQUEUED:
            del self._lines[next(iter(self._lines))]


class Times:
    """The times of a file, line by line: they never run backwards."""

    def __init__(self, clock: bool, slack_ms: int) -> None:
        self.clock, self.slack_ms = clock, slack_ms
        self._latest: int | None = None

    def of(self, line: Line) -> int | None:
        """When the line was seen, in milliseconds; ``TraceError`` before an earlier one, or where it is needed."""
        at_ms: int | None = line.typed("t_ms", int)
        if at_ms is None:
            if self.clock:
                raise line.wrong("with a clock recorded, every line needs t_ms")
            return None
        if self._latest is not None and at_ms < self._latest:
            raise line.wrong(
                f"t_ms is {at_ms}, before the {self._latest} of an earlier line; allowed: lines in order of time",
                "t_ms",
            )
        self._latest = at_ms
        return at_ms
