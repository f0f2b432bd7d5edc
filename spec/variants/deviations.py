"""Deviations: known ways in which a store breaks the contract, so that one can ask what a policy makes of such a store.

A policy file switches them on in its table ``[store]``. The standard store has none of them, and what is proved is
proved over the standard store.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from functools import cache

from attrs import evolve, frozen

from peeklock.spec.compose import ACTIONS, compose
from peeklock.spec.law import store
from peeklock.spec.law.faults import DISHONEST
from peeklock.spec.law.state import Row, acked_by, current, row
from peeklock.spec.notation.actions import (
    ABANDONS,
    Action,
    Answer,
    Call,
    Clause,
    Item,
    Piece,
    Timer,
    Token,
    outcome,
    when,
)
from peeklock.spec.notation.terms import Term


class RepeatedAck(enum.Enum):
    """What an ack is answered whose token's ack has committed before."""

    PERMANENT = "permanent"
    OK = "ok"


@frozen
class Deviations:
    """How a store deviates. The defaults are the standard contract."""

    repeated_ack: RepeatedAck = RepeatedAck.PERMANENT
    abandon_revives_acked: bool = False
    """An abandon under the token that acked a row brings the row back."""
    permanent_honest: bool = True
    """Where false, an ack may take effect and answer a permanent error."""

    @property
    def faults(self) -> frozenset[str]:
        """The fault classes that such a store has besides those that are on by default."""
        return frozenset() if self.permanent_honest else frozenset({DISHONEST.name})

    def __str__(self) -> str:
        told = {
            "a repeated ack answers ok": self.repeated_ack is RepeatedAck.OK,
            "an abandon revives an acked item": self.abandon_revives_acked,
            "a permanent error may lie": not self.permanent_honest,
        }
        return "; ".join(text for text, is_so in told.items() if is_so) or "none"


NO_DEVIATIONS = Deviations()


def was_acked_by(i: Item, t: Token) -> Term:
    """The row was deleted by an ack under this token."""
    return (row[i] == Row.ACKED) & (acked_by[i] == t)


@outcome(Call.ACK, answer=Answer.OK)
def ack_repeated(i: Item, t: Token) -> Clause:
    """An ack under this token has committed before: the store answers as it did then, and nothing changes."""
    return when(
        was_acked_by(i, t),
    )


@outcome(*ABANDONS, answer=Answer.OK, takes_effect=True)
def acked_row_revived(i: Item, t: Token) -> Clause:
    """The row that this token's ack deleted is put back, visible from now + delay."""
    return when(
        was_acked_by(i, t),
    ).then(
        row[i].becomes(Row.DELAYED),
        current[i].becomes(0),
    ).starting(Timer.VISIBILITY)  # fmt: skip


def outcomes(deviations: Deviations) -> Iterator[Piece]:
    """How a store with these deviations can answer each call."""
    for piece in store.OUTCOMES:
        if piece is store.refused and deviations.repeated_ack is RepeatedAck.OK:
            yield evolve(piece, calls=tuple(c for c in piece.calls if c is not Call.ACK))
            yield _but_for_acked(evolve(piece, calls=(Call.ACK,)))
        elif piece is store.abandon_refused and deviations.abandon_revives_acked:
            yield _but_for_acked(piece)
        else:
            yield piece
    if deviations.repeated_ack is RepeatedAck.OK:
        yield ack_repeated
    if deviations.abandon_revives_acked:
        yield acked_row_revived


def _but_for_acked(piece: Piece) -> Piece:
    """The refusal, where the row was not acked by the token that is presented."""
    return evolve(
        piece, clause=evolve(piece.clause, guards=(*piece.clause.guards, ~was_acked_by(*piece.params)))
    )


@cache
def protocol_over(deviations: Deviations) -> tuple[Action, ...]:
    """The protocol over a store that deviates from the contract in these ways."""
    return ACTIONS if deviations == NO_DEVIATIONS else tuple(compose(outcomes(deviations)))
