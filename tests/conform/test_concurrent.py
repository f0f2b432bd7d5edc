"""Stores under concurrent calls: those that keep the contract conform, and races are caught."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import define, evolve
from reference import ERRORS, Locked, ReferenceAdapter, memory_store

import peeklock.impl as impl
from peeklock.harness.adapter import outcomes
from peeklock.harness.adapter.interface import Delivery, PermanentError, RetryableError
from peeklock.harness.adapter.wrapping import AdapterError
from peeklock.harness.concurrent.check import ITEMS_IN_A_ROUND, check_store_concurrently
from peeklock.harness.failure.report import ContractViolation, Inconclusive
from peeklock.harness.trace.file import read
from peeklock.harness.trace.judge import judge
from peeklock.spec.law.policy import RETRY
from peeklock.spec.variants.capabilities import Capabilities, Order

SEEDS = (1, 2, 3, 4, 5)


@define
class Row:
    """An item in a ``RacyStore``."""

    item: str
    token: str | None = None
    until_ms: int = 0
    attempts: int = 0


class RacyStore:
    """A small store in memory that is right, unless it is told which mistake to make."""

    def __init__(self, mistake: str = "") -> None:
        self.mistake = mistake
        self.now_ms = self.last = 0
        self.rows: dict[str, Row] = {}
        self.done: list[tuple[str, str]] = []
        self.lock = threading.Lock()

    def advance(self, ms: int) -> None:
        self.now_ms += ms

    def enqueue(self, item: str, delay_ms: int) -> None:
        assert delay_ms == 0
        with self.lock:
            self.rows[item] = Row(item)

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        if self.mistake == "gives up":
            if not self.lock.acquire(blocking=False):
                return None
            self.lock.release()
        if self.mistake == "rescues by a stale read":
            with self.lock:
                expired = [row for row in self.rows.values() if row.token and row.until_ms <= self.now_ms]
            time.sleep(0)
            with self.lock:
                for row in expired:
                    row.until_ms = 0
        with self.lock:
            found = next((row for row in self.rows.values() if row.until_ms <= self.now_ms), None)
            if found is not None and self.mistake != "checks and then claims":
                return self._claim(found, lock_timeout_ms)
        if found is None:
            return None
        time.sleep(0)
        with self.lock:
            return self._claim(found, lock_timeout_ms)

    def _claim(self, row: Row, lock_timeout_ms: int) -> Delivery:
        self.last += 1
        row.token, row.until_ms, row.attempts = (
            f"t{self.last}",
            self.now_ms + lock_timeout_ms,
            row.attempts + 1,
        )
        return Delivery(row.item, row.token, row.attempts)

    def _row(self, token: str, valid: bool = True) -> Row:
        for row in self.rows.values():
            if row.token == token and (row.until_ms > self.now_ms or not valid):
                return row
        raise PermanentError(token)

    def renew(self, token: str, extend_for_ms: int) -> None:
        with self.lock:
            self._row(token).until_ms = self.now_ms + extend_for_ms

    def ack(self, token: str, completion: str | None) -> None:
        with self.lock:
            row = self._row(token)
            del self.rows[row.item]
            if completion is not None and self.mistake != "forgets completions":
                self.done.append((row.item, completion))

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        assert delay_ms == 0
        with self.lock:
            row = self._row(token, valid=False)
            row.token, row.until_ms, row.attempts = None, 0, row.attempts - ignore_attempt

    def cancel(self, items: Sequence[str]) -> Sequence[str]:
        with self.lock:
            return [i for i in items if self.rows.pop(i, None) is not None]

    def completions(self) -> Sequence[tuple[str, str]]:
        return self.done


PLAIN = Capabilities(enqueue_delay=False, abandon_delay=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_right_store_conforms(seed: int) -> None:
    report = check_store_concurrently(RacyStore, PLAIN, seed=seed, rounds=10)
    seen = report.coverage.reached
    assert {"fetch -> ok", "fetch -> nothing", "ack -> ok", "ack -> permanent error"} <= set(seen)
    assert report.overlapping
    assert report.calls == sum(seen.values()) > report.overlapping


def test_the_reference_store_in_memory_conforms_when_it_is_locked() -> None:
    assert check_store_concurrently(lambda: Locked(memory_store()), rounds=10, **ERRORS).overlapping


def test_the_reference_store_in_a_file_conforms_with_a_connection_for_each_thread(tmp_path: Path) -> None:
    clock = impl.VirtualClock()

    def connected(_: object = None) -> ReferenceAdapter:
        return ReferenceAdapter(impl.SqliteStore(tmp_path / "store.db", clock, durable=False), clock)

    report = check_store_concurrently(connected, make_client=connected, threads=4, rounds=6, **ERRORS)
    assert report.overlapping


def test_a_store_in_real_time_conforms_or_is_caught() -> None:
    real = Capabilities(virtual_clock=False)
    clock = impl.RealClock()
    report = check_store_concurrently(
        lambda: Locked(ReferenceAdapter(impl.MemoryStore(clock), clock)), real, rounds=6, **ERRORS
    )
    assert report.coverage.reached["fetch -> ok"] > 6 * ITEMS_IN_A_ROUND  # locks ran out

    class NeverExpires(impl.MemoryStore):
        def fetch(self, lock_timeout_ms: int) -> impl.Delivery | None:
            return super().fetch(1_000 * lock_timeout_ms)

    with pytest.raises(ContractViolation):
        check_store_concurrently(
            lambda: Locked(ReferenceAdapter(NeverExpires(clock), clock)), real, rounds=20, **ERRORS
        )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mistake", ["checks and then claims", "rescues by a stale read", "gives up"])
def test_a_race_is_caught(mistake: str, seed: int) -> None:
    with pytest.raises(ContractViolation) as caught:
        check_store_concurrently(lambda: RacyStore(mistake), PLAIN, seed=seed, rounds=400)
    assert caught.value.failure.promises
    assert caught.value.failure.violation.told


def test_a_failure_is_told_in_lanes_and_leaves_a_trace_with_the_same_verdict(tmp_path: Path) -> None:
    with pytest.raises(ContractViolation, match="when it is called by 8 at once") as caught:
        check_store_concurrently(
            lambda: RacyStore("checks and then claims"), PLAIN, name="racy", rounds=400, artifacts=tmp_path
        )
    failure, text = caught.value.failure, str(caught.value)
    assert {path.name for path in (tmp_path / "racy").iterdir()} == {"failure.html", "trace.jsonl"}
    assert "Right would have been:" in text
    assert "how they meet is chance" in text
    header, events = read(tmp_path / "racy" / "trace.jsonl")
    found = judge(header, events, RETRY).violation
    assert found is not None
    assert (found.seen.token, found.promises) == (failure.violation.seen.token, failure.promises)
    assert outcomes.LINES[-1] == f"racy does not keep its contract: {', '.join(failure.promises)}"


def test_a_finding_is_told_where_its_files_cannot_be_written(tmp_path: Path) -> None:
    place = tmp_path / "taken"
    place.write_text("a file\n")
    with pytest.raises(ContractViolation) as caught:
        check_store_concurrently(
            lambda: RacyStore("forgets completions"), PLAIN, rounds=20, artifacts=str(place)
        )
    assert str(caught.value).splitlines()[-1] == f"could not write to {place}: Not a directory"


def test_the_trace_of_a_failure_in_real_time_has_the_same_verdict(tmp_path: Path) -> None:
    class HandsOutTwice(impl.MemoryStore):
        def fetch(self, lock_timeout_ms: int) -> impl.Delivery | None:
            return super().fetch(1)

    clock = impl.RealClock()
    with pytest.raises(ContractViolation) as caught:
        check_store_concurrently(
            lambda: Locked(ReferenceAdapter(HandsOutTwice(clock), clock)),
            Capabilities(virtual_clock=False),
            name="short",
            artifacts=tmp_path,
            **ERRORS,
        )
    header, events = read(tmp_path / "short" / "trace.jsonl")
    found = judge(header, events, RETRY).violation
    assert found is not None
    assert found.promises == caught.value.failure.promises


def test_a_completion_that_is_not_there_is_found() -> None:
    with pytest.raises(ContractViolation) as caught:
        check_store_concurrently(lambda: RacyStore("forgets completions"), PLAIN, rounds=20)
    failure = caught.value.failure
    assert failure.promises == ("S3",)
    # It is chance in which round an ack is first accepted.
    assert f"there is now no completion of r{failure.runs}-" in failure.violation.reason


def test_calls_that_hang_are_told_with_who_made_them() -> None:
    released = threading.Event()

    class Hanging(RacyStore):
        def renew(self, token: str, extend_for_ms: int) -> None:
            released.wait()

    with pytest.raises(
        AdapterError, match=r"no call returned within 0.3 s, made by 8 workers at once: w\d: renew"
    ):
        check_store_concurrently(Hanging, PLAIN, rounds=3, call_limit_s=0.3)
    released.set()


def test_a_fault_of_the_adapter_ends_the_check() -> None:
    class Faulty(RacyStore):
        def ack(self, token: str, completion: str | None) -> None:
            raise KeyError("not an answer")

    with pytest.raises(AdapterError, match=r"ack raised KeyError.*not an answer"):
        check_store_concurrently(Faulty, PLAIN, rounds=10)


def test_a_store_that_is_mostly_busy_is_not_said_to_conform() -> None:
    class Busy(RacyStore):
        def fetch(self, lock_timeout_ms: int) -> Delivery | None:
            raise RetryableError

    with pytest.raises(Inconclusive, match="calls answered a retryable error"):
        check_store_concurrently(Busy, PLAIN, rounds=2)


def test_nothing_is_checked_by_one_thread() -> None:
    with pytest.raises(ValueError, match="2 to 64"):
        check_store_concurrently(RacyStore, threads=1)


def test_a_store_without_cancel_is_emptied_between_the_rounds() -> None:
    report = check_store_concurrently(
        lambda: Locked(memory_store()), Capabilities(cancel=False), rounds=4, **ERRORS
    )
    assert report.coverage.left_out["cancel"]


def test_what_is_not_judged_of_an_order_is_told_where_there_is_one() -> None:
    for order, told in ((Order.FIFO, 2), (Order.NONE, 0)):
        report = check_store_concurrently(RacyStore, evolve(PLAIN, order=order), rounds=1)
        assert sum("the order " in what for what in report.coverage.left_out) == told


def test_the_switch_interval_is_as_it_was() -> None:
    before = sys.getswitchinterval()
    check_store_concurrently(RacyStore, PLAIN, rounds=1)
    assert sys.getswitchinterval() == before
