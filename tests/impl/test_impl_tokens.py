"""What a store does with a lock token: renew, ack, abandon; and each reason to refuse, over both stores."""

from contextlib import closing
from pathlib import Path

import pytest
from attrs import evolve
from impl_scenes import ITEM, OTHER, PAID, fetched, raw, refused

from peeklock.impl import (
    Completion,
    CompletionKind,
    MemoryStore,
    Row,
    Store,
    VirtualClock,
)

# renew


def test_renew_sets_the_lock_to_end_that_long_from_now(store: Store, clock: VirtualClock) -> None:
    store.enqueue(ITEM)
    token = fetched(store).token
    clock.advance(999)

    store.renew(token, 500)

    assert store.rows() == (Row(ITEM, 0, 1, token, 1_499),)


def test_renew_is_refused_at_the_very_millisecond_of_the_locks_end(store: Store, clock: VirtualClock) -> None:
    store.enqueue(ITEM)
    token = fetched(store).token
    clock.advance(1_000)

    with refused(store, "renew: the lock of token 't-1' has expired"):
        store.renew(token, 500)


def test_renew_is_refused_for_an_unknown_token(store: Store) -> None:
    store.enqueue(ITEM)
    fetched(store)

    with refused(store, "renew: token 't-9' is not current"):
        store.renew("t-9", 500)


def test_renew_is_refused_for_a_superseded_token(store: Store, clock: VirtualClock) -> None:
    store.enqueue(ITEM)
    token = fetched(store).token
    clock.advance(1_000)
    fetched(store)

    with refused(store, "renew: token 't-1' is not current"):
        store.renew(token, 500)


def test_renew_is_refused_after_abandon(store: Store) -> None:
    store.enqueue(ITEM)
    token = fetched(store).token
    store.abandon(token)

    with refused(store, "renew: token 't-1' is not current"):
        store.renew(token, 500)


# ack


def test_ack_removes_the_row_and_enqueues_the_completion(store: Store, clock: VirtualClock) -> None:
    store.enqueue(ITEM)
    store.enqueue(OTHER)
    token = fetched(store).token
    clock.advance(999)

    store.ack(token, PAID)

    assert store.rows() == (Row(OTHER, 0, 0, None, None),)
    assert store.completions() == (PAID,)


def test_ack_with_nothing_removes_the_row_and_enqueues_nothing(store: Store) -> None:
    store.enqueue(ITEM)

    store.ack(fetched(store).token, None)

    assert store.rows() == ()
    assert store.completions() == ()


@pytest.mark.parametrize("kind", CompletionKind)
def test_a_completion_of_each_kind_comes_out_as_it_went_in(store: Store, kind: CompletionKind) -> None:
    store.enqueue(ITEM)
    completion = Completion(kind, "i1", "line one\n\x00 ünï")

    store.ack(fetched(store).token, completion)

    assert store.completions() == (completion,)


def test_completions_are_listed_oldest_first(store: Store) -> None:
    for item in (OTHER, ITEM):
        store.enqueue(item)
        store.ack(fetched(store).token, Completion(CompletionKind.SUCCESS, item.id))

    assert [completion.item_id for completion in store.completions()] == ["i2", "i1"]


def test_ack_is_refused_at_the_very_millisecond_of_the_locks_end(store: Store, clock: VirtualClock) -> None:
    store.enqueue(ITEM)
    token = fetched(store).token
    clock.advance(1_000)

    with refused(store, "ack: the lock of token 't-1' has expired"):
        store.ack(token, PAID)


def test_ack_is_refused_for_an_unknown_token(store: Store) -> None:
    store.enqueue(ITEM)
    fetched(store)

    with refused(store, "ack: token 't-9' is not current"):
        store.ack("t-9", PAID)


def test_ack_is_refused_for_a_superseded_token_although_the_item_is_locked(
    store: Store, clock: VirtualClock
) -> None:
    store.enqueue(ITEM)
    token = fetched(store).token
    clock.advance(1_000)
    fetched(store)

    with refused(store, "ack: token 't-1' is not current"):
        store.ack(token, PAID)


def test_ack_is_refused_after_abandon(store: Store) -> None:
    store.enqueue(ITEM)
    token = fetched(store).token
    store.abandon(token)

    with refused(store, "ack: token 't-1' is not current"):
        store.ack(token, None)


def test_ack_is_refused_after_cancel(store: Store) -> None:
    store.enqueue(ITEM)
    token = fetched(store).token
    store.cancel(["i1"])

    with refused(store, "ack: token 't-1' is not current"):
        store.ack(token, PAID)


def test_ack_is_refused_with_another_items_completion(store: Store) -> None:
    store.enqueue(ITEM)
    store.enqueue(OTHER)
    token = fetched(store).token

    with refused(store, "ack: the completion is for item 'i2', the token is for 'i1'"):
        store.ack(token, Completion(CompletionKind.SUCCESS, "i2", "paid"))


# abandon


def test_abandon_clears_the_lock_and_hides_the_item_for_the_delay(store: Store, clock: VirtualClock) -> None:
    store.enqueue(ITEM)
    token = fetched(store).token
    clock.advance(10)

    store.abandon(token, delay_ms=5)

    assert store.rows() == (Row(ITEM, 15, 1, None, None),)
    clock.advance(4)
    assert store.fetch(1_000) is None
    clock.advance(1)
    assert fetched(store).attempt_count == 2


def test_abandon_without_a_delay_makes_the_item_fetchable_at_once(store: Store) -> None:
    store.enqueue(ITEM)
    store.abandon(fetched(store).token)

    assert fetched(store).token == "t-2"


def test_abandon_touches_no_other_item(store: Store) -> None:
    store.enqueue(ITEM)
    store.enqueue(OTHER)
    fetched(store)
    store.abandon(fetched(store).token, delay_ms=5)

    assert store.rows() == (Row(ITEM, 0, 1, "t-1", 1_000), Row(OTHER, 5, 1, None, None))


def test_abandon_works_with_a_current_token_whose_lock_has_expired(store: Store, clock: VirtualClock) -> None:
    store.enqueue(ITEM)
    token = fetched(store).token
    clock.advance(5_000)

    store.abandon(token)

    assert store.rows() == (Row(ITEM, 5_000, 1, None, None),)


def test_abandon_can_take_the_attempt_off_the_count(store: Store) -> None:
    store.enqueue(ITEM)
    store.abandon(fetched(store).token)
    store.abandon(fetched(store).token, ignore_attempt=True)

    assert store.rows()[0].attempt_count == 1


def test_the_attempt_count_never_falls_below_0(store: Store, path: Path) -> None:
    store.enqueue(ITEM)
    token = fetched(store).token
    # No sequence of calls leads to a locked row with count 0, but an older program's row might have it.
    if isinstance(store, MemoryStore):
        store._rows["i1"] = evolve(store._rows["i1"], attempt_count=0)
    else:
        with closing(raw(path)) as db:
            db.execute("UPDATE work SET attempt_count = 0")

    store.abandon(token, ignore_attempt=True)

    assert store.rows()[0].attempt_count == 0


def test_abandon_is_refused_for_an_unknown_token(store: Store) -> None:
    store.enqueue(ITEM)
    fetched(store)

    with refused(store, "abandon: token 't-9' is not current"):
        store.abandon("t-9")


def test_abandon_is_refused_for_a_superseded_token(store: Store, clock: VirtualClock) -> None:
    store.enqueue(ITEM)
    token = fetched(store).token
    clock.advance(1_000)
    fetched(store)

    with refused(store, "abandon: token 't-1' is not current"):
        store.abandon(token)


def test_abandon_is_refused_the_second_time(store: Store) -> None:
    store.enqueue(ITEM)
    token = fetched(store).token
    store.abandon(token, ignore_attempt=True)

    with refused(store, "abandon: token 't-1' is not current"):
        store.abandon(token, ignore_attempt=True)


def test_abandon_is_refused_after_an_ack(store: Store) -> None:
    store.enqueue(ITEM)
    token = fetched(store).token
    store.ack(token, PAID)

    with refused(store, "abandon: token 't-1' is not current"):
        store.abandon(token)
