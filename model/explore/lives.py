"""How deliveries live: which steps lead from one state of a delivery to another, found by taking them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from attrs import evolve

from peeklock.model.search.world import World
from peeklock.spec.compose import I, T
from peeklock.spec.law.life import Life, is_in
from peeklock.spec.law.state import issued
from peeklock.spec.notation.actions import Action
from peeklock.spec.reading.evaluate import PLACE, State, Stepper, predicate

_IN = {life: predicate(is_in(life, I, T)) for life in Life}
Moves: TypeAlias = Mapping[tuple[Life | None, Life], tuple[str, ...]]
"""By where a move starts (None: there is no such delivery yet) and where it ends, what can make it."""


def life_of(state: State, i: int, t: int) -> Life | None:
    """What the delivery of item i under token t is; None while there is none."""
    if t > state[1][i][PLACE[issued]]:
        return None
    return next(life for life, holds in _IN.items() if holds(*state, 0, i, t))


def moves(world: World) -> Moves:
    """Every move that a delivery can make.

    They are found in a world of one worker, one item and three deliveries: what a delivery is depends on its own
    item only, and what one worker does to it with a token, another with the same token could do.
    """
    small = evolve(world, workers=1, items=1, deliveries=min(world.deliveries, 3))
    steppers = [Stepper(a) for a in small.actions]
    seen, todo = {small.initial()}, [small.initial()]
    found: dict[tuple[Life | None, Life], dict[str, None]] = {}
    while todo:
        state = todo.pop()
        for stepper in steppers:
            for w, i in stepper.choices(state):
                later = stepper.takes(*state, w, i)
                for t in range(1, later[1][0][PLACE[issued]] + 1):
                    was, now = life_of(state, 0, t), life_of(later, 0, t)
                    if was is not now and now is not None:
                        found.setdefault((was, now), {})[_cause(stepper.action)] = None
                if later not in seen:
                    seen.add(later)
                    todo.append(later)
    return {move: tuple(causes) for move, causes in found.items()}


def _cause(action: Action) -> str:
    label = action.label
    if label.event is not None:
        return label.event.value
    assert label.call is not None
    return label.call.value.partition(",")[0]
