"""Mutation: every way to make one sentence of the protocol say a little less, or a little else.

A sentence is a piece: an outcome of a call, a reaction to it, or an event. Its guards and assignments are terms, so
a mutant is a piece with one term changed, put back before the protocol is composed. History is written by steps as
a whole; it is changed after composition.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator

from attrs import evolve, field, frozen

from peeklock.spec.compose import REACTIONS, compose
from peeklock.spec.law import environment, store, worker
from peeklock.spec.law.state import HISTORY
from peeklock.spec.notation.actions import Action, Clause, Piece
from peeklock.spec.notation.terms import (
    BOOL,
    FALSE,
    NAT,
    TRUE,
    Assignment,
    Term,
    arguments,
    constant,
    negate,
    rebuild,
)


class Kind(enum.Enum):
    """What was changed."""

    GUARD = "a guard or a part of one is left out, negated or always false"
    ASSIGNMENT = "an assignment is left out, or gives another value of its enumeration"
    CONSTANT = "a number is off by one, or < and <= are exchanged"
    HISTORY = "a step does not record what it did"
    MISTAKE = "a mistake that people make"


@frozen
class Pieces:
    """The sentences of the protocol, before they are put together."""

    outcomes: tuple[Piece, ...] = store.OUTCOMES
    reactions: tuple[Piece, ...] = REACTIONS
    events: tuple[Piece, ...] = (*worker.OWN_STEPS, *environment.EVENTS)

    def __iter__(self) -> Iterator[Piece]:
        return iter((*self.outcomes, *self.reactions, *self.events))

    def actions(self) -> tuple[Action, ...]:
        """Every action that these sentences make."""
        return tuple(compose(self.outcomes, self.reactions, self.events))

    def replaced(self, change: Callable[[Piece], Piece]) -> Pieces:
        """The sentences, each changed."""
        return Pieces(
            *(tuple(map(change, pieces)) for pieces in (self.outcomes, self.reactions, self.events))
        )

    def with_clause(self, piece: Piece, clause: Clause) -> Pieces:
        """One sentence with other guards or assignments."""
        return self.replaced(lambda p: evolve(p, clause=clause) if p is piece else p)


PIECES = Pieces()
ORIGINAL = PIECES.actions()


@frozen(eq=False)
class Mutant:
    """One change of the protocol."""

    name: str
    kind: Kind
    make: Callable[[], tuple[Action, ...]] = field(repr=False)


def title(piece: Piece) -> str:
    """The name of a sentence, with its calls where several sentences have that name."""
    name = piece.name.replace("_", " ")
    if sum(p.name == piece.name for p in PIECES) > 1:
        name += f" ({piece.calls[0].value})"
    return name


def mutants_of_pieces() -> Iterator[Mutant]:
    """Every mutant of every sentence."""
    for piece in PIECES:
        for name, kind, clause in _clauses(piece.clause):
            changed = PIECES.with_clause(piece, clause)
            yield Mutant(f"{title(piece)}: {name}", kind, changed.actions)


def _clauses(clause: Clause) -> Iterator[tuple[str, Kind, Clause]]:
    yield "never happens", Kind.GUARD, evolve(clause, guards=(FALSE,))
    for place, guard in enumerate(clause.guards):
        for name, kind, term in _guards(guard):
            guards = (*clause.guards[:place], term, *clause.guards[place + 1 :])
            yield name, kind, evolve(clause, guards=tuple(g for g in guards if g is not TRUE))
    for place, effect in enumerate(clause.effects):
        rest = clause.effects[:place], clause.effects[place + 1 :]
        kind = Kind.HISTORY if effect.variable in HISTORY else Kind.ASSIGNMENT
        yield f"without {effect}", kind, evolve(clause, effects=(*rest[0], *rest[1]))
        for value in values_instead(effect):
            changed = Assignment(effect.target, value)
            counted = Kind.CONSTANT if effect.value.sort == NAT else kind
            yield (
                f"{changed} instead of {effect.value}",
                counted,
                evolve(clause, effects=(*rest[0], changed, *rest[1])),
            )


def _guards(guard: Term) -> Iterator[tuple[str, Kind, Term]]:
    seen = {FALSE}
    for name, kind, term in _guard_changes(guard):
        if term not in seen and term is not guard:
            seen.add(term)
            yield name, kind, term


def _guard_changes(guard: Term) -> Iterator[tuple[str, Kind, Term]]:
    yield f"without [{guard}]", Kind.GUARD, TRUE
    yield f"with the opposite of [{guard}]", Kind.GUARD, negate(guard)
    for part in _parts(guard):
        if part is not guard and part.sort == BOOL:
            for value in (TRUE, FALSE):
                yield f"[{part}] taken as {value} in [{guard}]", Kind.GUARD, _with(guard, part, value)
        if part.op in ("lt", "eq"):
            for other in _comparisons_instead(part):
                yield f"[{other}] instead of [{part}] in [{guard}]", Kind.CONSTANT, _with(guard, part, other)


def _parts(term: Term) -> Iterator[Term]:
    """The term and everything in it, but for bound names and the places that variables are read at."""
    yield term
    inner = arguments(term)
    if term.op in ("forall", "exists"):
        inner = inner[1:]
    for part in inner if term.op != "read" else ():
        yield from _parts(part)


def _with(term: Term, part: Term, instead: Term) -> Term:
    return rebuild(term, lambda t: instead if t is part else None)


def _comparisons_instead(comparison: Term) -> Iterator[Term]:
    if comparison.op == "lt":
        a, b = arguments(comparison)
        yield a <= b
    for part in _parts(comparison):
        for other in _off_by_one(part):
            yield _with(comparison, part, other)


def _off_by_one(term: Term) -> Iterator[Term]:
    number = term.args[-1]
    if term.op in ("add", "sub") or (term.op == "const" and term.sort == NAT):
        assert isinstance(number, int)
        for n in (number - 1, number + 1):
            if term.op == "const" and n >= 0:
                yield constant(n, NAT)
            elif term.op == "add":
                yield arguments(term)[0] + n if n else arguments(term)[0]
            elif term.op == "sub":
                yield arguments(term)[0] - n if n else arguments(term)[0]


def values_instead(effect: Assignment) -> Iterator[Term]:
    """The other values that an assignment could give by a slip; one of them where it sets a variable back."""
    value = effect.value
    if value.sort == NAT:
        yield from _off_by_one(value)
    elif value is TRUE or value is FALSE:
        yield negate(value)
    elif value.op == "const":
        others = [constant(m, value.sort) for m in value.sort.members if m is not value.args[0]]
        yield from others[:1] if value.args[0] is effect.variable.initial else others


def mutants_of_history() -> Iterator[Mutant]:
    """For each kind of fact and each kind of step that records it: it is not recorded, or recorded too early."""
    kinds = dict.fromkeys(key for action in ORIGINAL for key in _recorded(action))
    for key in kinds:
        name, how = key
        yield Mutant(f"{how}: {name} is not recorded", Kind.HISTORY, _changing_history(key, lambda a: None))
        for place in range(4):
            change = _nth_change(place)
            if any(change(a) is not None for x in ORIGINAL for a in x.effects if _key(x, a) == key):
                yield Mutant(
                    f"{how}: {name} is recorded {_TIMES[place]}", Kind.HISTORY, _changing_history(key, change)
                )


_TIMES = ("always", "never", "one attempt early", "one attempt late")


def _key(action: Action, effect: Assignment) -> tuple[str, str] | None:
    if effect.variable not in HISTORY or effect.value is FALSE:
        return None
    label = action.label
    how = label.event.value if label.event is not None else label.call.value if label.call is not None else ""
    if label.answer is not None:
        how += f" -> {label.answer.value}"
    return effect.variable.name, how


def _recorded(action: Action) -> Iterator[tuple[str, str]]:
    for effect in action.effects:
        key = _key(action, effect)
        if key is not None:
            yield key


def _nth_change(place: int) -> Callable[[Assignment], Assignment | None]:
    def change(effect: Assignment) -> Assignment | None:
        if effect.variable.sort != BOOL or effect.value is TRUE:
            return None
        if place < 2:
            return Assignment(effect.target, (TRUE, effect.target)[place])
        counts = dict.fromkeys(p for p in _parts(effect.value) if p.op == "add")
        late, early = (_with(effect.value, c, n) for c in counts for n in _off_by_one(c))
        return Assignment(effect.target, (early, late)[place - 2])

    return change


def _changing_history(
    key: tuple[str, str], change: Callable[[Assignment], Assignment | None]
) -> Callable[[], tuple[Action, ...]]:
    def changed(action: Action, effects: Iterable[Assignment]) -> Iterator[Assignment]:
        for effect in effects:
            new = change(effect) if _key(action, effect) == key else effect
            if new is not None:
                yield new

    return lambda: tuple(evolve(a, effects=tuple(changed(a, a.effects))) for a in ORIGINAL)
