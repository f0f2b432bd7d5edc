"""What an honest store would answer: the specification's store, run by itself, in one of the ways it may go.

Runs are generated on it alone. What a real store answers has no part in that, so a run that failed can be shortened
and repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from attrs import frozen

from peeklock.harness.steps import NEVER_ENQUEUED, Fault, Step
from peeklock.spec.actions import Action, Answer, Call, Event, Timer
from peeklock.spec.capabilities import Capabilities, Order, honest, store_alone
from peeklock.spec.evaluate import INITIAL_ITEM, INITIAL_WORKER, PLACE, State, Stepper
from peeklock.spec.faults import DISHONEST
from peeklock.spec.policy import RETRY
from peeklock.spec.protocol import Variant, specialized
from peeklock.spec.state import Row, attempt_count, current, row, token

HONEST = Variant(
    RETRY,
    frozenset(
        {
            "cancel",
            "expiry",
            "ack-retryable",
            "renewal-retryable",
            "abandon-fails",
            "fetch-lost",
            "response-lost",
        }
    ),
)
"""A store may fail, and be held up; it may not refuse what it could have done."""
_ROW, _ATTEMPTS, _CURRENT, _TOKEN = PLACE[row], PLACE[attempt_count], PLACE[current], PLACE[token]
_ROWS = list(Row)
_FETCHABLE = frozenset({_ROWS.index(Row.READY), _ROWS.index(Row.EXPIRED)})
_QUEUED = _FETCHABLE | {_ROWS.index(Row.DELAYED), _ROWS.index(Row.LOCKED)}
_EVENT_OF = {Timer.LOCK: Event.EXPIRES, Timer.VISIBILITY: Event.VISIBLE}


@cache
def variant(capabilities: Capabilities) -> Variant:
    """The store's side of the protocol, with the faults that a check of a store makes or bears."""
    return Variant(RETRY, HONEST.faults, fifo=capabilities.order is Order.FIFO)


@cache
def honest_actions(capabilities: Capabilities) -> tuple[Action, ...]:
    """What such a store may do with clients that do anything; spurious refusals are left out."""
    assert DISHONEST.name not in HONEST.faults
    return honest(specialized(store_alone(capabilities), variant(capabilities).settings))


@cache
def _steppers(capabilities: Capabilities) -> dict[Call | Event, tuple[Stepper, ...]]:
    found: dict[Call | Event, list[Stepper]] = {}
    for action in honest_actions(capabilities):
        key = action.label.call or action.label.event
        assert key is not None
        found.setdefault(key, []).append(Stepper(action))
    return {key: tuple(steppers) for key, steppers in found.items()}


@frozen
class Foreseen:
    """How a call is foreseen to end."""

    answer: Answer
    item: str | None = None
    """The item that a fetch returns."""
    attempt: int | None = None
    items: tuple[str, ...] = ()
    """The items that a cancel removes."""


@frozen
class Known:
    """A delivery that was foreseen: its item and its worker, as numbers."""

    item: int
    worker: int
    lost: bool = False
    """Its fetch failed after it took effect: nobody knows the token."""


class Forecast:
    """The specification's store after some steps."""

    def __init__(self, capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self.state: State = ((), ())
        self.now_ms = 0
        self.items: list[str] = []
        self.deliveries: list[Known] = []
        self.due_ms: dict[tuple[int, Timer], int] = {}
        self._by = _steppers(capabilities)

    def take(self, step: Step) -> Foreseen | None:
        """Take a step; None where it lets time pass."""
        match step.call:
            case None:
                self._pass(step.ms)
                return None
            case Call.ENQUEUE:
                self.items.append(step.items[0])
                self.state = (self.state[0], (*self.state[1], INITIAL_ITEM))
                return self._called(step, 0, len(self.items) - 1)
            case Call.CANCEL:
                return self._cancel(step)
            case Call.FETCH:
                return self._fetch(step)
        known = self.deliveries[step.delivery - 1] if 0 < step.delivery <= len(self.deliveries) else None
        if known is None or known.lost:
            return Foreseen(self._refusal(step.call))
        return self._called(step, known.worker, known.item)

    # What can be asked of it, to choose a step by

    @property
    def fetchable(self) -> int:
        """How many items could be fetched now."""
        return sum(record[_ROW] in _FETCHABLE for record in self.state[1])

    def is_queued(self, item: int) -> bool:
        """Has this item a row?"""
        return self.state[1][item][_ROW] in _QUEUED

    def is_current(self, delivery: int) -> bool:
        """Is the n-th delivery's token its row's own?"""
        known = self.deliveries[delivery - 1]
        record = self.state[1][known.item]
        return self.is_queued(known.item) and record[_CURRENT] == self.state[0][known.worker][_TOKEN]

    def is_locked(self, delivery: int) -> bool:
        """Is the n-th delivery's lock in force?"""
        return self.is_current(delivery) and (self.deliveries[delivery - 1].item, Timer.LOCK) in self.due_ms

    # One step

    def _pass(self, ms: int) -> None:
        self.now_ms += ms
        for (item, timer), due_ms in sorted(self.due_ms.items(), key=lambda entry: entry[1]):
            if due_ms <= self.now_ms:
                self._run_out(item, timer)

    def _run_out(self, item: int, timer: Timer) -> None:
        del self.due_ms[item, timer]
        for stepper in self._by[_EVENT_OF[timer]]:
            if stepper.allows(*self.state, 0, item):
                self.state = stepper.takes(*self.state, 0, item)

    def _called(self, step: Step, w: int, i: int) -> Foreseen:
        assert step.call is not None
        kinds: dict[Fault, Callable[[Action], bool]] = {
            Fault.NONE: lambda a: a.label.answer is not Answer.RETRYABLE,
            Fault.BEFORE_EFFECT: lambda a: a.label.answer is Answer.RETRYABLE and not a.label.takes_effect,
            Fault.AFTER_EFFECT: lambda a: a.label.answer is Answer.RETRYABLE and a.label.takes_effect,
        }
        wanted = kinds[step.fault]
        enabled = [s for s in self._by[step.call] if s.allows(*self.state, w, i)]
        chosen = next((s for s in enabled if wanted(s.action)), None)
        if chosen is None:  # a response can be lost only of a call that had one: a refusal comes through
            chosen = next(s for s in enabled if s.action.label.answer is not Answer.RETRYABLE)
        self._apply(chosen, step, w, i)
        assert chosen.action.label.answer is not None
        return Foreseen(chosen.action.label.answer)

    def _apply(self, stepper: Stepper, step: Step, w: int, i: int) -> None:
        action = stepper.action
        self.state = stepper.takes(*self.state, w, i)
        if not action.label.takes_effect:
            return
        started_ms = self.now_ms
        for timer in Timer:
            was_ms = self.due_ms.pop((i, timer), None)
            if action.prolongs and was_ms is not None and timer is action.timer:
                started_ms = was_ms
        if action.timer is not None:
            self.due_ms[i, action.timer] = started_ms + step.ms
            if started_ms + step.ms <= self.now_ms:
                self._run_out(i, action.timer)

    def _fetch(self, step: Step) -> Foreseen:
        worker = len(self.state[0])
        self.state = ((*self.state[0], INITIAL_WORKER), self.state[1])
        takes = step.fault is not Fault.BEFORE_EFFECT
        answer = Answer.OK if step.fault is Fault.NONE else Answer.RETRYABLE
        for stepper in self._by[Call.FETCH]:
            label = stepper.action.label
            if label.takes_effect == takes and label.answer is answer:
                for i in range(len(self.items)) if takes else (0,):
                    if takes and stepper.allows(*self.state, worker, i):
                        self._apply(stepper, step, worker, i)
                        self.deliveries.append(Known(i, worker, lost=answer is not Answer.OK))
                        attempt = self.state[1][i][_ATTEMPTS]
                        return Foreseen(answer, self.items[i], attempt)
        self.state = (self.state[0][:-1], self.state[1])
        return Foreseen(Answer.NOTHING if step.fault is not Fault.BEFORE_EFFECT else Answer.RETRYABLE)

    def _cancel(self, step: Step) -> Foreseen:
        removed = []
        for name in step.items:
            if name == NEVER_ENQUEUED:
                continue
            item = self.items.index(name)
            for stepper in self._by[Call.CANCEL]:
                if stepper.allows(*self.state, 0, item):
                    self._apply(stepper, step, 0, item)
                    removed.append(name)
        return Foreseen(Answer.OK, items=tuple(removed))

    def _refusal(self, call: Call) -> Answer:
        return min(refusals(self.capabilities, call), key=list(Answer).index)


@cache
def refusals(capabilities: Capabilities, call: Call) -> frozenset[Answer]:
    """What may be answered to a token that is nobody's."""
    return frozenset(
        s.action.label.answer
        for s in _steppers(capabilities)[call]
        if s.action.label.answer is not None and s.action.pieces[0].startswith(("refused", "abandon_refused"))
    )
