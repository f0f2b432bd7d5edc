"""A long run is judged item by item, in memory that does not grow with its length."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from peeklock.cli.main import run
from peeklock.harness.monitor.monitor import Monitor
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.monitor.strands import MOST_SETTLED, Strands
from peeklock.harness.monitor.world import Scope, Violation
from peeklock.spec.law.policy import RETRY
from peeklock.spec.notation.actions import Answer, Call, Event
from peeklock.spec.variants.variant import Variant

STOPS_TOO = Scope(stops=True)
"""Crashes and shutdowns are seen, so that one monitor of all items has few states to keep."""


def life(item: str, worker: str, retries: int = 1) -> Iterator[Observation]:
    token = f"t-{item}"
    yield Observation(Call.ENQUEUE, item=item, answer=Answer.OK)
    yield Observation(Call.FETCH, worker=worker, item=item, token=token, attempt=1, answer=Answer.OK)
    yield Observation(event=Event.HANDLER_STARTS, worker=worker, token=token)
    yield Observation(event=Event.HANDLER_SUCCEEDS, worker=worker, token=token)
    for _ in range(retries):
        yield Observation(Call.ACK, worker=worker, token=token, answer=Answer.RETRYABLE)
    yield Observation(Call.ACK, worker=worker, token=token, answer=Answer.OK)


def interleaved(seed: int) -> list[Observation]:
    """Three workers, each with an item of its own."""
    chance = random.Random(seed)
    lives = {
        worker: [seen for n in range(1) for seen in life(f"{worker}{n}", worker, retries=chance.randrange(3))]
        for worker in "ABC"
    }
    run = []
    while any(lives.values()):
        run.append(lives[chance.choice([w for w in lives if lives[w]])].pop(0))
    return run


def first_violation(judge: Monitor | Strands, run: list[Observation]) -> int | None:
    for number, seen in enumerate(run):
        try:
            judge.observe(seen)
        except Violation:
            return number
    return None


@pytest.mark.parametrize("seed", range(12))
def test_strands_judge_as_one_monitor_of_all_items_does(seed: int) -> None:
    run = interleaved(seed)
    assert first_violation(Strands(Variant(RETRY), STOPS_TOO), run) is None
    chance = random.Random(seed)
    found = 0
    for _ in range(5):
        changed = list(run)
        at = chance.randrange(len(changed))
        if chance.random() < 0.5:
            del changed[at]
        else:
            changed.insert(at, changed[chance.randrange(len(changed))])
        expected = first_violation(Monitor(Variant(RETRY), STOPS_TOO), changed)
        assert first_violation(Strands(Variant(RETRY), STOPS_TOO), changed) == expected
        found += expected is not None
    assert found


def test_a_worker_that_has_an_item_in_hand_may_not_fetch_another() -> None:
    run = [*list(life("i1", "A"))[:4], *list(life("i2", "A"))[:2]]
    assert first_violation(Strands(Variant(RETRY), STOPS_TOO), run) == len(run) - 1


def test_nothing_is_a_violation_while_any_item_is_visible() -> None:
    watching = Strands(Variant(RETRY), Scope(clock=True))
    watching.observe(Observation(Call.ENQUEUE, item="i1", at_ms=0, lasts_ms=10))
    watching.observe(Observation(Call.ENQUEUE, item="i2", at_ms=0, lasts_ms=20))
    watching.observe(Observation(Call.FETCH, worker="A", answer=Answer.NOTHING, at_ms=9))
    with pytest.raises(Violation) as caught:
        watching.observe(Observation(Call.FETCH, worker="A", answer=Answer.NOTHING, at_ms=15))
    assert "C1" in caught.value.promises


def test_settled_items_are_forgotten_in_the_end() -> None:
    watching = Strands(Variant(RETRY))
    for n in range(MOST_SETTLED + 500):
        for seen in life(f"i{n}", "A"):
            watching.observe(seen)
    assert len(watching._alive) == 0
    assert len(watching._settled) == MOST_SETTLED
    assert len(watching._of_token) == MOST_SETTLED


def test_a_settled_item_does_not_come_back() -> None:
    watching = Strands(Variant(RETRY))
    for seen in life("i1", "A"):
        watching.observe(seen)
    with pytest.raises(Violation):
        watching.observe(
            Observation(Call.FETCH, worker="B", item="i1", token="t9", attempt=2, answer=Answer.OK)
        )


def test_a_violation_names_the_promise_that_it_breaks() -> None:
    watching = Strands(Variant(RETRY))
    for seen in list(life("i1", "A"))[:5]:
        watching.observe(seen)
    with pytest.raises(Violation) as caught:
        watching.observe(Observation(Call.ABANDON, worker="A", token="t-i1", answer=Answer.OK))
    assert "S10" in caught.value.promises


def test_a_violation_late_in_a_long_run_is_told_with_what_came_before_it_and_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines: list[dict[str, object]] = [{"peeklock_trace": 1, "records": ["handlers", "answers", "stops"]}]
    for n in range(600):
        of = {"worker": "A", "token": f"t{n}"}
        lines += [
            {"call": "enqueue", "item": f"i{n}", "answer": "ok"},
            {"call": "fetch", **of, "item": f"i{n}", "attempt": 1, "answer": "ok"},
            {"event": "the handler starts", **of},
            {"event": "the handler ends with a result", **of},
            {"call": "ack", **of, "answer": "ok"},
        ]
    lines[-1] = {**lines[-1], "call": "abandon"}
    path = tmp_path / "long.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run(["trace", str(path)]) == 1
    told = capsys.readouterr().out
    assert "at observation 3000" in told
    assert "abandons i599 under t599" in told
    assert "steps are left out" in told
    assert len(told.splitlines()) < 300
