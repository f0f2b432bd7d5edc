"""What each call can do to one item, read off the store's contract; worked out once for each kind of row.

Tokens are compared and nothing else, so a row needs no more than whether it has one: the current token is always the
first, and any other is ``STALE``.
"""

from __future__ import annotations

from functools import cache

from attrs import frozen

from peeklock.spec.compose import specialized
from peeklock.spec.law.state import (
    HISTORY,
    Phase,
    Result,
    Row,
    attempt_count,
    current,
    issued,
    phase,
    result,
    row,
    token,
    working_on,
)
from peeklock.spec.notation.actions import Action, Answer, Call, Event, Timer
from peeklock.spec.notation.terms import ITEM, Term, Variable, arguments
from peeklock.spec.reading.evaluate import (
    INITIAL_ITEM,
    INITIAL_WORKER,
    ITEM_VARIABLES,
    PLACE,
    Record,
    Stepper,
    encoded,
)
from peeklock.spec.reading.timed_store import honest_actions, variant
from peeklock.spec.variants.capabilities import Capabilities

STALE = 1_000
"""A token that is not the row's own."""
OWN = 1
"""The token that is the row's own, where it has one."""
_ROWS, _ROW, _CURRENT, _ISSUED = tuple(Row), PLACE[row], PLACE[current], PLACE[issued]
_ATTEMPT = PLACE[attempt_count]
_KEPT = tuple(v not in HISTORY for v in ITEM_VARIABLES)
_TIMERS = {Row.DELAYED: (Timer.VISIBILITY, Event.VISIBLE), Row.LOCKED: (Timer.LOCK, Event.EXPIRES)}
_GONE = (Row.ACKED, Row.CANCELLED)
FREE: Record = (*INITIAL_ITEM[:_ROW], _ROWS.index(Row.READY), *INITIAL_ITEM[_ROW + 1 :])
"""An item that could be handed out."""


@frozen
class Effect:
    """What a call does to an item."""

    record: Record
    timer: bool
    """It starts the row's timer."""
    prolongs: bool
    """The timer goes on from where it would have ended."""


def row_of(record: Record) -> Row:
    """Where the item stands."""
    return _ROWS[record[_ROW]]


def is_gone(record: Record) -> bool:
    """Was the row deleted?"""
    return row_of(record) in _GONE


def has_token(record: Record) -> bool:
    """Has the row a token?"""
    return record[_CURRENT] != 0


def timer_of(record: Record) -> Timer | None:
    """The timer that runs."""
    found = _TIMERS.get(row_of(record))
    return None if found is None else found[0]


class Rules:
    """The contract of a store with these capabilities, one item at a time."""

    def __init__(self, capabilities: Capabilities) -> None:
        actions = specialized(honest_actions(capabilities), variant(capabilities).settings)
        self._by_call: dict[Call, list[Stepper]] = {}
        self._by_event: dict[Event, list[Stepper]] = {}
        for action in actions:
            if action.label.call is not None:
                self._by_call.setdefault(action.label.call, []).append(Stepper(action))
            elif action.label.event is not None:
                self._by_event.setdefault(action.label.event, []).append(Stepper(action))
        self.effects = cache(self._effects)
        self.may_stay = cache(self._may_stay)
        self.is_optional = cache(self._is_optional)
        self.starts_timer = cache(self._starts_timer)
        self.has_effect = cache(self._has_effect)
        self.finds_nothing = cache(self._finds_nothing)
        self.comes_first = cache(self._comes_first)
        self.run_out = cache(self._run_out)

    def _fitting(self, call: Call, answer: Answer | None) -> list[Stepper]:
        steppers = self._by_call.get(call, [])
        return [s for s in steppers if answer is None or s.action.label.answer is answer]

    def _effects(
        self, record: Record, call: Call, answer: Answer | None, held: int | None, attempt: int | None
    ) -> tuple[Effect, ...]:
        """What the call may do to such a row, with this answer; ``held`` is the token that it presents."""
        found: dict[Effect, None] = {}
        worker = caller(held)
        for stepper in self._fitting(call, answer):
            action = stepper.action
            if action.label.takes_effect and stepper.allows((worker,), (record,), 0, 0):
                after = _plain(stepper.takes((worker,), (record,), 0, 0)[1][0])
                if attempt is None or after[_ATTEMPT] == attempt:
                    found[Effect(after, action.timer is not None, action.prolongs)] = None
        return tuple(found)

    def _may_stay(self, record: Record, call: Call, answer: Answer | None, held: int | None) -> bool:
        """Can the call be answered so and change nothing, because the row is as it is?"""
        return any(
            not s.action.label.takes_effect and s.allows((caller(held),), (record,), 0, 0)
            for s in self._fitting(call, answer)
        )

    def _is_optional(self, call: Call, answer: Answer | None) -> bool:
        """Can the call be answered so and change nothing, wherever its item stands?"""
        if answer is None:
            return True
        if call in (Call.ENQUEUE, Call.CANCEL):
            return answer is not Answer.OK
        return any(
            not s.action.label.takes_effect and not _reads_item(s.action) for s in self._fitting(call, answer)
        )

    def _starts_timer(self, call: Call, answer: Answer | None) -> bool:
        """Can the call, answered so, start a timer? One that cannot never makes an item fetchable."""
        if call is Call.ENQUEUE:
            answer = None
        return any(
            s.action.timer is not None for s in self._fitting(call, answer) if s.action.label.takes_effect
        )

    def _has_effect(self, call: Call, answer: Answer | None) -> bool:
        """Can the call, answered so, change anything?"""
        if call is Call.ENQUEUE:
            answer = None
        return any(s.action.label.takes_effect for s in self._fitting(call, answer))

    def _finds_nothing(self, record: Record) -> bool:
        """May a fetch find nothing where an item stands so?"""
        return any(
            s.allows((INITIAL_WORKER,), (record,), 0, 0) for s in self._fitting(Call.FETCH, Answer.NOTHING)
        )

    def _comes_first(self, record: Record) -> bool:
        """Must a fetch return this item, if it is the older one, and not another?"""
        ok = self._fitting(Call.FETCH, Answer.OK)
        return not any(s.allows((INITIAL_WORKER,), (record, FREE), 0, 1) for s in ok)

    def _run_out(self, record: Record) -> Record:
        """The row after its timer has run out."""
        found = _TIMERS.get(row_of(record))
        for stepper in () if found is None else self._by_event[found[1]]:
            if stepper.allows((), (record,), 0, 0):
                record = _plain(stepper.takes((), (record,), 0, 0)[1][0])
        return record


@cache
def rules(capabilities: Capabilities) -> Rules:
    """The rules for these capabilities, made once."""
    return Rules(capabilities)


def _plain(record: Record) -> Record:
    """The row without its history, and with the first of all tokens for its own."""
    kept = [n if keep else first for n, first, keep in zip(record, INITIAL_ITEM, _KEPT, strict=True)]
    kept[_CURRENT], kept[_ISSUED] = min(kept[_CURRENT], OWN), min(kept[_ISSUED], OWN)
    return tuple(kept)


@cache
def caller(held: int | None) -> Record:
    """Who makes a call: with nothing in hand, or with this token."""
    if held is None:
        return INITIAL_WORKER
    values = {phase: encoded(Phase.ACKING), working_on: 1, token: held, result: encoded(Result.SUCCESS)}
    by_place = {PLACE[v]: n for v, n in values.items()}
    return tuple(by_place.get(k, n) for k, n in enumerate(INITIAL_WORKER))


def _reads_item(action: Action) -> bool:
    todo: list[Term] = list(action.guards)
    while todo:
        term = todo.pop()
        if term.op == "read" and isinstance(term.args[0], Variable) and term.args[0].index == ITEM:
            return True
        todo.extend(arguments(term))
    return False
