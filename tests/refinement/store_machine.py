"""Calls a store in any order, with any token that it ever gave, and holds the answers against its contract."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from machine import STEPS_MS, explains

import peeklock.impl as impl
from peeklock.harness.monitor.monitor import Monitor
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.monitor.world import Scope
from peeklock.spec.law.faults import FAULTS
from peeklock.spec.law.policy import RETRY
from peeklock.spec.law.state import Result
from peeklock.spec.notation.actions import Answer, Call
from peeklock.spec.variants.free_client import STORE_ALONE
from peeklock.spec.variants.variant import Variant

HONEST = frozenset({"cancel", "expiry"})
"""A reference store does not fail by itself: no answer may be wrong."""
PROMISED = frozenset({"S1", "S2", "S3", "S4", "S5", "S6"})
"""What a store promises whatever its callers do; the rest needs a worker that keeps to a policy."""
LENGTHS_MS = (1, 100, 1_000, 30_000)


class StoreContract(RuleBasedStateMachine):
    """A store answers every call as its contract says. Subclasses name the kind of store."""

    on_disk = False

    @initialize()
    def begin(self) -> None:
        assert {f.name for f in FAULTS} >= HONEST
        self.clock = impl.VirtualClock()
        self.folder = tempfile.TemporaryDirectory()
        self.store: impl.Store
        if self.on_disk:
            self.sqlite = impl.SqliteStore(Path(self.folder.name) / "queue.db", self.clock, incarnation="s")
            self.store = self.sqlite
        else:
            self.store = impl.MemoryStore(self.clock, incarnation="s")
        self.monitor = Monitor(Variant(RETRY, HONEST, fifo=True), Scope(clock=True), STORE_ALONE)
        self.tokens: list[tuple[str, str]] = []
        self.enqueued = 0

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            if self.on_disk:
                self.sqlite.close()
            self.folder.cleanup()

    @rule(delay_ms=st.sampled_from((0, 0, 100)))
    def enqueue(self, delay_ms: int) -> None:
        if self.enqueued < 4:
            self.enqueued += 1
            item = f"i{self.enqueued}"
            self.store.enqueue(impl.WorkItem(item, "instance", "work"), delay_ms)
            self._see(Call.ENQUEUE, Answer.OK, item=item, lasts_ms=delay_ms)

    @rule(item=st.sampled_from(("none", "none", "none", "i1", "i2")))
    def cancel(self, item: str) -> None:
        for found in self.store.cancel([item, "never enqueued"]):
            self._see(Call.CANCEL, Answer.OK, item=found)

    @rule(ms=st.sampled_from(STEPS_MS))
    def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)
        self.monitor.pass_time(self.clock.now_ms())

    @rule(ms=st.sampled_from(LENGTHS_MS))
    def fetch(self, ms: int) -> None:
        got = self.store.fetch(ms)
        if got is None:
            self._see(Call.FETCH, Answer.NOTHING, worker="nobody")
            return
        self.tokens.append((got.token, got.item.id))
        self._see(
            Call.FETCH,
            Answer.OK,
            worker=got.token,
            item=got.item.id,
            token=got.token,
            attempt=got.attempt_count,
            lasts_ms=ms,
        )

    @rule(which=st.integers(0, 7), ms=st.sampled_from(LENGTHS_MS))
    def renew(self, which: int, ms: int) -> None:
        self._present(Call.RENEW, which, lambda token, item: self.store.renew(token, ms), ms)

    @rule(which=st.integers(0, 7))
    def ack(self, which: int) -> None:
        def made(token: str, item: str) -> None:
            self.store.ack(token, impl.Completion(impl.CompletionKind.SUCCESS, item, "done"))

        self._present(Call.ACK, which, made)

    @rule(which=st.integers(0, 7))
    def acknowledge_nothing(self, which: int) -> None:
        self._present(Call.CANCELLATION_ACK, which, lambda token, item: self.store.ack(token, None))

    @rule(which=st.integers(0, 7), ms=st.sampled_from((0, 100)), uncounted=st.booleans())
    def abandon(self, which: int, ms: int, uncounted: bool) -> None:
        call = Call.ABANDON_IGNORING_ATTEMPT if uncounted else Call.ABANDON
        self._present(call, which, lambda token, item: self.store.abandon(token, ms, uncounted), ms)

    def _present(
        self, call: Call, which: int, made: Callable[[str, str], None], lasts_ms: int | None = None
    ) -> None:
        if not self.tokens:
            return
        token, item = self.tokens[-1 - which % len(self.tokens)]
        try:
            made(token, item)
            answer = Answer.OK
        except impl.PermanentError:
            answer = Answer.PERMANENT
        carried = (Result.SUCCESS,) if call is Call.ACK else ()
        self._see(call, answer, worker=token, token=token, completions=carried, lasts_ms=lasts_ms)

    def _see(self, call: Call, answer: Answer, **seen: object) -> None:
        now_ms = self.clock.now_ms()
        self.monitor.observe(Observation(call, answer=answer, at_ms=now_ms, **seen))  # type: ignore[arg-type]

    @invariant()
    def contents_are_explained(self) -> None:
        if hasattr(self, "monitor"):
            assert len(self.monitor.worlds) == 1, "a store without faults leaves nothing open"
            (world,) = self.monitor.worlds
            assert explains(self.monitor, world, self.store)
            assert not PROMISED.intersection(self.monitor.broken())


def store_machine(on_disk: bool) -> type[StoreContract]:
    """The machine for one kind of store."""
    return type(f"StoreContractOn{'Sqlite' if on_disk else 'Memory'}", (StoreContract,), {"on_disk": on_disk})
