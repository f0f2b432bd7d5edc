"""Workers and their store, recorded in part: what a line says of a fetch is judged, and what it leaves open is open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from peeklock.harness.trace import line as traceline
from peeklock.harness.trace.file import read
from peeklock.harness.trace.judge import Judgement, judge
from peeklock.harness.trace.line import TraceError
from peeklock.spec.law.policy import BEFORE, HARDENED, RETRY, Policy
from peeklock.spec.notation.actions import Call, Metric

HEADER = '{"peeklock_trace": 1}'
ENQUEUE = '{"call": "enqueue", "item": "i1"}'


def judged(folder: Path, *lines: str, policy: Policy = RETRY) -> Judgement:
    path = folder / "run.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return judge(*read(path), policy)


@pytest.mark.parametrize("records", [[], ["answers"], ["answers", "handlers"]], ids=str)
@pytest.mark.parametrize("told", ["", '"token": "t1"', '"worker": "A"', '"token": "t1", "answer": "ok"'])
@pytest.mark.parametrize("attempt", [-1, 0, 1, 5])
def test_an_attempt_count_that_a_fetch_returned_is_judged_though_its_answer_was_not_seen(
    attempt: int, told: str, records: list[str], tmp_path: Path
) -> None:
    """It is the fetch that is wrong, and not what the worker does with what it got."""
    header = json.dumps({"peeklock_trace": 1, "records": records})
    fetch = f'{{"call": "fetch", "item": "i1", "attempt": {attempt}{", " if told else ""}{told}}}'
    start = '{"event": "the handler starts", "item": "i1"}'
    judgement = judged(tmp_path, header, ENQUEUE, fetch, start)
    if attempt == 1:
        assert judgement.conforms
    else:
        assert judgement.violation is not None
        assert judgement.violation.promises == ("C2",)
        assert judgement.violation.seen.call is Call.FETCH


@pytest.mark.parametrize("counts", [m.value for m in Metric])
@pytest.mark.parametrize("policy", [BEFORE, RETRY, HARDENED], ids=lambda p: p.name)
@pytest.mark.parametrize(
    "before",
    [
        (ENQUEUE, '{"call": "fetch", "item": "i1", "token": "t1", "attempt": 1, "worker": "A"}'),
        (ENQUEUE, '{"event": "a shutdown begins", "worker": "A"}'),
        (
            '{"event": "a shutdown begins", "worker": "A"}',
            '{"call": "fetch", "worker": "A", "answer": "retryable error"}',
        ),
    ],
    ids=["with an item", "in a shutdown", "after a fetch that failed"],
)
def test_a_verdict_that_nothing_gave_rise_to_is_a_violation(
    before: tuple[str, ...], policy: Policy, counts: str, tmp_path: Path
) -> None:
    said = json.dumps({"counts": counts, "worker": "A"})
    judgement = judged(tmp_path, HEADER, *before, said, policy=policy)
    assert judgement.violation is not None
    assert judgement.violation.seen.counts is Metric(counts)


@pytest.mark.parametrize("header", [HEADER, '{"peeklock_trace": 1, "capabilities": {}}'])
def test_an_item_that_was_enqueued_before_is_refused_and_is_no_fault_of_the_stores(
    header: str, tmp_path: Path
) -> None:
    other = ENQUEUE.replace("i1", "i2")
    assert judged(tmp_path, header, ENQUEUE, other).conforms
    says = (
        r"jsonl:4:21: item 'i1' was enqueued before \(line 2\); allowed: a name of its own for each enqueue"
    )
    with pytest.raises(TraceError, match=says):
        judged(tmp_path, header, ENQUEUE, other, ENQUEUE)


def test_how_many_enqueues_back_are_known_does_not_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traceline, "MOST_ENQUEUED", 1)
    other = ENQUEUE.replace("i1", "i2")
    judgement = judged(tmp_path, HEADER, ENQUEUE, other, ENQUEUE)
    assert judgement.violation is not None  # the first of them is forgotten: it is judged
    with pytest.raises(TraceError):
        judged(tmp_path, HEADER, ENQUEUE, other, other)
