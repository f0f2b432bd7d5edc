"""Workers in threads: each makes its calls when all others do, and the order in which they were made is recorded."""

from __future__ import annotations

import enum
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, TypeAlias

from attrs import define, field

from peeklock.harness.adapter.clocks import RunClock
from peeklock.harness.adapter.wrapping import AdapterError, Guarded
from peeklock.harness.linear.history import Invoke, Outcome, Return
from peeklock.harness.linear.item_model import StoreAnswer, StoreCall
from peeklock.harness.run.steps import NEVER_ISSUED
from peeklock.harness.run.store_driver import method_of
from peeklock.spec.notation.actions import ABANDONS, ACKS, Answer, Call
from peeklock.spec.variants.capabilities import Capabilities

SWITCH_S = 1e-5
"""Threads are switched this often while a store is checked, in seconds."""
YIELDS = 0.05
"""How likely it is that others run between two lines of a call."""
REMEMBERED = 12
"""Tokens that anybody may present, the latest ones."""


Handle: TypeAlias = Callable[[int], AbstractContextManager[Guarded]]
"""How the n-th worker, from 0, calls the store, in a thread of its own."""


class Aim(enum.Enum):
    """What the workers are about when they all make a call."""

    FETCH = "they all fetch"
    MEET = "they all present the same token"
    ANY = "each does what it likes"


class Recorder:
    """Makes calls to a store, and keeps the order in which they began and ended."""

    def __init__(self, clock: RunClock) -> None:
        self.events: list[Invoke | Return] = []
        """In the order of real time; a list's append is atomic."""
        self.tokens: deque[str] = deque(maxlen=REMEMBERED)
        self.in_call: dict[str, str] = {}
        """Who is in a call, and in which."""
        self.sent: dict[str, Answer | None] = {}
        """The completions that acks carried, and what was answered."""
        self._clock = clock

    def made(self, caller: str, number: int, store: Guarded, call: Call, **of: Any) -> StoreAnswer:
        """Make a call and record it; of one that the adapter makes a fault in, nobody knows the outcome."""
        key = (caller, number)
        what = StoreCall(call, self._clock.now_ms(), caller=caller, **of)
        completion = f"{caller} {number}"
        if call is Call.ACK:
            self.sent[completion] = None
        self.in_call[caller] = str(what)
        self.events.append(Invoke(key, what))
        try:
            told = store.call(f"{caller}, call {number}", *_arguments(what, completion))
        except BaseException:
            self.events.append(Return(key, Outcome.INFO))
            del self.in_call[caller]
            raise
        until_ms, answer, value = self._clock.after_ms(), told.answer, told.value
        found = StoreAnswer(answer, until_ms)
        if answer is Answer.OK and call is Call.FETCH:
            found = StoreAnswer(Answer.NOTHING, until_ms)
            if value is not None:
                found = StoreAnswer(answer, until_ms, (value.item,), value.token, value.attempt_count)
        elif answer is Answer.OK and call is Call.CANCEL:
            found = StoreAnswer(answer, until_ms, value)
        self.events.append(Return(key, Outcome.OK, found))
        del self.in_call[caller]
        if call is Call.ACK:
            self.sent[completion] = answer
        if found.token is not None:
            self.tokens.append(found.token)
        return found


def _arguments(what: StoreCall, completion: str) -> tuple[Any, ...]:
    """The adapter's method for a call, and what it is called with."""
    call = what.call
    if call is Call.ENQUEUE:
        return call.value, what.items[0], what.lasts_ms
    if call is Call.FETCH:
        return call.value, what.lasts_ms
    if call is Call.CANCEL:
        return call.value, what.items
    more: tuple[Any, ...] = (what.lasts_ms,)
    if call in ACKS:
        more = (completion if call is Call.ACK else None,)
    elif call in ABANDONS:
        more = (what.lasts_ms, call is Call.ABANDON_IGNORING_ATTEMPT)
    return method_of(call), what.token, *more


@define
class Worker:
    """Makes one call at a time, chosen by a seed of its own."""

    name: str
    random: random.Random
    recorder: Recorder
    capabilities: Capabilities
    lock_ms: int
    made: int = 0
    own: list[str] = field(factory=list)

    def step(self, store: Guarded, aim: Aim, items: Sequence[str]) -> None:
        """One call."""
        self.made += 1
        with _others_run_between_lines(self.random):
            told = self.recorder.made(self.name, self.made, store, **self._chosen(aim, items))
        if told.token is not None:
            self.own = [*self.own[-3:], told.token]

    def _chosen(self, aim: Aim, items: Sequence[str]) -> dict[str, Any]:
        chance, has = self.random.random(), self.capabilities.calls
        token = self._token(aim)
        if aim is Aim.FETCH or token is None or (aim is Aim.ANY and chance < 0.3):
            return {"call": Call.FETCH, "lasts_ms": self.lock_ms}
        if aim is Aim.ANY and chance < 0.35 and Call.CANCEL in has:
            return {"call": Call.CANCEL, "items": (self.random.choice(items),)}
        if aim is Aim.ANY and chance < 0.4:
            delay_ms = self._delay_ms() if self.capabilities.enqueue_delay else 0
            item = f"{items[0].partition('-')[0]}-{self.name}-{self.made}"
            return {"call": Call.ENQUEUE, "items": (item,), "lasts_ms": delay_ms}
        settling = [c for c in has if c not in (Call.ENQUEUE, Call.FETCH, Call.CANCEL)]
        weights = [{Call.RENEW: 3, Call.ACK: 3}.get(c, 1) for c in settling]
        call = self.random.choices(settling, weights)[0]
        lasts_ms = self.lock_ms if call is Call.RENEW else 0
        if call in ABANDONS and self.capabilities.abandon_delay:
            lasts_ms = self._delay_ms()
        return {"call": call, "token": token, "lasts_ms": lasts_ms}

    def _delay_ms(self) -> int:
        return self.random.choice((0, 0, 0, self.lock_ms // 2))

    def _token(self, aim: Aim) -> str | None:
        others = tuple(self.recorder.tokens)
        if not others or (aim is Aim.ANY and self.random.random() < 0.03):
            return NEVER_ISSUED if others else None
        if aim is Aim.MEET:
            return others[-1]
        if self.own and self.random.random() < 0.7:
            return self.own[-1] if self.random.random() < 0.8 else self.random.choice(self.own)
        return self.random.choice(others)


class Crew:
    """The threads; each has a handle on the store that it gets by its number, and lets go of it."""

    def __init__(self, workers: Sequence[Worker], handle: Handle, recorder: Recorder) -> None:
        self._recorder = recorder
        self._start = threading.Barrier(len(workers))
        self._done: SimpleQueue[tuple[str, BaseException | None]] = SimpleQueue()
        self._orders: dict[str, SimpleQueue[tuple[Sequence[Aim], Sequence[str]] | None]] = {
            w.name: SimpleQueue() for w in workers
        }
        self.threads = {
            w.name: threading.Thread(target=self._live, args=(w, n, handle), name=w.name, daemon=True)
            for n, w in enumerate(workers)
        }
        for thread in self.threads.values():
            thread.start()

    def _live(self, worker: Worker, number: int, handle: Handle) -> None:
        try:
            with handle(number) as store:
                while (orders := self._orders[worker.name].get()) is not None:
                    aims, items = orders
                    for aim in aims:
                        self._start.wait()
                        worker.step(store, aim, items)
                    self._done.put((worker.name, None))
        except BaseException as fault:  # handed to the thread that waits for it
            self._start.abort()
            self._done.put((worker.name, fault))

    def calls(self, aims: Sequence[Aim], items: Sequence[str], limit_s: float) -> None:
        """Let every worker make a call for each aim, all at the same moment.

        What goes wrong in one of them is raised; ``AdapterError`` where no call comes back for so long.
        """
        for orders in self._orders.values():
            orders.put((aims, items))
        missing, faults = set(self.threads), []
        seen = -1
        while missing:
            try:
                name, fault = self._done.get(timeout=limit_s)
            except Empty:
                if seen == len(self._recorder.events):
                    self._start.abort()
                    raise self._hang(limit_s) from None
                seen = len(self._recorder.events)
                continue
            missing.discard(name)
            if fault is not None:
                faults.append(fault)
        real = [f for f in faults if not isinstance(f, threading.BrokenBarrierError)]
        if real:
            raise real[0]

    def _hang(self, limit_s: float) -> AdapterError:
        told = "; ".join(sorted(self._recorder.in_call.values()))
        return AdapterError(
            f"no call returned within {limit_s:g} s, made by {len(self.threads)} workers at once: {told}; let them "
            "answer, or raise RetryableError when the store is busy"
        )

    def dismiss(self) -> None:
        """End every thread, and wait for all that are not in a call."""
        self._start.abort()
        for orders in self._orders.values():
            orders.put(None)
        for name, thread in self.threads.items():
            if name not in self._recorder.in_call:
                thread.join()


@contextmanager
def switching_often() -> Iterator[None]:
    """Threads are switched after every few instructions, and as before at the end."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before_s)


@contextmanager
def _others_run_between_lines(chance: random.Random) -> Iterator[None]:
    """Now and then another thread runs between two lines of Python; not where a debugger or the like is at work."""
    if sys.gettrace() is not None:
        yield
        return

    def trace(frame: FrameType, event: str, value: Any) -> Any:
        if chance.random() < YIELDS:
            time.sleep(0)
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)
