"""Carries out what a worker's cycle asks for, one effect at a time."""

import contextlib
from collections.abc import Callable, Generator, Mapping
from typing import Protocol, TypeAlias

from peeklock.impl.clock import Clock
from peeklock.impl.context import Verdict
from peeklock.impl.effects import (
    Abandon,
    AbortHandler,
    Ack,
    Effect,
    Fetch,
    Outcome,
    Renew,
    Reply,
    StartHandler,
    StepHandler,
    Steps,
    Wait,
    perform,
)
from peeklock.impl.store import Store, WorkItem

Handler: TypeAlias = Callable[[WorkItem], str | Generator[int | None, None, str]]
"""Turns an item into a result, or raises: then its exception is an application error.

A generator function yields, as often as it can, the milliseconds it wants to let pass (None: 0).
"""


class Cancelled(Exception):
    """Raised in a generator handler where it yields, when it should stop. It may clean up first."""


class Cycles(Protocol):
    """What a Driver needs of a worker."""

    @property
    def clock(self) -> Clock: ...

    @property
    def handlers(self) -> Mapping[str, Handler]: ...

    @property
    def drop_at_ms(self) -> int | None: ...

    def cycle(self) -> Steps[Verdict]: ...


class HandlerRun:
    """One run of a handler, advanced from yield to yield."""

    def __init__(self, handler: Handler, item: WorkItem, clock: Clock) -> None:
        self._handler = handler
        self._item = item
        self._clock = clock
        self._generator: Generator[int | None, None, str] | None = None
        self._signalled = False
        self._wake_ms = clock.now_ms()

    def ready_at_ms(self, until_ms: int, cancelled: bool) -> int:
        """The time up to which `step` with these arguments lets time pass; in milliseconds."""
        if cancelled and not self._signalled:
            return self._clock.now_ms()
        return max(self._clock.now_ms(), min(self._wake_ms, until_ms))

    def step(self, until_ms: int, cancelled: bool) -> Outcome | None:
        """Run it to its next yield, or let time pass to `until_ms` if it sleeps for longer."""
        if cancelled and not self._signalled:
            self._signalled = True
            return self._resume(Cancelled("the lock was lost, or is in doubt"))
        if self._wake_ms > until_ms:
            self._wait(until_ms)
            return None
        self._wait(self._wake_ms)
        return self._resume(None)

    def abort(self) -> None:
        """Close a generator; it gets no further step. What it does about that is ignored."""
        if self._generator is not None:
            with contextlib.suppress(Exception):
                self._generator.close()

    def _resume(self, signal: Cancelled | None) -> Outcome | None:
        try:
            return self._advance(signal)
        except StopIteration as stop:
            return self._result(stop.value)
        except Exception as error:  # whatever a handler raises is its own error
            return Outcome(f"{type(error).__name__}: {error}", failed=True)

    def _advance(self, signal: Cancelled | None) -> Outcome | None:
        if self._generator is None:
            if signal is not None:
                raise signal  # it had not begun
            begun = self._handler(self._item)
            if not isinstance(begun, Generator):
                return self._result(begun)
            self._generator = begun
        pause_ms = self._generator.send(None) if signal is None else self._generator.throw(signal)
        self._wake_ms = self._clock.now_ms() + (pause_ms or 0)
        return None

    def _result(self, value: object) -> Outcome:
        if isinstance(value, str):
            return Outcome(value)
        return Outcome(f"TypeError: the handler returned {type(value).__name__}, not str", failed=True)

    def _wait(self, until_ms: int) -> None:
        self._clock.wait_ms(until_ms - self._clock.now_ms())


class Driver:
    """One cycle of a worker against a store.

    `pending` is the effect that the next `step()` will carry out. To interleave several on one
    VirtualClock, step the one whose `ready_at_ms()` is least; to let a worker crash, drop its
    driver. When the cycle is over, `pending` is None and `verdict` says what it came to.
    """

    def __init__(self, worker: Cycles, store: Store) -> None:
        self._worker = worker
        self._store = store
        self._cycle = worker.cycle()
        self._run: HandlerRun | None = None
        self.pending: Effect | None = None
        self.verdict: Verdict | None = None
        self._send(None)

    def ready_at_ms(self) -> int:
        """The time up to which the pending effect lets time pass, at least now; in milliseconds."""
        match self.pending:
            case Wait(until_ms):
                return max(self._worker.clock.now_ms(), self._before_drop(until_ms))
            case StepHandler(_, until_ms, cancelled) if self._run is not None:
                return self._run.ready_at_ms(self._before_drop(until_ms), cancelled)
        return self._worker.clock.now_ms()

    def step(self) -> None:
        """Carry out the pending effect. RuntimeError when the cycle is over."""
        if self.pending is None:
            raise RuntimeError("the cycle is over")
        self._send(self._carry_out(self.pending))

    def run(self) -> Verdict:
        """Carry out everything to the end of the cycle."""
        while self.verdict is None:
            self.step()
        return self.verdict

    def _carry_out(self, effect: Effect) -> Reply:
        clock = self._worker.clock
        match effect:
            case Wait(until_ms):
                clock.wait_ms(self._before_drop(until_ms) - clock.now_ms())
            case StartHandler(delivery):
                self._run = HandlerRun(self._worker.handlers[delivery.item.name], delivery.item, clock)
            case StepHandler(_, until_ms, cancelled) if self._run is not None:
                return self._run.step(self._before_drop(until_ms), cancelled)
            case AbortHandler() if self._run is not None:
                self._run.abort()
            case Fetch() | Renew() | Ack() | Abandon():
                return perform(self._store, effect)
        return None

    def _send(self, reply: Reply) -> None:
        try:
            self.pending = self._cycle.send(reply)
        except StopIteration as stop:
            self.pending, self.verdict = None, stop.value

    def _before_drop(self, until_ms: int) -> int:
        # A shutdown may have been requested after the effect was yielded.
        drop_at_ms = self._worker.drop_at_ms
        return until_ms if drop_at_ms is None else min(until_ms, drop_at_ms)
