"""History: facts about the past that promises speak of. Every step writes them; no guard of the protocol reads them.

Each rule looks only at what a step is (its label) and at the worker and item it is about, so a mistake in the
worker cannot talk itself out of what it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from peeklock.spec.law.state import (
    acked_by,
    attempts,
    completed_by,
    excused,
    poisoned,
    ran,
    said_error,
    said_uncertain,
    token,
)
from peeklock.spec.notation.actions import ABANDONS, ACKS, Answer, Call, Event, Label, Metric
from peeklock.spec.notation.terms import Assignment, Term, choose

PROMISED_ATTEMPTS = 5
"""The five of promises S9, S10 and S11: the promise's own number, not the policy's."""

_EXCUSING_EVENTS = (Event.EXPIRES, Event.CRASH, Event.GRACE_ENDS)


def recorded(
    label: Label, w: Term | None, i: Term | None, effects: Iterable[Assignment] = ()
) -> Iterator[Assignment]:
    """What a step with this label, by worker w and about item i, adds to the history."""
    if w is not None:
        yield from _of_delivery(label, w, effects)
    if i is None:
        return
    if label.event is Event.HANDLER_STARTS:
        yield ran[i].becomes(True)
    if label.event in _EXCUSING_EVENTS:
        yield excused[i].becomes(True)
    if w is None:
        return
    if label.call in ACKS and label.takes_effect:
        yield acked_by[i].becomes(token[w])
    if label.call is Call.ACK and label.takes_effect:
        yield completed_by[i].becomes(token[w])
    refused = label.answer is Answer.PERMANENT and label.call not in ABANDONS
    if refused or (label.call is Call.RENEW and label.answer is Answer.RETRYABLE):
        yield excused[i].becomes(True)
    elif label.call is Call.ACK and label.answer is Answer.RETRYABLE:
        exhausted = attempts[w] + 1 >= PROMISED_ATTEMPTS
        yield excused[i].becomes(choose(exhausted, True, excused[i]))
    if label.counts is Metric.POISON:
        yield poisoned[i].becomes(True)


def _of_delivery(label: Label, w: Term, effects: Iterable[Assignment]) -> Iterator[Assignment]:
    """What was said of the delivery in hand: kept exactly as long as the worker keeps its token."""
    if any(a.target is token[w] for a in effects):
        yield said_uncertain[w].becomes(False)
        yield said_error[w].becomes(False)
    elif label.counts is Metric.UNCERTAIN:
        yield said_uncertain[w].becomes(True)
    elif label.counts is Metric.INFRASTRUCTURE_ERROR:
        yield said_error[w].becomes(True)
