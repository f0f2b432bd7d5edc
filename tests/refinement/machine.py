"""Drives workers and a store step by step, any way there is, and holds every observation against the specification."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

from attrs import evolve
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from recording import watched

import peeklock.impl as impl
from peeklock.harness.monitor.monitor import Monitor
from peeklock.harness.monitor.world import Scope, World
from peeklock.impl.stores.faults import PERMANENT, RESPONSE_LOST, RETRYABLE, Fault
from peeklock.spec.law.policy import POLICIES
from peeklock.spec.law.state import Row, attempt_count, completions, row
from peeklock.spec.reading.evaluate import PLACE
from peeklock.spec.variants.variant import Variant

WORKERS = ("A", "B", "C")
ITEMS = tuple(f"i{n}" for n in range(1, 7))
IMPLEMENTED = {"before": impl.BEFORE, "retry": impl.RETRY, "hardened": impl.HARDENED}
STEPS_MS = (0, 1, 99, 100, 400, 1_000, 4_999, 9_999, 25_000, 29_999, 30_000)
FAULTS = st.sampled_from((None,) * 5 + (RETRYABLE,) * 4 + (RESPONSE_LOST, PERMANENT))
"""Mostly none, so that runs come far; retryable ones often, so that sequences come to their end."""
FETCH_FAULTS = st.sampled_from((None,) * 12 + (RETRYABLE, RESPONSE_LOST))
KNOWN = st.sampled_from((True, True, True, False))
DELAYS_MS = st.sampled_from((0, 0, 100))
_ROWS = list(Row)


class Switching:
    """A store whose next call can be made to fail, and which can be opened anew under its users' feet."""

    def __init__(self, inner: impl.Store) -> None:
        self.inner = inner
        self.fault: Fault | None = None

    def __getattr__(self, operation: str) -> Any:
        return getattr(impl.FaultyStore(self.inner, {operation: [self.fault]}), operation)


class Refinement(RuleBasedStateMachine):
    """The implementation does only what the specification allows. Subclasses name a policy and a store."""

    policy_name = "retry"
    on_disk = False

    @initialize(max_attempts=st.integers(1, 2), known=KNOWN, delay_ms=DELAYS_MS)
    def begin(self, max_attempts: int, known: bool, delay_ms: int) -> None:
        self.clock = impl.VirtualClock()
        self.folder = tempfile.TemporaryDirectory()
        self.incarnation = 0
        self.switch = Switching(self._opened())
        self.store = cast(impl.Store, self.switch)
        policy = evolve(POLICIES[self.policy_name], max_attempts=max_attempts)
        scope = Scope(clock=True, counts=True, stops=True)
        self.monitor = Monitor(Variant(policy), scope)
        self.policy = evolve(IMPLEMENTED[self.policy_name], max_attempts=max_attempts)
        self.record = watched(self.monitor, ("known",), self.policy)
        self.drivers: dict[str, impl.Driver] = {}
        self.workers: dict[str, impl.Worker] = {}
        self.takes_ms: dict[str, int] = {}
        self.fails: dict[str, bool] = {}
        self.names: dict[str, str] = {}
        self.born = 0
        self._enqueue("i1", known, delay_ms)

    def _opened(self) -> impl.Store:
        self.incarnation += 1
        name = f"r{self.incarnation}"
        if not self.on_disk:
            return impl.MemoryStore(self.clock, incarnation=name)
        self.sqlite = impl.SqliteStore(Path(self.folder.name) / "queue.db", self.clock, incarnation=name)
        return self.sqlite

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            if self.on_disk:
                self.sqlite.close()
            self.folder.cleanup()

    # What the orchestrator and time do

    @rule(known=KNOWN, delay_ms=DELAYS_MS)
    def enqueue_another(self, known: bool, delay_ms: int) -> None:
        if len(self.monitor.items) < len(ITEMS):
            self._enqueue(ITEMS[len(self.monitor.items)], known, delay_ms)

    def _enqueue(self, item: str, known: bool, delay_ms: int) -> None:
        self.store.enqueue(impl.WorkItem(item, "instance", "known" if known else "unknown"), delay_ms)
        self.record.enqueued(item, self.clock.now_ms(), delay_ms)

    @rule(item=st.sampled_from(("none",) * 12 + ITEMS))
    def cancel(self, item: str) -> None:
        if self.store.cancel([item]):
            self.record.cancelled(item, self.clock.now_ms())

    @rule(ms=st.sampled_from(STEPS_MS))
    def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)
        self.monitor.pass_time(self.clock.now_ms())

    # What workers do

    @rule(
        place=st.sampled_from(WORKERS),
        takes_ms=st.sampled_from((0, 0, 100, 26_000, 70_000)),
        fails=st.booleans(),
        fetch_fault=FETCH_FAULTS,
        faults=st.lists(FAULTS, min_size=3, max_size=30),
    )
    def begin_cycle(
        self, place: str, takes_ms: int, fails: bool, fetch_fault: Fault | None, faults: list[Fault | None]
    ) -> None:
        """A worker fetches, and perhaps goes some way with what it got."""
        if place in self.drivers:
            return
        worker = self.workers.get(place)
        if worker is None or worker.drop_at_ms is not None:
            self.born += 1
            self.names[place] = f"{place}{self.born}"
            worker = self.workers[place] = self._born(self.names[place], takes_ms, fails)
        self.drivers[place] = impl.Driver(worker, self.store)
        for fault in (fetch_fault, *faults):
            self._step(place, fault)

    @rule(place=st.sampled_from(WORKERS), faults=st.lists(FAULTS, min_size=1, max_size=12))
    def go_on(self, place: str, faults: list[Fault | None]) -> None:
        for fault in faults:
            self._step(place, fault)

    def _born(self, name: str, takes_ms: int, fails: bool) -> impl.Worker:
        def known(item: impl.WorkItem) -> Generator[int, None, str]:
            yield takes_ms
            if fails:
                raise ValueError("refused")
            return "done"

        return impl.Worker(self.clock, {"known": known}, policy=self.policy, observer=self.record, name=name)

    def _step(self, place: str, fault: Fault | None) -> None:
        driver = self.drivers.get(place)
        if driver is None:
            return
        if driver.pending is not None:
            note(f"{place} at {self.clock.now_ms()} ms: {driver.pending} with {fault}")
            if fault is PERMANENT and isinstance(driver.pending, impl.Fetch):
                fault = RETRYABLE  # a fetch has nothing that could be refused
            self.switch.fault = fault
            driver.step()
            self.switch.fault = None
        if driver.verdict is not None:
            del self.drivers[place]
        self.monitor.pass_time(self.clock.now_ms())

    @rule(place=st.sampled_from(("none",) * 6 + WORKERS))
    def crash(self, place: str) -> None:
        driver = self.drivers.pop(place, None)
        if driver is None:
            return
        del self.workers[place]
        if not isinstance(driver.pending, impl.Fetch):
            self.record.crashed(self.names[place], self.clock.now_ms())
        if self.on_disk:
            self.sqlite.close()
            self.switch.inner = self._opened()

    @rule(place=st.sampled_from(("none",) * 9 + WORKERS))
    def shut_down(self, place: str) -> None:
        if place in self.workers and self.workers[place].drop_at_ms is None:
            self.workers[place].request_shutdown()

    # What must be true at any time

    @invariant()
    def contents_are_explained(self) -> None:
        if hasattr(self, "monitor"):
            assert any(explains(self.monitor, w, self.store) for w in self.monitor.worlds), self.store.rows()


def explains(monitor: Monitor, world: World, store: impl.Store) -> bool:
    """Does a store hold what it holds in this state of the specification?"""
    rows = {r.item.id: (r.token is not None, r.attempt_count) for r in store.rows()}
    done = [c.item_id for c in store.completions()]
    for item, number in monitor.items.items():
        record = world.state[1][number]
        where = _ROWS[record[PLACE[row]]]
        queued = where in (Row.DELAYED, Row.READY, Row.LOCKED, Row.EXPIRED)
        if queued != (item in rows) or done.count(item) != record[PLACE[completions]]:
            return False
        if queued and rows[item] != (where in (Row.LOCKED, Row.EXPIRED), record[PLACE[attempt_count]]):
            return False
    return True


def machine(policy: str, on_disk: bool) -> type[Refinement]:
    """The machine for one policy and one store."""
    name = f"{policy.title()}On{'Sqlite' if on_disk else 'Memory'}"
    return type(name, (Refinement,), {"policy_name": policy, "on_disk": on_disk})
