"""What an action and a promise need to know: one worker and one item, or the whole state.

Nearly every action reads and writes one worker's record and one item's. What it does can then be tabulated once
for every pair of records that is met, instead of once for every state. Quantifiers are split into the parameter
itself and all others; where the others turn out not to matter, the term is local.
"""

from __future__ import annotations

from functools import cache

from peeklock.spec.compose import I, W
from peeklock.spec.notation.terms import (
    FALSE,
    ITEM,
    WORKER,
    Term,
    Variable,
    arguments,
    both,
    either,
    element,
    rebuild,
    substitute,
)
from peeklock.spec.reading.evaluate import PLACE, Code

_OTHER = {WORKER: element(WORKER, -1), ITEM: element(ITEM, -1)}
_MINE = {WORKER: W, ITEM: I}


@cache
def localized(term: Term, params: tuple[Term, ...]) -> Term | None:
    """The term without quantifiers, in terms of the parameters only; None where it speaks of others too."""
    result = rebuild(term, lambda t: _split(t, params))
    return result if _is_local(result) else None


def _split(term: Term, params: tuple[Term, ...]) -> Term | None:
    if term.op not in ("forall", "exists"):
        return None
    bound, body = arguments(term)
    join = both if term.op == "forall" else either
    mine = _MINE[bound.sort]
    cases = [
        rebuild(_differ(substitute(body, {bound: _OTHER[bound.sort]}), mine), lambda t: _split(t, params))
    ]
    if any(p is mine for p in params):
        cases.append(rebuild(substitute(body, {bound: mine}), lambda t: _split(t, params)))
    return join(*cases)


def _differ(term: Term, mine: Term) -> Term:
    other = _OTHER[mine.sort]

    def change(t: Term) -> Term | None:
        if t.op == "eq" and {id(a) for a in arguments(t)} == {id(other), id(mine)}:
            return FALSE
        return None

    return rebuild(term, change)


def _is_local(term: Term) -> bool:
    if term.op in ("forall", "exists") or any(term is other for other in _OTHER.values()):
        return False
    return all(_is_local(a) for a in arguments(term))


def grounded(term: Term, workers: int, items: int, w: int | None = None, i: int | None = None) -> Term:
    """The term with quantifiers written out and the parameters replaced by a particular worker and item."""
    sizes = {WORKER: workers, ITEM: items}

    def expand(t: Term) -> Term | None:
        if t.op not in ("forall", "exists"):
            return None
        bound, body = arguments(t)
        join = both if t.op == "forall" else either
        cases = (substitute(body, {bound: element(bound.sort, k)}) for k in range(sizes[bound.sort]))
        return join(*(rebuild(c, expand) for c in cases))

    chosen = {p: element(p.sort, k) for p, k in ((W, w), (I, i)) if k is not None}
    return rebuild(substitute(term, chosen), expand)


def _place(variable: Variable, index: Term) -> str:
    assert index is W or index is I, f"not local: {variable}[{index}]"
    return f"{'s' if index is W else 'u'}[{PLACE[variable]}]"


LOCAL = Code(_place, {})
"""The source of a local term over a worker's record ``s``, an item's record ``u`` and the item's number ``i``."""


def _column(variable: Variable, index: Term) -> str:
    read = f"{'W' if variable.index == WORKER else 'I'}({index.args[0]}, {PLACE[variable]})"
    return f"({read} != 0)" if variable.sort.name == "Bool" else read


class Columns(Code):
    """The source of a grounded term over columns ``W(worker, place)`` and ``I(item, place)`` of many states."""

    def of(self, term: Term) -> str:
        """The source of one expression over whole columns."""
        a = arguments(term)
        if term.op == "sub":
            return f"maximum({self.of(a[0])}, {term.args[1]}) - {term.args[1]}"
        if term.op == "ite":
            return f"where({self.of(a[0])}, {self.of(a[1])}, {self.of(a[2])})"
        return super().of(term)


COLUMNS = Columns(_column, {}, both=" & ", either=" | ", negation="~")
