"""Recording an adapter: what is written is judged as what was done, whoever did it and however it ended."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faulty_stores
import pytest
from faulty_stores import PlainStore
from reference import ERRORS, memory_store
from trace_schema import ROOT, held

from peeklock.harness.adapter.interface import PermanentError, RetryableError
from peeklock.harness.adapter.wrapping import AdapterError
from peeklock.harness.concurrent.thread_pool import switching_often
from peeklock.harness.trace.file import Kind, read
from peeklock.harness.trace.judge import Judgement, judge
from peeklock.harness.trace.recorder import REAL_SLACK_MS, Recorded, recording
from peeklock.spec.law.policy import RETRY
from peeklock.spec.variants.capabilities import STANDARD, Capabilities

REAL = Capabilities(virtual_clock=False)


def recorded(
    path: Path,
    store: Any,
    use: Callable[[Recorded], None],
    capabilities: Capabilities = STANDARD,
    **errors: Any,
) -> Judgement:
    """What is found of this use of a store, by its record alone."""
    with recording(store, path, capabilities=capabilities, **errors) as watched:
        use(watched)
    held(path)
    header, entries = read(path)
    assert header.kind is Kind.CALLS
    assert header.capabilities == capabilities
    return judge(header, entries, RETRY)


def every_call(store: Recorded) -> None:
    store.enqueue("i1", 0)
    store.enqueue("i2", 50)
    first = store.fetch(100)
    assert first is not None
    store.renew(first.token, 100)
    store.abandon(first.token, 0, True)
    again = store.fetch(100)
    assert again is not None
    store.advance(50)
    other = store.fetch(100)
    assert other is not None
    store.ack(other.token, None)
    store.ack(again.token, "done")
    with pytest.raises(PermanentError):
        store.ack(again.token, "done")
    assert store.fetch(100) is None
    assert store.cancel(["i1", "i2"]) == []
    assert list(store.completions()) == [("i1", "done")]


def test_every_call_is_recorded_and_answered_as_the_store_does(tmp_path: Path) -> None:
    found = recorded(tmp_path / "run.jsonl", PlainStore(), every_call)
    assert found.conforms
    assert found.observations == 2 * 12
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert {line["t_ms"] for line in lines[1:]} == {0, 50}
    assert {line["client"] for line in lines if "invoke" in line} == {threading.current_thread().name}


def test_a_store_that_is_wrong_is_caught_by_the_record(tmp_path: Path) -> None:
    def late(store: Recorded) -> None:
        store.enqueue("i1", 0)
        found = store.fetch(100)
        assert found is not None
        store.advance(100)
        store.ack(found.token, "done")

    found = recorded(tmp_path / "run.jsonl", faulty_stores.AcceptsAcksAfterExpiry(), late)
    assert found.violation is not None
    assert found.violation.promises[0] == "S5"
    assert found.violation.seen.place.endswith("run.jsonl:7")


def test_calls_of_many_threads_are_recorded_in_their_order(tmp_path: Path) -> None:
    store, lock = memory_store(), threading.Lock()

    class Locked:
        def __getattr__(self, name: str) -> Any:
            def call(*args: Any) -> Any:
                with lock:
                    return getattr(store, name)(*args)

            return call

    def use(watched: Recorded) -> None:
        def work(worker: int) -> None:
            for k in range(30):
                watched.enqueue(f"{worker}-{k}", 0)
                found = watched.fetch(100)
                if found is not None:
                    watched.ack(found.token, "done")

        threads = [threading.Thread(target=work, args=(n,), name=f"w{n}") for n in range(4)]
        with switching_often():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    found = recorded(tmp_path / "run.jsonl", Locked(), use, **ERRORS)
    assert found.violation is None
    assert found.observations == 4 * 30 * 3 * 2
    begun = [
        json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines() if '"invoke"' in line
    ]
    assert [line["id"] for line in begun] == list(range(1, len(begun) + 1))
    assert {line["client"] for line in begun} == {"w0", "w1", "w2", "w3"}


class Failing(PlainStore):
    """Its acks fail in one way, before or after they took effect."""

    def __init__(self, error: BaseException, takes_effect: bool) -> None:
        super().__init__()
        self.error, self.takes_effect = error, takes_effect

    def ack(self, token: str, completion: str | None) -> None:
        if self.takes_effect:
            super().ack(token, completion)
        raise self.error


class Busy(Exception):
    pass


@pytest.mark.parametrize("takes_effect", [False, True])
@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (RetryableError("?"), {"return": "info", "answer": "retryable error"}),
        (Busy("?"), {"return": "info", "answer": "retryable error"}),
        (KeyError("?"), {"return": "info"}),
        (KeyboardInterrupt(), {"return": "info"}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_an_exception_goes_on_to_the_caller_and_leaves_open_what_nobody_knows(
    error: BaseException, ending: dict[str, Any], takes_effect: bool, tmp_path: Path
) -> None:
    def use(store: Recorded) -> None:
        store.enqueue("i1", 0)
        found = store.fetch(100)
        assert found is not None
        with pytest.raises(type(error)):
            store.ack(found.token, "done")
        store.advance(100)
        assert (store.fetch(100) is None) is takes_effect

    path = tmp_path / "run.jsonl"
    assert recorded(path, Failing(error, takes_effect), use, retryable=(Busy,)).conforms
    ends = [json.loads(line) for line in path.read_text().splitlines() if '"return"' in line]
    assert ends[2] == {"id": 3, **ending, "t_ms": 0}


def test_a_run_that_is_broken_off_is_judged_as_far_as_it_came(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    inside, go_on = threading.Event(), threading.Event()

    class Slow(PlainStore):
        def ack(self, token: str, completion: str | None) -> None:
            inside.set()
            go_on.wait()
            super().ack(token, completion)

    with recording(Slow(), path) as store:
        store.enqueue("i1", 0)
        found = store.fetch(100)
        assert found is not None
        thread = threading.Thread(target=store.ack, args=(found.token, "done"))
        thread.start()
        inside.wait()
    go_on.set()
    thread.join()
    held(path)
    assert path.read_text().endswith("}\n")
    assert judge(*read(path), RETRY).conforms
    assert len(path.read_text().splitlines()) == 6, "what ends later is not written"


def test_the_time_of_a_store_in_real_time_may_be_off_by_a_little(tmp_path: Path) -> None:
    def use(store: Recorded) -> None:
        store.enqueue("i1", 0)
        found = store.fetch(60_000)
        assert found is not None
        store.ack(found.token, "done")

    assert recorded(tmp_path / "run.jsonl", faulty_stores.InRealTime(), use, REAL).conforms
    assert read(tmp_path / "run.jsonl")[0].slack_ms == REAL_SLACK_MS


def test_what_an_adapter_lacks_is_said_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with (
        pytest.raises(AdapterError, match="has no method advance"),
        recording(faulty_stores.InRealTime(), path),
    ):
        raise AssertionError("it was recorded")
    assert not path.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_is_said_to_whoever_records() -> None:
    with pytest.raises(OSError, match="No space left"), recording(PlainStore(), "/dev/full"):
        raise AssertionError("it was recorded")


def test_the_page_shows_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "trace-format.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- run as a test: recording -->\n```python\n(.*?)```", page, re.DOTALL)
    assert shown is not None
    monkeypatch.chdir(tmp_path)
    exec(shown[1], {"MyStore": PlainStore})
    held(tmp_path / "run.jsonl")
    found = judge(*read(tmp_path / "run.jsonl"), RETRY)
    assert found.conforms
    assert found.observations == 8
