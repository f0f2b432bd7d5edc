"""Scripts by Hypothesis: what may happen to a worker, with the rare and telling courses of events made common.

They depend on the policy only, never on what the worker does. The simplest comes first in every choice, so that a
run that fails is shortened to few deliveries in which little goes wrong.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from peeklock.harness.worker.schedule import renewal_interval_ms
from peeklock.harness.worker.script import (
    OK,
    PERMANENT,
    RESPONSE_LOST,
    RETRYABLE,
    DeliveryPlan,
    Fault,
    ItemPlan,
    Rival,
    Script,
)
from peeklock.spec.law.policy import Policy

MOST_ITEMS = 3
MOST_DELIVERIES = 4
_RIVALS: tuple[Rival, ...] = ("none", "completes", "crashes")


def scripts(policy: Policy) -> SearchStrategy[Script]:
    """Scripts for a worker of this policy."""
    items = st.builds(
        ItemPlan,
        delay_ms=st.sampled_from((0, 0, 1, 700, 20_000)),
        left=st.sampled_from((*(None,) * 8, 0, 1)),
    )
    return st.builds(
        Script,
        items=st.lists(items, min_size=1, max_size=MOST_ITEMS).map(tuple),
        deliveries=st.lists(deliveries(policy), min_size=1, max_size=MOST_DELIVERIES).map(tuple),
        fetches=st.lists(st.sampled_from((OK, OK, OK, OK, RETRYABLE, RESPONSE_LOST)), max_size=2).map(tuple),
    )


def deliveries(policy: Policy) -> SearchStrategy[DeliveryPlan]:
    """What happens to one delivery."""
    return st.one_of(
        _sequence(policy),
        _renewals(policy),
        _renewals_in_the_sequence(policy),
        _missing(),
        _cut_off(policy),
        _out_of_time(policy),
    )


_FAILS = st.booleans()
_RIVAL = st.sampled_from(_RIVALS)
_ABANDON = st.sampled_from((OK, RETRYABLE, RESPONSE_LOST, PERMANENT))
_CANCELLATION_ACK = st.sampled_from((OK, RETRYABLE, RESPONSE_LOST, PERMANENT))


def _acks(policy: Policy) -> SearchStrategy[tuple[Fault, ...]]:
    """Retryable errors, one of which may have taken effect, and then an end."""
    n = policy.ack_attempts
    errors = st.lists(st.sampled_from((RETRYABLE, RETRYABLE, RETRYABLE, RESPONSE_LOST)), max_size=n)
    last = st.sampled_from((OK, PERMANENT))
    return st.one_of(
        st.builds(lambda some, end: (*some, end), errors, last),
        st.lists(st.sampled_from((RETRYABLE, RESPONSE_LOST)), min_size=n, max_size=n).map(tuple),
    )


def _sequence(policy: Policy) -> SearchStrategy[DeliveryPlan]:
    return st.builds(
        DeliveryPlan,
        takes_ms=st.sampled_from((0, 0, 10, 3_000)),
        fails=_FAILS,
        acks=_acks(policy),
        abandon=_ABANDON,
        rival=_RIVAL,
    )


def _renewals(policy: Policy) -> SearchStrategy[DeliveryPlan]:
    """The handler runs for long, and renewals fail."""
    interval_ms, grace_ms = renewal_interval_ms(policy), policy.cancellation_grace_ms
    slow = Fault("none", policy.lock_timeout_ms)
    ends = tuple(sorted({interval_ms + d for d in (1, 1_000, grace_ms // 2, grace_ms)} | {3 * interval_ms}))
    return st.builds(
        DeliveryPlan,
        takes_ms=st.sampled_from(ends),
        fails=_FAILS,
        stops_ms=st.sampled_from((0, 1, grace_ms - 1 if grace_ms else 0, grace_ms, None)),
        renewals=st.one_of(
            st.lists(st.sampled_from((RETRYABLE, RESPONSE_LOST, PERMANENT, OK)), max_size=3).map(tuple),
            st.just((RETRYABLE,) * 12),
            st.just((slow,)),
        ),
        cancellation_ack=_CANCELLATION_ACK,
        abandon=_ABANDON,
        acks=_acks(policy),
        cancelled_ms=st.sampled_from((None, None, 500, interval_ms, interval_ms + 1)),
        rival=_RIVAL,
    )


def _renewals_in_the_sequence(policy: Policy) -> SearchStrategy[DeliveryPlan]:
    """The handler ends shortly before a renewal is due, and the acks fail across it."""
    interval_ms, waits_ms = renewal_interval_ms(policy), sum(policy.ack_waits_ms)
    before = tuple(sorted({max(0, interval_ms - d) for d in (1, 50, waits_ms // 2, waits_ms)}))
    faults = st.sampled_from((OK, RETRYABLE, RESPONSE_LOST, PERMANENT))
    return st.builds(
        DeliveryPlan,
        takes_ms=st.sampled_from(before),
        fails=_FAILS,
        acks=_acks(policy),
        renewals=st.lists(faults, min_size=1, max_size=4).map(tuple),
        abandon=_ABANDON,
        rival=_RIVAL,
    )


def _missing() -> SearchStrategy[DeliveryPlan]:
    return st.builds(DeliveryPlan, has_handler=st.just(False), abandon=_ABANDON, rival=_RIVAL)


def _cut_off(policy: Policy) -> SearchStrategy[DeliveryPlan]:
    """A shutdown or a crash, while the handler runs, while it is told to stop, or in the ack sequence."""
    interval_ms, grace_ms = renewal_interval_ms(policy), policy.shutdown_grace_ms
    takes = st.sampled_from((0, 500, interval_ms + 5_000))
    offsets = st.sampled_from((0, 50, 150, grace_ms // 2, grace_ms, 1_400))
    shutdown = st.builds(
        lambda takes_ms, offset_ms, **rest: DeliveryPlan(
            takes_ms=takes_ms, shutdown_ms=takes_ms + offset_ms, **rest
        ),
        takes,
        offsets,
        acks=_acks(policy),
        abandon=_ABANDON,
        rival=_RIVAL,
    )
    early = st.builds(
        DeliveryPlan,
        takes_ms=st.sampled_from((interval_ms + 5_000, 2_000)),
        shutdown_ms=st.sampled_from((0, 1, 1_500, interval_ms + 1, interval_ms - 1)),
        stops_ms=st.sampled_from((None, 500)),
        renewals=st.sampled_from(((), (RETRYABLE,), (PERMANENT,))),
        cancellation_ack=_CANCELLATION_ACK,
        rival=_RIVAL,
    )
    crash = st.builds(
        DeliveryPlan,
        takes_ms=takes,
        acks=_acks(policy),
        crash_at=st.integers(1, 8),
        rival=_RIVAL,
    )
    return st.one_of(shutdown, early, crash)


def _out_of_time(policy: Policy) -> SearchStrategy[DeliveryPlan]:
    """Calls that take so long that the lock is over, or the item is cancelled meanwhile."""
    lock_ms = policy.lock_timeout_ms
    slow = tuple(Fault(kind, ms) for kind in ("none", "retryable") for ms in (lock_ms, lock_ms // 2))
    acks = st.sampled_from((*slow, RETRYABLE, RESPONSE_LOST))
    return st.builds(
        DeliveryPlan,
        takes_ms=st.sampled_from((0, 500)),
        fails=_FAILS,
        acks=st.lists(acks, min_size=1, max_size=policy.ack_attempts).map(tuple),
        cancelled_ms=st.sampled_from((None, 0, 1, 499, 500, 550, 700)),
        abandon=st.sampled_from((OK, Fault("none", lock_ms))),
        rival=_RIVAL,
    )
