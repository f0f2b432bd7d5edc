"""The store's contract, rule by rule and refusal by refusal, over both stores."""

import pytest

from peeklock.impl import Completion, CompletionKind, PermanentError, Row, Store, VirtualClock, WorkItem

ITEM = WorkItem("i1", "order-1", "charge", "42")
OTHER = WorkItem("i2", "order-2", "charge", "43")
DONE = Completion(CompletionKind.SUCCESS, "i1", "paid")


def test_a_new_item_can_be_fetched_at_once_and_is_then_locked(store: Store) -> None:
    store.enqueue(ITEM)

    delivery = store.fetch(1_000)

    assert delivery is not None
    assert delivery.item == ITEM
    assert delivery.attempt_count == 1
    assert delivery.locked_until_ms == 1_000
    assert store.rows() == (Row(ITEM, 0, 1, delivery.token, 1_000),)
    assert store.fetch(1_000) is None


def test_an_ack_removes_the_row_and_enqueues_the_completion(store: Store) -> None:
    store.enqueue(ITEM)
    delivery = store.fetch(1_000)
    assert delivery is not None

    store.ack(delivery.token, DONE)

    assert store.rows() == ()
    assert store.completions() == (DONE,)


def test_acking_the_same_token_twice_is_refused_and_enqueues_nothing(
    store: Store, clock: VirtualClock
) -> None:
    store.enqueue(ITEM)
    delivery = store.fetch(1_000)
    assert delivery is not None
    store.ack(delivery.token, DONE)

    with pytest.raises(PermanentError, match="ack: token 't-1' is not current"):
        store.ack(delivery.token, DONE)

    assert store.rows() == ()
    assert store.completions() == (DONE,)
