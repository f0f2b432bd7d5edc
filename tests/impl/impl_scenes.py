"""A scene: one item, a store that fails by script, workers on a virtual clock, and the story they make."""

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from peeklock.impl import (
    RETRY,
    Abandon,
    Ack,
    Answer,
    Called,
    Completion,
    CompletionKind,
    Counted,
    Delivery,
    Driver,
    Dropped,
    Event,
    FaultyStore,
    Fetch,
    HandlerAborted,
    HandlerCancelled,
    HandlerEnded,
    HandlerStarted,
    Metrics,
    Ok,
    PermanentError,
    Policy,
    Renew,
    ShutdownRequested,
    Store,
    Verdict,
    VirtualClock,
    Worker,
    WorkItem,
)
from peeklock.impl.stores.faults import Script

E = TypeVar("E")

ITEM = WorkItem("i1", "order-1", "charge", "42")
OTHER = WorkItem("i2", "order-2", "refund", "43")
PAID = Completion(CompletionKind.SUCCESS, "i1", "paid")


class Scene:
    """ITEM in the store, and everything that is said about it.

    The handler takes `takes_ms` and returns "paid", or raises when `fails`. Each of its runs is
    noted in `runs` with the time it began.
    """

    def __init__(
        self,
        store: Store,
        clock: VirtualClock,
        script: Script | None = None,
        *,
        policy: Policy = RETRY,
        takes_ms: int = 0,
        fails: bool = False,
    ) -> None:
        self.clock = clock
        self.store = FaultyStore(store, script)
        self.policy = policy
        self.metrics = Metrics()
        self.runs: list[int] = []
        self.story: list[str] = []
        self.last: Driver | None = None
        self.takes_ms = takes_ms
        self._fails = fails
        store.enqueue(ITEM)

    def worker(self, name: str = "A") -> Worker:
        """A worker whose events go into the story."""
        return Worker(
            self.clock,
            {"charge": self._charge},
            policy=self.policy,
            metrics=self.metrics,
            observer=lambda event: self.story.append(told(event)),
            name=name,
        )

    def driver(self, name: str = "A") -> Driver:
        """A cycle of a new worker, not yet begun."""
        return Driver(self.worker(name), self.store)

    def run(self) -> Verdict:
        """One whole cycle of a new worker."""
        return self.driver().run()

    def counted(self) -> dict[str, int]:
        """The metrics that are not zero, by the middle of their names."""
        return {
            name.removeprefix("duroxide_activity_").removesuffix("_total"): count
            for name, count in self.metrics.as_dict().items()
        }

    def _charge(self, item: WorkItem) -> Generator[int, None, str]:
        self.runs.append(self.clock.now_ms())
        yield self.takes_ms
        if self._fails:
            raise ValueError("card refused")
        return "paid"


def step_to(driver: Driver, kind: type[E]) -> E:
    """Step the cycle until an effect of this kind is pending, and return that."""
    while not isinstance(driver.pending, kind):
        driver.step()
    return driver.pending


def run_all(clock: VirtualClock, *drivers: Driver) -> None:
    """Run several cycles to their ends, always the one that is ready first, in virtual time."""
    while waiting := [driver for driver in drivers if driver.verdict is None]:
        min(waiting, key=Driver.ready_at_ms).step()


def told(event: Event) -> str:
    """The event in one line: when, who, what."""
    return f"{event.at_ms} {event.worker} {_what(event)}"


def _what(event: Event) -> str:
    match event:
        case Called(call=call, answer=answer):
            return f"{_call(call)} -> {_answer(answer)}"
        case HandlerStarted():
            return "handler started"
        case HandlerEnded(payload=payload):
            return f"handler ended: {payload}"
        case HandlerCancelled():
            return "handler cancelled"
        case HandlerAborted():
            return "handler aborted"
        case Counted(name=name):
            return f"counted {name.removeprefix('duroxide_activity_').removesuffix('_total')}"
        case ShutdownRequested(drop_at_ms=drop_at_ms):
            return f"shutdown, drop at {drop_at_ms}"
        case Dropped():
            return "dropped"


def _call(call: Fetch | Renew | Ack | Abandon) -> str:
    match call:
        case Fetch(lock_timeout_ms):
            return f"fetch for {lock_timeout_ms}"
        case Renew(token, extend_for_ms):
            return f"renew {token} for {extend_for_ms}"
        case Ack(token, None):
            return f"ack {token} with nothing"
        case Ack(token, Completion(kind, item_id, payload)):
            return f"ack {token} with {kind.value} of {item_id}: {payload}"
        case Abandon(token, delay_ms, ignore_attempt):
            return f"abandon {token} for {delay_ms}" + (" ignoring the attempt" if ignore_attempt else "")
    raise AssertionError(call)


def _answer(answer: Answer) -> str:
    if not isinstance(answer, Ok):
        return "retryable" if answer.error.retryable else "permanent"
    if answer.value is None:
        return "ok"
    return f"{answer.value.token}, attempt {answer.value.attempt_count}"


def fetched(store: Store, lock_timeout_ms: int = 1_000) -> Delivery:
    """The delivery of a fetch that must find something."""
    delivery = store.fetch(lock_timeout_ms)
    assert delivery is not None
    return delivery


@contextmanager
def refused(store: Store, message: str) -> Iterator[None]:
    """The block must raise PermanentError with this message, and leave the store as it was."""
    before = store.rows(), store.completions()
    with pytest.raises(PermanentError, match=message):
        yield
    assert (store.rows(), store.completions()) == before


def raw(path: Path | str) -> sqlite3.Connection:
    """Somebody else's connection to a SQLite database: in autocommit mode, and it does not wait."""
    return sqlite3.connect(path, timeout=0, isolation_level=None, uri=str(path).startswith("file:"))
