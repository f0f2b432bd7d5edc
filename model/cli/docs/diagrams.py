"""Diagrams: which step leads from where to where, found by asking the guards."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable

from peeklock.spec.compose import REACTIONS, I, T, W
from peeklock.spec.law import environment, store, worker
from peeklock.spec.law.state import Phase, Row, current, phase, row
from peeklock.spec.notation.actions import Piece
from peeklock.spec.notation.terms import FALSE, NAT, Operand, Term, Variable, constant, substitute


def edges(
    pieces: Iterable[Piece],
    variable: Variable,
    index: Term,
    known: Callable[[enum.Enum], dict[Term, Operand]],
) -> dict[tuple[enum.Enum, enum.Enum], list[Piece]]:
    """The pieces that lead from one value of the variable to another.

    A piece leads on from a value unless one of its guards is false there; ``known`` is what else is so at a value.
    """
    found: dict[tuple[enum.Enum, enum.Enum], list[Piece]] = {}
    for piece in pieces:
        for effect in piece.clause.effects:
            if effect.variable is not variable:
                continue
            (to,) = effect.value.args  # a constant, for a variable of these
            assert isinstance(to, enum.Enum)
            for start in variable.sort.members:
                values: dict[Term, Operand] = {variable[index]: start, **known(start)}
                if all(substitute(g, values) is not FALSE for g in piece.clause.guards):
                    found.setdefault((start, to), []).append(piece)
    return found


def _mermaid(
    found: dict[tuple[enum.Enum, enum.Enum], list[Piece]],
    first: enum.Enum,
    last: Iterable[enum.Enum],
    text: Callable[[Piece], str],
) -> str:
    lines = ["stateDiagram-v2", f"    [*] --> {first.name}"]
    for (start, to), pieces in found.items():
        words = dict.fromkeys(map(text, pieces))
        lines.append(f"    {start.name} --> {to.name} : {'<br/>'.join(words)}")
    lines += [f"    {end.name} --> [*]" for end in last]
    return "```mermaid\n" + "\n".join(lines) + "\n```"


def row_diagram() -> str:
    """The life of a row: every outcome and event that moves it."""

    def known(at: enum.Enum) -> dict[Term, Operand]:
        # S4: a row that is unlocked or gone has no token. Nobody presents the token 0.
        has_token = at in (Row.LOCKED, Row.EXPIRED)
        return {T: constant(1, NAT), **({} if has_token else {current[I]: 0})}

    found = edges((*store.OUTCOMES, *environment.EVENTS), row, I, known)
    return _mermaid(found, Row.ABSENT, (Row.ACKED, Row.CANCELLED), _short)


def _short(piece: Piece) -> str:
    if piece.event is not None:
        return piece.event.value
    return " or ".join(c.value.partition(",")[0] for c in piece.calls)


def phase_diagram() -> str:
    """What a worker goes through with a delivery: every reaction and step of its own that moves it on."""
    found = edges((*REACTIONS, *worker.OWN_STEPS), phase, W, lambda at: {})
    return _mermaid(found, Phase.IDLE, (), lambda piece: piece.name.replace("_", " "))
