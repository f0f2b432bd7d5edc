"""Shortest traces: from the start to the first level on which a watch found something, changing hands least.

No search keeps parent pointers. The levels that it keeps are walked back from the finding, which leaves the states
on shortest ways only; among those ways the one with the fewest changes of hands is then found going forward, on
states as they are and not as their renamings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from attrs import frozen

from peeklock.model.search.engine import CHUNK, Search, unique
from peeklock.model.search.local import grounded
from peeklock.model.search.packing import Words
from peeklock.model.search.tables import Watch
from peeklock.model.search.view import View, column_question
from peeklock.spec.notation.actions import Action
from peeklock.spec.notation.terms import both
from peeklock.spec.reading.evaluate import State, Stepper, predicate
from peeklock.spec.reading.narrative import faults_in


@frozen
class Taken:
    """A step that was taken: the action, who took it, and about which item (0 where the action names none)."""

    action: Action
    worker: int
    item: int

    @property
    def hand(self) -> int:
        """The worker that took it; -1 where no worker did."""
        return -1 if self.action.worker is None else self.worker


@frozen
class Trace:
    """A run from the start: one state more than steps."""

    states: tuple[State, ...]
    steps: tuple[Taken, ...]


_Key: TypeAlias = tuple[State, int]
"""A state, and in whose hand the run is there."""


_Cost: TypeAlias = tuple[int, int, int]
"""Changes of hand first, then steps that may need a fault, then how many workers take part."""


@frozen
class _Way:
    cost: _Cost
    came_from: _Key | None
    step: Taken | None


def shortest(search: Search, bit: int) -> Trace:
    """The trace to what the watch first found; among the shortest, one that changes hands least."""
    level, watch = search.found[bit], search.watches[bit]
    goal = _sources(search, watch, search.levels[level])
    return _forward(search, _backward(search, level, goal), None if watch.part.state is not None else watch)


def shortest_to_stuck(search: Search) -> Trace:
    """The trace to the first state in which nothing can change without a further fault."""
    assert search.stuck is not None
    words = search.levels[search.stuck]
    live = np.zeros(len(words), bool)
    for rows, _ in search.steps(words, quiet=True):
        live[rows] = True
    goal = words[~live][search.stuck_among(words[~live])]
    return _forward(search, _backward(search, search.stuck, goal), None)


def _sources(search: Search, watch: Watch, words: Words) -> Words:
    """The states of a level in which the watch finds something: by what they are, or by a step from them."""
    world, view = search.world, View(search.packing, words)
    found = np.zeros(len(words), bool)
    if watch.part.state is not None:
        sought = watch.part.state if watch.wanted else ~watch.part.state
        found |= view.where(column_question(grounded(sought, world.workers, world.items)))
        return words[found]
    for action in world.actions:
        term = world.variant.obligation(watch.part, action)
        if term is None:
            continue
        sought = both(*action.guards, term if watch.wanted else ~term)
        for w in range(world.workers) if action.worker is not None else (None,):
            for i in range(world.items) if action.item is not None else (None,):
                found |= view.where(column_question(grounded(sought, world.workers, world.items, w, i)))
    return words[found]


def _backward(search: Search, level: int, goal: Words) -> list[Words]:
    """For each level up to the goal's, the states from which a shortest way leads on to the goal."""
    kept = [unique(goal)]
    for k in range(level - 1, -1, -1):
        words, target, on_way = search.levels[k], kept[0], []
        for start in range(0, len(words), CHUNK):
            chunk = words[start : start + CHUNK]
            leads = np.zeros(len(chunk), bool)
            for rows, after in search.steps(chunk):
                place = np.searchsorted(target, after)
                place[place == len(target)] = 0
                leads[rows[target[place] == after]] = True
            on_way.append(chunk[leads])
        kept.insert(0, np.concatenate(on_way))
    return kept


def _forward(search: Search, kept: list[Words], last_step: Watch | None) -> Trace:
    world = search.world
    steppers = [Stepper(a) for a in world.actions]
    layers: list[dict[_Key, _Way]] = [{(world.initial(), -2): _Way((0, 0, 0), None, None)}]
    for words in kept[1:]:
        layers.append(_next_layer(search, steppers, layers[-1], set(words.tolist())))
    if last_step is None:
        end = min(layers[-1], key=lambda k: layers[-1][k].cost)
        return _followed(layers, end, None)
    best: tuple[_Cost, _Key, Taken, State] | None = None
    for key, way in layers[-1].items():
        for taken, after in _found_steps(search, last_step, steppers, key[0]):
            cost = _cost(way.cost, key[1], taken)
            if best is None or cost < best[0]:
                best = (cost, key, taken, after)
    assert best is not None, "a finding has a step that shows it"
    return _followed(layers, best[1], (best[2], best[3]))


def _cost(cost: _Cost, hand: int, taken: Taken) -> _Cost:
    return (
        cost[0] + (taken.hand != hand),
        cost[1] + len(faults_in(taken.action)),
        cost[2] + max(taken.hand, 0),
    )


def _next_layer(
    search: Search, steppers: list[Stepper], layer: dict[_Key, _Way], wanted: set[int]
) -> dict[_Key, _Way]:
    moves = []
    for key, way in layer.items():
        for stepper in steppers:
            for w, i in stepper.choices(key[0]):
                after = stepper.takes(*key[0], w, i)
                if after != key[0]:
                    moves.append((key, way, Taken(stepper.action, w, i), after))
    words = search.packing.canonical_keys([m[3] for m in moves])
    found: dict[_Key, _Way] = {}
    for (key, way, taken, after), word in zip(moves, words.tolist(), strict=True):
        if word in wanted:
            cost = _cost(way.cost, key[1], taken)
            known = found.get((after, taken.hand))
            if known is None or cost < known.cost:
                found[after, taken.hand] = _Way(cost, key, taken)
    return found


def steps_found(search: Search, bit: int) -> Iterator[tuple[Taken, State]]:
    """Every step, from any state that stands for its renamings, in which the watch finds something, with its end."""
    watch, steppers = search.watches[bit], [Stepper(a) for a in search.world.actions]
    for words in search.levels:
        for word in _sources(search, watch, words).tolist():
            yield from _found_steps(search, watch, steppers, search.packing.state(word))


def _found_steps(
    search: Search, watch: Watch, steppers: list[Stepper], state: State
) -> Iterator[tuple[Taken, State]]:
    for stepper in steppers:
        term = search.world.variant.obligation(watch.part, stepper.action)
        if term is None:
            continue
        finds = predicate(term if watch.wanted else ~term)
        for w, i in stepper.choices(state):
            if finds(*state, w, i):
                yield Taken(stepper.action, w, i), stepper.takes(*state, w, i)


def _followed(layers: list[dict[_Key, _Way]], end: _Key, last: tuple[Taken, State] | None) -> Trace:
    steps, states = ([last[0]], [last[1]]) if last is not None else ([], [])
    key: _Key | None = end
    for layer in reversed(layers):
        assert key is not None
        way = layer[key]
        states.insert(0, key[0])
        if way.step is not None:
            steps.insert(0, way.step)
        key = way.came_from
    return Trace(tuple(states), tuple(steps))
