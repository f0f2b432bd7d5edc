"""Shutdown and crash, over both stores."""

from collections.abc import Generator

import pytest
from attrs import evolve
from impl_scenes import ITEM, PAID, Scene, step_to

from peeklock.impl import (
    RETRY,
    Ack,
    Cancelled,
    Driver,
    Renew,
    StartHandler,
    StepHandler,
    Store,
    Verdict,
    VirtualClock,
    Wait,
    WorkItem,
)
from peeklock.impl.stores.faults import RETRYABLE

ACK = "ack t-1 with success of i1: paid"


def test_a_grace_of_1_s_lets_attempts_begin_at_0_100_300_and_700_ms_and_not_at_1500(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(store, clock, {"ack": [RETRYABLE] * 5})
    worker = scene.worker()
    driver = Driver(worker, scene.store)
    step_to(driver, Ack)
    worker.request_shutdown()

    assert driver.run() is Verdict.DROPPED

    assert scene.story[3:] == [
        "0 A shutdown, drop at 1000",
        f"0 A {ACK} -> retryable",
        f"100 A {ACK} -> retryable",
        f"300 A {ACK} -> retryable",
        f"700 A {ACK} -> retryable",
        "1000 A dropped",
    ]
    assert scene.counted() == {}


@pytest.mark.parametrize(
    ("grace_ms", "attempts"),
    [(0, 0), (1, 1), (100, 1), (101, 2), (300, 2), (301, 3), (700, 3), (701, 4), (1_500, 4), (1_501, 5)],
)
def test_no_attempt_begins_at_or_after_the_end_of_the_grace(
    store: Store, clock: VirtualClock, grace_ms: int, attempts: int
) -> None:
    scene = Scene(store, clock, {"ack": [RETRYABLE] * 5}, policy=evolve(RETRY, shutdown_grace_ms=grace_ms))
    worker = scene.worker()
    driver = Driver(worker, scene.store)
    step_to(driver, StepHandler)
    worker.request_shutdown()

    driver.run()

    assert len([call for call in scene.store.recorded if call.operation == "ack"]) == attempts


def test_a_shutdown_during_a_wait_shortens_it(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock, {"ack": [RETRYABLE] * 4}, policy=evolve(RETRY, shutdown_grace_ms=50))
    worker = scene.worker()
    driver = Driver(worker, scene.store)
    step_to(driver, Wait)
    worker.request_shutdown()
    assert driver.ready_at_ms() == 50

    assert driver.run() is Verdict.DROPPED

    assert clock.now_ms() == 50


def test_work_that_ends_within_the_grace_is_settled(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock, takes_ms=999)
    worker = scene.worker()
    driver = Driver(worker, scene.store)
    step_to(driver, StepHandler)
    worker.request_shutdown()

    assert driver.run() is Verdict.SUCCESS

    assert store.completions() == (PAID,)


def test_the_result_of_a_handler_that_ends_with_the_grace_is_dropped(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(store, clock, takes_ms=1_000)
    worker = scene.worker()
    driver = Driver(worker, scene.store)
    step_to(driver, StepHandler)
    worker.request_shutdown()

    assert driver.run() is Verdict.DROPPED

    assert scene.story[2:] == ["0 A shutdown, drop at 1000", "1000 A handler ended: paid", "1000 A dropped"]
    assert store.rows()[0].token == "t-1"


def test_renewing_stops_at_once_and_the_handler_is_aborted_at_the_end_of_the_grace(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(store, clock, takes_ms=60_000)
    worker = scene.worker()
    driver = Driver(worker, scene.store)
    step_to(driver, StepHandler)
    while clock.now_ms() < 24_500 and not isinstance(driver.pending, Renew):
        driver.step()
    worker.request_shutdown()

    driver.run()

    # The renewal that was about to be sent is the last one.
    assert scene.story[2:] == [
        "25000 A shutdown, drop at 26000",
        "25000 A renew t-1 for 30000 -> ok",
        "26000 A handler aborted",
        "26000 A dropped",
    ]


def test_no_renewal_is_sent_after_the_shutdown_began(store: Store, clock: VirtualClock) -> None:
    policy = evolve(RETRY, lock_timeout_ms=2_000, shutdown_grace_ms=5_000)
    scene = Scene(store, clock, policy=policy, takes_ms=1_500)
    worker = scene.worker()
    driver = Driver(worker, scene.store)
    step_to(driver, StepHandler)
    worker.request_shutdown()

    assert driver.run() is Verdict.SUCCESS

    assert [call.operation for call in scene.store.recorded] == ["fetch", "ack"]


def test_a_cancelled_handler_too_has_no_longer_than_the_shutdown_grace(
    store: Store, clock: VirtualClock
) -> None:
    def stubborn(item: WorkItem) -> Generator[int, None, str]:
        while True:
            try:
                yield 1_000
            except Cancelled:
                yield 5_000

    scene = Scene(store, clock, {"renew": [RETRYABLE]})
    worker = scene.worker()
    worker.handlers = {"charge": stubborn}
    driver = Driver(worker, scene.store)
    while not (isinstance(driver.pending, StepHandler) and driver.pending.cancelled):
        driver.step()
    worker.request_shutdown()

    assert driver.run() is Verdict.DROPPED

    assert scene.story[3:] == [
        "25000 A handler cancelled",
        "25000 A shutdown, drop at 26000",
        "26000 A handler aborted",
        "26000 A dropped",
    ]


def test_nothing_is_fetched_after_a_shutdown_was_requested(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock)
    worker = scene.worker()
    worker.request_shutdown()

    assert worker.run_once(scene.store) is Verdict.STOPPED

    assert scene.store.recorded == []


def test_a_fetch_that_was_answered_after_the_grace_is_dropped_without_a_handler_run(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(store, clock)
    worker = scene.worker()
    driver = Driver(worker, scene.store)
    worker.request_shutdown()
    clock.advance(1_000)

    assert driver.run() is Verdict.DROPPED

    assert scene.runs == []
    assert scene.story[-1] == "1000 A dropped"


def test_a_second_request_does_not_extend_the_grace(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock)
    worker = scene.worker()
    assert worker.drop_at_ms is None
    worker.request_shutdown()
    clock.advance(500)
    worker.request_shutdown()

    assert worker.drop_at_ms == 1_000
    assert scene.story == ["0 A shutdown, drop at 1000"]


def test_a_dropped_delivery_comes_back_by_its_locks_expiry(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock, takes_ms=60_000)
    worker = scene.worker()
    driver = Driver(worker, scene.store)
    step_to(driver, StepHandler)
    worker.request_shutdown()
    driver.run()

    scene.takes_ms = 0
    assert scene.run() is Verdict.IDLE
    clock.advance(29_000)
    assert scene.run() is Verdict.SUCCESS

    assert scene.runs == [0, 30_000]
    assert store.completions() == (PAID,)


@pytest.mark.parametrize("effect", [StartHandler, StepHandler, Ack, Wait])
def test_a_worker_that_crashes_at_any_point_leaves_the_row_to_its_locks_expiry(
    store: Store, clock: VirtualClock, effect: type[object]
) -> None:
    scene = Scene(store, clock, {"ack": [RETRYABLE]})
    crashing = scene.driver()
    step_to(crashing, effect)
    del crashing

    assert scene.run() is Verdict.IDLE
    assert store.rows()[0].item == ITEM
    clock.advance(30_000)
    assert scene.run() is Verdict.SUCCESS

    assert store.completions() == (PAID,)
