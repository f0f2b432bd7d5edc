"""The monitor: it keeps what is possible, and says why nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest

from peeklock.harness.monitor.monitor import Monitor
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.monitor.world import CALLS_AND_HANDLERS, Scope, Violation
from peeklock.harness.trace.file import read
from peeklock.harness.trace.judge import judge
from peeklock.harness.trace.line import TraceError
from peeklock.spec.law.policy import BEFORE, HARDENED, RETRY
from peeklock.spec.law.state import Result
from peeklock.spec.notation.actions import Answer, Call, Event, Metric
from peeklock.spec.variants.variant import Variant

HEADER = '{"peeklock_trace": 1, "records": ["handlers", "answers"]}'


def monitor(scope: Scope = CALLS_AND_HANDLERS) -> Monitor:
    return Monitor(Variant(RETRY), scope)


def fetched(token: str = "t1", attempt: int = 1, worker: str = "A") -> Observation:
    return Observation(Call.FETCH, worker=worker, item="i1", token=token, attempt=attempt, answer=Answer.OK)


def called(call: Call, answer: Answer, token: str = "t1", worker: str = "A") -> Observation:
    return Observation(call, worker=worker, token=token, answer=answer)


def happened(event: Event, worker: str = "A") -> Observation:
    return Observation(event=event, worker=worker)


ENQUEUED = Observation(Call.ENQUEUE, item="i1", answer=Answer.OK)
RUN = (ENQUEUED, fetched(), happened(Event.HANDLER_STARTS), happened(Event.HANDLER_SUCCEEDS))


def watch(watching: Monitor, *seen: Observation) -> Monitor:
    for one in seen:
        watching.observe(one)
    return watching


def test_a_lost_response_leaves_both_possibilities_open() -> None:
    watching = watch(monitor(), *RUN, called(Call.ACK, Answer.RETRYABLE))
    completions = {w.state[1][0][4] for w in watching.worlds}
    assert completions == {0, 1}


def test_a_later_answer_closes_one() -> None:
    watching = watch(monitor(), *RUN, called(Call.ACK, Answer.RETRYABLE), called(Call.ACK, Answer.OK))
    assert {w.state[1][0][4] for w in watching.worlds} == {1}


def test_what_was_seen_can_tell_whether_a_lost_fetch_took_effect() -> None:
    lost = Observation(Call.FETCH, worker="B", answer=Answer.RETRYABLE)
    watching = watch(monitor(), ENQUEUED, lost, fetched(attempt=2))
    assert {w.state[1][0][2] for w in watching.worlds} == {2}


def test_an_abandon_after_one_retryable_ack_is_a_violation_with_its_reason() -> None:
    with pytest.raises(Violation, match="not allowed here") as caught:
        watch(monitor(), *RUN, called(Call.ACK, Answer.RETRYABLE), called(Call.ABANDON, Answer.OK))
    assert "ack -> ok" in caught.value.allowed
    assert not any("abandon" in a for a in caught.value.allowed)


def test_a_second_ok_for_one_token_is_a_violation_of_the_answer_not_of_the_call() -> None:
    seen = (*RUN, called(Call.ACK, Answer.RETRYABLE), called(Call.ACK, Answer.OK))
    with pytest.raises(Violation, match="not allowed here"):
        watch(monitor(), *seen, called(Call.ACK, Answer.OK))
    with pytest.raises(Violation, match="but not with this answer"):
        watch(monitor(), ENQUEUED, fetched(attempt=3))


def test_a_fetch_that_finds_nothing_while_an_item_is_visible_is_a_violation() -> None:
    watching = watch(monitor(Scope(clock=True)), Observation(Call.ENQUEUE, item="i1", at_ms=0, lasts_ms=0))
    with pytest.raises(Violation):
        watching.observe(Observation(Call.FETCH, worker="A", answer=Answer.NOTHING, at_ms=5))


def test_a_clock_says_when_a_lock_is_over() -> None:
    """At the lock's last moment it has expired: another may fetch, and the holder may not ack."""

    def at(ms: int) -> Monitor:
        watching = monitor(Scope(clock=True))
        watching.observe(Observation(Call.ENQUEUE, item="i1", at_ms=0, lasts_ms=0))
        watching.observe(
            Observation(
                Call.FETCH,
                worker="A",
                item="i1",
                token="t1",
                attempt=1,
                answer=Answer.OK,
                at_ms=0,
                lasts_ms=100,
            )
        )
        watching.pass_time(ms)
        return watching

    again = Observation(
        Call.FETCH, worker="B", item="i1", token="t2", attempt=2, answer=Answer.OK, at_ms=99, lasts_ms=100
    )
    with pytest.raises(Violation):
        at(99).observe(again)
    at(100).observe(
        Observation(
            Call.FETCH,
            worker="B",
            item="i1",
            token="t2",
            attempt=2,
            answer=Answer.OK,
            at_ms=100,
            lasts_ms=100,
        )
    )


def test_a_verdict_must_be_counted_and_only_the_right_one() -> None:
    scope = Scope(counts=True)
    right = Observation(counts=Metric.SUCCESS, worker="A")
    watch(monitor(scope), *RUN, called(Call.ACK, Answer.OK), right)
    with pytest.raises(Violation):
        watch(
            monitor(scope),
            *RUN,
            called(Call.ACK, Answer.OK),
            Observation(counts=Metric.UNCERTAIN, worker="A"),
        )
    with pytest.raises(Violation):
        watch(monitor(scope), *RUN, called(Call.ACK, Answer.OK), fetched("t2", 1))


def test_a_count_that_was_seen_is_judged_although_not_all_are_recorded() -> None:
    right, wrong = (Observation(counts=m, worker="A") for m in (Metric.SUCCESS, Metric.UNCERTAIN))
    watch(monitor(), *RUN, called(Call.ACK, Answer.OK), right)
    watch(monitor(), *RUN, called(Call.ACK, Answer.OK))
    with pytest.raises(Violation):
        watch(monitor(), *RUN, called(Call.ACK, Answer.OK), wrong)


def test_names_from_outside_do_not_steer_a_terminal() -> None:
    seen = Observation(event=Event.CRASH, worker="A\x1b[31m\n", token="x" * 5_000_000)
    assert str(seen).isprintable()
    assert len(str(seen)) < 200


def test_a_completion_must_be_the_one_that_the_handler_gave() -> None:
    wrong = Observation(
        Call.ACK, worker="A", token="t1", answer=Answer.OK, completions=(Result.APPLICATION_ERROR,)
    )
    with pytest.raises(Violation):
        watch(monitor(), *RUN, wrong)


def test_a_token_is_never_given_twice() -> None:
    with pytest.raises(Violation):
        watch(monitor(), ENQUEUED, fetched("t1"), fetched("t1", 2, "B"))


def _judged(path: Path) -> None:
    header, seen = read(path)
    judge(header, seen, RETRY)


def run_file(folder: Path, *lines: str) -> Path:
    path = folder / "run.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


FETCH = '{"call": "fetch", "item": "i1", "token": "t1", "attempt": 1, "effect": true}'
ENQUEUE = '{"call": "enqueue", "item": "i1", "effect": true}'


def test_committed_effects_alone_are_enough_to_judge_a_run(tmp_path: Path) -> None:
    lines = (HEADER, ENQUEUE, FETCH, '{"call": "cancellation ack", "token": "t1", "effect": true}')
    for policy, conforms in ((RETRY, False), (HARDENED, False)):
        header, seen = read(run_file(tmp_path, *lines))
        assert judge(header, seen, policy).conforms is conforms
    header, seen = read(run_file(tmp_path, HEADER.replace('"answers"', '"answers"'), *lines[1:]))
    assert not judge(header, seen, BEFORE).conforms  # no handler began, so nothing could be cancelled


def test_lost_work_is_seen_in_the_effects(tmp_path: Path) -> None:
    lines = (
        HEADER,
        ENQUEUE,
        FETCH,
        '{"event": "the handler starts", "token": "t1"}',
        '{"call": "renew", "token": "t1", "answer": "retryable error", "effect": false}',
        '{"call": "cancellation ack", "token": "t1", "effect": true}',
    )
    header, seen = read(run_file(tmp_path, *lines))
    assert judge(header, seen, RETRY).broken == ("S12",)
    header, seen = read(run_file(tmp_path, *lines))
    assert not judge(header, seen, HARDENED).conforms


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((), "the file is empty"),
        (("{}",), "run.jsonl:1:1: peeklock_trace is missing; allowed: 1"),
        (('{"peeklock_trace": 2}',), "run.jsonl:1:2: peeklock_trace is 2; allowed: 1"),
        (('{"peeklock_trace": true}',), "run.jsonl:1:2: peeklock_trace is true; allowed: 1"),
        (("null",), "run.jsonl:1:1: the line is null; allowed: an object"),
        (('{"peeklock_trace": 1, "records": ["all"]}',), "records names 'all'; allowed: clock, counts"),
        ((HEADER, '{"call": "fetch", "it'), "run.jsonl:2:19: not JSON"),
        ((HEADER, "[]"), "run.jsonl:2:1: the line is []; allowed: an object"),
        (
            (HEADER, '{"call": "steal", "item": "i1"}'),
            "run.jsonl:2:2: call is 'steal'; allowed: enqueue, fetch",
        ),
        ((HEADER, '{"item": "i1"}'), "exactly one of call, event, counts"),
        ((HEADER, '{"call": "ack"}'), "with a token, a worker or an item"),
        ((HEADER, '{"call": "cancel", "call": "fetch"}'), "run.jsonl:2:2: call stands twice"),
        ((HEADER, "[" * 100_000), "nested too deeply"),
        ((HEADER, '{"t_ms": ' + "9" * 5000 + "}"), "a number too long"),
        (
            (HEADER, '{"call": "ack", "token": "t", "answer": "nothing"}'),
            "answer is 'nothing'; allowed: for a fetch",
        ),
        (
            (HEADER, '{"call": "ack", "token": "t", "answer": "ok", "effect": false}'),
            "contradicts the answer",
        ),
        ((HEADER, '{"counts": "success", "item": "i1"}'), "needs the worker that counted it, or the token"),
        ((HEADER, '{"call": "cancel"}'), "cancel needs an item"),
        (
            (HEADER, '{"call": "fetch", "attempt": "1"}'),
            "run.jsonl:2:19: attempt is '1'; allowed: a whole number",
        ),
        (
            (HEADER, '{"call": "fetch", "item": "i1", "attempt": 5, "answer": "nothing"}'),
            "run.jsonl:2:47: answer says that nothing was taken, and item what was; allowed: one of the two",
        ),
        (
            (HEADER, '{"call": "fetch", "item": "i1", "token": "t1", "effect": false}'),
            "run.jsonl:2:48: effect says that nothing was taken, and item what was; allowed: one of the two",
        ),
        (
            (HEADER, ENQUEUE, '{"call": "fetch", "token": "t1"}'),
            "run.jsonl:3:2: a fetch that may have taken an item needs it",
        ),
        (
            (HEADER, '{"event": "the handler starts", "token": "t1", "attempt": 5}'),
            "run.jsonl:2:48: attempt is of a fetch; allowed here: leave it out",
        ),
        ((HEADER, '{"call": "fetch", "colour": 1}'), "unknown field 'colour'; allowed: call, event"),
        (
            ('{"peeklock_trace": 1, "records": ["clock"]}', ENQUEUE),
            "run.jsonl:2:1: with a clock recorded, every line needs t_ms",
        ),
        (
            ('{"peeklock_trace": 1, "records": ["clock"]}', ENQUEUE.replace("{", '{"t_ms": 5, ')),
            "run.jsonl:2:13: with a clock recorded, this call needs lasts_ms",
        ),
        (
            (HEADER, ENQUEUE.replace("{", '{"t_ms": 5, '), FETCH.replace("{", '{"t_ms": 4, ')),
            "run.jsonl:3:2: t_ms is 4, before the 5 of an earlier line",
        ),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_why(
    lines: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(TraceError) as caught:
        _judged(path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("line", [0, 1], ids=["in the header", "in a line after it"])
def test_a_byte_that_is_not_utf_8_is_told_with_its_place(line: int, tmp_path: Path) -> None:
    lines = [HEADER, ENQUEUE]
    lines[line] = lines[line].replace("}", ', "worker": "é\xff"}')
    path = tmp_path / "run.jsonl"
    path.write_bytes("\n".join(lines).encode().replace("\xff".encode(), b"\xff"))
    with pytest.raises(TraceError) as caught:
        _judged(path)
    column = lines[line].index("\xff") + 1
    assert str(caught.value) == f"{path}:{line + 1}:{column}: a byte that is not UTF-8, 0xff; allowed: UTF-8"


def test_only_a_last_line_is_told_that_it_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for text, was_cut in (("{", False), (f"{HEADER}\n{{", True), (f"{HEADER}\n{{\n", False)):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(TraceError, match="not JSON") as caught:
            _judged(path)
        assert ("was cut off" in str(caught.value)) is was_cut
