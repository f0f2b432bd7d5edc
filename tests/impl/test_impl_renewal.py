"""Renewal, the loss of the lock, and cancellation, over both stores."""

from collections.abc import Generator

import pytest
from attrs import evolve
from impl_scenes import PAID, Scene, run_all

from peeklock.impl import (
    RETRY,
    Cancelled,
    Delivery,
    Driver,
    FaultyStore,
    Store,
    Verdict,
    VirtualClock,
    Wait,
    WorkItem,
)
from peeklock.impl.stores.faults import PERMANENT, RESPONSE_LOST, RETRYABLE, Fault

RENEW = "renew t-1 for 30000"
ACK = "ack t-1 with success of i1: paid"


def test_a_long_handlers_lock_is_renewed_5_s_before_its_end_again_and_again(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(store, clock, takes_ms=60_000)

    assert scene.run() is Verdict.SUCCESS

    assert scene.story == [
        "0 A fetch for 30000 -> t-1, attempt 1",
        "0 A handler started",
        f"25000 A {RENEW} -> ok",
        f"50000 A {RENEW} -> ok",
        "60000 A handler ended: paid",
        f"60000 A {ACK} -> ok",
        "60000 A counted success",
    ]


def test_nobody_else_gets_an_item_whose_lock_is_renewed(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock, takes_ms=100_000)
    driver = scene.driver()
    while driver.verdict is None:
        driver.step()
        assert driver.verdict is not None or scene.runs == [] or store.fetch(1) is None

    assert driver.verdict is Verdict.SUCCESS


def test_a_renewal_that_is_due_as_the_handler_ends_is_not_sent_before_the_ack(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(store, clock, takes_ms=25_000)

    scene.run()

    assert [call.operation for call in scene.store.recorded] == ["fetch", "ack"]


def test_the_lock_is_renewed_while_an_ack_is_retried(store: Store, clock: VirtualClock) -> None:
    policy = evolve(RETRY, lock_timeout_ms=2_000)  # renewed every second
    scene = Scene(store, clock, {"ack": [RETRYABLE] * 4}, policy=policy, takes_ms=500)

    assert scene.run() is Verdict.SUCCESS

    assert scene.story[3:] == [
        f"500 A {ACK} -> retryable",
        f"600 A {ACK} -> retryable",
        f"800 A {ACK} -> retryable",
        "1000 A renew t-1 for 2000 -> ok",
        f"1200 A {ACK} -> retryable",
        "2000 A renew t-1 for 2000 -> ok",
        f"2000 A {ACK} -> ok",
        "2000 A counted success",
    ]


@pytest.mark.parametrize("fault", [RETRYABLE, PERMANENT, RESPONSE_LOST])
def test_a_renewal_error_in_the_ack_sequence_only_ends_the_renewing(
    store: Store, clock: VirtualClock, fault: Fault
) -> None:
    policy = evolve(RETRY, lock_timeout_ms=4_000, ack_waits_ms=(2_000, 1_500))
    scene = Scene(
        store,
        clock,
        {"ack": [RETRYABLE] * 2, "renew": [fault]},
        policy=policy,
        takes_ms=100,
    )

    assert scene.run() is Verdict.SUCCESS

    assert [call.operation for call in scene.store.recorded] == ["fetch", "ack", "renew", "ack", "ack"]
    assert scene.counted() == {"success": 1}


@pytest.mark.parametrize("fault", [RETRYABLE, PERMANENT, RESPONSE_LOST])
def test_any_renewal_error_cancels_the_handler_and_sends_one_ack_without_a_completion(
    store: Store, clock: VirtualClock, fault: Fault
) -> None:
    scene = Scene(store, clock, {"renew": [fault]}, takes_ms=60_000)

    assert scene.run() is Verdict.CANCELLED

    assert scene.story[2:] == [
        f"25000 A {RENEW} -> {'permanent' if fault is PERMANENT else 'retryable'}",
        "25000 A handler cancelled",
        "25000 A handler ended: Cancelled: the lock was lost, or is in doubt",
        "25000 A ack t-1 with nothing -> ok",
    ]
    assert scene.counted() == {}
    assert store.completions() == ()
    assert store.rows() == ()


@pytest.mark.parametrize("fault", [RETRYABLE, PERMANENT, RESPONSE_LOST])
def test_a_failed_cancellation_ack_is_not_repeated_but_followed_by_abandon(
    store: Store, clock: VirtualClock, fault: Fault
) -> None:
    scene = Scene(
        store,
        clock,
        {"renew": [RETRYABLE], "ack": [fault]},
        takes_ms=60_000,
    )

    assert scene.run() is Verdict.ABANDONED

    cancellation = [call.args for call in scene.store.recorded if call.operation == "ack"]
    assert cancellation == [("t-1", None)]
    assert scene.store.recorded[-1].operation == "abandon"
    assert scene.store.recorded[-1].args == ("t-1", 100, False)
    assert scene.counted() == {}


def test_an_item_comes_back_after_a_transient_renewal_and_a_transient_cancellation_ack_failure(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(store, clock, {"renew": [RETRYABLE], "ack": [RETRYABLE]}, takes_ms=60_000)

    assert scene.run() is Verdict.ABANDONED
    clock.advance(100)
    scene.takes_ms = 0
    assert scene.run() is Verdict.SUCCESS

    assert scene.story[2:] == [
        f"25000 A {RENEW} -> retryable",
        "25000 A handler cancelled",
        "25000 A handler ended: Cancelled: the lock was lost, or is in doubt",
        "25000 A ack t-1 with nothing -> retryable",
        "25000 A abandon t-1 for 100 -> ok",
        "25100 A fetch for 30000 -> t-2, attempt 2",
        "25100 A handler started",
        "25100 A handler ended: paid",
        "25100 A ack t-2 with success of i1: paid -> ok",
        "25100 A counted success",
    ]
    assert scene.runs == [0, 25_100]
    assert store.completions() == (PAID,)


def test_an_item_cancelled_by_the_orchestrator_stops_its_handler_and_completes_nothing(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(store, clock, takes_ms=60_000)
    driver = scene.driver()
    while not scene.runs:
        driver.step()
    store.cancel(["i1"])

    assert driver.run() is Verdict.ABANDONED

    assert scene.story[2:] == [
        f"25000 A {RENEW} -> permanent",
        "25000 A handler cancelled",
        "25000 A handler ended: Cancelled: the lock was lost, or is in doubt",
        "25000 A ack t-1 with nothing -> permanent",
        "25000 A abandon t-1 for 100 -> permanent",
    ]
    assert scene.counted() == {}
    assert store.completions() == ()


class Stubborn:
    """A handler that goes on for `more_ms` after it was cancelled, in steps of 1 s."""

    def __init__(self, more_ms: int) -> None:
        self._more_ms = more_ms
        self.cleaned_up = False

    def __call__(self, item: WorkItem) -> Generator[int, None, str]:
        try:
            while True:
                try:
                    yield 1_000
                except Cancelled:
                    for _ in range(self._more_ms // 1_000):
                        yield 1_000
                    return "too late"
        finally:
            self.cleaned_up = True


def cancelled_scene(store: Store, clock: VirtualClock, handler: Stubborn) -> Scene:
    scene = Scene(store, clock, {"renew": [RETRYABLE]})
    worker = scene.worker()
    worker.handlers = {"charge": handler}
    scene.last = Driver(worker, scene.store)  # kept, so that nothing but an abort ends its handler
    scene.last.run()
    return scene


def test_a_cancelled_handler_may_end_within_its_grace_but_its_result_is_dropped(
    store: Store, clock: VirtualClock
) -> None:
    scene = cancelled_scene(store, clock, Stubborn(9_000))

    assert scene.story[3:] == [
        "25000 A handler cancelled",
        "34000 A handler ended: too late",
        "34000 A ack t-1 with nothing -> permanent",
        "34000 A abandon t-1 for 100 -> ok",
    ]


def test_a_cancelled_handler_is_aborted_at_the_end_of_its_grace(store: Store, clock: VirtualClock) -> None:
    handler = Stubborn(60_000)

    scene = cancelled_scene(store, clock, handler)

    assert scene.story[3:] == [
        "25000 A handler cancelled",
        "35000 A handler aborted",
        "35000 A ack t-1 with nothing -> permanent",
        "35000 A abandon t-1 for 100 -> ok",
    ]
    assert scene.last is not None
    assert handler.cleaned_up


def test_a_short_lock_is_renewed_after_half_of_it_in_whole_seconds(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock, policy=evolve(RETRY, lock_timeout_ms=5_000), takes_ms=7_000)

    scene.run()

    renewals = [line for line in scene.story if "renew" in line]
    assert renewals == ["3000 A renew t-1 for 5000 -> ok", "6000 A renew t-1 for 5000 -> ok"]


def test_a_lock_that_runs_out_during_the_ack_sequence_ends_uncertain_and_the_next_worker_completes(
    store: Store, clock: VirtualClock
) -> None:
    policy = evolve(RETRY, lock_timeout_ms=2_000)
    scene = Scene(
        store,
        clock,
        {"ack": [RETRYABLE] * 4, "renew": [RETRYABLE]},
        policy=policy,
        takes_ms=600,
    )
    first = scene.driver("A")
    while clock.now_ms() < 1_300 or not isinstance(first.pending, Wait):
        first.step()
    clock.advance(700)  # A is held up between two attempts; its renewal at 1000 has failed
    second = scene.driver("B")

    run_all(clock, second, first)

    assert [line for line in scene.story if "ack" in line or "fetch" in line] == [
        "0 A fetch for 2000 -> t-1, attempt 1",
        f"600 A {ACK} -> retryable",
        f"700 A {ACK} -> retryable",
        f"900 A {ACK} -> retryable",
        f"1300 A {ACK} -> retryable",
        "2000 B fetch for 2000 -> t-2, attempt 2",
        f"2100 A {ACK} -> permanent",
        "2100 A counted ack_uncertain",
        "2600 B ack t-2 with success of i1: paid -> ok",
    ]
    assert scene.counted() == {"ack_uncertain": 1, "success": 1}
    assert store.completions() == (PAID,)


def test_a_handler_whose_lock_is_lost_before_its_first_step_never_begins(
    store: Store, clock: VirtualClock
) -> None:
    class SlowFetch(FaultyStore):
        def fetch(self, lock_timeout_ms: int) -> Delivery | None:
            delivery = super().fetch(lock_timeout_ms)
            clock.advance(25_000)
            return delivery

    def plain(item: WorkItem) -> str:
        scene.runs.append(clock.now_ms())
        return "paid"

    scene = Scene(store, clock)
    scene.store = SlowFetch(store, {"renew": [RETRYABLE]})
    worker = scene.worker()
    worker.handlers = {"charge": plain}

    assert worker.run_once(scene.store) is Verdict.CANCELLED

    assert scene.story[1:] == [
        "25000 A handler started",
        f"25000 A {RENEW} -> retryable",
        "25000 A handler cancelled",
        "25000 A handler ended: Cancelled: the lock was lost, or is in doubt",
        "25000 A ack t-1 with nothing -> ok",
    ]
    assert scene.runs == []
