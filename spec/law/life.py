"""The life of a delivery: what it is in truth, and what each verdict of the worker allows the truth to be."""

from __future__ import annotations

import enum

from peeklock.spec.law.policy import AfterExhaustion, Policy
from peeklock.spec.law.state import Row, acked_by, current, issued, row
from peeklock.spec.law.store import in_queue
from peeklock.spec.notation.actions import Item, Metric, Token
from peeklock.spec.notation.terms import Term


class Life(enum.Enum):
    """What a delivery is, in the store's truth. (Uncertain is not here: it is the worker's verdict.)"""

    LOCKED = "its token is current and unexpired"
    ACKED = "its ack committed and the row is gone, with or without a completion"
    ABANDONED = "given back; the row waits for another delivery"
    EXPIRED = "its lock ran out; another delivery may have begun"
    CANCELLED = "its row was deleted by the orchestrator"


def is_in(life: Life, i: Item, t: Token) -> Term:
    """The delivery of item i under token t is in this state. A superseded delivery counts as expired."""
    match life:
        case Life.LOCKED:
            return (row[i] == Row.LOCKED) & (current[i] == t)
        case Life.ACKED:
            return (row[i] == Row.ACKED) & (acked_by[i] == t)
        case Life.ABANDONED:
            return in_queue(i) & (current[i] == 0) & (issued[i] == t)
        case Life.EXPIRED:
            return ((row[i] == Row.EXPIRED) & (current[i] == t)) | (t < issued[i])
        case Life.CANCELLED:
            return (row[i] == Row.CANCELLED) & (issued[i] == t)


def allowed_by(verdict: Metric, policy: Policy) -> tuple[Life, ...]:
    """What the truth may be when the worker counts this verdict. Poison that is counted unheard allows anything."""
    match verdict:
        case Metric.SUCCESS | Metric.APPLICATION_ERROR:
            return (Life.ACKED,)
        case Metric.UNCERTAIN:
            # Where an unheard abandon is called uncertain, it may have been accepted.
            decided = policy.after_exhaustion is AfterExhaustion.ABANDON_DECIDES
            extra = (Life.ABANDONED,) if decided else ()
            return (Life.LOCKED, Life.ACKED, Life.EXPIRED, Life.CANCELLED, *extra)
        case Metric.INFRASTRUCTURE_ERROR:
            return tuple(life for life in Life if life is not Life.ACKED)
        case Metric.POISON:
            return tuple(Life)


IN_HAND = Life.LOCKED
"""What a worker takes a delivery for while it has it in hand: nobody tells it what becomes of the row meanwhile."""
