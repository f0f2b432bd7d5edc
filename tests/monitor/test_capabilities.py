"""What a store declares changes what the contract expects of it, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import fields

from peeklock.harness.monitor.monitor import Monitor
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.monitor.world import Scope, Violation
from peeklock.spec.compose import ACTIONS
from peeklock.spec.law.policy import RETRY
from peeklock.spec.law.state import Result
from peeklock.spec.notation.actions import Answer, Call
from peeklock.spec.variants.capabilities import (
    STANDARD,
    Capabilities,
    CapabilitiesError,
    CompletionWrite,
    Expired,
    Order,
    Renewal,
    UnknownToken,
    protocol_with,
    store_alone,
)
from peeklock.spec.variants.free_client import STORE_ALONE
from peeklock.spec.variants.variant import Variant


def seen(call: Call, at_ms: int, answer: Answer = Answer.OK, **more: Any) -> Observation:
    return Observation(call, answer=answer, at_ms=at_ms, **{"lasts_ms": 100, **more})


def of(token: str, call: Call, at_ms: int, answer: Answer = Answer.OK, **more: Any) -> Observation:
    completions = (Result.SUCCESS,) if call is Call.ACK else ()
    return seen(call, at_ms, answer, worker=token, token=token, completions=completions, **more)


FETCHED = (
    seen(Call.ENQUEUE, 0, item="i1", lasts_ms=0),
    seen(Call.FETCH, 0, worker="t1", item="i1", token="t1", attempt=1),
)
REFETCHED = (*FETCHED, seen(Call.FETCH, 100, worker="t2", item="i1", token="t2", attempt=2))
TWO = (
    seen(Call.ENQUEUE, 0, item="i1", lasts_ms=0),
    seen(Call.ENQUEUE, 0, item="i2", lasts_ms=0),
    seen(Call.FETCH, 0, worker="t2", item="i2", token="t2", attempt=1),
)
PERMANENT, RETRYABLE = Answer.PERMANENT, Answer.RETRYABLE


def conforms(capabilities: Capabilities, *run: Observation, faults: frozenset[str] = frozenset()) -> bool:
    variant = Variant(RETRY, faults | {"cancel", "expiry"}, fifo=capabilities.order is Order.FIFO)
    monitor = Monitor(variant, Scope(clock=True), store_alone(capabilities))
    try:
        for one in run:
            monitor.observe(one)
    except Violation:
        return False
    return True


DIFFERENCES = {
    "an ack after the lock's end, unclaimed": (
        Capabilities(ack_after_expiry=Expired.ACCEPTED),
        (*FETCHED, of("t1", Call.ACK, 100)),
        (*FETCHED, of("t1", Call.ACK, 100, PERMANENT)),
    ),
    "an abandon after the lock's end": (
        Capabilities(abandon_after_expiry=Expired.REFUSED),
        (*FETCHED, of("t1", Call.ABANDON, 100, PERMANENT)),
        (*FETCHED, of("t1", Call.ABANDON, 100)),
    ),
    "an abandon of a token that is not current": (
        Capabilities(abandon_unknown_token=UnknownToken.SILENT),
        (*REFETCHED, of("t1", Call.ABANDON, 101), of("t2", Call.ACK, 102)),
        (*REFETCHED, of("t1", Call.ABANDON, 101, PERMANENT)),
    ),
    "a renewal that extends": (
        Capabilities(renewal=Renewal.EXTENDS),
        (*FETCHED, of("t1", Call.RENEW, 10), of("t1", Call.ACK, 199)),
        (*FETCHED, of("t1", Call.RENEW, 10), of("t1", Call.ACK, 150, PERMANENT)),
    ),
    "errors without classes": (
        Capabilities(error_classes=False),
        (*REFETCHED, of("t1", Call.ACK, 101, RETRYABLE)),
        None,
    ),
    "any order": (Capabilities(order=Order.NONE), TWO, None),
}


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_a_declared_difference_is_expected_and_the_standard_refused(difference: str) -> None:
    capabilities, other, standard = DIFFERENCES[difference]
    assert conforms(capabilities, *other)
    assert not conforms(STANDARD, *other)
    if standard is not None:
        assert conforms(STANDARD, *standard)
        assert not conforms(capabilities, *standard)


@pytest.mark.parametrize(
    ("capabilities", "call"),
    [
        (Capabilities(renew=False), Call.RENEW),
        (Capabilities(abandon=False), Call.ABANDON),
        (Capabilities(abandon_ignoring_attempt=False), Call.ABANDON_IGNORING_ATTEMPT),
    ],
)
def test_a_call_that_a_store_does_not_have_is_no_part_of_its_contract(
    capabilities: Capabilities, call: Call
) -> None:
    run = (*FETCHED, of("t1", call, 10))
    assert conforms(STANDARD, *run)
    assert not conforms(capabilities, *run)
    assert call not in capabilities.calls


def test_a_store_without_cancel_cancels_nothing() -> None:
    run = (*FETCHED, seen(Call.CANCEL, 1, item="i1"))
    assert conforms(STANDARD, *run)
    assert not conforms(Capabilities(cancel=False), *run)


def completions_after_a_lost_answer(capabilities: Capabilities) -> frozenset[int]:
    faults = frozenset({"cancel", "expiry", "ack-retryable", "response-lost"})
    monitor = Monitor(Variant(RETRY, faults, fifo=True), Scope(clock=True), store_alone(capabilities))
    for one in (*FETCHED, of("t1", Call.ACK, 1, RETRYABLE), of("t1", Call.ACK, 2)):
        monitor.observe(one)
    return monitor.completions_of("i1")


def test_a_completion_that_is_written_apart_may_be_there_twice() -> None:
    assert completions_after_a_lost_answer(STANDARD) == {1}
    assert completions_after_a_lost_answer(Capabilities(completion=CompletionWrite.SEPARATE)) == {1, 2}
    assert completions_after_a_lost_answer(Capabilities(completion=CompletionWrite.NONE)) == {0}


def test_a_store_that_declares_nothing_has_the_standard_contract() -> None:
    def texts(actions: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return [(a.name, *map(str, (*a.guards, *a.effects, a.label, a.timer)), a.prolongs) for a in actions]

    assert texts(store_alone(STANDARD)) == texts(STORE_ALONE)
    assert texts(protocol_with(STANDARD)) == texts(ACTIONS)


def test_every_field_says_what_type_it_has() -> None:
    for name in (f.name for f in fields(Capabilities)):
        assert isinstance(getattr(STANDARD, name), Capabilities.named(name))
    with pytest.raises(KeyError):
        Capabilities.named("colour")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"order": "none"}, "order is 'none'; allowed: Order.FIFO, Order.NONE"),
        ({"renew": "no"}, "renew is 'no'; allowed: True, False"),
        ({"ack_after_expiry": True}, "ack_after_expiry is True; allowed: Expired.ACCEPTED, Expired.REFUSED"),
    ],
)
def test_a_value_of_another_type_is_refused_and_not_taken_for_a_default(
    said: dict[str, Any], words: str
) -> None:
    with pytest.raises(CapabilitiesError) as caught:
        Capabilities(**said)
    assert str(caught.value) == words


def test_an_answer_within_an_interval_keeps_both_worlds_while_the_lock_may_have_ended() -> None:
    def late(at_ms: int, until_ms: int, answer: Answer) -> bool:
        return conforms(STANDARD, *FETCHED, of("t1", Call.ACK, at_ms, answer, until_ms=until_ms))

    assert late(90, 110, Answer.OK)
    assert late(90, 110, PERMANENT)
    assert not late(90, 99, PERMANENT)
    assert not late(100, 110, Answer.OK)
