"""Handlers, the driver, the worker's own protocol, and what it logs."""

import logging
from collections.abc import Generator

import pytest
from impl_scenes import ITEM, PAID, Scene, run_all, step_to

from peeklock.impl import (
    BEFORE,
    Ack,
    Cancelled,
    Driver,
    FaultyStore,
    Fetch,
    MemoryStore,
    Metrics,
    Ok,
    StartHandler,
    StepHandler,
    Store,
    Verdict,
    VirtualClock,
    Wait,
    Worker,
    WorkItem,
)
from peeklock.impl.driver import Handler
from peeklock.impl.stores.faults import PERMANENT, RESPONSE_LOST, RETRYABLE, Fault

# handlers


def settled_by(handler: Handler, clock: VirtualClock) -> tuple[Verdict, str]:
    store = MemoryStore(clock)
    store.enqueue(ITEM)
    verdict = Worker(clock, {"charge": handler}).run_once(store)
    return verdict, store.completions()[0].payload


def test_a_handler_may_be_a_plain_function(clock: VirtualClock) -> None:
    assert settled_by(lambda item: item.payload, clock) == (Verdict.SUCCESS, "42")


def test_a_generator_handler_lets_time_pass_where_it_yields(clock: VirtualClock) -> None:
    def handler(item: WorkItem) -> Generator[int | None, None, str]:
        yield None
        first_ms = clock.now_ms()
        yield 10
        yield 20
        return f"{first_ms} {clock.now_ms()}"

    assert settled_by(handler, clock) == (Verdict.SUCCESS, "0 30")


def test_an_exception_of_a_plain_handler_is_an_application_error(clock: VirtualClock) -> None:
    def handler(item: WorkItem) -> str:
        raise KeyError("card")

    assert settled_by(handler, clock) == (Verdict.APPLICATION_ERROR, "KeyError: 'card'")


def test_a_result_that_is_no_string_is_an_application_error(clock: VirtualClock) -> None:
    def handler(item: WorkItem) -> Generator[None, None, str]:
        yield
        return 5  # type: ignore[return-value]

    text = "TypeError: the handler returned int, not str"
    assert settled_by(handler, clock) == (Verdict.APPLICATION_ERROR, text)
    assert settled_by(lambda item: 5, clock) == (Verdict.APPLICATION_ERROR, text)  # type: ignore[arg-type, return-value]


def test_a_handler_that_cannot_be_aborted_quietly_does_not_disturb_the_worker(clock: VirtualClock) -> None:
    refusals: list[BaseException] = []

    def handler(item: WorkItem) -> Generator[int, None, str]:
        while len(refusals) < 3:
            try:
                yield 1_000
            except (Cancelled, GeneratorExit) as refused:
                refusals.append(refused)
        return "never"

    store = MemoryStore(clock)
    store.enqueue(ITEM)
    worker = Worker(clock, {"charge": handler})

    assert worker.run_once(FaultyStore(store, {"renew": [RETRYABLE]})) is Verdict.ABANDONED
    assert clock.now_ms() == 35_000
    assert isinstance(refusals[1], GeneratorExit)


def test_a_handler_is_signalled_once(clock: VirtualClock) -> None:
    signals: list[Cancelled] = []

    def handler(item: WorkItem) -> Generator[int, None, str]:
        while len(signals) < 2:
            try:
                yield 1_000
            except Cancelled as signal:
                signals.append(signal)
        return "never"

    store = MemoryStore(clock)
    store.enqueue(ITEM)
    Worker(clock, {"charge": handler}).run_once(FaultyStore(store, {"renew": [RETRYABLE]}))

    assert len(signals) == 1


# the driver and the worker's own protocol


def test_a_driver_shows_what_is_pending_and_when_it_will_be_over(clock: VirtualClock) -> None:
    scene = Scene(MemoryStore(clock, "t"), clock, {"ack": [RETRYABLE]}, takes_ms=40_000)
    driver = scene.driver()
    seen = []
    while driver.pending is not None:
        seen.append((type(driver.pending).__name__, driver.ready_at_ms()))
        driver.step()

    assert seen == [
        ("Fetch", 0),
        ("StartHandler", 0),
        ("StepHandler", 0),
        ("StepHandler", 25_000),
        ("Renew", 25_000),
        ("StepHandler", 40_000),
        ("Ack", 40_000),
        ("Wait", 40_100),
        ("Ack", 40_100),
    ]
    assert driver.verdict is Verdict.SUCCESS
    with pytest.raises(RuntimeError, match="the cycle is over"):
        driver.step()


def test_several_workers_can_be_interleaved_on_one_clock(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock, takes_ms=60_000)
    for n in (2, 3):
        store.enqueue(WorkItem(f"i{n}", f"order-{n}", "charge"))
    drivers = [scene.driver(name) for name in "ABC"]

    run_all(clock, *drivers)

    assert [driver.verdict for driver in drivers] == [Verdict.SUCCESS] * 3
    assert scene.runs == [0, 0, 0]
    assert clock.now_ms() == 60_000
    assert len(store.completions()) == 3


def test_a_cancelled_handler_that_sleeps_is_ready_when_it_wakes_or_its_grace_ends(
    clock: VirtualClock,
) -> None:
    def handler(item: WorkItem) -> Generator[int, None, str]:
        try:
            yield 60_000
        except Cancelled:
            yield 3_000
            yield 60_000
        return "never"

    store = MemoryStore(clock)
    store.enqueue(ITEM)
    driver = Driver(Worker(clock, {"charge": handler}), FaultyStore(store, {"renew": [PERMANENT]}))
    ready = []
    while driver.pending is not None:
        if isinstance(driver.pending, StepHandler) and driver.pending.cancelled:
            ready.append(driver.ready_at_ms())
        driver.step()

    assert ready == [25_000, 28_000, 35_000]


def test_a_cycle_can_be_driven_by_hand(clock: VirtualClock) -> None:
    store = MemoryStore(clock, "t")
    store.enqueue(ITEM)
    cycle = Worker(clock, {"charge": lambda item: "paid"}).cycle()

    assert next(cycle) == Fetch(30_000)
    delivery = store.fetch(30_000)
    assert delivery is not None
    assert cycle.send(Ok(delivery)) == StartHandler(delivery)
    assert cycle.send(None) == StepHandler("t-1", 25_000, False)
    clock.advance(7)
    assert cycle.send(None) == StepHandler("t-1", 25_000, False)  # answered early: it asks again


def test_a_wrong_kind_of_answer_is_a_type_error(clock: VirtualClock) -> None:
    cycle = Worker(clock, {}).cycle()
    next(cycle)

    with pytest.raises(TypeError, match="must be answered with Ok or Refused, not None"):
        cycle.send(None)


def test_a_wrong_answer_to_a_handler_step_is_a_type_error(clock: VirtualClock) -> None:
    store = MemoryStore(clock)
    store.enqueue(ITEM)
    cycle = Worker(clock, {"charge": lambda item: "paid"}).cycle()
    next(cycle)
    cycle.send(Ok(store.fetch(30_000)))
    cycle.send(None)

    with pytest.raises(TypeError, match="must be answered with an Outcome or None, not Ok"):
        cycle.send(Ok())


def test_a_wait_that_is_answered_early_is_asked_for_again(clock: VirtualClock) -> None:
    scene = Scene(MemoryStore(clock, "t"), clock, {"ack": [RETRYABLE]})
    driver = scene.driver()
    assert step_to(driver, Wait) == Wait(100)
    clock.advance(99)
    driver._send(None)

    assert step_to(driver, Wait) == Wait(100)
    driver.step()
    assert step_to(driver, Ack) == Ack("t-1", PAID)
    assert clock.now_ms() == 100


def test_workers_may_share_metrics_and_need_no_observer(store: Store, clock: VirtualClock) -> None:
    metrics = Metrics()
    for n in range(2):
        store.enqueue(WorkItem(f"i{n}", "order", "charge"))
        Worker(clock, {"charge": lambda item: "paid"}, metrics=metrics).run_once(store)

    assert metrics.as_dict() == {"duroxide_activity_success_total": 2}


def test_a_handler_that_outlasts_its_lock_between_two_yields_loses_the_item(
    store: Store, clock: VirtualClock
) -> None:
    def deaf(item: WorkItem) -> str:
        clock.advance(30_000)
        return "paid"

    scene = Scene(store, clock)
    worker = scene.worker()
    worker.handlers = {"charge": deaf}

    assert worker.run_once(scene.store) is Verdict.FAILED
    assert [call.operation for call in scene.store.recorded] == ["fetch", "ack", "abandon"]
    assert store.completions() == ()


@pytest.mark.parametrize("acks", [[], [PERMANENT], [RETRYABLE, PERMANENT], [RETRYABLE] * 5, [RESPONSE_LOST]])
def test_no_log_line_promises_what_will_happen(
    store: Store, clock: VirtualClock, caplog: pytest.LogCaptureFixture, acks: list[Fault]
) -> None:
    caplog.set_level(logging.DEBUG)
    scene = Scene(store, clock, {"ack": acks, "abandon": [RETRYABLE]})
    scene.run()
    scene = Scene(MemoryStore(clock, "t"), clock, {"renew": [RETRYABLE]}, policy=BEFORE, takes_ms=60_000)
    scene.run()

    assert caplog.messages
    for message in caplog.messages:
        assert not any(word in message for word in (" will ", "redeliver", "again", "recover"))


def test_an_uncertain_outcome_is_logged_as_unknown(
    store: Store, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    Scene(store, clock, {"ack": [RESPONSE_LOST]}).run()

    assert "t-1: it is unknown whether an ack took effect" in caplog.messages
