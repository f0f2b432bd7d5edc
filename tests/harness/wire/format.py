"""The wire format, version 1: how a program in any language is spoken to, in JSON lines. See docs/wire-format.md.

This module has what both roles share: the handshake, the reading of one line, and how a wrong one is told.
"""

from __future__ import annotations

import copy
import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, NoReturn, Self, TypeAlias

from peeklock.harness.adapter.program import MOST_QUOTED, BrokenProgram, Child, plain
from peeklock.spec.variants.capabilities import Capabilities, CapabilitiesError

VERSION = 1
DEFAULT_TIMEOUT_S = 10.0
MOST_KEPT = 2_000
"""Lines of one run that are remembered, to be shown when the program breaks."""
MOST_OF_A_LINE = 400

Role: TypeAlias = Literal["store", "worker"]
_WORDS = {int: "a whole number", str: "a text", bool: "true or false", dict: "an object", list: "a list"}


def handshake(role: Role) -> dict[str, Any]:
    """The first line that a program is sent."""
    return {"peeklock": VERSION, "role": role}


class Conversation:
    """A program in another process, and the lines that go to and fro with it, for many runs. It is ended at the end.

    Raises ``BrokenProgram`` where the program does not keep to the wire format; then it has been ended.
    """

    def __init__(
        self,
        command: Sequence[str],
        role: Role,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        directory: str | None = None,
    ) -> None:
        self.child = Child(command, timeout_s, directory)
        self.lines: deque[str] = deque(maxlen=MOST_KEPT)
        """What was said since the run began: ``> `` to the program, ``< `` from it."""
        self.is_over = False
        """The program has been ended."""
        self.announced: Line = self._shake_hands(role)
        """What the program answered to the handshake."""
        self.name: str = self.announced.data["name"]
        self.runs: int = 0
        self.requests: int = 0
        """Made so far."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_over = True
        if kind is None:
            self.child.finish()
        else:
            self.child.stop()

    @contextmanager
    def exchange(self) -> Iterator[None]:
        """Around a message and its answer: what comes between the two ends the program, so that none is left over."""
        if self.is_over:
            raise BrokenProgram(f"{self.child.name}: the program has been ended")
        try:
            yield
        except BaseException:
            self.is_over = True
            self.child.stop()
            raise

    def _shake_hands(self, role: Role) -> Line:
        place = "the handshake"
        line = self.ask(handshake(role), place)
        version = line.data.get("peeklock")
        if type(version) is not int:
            line.wrong(
                f'peeklock is {told(version)}; allowed: the version that it speaks, such as {{"peeklock": 1}}'
            )
        if version != VERSION:
            line.wrong(
                f"it speaks version {version}; allowed: {VERSION}, which is all that this peeklock speaks"
            )
        if line.data.get("role", role) != role:
            line.wrong(f"it says that it is a {told(line.data['role'])}; allowed: {role}")
        own = {"store": ("capabilities", "shared_place"), "worker": ("reports",)}[role]
        line.known(("peeklock", "role", "name", *own))
        line.typed("name", str)
        return line

    @property
    def transcript(self) -> tuple[str, ...]:
        """What was said last: ``> `` to the program, ``< `` from it."""
        return tuple(self.lines)

    def ask(self, message: dict[str, Any], place: str) -> Line:
        """Send one message, and hear what follows on it."""
        with self.exchange():
            self.say(message, place)
            return self.hear(place)

    def say(self, message: dict[str, Any], place: str) -> None:
        """Send one message."""
        text = json.dumps(message)
        self.lines.append(f"> {text}")
        self.child.send(text, place)

    def hear(self, place: str) -> Line:
        """The next message of the program."""
        text = self.child.receive(place)
        self.lines.append(f"< {plain(text, MOST_OF_A_LINE)}")
        return Line(self, place, text)

    def broken(self, place: str, what: str) -> BrokenProgram:
        """End the program; what is to be raised."""
        self.is_over = True
        return self.child.broken(place, what)


class Line:
    """One line of the program as data, with a way to say what is wrong with it."""

    def __init__(self, conversation: Conversation, place: str, text: str) -> None:
        self._conversation, self.place, self.text = conversation, place, text
        self.data: dict[str, Any] = {}
        try:
            data = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            self.wrong(f"not JSON ({reason}): {quoted(text)}; allowed: JSON on stdout, all else on stderr")
        if not isinstance(data, dict):
            self.wrong(f"{told(data)}; allowed: an object")
        self.data = data

    def wrong(self, what: str) -> NoReturn:
        """The program is broken in this line."""
        raise self._conversation.broken(self.place, what)

    def known(self, allowed: Iterable[str]) -> None:
        """Refuse a field that means nothing."""
        names = tuple(allowed)
        for name in self.data:
            if name not in names:
                self.wrong(f"unknown field {told(name)}; allowed: {', '.join(names)}")

    def typed(self, name: str, kind: type) -> Any:
        """A field's value, of the type that it must have."""
        value = self.data.get(name)
        if type(value) is not kind:
            found = "is missing" if name not in self.data else f"is {told(value)}"
            self.wrong(f"{name} {found}; allowed: {_WORDS[kind]}")
        return value

    def inside(self, name: str, allowed: Sequence[str], number: int | None = None) -> Line:
        """The object that a field holds, or that stands at a place in the list that it holds."""
        value = self.data[name] if number is None else self.data[name][number]
        where = name if number is None else f"{name}[{number}]"
        if not isinstance(value, dict):
            self.wrong(f"{where} is {told(value)}; allowed: an object with {', '.join(allowed)}")
        found = copy.copy(self)
        found.place, found.data = f"{self.place}: {where}", value
        found.known(allowed)
        return found

    def answers(self, number: int) -> None:
        """Refuse a line that is not about this request."""
        if "id" not in self.data:
            self.wrong(f'it has no id: {quoted(self.text)}; allowed: "id": {number}')
        if self.typed("id", int) != number:
            self.wrong(f"out of turn: it answers request {self.data['id']}; allowed: {number}")


def told(value: Any) -> str:
    """A value as it may be printed."""
    return plain(json.dumps(value), MOST_QUOTED)


def quoted(text: str) -> str:
    """The beginning of a line as it may be printed."""
    return plain(text, MOST_QUOTED) or "an empty line"


def capabilities_of(line: Line) -> Capabilities:
    """What the program declares; what it leaves out is as in the standard contract."""
    try:
        return Capabilities.declared(line.data.get("capabilities", {}))
    except CapabilitiesError as error:
        line.wrong(str(error))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(name for name, _ in pairs if [n for n, _ in pairs].count(name) > 1)
        raise ValueError(f"{twice} stands twice")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
