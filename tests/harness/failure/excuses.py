"""Hindsight: a run of a store that failed, judged again with another end, or as that of a store that declares more.

What is allowed is not said here: whatever is conceivable is put to the judge.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from typing import Any, TypeAlias

from attrs import evolve, fields, frozen

from peeklock.harness.failure.asking import cancelled, delivered
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.monitor.world import Violation
from peeklock.harness.run.steps import Step
from peeklock.harness.run.store_driver import Run, outcome_of
from peeklock.harness.run.store_judge import Looks, StoreJudge
from peeklock.spec.notation.actions import Answer, Call
from peeklock.spec.reading.timed_store import Fault, honest_actions
from peeklock.spec.variants.capabilities import Capabilities, CompletionWrite

Pairs: TypeAlias = tuple[tuple[str, str], ...]
_ERRORS = (Answer.PERMANENT, Answer.RETRYABLE)


@frozen
class End:
    """How the last step of a run may end."""

    words: str | None
    """What the store answers, as ``ask`` tells it; None where it never hears of the call."""
    completions: Pairs | None = None
    """The completions that are there then, sorted; None where nobody looks at them."""


@frozen
class Excuse:
    """One capability that the store would have to declare."""

    name: str
    value: bool | Enum

    @property
    def in_python(self) -> str:
        """As ``Capabilities`` takes it."""
        return f"{self.name}={self.value}"

    @property
    def in_json(self) -> str:
        """As the wire format and the traces have it."""
        value = f'"{self.value.value}"' if isinstance(self.value, Enum) else str(self.value).lower()
        return f'"{self.name}": {value}'

    def declared_by(self, capabilities: Capabilities) -> Capabilities:
        """The capabilities with this one among them."""
        changed: dict[str, Any] = {self.name: self.value}
        return evolve(capabilities, **changed)


def excuses(run: Run, capabilities: Capabilities) -> Iterator[Excuse]:
    """The capabilities with any one of which, declared, this run would conform, seen as it was.

    Not those under which less would be seen of it: they only hide what is wrong.
    """
    calls = {seen.call for seen in run.observations}
    for field in fields(Capabilities):
        own = getattr(capabilities, field.name)
        for value in type(own) if isinstance(own, Enum) else (False, True):
            excuse = Excuse(field.name, value)
            declared = excuse.declared_by(capabilities)
            if not calls <= set(declared.calls) or not calls & _differing(capabilities, declared):
                continue
            if _sees_less(run, capabilities, declared):
                continue
            if _judged(run.observations, run.looks, declared) is not None:
                yield excuse


def _sees_less(run: Run, capabilities: Capabilities, declared: Capabilities) -> bool:
    """Would its completions not be looked at, or errors not be told apart?

    Attempt counts that are not said change no call, so they excuse nothing that was seen.
    """
    return (bool(run.looks) and declared.completion is CompletionWrite.NONE) or (
        capabilities.error_classes and not declared.error_classes
    )


def _differing(one: Capabilities, other: Capabilities) -> set[Call | None]:
    """The calls that may come out otherwise."""
    ways, others = _ways(one), _ways(other)
    return {call for _, call in ways ^ others}


@cache
def _ways(capabilities: Capabilities) -> frozenset[tuple[str, Call | None]]:
    # As texts, since two terms that say the same are not the same.
    return frozenset(
        (repr((a.label, a.guards, a.effects, a.timer, a.prolongs)), a.label.call)
        for a in honest_actions(capabilities)
    )


def _judged(seen: Iterable[Observation], looks: Looks, capabilities: Capabilities) -> StoreJudge | None:
    """The judge that has taken it all in; None where it is a violation."""
    judge = StoreJudge(capabilities, looks)
    try:
        for one in seen:
            judge.observe(one)
    except Violation:
        return None
    return judge


# How the last step could have ended


def allowed_ends(run: Run, capabilities: Capabilities, *, may_be_busy: bool = False) -> tuple[End, ...]:
    """How the last step of the run may end, by the states that explain all that came before it."""
    last = run.steps[-1]
    before = run.observations[: run.steps.index(last)]
    looks = {n: pairs for n, pairs in run.looks.items() if n <= len(before)}
    texts = {(_item_of(one, run), one.payload) for one in run.observations if one.payload is not None}
    found: dict[End, None] = {}
    for words, seen in _conceivable(run, capabilities, may_be_busy):
        judge = _judged((*before, *seen), looks, capabilities)
        if judge is None:
            continue
        if len(run.observations) not in run.looks:
            found[End(words)] = None
            continue
        for pairs in _completions(texts, {item: judge.completions_of(item) for item, _ in texts}):
            if _judged((*before, *seen), {**looks, len(before) + len(seen): pairs}, capabilities) is not None:
                found[End(words, pairs)] = None
    return tuple(found)


def _item_of(seen: Observation, run: Run) -> str:
    return next(
        (o.item for o in run.observations if o.call is Call.FETCH and o.token == seen.token and o.item), ""
    )


def _completions(
    texts: Iterable[tuple[str, str | None]], numbers: dict[str, frozenset[int]]
) -> Iterator[Pairs]:
    by_item = [
        [
            chosen
            for n in sorted(possible)
            for chosen in itertools.combinations(sorted(pair for pair in texts if pair[0] == item), n)
        ]
        for item, possible in sorted(numbers.items())
    ]
    for chosen in itertools.product(*by_item):
        yield tuple((item, text or "") for pairs in chosen for item, text in pairs)


def _conceivable(
    run: Run, capabilities: Capabilities, may_be_busy: bool
) -> Iterator[tuple[str | None, tuple[Observation, ...]]]:
    """All that the last call could have been answered, in words and as what is then seen."""
    step = run.program[run.steps[-1] - 1]
    latest = run.observations[-1]
    base = evolve(latest, answer=None, effect=None, attempt=None, unasked=False)
    may_be_busy |= step.fault is not Fault.NONE or not capabilities.error_classes

    def seen(told: Answer | None, ok: Answer = Answer.OK) -> tuple[Observation, ...]:
        answer, effect = outcome_of(step, capabilities, told, ok)
        unasked = answer is Answer.RETRYABLE and not may_be_busy
        return (evolve(base, answer=answer, effect=effect, unasked=unasked),)

    if step.fault is Fault.BEFORE_EFFECT and not capabilities.fault_injection:
        yield None, seen(None)
        return
    match step.call:
        case Call.FETCH:
            base = evolve(base, item=None, token=None)
            yield "nothing", seen(Answer.OK, Answer.NOTHING)
            (fetched,) = seen(Answer.OK)
            for item, count in _deliveries(run, capabilities):
                delivery = evolve(fetched, item=item, token="a fresh token", attempt=count)
                yield delivered(item, count), (delivery,)
        case Call.CANCEL:
            for size in range(len(step.items) + 1):
                for removed in itertools.combinations(step.items, size):
                    yield cancelled(removed), tuple(_cancelled(step, base, removed))
            return
        case Call.ENQUEUE:
            yield "ok", seen(Answer.OK)
            return
        case _:
            yield "ok", seen(Answer.OK)
    for error in _ERRORS:
        yield error.value, seen(error)


def _deliveries(run: Run, capabilities: Capabilities) -> Iterator[tuple[str, int | None]]:
    fetches = sum(one.call is Call.FETCH for one in run.observations)
    counts: Iterable[int | None] = range(1, fetches + 1) if capabilities.attempt_counts else [None]
    items = dict.fromkeys(one.item for one in run.observations if one.call is Call.ENQUEUE and one.item)
    yield from itertools.product(items, counts)


def _cancelled(step: Step, base: Observation, removed: tuple[str, ...]) -> Iterator[Observation]:
    for item in step.items:
        yield evolve(base, item=item, answer=Answer.OK if item in removed else Answer.NOTHING)
