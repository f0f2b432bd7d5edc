"""``peeklock conform store --concurrently``: several programs on one store, in words, as data and as files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from interrupts import heed_interrupts

from peeklock.cli import main
from peeklock.harness.wire.store import StoreProgram

ADAPTERS = Path(__file__).parent.parent / "adapters"
STORE = [sys.executable, str(ADAPTERS / "python_shared_store.py")]
ALONE = [sys.executable, str(ADAPTERS / "python_store.py")]
FEW = ["--concurrently", "2", "--examples", "6", "--seed", "1", "--timeout", "30"]


def programs_of(pid: int) -> list[str]:
    """The numbers of the stores that a process has started."""
    asks = ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(pid)]
    told = subprocess.run(asks, capture_output=True, text=True, check=False).stdout
    return [line.split()[0] for line in told.splitlines() if "_store.py" in line]


def is_gone(pid: str) -> bool:
    asks = ["ps", "-o", "stat=", "-p", pid]
    state = subprocess.run(asks, capture_output=True, text=True, check=False).stdout
    return state.strip()[:1] in ("", "Z", "X")


def test_two_programs_on_one_store_conform_in_words_and_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["conform", "store", *FEW, "--", *STORE]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("python_shared_store conforms: 6 rounds, ")
    assert said.err == ""
    assert main.run(["conform", "store", *FEW, "--json", "--", *STORE]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["verdict"], data["subject"], data["runs"]) == ("conforms", "python_shared_store", 6)
    assert data["calls"] > data["overlapping"] > 0
    assert "faults" in data["coverage"]["left_out"]
    assert not programs_of(os.getpid())


def test_a_race_of_two_programs_is_told_and_its_trace_shows_it_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAULT", "check-then-claim")
    options = ["--concurrently", "2", "--artifacts", str(tmp_path)]
    assert main.run(["conform", "store", *options, "--", *STORE]) == 1
    said = capsys.readouterr().out
    assert "python_shared_store does not keep its contract when it is called by 2 at once" in said
    folder = tmp_path / "python_shared_store"
    assert {p.name for p in folder.iterdir()} == {"failure.html", "report.txt", "trace.jsonl"}
    assert main.run(["trace", str(folder / "trace.jsonl"), "--json"]) == 1
    again = json.loads(capsys.readouterr().out)
    assert main.run(["conform", "store", *options, "--json", "--", *STORE]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["deterministic"] is False
    assert {"S6", "C1", "C2"} & set(data["promises"])
    assert {"S6", "C1", "C2"} & set(again["violation"]["breaks"])
    assert not programs_of(os.getpid())


def test_a_program_that_cannot_be_one_of_several_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["conform", "store", *FEW, "--", *ALONE]) == 2
    said = capsys.readouterr()
    assert (
        'it does not say that several programs can have one store open; allowed where they are to: "shared_place": true'
        in said.err
    )
    assert not programs_of(os.getpid())


def test_fewer_than_two_are_not_several(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["conform", "store", "--concurrently", "1", "--", *STORE]) == 2
    assert "--concurrently is 1; allowed: 2 to 64" in capsys.readouterr().err


def test_a_program_that_dies_is_told_and_no_other_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULT", "dies")
    assert main.run(["conform", "store", *FEW, "--", *STORE]) == 2
    assert "ack: the program ended with exit code 3 instead of answering" in capsys.readouterr().err
    assert not programs_of(os.getpid())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_check_ends_all_programs(number: signal.Signals) -> None:
    command = [
        sys.executable,
        "-m",
        "peeklock.cli.main",
        "conform",
        "store",
        "--concurrently",
        "2",
        "--",
        *STORE,
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts) as check:
        found: list[str] = []
        while len(found) < 2 and check.poll() is None:
            time.sleep(0.05)
            found = programs_of(check.pid)
        time.sleep(0.3)
        check.send_signal(number)
        _, said = check.communicate(timeout=60)
    assert (check.returncode, said) == (130, "peeklock: interrupted\n")
    assert len(found) == 2
    assert all(map(is_gone, found))


def test_a_store_of_its_own_is_meant_where_no_place_is_named() -> None:
    with StoreProgram(STORE, 30.0) as program:
        assert program.shares
        for _ in range(2):
            store = program.new_store()
            assert store.fetch(100) is None
            store.enqueue("left behind", 0)
            store.close()
