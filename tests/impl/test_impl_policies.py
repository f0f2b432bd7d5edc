"""Policies as data, and what each choice makes of the same faults, over both stores."""

from typing import Any

import pytest
from attrs import evolve
from impl_scenes import PAID, Scene

from peeklock.impl import BEFORE, HARDENED, RETRY, Policy, Store, Verdict, VirtualClock
from peeklock.impl.stores.faults import DISHONEST, PERMANENT, RESPONSE_LOST, RETRYABLE, Fault

ACK = "ack t-1 with success of i1: paid"


def test_the_default_policy_is_the_protocol() -> None:
    assert Policy() == RETRY
    assert RETRY.max_attempts == 10
    assert RETRY.lock_timeout_ms == 30_000
    assert RETRY.renewal_buffer_ms == 5_000
    assert RETRY.cancellation_grace_ms == 10_000
    assert RETRY.shutdown_grace_ms == 1_000
    assert RETRY.ack_waits_ms == (100, 200, 400, 800)
    assert RETRY.abandon_delay_ms == 100


@pytest.mark.parametrize(
    ("lock_timeout_ms", "interval_ms"),
    [
        (30_000, 25_000),
        (15_001, 10_001),
        (15_000, 10_000),
        (14_999, 8_000),
        (14_000, 7_000),
        (5_000, 3_000),
        (2_001, 2_000),
        (2_000, 1_000),
        (1_000, 1_000),
        (1, 1_000),
    ],
)
def test_the_renewal_interval_follows_the_lock_timeout(lock_timeout_ms: int, interval_ms: int) -> None:
    assert evolve(RETRY, lock_timeout_ms=lock_timeout_ms).renewal_interval_ms == interval_ms


@pytest.mark.parametrize(("buffer_ms", "interval_ms"), [(0, 20_000), (19_000, 1_000), (25_000, 1_000)])
def test_the_renewal_interval_is_never_under_a_second(buffer_ms: int, interval_ms: int) -> None:
    policy = evolve(RETRY, lock_timeout_ms=20_000, renewal_buffer_ms=buffer_ms)

    assert policy.renewal_interval_ms == interval_ms


@pytest.mark.parametrize(
    ("attempt_count", "delay_ms"),
    [(1, 1_000), (2, 2_000), (6, 32_000), (7, 60_000), (8, 60_000), (10_000, 60_000)],
)
def test_the_backoff_for_a_missing_handler_doubles_to_a_minute(attempt_count: int, delay_ms: int) -> None:
    assert RETRY.missing_handler_delay_ms(attempt_count) == delay_ms


def test_the_backoff_can_be_other_numbers() -> None:
    policy = evolve(RETRY, missing_handler_backoff_ms=3, missing_handler_backoff_cap_ms=10)

    assert [policy.missing_handler_delay_ms(n) for n in (1, 2, 3)] == [3, 6, 10]


@pytest.mark.parametrize(
    "malformed",
    [
        {"max_attempts": 0},
        {"lock_timeout_ms": 0},
        {"renewal_retry_ms": 0},
        {"renewal_buffer_ms": -1},
        {"ack_waits_ms": (100, -1)},
        {"ack_waits_ms": (100, 0.5)},
        {"ack_waits_ms": [100]},
        {"abandon_delay_ms": "100"},
        {"abandon_ignores_attempt": 1},
        {"after_exhaustion": "retry"},
        {"poison_ack": "twice"},
    ],
)
def test_a_malformed_policy_is_refused(malformed: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        evolve(RETRY, **malformed)


def test_the_least_numbers_make_a_policy() -> None:
    evolve(
        RETRY, max_attempts=1, lock_timeout_ms=1, renewal_retry_ms=1, renewal_buffer_ms=0, ack_waits_ms=(0,)
    )


@pytest.mark.parametrize("fault", [RETRYABLE, PERMANENT])
def test_before_abandons_after_any_first_error_and_runs_the_handler_again(
    store: Store, clock: VirtualClock, fault: Fault
) -> None:
    scene = Scene(store, clock, {"ack": [fault]}, policy=BEFORE)

    assert scene.run() is Verdict.FAILED
    clock.advance(100)
    assert scene.run() is Verdict.SUCCESS

    assert scene.story[3:7] == [
        f"0 A {ACK} -> {'retryable' if fault.retryable else 'permanent'}",
        "0 A counted infra_errors",
        "0 A abandon t-1 for 100 -> ok",
        "100 A fetch for 30000 -> t-2, attempt 2",
    ]
    assert scene.runs == [0, 100]


def test_before_counts_a_failure_for_an_ack_that_committed(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock, {"ack": [RESPONSE_LOST]}, policy=BEFORE)

    assert scene.run() is Verdict.FAILED

    assert scene.story[-1] == "0 A abandon t-1 for 100 -> permanent"
    assert scene.counted() == {"infra_errors": 1}
    assert store.completions() == (PAID,)


def test_hardened_counts_a_failure_when_abandon_is_accepted(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock, {"ack": [RETRYABLE] * 5}, policy=HARDENED)

    assert scene.run() is Verdict.FAILED

    assert scene.story[7:] == [
        f"1500 A {ACK} -> retryable",
        "1500 A abandon t-1 for 100 -> ok",
        "1500 A counted infra_errors",
    ]


@pytest.mark.parametrize(
    ("acks", "abandon"),
    [
        ([*[RETRYABLE] * 4, RESPONSE_LOST], None),
        ([RETRYABLE] * 5, RETRYABLE),
        ([RETRYABLE] * 5, RESPONSE_LOST),
        ([RETRYABLE] * 5, PERMANENT),
    ],
)
def test_hardened_is_uncertain_when_abandon_is_not_accepted(
    store: Store, clock: VirtualClock, acks: list[Fault], abandon: Fault | None
) -> None:
    scene = Scene(store, clock, {"ack": acks, "abandon": [abandon]}, policy=HARDENED)

    assert scene.run() is Verdict.UNCERTAIN

    assert scene.counted() == {"ack_uncertain": 1}
    assert [call.operation for call in scene.store.recorded] == ["fetch", *["ack"] * 5, "abandon"]


def test_hardened_treats_a_permanent_first_answer_as_a_failure(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock, {"ack": [PERMANENT]}, policy=HARDENED)

    assert scene.run() is Verdict.FAILED

    assert scene.story[4:] == ["0 A counted infra_errors", "0 A abandon t-1 for 100 -> ok"]


def poisoned(scene: Scene) -> Scene:
    for _ in range(scene.policy.max_attempts):
        delivery = scene.store.fetch(1)
        assert delivery is not None
        scene.store.abandon(delivery.token)
    scene.store.recorded.clear()
    return scene


def test_hardened_retries_a_poison_ack_and_counts_it_once_when_it_is_confirmed(
    store: Store, clock: VirtualClock
) -> None:
    policy = evolve(HARDENED, lock_timeout_ms=2_000, max_attempts=1)
    scene = poisoned(Scene(store, clock, {"ack": [RETRYABLE] * 4}, policy=policy))

    assert scene.run() is Verdict.POISON

    ack = "ack t-2 with poison of i1: delivered 2 times, allowed are 1"
    assert scene.story == [
        "0 A fetch for 2000 -> t-2, attempt 2",
        f"0 A {ack} -> retryable",
        f"100 A {ack} -> retryable",
        f"300 A {ack} -> retryable",
        f"700 A {ack} -> retryable",
        "1000 A renew t-2 for 2000 -> ok",
        f"1500 A {ack} -> ok",
        "1500 A counted poison",
    ]


@pytest.mark.parametrize(
    ("acks", "verdict", "counted"),
    [
        ([PERMANENT], Verdict.FAILED, "infra_errors"),
        ([RESPONSE_LOST], Verdict.UNCERTAIN, "ack_uncertain"),
        ([RETRYABLE] * 5, Verdict.FAILED, "infra_errors"),
        ([*[RETRYABLE] * 4, RESPONSE_LOST], Verdict.UNCERTAIN, "ack_uncertain"),
    ],
)
def test_hardened_ends_an_unconfirmed_poison_ack_like_any_other(
    store: Store, clock: VirtualClock, acks: list[Fault], verdict: Verdict, counted: str
) -> None:
    scene = poisoned(Scene(store, clock, {"ack": acks}, policy=HARDENED))

    assert scene.run() is verdict

    assert scene.counted() == {counted: 1}


def test_a_policy_may_have_more_or_fewer_attempts(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock, {"ack": [RETRYABLE] * 3}, policy=evolve(RETRY, ack_waits_ms=(0, 7)))

    assert scene.run() is Verdict.FAILED

    assert [line.split()[0] for line in scene.story[3:]] == ["0", "0", "7", "7", "7"]


def test_a_policy_may_abandon_where_the_protocol_is_uncertain(store: Store, clock: VirtualClock) -> None:
    policy = evolve(RETRY, after_later_permanent="abandon")
    scene = Scene(store, clock, {"ack": [RETRYABLE, PERMANENT]}, policy=policy)

    assert scene.run() is Verdict.FAILED

    assert scene.story[5:] == ["100 A counted infra_errors", "100 A abandon t-1 for 100 -> ok"]


def test_a_policy_may_be_uncertain_at_the_first_answer_and_abandon_all_the_same(
    store: Store, clock: VirtualClock
) -> None:
    policy = evolve(RETRY, after_first_permanent="uncertain", after_uncertain="abandon", abandon_delay_ms=7)
    scene = Scene(store, clock, {"ack": [DISHONEST]}, policy=policy)

    assert scene.run() is Verdict.UNCERTAIN

    assert scene.story[4:] == ["0 A counted ack_uncertain", "0 A abandon t-1 for 7 -> permanent"]


def test_a_policy_may_leave_an_exhausted_item_to_its_lock(store: Store, clock: VirtualClock) -> None:
    policy = evolve(RETRY, ack_waits_ms=(), after_exhaustion="leave")
    scene = Scene(store, clock, {"ack": [RETRYABLE]}, policy=policy)

    assert scene.run() is Verdict.FAILED

    assert scene.story[4:] == ["0 A counted infra_errors"]
    assert store.rows()[0].token == "t-1"


def test_a_policy_may_leave_an_item_to_its_lock_after_a_failed_cancellation_ack(
    store: Store, clock: VirtualClock
) -> None:
    policy = evolve(RETRY, after_cancellation_ack="leave")
    scene = Scene(store, clock, {"renew": [RETRYABLE], "ack": [RETRYABLE]}, policy=policy, takes_ms=60_000)

    assert scene.run() is Verdict.LEFT

    assert scene.story[-2:] == ["25000 A ack t-1 with nothing -> retryable", "25000 A dropped"]


def test_a_policy_may_abandon_after_a_retryable_renewal_error(store: Store, clock: VirtualClock) -> None:
    policy = evolve(RETRY, after_retryable_renewal="abandon")
    scene = Scene(store, clock, {"renew": [RETRYABLE]}, policy=policy, takes_ms=60_000)

    assert scene.run() is Verdict.ABANDONED

    assert [call.operation for call in scene.store.recorded] == ["fetch", "renew", "abandon"]


def test_what_a_retryable_and_a_permanent_renewal_error_lead_to_are_two_choices(
    store: Store, clock: VirtualClock
) -> None:
    policy = evolve(RETRY, after_permanent_renewal="abandon")
    scene = Scene(store, clock, {"renew": [RETRYABLE]}, policy=policy, takes_ms=60_000)

    assert scene.run() is Verdict.CANCELLED


def test_a_policy_may_take_abandoned_attempts_off_the_count(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock, {"ack": [PERMANENT]}, policy=evolve(RETRY, abandon_ignores_attempt=True))

    scene.run()

    assert scene.story[-1] == "0 A abandon t-1 for 100 ignoring the attempt -> ok"
    assert store.rows()[0].attempt_count == 0
