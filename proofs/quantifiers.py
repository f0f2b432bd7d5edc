"""Quantifiers made ground: what Z3 is asked never has one.

An asserted term has two kinds of quantifiers. One that says *there is* gets a fresh name (a witness). One
that says *every* is written out for each named worker or item of the query: the parameters of the action,
the witnesses, and what the named workers have in hand. That is all there is to speak of: ``working_on``
is the only function from one index to another and it ends in an item, so a model of the written-out
query, cut down to the named workers and items, is a model of the query itself. So Z3 always decides, and
when it finds a state, the state is genuine.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import field, frozen

from peeklock.spec.law.state import working_on
from peeklock.spec.notation.terms import (
    BOOL,
    FALSE,
    ITEM,
    NO_ITEM,
    TRUE,
    WORKER,
    Sort,
    Term,
    arguments,
    both,
    either,
    equal,
    negate,
    parameter,
    substitute,
)

QUANTIFIERS = ("forall", "exists")


class Untreatable(Exception):
    """A term that cannot be made ground; the question that it belongs to stays open."""


_quantified: dict[int, bool] = {}


def is_quantified(term: Term) -> bool:
    """Is there a quantifier in the term?"""
    known = _quantified.get(term.serial)
    if known is None:
        known = term.op in QUANTIFIERS or any(map(is_quantified, arguments(term)))
        _quantified[term.serial] = known
    return known


def _connected(term: Term, go: Callable[[Term, bool], Term], asserted: bool) -> Term:
    """The term with ``go`` applied below its outermost connective; ``asserted`` is False under a negation."""
    a = arguments(term)
    match term.op:
        case "not":
            return negate(go(a[0], not asserted))
        case "and":
            return both(*(go(t, asserted) for t in a))
        case "or":
            return either(*(go(t, asserted) for t in a))
        case "eq" if a[0].sort == BOOL:
            x, y = a
            return go(both(either(negate(x), y), either(x, negate(y))), asserted)
        case _:
            raise Untreatable(f"a quantifier inside {term.op!r}: {term}")


def _is_universal(term: Term, asserted: bool) -> bool:
    return (term.op == "forall") == asserted


@frozen
class Witnesses:
    """Names for what a query says there is: the same names in every query, so that terms are shared."""

    prefix: str
    found: list[Term] = field(factory=list)

    def another(self, sort: Sort) -> Term:
        """A witness that was not used before in this query."""
        number = sum(t.sort == sort for t in self.found) + 1
        self.found.append(parameter(f"{self.prefix} {sort.name.lower()} {number}", sort))
        return self.found[-1]


def witnessed(term: Term, witnesses: Witnesses, asserted: bool = True) -> Term:
    """The asserted term with every outer *there is* replaced by a witness."""
    if not is_quantified(term):
        return term
    if term.op in QUANTIFIERS:
        if _is_universal(term, asserted):
            return term
        bound, body = arguments(term)
        return witnessed(substitute(body, {bound: witnesses.another(bound.sort)}), witnesses, asserted)
    return _connected(term, lambda t, a: witnessed(t, witnesses, a), asserted)


@frozen
class Named:
    """The workers and items that a query names."""

    workers: tuple[Term, ...]
    items: tuple[Term, ...]

    @classmethod
    def of(cls, names: tuple[Term, ...]) -> Named:
        """The names themselves, and what the named workers have in hand."""
        workers = tuple(t for t in names if t.sort == WORKER)
        items = tuple(t for t in names if t.sort == ITEM)
        return cls(workers, (*items, *(working_on[w] for w in workers)))


_written: dict[tuple[int, bool, tuple[int, ...]], Term] = {}


def instantiated(term: Term, named: Named, asserted: bool = True) -> Term:
    """The asserted term with every *every* written out for what is named."""
    if not is_quantified(term):
        return term
    key = (term.serial, asserted, tuple(t.serial for t in (*named.workers, *named.items)))
    if key not in _written:
        _written[key] = _instantiated(term, named, asserted)
    return _written[key]


def _instantiated(term: Term, named: Named, asserted: bool) -> Term:
    if term.op not in QUANTIFIERS:
        return _connected(term, lambda t, a: instantiated(t, named, a), asserted)
    universal = _is_universal(term, asserted)
    bound, body = arguments(term)
    claim = body if term.op == "forall" else negate(body)
    written = both(*(_for_every(bound, part, named, universal) for part in _parts(claim)))
    return written if term.op == "forall" else negate(written)


def _parts(claim: Term) -> tuple[Term, ...]:
    return arguments(claim) if claim.op == "and" else (claim,)


def _for_every(bound: Term, claim: Term, named: Named, asserted: bool) -> Term:
    """The claim for every value of ``bound``; a claim *x is not t, or ...* needs to be made of t only."""
    alternatives = _alternatives(claim)
    for k, alternative in enumerate(alternatives):
        only = _excluded(bound, alternative)
        if only is not None:
            rest = either(*alternatives[:k], *alternatives[k + 1 :])
            return _about(bound, rest, only, named, asserted)
    if not asserted:
        raise Untreatable(f"a witness that depends on others: some {bound} without {claim}")
    terms = named.workers if bound.sort == WORKER else named.items
    return both(*(_about(bound, claim, t, named, asserted) for t in terms))


def _about(bound: Term, claim: Term, value: Term, named: Named, asserted: bool) -> Term:
    if value is NO_ITEM:
        return TRUE
    instance = instantiated(substitute(claim, {bound: value}), named, asserted)
    return either(_may_be_nothing(value), instance) if value.sort == ITEM else instance


def _may_be_nothing(item: Term) -> Term:
    return FALSE if item.op == "param" else equal(item, NO_ITEM)


def _alternatives(claim: Term) -> tuple[Term, ...]:
    if claim.op == "or":
        return arguments(claim)
    if claim.op == "not" and arguments(claim)[0].op == "and":
        return tuple(negate(t) for t in arguments(arguments(claim)[0]))
    return (claim,)


def _excluded(bound: Term, alternative: Term) -> Term | None:
    """The value t for which the alternative reads *bound is not t*."""
    if alternative.op != "not" or arguments(alternative)[0].op != "eq":
        return None
    x, y = arguments(arguments(alternative)[0])
    for here, there in ((x, y), (y, x)):
        if here is bound and not _mentions(there, bound):
            return there
    return None


def _mentions(term: Term, name: Term) -> bool:
    return term is name or any(_mentions(a, name) for a in arguments(term))
