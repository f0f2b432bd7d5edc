"""Programs on the wire are held to the contract like any store or worker; none can hang a check, or outlive it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import hypothesis
import pytest

from peeklock.harness.adapter.interface import PermanentError, RetryableError
from peeklock.harness.adapter.program import BrokenProgram, Child
from peeklock.harness.failure.report import ContractViolation
from peeklock.harness.store.check import check_store
from peeklock.harness.wire.store import StoreProgram
from peeklock.harness.wire.worker import WorkerProgram
from peeklock.harness.worker.check import check_worker
from peeklock.spec.notation.actions import Call
from peeklock.spec.variants.capabilities import Capabilities, Order

ADAPTERS = Path(__file__).parent.parent / "adapters"
STORE = [sys.executable, str(ADAPTERS / "python_store.py")]
UNRULY = [sys.executable, str(ADAPTERS / "unruly_store.py")]
WORKER = [sys.executable, str(ADAPTERS / "python_worker.py")]
FEW = hypothesis.settings(max_examples=30, database=None)
LONG_S = 30.0
"""A time limit that is not met: a test that meets it fails by what is said."""


def unruly(monkeypatch: pytest.MonkeyPatch, conduct: str, at: int = 3, **more: str) -> None:
    monkeypatch.setenv("CONDUCT", conduct)
    monkeypatch.setenv("AT", str(at))
    for name, value in more.items():
        monkeypatch.setenv(name, value)


def use(program: StoreProgram, runs: int = 1, limit_s: float = LONG_S) -> None:
    """Short runs, in the first of which requests 1 to 5 are new, enqueue, fetch, completions and close."""
    program.set_timeout(limit_s)
    for _ in range(runs):
        store = program.new_store()
        store.enqueue("i1", 0)
        store.fetch(1_000)
        store.completions()
        store.close()


def told(command: list[str]) -> str:
    """What is said of a broken program."""
    with pytest.raises(BrokenProgram) as caught, StoreProgram(command, LONG_S) as program:
        use(program, 2)
    _, place, what = str(caught.value).split(": ", 2)
    assert place.startswith(("run ", "the handshake"))
    return what


def is_gone(pid: int) -> bool:
    """Has the process ended? One that was killed a moment ago may still be at it."""
    until = time.monotonic() + LONG_S
    while time.monotonic() < until:
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        if not state.stdout.strip() or state.stdout.startswith("Z"):
            return True
        time.sleep(0.01)
    return False


# Stores


def test_a_store_on_the_wire_answers_as_the_adapter_says() -> None:
    with StoreProgram(STORE, LONG_S) as program:
        assert program.name == "python_store"
        assert program.capabilities == Capabilities(fault_injection=True)
        store = program.new_store()
        store.enqueue("i1", 5)
        assert store.fetch(100) is None
        store.advance(5)
        first = store.fetch(100)
        assert first is not None
        assert (first.item, first.attempt_count) == ("i1", 1)
        store.renew(first.token, 200)
        store.abandon(first.token, 0, True)
        with pytest.raises(PermanentError, match="not current"):
            store.renew(first.token, 200)
        second = store.fetch(100)
        assert second is not None
        assert second.attempt_count == 1
        store.fail_next("ack", True)
        with pytest.raises(RetryableError, match="response is lost"):
            store.ack(second.token, "a\u2028b\ud83d\ude00")
        assert list(store.completions()) == [("i1", "a\u2028b\U0001f600")]
        store.enqueue("i2", 0)
        assert list(store.cancel(["i1", "i2"])) == ["i2"]
        store.close()


def test_each_run_begins_with_an_empty_store_in_the_same_process() -> None:
    with StoreProgram(STORE, LONG_S) as program:
        for _ in range(3):
            store = program.new_store()
            assert store.fetch(100) is None
            store.enqueue("left behind", 0)
            store.close()
        assert program.runs == 3
        assert [line[:9] for line in program.transcript[:2]] == ['> {"id": ', '< {"id": ']


def test_a_right_store_conforms() -> None:
    with StoreProgram(STORE, LONG_S) as program:
        report = check_store(program.new_store, program.capabilities, settings=FEW, seed=1, name=program.name)
    assert report.subject == "python_store"
    assert report.runs >= 30


def test_a_wrong_store_is_caught_and_its_shortest_run_was_said_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULT", "locks-nothing")
    with StoreProgram(STORE, LONG_S) as program, pytest.raises(ContractViolation) as caught:
        check_store(program.new_store, program.capabilities, settings=FEW, seed=1, name=program.name)
    failure = caught.value.failure
    assert "S6" in failure.promises
    calls = [json.loads(line[2:])["call"] for line in program.transcript if line.startswith("> ")]
    assert (calls[0], calls[-1]) == ("new", "close")
    assert calls.count("fetch") == sum(seen.call is Call.FETCH for seen in failure.observations) >= 2


# Broken programs, each told in one line


@pytest.mark.parametrize(
    ("conduct", "says"),
    [
        ("die", "the program ended with exit code 3 instead of answering"),
        ("crash", "the program was ended by SIGSEGV instead of answering"),
        (
            "half",
            'the program ended with exit code 0 instead of answering, after half a line: {"id": 3,',
        ),
        (
            "endless",
            "1024 KiB without a line's end; allowed: one message on one line, ended by \\n",
        ),
    ],
)
def test_a_program_that_breaks_is_told_in_one_line(
    conduct: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unruly(monkeypatch, conduct)
    assert told(UNRULY).splitlines()[0] == says


@pytest.mark.parametrize(
    ("conduct", "says"),
    [
        ("hang", "no line within 0.5 s; end each with \\n, flush it, or allow it more time"),
        ("trickle", "no line within 0.5 s; there is half a line: {"),
    ],
)
def test_a_program_that_does_not_come_to_an_end_is_told_within_the_time_limit(
    conduct: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unruly(monkeypatch, conduct)
    with pytest.raises(BrokenProgram) as caught, StoreProgram(UNRULY, LONG_S) as program:
        use(program, limit_s=0.5)
    assert f"run 1, request 3, fetch: {says}" in str(caught.value)


def test_a_slow_program_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    unruly(monkeypatch, "slow")
    with StoreProgram(UNRULY, LONG_S) as program:
        use(program)
    assert program.requests == 5


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"id": 7}, "out of turn: it answers request 7; allowed: 3"),
        ({"id": "(nothing)"}, 'it has no id: {"ok": null}; allowed: "id": 3'),
        ({"id": "3"}, 'id is "3"; allowed: a whole number'),
        ({"ok": "(nothing)"}, "neither ok nor error is there; allowed: one of the two"),
        ({"ok": 5}, "ok is 5; allowed: an object with item, token, attempt_count"),
        ({"ok": {"item": "i1", "token": 5}}, "token is 5; allowed: a text"),
        ({"ok": {"item": "i1", "token": "t"}}, "attempt_count is missing; allowed: a whole number"),
        ({"ok": {"item": "i1", "tok": "t"}}, 'unknown field "tok"; allowed: item, token, attempt_count'),
        ({"error": "permanent"}, 'unknown field "ok"; allowed: id, error, message'),
        ({"error": "fatal", "ok": "(nothing)"}, 'error is "fatal"; allowed: retryable, permanent'),
        ({"more": 1}, 'unknown field "more"; allowed: id, ok'),
    ],
)
def test_an_answer_of_the_wrong_kind_is_told(
    changes: dict[str, object], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unruly(monkeypatch, "change", 3, CHANGES=json.dumps({"ok": None, **changes}))
    assert told(UNRULY).endswith(says)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ("hello\n", "not JSON (Expecting value): hello; allowed: JSON on stdout, all else on stderr"),
        ("\n", "not JSON (Expecting value): an empty line; allowed: JSON on stdout, all else on stderr"),
        ("[3]\n", "[3]; allowed: an object"),
        ("\xff\xfe\n", "a line that is not UTF-8: \ufffd\ufffd; allowed: JSON on stdout"),
        ('{"id": 3, "id": 3, "ok": null}\n', "not JSON (id stands twice)"),
        ('{"id": NaN}\n', "not JSON (NaN is no number of JSON)"),
        ("[" * 100_000 + "\n", "not JSON ("),
        ("\x1b[2J\x07\n", "not JSON (Expecting value): \\x1b[2J\\x07; allowed"),
    ],
)
def test_rubbish_is_told(raw: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unruly(monkeypatch, "raw", 3, RAW=json.dumps(raw))
    assert says in told(UNRULY)


def test_a_line_that_nobody_asked_for_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    unruly(monkeypatch, "twice")
    # The second line may be seen before the next request or as the answer to it.
    said = told(UNRULY)
    assert (
        "a line that nobody had asked for: {" in said
        or "out of turn: it answers request 3; allowed: 4" in said
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"peeklock": 2}, "it speaks version 2; allowed: 1"),
        (
            {"peeklock": "(nothing)"},
            'peeklock is null; allowed: the version that it speaks, such as {"peeklock": 1}',
        ),
        ({"role": "worker"}, 'it says that it is a "worker"; allowed: store'),
        ({"name": 5}, "name is 5; allowed: a text"),
        ({"capabilities": []}, "the capabilities are no table; allowed: names and values of capabilities"),
        ({"capabilities": {"flies": True}}, "unknown capability 'flies'; allowed: renew, renewal, abandon, "),
        ({"capabilities": {"cancel": "yes"}}, "cancel is 'yes'; allowed: true, false"),
        ({"capabilities": {"order": "lifo"}}, "order is 'lifo'; allowed: fifo, none"),
        ({"version": 1}, 'unknown field "version"; allowed: peeklock, role, name, capabilities'),
    ],
)
def test_a_wrong_handshake_is_told(
    changes: dict[str, object], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unruly(monkeypatch, "change", 0, CHANGES=json.dumps(changes))
    assert says in told(UNRULY)


def test_what_the_handshake_declares_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    unruly(monkeypatch, "change", 0, CHANGES=json.dumps({"capabilities": {"order": "none", "cancel": False}}))
    with StoreProgram(UNRULY, LONG_S) as program:
        assert program.capabilities == Capabilities(order=Order.NONE, cancel=False)


def test_a_request_that_is_no_call_of_the_store_may_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    unruly(
        monkeypatch,
        "change",
        1,
        CHANGES=json.dumps({"ok": "(nothing)", "error": "retryable", "message": "no"}),
    )
    assert told(UNRULY) == 'it answers an error ("no"); new is no call of the store and may not fail'


def test_its_last_words_are_told_with_nothing_that_steers_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    unruly(monkeypatch, "die")
    with pytest.raises(BrokenProgram) as caught, StoreProgram(UNRULY, LONG_S) as program:
        use(program)
    words = caught.value.last_words
    assert words == (*(f"word {n}" for n in range(31, 40)), "\\x1b[31mthe database\\x07 is gone")
    assert str(caught.value).splitlines()[-1] == "  | \\x1b[31mthe database\\x07 is gone"


def test_stderr_without_an_end_does_not_stop_the_program() -> None:
    talks = "import sys\nfor line in sys.stdin:\n sys.stderr.write('x' * 3000000 + '\\n')\n print('{}', flush=True)"
    with Child([sys.executable, "-c", talks], LONG_S) as child:
        for _ in range(2):
            child.send("{}", "here")
            assert child.receive("here") == "{}"
        child.finish()
        assert [len(word) for word in child.last_words()] == [160]


# Nothing is left running


@pytest.mark.parametrize("how", ["by the time limit", "by an error", "in good order"])
def test_a_program_that_does_not_want_to_end_is_ended_with_all_that_it_started(
    how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    unruly(monkeypatch, "stubborn", 3, PIDS=str(pids))
    program = StoreProgram(UNRULY, LONG_S)
    store = program.new_store()
    store.enqueue("i1", 0)
    program.set_timeout(1.0)
    with pytest.raises(BrokenProgram):
        store.fetch(1_000)
    if how == "by an error":
        with pytest.raises(RuntimeError), program:
            raise RuntimeError
    elif how == "in good order":
        with program:
            pass
    one, other = map(int, pids.read_text().split())
    assert is_gone(one)
    assert is_gone(other)


def test_a_program_is_ended_when_the_caller_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    unruly(monkeypatch, "hang")
    program = StoreProgram(UNRULY, LONG_S)
    store = program.new_store()
    store.enqueue("i1", 0)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        with pytest.raises(KeyboardInterrupt):
            store.fetch(1_000)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert is_gone(program.pid)
    store.close()
    with pytest.raises(BrokenProgram, match="has been ended"):
        store.fetch(1_000)


def test_a_program_that_stays_when_its_input_is_over_is_ended() -> None:
    stays = "import sys, time\nprint(sys.stdin.readline(), flush=True)\ntime.sleep(3600)"
    child = Child([sys.executable, "-c", stays], LONG_S)
    child.send("hello", "here")
    assert child.receive("here") == "hello"
    child.finish()
    assert is_gone(child.pid)


@pytest.mark.parametrize("command", [["/no/such/program"], [str(ADAPTERS)], [""], ["a\0b"]])
def test_a_program_that_cannot_be_started_is_told(command: list[str]) -> None:
    with pytest.raises(BrokenProgram, match="cannot be started"):
        StoreProgram(command)


# Workers


def test_a_right_worker_conforms() -> None:
    with WorkerProgram(WORKER, LONG_S) as program:
        report = check_worker(program.run_worker, settings=FEW, seed=1, name=program.name)
    assert report.subject == "python_worker"
    assert program.requests > program.runs > 30


@pytest.mark.parametrize(
    ("fault", "promise"), [("retryable-ack-then-abandon", "S10"), ("repeat-with-another-completion", "S9")]
)
def test_a_wrong_worker_is_caught(fault: str, promise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULT", fault)
    with WorkerProgram(WORKER, LONG_S) as program, pytest.raises(ContractViolation) as caught:
        check_worker(program.run_worker, settings=FEW, seed=1, name=program.name)
    assert promise in caught.value.failure.promises


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"call": "sleep"}, 'run 1, request 1: call is "sleep"; allowed: fetch, renew, ack, '),
        ({"call": ["fetch"]}, 'run 1, request 1: call is ["fetch"]; allowed: fetch, '),
        ({"id": 2}, "run 1, request 1: out of turn: it answers request 2; allowed: 1"),
        ({"lock_timeout_ms": -1}, "run 1, request 1, fetch: lock_timeout_ms is -1; allowed: 0 or more"),
        (
            {"lock_timeout_ms": "x"},
            'run 1, request 1, fetch: lock_timeout_ms is "x"; allowed: a whole number',
        ),
        (
            {"token": "t"},
            'run 1, request 1, fetch: unknown field "token"; allowed: id, call, lock_timeout_ms',
        ),
        ({"done": 5}, 'run 1, request 1: unknown field "id"; allowed: done'),
    ],
)
def test_a_wrong_request_is_told(
    changes: dict[str, object], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHANGES", json.dumps(changes))
    with pytest.raises(BrokenProgram) as caught, WorkerProgram(WORKER, LONG_S) as program:
        check_worker(program.run_worker, settings=FEW, seed=1)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("announces", "says"),
    [
        ({"reports": ["pulse"]}, 'reports names "pulse"; allowed: handlers, counts'),
        ({"reports": "counts"}, 'reports is "counts"; allowed: a list'),
        ({"capabilities": {}}, 'unknown field "capabilities"; allowed: peeklock, role, name, reports'),
    ],
)
def test_a_worker_announces_what_it_reports(
    announces: dict[str, object], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANNOUNCES", json.dumps(announces))
    with pytest.raises(BrokenProgram) as caught:
        WorkerProgram(WORKER, LONG_S)
    assert says in str(caught.value)
