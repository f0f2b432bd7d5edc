"""Stores under concurrent calls: those that keep the contract conform, and races are caught."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from attrs import define

from peeklock.harness.adapter import Delivery, PermanentError, RetryableError
from peeklock.harness.concurrent import check_store_concurrently
from peeklock.harness.history import Invoke, Outcome, Return
from peeklock.harness.item_model import StoreAnswer, StoreCall
from peeklock.harness.store_history import judge_history
from peeklock.impl import errors
from peeklock.impl.clock import VirtualClock
from peeklock.impl.memory_store import MemoryStore
from peeklock.impl.sqlite_store import SqliteStore
from peeklock.impl.store import Completion, CompletionKind, Store, WorkItem
from peeklock.spec.actions import Answer, Call

SEEDS = (1, 2, 3, 4, 5)
T = TypeVar("T")


class Adapted:
    """A store of the implementation, as the harness calls it."""

    def __init__(self, store: Store, clock: VirtualClock, lock: threading.Lock | None = None) -> None:
        self.store, self.clock, self.lock = store, clock, lock or threading.Lock()

    def _call(self, call: Callable[[], T]) -> T:
        try:
            with self.lock:
                return call()
        except errors.RetryableError as error:
            raise RetryableError(str(error)) from error
        except errors.PermanentError as error:
            raise PermanentError(str(error)) from error

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)

    def enqueue(self, item: str, delay_ms: int) -> None:
        self._call(lambda: self.store.enqueue(WorkItem(item, "instance", "name"), delay_ms))

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        found = self._call(lambda: self.store.fetch(lock_timeout_ms))
        return None if found is None else Delivery(found.item.id, found.token, found.attempt_count)

    def renew(self, token: str, extend_for_ms: int) -> None:
        self._call(lambda: self.store.renew(token, extend_for_ms))

    def ack(self, token: str, completion: str | None) -> None:
        self._call(lambda: self.store.ack(token, None if completion is None else self._completion(token)))

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        self._call(lambda: self.store.abandon(token, delay_ms, ignore_attempt))

    def cancel(self, items: Sequence[str]) -> Sequence[str]:
        return self._call(lambda: self.store.cancel(items))

    def completions(self) -> Sequence[tuple[str, str]]:
        return self._call(lambda: [(c.item_id, c.kind.value) for c in self.store.completions()])

    def _completion(self, token: str) -> Completion:
        named = [row.item.id for row in self.store.rows() if row.token == token]
        return Completion(CompletionKind.SUCCESS, named[0] if named else "nothing")


class Connected(Adapted):
    """A connection of its own."""

    def close(self) -> None:
        assert isinstance(self.store, SqliteStore)
        self.store.close()


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


@pytest.mark.parametrize("seed", SEEDS)
def test_a_right_store_conforms(seed: int) -> None:
    report = check_store_concurrently(RacyStore, seed=seed, rounds=20)
    assert report.violation is None
    assert report.conforms
    assert {"fetch -> ok", "fetch -> nothing", "ack -> ok", "ack -> permanent error"} <= set(report.answers)


def test_the_reference_store_in_memory_conforms_when_it_is_locked() -> None:
    def make() -> Adapted:
        clock = VirtualClock()
        return Adapted(MemoryStore(clock), clock)

    report = check_store_concurrently(make, rounds=20)
    assert report.violation is None
    assert report.conforms


def test_the_reference_store_in_a_file_conforms_with_a_connection_for_each_thread(tmp_path: Path) -> None:
    clock = VirtualClock()

    def connected(_: object = None) -> Connected:
        return Connected(SqliteStore(tmp_path / "store.db", clock, durable=False), clock)

    report = check_store_concurrently(connected, make_client=connected, threads=4, rounds=6)
    assert report.violation is None
    assert report.conforms


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mistake", ["checks and then claims", "rescues by a stale read", "gives up"])
def test_a_race_is_caught(mistake: str, seed: int) -> None:
    report = check_store_concurrently(lambda: RacyStore(mistake), seed=seed, rounds=400)
    assert report.violation is not None
    assert not report.conforms
    assert report.violation.seen.call is not None
    assert report.violation.told


def test_a_completion_that_is_not_there_is_found() -> None:
    report = check_store_concurrently(lambda: RacyStore("forgets completions"), rounds=20)
    assert report.torn
    assert not report.conforms


def test_a_worker_that_hangs_is_reported_with_its_call() -> None:
    released = threading.Event()

    class Hanging(RacyStore):
        def renew(self, token: str, extend_for_ms: int) -> None:
            released.wait()

    report = check_store_concurrently(Hanging, rounds=3, patience_s=0.5)
    released.set()
    assert report.hung
    assert "renew" in report.hung[0]
    assert not report.conforms


def test_a_fault_of_the_adapter_ends_the_check() -> None:
    class Faulty(RacyStore):
        def ack(self, token: str, completion: str | None) -> None:
            raise KeyError("not an answer")

    with pytest.raises(KeyError, match="not an answer"):
        check_store_concurrently(Faulty, rounds=10)


def test_nothing_is_checked_by_one_thread() -> None:
    with pytest.raises(ValueError, match="2 or more"):
        check_store_concurrently(RacyStore, threads=1)


def test_the_switch_interval_is_as_it_was() -> None:
    before = sys.getswitchinterval()
    check_store_concurrently(RacyStore, rounds=1)
    assert sys.getswitchinterval() == before


# Histories by hand


def call(
    key: int, call: Call, at_ms: int = 0, token: str | None = None, item: str = "", lasts_ms: int = 10
) -> Invoke:
    return Invoke(key, StoreCall(call, at_ms, (item,) if item else (), token, lasts_ms, f"c{key}"))


def end(key: int, answer: Answer = Answer.OK, until_ms: int = 0, token: str = "", attempt: int = 1) -> Return:
    if not token:
        return Return(key, Outcome.OK, StoreAnswer(answer, until_ms))
    return Return(key, Outcome.OK, StoreAnswer(answer, until_ms, ("x",), token, attempt))


ENQUEUED = [call(0, Call.ENQUEUE, item="x", lasts_ms=0), end(0)]


def test_two_tokens_for_one_item_are_refused_with_the_promise_that_they_break() -> None:
    fetches = [call(1, Call.FETCH), call(2, Call.FETCH), end(1, token="a"), end(2, token="b", attempt=2)]
    found = judge_history([*ENQUEUED, *fetches])
    assert found is not None
    assert "S6" in found.promises or "C1" in found.promises
    assert "locked, unexpired (a)" in found.told[0][0]
    assert judge_history([*ENQUEUED, *fetches[:3], end(2, Answer.NOTHING)]) is None


def test_a_fetch_that_finds_nothing_beside_a_free_item_is_refused() -> None:
    found = judge_history([*ENQUEUED, call(1, Call.FETCH), end(1, Answer.NOTHING)])
    assert found is not None
    assert found.seen.item == "x"


def test_a_lock_may_have_expired_or_not_while_the_clock_leaves_it_open() -> None:
    held = [*ENQUEUED, call(1, Call.FETCH, 0), end(1, until_ms=4, token="a")]
    for answer in (Answer.OK, Answer.PERMANENT):
        assert judge_history([*held, call(2, Call.ACK, 11, "a"), end(2, answer, 12)]) is None
    assert judge_history([*held, call(2, Call.ACK, 8, "a"), end(2, Answer.PERMANENT, 9)]) is not None
    assert judge_history([*held, call(2, Call.ACK, 14, "a"), end(2, Answer.OK, 15)]) is not None


def test_an_ack_that_never_answered_explains_a_later_refusal_and_a_later_success() -> None:
    held = [*ENQUEUED, call(1, Call.FETCH), end(1, token="a"), call(2, Call.ACK, 0, "a")]
    for answer in (Answer.OK, Answer.PERMANENT):
        assert judge_history([*held, call(3, Call.ACK, 1, "a"), end(3, answer, 1)]) is None
    twice = [call(3, Call.ACK, 1, "a"), end(3, Answer.OK, 1), call(4, Call.ACK, 2, "a"), end(4, Answer.OK, 2)]
    assert judge_history([*held, *twice]) is not None


def test_a_fetch_whose_response_was_lost_may_have_taken_the_item() -> None:
    lost = [*ENQUEUED, call(1, Call.FETCH), end(1, Answer.RETRYABLE)]
    for answer in (end(2, Answer.NOTHING), end(2, token="a"), end(2, token="a", attempt=2)):
        found = judge_history([*lost, call(2, Call.FETCH), answer])
        assert (found is None) is (answer.result.attempt != 2)
