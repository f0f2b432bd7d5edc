"""The command line: what users type, what they see, and how it says that something is wrong."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest

from peeklock.cli.main import run

SMALL = ["--workers", "1", "--items", "1"]
ROOT = Path(__file__).parents[2]
RUNS = ROOT / "tests" / "data" / "duroxide"


def policy_file(folder: Path, text: str, name: str = "mine.toml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("policy", ["before", "retry", "hardened"])
def test_check_says_that_every_verdict_is_as_stated(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--policy", policy, "--no-proof", *SMALL]) == 0
    out = capsys.readouterr().out
    assert out.rstrip().endswith("every verdict is as the specification states it")


def test_check_before_shows_the_bug_that_was_mended(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--policy", "before", "--no-proof", "--json", *SMALL]) == 0
    (found,) = json.loads(capsys.readouterr().out)["checks"]
    verdicts = {p["promise"]: p for p in found["promises"]}
    assert verdicts["S11"]["verdict"] == "fails"
    assert verdicts["S11"]["causes"] == [["ack-retryable"]]
    steps = [s["does"] for s in verdicts["S11"]["broken"][0]["steps"]]
    assert steps.count("the handler starts") == 2
    assert "abandon t1" in steps


@pytest.mark.parametrize(
    ("text", "promise"),
    [
        ('after_uncertain = "abandon"', "S7"),
        ("ack_attempts = 2\nack_waits_ms = [100]", "S10"),
        ("ack_attempts = 6\nack_waits_ms = [100, 200, 400, 800, 1600]", "S9"),
        ('after_first_permanent = "uncertain"', "S8"),
        ('after_later_permanent = "abandon"', "S10"),
    ],
)
def test_a_changed_policy_breaks_the_promise_that_forbids_it(
    text: str, promise: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = policy_file(tmp_path, text)
    assert run(["check", "--policy", file, "--no-proof", "--json", *SMALL]) == 1
    (found,) = json.loads(capsys.readouterr().out)["checks"]
    unexpected = {p["promise"]: p for p in found["promises"] if not p["as_stated"]}
    assert promise in unexpected
    assert unexpected[promise]["verdict"] == "fails"
    assert unexpected[promise]["broken"][0]["steps"]
    assert run(["explain", promise, "--policy", file, *SMALL]) == 1
    assert f"{promise} is broken at step" in capsys.readouterr().out


def test_without_renewal_errors_retry_loses_no_work(capsys: pytest.CaptureFixture[str]) -> None:
    off = "renewal-retryable,renewal-permanent"
    assert run(["check", "--promise", "S12", "--without", off, "--no-proof", "--json", *SMALL]) == 0
    for found in json.loads(capsys.readouterr().out)["checks"]:
        assert [p["verdict"] for p in found["promises"]] == ["holds"]


def test_explain_tells_the_run_in_lanes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "S12", "--policy", "retry", *SMALL]) == 0
    out = capsys.readouterr().out
    for words in ("worker A", "renew t1", "! renewal-retryable", "nothing is", "✗ 7"):
        assert words in out


def test_explain_of_a_promise_that_holds_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "S1", *SMALL]) == 0
    assert "there is no trace to show" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "--policy", "nope"], "unknown policy 'nope'; allowed: before, retry, hardened"),
        (["check", "--promise", "S99"], "unknown promise 'S99'; allowed: S1, S2"),
        (["check", "--without", "gremlins"], "unknown fault class 'gremlins'; allowed: ack-retryable"),
        (["check", "--only", ","], "no fault class given; allowed: ack-retryable"),
        (["check", "--workers", "0"], "workers is 0; allowed in a bounded world: 1 to 250"),
        (["check", "--deliveries", "251"], "deliveries is 251; allowed in a bounded world: 1 to 250"),
        (["check", "--limit-seconds", "nan"], "--limit-seconds is nan; allowed: more than 0"),
        (["check", "--workers", "two"], "invalid int value: 'two'"),
        (["check", "--limit-seconds", "0"], "--limit-seconds is 0; allowed: more than 0"),
        (["explain", "R1"], "unknown promise 'R1'"),
        (["trace", "no-such-file.jsonl"], "no-such-file.jsonl: cannot be read: No such file or directory"),
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert len(captured.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ack_attempts = 5\nack_waits_ms = [100]", "ack_waits_ms has 1 waits for ack_attempts = 5"),
        ("ack_retries = 5", "unknown field 'ack_retries'; allowed: base, name, max_attempts, ack_attempts"),
        ('after_uncertain = "panic"', "after_uncertain is 'panic'; allowed: leave, abandon"),
        ('base = "after"', "base is 'after'; allowed: before, retry, hardened"),
        ('max_attempts = "many"', "max_attempts is 'many'; allowed: a whole number"),
        ("ack_attempts = 0\nack_waits_ms = []", "ack_attempts is 0; allowed: 1 or more"),
        ("shutdown_grace_ms = -1", "shutdown_grace_ms is -1; allowed: 0 or more milliseconds"),
        ("ack_attempts = ", "not a policy file"),
        ("ack_attempts = " + "9" * 5000, "not a policy file"),
        ("x = " + "[" * 5000 + "]" * 5000, "not a policy file"),
        ('name = "x\\ny"', "allowed: a word of its own"),
        ('name = "hardened"', "allowed: a word of its own"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", "--policy", policy_file(tmp_path, text)]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert len(err.splitlines()) == 1


def test_a_world_too_large_for_memory_stops_and_says_how_far_it_came(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["check", "--policy", "retry", "--no-proof", "--limit-mib", "2"]) == 1
    out = capsys.readouterr().out
    assert "stopped at the limit of 2 MiB of memory" in out
    assert "covered: all runs of up to" in out
    assert "unknown" in out


@pytest.mark.parametrize("name", sorted(p.stem for p in RUNS.glob("*.jsonl")))
def test_the_policy_of_the_real_system_explains_its_runs(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trace", str(RUNS / f"{name}.jsonl"), "--policy", "before"]) == 0
    out = capsys.readouterr().out
    assert "conforms to policy before" in out
    assert ("it breaks S12" in out) == (name == "lost-work")


def test_one_observation_is_told_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "short.jsonl"
    lines = (RUNS / "abandonlock.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:2]), encoding="utf-8")
    assert run(["trace", str(path)]) == 0
    assert "1 observation explained" in capsys.readouterr().out


def test_the_new_policy_rejects_the_abandon_after_a_retryable_ack(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", str(RUNS / "abandonlock.jsonl"), "--policy", "retry"]) == 1
    out = capsys.readouterr().out
    assert "abandonlock.jsonl:7" in out
    assert "Step 6: worker of t1 abandons i1 under t1 (it took effect)." in out
    assert "another call: renew, ack or fetch" in out
    assert "  S10 abandon only after exhaustion" in out


def test_a_run_is_told_in_the_way_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "run.html"
    violating = str(RUNS / "abandonlock.jsonl")
    for arguments in (["explain", "S12", *SMALL], ["trace", violating]):
        expected = 0 if arguments[0] == "explain" else 1
        assert run([*arguments, "--markdown"]) == expected
        assert "```mermaid\nsequenceDiagram" in capsys.readouterr().out
        assert run([*arguments, "--mermaid"]) == expected
        assert capsys.readouterr().out.startswith("sequenceDiagram\n")
        assert run([*arguments, "--html", str(page)]) == expected
        assert capsys.readouterr().out == f"wrote {page}\n"
        assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_page_that_cannot_be_written_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trace", str(RUNS / "abandonlock.jsonl"), "--html", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"peeklock: cannot write {tmp_path}: Is a directory\n"


def test_a_stopped_search_goes_on_from_its_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "search.npz"
    small = ["--policy", "retry", "--workers", "2", "--items", "1", "--no-proof", "--no-causes", "--json"]

    def statistics(*arguments: str) -> tuple[int, dict[str, object]]:
        code = run(["check", *small, *arguments])
        found = json.loads(capsys.readouterr().out)["checks"][0]
        return code, {
            k: v for k, v in {**found["statistics"], "broken": found["promises"]}.items() if k != "seconds"
        }

    assert statistics("--checkpoint", str(file), "--limit-seconds", "0.0001")[0] == 1
    assert file.exists()
    assert statistics("--checkpoint", str(file)) == statistics()
    assert not file.exists()


def test_a_follow_up_command_is_about_the_same_world(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--policy", "hardened", "--with", "dishonest-permanent", "--items", "1", "--workers", "1"]
    assert run(["check", "--no-proof", *options]) == 1
    (told,) = (
        line.strip() for line in capsys.readouterr().out.splitlines() if "peeklock explain S13" in line
    )
    assert run(told.split()[1:]) == 1
    assert "S13 is broken at step" in capsys.readouterr().out


def test_a_proof_holds_where_the_search_was_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--policy", "retry", "--promise", "S1", "--limit-seconds", "0.001"]) == 1
    out = capsys.readouterr().out
    assert "holds ∎" in out
    assert "the search was not complete" in out


def test_a_full_disk_is_said_in_one_line() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            command("explain", "S1", *SMALL), stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["peeklock: cannot write the output: No space left on device"]


def test_a_checkpoint_of_another_search_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "search.npz"
    assert (
        run(
            [
                "check",
                "--policy",
                "retry",
                "--no-proof",
                "--checkpoint",
                str(file),
                "--limit-seconds",
                "0.0001",
            ]
        )
        == 1
    )
    assert run(["check", "--policy", "hardened", "--no-proof", "--checkpoint", str(file)]) == 2
    assert "the checkpoint of another search" in capsys.readouterr().err
    file.write_text("nonsense", encoding="utf-8")
    assert run(["check", "--policy", "hardened", "--no-proof", "--checkpoint", str(file)]) == 2
    assert "not a checkpoint, or damaged" in capsys.readouterr().err
    assert run(["check", "--no-proof", "--checkpoint", str(file)]) == 2


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "peeklock.cli.main", *arguments]


def test_an_interrupt_prints_what_was_found_and_exits_with_130() -> None:
    """On a terminal, where progress shows that the search has begun."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        command("check", "--policy", "retry", "--workers", "3", "--no-proof"),
        stdout=subprocess.PIPE,
        stderr=theirs,
        # A job that runs in the background inherits an interrupt that is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    shown = b""
    while b"depth 1" not in shown:  # some way in: depth 10 or more
        shown += os.read(ours, 4096)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    os.close(ours)
    assert child.returncode == 130
    assert "stopped at an interrupt" in out.decode()
    assert "unknown" in out.decode()


def test_an_interrupt_of_the_proofs_tells_what_the_search_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("peeklock.cli.check.check.proofs_for", interrupted)
    assert run(["check", "--policy", "before", "--workers", "1", "--items", "1"]) == 130
    out = capsys.readouterr().out
    assert "S12 after " in out
    assert "unfinished: the proofs under before" in out
    assert "every verdict is as" not in out


def test_a_pipe_gets_no_progress() -> None:
    done = subprocess.run(
        command("check", "--policy", "retry", "--no-proof"), capture_output=True, check=True
    )
    assert done.stderr == b""
    assert b"\x1b" not in done.stdout


def test_a_reader_that_goes_away_is_no_error() -> None:
    child = subprocess.Popen(
        command("check", "--no-proof", *SMALL), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    assert b"Traceback" not in child.stderr.read()
    child.wait(timeout=time.monotonic() + 60)
    child.stderr.close()


@pytest.mark.parametrize(("deliveries", "not_shown"), [(1, {"S11", "S14"}), (3, {"S14"}), (4, set[str]())])
def test_what_cannot_break_in_a_small_world_is_not_shown_and_is_no_finding(
    deliveries: int, not_shown: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--policy", "before", "--workers", "1", "--items", "1", "--no-proof", "--no-causes", "--json"]
    assert run(["check", *small, "--deliveries", str(deliveries)]) == 0
    (found,) = json.loads(capsys.readouterr().out)["checks"]
    assert {p["promise"] for p in found["promises"] if p["verdict"] == "not shown here"} == not_shown


def test_a_world_that_is_too_small_says_how_large_it_has_to_be(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mended = ["--policy", "retry", "--items", "1", "--no-proof", "--no-causes", "--promise", "S14"]
    assert run(["check", *mended, "--deliveries", "3"]) == 0
    assert "S14 cannot break in a world this small; use --deliveries 4 or more" in capsys.readouterr().out


def test_a_checkout_with_another_specification_is_refused_and_one_with_the_same_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "spec", tmp_path / "spec", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "docs")
    small = [
        "check",
        "--policy",
        "hardened",
        "--workers",
        "1",
        "--items",
        "1",
        "--no-proof",
        "--promise",
        "S12",
    ]
    assert run(small) == 0
    capsys.readouterr()
    law = tmp_path / "spec" / "law" / "store.py"
    law.write_text(law.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert run(small) == 2
    assert capsys.readouterr().err.startswith(
        f"peeklock: {law} is not the specification that this command reads"
    )
