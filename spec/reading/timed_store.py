"""The store of the specification with a clock: what each call is answered at each moment, and what is then there.

The clients may present any token that they were given, and one that nobody was. Timers run out exactly when due.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import TypeAlias

from attrs import define, evolve, field, frozen

from peeklock.spec.compose import specialized
from peeklock.spec.law.faults import FAULTS
from peeklock.spec.law.policy import RETRY
from peeklock.spec.law.state import (
    HISTORY,
    Phase,
    Result,
    Row,
    attempt_count,
    issued,
    phase,
    result,
    row,
    token,
    working_on,
)
from peeklock.spec.notation.actions import ABANDONS, ACKS, Action, Answer, Call, Event, Label
from peeklock.spec.reading.evaluate import (
    INITIAL_ITEM,
    INITIAL_WORKER,
    ITEM_VARIABLES,
    PLACE,
    Record,
    Stepper,
    encoded,
)
from peeklock.spec.variants.capabilities import Capabilities, Order, honest, store_alone
from peeklock.spec.variants.variant import Variant

TokenName: TypeAlias = tuple[int, int]
"""A token as the specification names it: the item, and the how-manieth of its tokens it is."""
STRANGER: TokenName = (0, 1_000)
"""A token that was never issued: no bounded world comes so far."""

_ROW, _ISSUED = PLACE[row], PLACE[issued]
ROWS = tuple(Row)
_TIMER_OF = {Row.DELAYED: Event.VISIBLE, Row.LOCKED: Event.EXPIRES}
_QUEUED = (Row.DELAYED, Row.READY, Row.LOCKED, Row.EXPIRED)
_KEPT = tuple(v not in HISTORY for v in ITEM_VARIABLES)


class Fault(enum.Enum):
    """What goes wrong with a call."""

    NONE = "none"
    BEFORE_EFFECT = "before effect"
    AFTER_EFFECT = "after effect"
    SPURIOUS = "refused although it could have been done"
    """No caller can make a real store do this."""


MADE = (Fault.NONE, Fault.BEFORE_EFFECT, Fault.AFTER_EFFECT)
"""What whoever calls a store can bring about, by dropping a request or a response."""


@frozen
class Step:
    """One call, or a wait."""

    call: Call | None = None
    """None lets time pass."""
    ms: int = 0
    """The lock timeout, the extension, the delay or the wait, in milliseconds."""
    items: tuple[int, ...] = ()
    """What is enqueued, cancelled, or to be fetched, by number; a fetch without any takes what the store chooses."""
    token: TokenName | None = None
    fault: Fault = Fault.NONE


@frozen(cache_hash=True)
class Moment:
    """What is in the store at one moment, and which tokens are out. The oldest items come first."""

    items: tuple[Record, ...]
    left_ms: tuple[int | None, ...]
    """How long until each row's timer runs out: 0 where it does now, -1 where it has before; None without a row."""
    tokens: tuple[TokenName, ...] = ()
    """The tokens that clients were given."""
    renewed: tuple[bool, ...] = ()
    """Was each item's lock renewed? False where there is none."""

    def row(self, i: int) -> Row:
        """Where an item stands."""
        return ROWS[self.items[i][_ROW]]

    def is_queued(self, i: int) -> bool:
        """Has the item a row?"""
        return self.row(i) in _QUEUED

    def is_fetchable(self, i: int) -> bool:
        """Could the item be fetched now?"""
        return self.row(i) in (Row.READY, Row.EXPIRED)

    def is_settled(self, i: int) -> bool:
        """Is the item's row gone?"""
        return self.row(i) in (Row.ACKED, Row.CANCELLED)

    def attempt_count(self, i: int) -> int:
        """How often the item was fetched, as its row has it."""
        return self.items[i][PLACE[attempt_count]]

    def latest_token(self, i: int) -> TokenName:
        """The item's token that was issued last."""
        return i, self.items[i][_ISSUED]

    @property
    def dues_ms(self) -> tuple[int, ...]:
        """How long until each timer that still runs is over, the next first."""
        return tuple(sorted({n for n in self.left_ms if n is not None and n > 0}))

    @property
    def deliveries(self) -> int:
        """How many tokens were issued."""
        return sum(record[_ISSUED] for record in self.items)

    @property
    def enqueued(self) -> int:
        """How many items were enqueued; they are the first ones."""
        return sum(self.row(i) is not Row.ABSENT for i in range(len(self.items)))


@frozen
class Outcome:
    """How a call comes out."""

    answers: tuple[Answer, ...]
    """More than one where the store may choose between them; then the ordinary one is the first."""
    effect: bool
    after: Moment
    item: int | None = None
    """The item that a fetch takes."""
    removed: tuple[int, ...] = ()
    """The items that a cancel removes."""


def nothing(items: int) -> Moment:
    """Nothing is enqueued yet."""
    return Moment((INITIAL_ITEM,) * items, (None,) * items, renewed=(False,) * items)


def with_room(moment: Moment) -> Moment:
    """The same with one more item, which is not enqueued yet."""
    return Moment(
        (*moment.items, INITIAL_ITEM), (*moment.left_ms, None), moment.tokens, (*moment.renewed, False)
    )


_QUIET = frozenset({"cancel", "expiry"})
_HONEST = _QUIET | {"ack-retryable", "renewal-retryable", "abandon-fails", "fetch-lost", "response-lost"}


@cache
def variant(capabilities: Capabilities, faults: frozenset[str] = _HONEST) -> Variant:
    """The store's side of the protocol. It may fail and be held up, but does not refuse what it could have done."""
    return Variant(RETRY, faults, fifo=capabilities.order is Order.FIFO)


@cache
def honest_actions(capabilities: Capabilities) -> tuple[Action, ...]:
    """What such a store may do with clients that do anything."""
    return honest(specialized(store_alone(capabilities), variant(capabilities).settings))


_NOBODY = INITIAL_WORKER
"""Who calls without a token."""


@cache
def _client(held: TokenName) -> Record:
    """Somebody who holds this token."""
    values = {phase: encoded(Phase.ACKING), working_on: held[0] + 1, token: held[1]}
    values |= {result: encoded(Result.SUCCESS)}
    by_place = {PLACE[v]: n for v, n in values.items()}
    return tuple(by_place.get(k, n) for k, n in enumerate(INITIAL_WORKER))


@define(eq=False)
class TimedStore:
    """A store with these capabilities. It fails only where it is made to."""

    capabilities: Capabilities
    _steppers: dict[tuple[Call | Event, Fault], list[Stepper]] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        own = {a.name for a in self._actions(_QUIET)}
        for action in self._actions(frozenset(f.name for f in FAULTS)):
            kind = Fault.NONE
            if action.name not in own:
                kind = Fault.AFTER_EFFECT if action.label.takes_effect else Fault.BEFORE_EFFECT
            if action.spurious:
                kind = Fault.SPURIOUS
            key = action.label.call or action.label.event
            assert key is not None
            self._steppers.setdefault((key, kind), []).append(Stepper(action))

    def _actions(self, faults: frozenset[str]) -> tuple[Action, ...]:
        return specialized(store_alone(self.capabilities), variant(self.capabilities, faults).settings)

    @property
    def provoked(self) -> frozenset[Label]:
        """What callers can bring about who only drop requests and responses, and so see retryable errors."""
        return frozenset(
            stepper.action.label
            for (_, fault), steppers in self._steppers.items()
            for stepper in steppers
            if fault is Fault.NONE or (fault in MADE and stepper.action.label.answer is Answer.RETRYABLE)
        )

    def outcomes(self, moment: Moment, step: Step) -> tuple[Outcome, ...]:
        """In which ways a call may come out; those that differ only in what is answered are one.

        None at all where the fault cannot happen: the response of a call is lost only where the call takes effect.
        """
        if step.call is None:
            return (Outcome((), False, self._later(moment, step.ms)),)
        if step.call is Call.CANCEL:
            return (self._cancelled(moment, step),)
        found: dict[tuple[bool, Moment, int | None], list[Answer]] = {}
        for stepper, i in self._enabled(moment, step):
            label = stepper.action.label
            assert label.answer is not None
            after = self._taken(moment, stepper, i, step)
            taken = i if step.call is Call.FETCH and label.takes_effect else None
            if taken is not None and step.fault is Fault.NONE:
                tokens = tuple(sorted((*after.tokens, after.latest_token(i))))
                after = evolve(after, tokens=tokens)
            found.setdefault((label.takes_effect, after, taken), []).append(label.answer)
        return tuple(
            Outcome(tuple(answers), effect, after, item) for (effect, after, item), answers in found.items()
        )

    def certain(self, moment: Moment, step: Step) -> Outcome | None:
        """The one way in which a call comes out; None where there are several, or none."""
        found = self.outcomes(moment, step)
        return found[0] if len(found) == 1 else None

    def first(self, moment: Moment, step: Step, *instead: Fault) -> Outcome:
        """One way in which a call comes out, always the same; where its fault cannot happen, with another instead."""
        return _first(self, moment, step, instead)

    def _enabled(self, moment: Moment, step: Step) -> Iterator[tuple[Stepper, int]]:
        assert step.call is not None
        steppers = self._steppers.get((step.call, step.fault), [])
        worker = _NOBODY if step.token is None else _client(step.token)
        items: Sequence[int] = step.items or range(len(moment.items))
        if step.token is not None:
            items = (step.token[0],)
        for stepper in steppers:
            for i in items if stepper.action.item is not None else (0,):
                if stepper.allows((worker,), moment.items, 0, i):
                    yield stepper, i

    def _taken(self, moment: Moment, stepper: Stepper, i: int, step: Step) -> Moment:
        """What is there after the step."""
        action = stepper.action
        if not action.label.takes_effect:
            return moment
        worker = _NOBODY if step.token is None else _client(step.token)
        items = _plain(stepper.takes((worker,), moment.items, 0, i)[1])
        after = evolve(moment, items=items)
        left_ms = moment.left_ms[i]
        if action.timer is not None:
            left_ms = step.ms + (max(left_ms or 0, 0) if action.prolongs else 0)
        elif not after.is_queued(i):
            left_ms = None
        renewed = step.call is Call.RENEW
        after = evolve(
            after,
            left_ms=(*moment.left_ms[:i], left_ms, *moment.left_ms[i + 1 :]),
            renewed=(*moment.renewed[:i], renewed, *moment.renewed[i + 1 :]),
        )
        return self._run_out(after)

    def _cancelled(self, moment: Moment, step: Step) -> Outcome:
        removed, now = [], moment
        for i in step.items:
            for stepper in self._steppers.get((Call.CANCEL, step.fault), []):
                if stepper.allows((_NOBODY,), now.items, 0, i):
                    now = self._taken(now, stepper, i, step)
                    removed.append(i)
        return Outcome((Answer.OK,), bool(removed), now, removed=tuple(removed))

    def _later(self, moment: Moment, ms: int) -> Moment:
        """So much time has passed."""
        left = tuple(None if n is None else max(n - ms, -1) for n in moment.left_ms)
        return self._run_out(evolve(moment, left_ms=left))

    def _run_out(self, moment: Moment) -> Moment:
        """The timers that are over have run out."""
        items = moment.items
        for i, left_ms in enumerate(moment.left_ms):
            event = _TIMER_OF.get(ROWS[items[i][_ROW]])
            if left_ms is not None and left_ms <= 0 and event is not None:
                for stepper in self._steppers[event, Fault.NONE]:
                    if stepper.allows((), items, 0, i):
                        items = _plain(stepper.takes((), items, 0, i)[1])
        return moment if items is moment.items else evolve(moment, items=items)


def _plain(items: tuple[Record, ...]) -> tuple[Record, ...]:
    """The items without their history, of which no call's answer depends."""
    return tuple(
        tuple(n if kept else first for n, first, kept in zip(i, INITIAL_ITEM, _KEPT, strict=True))
        for i in items
    )


@lru_cache(maxsize=50_000)
def _first(store: TimedStore, moment: Moment, step: Step, instead: tuple[Fault, ...]) -> Outcome:
    # Remembered, as the same runs are made time and again: to foresee them, to make them, to shorten them.
    found = store.outcomes(moment, step)
    for fault in instead:
        found = found or store.outcomes(moment, evolve(step, fault=fault))
    if not found:
        raise ValueError(f"{step}: no outcome of this call has such a fault")
    return found[0]


@cache
def timed_store(capabilities: Capabilities) -> TimedStore:
    """The store with these capabilities, made once."""
    return TimedStore(capabilities)


PRESENTING = (Call.RENEW, *ACKS, *ABANDONS)
"""The calls that present a token."""
