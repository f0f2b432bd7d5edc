"""Concurrent histories: calls that begin and end, joined so that a call's result is known when it begins."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from attrs import evolve, frozen


class Outcome(enum.Enum):
    """How a call ended."""

    OK = "ok"
    """It answered; what it answered is its result, an error too."""
    FAIL = "fail"
    """It certainly did not happen."""
    INFO = "info"
    """Nobody knows: it may take effect at any later time, or never."""


@frozen
class Invoke:
    """A call begins. Its key is its own as long as it is open."""

    key: Hashable
    what: Any
    returns: bool = True
    """False where it is known that no return will come."""


@frozen
class Return:
    """A call ends."""

    key: Hashable
    outcome: Outcome = Outcome.OK
    result: Any = None


@frozen(cache_hash=True)
class Operation:
    """A call with its result, which is None where nobody knows it."""

    number: int
    """Its place among the calls of the history, in the order in which they began."""
    what: Any
    outcome: Outcome = Outcome.INFO
    result: Any = None
    began: int = 0
    """Which of the history's beginnings and ends began it; the first is 1."""
    ended: int | None = None
    """Which of them ended it; None where nobody knows that it ever did."""

    def __str__(self) -> str:
        if self.outcome is not Outcome.OK:
            return f"{self.what} (outcome unknown)"
        return f"{self.what}" if self.result is None else f"{self.what} -> {self.result}"


@frozen
class Begins:
    """The operation begins."""

    operation: Operation


@frozen
class Ends:
    """The operation ends: it has taken effect by now."""

    operation: Operation


class HistoryError(ValueError):
    """A history that cannot be: a key that is open twice, or a return of a call that was not made."""


class Joiner:
    """Joins each call with its return. It holds back no more than what came since the oldest open call began."""

    def __init__(self) -> None:
        self._waiting: deque[Begins | Ends] = deque()
        self._open: dict[Hashable, Operation] = {}
        self._known: dict[int, Operation] = {}
        self._count = self._events = 0

    def add(self, event: Invoke | Return) -> Iterator[Begins | Ends]:
        """Take in one event; what is complete by now. ``HistoryError`` for one that cannot be."""
        self._events += 1
        if isinstance(event, Invoke):
            if event.key in self._open:
                raise HistoryError(f"{event.what}: a call with the key {event.key!r} is open already")
            operation = Operation(self._count, event.what, began=self._events)
            self._count += 1
            self._waiting.append(Begins(operation))
            if event.returns:
                self._open[event.key] = operation
            else:
                self._known[operation.number] = operation
                yield from self._ready()
            return
        if event.key not in self._open:
            raise HistoryError(f"a return with the key {event.key!r}, of which no call is open")
        operation = self._open.pop(event.key)
        ended = self._events if event.outcome is Outcome.OK else None
        self._known[operation.number] = evolve(
            operation, outcome=event.outcome, result=event.result, ended=ended
        )
        if event.outcome is Outcome.OK:
            self._waiting.append(Ends(operation))
        yield from self._ready()

    def end(self) -> Iterator[Begins | Ends]:
        """The rest; the calls that are still open are of unknown outcome."""
        self._known.update({o.number: o for o in self._open.values()})
        self._open.clear()
        yield from self._ready()

    def _ready(self) -> Iterator[Begins | Ends]:
        while self._waiting and self._waiting[0].operation.number in self._known:
            step = self._waiting.popleft()
            known = self._known[step.operation.number]
            if isinstance(step, Ends) or known.outcome is not Outcome.OK:
                del self._known[known.number]
            if known.outcome is not Outcome.FAIL:
                yield evolve(step, operation=known)


def joined(history: Iterable[Invoke | Return]) -> Iterator[Begins | Ends]:
    """The operations of a history as they begin and end, each with its result; ``HistoryError`` as ``Joiner.add``."""
    joiner = Joiner()
    for event in history:
        yield from joiner.add(event)
    yield from joiner.end()
