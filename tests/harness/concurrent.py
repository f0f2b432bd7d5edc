"""Many workers on one store at the same time: what they saw is recorded, and held against the contract.

A run is many short rounds. In each a few items are enqueued, all workers start at a barrier, and each makes a few
calls: it fetches, renews, acks or abandons, repeats what it did, and presents tokens of others. Between the phases
of a round the clock of the store is moved, so that locks expire without waiting.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any

from attrs import define, field, frozen

from peeklock.harness.adapter import PermanentError, RetryableError, StoreAdapter
from peeklock.harness.history import Invoke, Outcome, Return
from peeklock.harness.item_model import StoreAnswer, StoreCall
from peeklock.harness.store_history import StoreHistory
from peeklock.harness.world import Violation
from peeklock.spec.actions import Answer, Call
from peeklock.spec.capabilities import STANDARD, Capabilities, CompletionWrite

VIRTUAL_LOCK_MS, REAL_LOCK_MS = 1_000, 20
"""The lock timeout of every fetch, on a clock that is moved and on one that is not."""
PHASES = (0.0, 0.5, 1.0, 0.001)
"""How far the clock moves before each phase of a round, in lock timeouts."""
CALLS_IN_A_PHASE = 4
ITEMS_IN_A_ROUND = 3
SWITCH_S = 1e-5
"""Threads are switched this often while a store is checked, in seconds."""
_REMEMBERED = 12
"""Tokens that anybody may present, the latest ones."""


@frozen
class ConcurrentReport:
    """What was found of a store under concurrent calls."""

    seed: int
    rounds: int
    calls: int
    overlapping: int
    """Calls that began while another was open."""
    answers: dict[str, int]
    """How often each answer was given, as "fetch -> ok"."""
    violation: Violation | None
    torn: tuple[str, ...]
    """Items whose completions in the store are not those that the calls explain."""
    hung: tuple[str, ...]
    """Workers that did not come back, with the call that they were in."""

    @property
    def conforms(self) -> bool:
        """Was nothing found, and were there concurrent calls at all?"""
        return self.violation is None and not self.torn and not self.hung and self.overlapping > 0


class Recorder:
    """Makes calls to a store, and keeps the order in which they began and ended."""

    def __init__(self, now_ms: Callable[[], int], slack_ms: int) -> None:
        self.events: list[Invoke | Return] = []
        """In the order of real time; a list's append is atomic."""
        self.tokens: deque[str] = deque(maxlen=_REMEMBERED)
        self.in_call: dict[str, str] = {}
        self._now_ms, self._slack_ms = now_ms, slack_ms

    def made(self, caller: str, number: int, store: StoreAdapter, call: Call, **of: Any) -> StoreAnswer:
        """Make a call and record it; faults of the adapter are recorded as unknown outcomes and go on."""
        key = (caller, number)
        what = StoreCall(call, self._now_ms() - self._slack_ms, caller=caller, **of)
        self.in_call[caller] = str(what)
        self.events.append(Invoke(key, what))
        answer = Answer.OK
        items: tuple[str, ...] = ()
        token: str | None = None
        attempt: int | None = None
        try:
            answer, items, token, attempt = _called(store, what)
        except RetryableError:
            answer = Answer.RETRYABLE
        except PermanentError:
            answer = Answer.PERMANENT
        except BaseException:
            self.events.append(Return(key, Outcome.INFO))
            raise
        told = StoreAnswer(answer, self._now_ms() + self._slack_ms, items, token, attempt)
        self.events.append(Return(key, Outcome.OK, told))
        del self.in_call[caller]
        if token is not None:
            self.tokens.append(token)
        return told


def _called(store: StoreAdapter, what: StoreCall) -> tuple[Answer, tuple[str, ...], str | None, int | None]:
    token = what.token or ""
    if what.call is Call.FETCH:
        delivery = store.fetch(what.lasts_ms)
        if delivery is None:
            return Answer.NOTHING, (), None, None
        return Answer.OK, (delivery.item,), delivery.token, delivery.attempt_count
    if what.call is Call.CANCEL:
        return Answer.OK, tuple(store.cancel(what.items)), None, None
    if what.call is Call.ENQUEUE:
        store.enqueue(what.items[0], what.lasts_ms)
    elif what.call is Call.RENEW:
        store.renew(token, what.lasts_ms)
    elif what.call in (Call.ACK, Call.CANCELLATION_ACK):
        store.ack(token, "done" if what.call is Call.ACK else None)
    else:
        store.abandon(token, what.lasts_ms, what.call is Call.ABANDON_IGNORING_ATTEMPT)
    return Answer.OK, (), None, None


@define
class _Worker:
    """A thread that makes a few calls whenever it is told to."""

    name: str
    random: random.Random
    recorder: Recorder
    calls: tuple[Call, ...]
    lock_ms: int
    made: int = 0
    own: list[str] = field(factory=list)

    def phase(self, store: StoreAdapter, items: tuple[str, ...]) -> None:
        """A few calls, chosen by the worker's own seed."""
        for _ in range(CALLS_IN_A_PHASE):
            self.made += 1
            token = self._token()
            if token is None or self.random.random() < 0.35:
                told = self._call(store, Call.FETCH, lasts_ms=self.lock_ms)
                if told.token is not None:
                    self.own = [*self.own[-3:], told.token]
            elif Call.CANCEL in self.calls and self.random.random() < 0.05:
                self._call(store, Call.CANCEL, items=(self.random.choice(items),))
            else:
                settling = [c for c in self.calls if c not in (Call.ENQUEUE, Call.FETCH, Call.CANCEL)]
                weights = [{Call.RENEW: 3, Call.ACK: 3}.get(c, 1) for c in settling]
                call = self.random.choices(settling, weights)[0]
                self._call(store, call, token=token, lasts_ms=self.lock_ms if call is Call.RENEW else 0)

    def _call(self, store: StoreAdapter, call: Call, **of: Any) -> StoreAnswer:
        return self.recorder.made(self.name, self.made, store, call, **of)

    def _token(self) -> str | None:
        others = tuple(self.recorder.tokens)
        if self.own and self.random.random() < 0.7:
            return self.own[-1] if self.random.random() < 0.8 else self.random.choice(self.own)
        return self.random.choice(others) if others else None


class _Crew:
    """The threads; each makes its own client, and closes it."""

    def __init__(self, workers: list[_Worker], make_client: Callable[[], StoreAdapter], owned: bool) -> None:
        self._start = threading.Barrier(len(workers))
        self._done: SimpleQueue[tuple[str, BaseException | None]] = SimpleQueue()
        self._orders: dict[str, SimpleQueue[tuple[str, ...] | None]] = {
            w.name: SimpleQueue() for w in workers
        }
        self._make_client, self._owned = make_client, owned
        self.threads = {
            w.name: threading.Thread(target=self._live, args=(w,), name=w.name, daemon=True) for w in workers
        }
        for thread in self.threads.values():
            thread.start()

    def _live(self, worker: _Worker) -> None:
        store: StoreAdapter | None = None
        try:
            store = self._make_client()
            while (items := self._orders[worker.name].get()) is not None:
                self._start.wait()
                worker.phase(store, items)
                self._done.put((worker.name, None))
        except BaseException as fault:  # handed to the thread that waits for it
            self._start.abort()
            self._done.put((worker.name, fault))
        finally:
            if self._owned and store is not None:
                _close(store)

    def phase(self, items: tuple[str, ...], patience_s: float) -> tuple[str, ...]:
        """Let every worker make its calls; the names of those that did not come back in time."""
        for orders in self._orders.values():
            orders.put(items)
        missing, faults = set(self.threads), []
        until_s = time.monotonic() + patience_s
        while missing:
            try:
                name, fault = self._done.get(timeout=max(0.0, until_s - time.monotonic()))
            except Empty:
                break
            missing.discard(name)
            if fault is not None:
                faults.append(fault)
        real = [f for f in faults if not isinstance(f, threading.BrokenBarrierError)]
        if real:
            raise real[0]
        return tuple(sorted(missing))

    def dismiss(self, hung: tuple[str, ...]) -> None:
        """End and join every thread that is not hung."""
        for orders in self._orders.values():
            orders.put(None)
        for name, thread in self.threads.items():
            if name not in hung:
                thread.join()


def _close(store: StoreAdapter) -> None:
    close: Callable[[], None] | None = getattr(store, "close", None)
    if close is not None:
        close()


@contextmanager
def switching_often() -> Iterator[None]:
    """Threads are switched after every few instructions, and as before at the end."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before_s)


def check_store_concurrently(
    make_store: Callable[[], StoreAdapter],
    capabilities: Capabilities = STANDARD,
    *,
    make_client: Callable[[StoreAdapter], StoreAdapter] | None = None,
    threads: int = 8,
    seconds: float = 5,
    rounds: int | None = None,
    seed: int = 0,
    patience_s: float = 30,
) -> ConcurrentReport:
    """Let many threads use one store, and hold what they saw against the contract.

    ``make_client`` makes what one thread uses, in that thread: a connection of its own; by default all use the store
    itself. It ends after ``seconds``, or after so many ``rounds``, or when something is found. Workers that do not
    come back within ``patience_s`` are reported as hung. A fault of the adapter is raised as it is; ``ValueError``
    for fewer than two threads.
    """
    if threads < 2:
        raise ValueError(f"threads is {threads}; allowed: 2 or more")
    store = make_store()
    run = _Run(store, capabilities, seed, seconds if rounds is None else None, rounds)
    workers = [
        _Worker(f"w{n}", random.Random(f"{seed}/{n}"), run.recorder, capabilities.calls, run.lock_ms)
        for n in range(threads)
    ]
    crew = _Crew(
        workers, lambda: store if make_client is None else make_client(store), make_client is not None
    )
    hung: tuple[str, ...] = ()
    try:
        with switching_often():
            while run.goes_on() and not hung:
                hung = run.round(crew, patience_s)
    finally:
        crew.dismiss(hung)
        if not hung:
            _close(store)
    return run.report(hung)


class _Run:
    """One store, its clock, and what is known of what it did."""

    def __init__(
        self,
        store: StoreAdapter,
        capabilities: Capabilities,
        seed: int,
        seconds: float | None,
        rounds: int | None,
    ) -> None:
        self.store, self.capabilities, self.seed = store, capabilities, seed
        self._until_s = None if seconds is None else time.monotonic() + seconds
        self._most_rounds = rounds
        self._virtual_ms = 0
        virtual = capabilities.virtual_clock
        self.lock_ms = VIRTUAL_LOCK_MS if virtual else REAL_LOCK_MS
        # Two clocks that both cut off fractions may disagree by one.
        self.recorder = Recorder(self._now_ms, 0 if virtual else 1)
        self._judge = StoreHistory(capabilities)
        self._answers: Counter[str] = Counter()
        self._overlapping = self._rounds = self._made = 0
        self._violation: Violation | None = None
        self._torn: tuple[str, ...] = ()

    def _now_ms(self) -> int:
        return self._virtual_ms if self.capabilities.virtual_clock else time.monotonic_ns() // 1_000_000

    def goes_on(self) -> bool:
        """Is there time left, and nothing found?"""
        if self._violation is not None or self._torn:
            return False
        if self._most_rounds is not None:
            return self._rounds < self._most_rounds
        return self._until_s is not None and time.monotonic() < self._until_s

    def round(self, crew: _Crew, patience_s: float) -> tuple[str, ...]:
        """One round, judged at its end; the workers that hang."""
        self._rounds += 1
        items = tuple(f"r{self._rounds}-{n}" for n in range(ITEMS_IN_A_ROUND))
        for item in items:
            self._own(Call.ENQUEUE, items=(item,))
        hung: tuple[str, ...] = ()
        for share in PHASES:
            if self.capabilities.virtual_clock:
                self.store.advance(int(share * self.lock_ms))  # type: ignore[attr-defined]
                self._virtual_ms += int(share * self.lock_ms)
            hung = crew.phase(items, patience_s)
            if hung:
                break
        if not hung and Call.CANCEL in self.capabilities.calls:
            self._own(Call.CANCEL, items=items)
        self._judged(items, hung)
        return hung

    def _own(self, call: Call, **of: Any) -> None:
        self._made += 1
        self.recorder.made("harness", self._made, self.store, call, **of)

    def _judged(self, items: tuple[str, ...], hung: tuple[str, ...]) -> None:
        events = tuple(self.recorder.events)
        self.recorder.events.clear()
        self._count(events)
        try:
            for event in events:
                self._judge.add(event)
            if hung:
                self._judge.end()
        except Violation as violation:
            self._violation = violation
            return
        if not hung and self.capabilities.completion is not CompletionWrite.NONE:
            written = Counter(item for item, _ in self.store.completions())
            self._torn = tuple(i for i in items if written[i] not in self._judge.completions_of(i))

    def _count(self, events: tuple[Invoke | Return, ...]) -> None:
        running: dict[Any, Call] = {}
        for event in events:
            if isinstance(event, Invoke):
                self._overlapping += bool(running)
                running[event.key] = event.what.call
            elif event.result is not None:
                call = running.pop(event.key)
                self._answers[f"{call.value} -> {event.result.answer.value}"] += 1

    def report(self, hung: tuple[str, ...]) -> ConcurrentReport:
        """What was found."""
        return ConcurrentReport(
            self.seed,
            self._rounds,
            sum(self._answers.values()),
            self._overlapping,
            dict(sorted(self._answers.items())),
            self._violation,
            self._torn,
            tuple(f"{name}, in {self.recorder.in_call.get(name, 'no call')}" for name in hung),
        )
