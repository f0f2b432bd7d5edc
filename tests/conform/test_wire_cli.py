"""``peeklock conform``: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from interrupts import heed_interrupts

from peeklock.cli import main
from peeklock.harness.store.generation import corners
from peeklock.harness.worker.corner_cases import corners as worker_corners
from peeklock.spec.law.policy import RETRY
from peeklock.spec.variants.capabilities import STANDARD

ADAPTERS = Path(__file__).parent.parent / "adapters"
STORE = [sys.executable, str(ADAPTERS / "python_store.py")]
UNRULY = [sys.executable, str(ADAPTERS / "unruly_store.py")]
WORKER = [sys.executable, str(ADAPTERS / "python_worker.py")]
FEW = ["--examples", "30", "--seed", "1", "--timeout", "30"]


def test_a_right_store_conforms_in_words_and_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["conform", "store", *FEW, "--", *STORE]) == 0
    said = capsys.readouterr()
    assert "python_store conforms: " in said.out
    assert said.err == ""
    assert main.run(["conform", "store", *FEW, "--json", "--", *STORE]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["verdict"], data["role"], data["subject"]) == ("conforms", "store", "python_store")
    assert data["seed"] == 1
    assert data["coverage"]["reached"]["fetch -> ok"] > 0


def test_a_wrong_store_is_a_finding_with_the_lines_that_were_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULT", "locks-nothing")
    assert main.run(["conform", "store", *FEW, "--", *STORE]) == 1
    text = capsys.readouterr().out
    assert "python_store" in text
    assert "S6" in text
    assert '"call": "fetch"' in text
    assert main.run(["conform", "store", *FEW, "--json", "--", *STORE]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["verdict"] == "violates"
    assert "S6" in data["promises"]
    assert data["wire"][0].startswith('> {"id": ')


def test_a_store_that_answers_otherwise_the_next_time_is_shown_both_times(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULT", "is-moody")
    assert main.run(["conform", "store", *FEW, "--", *STORE]) == 1
    text = capsys.readouterr().out
    assert "python_store does not keep its contract, and is nondeterministic" in text
    assert "\nThe same calls, made again:\n    1  enqueue i1 -> ok\n" in text
    assert main.run(["conform", "store", *FEW, "--json", "--", *STORE]) == 1
    data = json.loads(capsys.readouterr().out)
    assert not data["deterministic"]
    assert data["seen_again"][0] == "enqueue i1 -> ok"
    assert data["seen_again"] != data["seen"]


def test_the_artifacts_of_a_store_show_the_failure_again_by_the_program_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULT", "locks-nothing")
    there = tmp_path / "new" / "place"
    assert main.run(["conform", "store", *FEW, "--artifacts", str(there), "--", *STORE]) == 1
    said = capsys.readouterr().out
    folder = there / "python_store"
    names = {p.name for p in folder.iterdir()}
    assert names == {
        "failure.html",
        "report.txt",
        "reproduce.py",
        "trace.jsonl",
        "wire.txt",
    }
    for name in names:
        assert f"written to {folder / name}" in said
    made = subprocess.run(
        [sys.executable, folder / "reproduce.py"], capture_output=True, text=True, check=False
    )
    assert (made.returncode, made.stderr.splitlines()[-1][:14]) == (1, "AssertionError")
    monkeypatch.setenv("FAULT", "")
    made = subprocess.run([sys.executable, folder / "reproduce.py"], capture_output=True, check=False)
    assert made.returncode == 0
    asked = [line for line in (folder / "wire.txt").read_text().splitlines() if line.startswith("> ")]
    assert [json.loads(line[2:])["id"] for line in asked] == list(range(1, len(asked) + 1))


def test_a_finding_is_told_where_its_files_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULT", "locks-nothing")
    (tmp_path / "python_store").write_text("a file\n")
    assert main.run(["conform", "store", *FEW, "--artifacts", str(tmp_path), "--", *STORE]) == 1
    said = capsys.readouterr()
    assert "python_store does not keep its contract" in said.out
    assert said.err == f"peeklock: could not write to {tmp_path}: File exists\n"


def test_workers_are_held_to_a_policy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert main.run(["conform", "worker", *FEW, "--", *WORKER]) == 0
    assert "python_worker conforms: " in capsys.readouterr().out
    options = [*FEW, "--policy", "before", "--artifacts", str(tmp_path)]
    assert main.run(["conform", "worker", *options, "--", *WORKER]) == 1
    assert "python_worker" in capsys.readouterr().out
    folder = tmp_path / "python_worker"
    kept = {"failure.html", "trace.jsonl", "report.txt", "reproduce.py", "wire.txt"}
    assert {p.name for p in folder.iterdir()} == kept
    assert '{"run": ' in (folder / "wire.txt").read_text()
    made = subprocess.run(
        [sys.executable, folder / "reproduce.py"], capture_output=True, text=True, check=False
    )
    assert made.returncode == 1
    assert "ContractViolation" in made.stderr
    monkeypatch.setenv("FAULT", "retryable-ack-then-abandon")
    assert main.run(["conform", "worker", *FEW, "--json", "--", *WORKER]) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["verdict"], data["policy"]) == ("violates", "retry")
    assert "S10" in data["promises"]


@pytest.mark.parametrize("reports", [[], ["counts"], ["handlers"]])
def test_what_a_worker_does_not_report_is_named(
    reports: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANNOUNCES", json.dumps({"reports": reports}))
    code = main.run(["conform", "worker", *FEW, "--json", "--", *WORKER])
    data = json.loads(capsys.readouterr().out)
    if "handlers" in reports:
        assert (code, list(data["coverage"]["left_out"])) == (0, ["counts"])
    else:
        assert code == 1  # it speaks of handlers all the same
        assert "handlers=False" in data["reason"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["store"], "no program is given; allowed: peeklock conform store [options] -- CMD ..."),
        (["store", "--"], "no program is given; allowed: "),
        (["worker", "--", ""], "no program is given; allowed: peeklock conform worker [options] -- CMD ..."),
        (["store", "node", "x.mjs"], "no -- before 'node'; allowed: "),
        (["store", "--examples", "0", "--", "x"], "--examples is 0; allowed: 1 or more"),
        (["store", "--concurrently", "1000000", "--", "x"], "--concurrently is 1000000; allowed: 2 to 64"),
        (["store", "--timeout", "-1", "--", "x"], "--timeout is -1; allowed: more than 0"),
        (["store", "--timeout", "nan", "--", "x"], "--timeout is nan; allowed: more than 0"),
        (["store", "--artifacts", __file__, "--", "x"], "cannot be made: File exists"),
        (
            ["store", "--", "/no/such/program"],
            "/no/such/program: cannot be started: No such file or directory",
        ),
        (["worker", "--policy", "x", "--", *WORKER], "unknown policy 'x'; allowed: "),
        (["queue", "--", "x"], "invalid choice: 'queue'"),
    ],
)
def test_bad_usage_is_told_in_one_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["conform", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert says in said.err
    assert len(said.err.splitlines()) == 1


def test_a_program_may_have_options_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    own = ["--json", "--", "--seed", "--help"]
    assert main.run(["conform", "store", *FEW, "--", *STORE, *own]) == 0
    assert "python_store conforms" in capsys.readouterr().out


def test_a_broken_program_is_no_finding(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONDUCT", "die")
    assert main.run(["conform", "store", *FEW, "--", *UNRULY]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("peeklock: ")
    assert "the program ended with exit code 3 instead of answering" in said.err.splitlines()[0]
    assert said.err.splitlines()[-1] == "  | \\x1b[31mthe database\\x07 is gone"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_check_ends_the_program_with_it(number: signal.Signals, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    command = [sys.executable, "-m", "peeklock.cli.main", "conform", "store", *FEW, "--", *UNRULY]
    environment = {**os.environ, "CONDUCT": "stubborn", "PIDS": str(pids)}
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts
    ) as check:
        program, child = map(int, pids.read_text().split())
        check.send_signal(number)
        _, said = check.communicate(timeout=60)
    assert (check.returncode, said) == (130, "peeklock: interrupted\n")
    for pid in (program, child):
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        assert state.stdout.strip()[:1] in ("", "Z", "X")


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for role in ("store", "worker"):
        with pytest.raises(SystemExit) as ended:
            main.run(["conform", role, "--help"])
        assert ended.value.code == 0
        assert f"example: peeklock conform {role} --seed 1 -- node" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("role", "made_first"), [("store", len(list(corners(STANDARD)))), ("worker", len(worker_corners(RETRY)))]
)
def test_the_help_tells_about_how_many_runs_are_made_first(
    role: str, made_first: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main.run(["conform", role, "--help"])
    told = re.search(r"after about (\d+) short ones", " ".join(capsys.readouterr().out.split()))
    assert told
    assert abs(int(told[1]) - made_first) <= 5
