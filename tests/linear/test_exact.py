"""Concurrent calls are judged exactly: as brute force does, and in bounded time."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from differential import compared

from peeklock.cli.main import run
from peeklock.harness.linear.exact import ExactHistory
from peeklock.harness.linear.history import Invoke, Outcome, Return
from peeklock.harness.linear.item_model import StoreAnswer, StoreCall
from peeklock.harness.linear.worlds import Undecided
from peeklock.spec.notation.actions import Answer, Call

CALLS = Path(__file__).parent.parent / "data" / "calls"
EXPLAINED = ("lost-fetch-of-a-later-item", "lost-fetch-counted", "wait-then-short-lock-over")
UNEXPLAINED = {
    "wait-then-short-lock": "C1",
    "lost-enqueue-with-delay": "C1",
    "lost-fetch-hides-nothing": "S6",
    "lost-renewal-hides-nothing": "S6",
    "two-locks": "S6",
    "lock-begins-when-it-can": "S6",
    "refused-within-its-lock": "C4",
    "lock-begins-late": "S6",
}


def test_the_judge_and_brute_force_do_not_differ() -> None:
    counts, differ = compared(range(200))
    assert differ == []
    assert counts["undecided"] == 0
    assert min(counts["explained"], counts["unexplained"]) > 10


@pytest.mark.parametrize("name", EXPLAINED)
def test_what_some_moment_explains_is_right(name: str) -> None:
    assert run(["trace", str(CALLS / f"{name}.jsonl")]) == 0


@pytest.mark.parametrize(("name", "promise"), UNEXPLAINED.items())
def test_what_no_moment_explains_is_wrong(
    name: str, promise: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trace", str(CALLS / f"{name}.jsonl")]) == 1
    assert f"  {promise} " in capsys.readouterr().out


def _unanswered(call: Call, clock: bool) -> bool:
    """Thirty calls without an answer on ten items that are locked, and then a fetch that finds what it may."""
    history = ExactHistory(clock=clock)
    key = 0

    def made(what: Call, token: str | None = None, item: str = "", answer: StoreAnswer | None = None) -> None:
        nonlocal key
        key += 1
        items = (item,) if item else ()
        history.add(Invoke(key, StoreCall(what, key, items, token, 0 if what is Call.ENQUEUE else 100, "c")))
        if answer is None:
            history.add(Return(key, Outcome.INFO))
        else:
            history.add(Return(key, Outcome.OK, answer))

    for n in range(10):
        made(Call.ENQUEUE, item=f"i{n}", answer=StoreAnswer(Answer.OK, key + 1))
        made(Call.FETCH, answer=StoreAnswer(Answer.OK, key + 1, (f"i{n}",), f"t{n}", 1))
    for n in range(30):
        needs_item = call in (Call.ENQUEUE, Call.CANCEL)
        item = (f"j{n}" if call is Call.ENQUEUE else f"i{n % 10}") if needs_item else ""
        made(call, None if needs_item or call is Call.FETCH else f"t{n % 10}", item)
    made(Call.FETCH, answer=StoreAnswer(Answer.NOTHING, key + 1))
    history.end()
    return True


@pytest.mark.parametrize("call", [Call.FETCH, Call.RENEW, Call.ACK, Call.ABANDON, Call.CANCEL])
def test_thirty_calls_without_an_answer_end_in_seconds(call: Call) -> None:
    began = time.process_time()
    with contextlib.suppress(Undecided):
        assert _unanswered(call, clock=True)
    assert time.process_time() - began < 30


def test_what_is_not_decided_is_said_in_one_line_and_ends_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("peeklock.harness.trace.judge.ExactHistory", _Undecided)
    assert run(["trace", str(CALLS / "lost-fetch-of-a-later-item.jsonl")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert "undecided" in said.err


def test_where_the_budget_ends_the_verdict_says_how_far_it_is_exact(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("peeklock.harness.trace.judge.ExactHistory", _Undecided)
    assert run(["trace", str(CALLS / "wait-then-short-lock-over.jsonl")]) == 0
    assert "lines were judged exactly; the budget ended there" in capsys.readouterr().out


class _Undecided(ExactHistory):
    """Gives up when nothing is to be said but that."""

    def end(self) -> None:
        raise Undecided("run.jsonl:7")
