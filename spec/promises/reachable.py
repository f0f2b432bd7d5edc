"""What must be able to happen, R1 to R10: a protocol in which it cannot is safe because nothing happens."""

from __future__ import annotations

from peeklock.spec.law.state import (
    Phase,
    Result,
    attempts,
    completed_by,
    completions,
    current,
    phase,
    ran,
    result,
    token,
)
from peeklock.spec.law.store import in_queue
from peeklock.spec.notation.actions import Answer, Call, Event, Metric
from peeklock.spec.notation.terms import ITEM, TRUE, WORKER, every
from peeklock.spec.promises.promise import Possibility, always, at, calling, counting, happening
from peeklock.spec.promises.settlement import commits

uncertain = counting(Metric.UNCERTAIN)
delivers = calling(Call.FETCH, answers=(Answer.OK,))
tries = "ack-retryable"

POSSIBILITIES = (
    Possibility(
        "R1",
        "uncertain is said of a delivery whose completion was enqueued",
        at("enqueued", uncertain, lambda s: completed_by[s.i] == token[s.w]),
        impossible_in=("before",),
        needs=frozenset({"response-lost"}),
    ),
    Possibility(
        "R2",
        "uncertain is said of a delivery that enqueued nothing",
        at("nothing enqueued", uncertain, lambda s: in_queue(s.i) & (completions[s.i] == 0)),
        impossible_in=("before",),
        needs=frozenset({tries, "ack-permanent"}),
    ),
    Possibility(
        "R3",
        "an item is delivered again after it was called uncertain",
        at("uncertain", uncertain, lambda s: TRUE),
        then=delivers,
        impossible_in=("before",),
        needs=frozenset({tries, "ack-permanent"}),
    ),
    Possibility(
        "R4",
        "a handler runs a second time",
        at("it has run before", happening(Event.HANDLER_STARTS), lambda s: ran[s.i]),
        needs=frozenset({"crash"}),
    ),
    Possibility(
        "R5",
        "a second delivery completes its item",
        at("a later token", commits, lambda s: token[s.w] > 1),
        needs=frozenset({"crash"}),
    ),
    Possibility(
        "R6",
        "an item is completed as poison",
        at("a poison failure", commits, lambda s: result[s.w] == Result.POISON),
    ),
    Possibility(
        "R7",
        "every item is completed and every worker idle",
        always(
            "settled",
            every(ITEM, lambda i: completions[i] == 1) & every(WORKER, lambda w: phase[w] == Phase.IDLE),
        ),
    ),
    Possibility(
        "R8",
        "an ack is still retried when another worker has the item",
        at(
            "the token is superseded",
            calling(Call.ACK, answers=(Answer.PERMANENT,)),
            lambda s: (attempts[s.w] > 0) & (token[s.w] < current[s.i]),
        ),
        impossible_in=("before",),
        needs=frozenset({tries, "expiry"}),
        needs_workers=2,
    ),
    Possibility(
        "R9",
        "a lock is renewed while its ack is retried",
        at("after an attempt", calling(Call.RENEW, answers=(Answer.OK,)), lambda s: attempts[s.w] > 0),
        impossible_in=("before",),
        needs=frozenset({tries}),
    ),
    Possibility(
        "R10",
        "a shutdown cuts an ack sequence short",
        at(
            "after an attempt",
            happening(Event.GRACE_ENDS),
            lambda s: (phase[s.w] == Phase.ACKING) & (attempts[s.w] > 0),
        ),
        impossible_in=("before",),
        needs=frozenset({tries, "shutdown"}),
    ),
)

NEVER_TAKEN: dict[str, tuple[str, ...]] = {
    "before": ("refusal is uncertain",),
    "retry": (),
    "hardened": ("cancellation ack",),
}
"""What actions are called that a policy is stated never to take; every other one must be taken by somebody."""
