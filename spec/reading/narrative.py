"""Narrative: a run of the protocol told in words, for somebody who has not read it.

Every line has a lane: who did what, what the store answered, what became true in the store, and what the worker
now believes. Only what changed is told.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache

from attrs import frozen

from peeklock.spec.compose import ACTIONS, I, W
from peeklock.spec.law.faults import KNOWN_FAULTS, fault
from peeklock.spec.law.state import (
    Phase,
    Result,
    Row,
    attempt_count,
    attempts,
    completions,
    current,
    draining,
    phase,
    renewing,
    result,
    row,
)
from peeklock.spec.notation.actions import Action, Answer, Call, Event, Label, Metric
from peeklock.spec.notation.terms import Term, Variable, after, arguments, both, substitute
from peeklock.spec.reading.evaluate import PLACE, Record, State, decoded, predicate
from peeklock.spec.reading.wording import Saying, said, worker_name

_BY_NAME = {a.name: a for a in ACTIONS}
_COMPLETIONS = {
    Result.NONE: "nothing",
    Result.SUCCESS: "result",
    Result.APPLICATION_ERROR: "application error",
    Result.POISON: "poison failure",
}


@frozen
class Line:
    """One step, told."""

    who: str
    does: str
    answer: str
    truth: tuple[str, ...]
    belief: tuple[str, ...]
    faults: tuple[str, ...]


# Who does what, and what is answered


def actor(label: Label, worker: str | None) -> str:
    """Who takes a step: the worker that has this name, the orchestrator, or time."""
    if worker is not None:
        return f"worker {worker}"
    return "orchestrator" if label.call in (Call.ENQUEUE, Call.CANCEL) else "time"


def doings(label: Label) -> tuple[Saying, ...]:
    """What is done in a step with this label; one of these is told."""
    match label.call:
        case Call.ENQUEUE | Call.CANCEL:
            return (Saying(f"{label.call.value} {{item}}"),)
        case Call.FETCH:
            return (Saying("fetch"),)
        case Call.RENEW:
            return (Saying("renew {held}"),)
        case Call.ACK:
            return tuple(
                Saying(f"ack {{held}} with the {word}, attempt {{attempt}}", result[W] == carried)
                for carried, word in _COMPLETIONS.items()
            )
        case Call.CANCELLATION_ACK:
            return (Saying("ack {held} with no completion"),)
        case Call.ABANDON:
            return (Saying("abandon {held}"),)
        case Call.ABANDON_IGNORING_ATTEMPT:
            return (Saying("abandon {held}, ignoring the attempt"),)
        case None:
            assert label.event is not None
            told = {
                Event.EXPIRES: "the lock of {item} runs out",
                Event.VISIBLE: "the delay of {item} is over",
            }
            return (Saying(told.get(label.event, label.event.value)),)


def answers(label: Label) -> tuple[Saying, ...]:
    """What is answered in a step with this label; nothing where nothing is asked."""
    if label.answer is None or label.call in (Call.ENQUEUE, Call.CANCEL):
        return ()
    if label.call is Call.FETCH and label.answer is Answer.OK:
        return (Saying("{item} under {fresh}, attempt count {next_count}"),)
    return (Saying(label.answer.value),)


# What became true


_ROWS = {
    Row.ABSENT: "{item} is not enqueued",
    Row.DELAYED: "{item} waits for its delay",
    Row.READY: "{item} is visible and unlocked",
    Row.LOCKED: "{item} is locked under {token}",
    Row.EXPIRED: "{item}'s lock {token} has expired",
    Row.ACKED: "{item}'s row is deleted",
    Row.CANCELLED: "{item}'s row is deleted by the orchestrator",
}


def truths() -> Iterator[Saying]:
    """What changes in the store by a step about item i."""
    moved = (after(row[I]) != row[I]) | (after(current[I]) != current[I])
    for where, words in _ROWS.items():
        yield Saying(words, moved & (after(row[I]) == where))
    more = after(completions[I]) != completions[I]
    for carried, word in _COMPLETIONS.items():
        yield Saying(f"{{item}}'s {word} is enqueued", more & (result[W] == carried))
    gone = (after(row[I]) == Row.ACKED) & (row[I] != Row.ACKED)
    yield Saying("nothing is enqueued for {item}", gone & ~more)
    yield Saying("{item}'s attempt count is {count}", after(attempt_count[I]) < attempt_count[I])


def beliefs(label: Label) -> Iterator[Saying]:
    """What worker w makes of a step with this label."""
    if label.counts is not None:
        yield Saying(f"counts {_article(label.counts)}")
    same = after(phase[W]) == phase[W]
    for now in Phase:
        yield Saying(now.value, (after(phase[W]) == now) & ~same)
    drains = after(draining[W]) & ~draining[W]
    yield Saying("takes no new work and stops renewing", drains)
    yield Saying("stops renewing", ~drains & same & renewing[W] & ~after(renewing[W]))
    if label.call is Call.ACK and label.answer is Answer.RETRYABLE:
        yield Saying("will send the same ack again", same)


def _article(metric: Metric) -> str:
    if metric in (Metric.UNCERTAIN, Metric.POISON):
        return f"the delivery as {metric.value}"
    return f"an {metric.value}" if metric.value[0] in "aeiou" else f"a {metric.value}"


# What may go wrong


@cache
def faults_in(action: Action) -> tuple[str, ...]:
    """The fault classes that an action of the protocol speaks of."""
    names = {f.name for f in KNOWN_FAULTS}

    def within(term: Term) -> Iterator[str]:
        if term.op == "setting" and str(term.args[0]).removeprefix("fault ") in names:
            yield str(term.args[0]).removeprefix("fault ")
        for argument in arguments(term):
            yield from within(argument)

    general = _BY_NAME.get(action.name, action)
    return tuple(dict.fromkeys(name for guard in general.guards for name in within(guard)))


@cache
def causes_of(action: Action) -> tuple[tuple[tuple[str, ...], Term], ...]:
    """The sets of fault classes that can be behind a step, fewest first, each with when it is enough."""
    mentioned = faults_in(action)
    if not mentioned:
        return ()
    # What is left of the guards once other settings were fixed is in the action; its faults are in the protocol.
    guards = both(*(g for g in _BY_NAME[action.name].guards if _speaks_of_faults(g)))
    found = []
    for size in range(len(mentioned) + 1):
        for chosen in itertools.combinations(mentioned, size):
            switches = {fault(f.name): f.name in chosen for f in KNOWN_FAULTS}
            found.append((chosen, substitute(guards, switches)))
    return tuple(found)


def faults_needed(action: Action, before: State, w: int, i: int) -> tuple[str, ...]:
    """The fewest fault classes without which the step could not have been taken here."""
    for chosen, enough in causes_of(action):
        if predicate(enough)(*before, w, i):
            return chosen
    return faults_in(action)


def _speaks_of_faults(term: Term) -> bool:
    return (term.op == "setting" and str(term.args[0]).startswith("fault ")) or any(
        _speaks_of_faults(a) for a in arguments(term)
    )


# A step, and a state


@cache
def _tellings(label: Label) -> tuple[tuple[Saying, ...], ...]:
    return doings(label), answers(label), tuple(truths()), tuple(beliefs(label))


def line(action: Action, before: State, later: State, w: int, i: int) -> Line:
    """One step, told."""
    has_worker, has_item = action.worker is not None, action.item is not None
    does, answer, truth, belief = _tellings(action.label)
    step = before, later, w, i
    return Line(
        who=actor(action.label, worker_name(w) if has_worker else None),
        does="".join(said(does, *step)),
        answer="".join(said(answer, *step)),
        truth=tuple(said(truth, *step)) if has_item else (),
        belief=tuple(said(belief, *step)) if has_worker else (),
        faults=faults_needed(action, before, w, i),
    )


def get(record: Record, variable: Variable) -> object:
    """A variable's value in a record."""
    return decoded(variable, record[PLACE[variable]])


def row_in_words(item: str, where: Row, token: str) -> str:
    """Where an item's row stands, as a sentence about the item; ``token`` is the row's own."""
    return _ROWS[where].format(item=item, token=token)


ITEM_TOLD = (
    *(Saying(where.value, row[I] == where) for where in Row),
    Saying(" ({token})", ~(current[I] == 0)),
    Saying(", attempt count {count}"),
    Saying(", completions {completions}", ~(completions[I] == 0)),
)
"""Where an item stands, in words that are joined."""

WORKER_TOLD = (
    *(Saying(at.value, phase[W] == at) for at in Phase),
    Saying(", 1 attempt made", attempts[W] == 1),
    Saying(", {made} attempts made", attempts[W] > 1),
    Saying(", shutting down", draining[W]),
)
"""What a worker is at, in words that are joined."""


def describe_item(record: Record, name_token: Callable[[int], str]) -> str:
    """Where an item stands, in words."""
    state: State = (), (record,)
    return "".join(said(ITEM_TOLD, state, state, 0, 0, lambda _, t: name_token(t)))


def describe_worker(record: Record) -> str:
    """What a worker is at, in words."""
    state: State = (record,), ()
    return "".join(said(WORKER_TOLD, state, state, 0, 0))
