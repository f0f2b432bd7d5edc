"""The environment: what happens to the store and the workers without being asked for."""

from __future__ import annotations

from peeklock.spec.law.faults import fault
from peeklock.spec.law.state import Phase, Row, current, draining, phase, renewing, row, token, working_on
from peeklock.spec.law.worker import forget
from peeklock.spec.notation.actions import Clause, Event, Item, Timer, Worker, event, when
from peeklock.spec.notation.terms import WORKER, Term, every


def nobody_renews(i: Item) -> Term:
    """No worker keeps the lock of this row renewed."""
    return every(WORKER, lambda w: ~((working_on[w] == i) & (token[w] == current[i]) & renewing[w]))


@event(Event.VISIBLE, due=Timer.VISIBILITY)
def item_becomes_visible(i: Item) -> Clause:
    """visible_at is reached."""
    return when(
        row[i] == Row.DELAYED,
    ).then(
        row[i].becomes(Row.READY),
    )


@event(Event.EXPIRES, due=Timer.LOCK)
def lock_expires(i: Item) -> Clause:
    """locked_until is reached; the token stays the row's own until somebody fetches it."""
    return when(
        row[i] == Row.LOCKED,
        # Renewals come in time, unless something holds them up.
        fault("expiry") | nobody_renews(i),
    ).then(
        row[i].becomes(Row.EXPIRED),
    )


@event(Event.CRASH)
def worker_crashes(w: Worker, i: Item) -> Clause:
    """The worker forgets everything and begins anew; the row stays as it is."""
    return when(
        fault("crash"),
        working_on[w] == i,
    ).then(
        forget(w),
        draining[w].becomes(False),
    )


@event(Event.SHUTDOWN)
def shutdown_begins(w: Worker) -> Clause:
    """No new fetches, renewing stops, and work in hand gets its grace."""
    return when(
        fault("shutdown"),
        ~draining[w],
    ).then(
        draining[w].becomes(True),
        renewing[w].becomes(False),
    )


@event(Event.GRACE_ENDS)
def grace_ends_and_work_is_dropped(w: Worker, i: Item) -> Clause:
    """Work in hand is dropped as in a crash, and another runtime begins."""
    return when(
        draining[w],
        working_on[w] == i,
    ).then(
        forget(w),
        draining[w].becomes(False),
    )


@event(Event.GRACE_ENDS)
def shutdown_is_complete(w: Worker) -> Clause:
    """The worker had nothing left in hand; another runtime begins."""
    return when(
        draining[w],
        phase[w] == Phase.IDLE,
    ).then(
        draining[w].becomes(False),
    )


EVENTS = (
    item_becomes_visible,
    lock_expires,
    worker_crashes,
    shutdown_begins,
    grace_ends_and_work_is_dropped,
    shutdown_is_complete,
)
