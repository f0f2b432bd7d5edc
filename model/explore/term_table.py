"""Terms as a table, for readers in another language: one row for each different term, after those inside it.

A row is an operator and its arguments; an argument that is a term is its row's number. Names are numbered places:
0 is the worker, 1 the item, 2 the token, and every bound name has one of its own. A value is the number that stands
for it in a record (:mod:`peeklock.spec.reading.evaluate`).
"""

from __future__ import annotations

from collections.abc import Iterable

from peeklock.spec.compose import I, T, W
from peeklock.spec.notation.actions import Action
from peeklock.spec.notation.terms import ITEM, WORKER, Assignment, Sort, Term, Variable, arguments
from peeklock.spec.reading.evaluate import PLACE, encoded

SIDES = {WORKER: 0, ITEM: 1}
"""A state is its workers and its items."""


class TermTable:
    """Collects terms."""

    def __init__(self) -> None:
        self.rows: list[list[str | int]] = []
        self._numbers: dict[int, int] = {}
        self._places = {str(p.args[0]): k for k, p in enumerate((W, I, T))}

    def of(self, term: Term) -> int:
        """The row of a term. A setting that is not fixed stands for itself: no reader can evaluate it."""
        known = self._numbers.get(term.serial)
        if known is None:
            row = self._row(term)
            known = self._numbers[term.serial] = len(self.rows)
            self.rows.append(row)
        return known

    def all_of(self, terms: Iterable[Term]) -> list[int]:
        """The rows of some terms."""
        return [self.of(t) for t in terms]

    def writes(self, action: Action, side: Sort) -> list[list[int]]:
        """What an action writes to its worker or to its item: places in the record, and values."""
        index = action.worker if side == WORKER else action.item
        mine: list[Assignment] = [a for a in action.effects if a.index is index]
        return [[PLACE[a.variable], self.of(a.value)] for a in mine]

    def _place(self, name: Term) -> int:
        assert name.op == "param", f"{name}: an index is a worker or an item that has a name"
        return self._places.setdefault(str(name.args[0]), len(self._places))

    def _row(self, term: Term) -> list[str | int]:
        a = arguments(term)
        match term.op:
            case "const" | "nothing":
                return ["const", encoded(term)]
            case "param":
                return ["name", self._place(term), int(term.sort == ITEM)]
            case "read":
                variable = term.args[0]
                assert isinstance(variable, Variable)
                return ["read", SIDES[variable.index], self._place(a[0]), PLACE[variable]]
            case "setting":
                return ["setting", str(term.args[0])]
            case "add" | "sub":
                by = term.args[1]
                assert isinstance(by, int)
                return [term.op, self.of(a[0]), by]
            case "forall" | "exists":
                return [term.op, SIDES[a[0].sort], self._place(a[0]), self.of(a[1])]
            case "not" | "and" | "or" | "eq" | "lt" | "ite" | "after":
                return [term.op, *self.all_of(a)]
            case _:
                raise ValueError(f"cannot stand in a table: {term}")
