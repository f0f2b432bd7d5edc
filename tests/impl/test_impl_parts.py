"""The smaller parts: clocks, errors, metrics, fault injection."""

import copy
import pickle
import time

import pytest
from impl_scenes import ITEM, PAID

from peeklock.impl import (
    FaultyStore,
    MemoryStore,
    Metrics,
    PermanentError,
    RealClock,
    Recorded,
    RetryableError,
    Store,
    StoreError,
    VirtualClock,
    WorkItem,
)
from peeklock.impl.stores.faults import DISHONEST, PERMANENT, RESPONSE_LOST, RETRYABLE, Fault

# clocks, errors, metrics


def test_a_virtual_clock_moves_only_when_told_to() -> None:
    clock = VirtualClock(5)
    clock.wait_ms(10)
    clock.wait_ms(-1)
    clock.wait_ms(0)
    clock.advance(1)
    clock.advance(0)

    assert clock.now_ms() == 16
    with pytest.raises(ValueError, match="time does not go back"):
        clock.advance(-1)


def test_the_real_clock_waits_at_least_as_long_as_it_is_asked_to() -> None:
    clock = RealClock()
    for n in (-1, 0, 1, 2):
        began = time.monotonic()
        clock.wait_ms(n)
        assert time.monotonic() - began >= n / 1000

    assert abs(clock.now_ms() - time.time() * 1000) < 1_000


@pytest.mark.parametrize("kind", [RetryableError, PermanentError])
def test_an_error_says_which_call_failed_and_whether_to_repeat_it(kind: type[RetryableError]) -> None:
    error = kind("ack", "busy")

    assert isinstance(error, StoreError)
    assert error.retryable is (kind is RetryableError)
    assert str(error) == f"ack: busy ({'retryable' if error.retryable else 'permanent'})"
    for same in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (type(same), str(same)) == (kind, str(error))
    assert str(pickle.loads(pickle.dumps(StoreError("ack", "busy", True)))) == "ack: busy (retryable)"


def test_metrics_have_the_names_that_are_known_and_no_others() -> None:
    metrics = Metrics()
    metrics.count("duroxide_activity_ack_uncertain_total")
    metrics.count("duroxide_activity_ack_uncertain_total")

    assert metrics["duroxide_activity_ack_uncertain_total"] == 2
    assert metrics["duroxide_activity_success_total"] == 0
    assert metrics.as_dict() == {"duroxide_activity_ack_uncertain_total": 2}
    with pytest.raises(ValueError, match="no such metric: typo"):
        metrics.count("typo")


# fault injection


@pytest.mark.parametrize(
    ("fault", "error", "took_effect"),
    [
        (RETRYABLE, RetryableError, False),
        (RESPONSE_LOST, RetryableError, True),
        (PERMANENT, PermanentError, False),
        (DISHONEST, PermanentError, True),
    ],
)
def test_a_scripted_fault_hits_the_nth_call_before_or_after_its_effect(
    store: Store, fault: Fault, error: type[StoreError], took_effect: bool
) -> None:
    faulty = FaultyStore(store, {"enqueue": [None, fault]})
    faulty.enqueue(ITEM)
    second = WorkItem("i2", "order-2", "charge")

    with pytest.raises(error, match="enqueue: injected"):
        faulty.enqueue(second, 7)

    assert len(faulty.rows()) == 1 + took_effect
    assert faulty.recorded == [
        Recorded("enqueue", (ITEM, 0), "ok", True),
        Recorded("enqueue", (second, 7), "retryable" if fault.retryable else "permanent", took_effect),
    ]


def test_without_faults_every_call_is_passed_on_and_recorded(store: Store) -> None:
    faulty = FaultyStore(store)
    faulty.enqueue(ITEM)
    delivery = faulty.fetch(1_000)
    assert delivery is not None
    faulty.renew("t-1", 2_000)
    faulty.abandon("t-1", 0, True)
    faulty.fetch(1_000)
    faulty.ack("t-2", PAID)
    assert faulty.cancel(iter(["i1"])) == ()

    assert faulty.recorded == [
        Recorded("enqueue", (ITEM, 0), "ok", True),
        Recorded("fetch", (1_000,), "ok", True),
        Recorded("renew", ("t-1", 2_000), "ok", True),
        Recorded("abandon", ("t-1", 0, True), "ok", True),
        Recorded("fetch", (1_000,), "ok", True),
        Recorded("ack", ("t-2", PAID), "ok", True),
        Recorded("cancel", (("i1",),), "ok", True),
    ]
    assert faulty.completions() == (PAID,)


def test_a_real_refusal_is_passed_on_and_recorded(store: Store) -> None:
    faulty = FaultyStore(store)

    with pytest.raises(PermanentError, match="not current"):
        faulty.ack("t-1", PAID)

    assert faulty.recorded == [Recorded("ack", ("t-1", PAID), "permanent", False)]


def test_a_lost_response_may_have_been_a_refusal(store: Store) -> None:
    faulty = FaultyStore(store, {"ack": [RESPONSE_LOST]})

    with pytest.raises(RetryableError):
        faulty.ack("t-1", PAID)

    assert faulty.recorded == [Recorded("ack", ("t-1", PAID), "retryable", False)]


def answers_by_chance(chance: float, seed: int) -> list[str]:
    faulty = FaultyStore(MemoryStore(VirtualClock()), {"fetch": [PERMANENT]}, chance=chance, seed=seed)
    return answers_of(faulty)


def answers_of(faulty: FaultyStore) -> list[str]:
    for _ in range(200):
        try:
            faulty.fetch(1)
        except StoreError:
            continue
    return [call.answer for call in faulty.recorded]


def test_faults_by_chance_depend_on_the_seed_alone_and_the_script_goes_first() -> None:
    assert answers_by_chance(0.5, 1) == answers_by_chance(0.5, 1)
    assert answers_by_chance(0.5, 1) != answers_by_chance(0.5, 2)
    unseeded = FaultyStore(MemoryStore(VirtualClock()), {"fetch": [PERMANENT]}, chance=0.5)
    assert answers_of(unseeded) == answers_by_chance(0.5, 0)
    assert answers_by_chance(0, 1) == ["permanent", *["ok"] * 199]
    assert answers_by_chance(1, 1) == ["permanent", *["retryable"] * 199]
    assert 60 < answers_by_chance(0.5, 1).count("ok") < 140
