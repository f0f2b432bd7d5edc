"""A store in memory that is computed from the specification: each call takes the outcome that the contract allows."""

from __future__ import annotations

from functools import cache

from attrs import define, field, frozen

from peeklock.harness.script import Fault
from peeklock.spec.actions import Answer, Call, Event, Timer
from peeklock.spec.capabilities import Capabilities, store_alone
from peeklock.spec.evaluate import INITIAL_ITEM, INITIAL_WORKER, PLACE, Record, State, Stepper
from peeklock.spec.policy import RETRY
from peeklock.spec.protocol import Variant, specialized
from peeklock.spec.state import Row, attempt_count, completions, row

_ROWS = list(Row)
_ROW = PLACE[row]
_SETTLED = (Row.ACKED, Row.CANCELLED)


@frozen
class Answered:
    """How a call came out."""

    answer: Answer
    effect: bool


@frozen
class Fetched:
    """What a fetch took, and what its caller was told."""

    item: str
    token: str
    attempt_count: int
    answer: Answer


@cache
def _steppers(
    capabilities: Capabilities,
) -> dict[tuple[Call | Event | None, Answer | None, bool], list[Stepper]]:
    """The steps of the store, by call or event, answer and effect."""
    found: dict[tuple[Call | Event | None, Answer | None, bool], list[Stepper]] = {}
    for action in specialized(store_alone(capabilities), Variant(RETRY).settings):
        label = action.label
        key = label.call or label.event, label.answer, label.takes_effect
        found.setdefault(key, []).append(Stepper(action))
    return found


@define
class SpecStore:
    """The rows of every item by the specification, with a clock. Who holds a token is a client of its own."""

    capabilities: Capabilities
    now_ms: int = 0
    _state: State = ((), ())
    _items: dict[str, int] = field(factory=dict)
    _tokens: dict[str, tuple[int, int]] = field(factory=dict)
    """For each token its client and its item."""
    _timers: dict[int, tuple[Timer, int]] = field(factory=dict)

    def next_timer_ms(self) -> int | None:
        """When the next lock expires or the next delay ends."""
        return min((due for _, due in self._timers.values()), default=None)

    def pass_time(self, now_ms: int) -> tuple[str, ...]:
        """Let time pass, to the next timer's end at most; the items whose locks expire at that very time."""
        self.now_ms = now_ms
        expired = []
        for i, (timer, due_ms) in list(self._timers.items()):
            if due_ms <= now_ms:
                del self._timers[i]
                event = Event.EXPIRES if timer is Timer.LOCK else Event.VISIBLE
                if self._take((event, None, False), 0, i) and timer is Timer.LOCK:
                    expired.append(self._name(i))
        return tuple(expired)

    def enqueue(self, item: str, delay_ms: int) -> None:
        """Give a new item its row."""
        i = self._items[item] = len(self._items)
        self._state = self._state[0], (*self._state[1], INITIAL_ITEM)
        self._take((Call.ENQUEUE, Answer.OK, True), 0, i, delay_ms)
        self.pass_time(self.now_ms)

    def fetchable(self) -> str | None:
        """The oldest item that a fetch would take."""
        for i, record in enumerate(self._state[1]):
            if _ROWS[record[_ROW]] in (Row.READY, Row.EXPIRED):
                return self._name(i)
        return None

    def fetch(self, item: str, lock_timeout_ms: int, lost: bool = False) -> Fetched:
        """Lock this item for a new client; ``lost`` where the client is not told."""
        i, client = self._items[item], len(self._state[0])
        self._state = (*self._state[0], INITIAL_WORKER), self._state[1]
        answer = Answer.RETRYABLE if lost else Answer.OK
        taken = self._take((Call.FETCH, answer, True), client, i, lock_timeout_ms)
        assert taken, f"{item} cannot be fetched"
        token = f"t{client + 1}"
        self._tokens[token] = (client, i)
        count = self._state[1][i][PLACE[attempt_count]]
        self.pass_time(self.now_ms)
        return Fetched(item, token, count, answer)

    def call(self, call: Call, token: str, fault: Fault, lasts_ms: int = 0) -> Answered:
        """Answer a renewal, an ack or an abandon as the fault says, else as the contract does."""
        if token not in self._tokens:
            refused = fault.kind in ("none", "permanent")
            return Answered(Answer.PERMANENT if refused else Answer.RETRYABLE, False)
        client, i = self._tokens[token]
        ways = {
            "none": ((Answer.OK, True), (Answer.PERMANENT, False), (Answer.OK, False)),
            "retryable": ((Answer.RETRYABLE, False),),
            "response lost": ((Answer.RETRYABLE, True), (Answer.RETRYABLE, False)),
            "permanent": ((Answer.PERMANENT, False),),
        }[fault.kind]
        for answer, effect in ways:
            if self._take((call, answer, effect), client, i, lasts_ms):
                self.pass_time(self.now_ms)
                return Answered(answer, effect)
        raise AssertionError(f"the contract has no outcome for {call.value} with {fault}")

    def cancel(self, item: str) -> bool:
        """Delete the item's row; was there one?"""
        return self._take((Call.CANCEL, Answer.OK, True), 0, self._items[item])

    def record(self, item: str) -> Record:
        """The item's record in the specification."""
        return self._state[1][self._items[item]]

    def item_of(self, token: str) -> str | None:
        """The item that a token was issued for."""
        return self._name(self._tokens[token][1]) if token in self._tokens else None

    def is_settled(self, item: str) -> bool:
        """Is its row gone?"""
        return _ROWS[self.record(item)[_ROW]] in _SETTLED

    def is_completed(self, item: str) -> bool:
        """Was a completion of it enqueued?"""
        return self.record(item)[PLACE[completions]] > 0

    def where(self, item: str) -> str:
        """Where the item stands, in words."""
        record = self.record(item)
        done = record[PLACE[completions]]
        return _ROWS[record[_ROW]].value + (f", completed {done} times" if done > 1 else "")

    @property
    def items(self) -> tuple[str, ...]:
        """All items that were ever enqueued, oldest first."""
        return tuple(self._items)

    def _name(self, i: int) -> str:
        return list(self._items)[i]

    def _take(
        self, key: tuple[Call | Event | None, Answer | None, bool], client: int, i: int, lasts_ms: int = 0
    ) -> bool:
        for stepper in _steppers(self.capabilities).get(key, ()):
            if stepper.allows(*self._state, client, i):
                self._state = stepper.takes(*self._state, client, i)
                self._retime(stepper, i, lasts_ms)
                return True
        return False

    def _retime(self, stepper: Stepper, i: int, lasts_ms: int) -> None:
        action = stepper.action
        if action.timer is not None:
            running = self._timers.get(i)
            from_ms = running[1] if action.prolongs and running is not None else self.now_ms
            self._timers[i] = (action.timer, from_ms + lasts_ms)
        elif _ROWS[self._state[1][i][_ROW]] in _SETTLED:
            self._timers.pop(i, None)
