"""Wording: what is told of a step or a state, as data, so that every reader tells it in the same words.

A saying is some words and the condition under which they are told: a term over the step, where ``after(x)`` is the
value of x once the step is taken. Words have holes such as ``{token}``, which are filled with what is so in the step.
A state is told like a step that changes nothing.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from attrs import frozen

from peeklock.spec.compose import I, W
from peeklock.spec.law.state import attempt_count, attempts, completions, current, issued, token
from peeklock.spec.notation.terms import ITEM, TRUE, Term, Variable, after, arguments
from peeklock.spec.reading.evaluate import State, across


@frozen
class Saying:
    """Words, and when they are told."""

    words: str
    when: Term = TRUE

    @property
    def holes(self) -> tuple[str, ...]:
        """The holes in the words."""
        return tuple(name for _, name, _, _ in string.Formatter().parse(self.words) if name is not None)


def told_variables(sayings: Iterable[Saying]) -> frozenset[Variable]:
    """The variables that some sayings tell of."""
    terms = [term for s in sayings for term in (s.when, *(HOLES[h].term for h in s.holes))]
    return frozenset(v for term in terms for v in _read_in(term))


def _read_in(term: Term) -> Iterator[Variable]:
    if isinstance(term.args[0], Variable):
        yield term.args[0]
    for argument in arguments(term):
        yield from _read_in(argument)


@frozen
class Hole:
    """What a hole is filled with: an item's or a token's name, or a number."""

    term: Term
    is_token: bool = False
    """It is a token of item i, to be named."""


HOLES: Mapping[str, Hole] = {
    "item": Hole(I),
    "held": Hole(token[W], is_token=True),
    "token": Hole(after(current[I]), is_token=True),
    "fresh": Hole(issued[I] + 1, is_token=True),
    "attempt": Hole(attempts[W] + 1),
    "made": Hole(after(attempts[W])),
    "next_count": Hole(attempt_count[I] + 1),
    "count": Hole(after(attempt_count[I])),
    "completions": Hole(after(completions[I])),
}


def worker_name(w: int) -> str:
    """A, B, C, …"""
    return chr(ord("A") + w) if w < 26 else f"W{w + 1}"


def item_name(i: int) -> str:
    """i1, i2, …"""
    return f"i{i + 1}"


def token_name(i: int, t: int) -> str:
    """The t-th token of item i: t1 for the first token of the first item, t2.1 for that of the second."""
    return f"t{t}" if i == 0 else f"t{i + 1}.{t}"


def many(number: int, what: str) -> str:
    """1 item, 2 items, 1,000 items."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


_value = cache(across)


def said(
    sayings: Iterable[Saying],
    before: State,
    later: State,
    w: int,
    i: int,
    name_token: Callable[[int, int], str] = token_name,
) -> list[str]:
    """What is told of a step: the words of every saying whose condition holds, filled."""

    def filling(hole: Hole) -> str:
        if hole.term.sort == ITEM:
            return item_name(i)
        value = _value(hole.term)(before, later, w, i)
        return name_token(i, value) if hole.is_token else str(value)

    return [
        s.words.format(**{name: filling(HOLES[name]) for name in s.holes})
        for s in sayings
        if _value(s.when)(before, later, w, i)
    ]
