"""Steps that the protocol has not: what somebody did against it, so that its promises can be asked of that.

Nothing that explores, proves or explains a run knows of these; they are for telling which promise a fault breaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from attrs import evolve

from peeklock.spec.compose import I, W, merged
from peeklock.spec.law.state import HISTORY, Result, result, token, working_on
from peeklock.spec.notation.actions import Action, Answer, Call, Label, Metric
from peeklock.spec.notation.terms import Assignment, Operand, Substitution, Term
from peeklock.spec.promises.history import recorded


def unguarded(actions: Iterable[Action], settings: Mapping[Term, Operand]) -> Iterator[Action]:
    """Every action, also those that a policy rules out, without its guards."""
    fixed = Substitution(settings)
    for action in actions:
        effects = tuple(Assignment(a.target, fixed(a.value)) for a in action.effects)
        yield evolve(action, guards=(), effects=effects)


@cache
def answered(action: Action, answer: Answer) -> Action:
    """The same step, of which the caller is told something else."""
    return _told_anew(action, evolve(action.label, answer=answer))


@cache
def counted(action: Action, counts: Metric | None) -> Action:
    """The same step, of which the worker counts another verdict, or none."""
    return _told_anew(action, evolve(action.label, counts=counts))


@cache
def remembered(action: Action) -> Action:
    """The same step of a worker that keeps what the step should have made it forget."""
    item = tuple(a for a in action.effects if a.variable not in HISTORY and a.index is not action.worker)
    return evolve(action, effects=merged(item, recorded(action.label, action.worker, action.item, item)))


@cache
def taken_up(call: Call, number: int, carried: Result) -> Action:
    """The worker, in this call, has another token in hand than before, or another completion."""
    return Action(
        name=f"{call.value}: another token or completion",
        sentence="The worker takes up another token or completion.",
        params=(W, I),
        guards=(),
        effects=(working_on[W].becomes(I), token[W].becomes(number), result[W].becomes(carried)),
        label=Label(call, Answer.RETRYABLE),
    )


def _told_anew(action: Action, label: Label) -> Action:
    effects = tuple(a for a in action.effects if a.variable not in HISTORY)
    return evolve(
        action, label=label, effects=merged(effects, recorded(label, action.worker, action.item, effects))
    )
