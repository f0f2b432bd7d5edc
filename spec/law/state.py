"""What there is: the state of the store, of the workers, and the history that promises speak of.

A **delivery** of item i is named by its lock token. Tokens of an item are the numbers 1, 2, 3, ... in the order
in which they were issued, so a fresh one is always at hand and the pair (item, token) names a delivery; 0 is no
token.
"""

from __future__ import annotations

import enum

from peeklock.spec.notation.terms import BOOL, ITEM, NAT, NO_ITEM, WORKER, Variable, enumeration


class Row(enum.Enum):
    """Where an item stands in the store's worker queue."""

    ABSENT = "not yet enqueued"
    DELAYED = "waiting for its visible_at"
    READY = "visible and unlocked"
    LOCKED = "locked, unexpired"
    EXPIRED = "its lock has run out, nobody has fetched it since"
    ACKED = "deleted by an ack"
    CANCELLED = "deleted by the orchestrator"


class Phase(enum.Enum):
    """What a worker is doing with the delivery in its hand."""

    IDLE = "has nothing in hand"
    FETCHED = "has an item and has not begun with it"
    HANDLING = "runs the handler"
    STOPPING = "has told the handler to stop and gives it its grace"
    CANCELLING = "is about to send the cancellation ack"
    ACKING = "is in its ack sequence"
    ABANDONING = "is about to abandon, whatever the answer"
    DECIDING = "is about to abandon, and lets the answer decide"


class Result(enum.Enum):
    """What the completion of the delivery in hand carries."""

    NONE = "nothing yet"
    SUCCESS = "a result"
    APPLICATION_ERROR = "an application error"
    POISON = "a poison failure"


class Last(enum.Enum):
    """The answer to the latest attempt of the ack sequence in hand."""

    NONE = "no attempt yet"
    RETRYABLE = "a retryable error"
    PERMANENT = "a permanent error"


class Trouble(enum.Enum):
    """What went wrong with the delivery in hand before or instead of its ack sequence."""

    NONE = "nothing"
    HANDLER_MISSING = "no handler is registered"
    RENEWAL_RETRYABLE = "a retryable renewal error while the handler ran"
    RENEWAL_PERMANENT = "a permanent renewal error while the handler ran"
    LOCK_OVER = "its renewals failed until its lock was over"
    CANCELLATION_ACK_FAILED = "the cancellation ack failed"


# The store: its worker queue and its orchestrator queue.
row = Variable("row", ITEM, enumeration(Row), Row.ABSENT, "where the item stands in the worker queue")
current = Variable("current", ITEM, NAT, 0, "the row's lock token; 0 when it has none")
issued = Variable("issued", ITEM, NAT, 0, "how many tokens were issued for the item")
attempt_count = Variable("attempt_count", ITEM, NAT, 0, "the row's attempt count")
completions = Variable("completions", ITEM, NAT, 0, "completions of the item on the orchestrator's queue")

# A worker: what it believes about the delivery in its hand.
phase = Variable("phase", WORKER, enumeration(Phase), Phase.IDLE, "what the worker is doing")
working_on = Variable("working_on", WORKER, ITEM, NO_ITEM, "the item in hand")
token = Variable("token", WORKER, NAT, 0, "the lock token in hand")
renewing = Variable(
    "renewing", WORKER, BOOL, False, "the worker sees to it that its lock, fresh or renewed, lasts"
)
draining = Variable("draining", WORKER, BOOL, False, "a shutdown has begun and its grace runs")
result = Variable("result", WORKER, enumeration(Result), Result.NONE, "what the completion carries")
attempts = Variable("attempts", WORKER, NAT, 0, "attempts made in the ack sequence")
last = Variable("last", WORKER, enumeration(Last), Last.NONE, "the answer to the latest attempt")
trouble = Variable(
    "trouble", WORKER, enumeration(Trouble), Trouble.NONE, "what went wrong before the ack sequence"
)

# History: written by every step, read by promises only. See history.py.
completed_by = Variable("completed_by", ITEM, NAT, 0, "the token whose ack enqueued the latest completion")
acked_by = Variable("acked_by", ITEM, NAT, 0, "the token whose ack deleted the row")
ran = Variable("ran", ITEM, BOOL, False, "a handler has run for the item")
excused = Variable("excused", ITEM, BOOL, False, "something happened that may make the handler run again")
poisoned = Variable("poisoned", ITEM, BOOL, False, "the item was counted as poison")
said_uncertain = Variable(
    "said_uncertain", WORKER, BOOL, False, "the delivery in hand was counted as uncertain"
)
said_error = Variable(
    "said_error", WORKER, BOOL, False, "the delivery in hand was counted as infrastructure error"
)

STORE = (row, current, issued, attempt_count, completions)
BELIEF = (phase, working_on, token, renewing, draining, result, attempts, last, trouble)
HISTORY = (completed_by, acked_by, ran, excused, poisoned, said_uncertain, said_error)
VARIABLES = STORE + BELIEF + HISTORY
