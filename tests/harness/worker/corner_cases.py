"""The corners: for each way in which a delivery can go wrong, the short script in which it does; played first."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from peeklock.harness.worker.schedule import renewal_interval_ms
from peeklock.harness.worker.script import (
    OK,
    PERMANENT,
    RESPONSE_LOST,
    RETRYABLE,
    DeliveryPlan,
    Fault,
    ItemPlan,
    Script,
)
from peeklock.spec.law.policy import Policy

_ANSWERS = (OK, RETRYABLE, RESPONSE_LOST, PERMANENT)
_ERRORS = _ANSWERS[1:]


def corners(policy: Policy) -> tuple[Script, ...]:
    """The corners of a policy, the plainest first."""
    plans = (
        *_plain(policy),
        *_sequences(policy),
        *_renewals(policy),
        *_renewals_in_the_sequence(policy),
        *_late(policy),
        *_cut_off(policy),
    )
    two = Script((ItemPlan(), ItemPlan()), (DeliveryPlan(acks=(RETRYABLE,)), DeliveryPlan(acks=(RETRYABLE,))))
    return (
        Script(),
        *(Script(deliveries=(plan,)) for plan in plans),
        *(Script((ItemPlan(left=0),), (DeliveryPlan(acks=(fault,)),)) for fault in _ANSWERS),
        Script(
            (ItemPlan(left=0),),
            (DeliveryPlan(acks=(Fault("none", policy.lock_timeout_ms),), rival="crashes"),),
        ),
        *(Script((ItemPlan(left=1),), (DeliveryPlan(acks=(fault,)),)) for fault in (OK, PERMANENT)),
        *(Script(fetches=(fault,)) for fault in (RETRYABLE, RESPONSE_LOST)),
        Script((ItemPlan(delay_ms=20_000),)),
        two,
        evolve(two, deliveries=(evolve(two.deliveries[0], fails=True), two.deliveries[1])),
    )


def _plain(policy: Policy) -> Iterator[DeliveryPlan]:
    yield DeliveryPlan(fails=True)
    yield DeliveryPlan(takes_ms=policy.lock_timeout_ms)
    yield DeliveryPlan(takes_ms=3 * policy.lock_timeout_ms)
    for fault in _ANSWERS:
        yield DeliveryPlan(has_handler=False, abandon=fault)


def _sequences(policy: Policy) -> Iterator[DeliveryPlan]:
    for end in (OK, PERMANENT, RESPONSE_LOST):
        for n in range(policy.ack_attempts):
            yield DeliveryPlan(acks=(*(RETRYABLE,) * n, end))
    yield DeliveryPlan(fails=True, acks=(RETRYABLE,) * (policy.ack_attempts - 1))
    for fault in _ANSWERS:
        yield DeliveryPlan(acks=(RETRYABLE,) * policy.ack_attempts, abandon=fault)
        yield DeliveryPlan(acks=(PERMANENT,), abandon=fault)
    yield DeliveryPlan(acks=(*(RETRYABLE,) * (policy.ack_attempts - 1), RESPONSE_LOST), abandon=PERMANENT)


def _renewals(policy: Policy) -> Iterator[DeliveryPlan]:
    """The handler runs across a renewal that fails."""
    interval_ms, grace_ms = renewal_interval_ms(policy), policy.cancellation_grace_ms
    ends_ms = interval_ms + grace_ms + 1_000
    for error in _ERRORS:
        for stops_ms in (0, grace_ms // 2, None):
            yield DeliveryPlan(takes_ms=ends_ms, renewals=(error,), stops_ms=stops_ms)
        yield DeliveryPlan(takes_ms=2 * ends_ms, renewals=(OK, error))
        yield DeliveryPlan(takes_ms=interval_ms + 1, renewals=(error,), stops_ms=None)
        for ack in _ERRORS:
            yield DeliveryPlan(takes_ms=ends_ms, renewals=(error,), cancellation_ack=ack)
    for abandon in _ERRORS:
        yield DeliveryPlan(
            takes_ms=ends_ms, renewals=(PERMANENT,), cancellation_ack=RETRYABLE, abandon=abandon
        )
    yield DeliveryPlan(takes_ms=4 * policy.lock_timeout_ms, renewals=(RETRYABLE,) * 40, stops_ms=None)
    yield DeliveryPlan(takes_ms=ends_ms, cancelled_ms=500)


def _renewals_in_the_sequence(policy: Policy) -> Iterator[DeliveryPlan]:
    """The handler ends shortly before a renewal, and the acks fail across it."""
    waits_ms = sum(policy.ack_waits_ms)
    takes_ms = max(0, renewal_interval_ms(policy) - waits_ms // 2)
    acks = (RETRYABLE,) * (policy.ack_attempts - 1)
    for fault in _ANSWERS:
        yield DeliveryPlan(takes_ms=takes_ms, acks=acks, renewals=(fault,))
    yield DeliveryPlan(takes_ms=takes_ms, acks=acks, cancelled_ms=takes_ms + 1)


def _late(policy: Policy) -> Iterator[DeliveryPlan]:
    """A call takes so long that the lock is over."""
    slow = Fault("none", policy.lock_timeout_ms)
    slow_error = Fault("retryable", policy.lock_timeout_ms)
    for rival in ("none", "completes", "crashes"):
        yield DeliveryPlan(acks=(slow,), rival=rival)
        yield DeliveryPlan(acks=(slow_error,), rival=rival)
        yield DeliveryPlan(takes_ms=2 * policy.lock_timeout_ms, renewals=(slow,), rival=rival)
        yield DeliveryPlan(acks=(slow,), abandon=PERMANENT, rival=rival)
    yield DeliveryPlan(acks=(RETRYABLE,), cancelled_ms=50)
    yield DeliveryPlan(takes_ms=100, cancelled_ms=50)


def _cut_off(policy: Policy) -> Iterator[DeliveryPlan]:
    """A shutdown or a crash."""
    interval_ms, grace_ms = renewal_interval_ms(policy), policy.shutdown_grace_ms
    acks = (RETRYABLE,) * policy.ack_attempts
    for after_ms in (0, 50, grace_ms + 400):
        yield DeliveryPlan(takes_ms=500, acks=acks, shutdown_ms=500 + after_ms)
    yield DeliveryPlan(shutdown_ms=0)
    yield DeliveryPlan(takes_ms=grace_ms // 2, shutdown_ms=0)
    yield DeliveryPlan(takes_ms=interval_ms + 10_000, shutdown_ms=interval_ms - grace_ms // 2)
    yield DeliveryPlan(
        takes_ms=interval_ms + 10_000, renewals=(PERMANENT,), stops_ms=None, shutdown_ms=interval_ms
    )
    yield DeliveryPlan(has_handler=False, shutdown_ms=0)
    for call in (1, 2, 3, 5):
        yield DeliveryPlan(takes_ms=500, acks=acks, crash_at=call, rival="completes")
