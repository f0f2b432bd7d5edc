"""Behaviours: everything that one delivery can look like to the worker that has it, as a finite automaton.

A word is what the worker sees and does from the fetch to its last step about the delivery: its calls with their
answers, what it counts, and the events at its side. What the store and other workers do meanwhile is hidden. Renewals
are loops, and the attempts are bounded, so the automaton is finite, and two of them can be compared exactly.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any

import networkx as nx
from attrs import evolve, frozen

from peeklock.model.search.traces import Taken, Trace
from peeklock.model.search.world import World
from peeklock.spec.law.state import (
    HISTORY,
    Phase,
    Result,
    Trouble,
    attempts,
    draining,
    phase,
    renewing,
    result,
    trouble,
)
from peeklock.spec.notation.actions import Action, Answer, Call, Event
from peeklock.spec.notation.terms import Term, Variable, arguments
from peeklock.spec.reading.evaluate import PLACE, Record, State, Stepper, decoded
from peeklock.spec.reading.narrative import faults_in

DELIVERIES = 3
"""One that runs the handler, one that is poison, and one that supersedes it."""


@frozen(order=True)
class Letter:
    """What a worker sees of one step of its delivery: a call or an event, its answer, and what it then counts."""

    does: str
    answer: str = ""
    counts: str = ""

    def __str__(self) -> str:
        answered = f"{self.does} -> {self.answer}" if self.answer else self.does
        return f"{answered}, counts {self.counts}" if self.counts else answered


@frozen
class Place:
    """What the worker believes at a state of the automaton. ``phase`` and ``trouble`` are in words."""

    phase: str
    trouble: str = ""
    attempts: int = 0
    is_poison: bool = False
    renewing: bool = False
    draining: bool = False


NOWHERE = Place("has not fetched")
OVER = Place(Phase.IDLE.value)
ITEM_FETCHED, POISON_FETCHED = Letter("fetch", "an item"), Letter("fetch", "an item over max_attempts")


@frozen
class Automaton:
    """A deterministic automaton. State 0 is before the fetch, state 1 after the worker's last step."""

    places: tuple[Place, ...]
    steps: tuple[dict[Letter, int], ...]

    def minimal(self) -> tuple[dict[Letter, int], ...]:
        """The steps of the smallest automaton with the same words, its states numbered as they are met."""
        block = [int(k == 1) for k in range(len(self.steps))]
        while True:
            kinds: dict[Any, int] = {}
            fresh = [
                kinds.setdefault((block[k], frozenset((a, block[t]) for a, t in row.items())), len(kinds))
                for k, row in enumerate(self.steps)
            ]
            if len(set(fresh)) == len(set(block)):
                break
            block = fresh
        number: dict[int, int] = {block[0]: 0}
        found: list[dict[Letter, int]] = []
        todo = [0]
        for state in todo:
            row = {}
            for letter, target in sorted(self.steps[state].items()):
                if block[target] not in number:
                    number[block[target]] = len(number)
                    todo.append(target)
                row[letter] = number[block[target]]
            found.append(row)
        return tuple(found)


@frozen
class _Move:
    """A step between two states of the world, and what worker 0 sees of it (None: nothing)."""

    action: int
    worker: int
    item: int
    target: int
    letter: Letter | None


class Behaviours:
    """Every state of a small world, in which the deliveries to the first worker are followed."""

    def __init__(self, world: World, workers: int = 2, items: int = 1, max_attempts: int = 1) -> None:
        """The world's protocol, policy and faults, in a world of these sizes."""
        policy = evolve(world.variant.policy, max_attempts=max_attempts)
        self.world = World(
            evolve(world.variant, policy=policy),
            workers,
            items,
            DELIVERIES + max_attempts - 1,
            world.actions_of_protocol,
        )
        self.actions = tuple(_without_idle_history(self.world.actions))
        self.states: list[State] = []
        self.moves: list[list[_Move]] = []
        self._explore()

    def _explore(self) -> None:
        steppers = [Stepper(a) for a in self.actions]
        start = self.world.initial()
        number = {start: 0}
        self.states.append(start)
        for state in self.states:
            found = []
            for place, stepper in enumerate(steppers):
                for w, i in stepper.choices(state):
                    after = stepper.takes(*state, w, i)
                    target = number.setdefault(after, len(number))
                    if target == len(self.states):
                        self.states.append(after)
                    found.append(_Move(place, w, i, target, self._letter(stepper.action, w, state, after)))
            self.moves.append(found)

    def _letter(self, action: Action, w: int, before: State, after: State) -> Letter | None:
        """What the first worker sees of a step about a delivery; None for a step that is not about one of its."""
        if action.worker is None or w != 0:
            return None
        label = action.label
        if label.call is Call.FETCH:
            if label.answer is not Answer.OK:
                return None
            return POISON_FETCHED if _value(after[0][0], result) is Result.POISON else ITEM_FETCHED
        if _value(before[0][0], phase) is Phase.IDLE:
            return None
        counts = "" if label.counts is None else label.counts.value
        if label.call is not None:
            assert label.answer is not None
            return Letter(label.call.value, label.answer.value, counts)
        assert label.event is not None
        return Letter(label.event.value, "", counts)

    def automaton(self) -> Automaton:
        """The automaton of the words of all deliveries."""
        holds = [_value(s[0][0], phase) is not Phase.IDLE for s in self.states]
        reach = self._reach(holds)
        ways: list[dict[Letter, int]] = []
        """For each state, and each letter that can come next in it, the states that it leads to, as bits."""
        for state, held in enumerate(holds):
            row: dict[Letter, int] = {}
            for move in self.moves[state] if held else ():
                if move.letter is not None:
                    row[move.letter] = row.get(move.letter, 0) | reach[move.target]
            ways.append(row)
        over = sum(1 << k for k, held in enumerate(holds) if not held)
        starts: dict[Letter, int] = {}
        for row_of_moves in self.moves:
            for move in row_of_moves:
                if move.letter in (ITEM_FETCHED, POISON_FETCHED):
                    starts[move.letter] = starts.get(move.letter, 0) | reach[move.target]
        return self._determined(starts, ways, over)

    def _reach(self, holds: list[bool]) -> list[int]:
        """For each state, the states that are reached from it by steps of which the worker sees nothing, as bits."""
        hidden = [
            [m.target for m in row if m.letter is None] if held else []
            for row, held in zip(self.moves, holds, strict=True)
        ]
        reach = [0] * len(self.states)
        for component in _components(hidden):
            bits = sum(1 << state for state in component)
            for state in component:
                for target in hidden[state]:
                    bits |= reach[target]
            for state in component:
                reach[state] = bits
        return reach

    def _determined(self, starts: dict[Letter, int], ways: list[dict[Letter, int]], over: int) -> Automaton:
        number: dict[int, int] = {}
        sets: list[int] = []
        places, steps = [NOWHERE, OVER], [dict[Letter, int](), dict[Letter, int]()]

        def place(states: int) -> int:
            if states & over:
                assert not states & ~over, "what the worker sees tells it whether it is done with a delivery"
                return 1
            if states not in number:
                number[states] = len(sets) + 2
                sets.append(states)
                places.append(self._place(states))
                steps.append({})
            return number[states]

        steps[0] = {letter: place(states) for letter, states in sorted(starts.items())}
        for k, states in enumerate(sets):
            row: dict[Letter, int] = {}
            for state in _bits(states):
                for letter, targets in ways[state].items():
                    row[letter] = row.get(letter, 0) | targets
            steps[k + 2] = {letter: place(targets) for letter, targets in sorted(row.items())}
        return _trimmed(Automaton(tuple(places), tuple(steps)))

    def _place(self, states: int) -> Place:
        record = self.states[next(_bits(states))][0][0]
        met = _value(record, trouble)
        return Place(
            _value(record, phase).value,
            "" if met is Trouble.NONE else met.value,
            _value(record, attempts),
            _value(record, result) is Result.POISON,
            _value(record, renewing),
            _value(record, draining),
        )

    def run(self, word: tuple[Letter, ...]) -> Trace:
        """A shortest run of the world in which a delivery to the first worker looks like this; the fewest faults.

        ``LookupError`` when there is none.
        """
        size = len(word) + 1
        faults = [len(faults_in(a)) for a in self.world.actions]
        best: dict[int, tuple[tuple[int, int], int, _Move | None]] = {0: ((0, 0), -1, None)}
        queue = [((0, 0), 0)]
        while queue:
            cost, node = heapq.heappop(queue)
            if cost != best[node][0]:
                continue
            state, read = divmod(node, size)
            if read == len(word):
                return self._followed(best, node, size)
            for move in self.moves[state]:
                for after in _read(move.letter, word, read):
                    target = move.target * size + after
                    total = (cost[0] + 1, cost[1] + faults[move.action])
                    if target not in best or total < best[target][0]:
                        best[target] = (total, node, move)
                        heapq.heappush(queue, (total, target))
        raise LookupError(f"no delivery looks like this: {'; '.join(map(str, word))}")

    def _followed(
        self, best: dict[int, tuple[tuple[int, int], int, _Move | None]], node: int, size: int
    ) -> Trace:
        steps: list[Taken] = []
        states = [self.states[node // size]]
        while True:
            _, came_from, move = best[node]
            if move is None:
                return Trace(tuple(reversed(states)), tuple(reversed(steps)))
            steps.append(Taken(self.world.actions[move.action], move.worker, move.item))
            states.append(self.states[came_from // size])
            node = came_from


def _read(letter: Letter | None, word: tuple[Letter, ...], read: int) -> Iterator[int]:
    """How much of the word has been read after this step; before its fetch, other deliveries may come and go."""
    if read == 0 or letter is None:
        yield read
    if letter == word[read]:
        yield read + 1


def _value(record: Record, variable: Variable) -> Any:
    return decoded(variable, record[PLACE[variable]])


def _bits(states: int) -> Iterator[int]:
    while states:
        low = states & -states
        yield low.bit_length() - 1
        states ^= low


def _read_by(term: Term) -> Iterator[Variable]:
    if term.op == "read":
        (variable,) = (a for a in term.args if isinstance(a, Variable))
        yield variable
    for argument in arguments(term):
        yield from _read_by(argument)


def _without_idle_history(actions: Iterable[Action]) -> Iterator[Action]:
    """The actions without the history that no guard reads: it would only tell states apart."""
    actions = tuple(actions)
    needed = {v for a in actions for g in a.guards for v in _read_by(g)}
    while True:
        more = {
            v for a in actions for e in a.effects if e.variable in needed for v in _read_by(e.value)
        } - needed
        if not more:
            break
        needed |= more
    for action in actions:
        kept = tuple(e for e in action.effects if e.variable not in HISTORY or e.variable in needed)
        yield evolve(action, effects=kept)


def _components(graph: list[list[int]]) -> Iterator[set[int]]:
    """The strongly connected components, each after those that it leads to."""
    joined = nx.condensation(nx.DiGraph([*((k, k) for k in range(len(graph))), *_edges(graph)]))
    for component in reversed(list(nx.topological_sort(joined))):
        yield joined.nodes[component]["members"]


def _edges(graph: list[list[int]]) -> Iterator[tuple[int, int]]:
    for k, targets in enumerate(graph):
        yield from ((k, t) for t in targets)


def _trimmed(automaton: Automaton) -> Automaton:
    """Only the steps from which the end can be reached, so that every path is the beginning of a word."""
    alive = {1}
    while True:
        more = {k for k, row in enumerate(automaton.steps) if alive & set(row.values())} | alive
        if more == alive:
            break
        alive = more
    kept = tuple({a: t for a, t in row.items() if t in alive} for row in automaton.steps)
    return evolve(automaton, steps=kept)


CUTS = frozenset(e.value for e in (Event.CRASH, Event.GRACE_ENDS))
"""What ends a delivery without any decision of the worker."""
