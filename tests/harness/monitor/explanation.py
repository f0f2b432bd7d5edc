"""Explaining: one run of the specification that explains a recorded run, among all that do."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

from attrs import frozen

from peeklock.harness.monitor.engine import BY_TIME, Taken
from peeklock.harness.monitor.monitor import Monitor
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.monitor.world import Core, Follows, Scope, Sight, Violation, World
from peeklock.spec.law.state import issued
from peeklock.spec.reading.evaluate import PLACE, State
from peeklock.spec.variants.variant import Variant


@frozen
class Explanation:
    """A run of the specification that shows what was recorded, and what else was found."""

    steps: tuple[Taken, ...]
    workers: int
    items: int
    deliveries: int
    """The most deliveries that an item had."""
    observations: int
    """How many observations it explains."""
    ways: int
    """In how many states the run may be at its end; this is a way to one of them."""
    violation: Violation | None
    """Why it ends there, where the next observation cannot be explained."""


@frozen
class _Passed:
    """Time that passed, and the worlds before it."""

    before: tuple[World, ...]
    now_ms: int
    until_ms: int


@frozen
class _Seen:
    """An observation, and the worlds before it, also with room for the worker and the item that it brings in."""

    before: tuple[World, ...]
    with_room: tuple[World, ...]
    sight: Sight
    seen: Observation


def explain(
    observations: Iterable[Observation],
    variant: Variant,
    scope: Scope,
    report: Callable[[int], None] = lambda count: None,
) -> Explanation:
    """One run that explains the observations up to the end, or up to the first that nothing explains."""
    monitor, count, violation = _Remembering(variant, scope), 0, None
    for seen in observations:
        worlds, stages = monitor.worlds, len(monitor.stages)
        try:
            monitor.observe(seen)
        except Violation as found:
            violation, monitor.worlds = found, worlds
            del monitor.stages[stages:]
            break
        count += 1
        report(count)
    end = next((w for w in monitor.worlds if not w.core.owed), monitor.worlds[0])
    workers, items = end.state
    return Explanation(
        tuple(monitor.way_to(end)),
        len(workers),
        len(items),
        max((record[PLACE[issued]] for record in items), default=0),
        count,
        len(monitor.worlds),
        violation,
    )


class _Remembering(Monitor):
    """A monitor that remembers which worlds there were before each observation."""

    def __init__(self, variant: Variant, scope: Scope) -> None:
        super().__init__(variant, scope)
        self.stages: list[_Passed | _Seen] = []

    def pass_time(self, now_ms: int, until_ms: int | None = None) -> None:
        """Let time pass, and remember what was before."""
        if self.scope.clock:
            self.stages.append(_Passed(self.worlds, now_ms, now_ms if until_ms is None else until_ms))
        super().pass_time(now_ms, until_ms)

    def _sight(self, seen: Observation) -> Sight:
        before = self.worlds
        sight = super()._sight(seen)
        self.stages.append(_Seen(before, self.worlds, sight, seen))
        return sight

    def way_to(self, end: World) -> list[Taken]:
        """Steps that lead to one of the worlds at the end."""
        found: list[Taken] = []
        for stage in reversed(self.stages):
            if isinstance(stage, _Passed):
                start = next(w for w in stage.before if end in self._ticked(w, stage.now_ms, stage.until_ms))
                steps = way(start.state, end.state, self._timers)
                end = start
            else:
                place, start = next(
                    (k, w)
                    for k, w in enumerate(stage.with_room)
                    if end in self._followed(w, stage.sight, stage.seen)
                )
                steps = self._through(start.core, end.core, stage.sight)
                end = stage.before[place]
            found[:0] = steps
        return found

    def _timers(self, state: State) -> Iterator[tuple[State, Taken]]:
        for stepper in self.engine.steppers:
            if stepper.action.label.event in BY_TIME:
                for w, i in stepper.choices(state):
                    yield stepper.takes(*state, w, i), (stepper.action, w, i)

    def _through(self, start: Core, end: Core, sight: Sight) -> list[Taken]:
        """What happened unseen before an observation, and then what was observed."""
        for core in self.engine.closed(start):
            for follows in self.engine.explained(core, sight):
                if follows.core == end:
                    return [*way(start, core, self.engine.unseen), *self._seen_step(core, follows)]
        raise AssertionError("a world that follows is reached by some step")

    def _seen_step(self, core: Core, follows: Follows) -> list[Taken]:
        """The step that was observed; none where it had happened before, and was only owed."""
        return [
            (stepper.action, w, i)
            for stepper in self.engine.steppers
            if stepper.action.name == follows.action
            for w, i in stepper.choices(core.state)
            if stepper.takes(*core.state, w, i) == follows.core.state
        ][:1]


P_ = TypeVar("P_", bound=Hashable)


def way(start: P_, end: P_, following: Callable[[P_], Iterable[tuple[P_, Taken]]]) -> list[Taken]:
    """A shortest way from one place to another."""
    came_from: dict[P_, tuple[P_, Taken] | None] = {start: None}
    todo = deque(came_from)
    while end not in came_from:
        place = todo.popleft()
        for later, step in following(place):
            if later not in came_from:
                came_from[later] = (place, step)
                todo.append(later)
    steps: list[Taken] = []
    back = came_from[end]
    while back is not None:
        steps.insert(0, back[1])
        back = came_from[back[0]]
    return steps
