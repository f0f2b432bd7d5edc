"""Histories of calls to a store, made by hand: what some moment explains is right, and nothing else is."""

from __future__ import annotations

import pytest

from peeklock.harness.linear.history import Invoke, Outcome, Return
from peeklock.harness.linear.item_model import StoreAnswer, StoreCall
from peeklock.harness.linear.store_history import judge_history
from peeklock.harness.run.steps import NEVER_ISSUED
from peeklock.spec.notation.actions import ABANDONS, Answer, Call
from peeklock.spec.variants.capabilities import Capabilities, Order, UnknownToken


def call(
    key: int, call: Call, at_ms: int = 0, token: str | None = None, item: str = "", lasts_ms: int = 10
) -> Invoke:
    return Invoke(key, StoreCall(call, at_ms, (item,) if item else (), token, lasts_ms, f"c{key}"))


def end(
    key: int,
    answer: Answer = Answer.OK,
    until_ms: int = 0,
    token: str = "",
    attempt: int = 1,
    item: str = "x",
) -> Return:
    if not token:
        return Return(key, Outcome.OK, StoreAnswer(answer, until_ms))
    return Return(key, Outcome.OK, StoreAnswer(answer, until_ms, (item,), token, attempt))


ENQUEUED = [call(0, Call.ENQUEUE, item="x", lasts_ms=0), end(0)]


def test_two_tokens_for_one_item_are_refused_with_the_promise_that_they_break() -> None:
    fetches = [call(1, Call.FETCH), call(2, Call.FETCH), end(1, token="a"), end(2, token="b", attempt=2)]
    found = judge_history([*ENQUEUED, *fetches])
    assert found is not None
    assert "S6" in found.promises or "C1" in found.promises
    assert "locked, unexpired (a)" in found.told[0][0]
    assert judge_history([*ENQUEUED, *fetches[:3], end(2, Answer.NOTHING)]) is None


def test_a_fetch_that_finds_nothing_beside_a_free_item_is_refused() -> None:
    found = judge_history([*ENQUEUED, call(1, Call.FETCH), end(1, Answer.NOTHING)])
    assert found is not None
    assert found.seen.item == "x"


def test_a_lock_may_have_expired_or_not_while_the_clock_leaves_it_open() -> None:
    held = [*ENQUEUED, call(1, Call.FETCH, 0), end(1, until_ms=4, token="a")]
    for answer in (Answer.OK, Answer.PERMANENT):
        assert judge_history([*held, call(2, Call.ACK, 11, "a"), end(2, answer, 12)]) is None
    assert judge_history([*held, call(2, Call.ACK, 8, "a"), end(2, Answer.PERMANENT, 9)]) is not None
    assert judge_history([*held, call(2, Call.ACK, 14, "a"), end(2, Answer.OK, 15)]) is not None


def test_an_ack_that_never_answered_explains_a_later_refusal_and_a_later_success() -> None:
    held = [*ENQUEUED, call(1, Call.FETCH), end(1, token="a"), call(2, Call.ACK, 0, "a")]
    for answer in (Answer.OK, Answer.PERMANENT):
        assert judge_history([*held, call(3, Call.ACK, 1, "a"), end(3, answer, 1)]) is None
    twice = [call(3, Call.ACK, 1, "a"), end(3, Answer.OK, 1), call(4, Call.ACK, 2, "a"), end(4, Answer.OK, 2)]
    assert judge_history([*held, *twice]) is not None


def test_a_fetch_whose_response_was_lost_may_have_taken_the_item() -> None:
    lost = [*ENQUEUED, call(1, Call.FETCH), end(1, Answer.RETRYABLE)]
    for answer in (end(2, Answer.NOTHING), end(2, token="a"), end(2, token="a", attempt=2)):
        found = judge_history([*lost, call(2, Call.FETCH), answer])
        assert (found is None) is (answer.result.attempt != 2)


def test_after_a_lost_fetch_a_token_may_be_the_one_that_nobody_saw_but_not_one_that_was_made_up() -> None:
    lost = [*ENQUEUED, call(1, Call.FETCH), end(1, Answer.RETRYABLE)]
    assert judge_history([*lost, call(2, Call.ACK, token="a"), end(2)]) is None
    made_up = [call(2, Call.ACK, token=NEVER_ISSUED), end(2)]
    found = judge_history([*lost, *made_up])
    assert found is not None
    assert found.promises == ("S5", "C4")
    assert judge_history([*lost, made_up[0], end(2, Answer.PERMANENT)]) is None


# The order of items

FIRST = [call(0, Call.ENQUEUE, item="x", lasts_ms=0), end(0)]
SECOND = [call(1, Call.ENQUEUE, item="y", lasts_ms=0), end(1)]
FETCHES_SECOND = [call(2, Call.FETCH), end(2, token="a", item="y")]


def test_a_fetch_may_not_return_the_younger_of_two_items_that_it_could_have_returned() -> None:
    found = judge_history([*FIRST, *SECOND, *FETCHES_SECOND])
    assert found is not None
    assert found.promises == ("C1",)
    assert found.seen.item == "y"
    assert "x, which is older, could be handed out" in found.reason
    assert judge_history([*FIRST, *SECOND, *FETCHES_SECOND], Capabilities(order=Order.NONE)) is None


def test_the_order_of_items_is_left_open_where_their_enqueues_overlap() -> None:
    overlapping = [FIRST[0], SECOND[0], FIRST[1], SECOND[1]]
    assert judge_history([*overlapping, *FETCHES_SECOND]) is None


def test_a_younger_item_may_come_first_beside_a_fetch_or_a_cancel_that_may_have_taken_the_older() -> None:
    beside = [call(3, Call.FETCH), FETCHES_SECOND[0], FETCHES_SECOND[1], end(3, token="b", item="x")]
    assert judge_history([*FIRST, *SECOND, *beside]) is None
    assert judge_history([*FIRST, *SECOND, *beside[:3]]) is None
    cancelled = [call(3, Call.CANCEL, item="x"), FETCHES_SECOND[0], FETCHES_SECOND[1]]
    assert judge_history([*FIRST, *SECOND, *cancelled]) is None
    refetched = [*beside, call(4, Call.FETCH, 20), end(4, until_ms=20, token="c", attempt=2, item="y")]
    assert judge_history([*FIRST, *SECOND, *refetched]) is not None


def test_a_younger_item_may_come_first_while_the_delay_of_the_older_may_last() -> None:
    delayed = [call(0, Call.ENQUEUE, item="x", lasts_ms=10), end(0, until_ms=3), *SECOND]
    for at_ms, is_right in ((9, True), (12, True), (13, False)):
        fetch = [call(2, Call.FETCH, at_ms), end(2, until_ms=at_ms, token="a", item="y")]
        assert (judge_history([*delayed, *fetch]) is None) is is_right


# Tokens of nobody


@pytest.mark.parametrize("presents", [Call.RENEW, Call.ACK, Call.CANCELLATION_ACK, *ABANDONS])
def test_a_token_that_nobody_was_given_is_refused(presents: Call) -> None:
    for answer in (Answer.PERMANENT, Answer.RETRYABLE):
        assert judge_history([*ENQUEUED, call(1, presents, token="z"), end(1, answer)]) is None
    accepted = [*ENQUEUED, call(1, presents, token="z"), end(1)]
    found = judge_history(accepted)
    assert found is not None
    assert found.promises == ("S5", "C4")
    silent = Capabilities(abandon_unknown_token=UnknownToken.SILENT)
    assert (judge_history(accepted, silent) is None) is (presents in ABANDONS)
