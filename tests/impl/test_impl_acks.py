"""The ack sequence of a completion, with the default policy, over both stores."""

import pytest
from impl_scenes import ITEM, PAID, Scene

from peeklock.impl import Completion, CompletionKind, PermanentError, Store, Verdict, VirtualClock
from peeklock.impl.stores.faults import PERMANENT, RESPONSE_LOST, RETRYABLE, Fault

ACK = "ack t-1 with success of i1: paid"
BEGINNING = ["0 A fetch for 30000 -> t-1, attempt 1", "0 A handler started", "0 A handler ended: paid"]


def test_an_ack_without_faults_is_sent_once(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock)

    assert scene.run() is Verdict.SUCCESS

    assert scene.story == [*BEGINNING, f"0 A {ACK} -> ok", "0 A counted success"]
    assert store.completions() == (PAID,)
    assert store.rows() == ()


def test_nothing_to_fetch_is_no_failure(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock)
    scene.run()

    assert scene.run() is Verdict.IDLE

    assert scene.story[-1] == "0 A fetch for 30000 -> ok"


@pytest.mark.parametrize("fault", [RETRYABLE, PERMANENT, RESPONSE_LOST])
def test_a_failed_fetch_ends_the_cycle(store: Store, clock: VirtualClock, fault: Fault) -> None:
    scene = Scene(store, clock, {"fetch": [fault]})

    assert scene.run() is Verdict.FETCH_FAILED

    assert scene.runs == []
    assert scene.counted() == {}
    assert len(scene.story) == 1


def test_the_fifth_attempt_succeeds_after_waits_of_100_200_400_and_800_ms_and_one_handler_run(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(store, clock, {"ack": [RETRYABLE] * 4})

    assert scene.run() is Verdict.SUCCESS

    assert scene.story == [
        *BEGINNING,
        f"0 A {ACK} -> retryable",
        f"100 A {ACK} -> retryable",
        f"300 A {ACK} -> retryable",
        f"700 A {ACK} -> retryable",
        f"1500 A {ACK} -> ok",
        "1500 A counted success",
    ]
    assert scene.runs == [0]
    assert store.completions() == (PAID,)


def test_five_retryable_failures_lead_to_abandon_and_a_successful_redelivery(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(store, clock, {"ack": [RETRYABLE] * 5})

    assert scene.run() is Verdict.FAILED
    assert scene.run() is Verdict.IDLE
    clock.advance(100)
    assert scene.run() is Verdict.SUCCESS

    assert scene.story[3:] == [
        f"0 A {ACK} -> retryable",
        f"100 A {ACK} -> retryable",
        f"300 A {ACK} -> retryable",
        f"700 A {ACK} -> retryable",
        f"1500 A {ACK} -> retryable",
        "1500 A counted infra_errors",
        "1500 A abandon t-1 for 100 -> ok",
        "1500 A fetch for 30000 -> ok",
        "1600 A fetch for 30000 -> t-2, attempt 2",
        "1600 A handler started",
        "1600 A handler ended: paid",
        "1600 A ack t-2 with success of i1: paid -> ok",
        "1600 A counted success",
    ]
    assert scene.runs == [0, 1600]
    assert store.completions() == (PAID,)


def test_a_permanent_first_answer_leads_to_abandon_at_once(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock, {"ack": [PERMANENT]})

    assert scene.run() is Verdict.FAILED

    assert scene.story == [
        *BEGINNING,
        f"0 A {ACK} -> permanent",
        "0 A counted infra_errors",
        "0 A abandon t-1 for 100 -> ok",
    ]
    assert store.rows()[0].visible_at_ms == 100


@pytest.mark.parametrize("fault", [RETRYABLE, PERMANENT, RESPONSE_LOST])
def test_the_answer_to_abandon_is_ignored(store: Store, clock: VirtualClock, fault: Fault) -> None:
    scene = Scene(store, clock, {"ack": [PERMANENT], "abandon": [fault]})

    assert scene.run() is Verdict.FAILED

    assert [call.operation for call in scene.store.recorded] == ["fetch", "ack", "abandon"]
    assert scene.counted() == {"infra_errors": 1}


def test_an_application_error_is_retried_like_a_result(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock, {"ack": [RETRYABLE, RETRYABLE]}, fails=True)

    assert scene.run() is Verdict.APPLICATION_ERROR

    ack = "ack t-1 with application error of i1: ValueError: card refused"
    assert scene.story[2:] == [
        "0 A handler ended: ValueError: card refused",
        f"0 A {ack} -> retryable",
        f"100 A {ack} -> retryable",
        f"300 A {ack} -> ok",
        "300 A counted app_errors",
    ]
    assert scene.runs == [0]
    assert store.completions() == (
        Completion(CompletionKind.APPLICATION_ERROR, "i1", "ValueError: card refused"),
    )


def test_a_lost_response_after_the_commit_is_uncertain_and_nothing_is_abandoned(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(store, clock, {"ack": [RESPONSE_LOST]})

    assert scene.run() is Verdict.UNCERTAIN

    assert scene.story == [
        *BEGINNING,
        f"0 A {ACK} -> retryable",
        f"100 A {ACK} -> permanent",
        "100 A counted ack_uncertain",
    ]
    assert store.completions() == (PAID,)
    assert store.rows() == ()


def test_an_uncertain_ack_that_did_not_commit_is_recovered_by_the_locks_expiry(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(store, clock, {"ack": [RETRYABLE, PERMANENT]})

    assert scene.run() is Verdict.UNCERTAIN
    assert store.completions() == ()
    clock.advance(29_899)
    assert scene.run() is Verdict.IDLE
    clock.advance(1)
    assert scene.run() is Verdict.SUCCESS

    assert scene.story[3:] == [
        f"0 A {ACK} -> retryable",
        f"100 A {ACK} -> permanent",
        "100 A counted ack_uncertain",
        "29999 A fetch for 30000 -> ok",
        "30000 A fetch for 30000 -> t-2, attempt 2",
        "30000 A handler started",
        "30000 A handler ended: paid",
        "30000 A ack t-2 with success of i1: paid -> ok",
        "30000 A counted success",
    ]
    assert store.completions() == (PAID,)


@pytest.mark.parametrize("retryable", [1, 2, 3, 4])
@pytest.mark.parametrize("committed", [True, False])
def test_uncertain_is_counted_once_whichever_attempt_is_refused(
    store: Store, clock: VirtualClock, retryable: int, committed: bool
) -> None:
    first = RESPONSE_LOST if committed else RETRYABLE
    scene = Scene(store, clock, {"ack": [first, *[RETRYABLE] * (retryable - 1), PERMANENT]})

    assert scene.run() is Verdict.UNCERTAIN

    assert scene.counted() == {"ack_uncertain": 1}
    assert [call.operation for call in scene.store.recorded] == ["fetch", *["ack"] * (retryable + 1)]


@pytest.mark.parametrize("retryable", [0, 1, 2, 3, 4])
def test_uncertain_is_never_counted_in_success(store: Store, clock: VirtualClock, retryable: int) -> None:
    scene = Scene(store, clock, {"ack": [RETRYABLE] * retryable})

    scene.run()

    assert scene.counted() == {"success": 1}


@pytest.mark.parametrize("faults", [[PERMANENT], [RETRYABLE] * 5])
def test_uncertain_is_never_counted_in_a_confirmed_failure(
    store: Store, clock: VirtualClock, faults: list[Fault]
) -> None:
    scene = Scene(store, clock, {"ack": faults})

    scene.run()

    assert scene.counted() == {"infra_errors": 1}


def test_every_attempt_carries_the_same_token_and_completion(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock, {"ack": [RETRYABLE] * 4})

    scene.run()

    assert {call.args for call in scene.store.recorded if call.operation == "ack"} == {("t-1", PAID)}


def test_the_same_token_acked_twice_is_refused_with_one_completion_and_no_row(store: Store) -> None:
    store.enqueue(ITEM)
    delivery = store.fetch(1_000)
    assert delivery is not None
    store.ack(delivery.token, PAID)

    with pytest.raises(PermanentError, match="ack: token 't-1' is not current"):
        store.ack(delivery.token, PAID)

    assert store.completions() == (PAID,)
    assert store.rows() == ()


def test_poison_is_acked_once_and_counted_whatever_the_answer(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock, {"ack": [RETRYABLE]})
    for _ in range(10):
        delivery = store.fetch(1)
        assert delivery is not None
        store.abandon(delivery.token)

    assert scene.run() is Verdict.POISON
    clock.advance(30_000)
    assert scene.run() is Verdict.POISON

    poison = "with poison of i1: delivered {} times, allowed are 10"
    assert scene.story == [
        "0 A fetch for 30000 -> t-11, attempt 11",
        f"0 A ack t-11 {poison.format(11)} -> retryable",
        "0 A counted poison",
        "30000 A fetch for 30000 -> t-12, attempt 12",
        f"30000 A ack t-12 {poison.format(12)} -> ok",
        "30000 A counted poison",
    ]
    assert scene.runs == []
    assert [completion.kind for completion in store.completions()] == [CompletionKind.POISON]


def test_the_last_allowed_attempt_is_not_poison(store: Store, clock: VirtualClock) -> None:
    scene = Scene(store, clock)
    for _ in range(9):
        delivery = store.fetch(1)
        assert delivery is not None
        store.abandon(delivery.token)

    assert scene.run() is Verdict.SUCCESS


def test_an_item_without_a_handler_is_given_back_for_1_2_4_to_60_seconds_and_then_is_poison(
    store: Store, clock: VirtualClock
) -> None:
    scene = Scene(store, clock)
    worker = scene.worker()
    worker.handlers = {}
    delays_s = [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]

    for delay_s in delays_s:
        assert worker.run_once(scene.store) is Verdict.ABANDONED
        clock.advance(delay_s * 1_000 - 1)
        assert worker.run_once(scene.store) is Verdict.IDLE
        clock.advance(1)

    assert worker.run_once(scene.store) is Verdict.POISON
    abandoned = [call.args[1:] for call in scene.store.recorded if call.operation == "abandon"]
    assert abandoned == [(delay_s * 1_000, False) for delay_s in delays_s]
    assert scene.runs == []
    assert scene.counted() == {"poison": 1}
