"""What a store takes in and gives out: enqueue, fetch, cancel, malformed input, over both stores."""

import pytest
from impl_scenes import ITEM, OTHER, PAID, fetched, refused

from peeklock.impl import (
    Completion,
    CompletionKind,
    Delivery,
    MemoryStore,
    Row,
    Store,
    VirtualClock,
    WorkItem,
)

# enqueue and fetch


def test_a_new_item_has_attempt_count_0_and_no_lock(store: Store) -> None:
    store.enqueue(ITEM)

    assert store.rows() == (Row(ITEM, 0, 0, None, None),)


def test_fetch_locks_the_item_and_counts_the_attempt(store: Store, clock: VirtualClock) -> None:
    clock.advance(5)
    store.enqueue(ITEM)

    assert fetched(store) == Delivery(ITEM, "t-1", 1, 1_005)
    assert store.rows() == (Row(ITEM, 5, 1, "t-1", 1_005),)


def test_fetch_takes_the_oldest_first_whenever_it_became_visible(store: Store, clock: VirtualClock) -> None:
    store.enqueue(ITEM, delay_ms=10)
    store.enqueue(OTHER)
    clock.advance(10)

    assert [fetched(store).item, fetched(store).item] == [ITEM, OTHER]
    assert store.fetch(1_000) is None


def test_an_abandoned_item_keeps_its_place(store: Store) -> None:
    store.enqueue(ITEM)
    store.enqueue(OTHER)
    store.abandon(fetched(store).token)

    assert fetched(store).item == ITEM


def test_an_enqueue_delay_hides_the_item_until_it_is_over(store: Store, clock: VirtualClock) -> None:
    store.enqueue(ITEM, delay_ms=10)
    clock.advance(9)
    assert store.fetch(1_000) is None
    clock.advance(1)

    assert fetched(store).attempt_count == 1


def test_a_locked_item_cannot_be_fetched_until_the_very_millisecond_of_its_end(
    store: Store, clock: VirtualClock
) -> None:
    store.enqueue(ITEM)
    fetched(store)
    clock.advance(999)
    assert store.fetch(1_000) is None
    clock.advance(1)

    assert fetched(store) == Delivery(ITEM, "t-2", 2, 2_000)


def test_tokens_are_never_used_again(store: Store) -> None:
    store.enqueue(ITEM)
    tokens = []
    for _ in range(5):
        tokens.append(fetched(store).token)
        store.abandon(tokens[-1])
    store.cancel([ITEM.id])
    store.enqueue(ITEM)
    tokens.append(fetched(store).token)

    assert len(set(tokens)) == 6


def test_a_token_of_another_store_is_not_current_here(clock: VirtualClock) -> None:
    one, other = MemoryStore(clock), MemoryStore(clock)
    one.enqueue(ITEM)
    other.enqueue(ITEM)
    token = fetched(one).token

    assert fetched(other).token != token
    with refused(other, "is not current"):
        other.ack(token, PAID)


def test_enqueue_refuses_an_id_that_is_queued(store: Store) -> None:
    store.enqueue(ITEM)

    with refused(store, "enqueue: item 'i1' is already queued or completed"):
        store.enqueue(WorkItem("i1", "another", "charge"))


def test_enqueue_refuses_an_id_that_has_a_completion(store: Store) -> None:
    store.enqueue(ITEM)
    store.ack(fetched(store).token, PAID)

    with refused(store, "enqueue: item 'i1' is already queued or completed"):
        store.enqueue(ITEM)


# cancel


def test_cancel_removes_queued_and_locked_items_and_ignores_other_ids(store: Store) -> None:
    kept = WorkItem("i3", "order-3", "charge")
    for item in (ITEM, OTHER, kept):
        store.enqueue(item)
    fetched(store)

    assert store.cancel(["i2", "none", "i1", "i2"]) == ("i2", "i1")

    assert [row.item for row in store.rows()] == [kept]
    assert store.completions() == ()


def test_cancel_leaves_completions_alone(store: Store) -> None:
    store.enqueue(ITEM)
    store.ack(fetched(store).token, PAID)

    assert store.cancel(["i1"]) == ()

    assert store.completions() == (PAID,)


def test_cancel_refuses_a_string_in_place_of_a_list(store: Store) -> None:
    store.enqueue(WorkItem("i", "order-1", "charge"))

    with refused(store, "cancel: a list of ids is needed, not the string 'i'"):
        store.cancel("i")


# malformed durations


@pytest.mark.parametrize("delay_ms", [-1, 0.5, True, 10**15 + 1])
def test_enqueue_refuses_a_malformed_delay(store: Store, delay_ms: int) -> None:
    with refused(store, "enqueue: delay_ms must be an integer from 0 to"):
        store.enqueue(ITEM, delay_ms)


@pytest.mark.parametrize("lock_timeout_ms", [0, -1, 0.5, True, 10**15 + 1])
def test_fetch_refuses_a_malformed_lock_timeout(store: Store, lock_timeout_ms: int) -> None:
    store.enqueue(ITEM)

    with refused(store, "fetch: lock_timeout_ms must be an integer from 1 to"):
        store.fetch(lock_timeout_ms)


@pytest.mark.parametrize("extend_for_ms", [0, -1, 0.5, True, 10**15 + 1])
def test_renew_refuses_a_malformed_extension(store: Store, extend_for_ms: int) -> None:
    store.enqueue(ITEM)
    token = fetched(store).token

    with refused(store, "renew: extend_for_ms must be an integer from 1 to"):
        store.renew(token, extend_for_ms)


@pytest.mark.parametrize("delay_ms", [-1, 0.5, True, 10**15 + 1])
def test_abandon_refuses_a_malformed_delay(store: Store, delay_ms: int) -> None:
    store.enqueue(ITEM)
    token = fetched(store).token

    with refused(store, "abandon: delay_ms must be an integer from 0 to"):
        store.abandon(token, delay_ms)


def test_the_shortest_and_the_longest_durations_are_well_formed(store: Store) -> None:
    store.enqueue(ITEM)
    token = fetched(store, 10**15).token
    store.renew(token, 10**15)
    store.renew(token, 1)
    store.abandon(token, 0)
    store.abandon(fetched(store, 1).token, 10**15)
    store.enqueue(OTHER, 10**15)

    assert [row.visible_at_ms for row in store.rows()] == [10**15, 10**15]


def test_records_refuse_what_a_store_could_not_keep() -> None:
    with pytest.raises(TypeError):
        WorkItem(1, "order-1", "charge")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        WorkItem("i1", "order-1", "charge", b"42")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Completion("success", "i1")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Completion(CompletionKind.SUCCESS, "i1", None)  # type: ignore[arg-type]
