"""Walks: from the initial state step by step, and what each step that could be next would break."""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from attrs import frozen

from peeklock.model.explore.term_table import TermTable
from peeklock.model.search.traces import Taken
from peeklock.model.search.world import World
from peeklock.spec.compose import PROMISES
from peeklock.spec.notation.actions import Action
from peeklock.spec.notation.terms import ITEM, WORKER, substitute
from peeklock.spec.promises.promise import Part, Promise
from peeklock.spec.reading.evaluate import State, Stepper, predicate
from peeklock.spec.reading.narrative import Line, line

CODE_LENGTH = 5
MOST_SEARCHED = 20_000
"""States among which a way to break a promise is looked for while somebody waits."""


@frozen(eq=False)
class Broken:
    """A promise, and the part of it that is false."""

    promise: Promise
    part: Part


@frozen(eq=False)
class Move:
    """A step that can be taken, told, with the state after it and what it breaks."""

    taken: Taken
    later: State
    line: Line
    breaks: tuple[Broken, ...]


class Explorer:
    """Says what can happen next in any state of a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._steppers = [Stepper(a) for a in world.actions]
        self._asked: dict[str, list[tuple[Broken, Callable[..., bool]]]] = {}
        self._always = [
            (Broken(promise, part), predicate(substitute(part.state, world.variant.settings)))
            for promise in PROMISES
            for part in promise.parts
            if part.state is not None
        ]

    def moves(self, state: State) -> tuple[Move, ...]:
        """The steps that can be next: those of each worker, then the orchestrator's, then those of time."""
        found = [
            self._move(stepper, state, w, i) for stepper in self._steppers for w, i in stepper.choices(state)
        ]
        return tuple(sorted(found, key=_by_hand))

    def _move(self, stepper: Stepper, state: State, w: int, i: int) -> Move:
        action, later = stepper.action, stepper.takes(*state, w, i)
        breaks = _in_order(self._broken(action, state, later, w, i))
        return Move(Taken(action, w, i), later, line(action, state, later, w, i), breaks)

    def _broken(self, action: Action, state: State, later: State, w: int, i: int) -> Iterator[Broken]:
        """The parts that a step breaks: first those about steps, then those about states that were true."""
        yield from (broken for broken, keeps in self._asks(action) if not keeps(*state, w, i))
        yield from (broken for broken, keeps in self._always if keeps(*state) and not keeps(*later))

    def way_to_break(self, start: State, promise: Promise, most: int = MOST_SEARCHED) -> list[Move] | None:
        """A shortest way from a state to a step that breaks a promise; None where so many states show none."""
        came_by: dict[State, tuple[State, Stepper, int, int] | None] = {start: None}
        todo = deque([start])
        while todo and len(came_by) <= most:
            state = todo.popleft()
            for stepper in self._steppers:
                for w, i in stepper.choices(state):
                    later = stepper.takes(*state, w, i)
                    if any(b.promise is promise for b in self._broken(stepper.action, state, later, w, i)):
                        way = [self._move(stepper, state, w, i)]
                        by = came_by[state]
                        while by is not None:
                            way.insert(0, self._move(by[1], by[0], *by[2:]))
                            by = came_by[by[0]]
                        return way
                    if later not in came_by:
                        came_by[later] = (state, stepper, w, i)
                        todo.append(later)
        return None

    def _asks(self, action: Action) -> list[tuple[Broken, Callable[..., bool]]]:
        """What the promises ask of a step of this action; worked out when it is first met."""
        if action.name not in self._asked:
            self._asked[action.name] = [
                (Broken(promise, part), predicate(term))
                for promise, part, term in self.world.variant.obligations(action)
            ]
        return self._asked[action.name]

    def follow(self, steps: Iterable[Step]) -> tuple[list[Move], Step | None]:
        """The moves that these steps are, and the first step that cannot be taken, where one cannot."""
        state, found = self.world.initial(), list[Move]()
        for step in steps:
            move = next((m for m in self.moves(state) if step_of(m.taken) == step), None)
            if move is None:
                return found, step
            found.append(move)
            state = move.later
        return found, None


def _by_hand(move: Move) -> tuple[bool, int, str]:
    """Workers by number; the orchestrator before time."""
    return move.taken.hand < 0, move.taken.hand, move.line.who if move.taken.hand < 0 else ""


def _in_order(broken: Iterable[Broken]) -> tuple[Broken, ...]:
    """Each promise once, in their order."""
    first = {b.promise.id: b for b in reversed(tuple(broken))}
    return tuple(first[p.id] for p in PROMISES if p.id in first)


# Positions: a walk as a line of text, short enough for a link


@frozen
class Step:
    """A step by the code of its action, and by who takes it about what, counted from 1; 0 where it names none."""

    code: str
    worker: int
    item: int

    def __str__(self) -> str:
        return f"{self.code}.{self.worker}.{self.item}"


class PositionError(ValueError):
    """A text that is not a position."""


@cache
def code_of(name: str) -> str:
    """The code of an action: it depends on its name alone, so that it is the same in any revision that has it."""
    return hashlib.sha256(name.encode()).hexdigest()[:CODE_LENGTH]


def step_of(taken: Taken) -> Step:
    """A step that was taken, as a position names it."""
    action = taken.action
    return Step(
        code_of(action.name),
        taken.worker + 1 if action.worker is not None else 0,
        taken.item + 1 if action.item is not None else 0,
    )


def position(world: World, steps: Iterable[Taken]) -> str:
    """The place that these steps lead to, as a text: what protocol it is of, and the steps."""
    return "/".join([fingerprint(world.actions_of_protocol), *(str(step_of(s)) for s in steps)])


_POSITION = re.compile(r"(?P<of>[0-9a-f]{8})(?P<steps>(/[0-9a-f]{5}\.\d+\.\d+)*)")


def read_position(text: str) -> tuple[str, tuple[Step, ...]]:
    """The fingerprint and the steps of a position; ``PositionError`` where the text is none."""
    found = _POSITION.fullmatch(text)
    if found is None:
        raise PositionError(f"{text[:40]!r} is no position; allowed: what explore shows as one")
    steps = (word.split(".") for word in found["steps"].split("/")[1:])
    return found["of"], tuple(Step(code, int(w), int(i)) for code, w, i in steps)


@cache
def fingerprint(actions: tuple[Action, ...]) -> str:
    """Eight characters that are others when the protocol is another."""
    table = TermTable()
    told = [
        [
            action.name,
            table.all_of(action.guards),
            table.writes(action, WORKER),
            table.writes(action, ITEM),
        ]
        for action in actions
    ]
    return hashlib.sha256(json.dumps([told, table.rows]).encode()).hexdigest()[:8]
