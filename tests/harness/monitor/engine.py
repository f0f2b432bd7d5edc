"""The engine of the monitor: which worlds can follow a world, worked out once for each kind of sight."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TypeAlias

from attrs import evolve

from peeklock.harness.monitor.promise_checks import StepPromises
from peeklock.harness.monitor.world import HELD, Core, Follows, Scope, Sight
from peeklock.spec.compose import specialized
from peeklock.spec.law.state import Result, attempt_count, issued, result, token
from peeklock.spec.notation.actions import Action, Answer, Call, Event, Label, Timer
from peeklock.spec.reading.evaluate import PLACE, State, Stepper
from peeklock.spec.variants.variant import Variant

_RESULTS = list(Result)
_UNSEEN_HANDLERS = frozenset(
    {Event.HANDLER_STARTS, Event.HANDLER_SUCCEEDS, Event.HANDLER_FAILS, Event.HANDLER_MISSING}
)
_UNSEEN_STOPS = frozenset({Event.HANDLER_STOPPED, Event.CRASH, Event.SHUTDOWN, Event.GRACE_ENDS})
BY_TIME = frozenset({Event.VISIBLE, Event.EXPIRES})
Taken: TypeAlias = tuple[Action, int, int]
"""A step of the specification: the action, its worker and its item; 0 stands for a parameter that it has not."""
TakenFrom: TypeAlias = tuple[State, Taken]
"""The same, with the state before it."""
COUNTS = "counts "
"""Begins what is allowed, where that is a verdict to count."""
MOST_REMEMBERED = 200_000
"""Steps kept, so that memory does not grow with the length of a run."""


@cache
def engine(variant: Variant, scope: Scope, actions: tuple[Action, ...]) -> Engine:
    """The engine for a variant of the protocol and what of a run is recorded; made once however many runs there are."""
    return Engine(variant, scope, actions)


class Engine:
    """Takes worlds from sight to sight, without names and times."""

    def __init__(self, variant: Variant, scope: Scope, actions: tuple[Action, ...]) -> None:
        self.variant, self.scope = variant, scope
        self.actions = actions
        """The protocol as it is before a policy rules steps out."""
        self.steppers = tuple(Stepper(a) for a in specialized(actions, variant.settings))
        self.promises = StepPromises(variant)
        self._by_call: dict[Call, list[Stepper]] = {}
        self._by_event: dict[Event, list[Stepper]] = {}
        for stepper in self.steppers:
            label = stepper.action.label
            if label.call is not None:
                self._by_call.setdefault(label.call, []).append(stepper)
            if label.event is not None:
                self._by_event.setdefault(label.event, []).append(stepper)
        self._hidden = [s for s in self.steppers if self._is_hidden(s.action.label)]
        self._closures: dict[Core, tuple[Core, ...]] = {}
        self._follows: dict[tuple[Core, Sight], tuple[Follows, ...]] = {}

    @property
    def has_workers(self) -> bool:
        """Do workers keep to a policy here? Without them the store stands alone, and only its promises are at stake."""
        return Event.HANDLER_STARTS in self._by_event

    def _is_hidden(self, label: Label) -> bool:
        scope = self.scope
        unseen = set() if scope.handlers else set(_UNSEEN_HANDLERS)
        unseen |= set() if scope.stops else set(_UNSEEN_STOPS)
        unseen |= set() if scope.clock else set(BY_TIME)
        return label.event in unseen

    def closed(self, core: Core) -> tuple[Core, ...]:
        """The world, and those that can follow by what happens unseen, nearest first."""
        known = self._closures.get(core)
        if known is not None:
            return known
        found = dict.fromkeys((core,))
        todo = deque(found)
        while todo:
            for after, _ in self.unseen(todo.popleft()):
                if after not in found:
                    found[after] = None
                    todo.append(after)
        if len(self._closures) > MOST_REMEMBERED:
            self._closures.clear()
        self._closures[core] = tuple(found)
        return self._closures[core]

    def unseen(self, core: Core) -> Iterator[tuple[Core, Taken]]:
        """The worlds that can be next by a step that nobody would see, each with the step."""
        for stepper in self._hidden:
            for w, i in stepper.choices(core.state):
                if stepper.action.worker is None or not self.is_behind(core, w):
                    broken = core.broken | self.promises.broken_by(stepper.action, core.state, w, i)
                    after = evolve(core, state=stepper.takes(*core.state, w, i), broken=broken)
                    yield after, (stepper.action, w, i)

    def follow(self, core: Core, seen: Sight) -> tuple[Follows, ...]:
        """The worlds that can follow when this is seen, with what happens unseen before it."""
        key = (core, seen)
        known = self._follows.get(key)
        if known is None:
            if len(self._follows) > MOST_REMEMBERED:
                self._follows.clear()
            found: dict[Follows, None] = {}
            for before in self.closed(core):
                found.update(dict.fromkeys(self.explained(before, seen)))
            known = self._follows[key] = tuple(found)
        return known

    def explained(self, core: Core, seen: Sight) -> Iterator[Follows]:
        """The worlds that follow at once when this is seen."""
        if seen.counts is not None:
            assert seen.worker is not None
            said = (seen.worker, seen.counts)
            if said in core.said:
                yield Follows(evolve(core, said=core.said - {said}))
            return
        if seen.answer is not None and seen.worker is not None and seen.call is not None:
            owed = (seen.worker, seen.call, seen.answer)
            if owed in core.owed:
                yield Follows(evolve(core, owed=core.owed - {owed}))
        for stepper in self.speaking_of(seen):
            for w, i in self._ways(core, stepper, seen):
                yield from self._taken(core, stepper, seen, w, i)

    def steps(self, core: Core, seen: Sight) -> Iterator[TakenFrom]:
        """The steps that explain what was seen in this world, with what happens unseen before them."""
        for before in self.closed(core):
            for stepper in self.speaking_of(seen):
                for w, i in self._ways(before, stepper, seen):
                    yield before.state, (stepper.action, w, i)

    def _ways(self, core: Core, stepper: Stepper, seen: Sight) -> Iterator[tuple[int, int]]:
        action = stepper.action
        if fits(action.label, seen):
            for w, i in choices(core, action, seen):
                if stepper.allows(*core.state, w, i) and _matches(core, action, seen, w, i):
                    yield w, i

    def speaking_of(self, seen: Sight) -> list[Stepper]:
        """The actions that are this call or this event."""
        if seen.call is not None:
            return self._by_call.get(seen.call, [])
        return [] if seen.event is None else self._by_event.get(seen.event, [])

    def _taken(self, core: Core, stepper: Stepper, seen: Sight, w: int, i: int) -> Iterator[Follows]:
        action, label = stepper.action, stepper.action.label
        if action.worker is not None and self.is_behind(core, w):
            return
        state = stepper.takes(*core.state, w, i)
        broken = core.broken | self.promises.broken_by(action, core.state, w, i)
        tokens, owed, said = core.tokens, core.owed, core.said
        if label.call is Call.FETCH and label.takes_effect and seen.token is not None:
            tokens |= {(seen.token, i, state[1][i][PLACE[issued]])}
        if seen.answer is None and label.answer not in (None, Answer.OK) and self.scope.answers:
            assert label.call is not None
            assert label.answer is not None
            owed |= {(w, label.call, label.answer)}
        if action.worker is not None:
            # Where counts are not all recorded, one that was not seen by now will not be.
            others = frozenset(x for x in said if x[0] != w)
            said = others | ({(w, label.counts)} if label.counts is not None else frozenset())
        timer = action.timer if self.scope.clock else None
        yield Follows(Core(state, tokens, owed, said, broken), timer, action.prolongs, i, action.name)

    def is_behind(self, core: Core, w: int) -> bool:
        """Has this worker done something before that should have been seen by now?"""
        unsaid = self.scope.counts and any(x[0] == w for x in core.said)
        return unsaid or any(x[0] == w for x in core.owed)

    def run_out(self, core: Core, timer: Timer, i: int) -> Core:
        """The world when a timer of the item is due; unchanged where the specification does not let it run out."""
        for stepper in self._by_event[Event.EXPIRES if timer is Timer.LOCK else Event.VISIBLE]:
            if stepper.allows(*core.state, 0, i):
                core = evolve(core, state=stepper.takes(*core.state, 0, i))
        return core

    def allowed(self, ways: Iterable[tuple[Core, Sight]]) -> tuple[str, ...]:
        """What could have been seen instead, in these worlds and of the worker that each sight names."""
        told: dict[str, None] = {}
        for core, seen in ways:
            for w, counts in core.said:
                if w == seen.worker:
                    told[f"{COUNTS}{counts.value}"] = None
            if seen.worker is not None and self.is_behind(core, seen.worker):
                continue
            for stepper in self.steppers:
                label, action = stepper.action.label, stepper.action
                if label.event in BY_TIME:
                    continue
                for w, _ in stepper.choices(core.state):
                    if seen.worker is None or (action.worker is not None and w == seen.worker):
                        told[str(label).removesuffix(", although it took effect")] = None
        return tuple(told)


def fits(label: Label, seen: Sight) -> bool:
    """Is the label one of what was seen, as far as that was seen?"""
    if seen.answer is not None and label.answer is not seen.answer:
        return False
    if seen.effect is None or label.call is None:
        return True
    return label.takes_effect == seen.effect


def choices(core: Core, action: Action, seen: Sight) -> list[tuple[int, int]]:
    """The workers and the items that it may be about."""
    workers: Iterable[int] = (0,)
    if action.worker is not None:
        workers = range(len(core.state[0])) if seen.worker is None else (seen.worker,)
    items: Iterable[int] = (0,)
    if action.item is not None:
        items = range(len(core.state[1])) if seen.item is None else (seen.item,)
    return [(w, i) for w in workers for i in items]


def _matches(core: Core, action: Action, seen: Sight, w: int, i: int) -> bool:
    """Does the step agree with what else was seen: the token, the attempt count, the completion?"""
    label, (workers, items) = action.label, core.state
    if label.call is Call.FETCH:
        if not label.takes_effect:
            return True
        if seen.attempt is not None and items[i][PLACE[attempt_count]] + 1 != seen.attempt:
            return False
        return not any(number == seen.token for number, _, _ in core.tokens)
    if seen.names_token and action.worker is not None:
        if workers[w][HELD] != i + 1:
            return False
        if (seen.token, i, workers[w][PLACE[token]]) not in core.tokens:
            return False
    if seen.completions and label.call is Call.ACK:
        return _RESULTS[workers[w][PLACE[result]]] in seen.completions
    return True
