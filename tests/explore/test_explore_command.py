"""``peeklock explore`` as it is typed: in a terminal or a pipe, with runs to follow, for machines, and as a page."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from peeklock.cli.main import run
from peeklock.harness.monitor.explanation import explain
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.trace.file import read
from peeklock.harness.trace.judge import judge
from peeklock.model.explore.walks import code_of, fingerprint
from peeklock.spec.compose import ACTIONS
from peeklock.spec.law.policy import RETRY
from peeklock.spec.variants.variant import Variant

RUNS = Path(__file__).parent.parent / "data" / "duroxide"
SMALL = ["--items", "1"]
AT_FETCHED = "/".join(
    [
        fingerprint(ACTIONS),
        *(f"{code_of(name)}.{w}.1" for name, w in (("enqueued", 0), ("item becomes visible", 0))),
        f"{code_of('fetch: fetched, takes it in hand')}.1.1",
    ]
)
"""Worker A has fetched i1."""


class Talk:
    """What is printed when these lines are typed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, lines: list[str], *arguments: str) -> str:
        self._monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        assert run(["explore", *SMALL, *arguments]) == 0
        return self._capsys.readouterr().out

    def data(self, *arguments: str) -> Any:
        """What is printed for machines, of one walk."""
        printed = json.loads(self([], "--json", *arguments))
        (walk,) = printed.pop("walks")
        return {**printed, **walk}


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Talk:
    return Talk(monkeypatch, capsys)


def last(text: str) -> list[str]:
    """What was printed after the last line that was typed."""
    return text.rpartition("\n> ")[2].splitlines()


def test_a_walk_is_taken_from_a_pipe_told_in_lanes_and_taken_back(talk: Talk) -> None:
    text = talk(["7", "8", "1", "h"])
    assert "  3  fetch" in text
    assert "t1 of i1: locked" in text
    back = talk(["7", "8", "1", "b"])
    assert "step 2 of 3. What can happen next:" in back
    assert "▸  1  fetch → i1 under t1, attempt count 1" in back
    assert "step 0 of 3." in talk(["7", "8", "1", "r"])


def test_what_is_believed_stands_beside_what_is_true_with_a_mark_where_they_part(talk: Talk) -> None:
    as_believed, otherwise = (talk(lines, "--at", AT_FETCHED) for lines in ([], ["8"]))
    assert re.search(r"worker A has an item .* =  t1 is locked: ", as_believed)
    assert re.search(r"worker A has an item .* ≠  t1 is cancelled: ", otherwise)


def test_the_shortest_run_that_breaks_a_promise_is_followed_with_empty_lines(talk: Talk) -> None:
    text = talk([""] * 6 + ["p", ""], "--promise", "S12")
    assert "✗ breaks S12" in text
    assert "! S12  no lost work" in text
    assert '✗ this step breaks S12: "an item that is neither' in text
    assert "✗ S12 was broken at step 7" in text
    assert "\x1b" not in text


def test_every_line_that_cannot_be_done_says_what_is_allowed_and_the_walk_stays(talk: Talk) -> None:
    text = talk(
        ["99", "0", "b", "f", "x", "g nowhere", "l", "l no-such-file", "m 1", "w", "m", "7", "?", "q", "7"]
    )
    for said in (
        "there is no step 99 here; allowed: 1 to 7",
        "there is no step 0 here; allowed: 1 to 7",
        "this is the start",
        "nothing follows yet: choose a step by its number",
        "unknown: 'x'; allowed: a number, b, f",
        "'nowhere' is no position",
        "l needs a FILE",
        "no-such-file: cannot be read: No such file or directory",
        "w needs a FILE",
        "no runs were loaded",
    ):
        assert said in text
    assert last(text) == ["q"]
    assert text.count("What can happen next") == 2


def test_what_is_printed_for_machines_leads_to_the_same_place_again(talk: Talk, tmp_path: Path) -> None:
    file = tmp_path / "walk.json"
    file.write_text(talk([], "--json", "--promise", "S12"), encoding="utf-8")
    walk = talk.data("--promise", "S12")
    assert walk["broken"] == [{"promise": "S12", "step": 7}]
    assert len(walk["steps"]) == 7
    assert [b["promise"] for b in walk["steps"][-1]["breaks"]] == ["S12"]
    assert walk["next"]
    assert talk.data("--load", str(file)) == walk
    assert talk.data("--at", f"file:///page.html#{walk['position']}") == walk
    text = talk([], "--load", str(file), "--text")
    assert text.endswith(f"\nposition: {walk['position']}\n")
    assert last(talk([f"l {file}", "e", "s"]))[1:] == text.splitlines()


def test_what_explain_prints_for_machines_can_be_followed(
    talk: Talk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", "S12", "--json", *SMALL]) == 0
    file = tmp_path / "s12.json"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    assert talk.data("--load", str(file)) == talk.data("--promise", "S12")


def test_a_walk_is_followed_under_another_policy_as_far_as_it_goes(talk: Talk) -> None:
    position = talk.data("--promise", "S12")["position"]
    text = talk([], "--policy", "hardened", "--at", position)
    assert (
        "Only 4 of the 7 steps of this link could be taken: step 5 cannot be taken in this world under policy hardened."
        in text
    )


def test_several_runs_can_be_chosen_from(talk: Talk) -> None:
    text = talk(["m", "m 9", "m 2", "e"], "--promise", "S12,S13")
    assert "there is no run '9'; allowed: 1 to 2" in text
    assert "  1  S12 broken\n  2  S13 broken" in text
    assert "S13 was broken at step" in text


def test_several_runs_are_all_printed_and_all_loaded_again(talk: Talk, tmp_path: Path) -> None:
    text = talk([], "--promise", "S12,S13", "--text")
    assert re.findall(r"(S\d+) was broken at step", text) == ["S12", "S13"]
    assert text.count("\nposition: ") == 2
    printed = talk([], "--promise", "S12,S13", "--json")
    assert [w["broken"][-1]["promise"] for w in json.loads(printed)["walks"]] == ["S12", "S13"]
    file = tmp_path / "walks.json"
    file.write_text(printed, encoding="utf-8")
    assert talk([], "--load", str(file), "--text") == text
    assert "  1  walks.json, walk 1\n  2  walks.json, walk 2" in talk([f"l {file}", "m"])


def test_without_runs_it_is_said_how_one_is_loaded(talk: Talk) -> None:
    assert last(talk(["m 9"])) == ["m 9", "no runs were loaded; l FILE loads one"]


def test_the_nearest_way_to_break_a_promise_is_looked_for_from_where_the_walk_stands(talk: Talk) -> None:
    text = talk(["n S12", "e", "b", "n S12", "n S12,S13", "n", "r", "n S1"], "--workers", "1")
    assert "S12 can be broken in 7 steps from here." in text
    assert "S12 can be broken in 1 step from here." in text
    assert "✗ this step breaks S12" in text
    assert "n takes one promise" in text
    assert "no promise given" in text
    assert last(text)[-1].startswith("nothing breaks S1 within ")


@pytest.mark.parametrize("path", sorted(RUNS.glob("*.jsonl")), ids=lambda p: p.stem)
def test_a_recorded_run_is_followed_by_one_of_its_explanations(path: Path, talk: Talk) -> None:
    header, entries = read(path)
    explained = judge(header, entries, RETRY).conforms
    walk = talk.data("--load", str(path), "--policy", "retry" if explained else "before")
    _, entries = read(path)
    recorded = [e.call.value for e in entries if isinstance(e, Observation) and e.call is not None]
    taken = [s["action"].partition(":")[0] for s in walk["steps"]]
    calls = {"enqueued": "enqueue", "cancelled": "cancel"}
    assert [c for a in taken if (c := calls.get(a, a)) in set(recorded)] == recorded


def test_a_recorded_run_that_breaks_a_promise_breaks_it_here(talk: Talk) -> None:
    walk = talk.data("--load", str(RUNS / "lost-work.jsonl"))
    assert walk["broken"] == [{"promise": "S12", "step": len(walk["steps"])}]
    assert "max_attempts 10" in walk["world"]


def test_what_there_is_to_say_of_a_recorded_run_is_said_wherever_it_is_printed(
    talk: Talk, tmp_path: Path
) -> None:
    load = ["--load", str(RUNS / "abandonlock.jsonl")]
    walk = talk.data(*load)
    assert walk["note"].startswith("One explanation of 5 observations; at the end ")
    assert "; under policy retry nothing explains the next observation: worker of t1: abandon" in walk["note"]
    text = talk([], *load, "--text")
    assert text.splitlines()[1] == walk["note"]
    file = tmp_path / "walk.json"
    file.write_text(talk([], *load, "--json"), encoding="utf-8")
    same = ["--load", str(file), "--deliveries", "12", "--max-attempts", "10"]
    assert talk([], *same, "--text") == text


def test_what_there_is_to_say_of_a_run_stands_at_its_start_and_its_end_until_it_is_left(talk: Talk) -> None:
    note = talk.data("--load", str(RUNS / "abandonlock.jsonl"))["note"]
    places = talk(["", "e", "1", "b", "b", "1", "s"], "--load", str(RUNS / "abandonlock.jsonl")).split("\n>")
    assert [note in place for place in places] == [True, False, True, False, True, False, False, False]


def test_a_recorded_run_that_is_not_allowed_is_followed_up_to_where_it_goes_wrong(
    talk: Talk, tmp_path: Path
) -> None:
    file = tmp_path / "run.jsonl"
    text = (RUNS / "normal.jsonl").read_text(encoding="utf-8")
    file.write_text(text + text.splitlines()[-1] + "\n", encoding="utf-8")
    assert "nothing explains the next observation" in talk([], "--load", str(file))
    header, entries = read(file)
    observations = [e for e in entries if isinstance(e, Observation)]
    found = explain(observations, Variant(RETRY), header.scope)
    assert found.violation is not None
    assert found.observations == len(observations) - 1


def test_the_page_is_written_from_the_command_and_from_the_talk(talk: Talk, tmp_path: Path) -> None:
    first, second = tmp_path / "a.html", tmp_path / "b.html"
    assert talk([], "--promise", "S12", "--html", str(first)) == f"wrote {first}\n"
    talk(["", "", f"w {second}"], "--promise", "S12")
    for path in (first, second):
        assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert '"title":"this walk"' in second.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--promise", "S99"], "unknown promise 'S99'; allowed: S1, S2"),
        (
            ["--promise", "S1"],
            "--promise S1: it is broken nowhere under retry in this world; allowed: a promise that",
        ),
        (["--load", "no-such-file"], "no-such-file: cannot be read: No such file or directory"),
        (
            ["--load", "pyproject.toml"],
            "pyproject.toml: no position of a walk in it; allowed: a recorded run, or",
        ),
        (["--at", "somewhere"], "--at: 'somewhere' is no position; allowed: what explore shows as one"),
        (
            ["--html", "no-such-folder/page.html"],
            "cannot write no-such-folder/page.html: No such file or directory",
        ),
        (["--html", "a", "--json"], "not allowed with argument"),
        (["--load", "a", "--promise", "S1"], "not allowed with argument"),
        (["--items", "0"], "items is 0; allowed in a bounded world: 1 to 250"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explore", *SMALL, *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("peeklock: ")
    assert words in err
    assert err.count("\n") == 1


def test_a_record_of_a_store_alone_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "store.jsonl"
    file.write_text('{"peeklock_trace": 1, "records": ["clock"], "capabilities": {}}\n', encoding="utf-8")
    assert run(["explore", "--load", str(file)]) == 2
    assert "records a store alone" in capsys.readouterr().err
