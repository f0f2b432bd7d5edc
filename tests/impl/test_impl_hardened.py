"""Renewal errors with the hardened policy, over both stores."""

from collections.abc import Generator

import pytest
from attrs import evolve
from impl_scenes import PAID, Scene

from peeklock.impl import (
    HARDENED,
    Store,
    Verdict,
    VirtualClock,
    WorkItem,
)
from peeklock.impl.stores.faults import PERMANENT, RETRYABLE, Fault

RENEW = "renew t-1 for 30000"
ACK = "ack t-1 with success of i1: paid"


def test_hardened_renews_again_every_second_after_a_retryable_error(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(store, clock, {"renew": [RETRYABLE] * 3}, policy=HARDENED, takes_ms=40_000)

    assert scene.run() is Verdict.SUCCESS

    assert [line for line in scene.story if "renew" in line] == [
        f"25000 A {RENEW} -> retryable",
        f"26000 A {RENEW} -> retryable",
        f"27000 A {RENEW} -> retryable",
        f"28000 A {RENEW} -> ok",
    ]
    assert scene.runs == [0]


def test_hardened_leaves_the_item_to_its_lock_when_that_ends_by_its_own_knowledge(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(store, clock, {"renew": [RETRYABLE] * 5}, policy=HARDENED, takes_ms=60_000)

    assert scene.run() is Verdict.LEFT
    assert scene.story[2:] == [
        *[f"{second}000 A {RENEW} -> retryable" for second in range(25, 30)],
        "30000 A handler cancelled",
        "30000 A handler ended: Cancelled: the lock was lost, or is in doubt",
        "30000 A dropped",
    ]
    assert scene.counted() == {}
    scene.takes_ms = 0
    assert scene.run() is Verdict.SUCCESS
    assert store.completions() == (PAID,)


def test_hardened_counts_the_locks_own_end_from_the_last_renewal_that_was_accepted(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(
        store,
        clock,
        {"renew": [RETRYABLE, None, *[RETRYABLE] * 5]},
        policy=HARDENED,
        takes_ms=90_000,
    )

    assert scene.run() is Verdict.LEFT

    assert [line.split()[0] for line in scene.story if "renew" in line] == [
        *["25000", "26000"],
        *["51000", "52000", "53000", "54000", "55000"],
    ]
    assert scene.story[-1] == "56000 A dropped"


def test_hardened_abandons_after_a_permanent_renewal_error_without_a_cancellation_ack(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(store, clock, {"renew": [PERMANENT]}, policy=HARDENED, takes_ms=60_000)

    assert scene.run() is Verdict.ABANDONED

    assert scene.story[2:] == [
        f"25000 A {RENEW} -> permanent",
        "25000 A handler cancelled",
        "25000 A handler ended: Cancelled: the lock was lost, or is in doubt",
        "25000 A abandon t-1 for 100 -> ok",
    ]
    assert scene.counted() == {}
    assert store.rows()[0].visible_at_ms == 25_100


def test_hardened_renews_again_in_the_ack_sequence_too(store: Store, clock: VirtualClock) -> None:
    policy = evolve(HARDENED, lock_timeout_ms=4_000, ack_waits_ms=(2_500, 1_000))
    scene = Scene(store, clock, {"ack": [RETRYABLE] * 2, "renew": [RETRYABLE]}, policy=policy, takes_ms=100)

    assert scene.run() is Verdict.SUCCESS

    assert scene.story[3:] == [
        f"100 A {ACK} -> retryable",
        "2000 A renew t-1 for 4000 -> retryable",
        f"2600 A {ACK} -> retryable",
        "3000 A renew t-1 for 4000 -> ok",
        f"3600 A {ACK} -> ok",
        "3600 A counted success",
    ]


def test_hardened_ends_the_renewing_at_the_locks_own_end_but_not_the_ack_sequence(
    store: Store, clock: VirtualClock
) -> None:
    policy = evolve(HARDENED, lock_timeout_ms=4_000, ack_waits_ms=(4_500, 1_000))
    scene = Scene(store, clock, {"ack": [RETRYABLE] * 2, "renew": [RETRYABLE] * 9}, policy=policy)

    assert scene.run() is Verdict.UNCERTAIN

    assert scene.story[4:] == [
        "2000 A renew t-1 for 4000 -> retryable",
        "3000 A renew t-1 for 4000 -> retryable",
        f"4500 A {ACK} -> retryable",
        f"5500 A {ACK} -> permanent",
        "5500 A counted ack_uncertain",
    ]


@pytest.mark.parametrize(("renewals", "first_ms"), [([], 0), ([RETRYABLE, None], 27_000)])
def test_a_renewal_that_is_late_is_sent_all_the_same(
    store: Store, clock: VirtualClock, renewals: list[Fault | None], first_ms: int
) -> None:
    """The worker was held up, not refused: only the store can say whether its lock is gone."""

    def held_up(item: WorkItem) -> Generator[int, None, str]:
        yield first_ms  # past the scripted renewals
        clock.advance(40_000)
        yield 1
        return "never"

    scene = Scene(store, clock, {"renew": renewals}, policy=HARDENED)
    worker = scene.worker()
    worker.handlers = {"charge": held_up}

    assert worker.run_once(scene.store) is Verdict.ABANDONED
    assert f"{first_ms + 40_000} A {RENEW} -> permanent" in scene.story
