"""The SQLite store among several processes: nothing is injected, the operating system does it.

Processes are forked, so that a hundred of them are cheap, and told what to do through pipes. Each
is given the time by the test, so that no lock expires unless the test lets it.
"""

import os
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from impl_scenes import ITEM, PAID, Scene, step_to

from peeklock.impl import (
    Ack,
    Completion,
    CompletionKind,
    Driver,
    PermanentError,
    RealClock,
    RetryableError,
    SqliteStore,
    Verdict,
    VirtualClock,
    Wait,
    Worker,
    WorkItem,
)

if sys.platform == "win32":
    pytest.skip("needs fork and SIGKILL", allow_module_level=True)


class Child:
    """A forked process that runs `body(pipe)`; the two ends exchange lines."""

    def __init__(self, body: Callable[["Pipe"], None]) -> None:
        to_child, to_parent = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.close(to_child[1])
                os.close(to_parent[0])
                body(Pipe(to_child[0], to_parent[1]))
                code = 0
            finally:
                os._exit(code)  # without pytest's own ending
        os.close(to_child[0])
        os.close(to_parent[1])
        self.pipe = Pipe(to_parent[0], to_child[1])

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def ended(self) -> int:
        """Wait for its end; its exit code, or minus the signal that killed it."""
        _, status = os.waitpid(self.pid, 0)
        self.pipe.close()
        return os.waitstatus_to_exitcode(status)


class Pipe:
    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = os.fdopen(incoming, "r", encoding="utf-8")
        self._outgoing = os.fdopen(outgoing, "w", encoding="utf-8")

    def say(self, line: str) -> None:
        self._outgoing.write(line + "\n")
        self._outgoing.flush()

    def hear(self) -> str:
        """The next line; "" when the other end is gone."""
        return self._incoming.readline().rstrip("\n")

    def close(self) -> None:
        self._incoming.close()
        self._outgoing.close()


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A queue that exists already, and is open in no process."""
    path = tmp_path / "queue.db"
    SqliteStore(path, VirtualClock(), incarnation="t", durable=False).close()
    yield path
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def hold_write_lock(path: Path) -> Callable[[Pipe], None]:
    def body(pipe: Pipe) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            pipe.say("held")
            pipe.hear()
            db.execute("COMMIT")
        pipe.say("released")

    return body


def test_an_ack_outlasts_a_write_lock_that_another_process_holds(path: Path) -> None:
    clock = VirtualClock()
    with closing(SqliteStore(path, clock, busy_timeout_ms=20)) as store:
        scene = Scene(store, clock)
        driver = scene.driver()
        step_to(driver, Ack)
        holder = Child(hold_write_lock(path))
        assert holder.pipe.hear() == "held"

        began_ms = RealClock().now_ms()
        driver.step()
        assert RealClock().now_ms() - began_ms >= 19  # it waited for the busy timeout
        assert step_to(driver, Wait) == Wait(100)
        step_to(driver, Ack)
        driver.step()
        assert step_to(driver, Wait) == Wait(300)
        holder.pipe.say("release")
        assert holder.pipe.hear() == "released"
        assert holder.ended() == 0

        assert driver.run() is Verdict.SUCCESS
        assert [call.answer for call in scene.store.recorded] == ["ok", "retryable", "retryable", "ok"]
        assert scene.runs == [0]
        assert store.completions() == (PAID,)
        assert store.rows() == ()


def test_an_ack_whose_lock_runs_out_while_it_waits_for_the_write_lock_is_refused(path: Path) -> None:
    with closing(SqliteStore(path, RealClock(), busy_timeout_ms=10_000)) as store:
        store.enqueue(ITEM)
        delivery = store.fetch(50)
        assert delivery is not None

        def hold_until_it_has_expired(pipe: Pipe) -> None:
            with closing(sqlite3.connect(path, isolation_level=None)) as db:
                db.execute("BEGIN IMMEDIATE")
                pipe.say("held")
                while (left_ms := delivery.locked_until_ms - RealClock().now_ms()) > 0:
                    RealClock().wait_ms(left_ms)
                db.execute("COMMIT")

        holder = Child(hold_until_it_has_expired)
        assert holder.pipe.hear() == "held"
        with pytest.raises(PermanentError, match="ack: the lock of token 't-1' has expired"):
            store.ack(delivery.token, PAID)
        assert holder.ended() == 0
        assert store.completions() == ()


def test_several_processes_on_one_file_never_claim_an_item_twice(path: Path) -> None:
    items = [f"i{n}" for n in range(40)]
    with closing(SqliteStore(path, VirtualClock(), durable=False)) as store:
        for item_id in items:
            store.enqueue(WorkItem(item_id, "order", "charge"))

    def claim_all(pipe: Pipe) -> None:
        with closing(SqliteStore(path, VirtualClock(), busy_timeout_ms=30_000)) as store:
            pipe.say("ready")
            pipe.hear()
            while (delivery := store.fetch(1_000)) is not None:
                pipe.say(f"{delivery.item.id} {delivery.token} {delivery.attempt_count}")
                store.ack(delivery.token, Completion(CompletionKind.SUCCESS, delivery.item.id))
            pipe.say("done")

    children = [Child(claim_all) for _ in range(4)]
    assert [child.pipe.hear() for child in children] == ["ready"] * 4
    for child in children:
        child.pipe.say("go")
    claims = [line.split() for child in children for line in iter(child.pipe.hear, "done")]
    assert [child.ended() for child in children] == [0] * 4

    assert sorted(item_id for item_id, _, _ in claims) == sorted(items)
    assert len({token for _, token, _ in claims}) == len(items)
    assert {attempt for _, _, attempt in claims} == {"1"}
    with closing(SqliteStore(path, VirtualClock(), durable=False)) as store:
        assert sorted(completion.item_id for completion in store.completions()) == sorted(items)
        assert store.rows() == ()


def test_several_processes_may_create_one_file_together(tmp_path: Path) -> None:
    path = tmp_path / "new.db"

    def create(pipe: Pipe) -> None:
        pipe.say("ready")
        pipe.hear()
        while True:
            try:
                store = SqliteStore(path, VirtualClock(), busy_timeout_ms=30_000)
                break
            except RetryableError:
                continue
        store.enqueue(WorkItem(f"i{os.getpid()}", "order", "charge"))
        store.close()

    children = [Child(create) for _ in range(4)]
    assert [child.pipe.hear() for child in children] == ["ready"] * 4
    for child in children:
        child.pipe.say("go")
    assert [child.ended() for child in children] == [0] * 4

    with closing(SqliteStore(path, VirtualClock(), durable=False)) as store:
        assert {row.item.id for row in store.rows()} == {f"i{child.pid}" for child in children}


def test_a_worker_killed_between_fetch_and_ack_leaves_the_item_to_its_locks_expiry(path: Path) -> None:
    clock = VirtualClock()
    with closing(SqliteStore(path, clock)) as store:
        store.enqueue(ITEM)

    def fetch_and_hang(pipe: Pipe) -> None:
        store = SqliteStore(path, VirtualClock())
        driver = Driver(Worker(clock, {"charge": lambda item: "paid"}), store)
        step_to(driver, Ack)
        pipe.say("about to ack")
        pipe.hear()

    child = Child(fetch_and_hang)
    assert child.pipe.hear() == "about to ack"
    child.kill()
    assert child.ended() == -signal.SIGKILL

    with closing(SqliteStore(path, clock)) as store:
        worker = Worker(clock, {"charge": lambda item: "paid"})
        assert worker.run_once(store) is Verdict.IDLE
        clock.advance(30_000)
        assert worker.run_once(store) is Verdict.SUCCESS
        assert store.completions() == (PAID,)


def work_until_killed(path: Path, now_ms: int, die_after: int | None) -> Callable[[Pipe], None]:
    """Fetch and ack an item at every word; killed by itself after so many of SQLite's own steps."""

    def body(pipe: Pipe) -> None:
        store = SqliteStore(path, VirtualClock(now_ms))
        if die_after is not None:
            store._connection.set_progress_handler(Countdown(die_after), 1)
        while pipe.hear() and (delivery := store.fetch(1_000)) is not None:
            item_id = delivery.item.id
            pipe.say(f"fetched {item_id}")
            store.ack(delivery.token, Completion(CompletionKind.SUCCESS, item_id, delivery.token))
            pipe.say(f"acked {item_id}")
        store.close()
        pipe.say("empty")

    return body


class Countdown:
    """Kills the own process when it has been called so often: in the middle of a statement."""

    def __init__(self, left: int) -> None:
        self._left = left

    def __call__(self) -> int:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0


def test_nothing_is_lost_and_nothing_done_twice_by_a_worker_that_is_killed_a_hundred_times(
    path: Path,
) -> None:
    chance = random.Random(72)
    items = [f"i{n}" for n in range(400)]
    with closing(SqliteStore(path, VirtualClock(), durable=False)) as store:
        for item_id in items:
            store.enqueue(WorkItem(item_id, "order", "charge"))
    acked: set[str] = set()
    places: Counter[str] = Counter()

    for kill in range(1, 101):
        # Later than the end of every lock of the workers that were killed before.
        now_ms = kill * 10_000
        by_itself = kill % 2 == 0
        child = Child(work_until_killed(path, now_ms, chance.randrange(1, 400) if by_itself else None))
        heard = []
        if by_itself:
            child.pipe.say("go\n" * 50)
        else:
            for _ in range(chance.randrange(3)):
                child.pipe.say("go")
                heard += [child.pipe.hear(), child.pipe.hear()]
            child.pipe.say("go")
            spin_until = time.perf_counter() + chance.random() * 0.001
            while time.perf_counter() < spin_until:
                pass  # somewhere in the fetch or the ack of this item, or just after
            child.kill()
        heard += iter(child.pipe.hear, "")
        assert child.ended() == -signal.SIGKILL
        places[heard[-1].split()[0] if heard else "nothing"] += 1
        acked |= {line.removeprefix("acked ") for line in heard if line.startswith("acked")}

        with closing(SqliteStore(path, VirtualClock(now_ms), durable=False)) as store:
            queued = [row.item.id for row in store.rows()]
            completed = [completion.item_id for completion in store.completions()]
        assert sorted(queued + completed) == sorted(items)
        assert acked <= set(completed)

    # The kills did fall between fetch and ack, after an ack, and before anything was said.
    assert min(places["fetched"], places["acked"], places["nothing"]) > 0, places
    last = Child(work_until_killed(path, 10_000_000, None))
    last.pipe.say("go\n" * (len(items) + 1))
    assert list(iter(last.pipe.hear, "empty"))[-1].startswith("acked")
    assert last.ended() == 0
    with closing(SqliteStore(path, VirtualClock(), durable=False)) as store:
        assert store.rows() == ()
        assert sorted(completion.item_id for completion in store.completions()) == sorted(items)
        assert len({completion.payload for completion in store.completions()}) == len(items)
