"""Capabilities: in what real stores differ from the contract, declared, and what the contract is then.

Each difference is a change of the store's outcomes; what a declared store may not do otherwise is the contract of
``store`` still. The rest of the protocol, and every check of it, speaks of the standard store.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from attrs import asdict, evolve, fields, frozen

from peeklock.spec.compose import compose
from peeklock.spec.law import environment, store
from peeklock.spec.law.state import completions
from peeklock.spec.notation.actions import ABANDONS, ACKS, Action, Answer, Call, Piece
from peeklock.spec.notation.terms import Term, rebuild
from peeklock.spec.variants import free_client as client

MOST_QUOTED = 60


class CapabilitiesError(ValueError):
    """Capabilities that cannot be: a name or a value that does not exist, in one line."""


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST_QUOTED else text[: MOST_QUOTED - 1] + "…"


class Renewal(enum.Enum):
    """What a renewal does to locked_until."""

    SETS = "sets"
    """It is now + extend_for."""
    EXTENDS = "extends"
    """It is what it was, + extend_for."""


class Order(enum.Enum):
    """Which of the rows that could be fetched a fetch returns."""

    FIFO = "fifo"
    NONE = "none"


class CompletionWrite(enum.Enum):
    """How an ack's completion is written."""

    ATOMIC = "atomic"
    """With the removal of the row: both or neither."""
    SEPARATE = "separate"
    """By a write of its own: an ack that answers an error may have done one of the two."""
    NONE = "none"
    """The store has no completions; an ack only removes the row."""


class Expired(enum.Enum):
    """Whether a call is accepted whose lock has expired, while nobody has fetched the row since."""

    ACCEPTED = "accepted"
    REFUSED = "refused"


class UnknownToken(enum.Enum):
    """What an abandon answers whose token is not the row's current one."""

    ERROR = "error"
    SILENT = "silent"


@frozen
class Capabilities:
    """What a store declares. The defaults are the standard contract; the last two say only how it can be driven."""

    renew: bool = True
    """There is a renew call."""
    renewal: Renewal = Renewal.SETS
    abandon: bool = True
    """There is an abandon call."""
    abandon_delay: bool = True
    """An abandon can name a delay."""
    abandon_ignoring_attempt: bool = True
    """An abandon can take the delivery off the attempt count."""
    enqueue_delay: bool = True
    """An enqueue can name a delay."""
    order: Order = Order.FIFO
    cancel: bool = True
    """There is a cancel call."""
    completion: CompletionWrite = CompletionWrite.ATOMIC
    ack_after_expiry: Expired = Expired.REFUSED
    abandon_after_expiry: Expired = Expired.ACCEPTED
    abandon_unknown_token: UnknownToken = UnknownToken.ERROR
    error_classes: bool = True
    """A refusal can be told from an error that may be retried."""
    attempt_counts: bool = True
    """A fetch returns the attempt count."""
    virtual_clock: bool = True
    """The adapter can let time pass without waiting for it."""
    fault_injection: bool = False
    """The store can be told to fail, before or after a call took effect; else its responses are dropped outside it."""

    def __attrs_post_init__(self) -> None:
        """``CapabilitiesError`` for a value of another type: it would be taken for the last of its kind."""
        for field in fields(Capabilities):
            kind, value = self.named(field.name), getattr(self, field.name)
            if not isinstance(value, kind):
                allowed = map(str, kind) if issubclass(kind, enum.Enum) else ("True", "False")
                raise CapabilitiesError(f"{field.name} is {_quoted(value)}; allowed: {', '.join(allowed)}")

    @classmethod
    def named(cls, name: str) -> type:
        """The type of a field; ``KeyError`` for a field that does not exist."""
        kinds = {"renewal": Renewal, "order": Order, "completion": CompletionWrite}
        kinds |= {"ack_after_expiry": Expired, "abandon_after_expiry": Expired}
        kinds |= {"abandon_unknown_token": UnknownToken}
        if name not in {f.name for f in fields(cls)}:
            raise KeyError(name)
        return kinds.get(name, bool)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls that the store has."""
        lacking = set()
        if not self.renew:
            lacking.add(Call.RENEW)
        if not self.abandon:
            lacking |= set(ABANDONS)
        if not self.abandon_ignoring_attempt:
            lacking.add(Call.ABANDON_IGNORING_ATTEMPT)
        if not self.cancel:
            lacking.add(Call.CANCEL)
        return tuple(c for c in Call if c not in lacking)

    @property
    def differences(self) -> dict[str, bool | str]:
        """Where they are not as in the standard contract: names and values, as ``declared`` takes them."""
        return asdict(
            self,
            filter=lambda field, value: value != field.default,
            value_serializer=lambda _, __, value: getattr(value, "value", value),
        )

    @classmethod
    def declared(cls, values: object) -> Capabilities:
        """Capabilities from their names and values; what is left out is as in the standard contract.

        ``CapabilitiesError`` for a name or a value that does not exist.
        """
        if not isinstance(values, Mapping):
            raise CapabilitiesError(
                "the capabilities are no table; allowed: names and values of capabilities"
            )
        names = [f.name for f in fields(cls)]
        found: dict[str, Any] = {}
        for name, value in values.items():
            if name not in names:
                raise CapabilitiesError(f"unknown capability {_quoted(name)}; allowed: {', '.join(names)}")
            kind = cls.named(name)
            if issubclass(kind, enum.Enum):
                members = {m.value: m for m in kind}
                if not isinstance(value, str) or value not in members:
                    raise CapabilitiesError(f"{name} is {_quoted(value)}; allowed: {', '.join(members)}")
                found[name] = members[value]
            elif isinstance(value, bool):
                found[name] = value
            else:
                raise CapabilitiesError(f"{name} is {_quoted(value)}; allowed: true, false")
        return cls(**found)


STANDARD = Capabilities()
OF_A_STORE = frozenset({"S1", "S2", "S3", "S4", "S5", "S6", "C1", "C2", "C4", "C6"})
"""The promises that speak of the store alone; the others are about workers that keep to a policy."""
OF_COMPLETIONS = frozenset({"S1", "S2", "S3"})
"""Those of them that no answer breaks by itself: they speak of completions, at which somebody has to look."""


def outcomes(capabilities: Capabilities) -> tuple[Piece, ...]:
    """How a store with these capabilities can answer each call."""
    has = capabilities.calls
    found = []
    for piece in store.OUTCOMES:
        calls = tuple(c for c in piece.calls if c in has)
        if calls:
            for changed in _differences(evolve(piece, calls=calls), capabilities):
                found.append(changed)
    return tuple(found)


def _differences(piece: Piece, capabilities: Capabilities) -> Iterator[Piece]:
    call = piece.calls[0]
    if piece.name == "refused" and call not in ACKS:
        # The two kinds of calls that it refuses may differ.
        acks = tuple(c for c in piece.calls if c in ACKS)
        yield from _by_class(evolve(piece, calls=(call,)), capabilities)
        yield from _differences(evolve(piece, calls=acks), capabilities)
        return
    if call in ACKS and capabilities.ack_after_expiry is Expired.ACCEPTED:
        piece = _where(piece, VALID, CURRENT)
    if call in ABANDONS and capabilities.abandon_after_expiry is Expired.REFUSED:
        piece = _where(piece, CURRENT, VALID)
    if call is Call.RENEW and capabilities.renewal is Renewal.EXTENDS and piece.takes_effect:
        piece = evolve(piece, clause=evolve(piece.clause, prolongs=True))
    if call is Call.ACK and piece.takes_effect:
        yield from _completions(piece, capabilities)
    else:
        yield from _by_class(piece, capabilities)


_item, _token = store.refused.params
VALID, CURRENT = store.lock_is_valid(_item, _token), store.is_current(_item, _token)


def _where(piece: Piece, was: Term, now: Term) -> Piece:
    """The outcome with one of its conditions replaced by another."""
    guards = tuple(rebuild(g, lambda t: now if t is was else None) for g in piece.clause.guards)
    return evolve(piece, clause=evolve(piece.clause, guards=guards))


def _by_class(piece: Piece, capabilities: Capabilities) -> Iterator[Piece]:
    if piece.name == "abandon_refused" and capabilities.abandon_unknown_token is UnknownToken.SILENT:
        piece = evolve(piece, answers=(Answer.OK,))
    yield piece
    if not capabilities.error_classes and piece.answers == (Answer.PERMANENT,):
        yield evolve(piece, name=f"{piece.name}_by_any_error", answers=(Answer.RETRYABLE,))
    if not capabilities.error_classes and piece.answers == (Answer.RETRYABLE,):
        yield evolve(piece, name=f"{piece.name}_by_any_error", answers=(Answer.PERMANENT,))


def _completions(piece: Piece, capabilities: Capabilities) -> Iterator[Piece]:
    without = tuple(a for a in piece.clause.effects if a.variable is not completions)
    if capabilities.completion is CompletionWrite.NONE:
        piece = evolve(piece, clause=evolve(piece.clause, effects=without))
    yield from _by_class(piece, capabilities)
    if capabilities.completion is CompletionWrite.SEPARATE and Answer.RETRYABLE in piece.answers:
        only = tuple(a for a in piece.clause.effects if a.variable is completions)
        torn = ("its_completion_is_missing", without), ("its_row_is_left", only)
        for name, effects in torn:
            yield from _by_class(
                evolve(piece, name=f"{piece.name}_{name}", clause=evolve(piece.clause, effects=effects)),
                capabilities,
            )


@cache
def protocol_with(capabilities: Capabilities) -> tuple[Action, ...]:
    """The whole protocol over such a store."""
    return tuple(compose(outcomes(capabilities)))


@cache
def store_alone(capabilities: Capabilities) -> tuple[Action, ...]:
    """Such a store with clients that do anything."""
    return tuple(
        compose(
            outcomes(capabilities),
            reactions=client.REACTIONS,
            events=(environment.item_becomes_visible, environment.lock_expires),
            by_policy=False,
        )
    )


def honest(actions: Iterable[Action]) -> tuple[Action, ...]:
    """The actions of a store that may fail, but never refuses what it could have done."""
    return tuple(a for a in actions if not a.spurious)
