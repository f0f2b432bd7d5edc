"""Evaluation: terms compiled to Python expressions over concrete states.

A concrete state is a pair of tuples: one record for each worker, one for each item. A record is a tuple of small
numbers in the order of ``WORKER_VARIABLES`` or ``ITEM_VARIABLES``: a member of an enumeration is its place in it,
an item is its number + 1, and 0 is no item. A world has any number of workers and items.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from attrs import evolve, frozen

from peeklock.spec.law.state import VARIABLES
from peeklock.spec.notation.actions import Action
from peeklock.spec.notation.terms import ITEM, WORKER, Assignment, Operand, Sort, Term, Variable, arguments

Record: TypeAlias = tuple[int, ...]
State: TypeAlias = tuple[tuple[Record, ...], tuple[Record, ...]]

WORKER_VARIABLES = tuple(v for v in VARIABLES if v.index == WORKER)
ITEM_VARIABLES = tuple(v for v in VARIABLES if v.index == ITEM)
PLACE = {v: k for vs in (WORKER_VARIABLES, ITEM_VARIABLES) for k, v in enumerate(vs)}


def encoded(value: Operand) -> int:
    """The number that stands for a value in a record."""
    if isinstance(value, Term):
        if value.op == "nothing":
            return 0
        (value,) = (a for a in value.args if isinstance(a, bool | int | enum.Enum))
    if isinstance(value, enum.Enum):
        return list(type(value)).index(value)
    return int(value)


def decoded(variable: Variable, number: int) -> Any:
    """The value that a number in a record stands for; an item as its number from 0, or None."""
    if variable.sort.members:
        return variable.sort.members[number]
    if variable.sort == ITEM:
        return number - 1 if number else None
    return bool(number) if variable.sort.name == "Bool" else number


INITIAL_WORKER: Record = tuple(encoded(v.initial) for v in WORKER_VARIABLES)
INITIAL_ITEM: Record = tuple(encoded(v.initial) for v in ITEM_VARIABLES)


def initial_state(workers: int, items: int) -> State:
    """Nothing is enqueued, and every worker is idle."""
    return (INITIAL_WORKER,) * workers, (INITIAL_ITEM,) * items


@frozen
class Code:
    """How a term is written as source: where a variable is found, what a name stands for, and with which words."""

    place: Callable[[Variable, Term], str]
    names: Mapping[str, str]
    both: str = " and "
    either: str = " or "
    negation: str = "not "
    later: Code | None = None
    """How a term is written about the state after the step, where there is one."""

    def of(self, term: Term) -> str:
        """The source of one expression."""
        a = arguments(term)
        match term.op:
            case "const":
                return str(encoded(term))
            case "nothing":
                return "0"
            case "element":
                return str(int(str(term.args[0])) + (term.sort == ITEM))
            case "param":
                name = self.names.get(str(term.args[0]), str(term.args[0]))
                return f"({name} + 1)" if term.sort == ITEM else name
            case "read":
                variable = term.args[0]
                assert isinstance(variable, Variable)
                return self.place(variable, a[0])
            case "not":
                return f"({self.negation}{self.of(a[0])})"
            case "and" | "or":
                return "(" + (self.both if term.op == "and" else self.either).join(map(self.of, a)) + ")"
            case "eq" | "lt":
                return f"({self.of(a[0])} {'==' if term.op == 'eq' else '<'} {self.of(a[1])})"
            case "add":
                return f"({self.of(a[0])} + {term.args[1]})"
            case "sub":
                return f"max({self.of(a[0])} - {term.args[1]}, 0)"
            case "ite":
                return f"({self.of(a[1])} if {self.of(a[0])} else {self.of(a[2])})"
            case "forall" | "exists":
                word, size = ("all", "any")[term.op == "exists"], "W" if a[0].sort == WORKER else "I"
                return f"{word}({self.of(a[1])} for {a[0].args[0]} in range(len({size})))"
            case "after" if self.later is not None:
                return self.later.of(a[0])
            case _:
                raise ValueError(f"cannot be evaluated: {term}")


def _found_in(workers: str, items: str) -> Callable[[Variable, Term], str]:
    def place(variable: Variable, index: Term) -> str:
        assert index.op in ("param", "element"), f"{variable}[{index}]: an index is a worker or an item"
        table = workers if variable.index == WORKER else items
        return f"{table}[{index.args[0]}][{PLACE[variable]}]"

    return place


ANYWHERE = Code(_found_in("W", "I"), {})
"""The source of a term over a whole state ``W, I`` with parameters ``w`` and ``i``."""
_ACROSS = evolve(ANYWHERE, later=Code(_found_in("V", "J"), {}))
"""The source of a term over a step from ``W, I`` to ``V, J``."""


def record_source(code: Code, effects: tuple[Assignment, ...], index: Term | None, old: str) -> str | None:
    """The source of the record at this index after the assignments; None when none of them writes it."""
    mine = {PLACE[a.variable]: code.of(a.value) for a in effects if a.index is index}
    if not mine:
        return None
    size = len(WORKER_VARIABLES if index is not None and index.sort == WORKER else ITEM_VARIABLES)
    return "(" + ", ".join(mine.get(k, f"{old}[{k}]") for k in range(size)) + ",)"


def predicate(term: Term) -> Callable[..., bool]:
    """The term as a function of ``W, I`` and, where it has parameters, ``w``, ``i`` and ``t``."""
    function: Callable[..., bool] = eval(f"lambda W, I, w=0, i=0, t=0: bool({ANYWHERE.of(term)})")
    return function


def across(term: Term) -> Callable[[State, State, int, int], int]:
    """The term as a function of the states before and after a step, its worker and its item."""
    function: Callable[..., int] = eval(f"lambda W, I, V, J, w, i: {_ACROSS.of(term)}")
    return lambda before, later, w, i: function(*before, *later, w, i)


@frozen(eq=False)
class Enabled:
    """An action that can happen, for one choice of its parameters."""

    action: Action
    worker: int | None
    item: int | None


class Stepper:
    """Takes steps of an action on concrete states of any size."""

    def __init__(self, action: Action) -> None:
        self.action = action
        guard = " and ".join(ANYWHERE.of(g) for g in action.guards) or "True"
        w = record_source(ANYWHERE, action.effects, action.worker, "W[w]")
        i = record_source(ANYWHERE, action.effects, action.item, "I[i]")
        workers = f"W[:w] + ({w},) + W[w+1:]" if w else "W"
        items = f"I[:i] + ({i},) + I[i+1:]" if i else "I"
        self.allows: Callable[..., bool] = eval(f"lambda W, I, w=0, i=0: {guard}")
        self.takes: Callable[..., State] = eval(f"lambda W, I, w=0, i=0: ({workers}, {items})")

    def choices(self, state: State) -> Iterator[tuple[int, int]]:
        """The workers and items for which the action can happen; 0 stands for a parameter that it has not."""
        workers, items = state
        for w in range(len(workers)) if self.action.worker is not None else (0,):
            for i in range(len(items)) if self.action.item is not None else (0,):
                if self.allows(workers, items, w, i):
                    yield w, i


def size_of(sort: Sort, workers: int, items: int) -> int:
    """How many there are of an index sort."""
    return workers if sort == WORKER else items
