"""The protocol put together: each outcome of a call with each reaction to its answer, and everything else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve

from peeklock.spec.law import ack_sequence, environment, store, worker
from peeklock.spec.law.policy import rule
from peeklock.spec.law.state import token, working_on
from peeklock.spec.notation.actions import ABANDONS, Action, Call, Label, Piece
from peeklock.spec.notation.terms import (
    FALSE,
    ITEM,
    NAT,
    TRUE,
    WORKER,
    Assignment,
    Operand,
    Substitution,
    Term,
    arguments,
    choose,
    parameter,
    rebuild,
    substitute,
)
from peeklock.spec.promises import contract, reachable, settlement
from peeklock.spec.promises.history import recorded

REACTIONS = (*worker.REACTIONS, *ack_sequence.REACTIONS)
W = parameter("w", WORKER)
I = parameter("i", ITEM)  # noqa: E741  # the item, as in every action
T = parameter("t", NAT)


def _has(piece: Piece, parameter: Term) -> bool:
    return any(p is parameter for p in piece.params)


def merged(effects: Iterable[Assignment], history: Iterable[Assignment]) -> tuple[Assignment, ...]:
    """What the protocol writes, and what the history adds to it."""
    written = {a.target: a for a in history}
    for a in effects:
        written[a.target] = a
    return tuple(written.values())


def _with_answer(call: Call, outcome: Piece, reaction: Piece, by_policy: bool) -> Action:
    """One step: the store answers, and the worker takes the answer in."""
    (answer,) = outcome.answers
    about_item = _has(outcome, I)
    held: dict[Term, Operand] = {T: token[W]}
    caller: list[Term] = []
    if _has(outcome, T):
        caller.append(working_on[W] == I)  # it presents the token that it has in hand
    if call in ABANDONS and by_policy:
        caller.append(rule.abandon_ignores_attempt == (call is Call.ABANDON_IGNORING_ATTEMPT))
    effects = [Assignment(a.target, substitute(a.value, held)) for a in _both(outcome, reaction)]
    label = Label(call, answer, outcome.takes_effect, counts=reaction.counts)
    return Action(
        name=f"{call.value}: {outcome.name}, {reaction.name}".replace("_", " "),
        sentence=f"{outcome.sentence} {reaction.sentence}",
        params=(W, I) if about_item else (W,),
        guards=(*reaction.clause.guards, *caller, *(substitute(g, held) for g in outcome.clause.guards)),
        effects=merged(effects, recorded(label, W, I if about_item else None, effects)),
        label=label,
        timer=outcome.clause.timer,
        prolongs=outcome.clause.prolongs,
        spurious=outcome.spurious,
        pieces=(outcome.name, reaction.name),
    )


def _both(outcome: Piece, reaction: Piece) -> tuple[Assignment, ...]:
    return (*outcome.clause.effects, *reaction.clause.effects)


def _alone(piece: Piece, label: Label) -> Action:
    """One step in which only one side takes part."""
    w = W if _has(piece, W) else None
    effects = piece.clause.effects
    return Action(
        name=piece.name.replace("_", " "),
        sentence=piece.sentence,
        params=piece.params,
        guards=piece.clause.guards,
        effects=merged(effects, recorded(label, w, I if _has(piece, I) else None, effects)),
        label=label,
        timer=piece.clause.timer,
        due=piece.due,
        pieces=(piece.name,),
    )


def compose(
    outcomes: Iterable[Piece] = store.OUTCOMES,
    reactions: Iterable[Piece] = REACTIONS,
    events: Iterable[Piece] = (*worker.OWN_STEPS, *environment.EVENTS),
    by_policy: bool = True,
) -> Iterator[Action]:
    """Every action of the protocol, for any policy and any faults.

    ``by_policy`` says that the policy chooses which kind of abandon there is; a free client may use both.
    """
    reactions = tuple(reactions)
    for outcome in outcomes:
        for call in outcome.calls:
            if call in (Call.ENQUEUE, Call.CANCEL):
                yield _alone(outcome, Label(call, outcome.answers[0], outcome.takes_effect))
            for reaction in reactions:
                if call in reaction.calls and outcome.answers[0] in reaction.answers:
                    yield _with_answer(call, outcome, reaction, by_policy)
    for event in events:
        yield _alone(event, Label(event=event.event))


ACTIONS = tuple(compose())


def specialized(actions: Iterable[Action], settings: Mapping[Term, Operand]) -> tuple[Action, ...]:
    """The actions with settings replaced by their values; those that can then never happen are left out."""
    found = []
    fixed = Substitution(settings)
    for action in actions:
        guards = tuple(g for g in (fixed(g) for g in action.guards) if g is not TRUE)
        if not any(g is FALSE for g in guards):
            effects = tuple(Assignment(a.target, fixed(a.value)) for a in action.effects)
            found.append(evolve(action, guards=guards, effects=effects))
    return tuple(found)


def resolved(term: Term, effects: Iterable[Assignment]) -> Term:
    """The term with every ``after(x)`` replaced by what x becomes under these assignments."""
    effects = tuple(effects)

    def later(inner: Term) -> Term | None:
        if inner.op == "before":
            return arguments(inner)[0]
        if inner.op != "read":
            return None
        index = rebuild(arguments(inner)[0], later)
        variable = inner.args[0]
        value = rebuild(inner, lambda t: index if t is arguments(inner)[0] else None)
        for a in effects:
            if a.variable is variable:
                value = choose(index == a.index, a.value, value)
        return value

    def outside(term: Term) -> Term | None:
        return rebuild(arguments(term)[0], later) if term.op == "after" else None

    return rebuild(term, outside)


PROMISES = (*settlement.PROMISES, *contract.PROMISES)
POSSIBILITIES = reachable.POSSIBILITIES
NEVER_TAKEN = reachable.NEVER_TAKEN
