"""``peeklock diff``: what a reviewer reads, for policies, policy files and revisions, and every way to ask wrongly."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from peeklock.cli.main import run

ROOT = Path(__file__).parent.parent.parent
SMALL = ("--items", "1")
CALM = ("--items", "1", "--without", "cancel,crash,shutdown,fetch-lost,expiry")
GIT = ("git", "-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false")


def policy_file(folder: Path, text: str, name: str = "mine.toml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def committed(repository: Path, message: str) -> None:
    subprocess.run(["git", "add", "."], cwd=repository, check=True)
    subprocess.run([*GIT, "commit", "-q", "-m", message], cwd=repository, check=True)


@pytest.fixture
def empty_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [n for n in os.environ if n.startswith("GIT_")]:
        monkeypatch.delenv(name)
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_change_that_retries_acks_reads_as_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", "before", "retry", *SMALL]) == 0
    out = capsys.readouterr().out
    for words in (
        "retry breaks no promise that before keeps",
        "retry keeps S10 and S11, which before breaks",
        "it takes more to break S13 under retry than under before",
        "under before nothing could happen that S7 and S8 are about",
        "ack_attempts: 1 -> 5",
        "1. ack (attempt 1) -> retryable error, while the worker is in its ack sequence",
        "before: counts infrastructure error; is about to abandon, whatever the answer",
        "retry: sends the same ack again",
        "+ ack -> ok, after 2 to 5 acks; counts success",
        "+ ack -> permanent error, after 2 to 5 acks; counts uncertain",
        "within a shutdown grace of 1,000 ms only 4 of 5 attempts can begin",
    ):
        assert words in out
    assert "2. " not in out.split("A behaviour is")[1].split("the shortest")[0]


def test_the_follow_ups_read_as_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", "retry", "hardened", *SMALL, "--markdown"]) == 0
    out = capsys.readouterr().out
    for words in (
        "- hardened keeps S12, S13 and S14, which retry breaks",
        "renew -> retryable error, while the worker runs the handler",
        "- hardened: goes on, and keeps renewing",
        "the cancelled handler is over, while the worker has told the handler to stop",
        "- retry: is about to send the cancellation ack",
        "ack (attempt 5) -> retryable error",
        "- hardened: is about to abandon, and lets the answer decide",
        "with a poison failure",
        "<details>",
        "#### Numbers",
    ):
        assert words in out
    assert out.count("```") % 2 == 0
    chapters = len(re.findall(r"^\*\*\d+\. ", out, re.MULTILINE))
    assert chapters > 2, "so they are closed, as the three runs are"
    assert out.count("<details>") == out.count("</details>") == 3 + chapters


def test_a_change_for_the_worse_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", "hardened", "retry", "--json", *SMALL]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["broken"] == ["S12", "S13", "S14"]
    changed = {p["promise"]: p for p in found["promises"] if p["change"] != "as before"}
    assert changed["S12"]["new"]["causes"] == [["renewal-permanent"], ["renewal-retryable"]]
    assert changed["S12"]["new"]["steps"][-1]["does"] == "ack t1 with no completion"
    assert not found["new_refines_old"]
    assert not found["old_refines_new"]
    for behaviour in found["behaviours"]:
        for ending in (*behaviour["lost"]["endings"], *behaviour["gained"]["endings"]):
            last = ending["word"][-1]["does"].removeprefix("cancellation ")
            assert ending["run"][-1]["does"].startswith(last)


def test_nothing_to_tell_of_a_policy_and_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", "retry", "retry", *CALM]) == 0
    out = capsys.readouterr().out
    assert "every promise has the verdict that it had" in out
    assert "no behaviour of a delivery is gained or lost" in out


def test_a_refinement_is_decided_in_both_directions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fewer = policy_file(tmp_path, 'base = "retry"\nafter_cancellation_ack = "leave"')
    assert run(["diff", "retry", fewer, "--json", *CALM]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["new_refines_old"], found["old_refines_new"]) == (False, False)
    assert found["shortest_gained"][-1] == {
        "does": "cancellation ack",
        "answer": "permanent error",
        "counts": "",
    }
    assert run(["diff", "before", "before", "--json", *CALM]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["new_refines_old"], found["old_refines_new"]) == (True, True)
    assert found["shortest_lost"] is found["shortest_gained"] is None


def test_runs_are_told_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", "before", "retry", *CALM]) == 0
    short = capsys.readouterr().out
    assert run(["diff", "before", "retry", "--runs", *CALM]) == 0
    assert capsys.readouterr().out.count("enqueue i1") > short.count("enqueue i1")


# The questions of a newcomer


def test_eight_attempts_with_a_grace_of_five_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(ROOT / "docs" / "policies" / "eight-attempts.toml")
    for command in (["diff", "retry", file, *CALM], ["check", "--policy", file, "--no-proof", *CALM]):
        assert run(command) == 1
        out = capsys.readouterr().out
        assert "S9 and S10 speak of five attempts by definition" in out
        assert "begin at 0, 100, 300, 700, 1,500, 3,100, 6,300, 12,700 ms" in out
        assert "within a shutdown grace of 5,000 ms only 6 of 8 attempts can begin" in out
        assert "it lasts exactly as long as the grace, with nothing to spare" in out
    assert run(["diff", "retry", file, *CALM]) == 1
    _, finding, five = (
        capsys.readouterr().out.split("\n\n")[1].partition("breaks S9 and S10, which retry keeps")
    )
    assert finding
    assert five.splitlines()[1].startswith("- S9 and S10 speak of five attempts by definition")


def test_attempts_without_their_waits_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = policy_file(tmp_path, "ack_attempts = 8")
    assert run(["diff", "retry", file]) == 2
    assert capsys.readouterr().err == (
        f"peeklock: {file}: ack_waits_ms has 4 waits for ack_attempts = 8; allowed: one before each attempt but the "
        "first, so 7\n"
    )


def test_an_abandon_after_an_uncertain_ack(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(ROOT / "docs" / "policies" / "abandon-after-uncertain.toml")
    assert run(["diff", "retry", file, *CALM]) == 1
    out = capsys.readouterr().out
    assert "abandon-after-uncertain breaks S7 and S10, which retry keeps" in out
    assert "ack (attempts 2 to 5) -> permanent error" in out
    assert out.count("enqueue i1") == 1  # one run breaks both


# Stores that deviate


@pytest.mark.parametrize(
    ("store", "broken"),
    [
        ('repeated_ack = "ok"', {"S5"}),
        ("abandon_revives_acked = true", {"S2", "S4", "S5", "C4"}),
        ("permanent_honest = false", {"S13", "C4"}),
        ('repeated_ack = "permanent"\npermanent_honest = true', set[str]()),
    ],
)
def test_a_store_that_deviates_breaks_what_it_must(
    store: str, broken: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = policy_file(tmp_path, f'base = "retry"\n[store]\n{store}')
    assert run(["diff", "retry", file, "--json", *SMALL]) == bool(broken)
    found = json.loads(capsys.readouterr().out)
    assert set(found["broken"]) == broken
    assert [f["field"] for f in found["fields"]] == (["store"] if broken else [])


def test_what_a_deviation_breaks_can_be_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = policy_file(tmp_path, "[store]\nabandon_revives_acked = true")
    assert run(["explain", "S2", "--policy", file, *SMALL]) == 1
    out = capsys.readouterr().out
    assert "S2 is broken at step 16" in out
    assert run(["check", "--policy", file, "--promise", "S2", *SMALL]) == 1
    out = capsys.readouterr().out
    assert "deviates from the contract: an abandon revives an acked item" in out
    assert "∎ proved" in out  # the legend; S2 has no mark
    assert "fails" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('store = "odd"', "store is 'odd'; allowed: a table [store]"),
        (
            "[store]\nlies = true",
            "unknown field 'lies' in [store]; allowed: repeated_ack, abandon_revives_acked",
        ),
        ('[store]\nrepeated_ack = "no"', "repeated_ack in [store] is 'no'; allowed: permanent, ok"),
        ("[store]\npermanent_honest = 1", "permanent_honest in [store] is 1; allowed: true, false"),
    ],
)
def test_a_store_that_cannot_be_is_refused(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diff", "retry", policy_file(tmp_path, text)]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert (captured.out, len(captured.err.splitlines())) == ("", 1)


def test_a_command_about_the_standard_store_takes_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = policy_file(tmp_path, "[store]\npermanent_honest = false")
    assert run(["export", "tla", "--policy", file]) == 2
    assert "has a [store] that deviates from the contract" in capsys.readouterr().err


# Revisions


def test_a_revision_of_the_specification_is_compared(
    empty_repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "spec", "spec", ignore=shutil.ignore_patterns("__pycache__"))
    committed(empty_repository, "as it is")
    changed = Path("spec/law/ack_sequence.py")
    old = "(attempts[w] > 0) & (rule.after_later_permanent == AfterRefusal.UNCERTAIN),"
    text = changed.read_text(encoding="utf-8")
    assert old in text
    changed.write_text(
        text.replace(old, "FALSE,").replace("import Term, either", "import FALSE, Term, either")
    )
    committed(empty_repository, "a refusal is never uncertain")
    status = subprocess.run(["git", "status", "--porcelain"], capture_output=True, check=True).stdout
    assert run(["diff", "HEAD~1:retry", "HEAD:retry", "--json", *SMALL]) == 1
    found = json.loads(capsys.readouterr().out)
    assert "S10" in found["broken"]
    assert found["fields"] == []
    assert found["steps"]["changed"]
    (behaviour,) = found["behaviours"]
    assert (behaviour["does"], behaviour["answers"], behaviour["attempts"]) == (
        "ack",
        ["permanent error"],
        [2, 3, 4, 5],
    )
    assert behaviour["gained"]["endings"][0]["run"][-1]["does"] == "abandon t1"
    assert subprocess.run(["git", "status", "--porcelain"], capture_output=True, check=True).stdout == status
    assert run(["diff", "HEAD~1:hardened", "hardened", *CALM]) == 0
    assert "a delivery can look exactly the same" in capsys.readouterr().out


def commit_of(revision: str) -> str:
    done = subprocess.run(["git", "rev-parse", revision], capture_output=True, check=True, text=True)
    return done.stdout[:9]


def test_of_two_revisions_every_policy_is_compared(
    empty_repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "spec", "spec", ignore=shutil.ignore_patterns("__pycache__"))
    committed(empty_repository, "as it is")
    changed = Path("spec/law/policy.py")
    text = changed.read_text(encoding="utf-8")
    for old, new in (
        ("    poison_ack=PoisonAck.RETRIED,\n", "    poison_ack=PoisonAck.ONCE,\n"),
        ("(BEFORE, RETRY, HARDENED)}", '(RETRY, HARDENED, evolve(RETRY, name="late"))}'),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    changed.write_text(text, encoding="utf-8")
    committed(empty_repository, "hardened sends a poison ack once")
    tiny = ("--workers", "1", "--items", "1", "--only", "ack-permanent,expiry")
    old_title, new_title = f"HEAD~1 ({commit_of('HEAD~1')})", f"HEAD ({commit_of('HEAD')})"
    assert run(["diff", "HEAD~1", "HEAD", "--markdown", *tiny]) == 1
    out = capsys.readouterr().out.replace("\\", "")
    first, second = out.split("### peeklock: ")[1:]
    lines = first.splitlines()
    assert lines[0] == f"{old_title} -> {new_title}, every policy"
    assert lines[2] == f"- before: only {old_title} has it, so there is nothing to compare it with"
    assert lines[3].startswith("- retry: no difference in 1 worker, 1 item")
    assert lines[4] == "- **✗** hardened: HEAD:hardened breaks S14, which HEAD~1:hardened keeps"
    assert lines[5] == f"- late: only {new_title} has it, so there is nothing to compare it with"
    assert second.startswith(
        f"HEAD~1:hardened ({commit_of('HEAD~1')}) -> HEAD:hardened ({commit_of('HEAD')})"
    )
    assert "`poison_ack`" in second


def test_of_two_revisions_each_policy_is_told_in_text_and_json(
    empty_repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "spec", "spec", ignore=shutil.ignore_patterns("__pycache__"))
    committed(empty_repository, "as it is")
    monkeypatch.setattr("peeklock.cli.diff.asked.policies_at", lambda revision: ("before",))
    tiny = ("--workers", "1", "--items", "1", "--only", "ack-retryable")
    assert run(["diff", "HEAD", "HEAD", *tiny]) == 0
    assert "- before: no difference in 1 worker, 1 item" in capsys.readouterr().out
    assert run(["diff", "HEAD", "HEAD", "--json", *tiny]) == 0
    (found,) = json.loads(capsys.readouterr().out)["policies"]
    assert (found["policy"], found["only"], found["differs"]) == ("before", None, False)
    assert found["comparison"]["broken"] == []


def test_a_policy_file_is_compared_with_an_earlier_one_of_any_repository(
    empty_repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("ops").mkdir()
    policy_file(empty_repository / "ops", 'base = "retry"')
    committed(empty_repository, "first")
    file = policy_file(empty_repository / "ops", 'base = "before"')
    assert run(["diff", "HEAD:ops/mine.toml", file, "--markdown", *CALM]) == 1
    assert "mine breaks S10 and S11, which HEAD:ops/mine.toml keeps" in capsys.readouterr().out
    assert run(["diff", "HEAD:ops/none.toml", file]) == 2
    assert capsys.readouterr().err == "peeklock: HEAD: has no file ops/none.toml\n"
    assert run(["diff", "HEAD:retry", file]) == 2
    assert (
        capsys.readouterr().err == "peeklock: HEAD: has no spec/compose.py, so there is nothing to compare\n"
    )


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("raise SystemExit(7)", "it ended with exit code 7"),
    ],
)
def test_a_revision_that_cannot_be_searched_is_refused_in_one_line(
    break_it: str, words: str, empty_repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "spec", "spec", ignore=shutil.ignore_patterns("__pycache__"))
    with Path("spec/law/faults.py").open("a", encoding="utf-8") as file:
        file.write(f"\n{break_it}\n")
    committed(empty_repository, "broken")
    before = set(Path(tempfile.gettempdir()).glob("peeklock-diff-*"))
    assert run(["diff", "HEAD", "retry", *CALM]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("peeklock: HEAD: its spec/ is not one that this model can search: ")
    assert words in captured.err
    assert len(captured.err.splitlines()) == 1
    assert set(Path(tempfile.gettempdir()).glob("peeklock-diff-*")) <= before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["diff", "nope", "retry"], "unknown policy or revision 'nope'; allowed: before, retry, hardened"),
        (["diff", "HEAD:nope", "retry"], "HEAD:nope: no policy 'nope' at a revision; allowed: before"),
        (["diff", "no.toml", "retry"], "no.toml: not a policy file: No such file or directory"),
        (["diff", "--output=x:retry", "retry", "retry"], "unrecognized arguments"),
        (["diff", "retry"], "the following arguments are required: NEW"),
        (["diff", "before", "retry", "--json", "--markdown"], "not allowed with argument"),
        (["diff", "before", "retry", "--items", "0"], "items is 0; allowed in a bounded world"),
        (["diff", "before", "retry", "--only", "gremlins"], "unknown fault class 'gremlins'"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(
    arguments: list[str], words: str, empty_repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert len(captured.err.splitlines()) == 1


def test_outside_a_checkout_a_revision_is_said_not_to_be_looked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for revision in ("HEAD", "HEAD:retry"):
        assert run(["diff", revision, "retry"]) == 2
        says = f"peeklock: unknown policy {revision!r}, and no git checkout here in which it could be a revision ("
        assert capsys.readouterr().err.startswith(says)


def test_a_search_that_was_stopped_says_so_and_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", "before", "retry", "--limit-seconds", "0.0001"]) == 1
    out = capsys.readouterr().out
    assert "unfinished: a search ended at the limit of 0.0001 seconds" in out
    assert "unknown" in out
