"""Counterexamples: a small state from which one step breaks a claim, replayed by the spec's own evaluation.

The state satisfies every claim that was supposed, but nothing says that it can be reached: it shows why the
induction fails, and where the claim is false in truth a search finds the way there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from peeklock.proofs.encode import Model
from peeklock.proofs.quantifiers import Named
from peeklock.spec.compose import specialized
from peeklock.spec.law.policy import rule
from peeklock.spec.notation.actions import Action
from peeklock.spec.notation.terms import ITEM, Operand, Term, Variable, substitute
from peeklock.spec.reading.evaluate import (
    INITIAL_ITEM,
    INITIAL_WORKER,
    ITEM_VARIABLES,
    WORKER_VARIABLES,
    Record,
    State,
    Stepper,
    decoded,
    encoded,
    initial_state,
    predicate,
)


@frozen
class Counterexample:
    """A state, a step from it, and the claim that is false then."""

    before: State
    action: str | None
    """The step's name; None where the initial state itself breaks the claim."""
    worker: int | None
    item: int | None
    after: State
    max_attempts: int
    broken: str
    disagreement: str = ""
    """What the spec's evaluation says otherwise; empty when it agrees."""

    def lines(self) -> Iterator[str]:
        """The counterexample as text."""
        if self.action is None:
            yield "initially:"
            yield from _described(self.before)
        else:
            yield f"in this state, with max_attempts {self.max_attempts}:"
            yield from _described(self.before)
            by = "" if self.worker is None else f" by worker {_worker(self.worker)}"
            about = "" if self.item is None else f", item {_item(self.item)}"
            yield f"the step {self.action!r}{by}{about} leads to:"
            yield from _described(self.after, self.before)
        yield f"which breaks: {self.broken}"

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _worker(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else f"W{number + 1}"


def _item(number: int) -> str:
    return f"i{number + 1}"


def _described(state: State, old: State | None = None) -> Iterator[str]:
    """What is not as at the beginning; with ``old``, what is not as it was."""
    tables = (
        ("worker", _worker, state[0], old[0] if old else None, WORKER_VARIABLES, INITIAL_WORKER),
        ("item", _item, state[1], old[1] if old else None, ITEM_VARIABLES, INITIAL_ITEM),
    )
    for what, name, records, olds, variables, initial in tables:
        for k, record in enumerate(records):
            base = olds[k] if olds else initial
            told = [_told(v, x) for v, x, y in zip(variables, record, base, strict=True) if x != y]
            if told or not olds:
                yield f"  {what} {name(k)}: {', '.join(told) or 'as at the beginning'}"


def _told(variable: Variable, number: int) -> str:
    value = decoded(variable, number)
    if variable.sort == ITEM:
        return f"{variable} = {'none' if value is None else _item(value)}"
    if isinstance(value, bool):
        return f"{variable}" if value else f"not {variable}"
    return f"{variable} = {value.name if variable.sort.members else value}"


def counterexample(
    model: Model,
    named: Named,
    action: Action | None,
    supposed: Mapping[str, Term],
    broken: str,
    goal: Term,
    is_state: bool,
) -> Counterexample:
    """The state in the model, cut down to what is named, and what the spec's evaluation says of it."""
    maximum = int(model.value(rule.max_attempts))
    chosen: dict[Term, Operand] = {rule.max_attempts: maximum}
    if action is None:
        state = initial_state(max(len(named.workers), 1), max(len(named.items), 1))
        wrong = "the claim holds" if predicate(substitute(goal, chosen))(*state) else ""
        return Counterexample(state, None, None, None, state, maximum, broken, wrong)
    places = _Places(model, named)
    state = places.state()
    w = None if action.worker is None else places.workers[model.value(action.worker)]
    i = None if action.item is None else places.items[model.value(action.item)]
    parameters = (w or 0, i or 0)
    fitting = specialized([action], chosen)
    if not fitting:
        raise ValueError("the step cannot happen")
    stepper = Stepper(fitting[0])
    later = stepper.takes(*state, *parameters)
    goal = substitute(goal, chosen)
    holds = predicate(goal)(*later) if is_state else predicate(goal)(*state, *parameters)
    found = Counterexample(state, action.name, w, i, later, maximum, broken)
    if not stepper.allows(*state, *parameters):
        return evolve(found, disagreement="the step cannot be taken")
    for name, term in supposed.items():
        if not predicate(substitute(term, chosen))(*state):
            return evolve(found, disagreement=f"not {name}")
    return evolve(found, disagreement="the claim holds") if holds else found


class _Places:
    """Numbers for the workers and items of a model."""

    def __init__(self, model: Model, named: Named) -> None:
        self._model = model
        self.workers: dict[str, int] = {}
        self.items: dict[str, int] = {}
        self._terms: dict[str, Term] = {}
        for worker in named.workers:
            self._add(self.workers, worker)
        for item in named.items:
            if not model.is_nothing(item):
                self._add(self.items, item)

    def _add(self, places: dict[str, int], term: Term) -> None:
        name = self._model.value(term)
        if name not in places:
            places[name] = len(places)
            self._terms[name] = term

    def state(self) -> State:
        """The records of the named workers and items."""
        return (
            tuple(self._record(self._terms[n], WORKER_VARIABLES) for n in self.workers),
            tuple(self._record(self._terms[n], ITEM_VARIABLES) for n in self.items),
        )

    def _record(self, index: Term, variables: tuple[Variable, ...]) -> Record:
        return tuple(self._number(v[index]) for v in variables)

    def _number(self, term: Term) -> int:
        if term.sort == ITEM:
            return 0 if self._model.is_nothing(term) else self.items[self._model.value(term)] + 1
        return encoded(self._model.value(term))
