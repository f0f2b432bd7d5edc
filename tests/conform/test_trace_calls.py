"""Recorded runs of a store under concurrent calls: read line by line, judged by their orders, and told in lanes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from trace_schema import written

from peeklock.cli.main import run
from peeklock.harness.linear.history import Invoke, Outcome, Return
from peeklock.harness.linear.item_model import StoreAnswer, StoreCall
from peeklock.harness.linear.store_history import MOST_SETTLED, StoreHistory
from peeklock.harness.monitor.world import Violation
from peeklock.harness.trace.file import read
from peeklock.harness.trace.judge import Judgement, judge
from peeklock.harness.trace.line import TraceError
from peeklock.harness.trace.story_of_trace import tale_of_trace
from peeklock.spec.law.policy import RETRY
from peeklock.spec.notation.actions import Answer, Call

TIMED: dict[str, Any] = {"peeklock_trace": 1, "records": ["clock"], "capabilities": {}}
UNTIMED: dict[str, Any] = {"peeklock_trace": 1, "capabilities": {}}


def begins(number: int, call: str, **of: Any) -> dict[str, Any]:
    return {"id": number, "invoke": call, **of}


def ends(number: int, outcome: str = "ok", **of: Any) -> dict[str, Any]:
    return {"id": number, "return": outcome, **of}


ENQUEUED = (begins(1, "enqueue", item="i1"), ends(1))
FETCHED = (*ENQUEUED, begins(2, "fetch", client="A"), ends(2, item="i1", token="t1", attempt=1))
ACK = begins(3, "ack", client="A", token="t1")


def judged(folder: Path, *lines: dict[str, Any]) -> Judgement:
    return judge(*read(written(folder, *lines)), RETRY)


# What is judged


def test_calls_that_overlap_may_have_happened_in_either_order(tmp_path: Path) -> None:
    late = (begins(4, "fetch", client="B"), ends(4, item="i1", token="t2", attempt=2))
    assert judged(tmp_path, UNTIMED, *FETCHED, ACK, *late, ends(3, "fail", answer="permanent error")).conforms
    found = judged(tmp_path, UNTIMED, *FETCHED, ACK, ends(3), *late)
    assert found.violation is not None
    assert found.violation.seen.place.endswith(":9")
    assert "C1" in found.violation.promises


@pytest.mark.parametrize("unknown", [ends(3, "info"), None])
@pytest.mark.parametrize("then", [ends(4), ends(4, "fail", answer="permanent error")])
def test_a_call_of_unknown_outcome_explains_a_later_success_and_a_later_refusal(
    unknown: dict[str, Any] | None, then: dict[str, Any], tmp_path: Path
) -> None:
    lines = [
        UNTIMED,
        *FETCHED,
        ACK,
        *([] if unknown is None else [unknown]),
        begins(4, "ack", token="t1"),
        then,
    ]
    found = judged(tmp_path, *lines)
    assert found.conforms
    assert found.observations == len(lines) - 1


def at(ms: int, *lines: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines at this time; what lasts, lasts 100 ms, and enqueuing nothing."""
    lasting = {"enqueue": 0, "fetch": 100, "renew": 100, "abandon": 100}
    lengths = [lasting.get(line.get("invoke", "")) for line in lines]
    return [
        {**line, "t_ms": ms, **({} if lasts_ms is None else {"lasts_ms": lasts_ms})}
        for line, lasts_ms in zip(lines, lengths, strict=True)
    ]


def test_a_call_that_failed_did_not_happen(tmp_path: Path) -> None:
    again = at(1, begins(4, "ack", token="t1"), ends(4, "fail", answer="permanent error"))
    for end, conforms in ((ends(3, "info"), True), (ends(3, "fail"), False)):
        assert judged(tmp_path, TIMED, *at(0, *FETCHED, ACK, end), *again).conforms is conforms


def test_a_retryable_error_ends_the_call_and_takes_effect_by_then_or_never(tmp_path: Path) -> None:
    accepted = (begins(4, "renew", token="t1"), ends(4))
    gone = (begins(5, "renew", token="t1"), ends(5, "fail", answer="permanent error"))
    for end, conforms in ((ends(3, "info"), True), (ends(3, "info", answer="retryable error"), False)):
        assert judged(tmp_path, TIMED, *at(0, *FETCHED, ACK, end, *accepted, *gone)).conforms is conforms


def test_a_fetch_that_was_lost_leaves_no_client_with_its_token(tmp_path: Path) -> None:
    lost = (begins(2, "fetch"), ends(2, "info", answer="retryable error"))
    found = (begins(3, "fetch"), ends(3, item="i1", token="t2", attempt=2))
    refused = (begins(4, "ack", token="t2"), ends(4, "fail", answer="permanent error"))
    lines = [*at(0, *ENQUEUED, *lost), *at(100, *found)]
    assert judged(tmp_path, TIMED, *lines, *at(200, *refused)).conforms
    assert not judged(tmp_path, TIMED, *lines, *at(199, *refused)).conforms


def test_times_may_be_off_by_as_much_as_the_header_says(tmp_path: Path) -> None:
    early = [*at(0, *FETCHED), *at(99, begins(4, "fetch"), ends(4, item="i1", token="t2", attempt=2))]
    assert not judged(tmp_path, TIMED, *early).conforms
    assert judged(tmp_path, {**TIMED, "slack_ms": 1}, *early).conforms


def test_what_is_declared_is_judged_as_declared(tmp_path: Path) -> None:
    late = [*at(0, *FETCHED), *at(100, ACK, ends(3))]
    assert not judged(tmp_path, TIMED, *late).conforms
    assert judged(tmp_path, {**TIMED, "capabilities": {"ack_after_expiry": "accepted"}}, *late).conforms


def test_what_is_left_out_leaves_more_open(tmp_path: Path) -> None:
    again = (begins(3, "fetch"), ends(3, item="i1", token="t2"))
    assert judged(tmp_path, UNTIMED, *FETCHED, *again).conforms, "the lock may have run out"
    assert judged(
        tmp_path, UNTIMED, *FETCHED[:-1], ends(2, item="i1"), begins(3, "ack", item="i1"), ends(3)
    ).conforms
    for removed, conforms in ((["i1"], True), ([], False), (None, True)):
        end = ends(3) if removed is None else ends(3, items=removed)
        assert (
            judged(tmp_path, UNTIMED, *FETCHED, begins(3, "cancel", items=["i1"]), end).conforms is conforms
        )


def test_a_token_that_was_never_issued_is_refused_unless_one_was_not_seen(tmp_path: Path) -> None:
    stranger = (begins(9, "ack", token="?"), ends(9))
    found = judged(tmp_path, UNTIMED, *FETCHED, *stranger)
    assert found.violation is not None
    assert found.violation.promises == ("S5", "C4")
    assert judged(tmp_path, UNTIMED, *FETCHED, begins(3, "fetch"), ends(3, "info"), *stranger).conforms


def test_a_token_of_another_item_is_not_given_out_again(tmp_path: Path) -> None:
    other = (begins(3, "enqueue", item="i2"), ends(3), begins(4, "fetch"), ends(4, item="i2", token="t1"))
    found = judged(tmp_path, UNTIMED, *FETCHED, *other)
    assert found.violation is not None
    assert found.violation.promises == ("S4",)


def test_a_file_that_names_no_capabilities_is_judged_as_a_standard_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, {"peeklock_trace": 1, "records": ["handlers"]}, *FETCHED, ACK, ends(3))
    assert run(["trace", str(path)]) == 0
    assert "item by item, under the standard contract; not what workers do\n" in capsys.readouterr().out
    assert run(["trace", str(path), "--policy", "retry"]) == 2
    assert "which follows no policy; allowed: leave --policy out" in capsys.readouterr().err


# Long runs


def lives(count: int, open_: bool = False) -> list[Invoke | Return]:
    """So many items, one after the other, each acked; the first of the calls never ends, if that is asked for."""
    events: list[Invoke | Return] = [Invoke("open", StoreCall(Call.FETCH, 0), False)] if open_ else []
    for n in range(count):
        item, token = f"i{n}", f"t{n}"
        for key, made, told in (
            ("e", StoreCall(Call.ENQUEUE, 0, (item,)), StoreAnswer(Answer.OK)),
            ("f", StoreCall(Call.FETCH, 0), StoreAnswer(Answer.OK, items=(item,), token=token)),
            ("a", StoreCall(Call.ACK, 0, token=token), StoreAnswer(Answer.OK)),
        ):
            events += [Invoke((key, n), made), Return((key, n), Outcome.OK, told)]
    return events


@pytest.mark.parametrize("open_", [False, True])
def test_what_is_settled_is_forgotten_and_judged_as_it_was_until_then(open_: bool) -> None:
    history = StoreHistory(clock=False)
    for event in lives(MOST_SETTLED + 200, open_):
        history.add(event)
    assert history.remembered() == MOST_SETTLED
    assert history.alive() == ()
    for item, seen in ((250, True), (100, False)):
        again = StoreHistory(clock=False)
        for event in lives(MOST_SETTLED + 200, open_):
            again.add(event)
        again.add(Invoke("again", StoreCall(Call.ACK, 0, token=f"t{item}")))
        if seen or not open_:
            with pytest.raises(Violation, match=r"not allowed at any moment|settled long ago"):
                again.add(Return("again", Outcome.OK, StoreAnswer(Answer.OK)))
        else:  # a fetch that nobody saw the end of may have returned this token
            again.add(Return("again", Outcome.OK, StoreAnswer(Answer.OK)))


# Told


def test_a_violation_is_told_with_the_calls_of_its_item(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = at(0, begins(3, "enqueue", client="orders", item="i2"), ends(3))
    late = [
        *at(50, begins(4, "ack", client="A", token="t1")),
        *at(100, begins(5, "fetch", client="B"), ends(5, item="i1", token="t2", attempt=2)),
        *at(101, ends(4)),
    ]
    path = written(tmp_path, TIMED, *at(0, *FETCHED), *other, *late)
    found = judge(*read(path), RETRY)
    assert found.violation is not None
    tale = tale_of_trace(path, found, RETRY)
    assert [(s.who, s.does, s.answered) for s in tale.steps if s.number] == [
        ("orchestrator", "enqueue i1", ""),
        ("worker A", "fetch with a lock of 100 ms", "i1 under t1, attempt count 1"),
        ("worker A", "ack i1 under t1 …", ""),
        ("worker B", "fetch with a lock of 100 ms", "i1 under t2, attempt count 2"),
        ("worker A", "ack i1 under t1", "ok (begun at step 3)"),
    ]
    assert [pid for pid, _ in tale.promises] == list(found.violation.promises)
    assert tale.steps[-1].mark == "not allowed at any moment of the call"
    assert tale.before == (("i1 is locked under t2 until 200 ms, attempt count 2",),)
    assert run(["trace", str(path)]) == 1
    out = capsys.readouterr().out
    assert "run.jsonl:11" in out
    assert "ack → permanent error" in out
    assert "i2" not in out


def test_an_item_that_came_before_its_turn_is_told_with_the_one_whose_turn_it_was(tmp_path: Path) -> None:
    younger = (
        begins(2, "enqueue", item="i2"),
        ends(2),
        begins(3, "fetch"),
        ends(3, item="i2", token="t1", attempt=1),
    )
    path = written(tmp_path, TIMED, *at(0, *ENQUEUED, *younger))
    found = judge(*read(path), RETRY)
    tale = tale_of_trace(path, found, RETRY)
    assert [s.does for s in tale.steps] == ["enqueue i1", "enqueue i2", "fetch with a lock of 100 ms"]
    assert tale.before == (("i1 is visible and unlocked", "i2 is visible and unlocked"),)
    assert tale.allowed[0] == "fetch → i1, attempt count 1"
    assert judged(
        tmp_path, {**TIMED, "capabilities": {"order": "none"}}, *at(0, *ENQUEUED, *younger)
    ).conforms


def test_of_a_long_run_the_latest_calls_are_told(tmp_path: Path) -> None:
    renewals = [line for n in range(3, 60) for line in (begins(n, "renew", token="t1"), ends(n))]
    path = written(
        tmp_path, TIMED, *at(0, *FETCHED, *renewals, begins(60, "fetch"), ends(60, answer="nothing"))
    )
    assert judge(*read(path), RETRY).conforms
    path = written(
        tmp_path, TIMED, *at(0, *FETCHED, *renewals, begins(60, "fetch")), *at(100, ends(60, item="i1"))
    )
    found = judge(*read(path), RETRY)
    assert found.violation is None, "the lock may have been over by the end of the call"
    late = at(99, ends(60, item="i1"))
    path = written(tmp_path, TIMED, *at(0, *FETCHED, *renewals, begins(60, "fetch")), *late)
    found = judge(*read(path), RETRY)
    steps = tale_of_trace(path, found, RETRY).steps
    assert steps[0].does == "(80 steps are left out)"
    assert steps[-1].does == "fetch with a lock of 100 ms"


# What cannot be read


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            [begins(1, "enqueue", item="i1"), begins(1, "fetch")],
            ":3:2: id 1 is open already; allowed: ids that grow",
        ),
        (
            [*ENQUEUED, begins(1, "fetch")],
            ":4:2: id 1 is not above 1, which was used before; allowed: ids that",
        ),
        ([*ENQUEUED, ends(1)], ":4:2: the call 1 ended before; allowed: one return for each invoke"),
        (
            [*ENQUEUED, begins(2, "enqueue", item="i1")],
            "item 'i1' was enqueued before (line 3); allowed: a name of its own for each enqueue",
        ),
        (
            [ENQUEUED[0], begins(2, "enqueue", item="i1"), ENQUEUED[1], ends(2)],
            ":5:11: item 'i1' was enqueued before (line 4); allowed: a name of its own",
        ),
        ([*ENQUEUED, ends(7)], ":4:2: the call 7 never began; allowed: one return for each invoke, after it"),
        ([*FETCHED[:3], ends(2, client="B")], ":5:27: client is 'B'; allowed: 'A', who began the call 2"),
        (
            [*ENQUEUED, begins(2, "fetch"), ends(2)],
            "a fetch that returned an item needs it; allowed: item, or answer",
        ),
        (
            [*ENQUEUED, begins(2, "fetch"), ends(2, "maybe")],
            ":5:11: return is 'maybe'; allowed: ok, fail, info",
        ),
        (
            [*ENQUEUED, begins(2, "fetch"), ends(2, "fail", answer="ok")],
            "answer is 'ok'; allowed with fail: retryable",
        ),
        (
            [*ENQUEUED, begins(2, "fetch"), ends(2, "fail", answer="permanent error")],
            "allowed: for a call that can be",
        ),
        ([*FETCHED, ACK, ends(3, answer="nothing")], "answer is 'nothing'; allowed: for a fetch"),
        (
            [*FETCHED, ACK, ends(3, item="i1")],
            "item is of a fetch that returned one; allowed here: leave it out",
        ),
        ([*FETCHED, ACK, ends(3, items=["i1"])], "items is of a cancel"),
        ([begins(1, "steal", item="i1")], ":2:11: invoke is 'steal'; allowed: enqueue, fetch"),
        ([begins(1, "enqueue")], ":2:11: enqueue needs one item"),
        ([begins(1, "cancel")], ":2:11: cancel needs an item or items"),
        ([begins(1, "ack")], ":2:11: ack needs a token or an item, to say whose it is"),
        ([{"invoke": "fetch"}], ":2:1: no id; allowed: a whole number"),
        ([{"id": "one", "invoke": "fetch"}], ":2:2: id is 'one'; allowed: a whole number"),
        ([begins(1, "fetch", colour=1)], ":2:30: unknown field 'colour'; allowed: id, client, invoke"),
        (
            [*ENQUEUED, {"call": "fetch"}],
            ":4:1: allowed in a file of calls that begin and end: invoke, return",
        ),
        ([*ENQUEUED, begins(2, "renew", token="t", lasts_ms=-1)], "lasts_ms is -1; allowed: 0 or more"),
    ],
)
def test_a_line_that_is_wrong_is_said_with_its_place_and_the_remedy(
    lines: list[dict[str, Any]], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in [UNTIMED, *lines]), encoding="utf-8")
    assert run(["trace", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert words in said.err


def test_times_that_run_backwards_or_are_missing_are_said(tmp_path: Path) -> None:
    for lines, words in (
        (
            [*at(5, *ENQUEUED), *at(4, begins(2, "fetch"))],
            ":4:30: t_ms is 4, before the 5 of an earlier line; allowed",
        ),
        (
            [*at(5, *ENQUEUED), begins(2, "fetch", lasts_ms=1)],
            ":4:1: with a clock recorded, every line needs t_ms",
        ),
        ([{**ENQUEUED[0], "t_ms": 0}], ":2:11: with a clock recorded, this call needs lasts_ms"),
    ):
        with pytest.raises(TraceError) as caught:
            judged(tmp_path, TIMED, *lines)
        assert words in str(caught.value)


def test_half_a_last_line_is_said_to_be_cut_off(tmp_path: Path) -> None:
    path = written(tmp_path, UNTIMED, *FETCHED)
    path.write_text(path.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    with pytest.raises(
        TraceError, match=r":5:\d+: not JSON: .*; it is the last line and was cut off: remove it"
    ):
        judge(*read(path), RETRY)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"capabilities": {"order": "any"}}, ":1:23: order is 'any'; allowed: fifo, none"),
        ({"capabilities": []}, ":1:23: the capabilities are no table"),
        (
            {"capabilities": {}, "max_attempts": 3},
            ":1:43: max_attempts is of workers; allowed of a store alone",
        ),
        (
            {"capabilities": {}, "records": ["counts"]},
            ":1:43: records names 'counts'; allowed of a store alone: clock",
        ),
        ({"records": ["clock"], "slack_ms": -1}, ":1:45: slack_ms is -1; allowed: 0 or more"),
        ({"records": "clock"}, ":1:23: records is 'clock'; allowed: a list"),
    ],
)
def test_a_header_that_is_wrong_is_said(header: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps({"peeklock_trace": 1, **header}) + "\n", encoding="utf-8")
    with pytest.raises(TraceError) as caught:
        read(path)
    assert words in str(caught.value)
