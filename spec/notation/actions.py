"""Actions: what can happen in one step, as guards and assignments of terms under an observable label."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from typing import TypeAlias

from attrs import evolve, field, frozen

from peeklock.spec.notation.terms import BOOL as BOOL
from peeklock.spec.notation.terms import (
    ITEM,
    NAT,
    TRUE,
    WORKER,
    Assignment,
    Operand,
    Sort,
    Term,
    constant,
    parameter,
)

Worker: TypeAlias = Term
Item: TypeAlias = Term
Token: TypeAlias = Term

_SORTS: dict[str, Sort] = {"Worker": WORKER, "Item": ITEM, "Token": NAT}


class Call(enum.Enum):
    """A call to the store."""

    ENQUEUE = "enqueue"
    FETCH = "fetch"
    RENEW = "renew"
    ACK = "ack"
    CANCELLATION_ACK = "cancellation ack"
    ABANDON = "abandon"
    ABANDON_IGNORING_ATTEMPT = "abandon, ignoring the attempt"
    CANCEL = "cancel"


ABANDONS = (Call.ABANDON, Call.ABANDON_IGNORING_ATTEMPT)
ACKS = (Call.ACK, Call.CANCELLATION_ACK)


class Answer(enum.Enum):
    """What the caller is told."""

    OK = "ok"
    NOTHING = "nothing"
    RETRYABLE = "retryable error"
    PERMANENT = "permanent error"


class Event(enum.Enum):
    """What happens without a call to the store."""

    VISIBLE = "the item's delay is over"
    EXPIRES = "the lock expires"
    HANDLER_STARTS = "the handler starts"
    HANDLER_SUCCEEDS = "the handler ends with a result"
    HANDLER_FAILS = "the handler ends with an application error"
    HANDLER_STOPPED = "the cancelled handler is over"
    LOCK_OVER = "by the worker's own time its lock is over"
    HANDLER_MISSING = "no handler is registered"
    CRASH = "the worker crashes"
    SHUTDOWN = "a shutdown begins"
    GRACE_ENDS = "the shutdown grace is over"


class Metric(enum.Enum):
    """What the worker counts: its verdict about a delivery."""

    SUCCESS = "success"
    APPLICATION_ERROR = "application error"
    INFRASTRUCTURE_ERROR = "infrastructure error"
    POISON = "poison"
    UNCERTAIN = "uncertain"


class Timer(enum.Enum):
    """A time limit of a row. A search lets it run out at any moment; a reader with a clock knows when it does."""

    LOCK = "locked_until"
    VISIBILITY = "visible_at"


@frozen
class Label:
    """What an observer can know of a step."""

    call: Call | None = None
    answer: Answer | None = None
    takes_effect: bool = False
    event: Event | None = None
    counts: Metric | None = None

    def __str__(self) -> str:
        if self.event is not None:
            return self.event.value
        assert self.call is not None
        assert self.answer is not None
        unseen = ", although it took effect" if self.takes_effect and self.answer is not Answer.OK else ""
        return f"{self.call.value} -> {self.answer.value}{unseen}"


@frozen
class Clause:
    """Guards and the assignments made when all of them hold, with the timer that is started."""

    guards: tuple[Term, ...]
    effects: tuple[Assignment, ...] = ()
    timer: Timer | None = None
    prolongs: bool = False
    """The timer goes on from where it would have ended, and not from now."""

    def then(self, *effects: Assignment | tuple[Assignment, ...]) -> Clause:
        """What the step writes. What is not assigned stays as it was."""
        flat = [a for e in effects for a in (e if isinstance(e, tuple) else (e,))]
        for k, a in enumerate(flat):
            if any(a.target is b.target for b in (*self.effects, *flat[:k])):
                raise ValueError(f"{a.target} is assigned twice in one step")
        return evolve(self, effects=(*self.effects, *flat))

    def starting(self, timer: Timer) -> Clause:
        """The step (re)starts a timer of the row."""
        return evolve(self, timer=timer)


def when(*guards: Operand) -> Clause:
    """The guards of a step, one per line."""
    return Clause(tuple(g for g in (constant(g, BOOL) for g in guards) if g is not TRUE))


@frozen
class Piece:
    """One side of a step: an outcome of a call (the store's side), a reaction to it (the worker's) or a whole event."""

    name: str
    sentence: str
    params: tuple[Term, ...]
    clause: Clause
    calls: tuple[Call, ...] = ()
    answers: tuple[Answer, ...] = ()
    takes_effect: bool = False
    event: Event | None = None
    counts: Metric | None = None
    due: Timer | None = None
    spurious: bool = False
    """The store refuses what it could have done."""


def _piece(function: Callable[..., Clause], **label: object) -> Piece:
    names = inspect.signature(function).parameters
    params = tuple(parameter(n, _SORTS[str(p.annotation)]) for n, p in names.items())
    sentence = " ".join((function.__doc__ or "").split())
    clause = function(*params)
    if not isinstance(clause, Clause):
        raise TypeError(f"{function.__name__} has to return when(…), not {clause!r}")
    return Piece(function.__name__, sentence, params, clause, **label)  # type: ignore[arg-type]


_Decorator: TypeAlias = Callable[[Callable[..., Clause]], Piece]


def outcome(*calls: Call, answer: Answer, takes_effect: bool = False, spurious: bool = False) -> _Decorator:
    """How the store can answer one of these calls about item i and token t, and what then changes in it."""
    return lambda f: _piece(f, calls=calls, answers=(answer,), takes_effect=takes_effect, spurious=spurious)


def reaction(*calls: Call, to: tuple[Answer, ...], counts: Metric | None = None) -> _Decorator:
    """What worker w, with item i in hand, makes of one of these answers to one of these calls."""
    return lambda f: _piece(f, calls=calls, answers=to, counts=counts)


def event(what: Event, due: Timer | None = None) -> _Decorator:
    """Something that happens without a call to the store; ``due`` names the timer whose end it is."""
    return lambda f: _piece(f, event=what, due=due)


@frozen(eq=False)
class Action:
    """One way to take a step: for every choice of its parameters, if the guards hold, the effects happen."""

    name: str
    sentence: str
    params: tuple[Term, ...]
    guards: tuple[Term, ...]
    effects: tuple[Assignment, ...]
    label: Label
    timer: Timer | None = None
    prolongs: bool = False
    due: Timer | None = None
    pieces: tuple[str, ...] = field(default=())
    spurious: bool = False

    @property
    def worker(self) -> Term | None:
        """The worker that takes the step, if one does."""
        return next((p for p in self.params if p.sort == WORKER), None)

    @property
    def item(self) -> Term | None:
        """The item that the step is about, if it is about one."""
        return next((p for p in self.params if p.sort == ITEM), None)
