"""The monitor: the set of states of the specification that explain what was seen so far.

A lost response leaves two states, a later answer removes one, and an empty set is a violation: then the monitor
says what was seen, in which states the run could have been before it, and what those would have allowed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from functools import cache

from attrs import evolve, frozen

from peeklock.harness.observation import Observation, shown
from peeklock.spec.actions import ABANDONS, Action, Answer, Call, Event, Label, Metric, Timer
from peeklock.spec.evaluate import INITIAL_ITEM, INITIAL_WORKER, PLACE, State, Stepper, predicate
from peeklock.spec.narrative import describe_item, describe_worker, item_name
from peeklock.spec.protocol import ACTIONS, PROMISES, Variant, specialized
from peeklock.spec.state import Phase, Result, attempt_count, issued, result, token, working_on
from peeklock.spec.terms import substitute

_PHASES, _RESULTS = list(Phase), list(Result)


@frozen
class World:
    """One state that explains what was seen."""

    state: State = ((), ())
    tokens: frozenset[tuple[str, int, int]] = frozenset()
    """What each token seen is: (text, item, which of the item's tokens)."""
    deadlines: frozenset[tuple[int, Timer, int]] = frozenset()
    """When each item's timers run out, in milliseconds; only where a clock is watched."""
    owed: frozenset[tuple[int, Call, Answer]] = frozenset()
    """Answers that a worker has had and that were not seen yet."""
    said: frozenset[tuple[int, Metric]] = frozenset()
    """Verdicts that a worker has counted and that were not seen yet."""
    broken: frozenset[str] = frozenset()
    """The promises that were broken on the way here."""


@frozen
class Scope:
    """What of a run is recorded. What is not may happen unseen."""

    clock: bool = False
    """Every observation has the time of the store's one clock: timers run out exactly when they are due."""
    counts: bool = False
    """Verdicts that workers count are recorded."""
    handlers: bool = True
    """The beginning and the end of handlers are recorded."""
    answers: bool = True
    """Every answer that is an error is recorded."""
    stops: bool = False
    """The end of a cancelled handler, crashes and shutdowns are recorded."""


CALLS_AND_HANDLERS = Scope()


class Violation(Exception):
    """Something was seen that no state of the specification explains."""

    def __init__(
        self,
        seen: Observation,
        before: tuple[World, ...],
        allowed: tuple[str, ...],
        reason: str,
        promises: tuple[str, ...] = (),
    ) -> None:
        super().__init__(f"{seen.place + ': ' if seen.place else ''}{seen}: {reason}")
        self.seen, self.before, self.allowed, self.reason = seen, before, allowed, reason
        self.promises = promises
        """The promises that it breaks in every state that the run could be in, the most telling first."""


_UNSEEN_HANDLERS = frozenset(
    {Event.HANDLER_STARTS, Event.HANDLER_SUCCEEDS, Event.HANDLER_FAILS, Event.HANDLER_MISSING}
)
_UNSEEN_STOPS = frozenset({Event.HANDLER_STOPPED, Event.CRASH, Event.SHUTDOWN, Event.GRACE_ENDS})
STARTS_TIMER = (Call.ENQUEUE, Call.FETCH, Call.RENEW, *ABANDONS)
"""The calls of which a monitor with a clock must know how long what they start lasts."""
_BY_TIME = frozenset({Event.VISIBLE, Event.EXPIRES})


class Monitor:
    """Keeps every state that explains a run, observation by observation."""

    def __init__(
        self, variant: Variant, scope: Scope = CALLS_AND_HANDLERS, actions: tuple[Action, ...] = ACTIONS
    ) -> None:
        self.variant, self.scope = variant, scope
        self.worlds: tuple[World, ...] = (World(),)
        self.now_ms: int | None = None
        self.workers: dict[str, int] = {}
        self.items: dict[str, int] = {}
        self.taken: Counter[str] = Counter()
        """How often each action of the specification explained something that was seen, by its name."""
        self._steppers, self._promises = _compiled(variant, actions)
        self._by_call: dict[Call, list[Stepper]] = {}
        self._by_event: dict[Event, list[Stepper]] = {}
        for stepper in self._steppers:
            label = stepper.action.label
            if label.call is not None:
                self._by_call.setdefault(label.call, []).append(stepper)
            if label.event is not None:
                self._by_event.setdefault(label.event, []).append(stepper)
        self._hidden = [s for s in self._steppers if self._is_hidden(s.action.label)]

    def _is_hidden(self, label: Label) -> bool:
        scope = self.scope
        unseen = set() if scope.handlers else set(_UNSEEN_HANDLERS)
        unseen |= set() if scope.stops else set(_UNSEEN_STOPS)
        unseen |= set() if scope.clock else set(_BY_TIME)
        return label.event in unseen

    def observe(self, seen: Observation) -> None:
        """Take in one observation; ``Violation`` when no state explains it.

        With a clock, ``ValueError`` for an observation without its time, or without a length where it may start a
        timer.
        """
        if self.scope.clock:
            if seen.at_ms is None:
                raise ValueError(f"{seen}: with a clock, at_ms is needed")
            if seen.lasts_ms is None and seen.call in STARTS_TIMER and seen.answer is not Answer.NOTHING:
                raise ValueError(f"{seen}: with a clock, lasts_ms is needed")
        if seen.at_ms is not None:
            self.pass_time(seen.at_ms)
        self._make_room(seen)
        before = self._closed(self.worlds)
        after = _each_once(w for world in before for w in self._explained(world, seen))
        if not after:
            raise Violation(seen, before, tuple(self._allowed(before, seen)), self._reason(before, seen))
        self.worlds = after

    def pass_time(self, now_ms: int) -> None:
        """Let the timers that are due run out."""
        self.now_ms = now_ms
        if self.scope.clock:
            self.worlds = _each_once(self._ticked(w, now_ms) for w in self.worlds)

    def broken(self) -> tuple[str, ...]:
        """The promises that are broken in every state that explains the run."""
        sets = [self._promises.judged(w).broken for w in self.worlds]
        certain = frozenset.intersection(*sets) if sets else frozenset()
        return tuple(p.id for p in PROMISES if p.id in certain)

    def forget_unseen(self) -> None:
        """Drop the states in which something is owed that should have been seen by now: at the end of a run."""
        self.worlds = tuple(w for w in self.worlds if not w.owed and not (self.scope.counts and w.said))

    # One observation

    def _make_room(self, seen: Observation) -> None:
        workers, items = len(self.workers), len(self.items)
        if seen.worker is not None:
            self.workers.setdefault(seen.worker, workers)
        if seen.item is not None:
            self.items.setdefault(seen.item, items)
        if (workers, items) != (len(self.workers), len(self.items)):
            more_workers = (INITIAL_WORKER,) * (len(self.workers) - workers)
            more_items = (INITIAL_ITEM,) * (len(self.items) - items)
            self.worlds = tuple(
                evolve(w, state=(w.state[0] + more_workers, w.state[1] + more_items)) for w in self.worlds
            )

    def _explained(self, world: World, seen: Observation) -> Iterator[World]:
        if seen.counts is not None:
            assert seen.worker is not None
            said = (self.workers[seen.worker], seen.counts)
            if said in world.said:
                yield evolve(world, said=world.said - {said})
            return
        if seen.answer is not None and seen.worker is not None and seen.call is not None:
            owed = (self.workers[seen.worker], seen.call, seen.answer)
            if owed in world.owed:
                yield evolve(world, owed=world.owed - {owed})
        steppers = self._by_call[seen.call] if seen.call is not None else self._by_event.get(seen.event, [])  # type: ignore[arg-type]
        for stepper in steppers:
            if self._fits(stepper.action.label, seen):
                for w, i in self._choices(world, stepper.action, seen):
                    if stepper.allows(*world.state, w, i) and self._matches(
                        world, stepper.action, seen, w, i
                    ):
                        yield from self._taken(world, stepper, seen, w, i)

    @staticmethod
    def _fits(label: Label, seen: Observation) -> bool:
        if seen.answer is not None and label.answer is not seen.answer:
            return False
        if seen.effect is None or label.call is None:
            return True
        return label.takes_effect == seen.effect

    def _choices(self, world: World, action: Action, seen: Observation) -> Iterator[tuple[int, int]]:
        workers: Iterable[int] = (0,)
        if action.worker is not None:
            workers = range(len(world.state[0])) if seen.worker is None else (self.workers[seen.worker],)
        items: Iterable[int] = (0,)
        if action.item is not None:
            items = range(len(world.state[1])) if seen.item is None else (self.items[seen.item],)
        items = tuple(items)
        return ((w, i) for w in workers for i in items)

    def _matches(self, world: World, action: Action, seen: Observation, w: int, i: int) -> bool:
        """Does the step agree with what else was seen: the token, the attempt count, the completion?"""
        label, (workers, items) = action.label, world.state
        if label.call is Call.FETCH:
            if not label.takes_effect:
                return True
            if seen.attempt is not None and items[i][PLACE[attempt_count]] + 1 != seen.attempt:
                return False
            return not any(text == seen.token for text, _, _ in world.tokens)
        if seen.token is not None and action.worker is not None:
            if workers[w][PLACE[working_on]] != i + 1:
                return False
            if (seen.token, i, workers[w][PLACE[token]]) not in world.tokens:
                return False
        if seen.completions and label.call is Call.ACK:
            return _RESULTS[workers[w][PLACE[result]]] in seen.completions
        return True

    def _taken(self, world: World, stepper: Stepper, seen: Observation, w: int, i: int) -> Iterator[World]:
        label = stepper.action.label
        if stepper.action.worker is not None and self._is_behind(world, w):
            return
        self.taken[stepper.action.name] += 1
        after = evolve(world, state=stepper.takes(*world.state, w, i))
        after = evolve(
            after, broken=world.broken | self._promises.broken_by(stepper.action, world.state, w, i)
        )
        if label.call is Call.FETCH and label.takes_effect and seen.token is not None:
            serial = after.state[1][i][PLACE[issued]]
            after = evolve(after, tokens=after.tokens | {(seen.token, i, serial)})
        if seen.answer is None and label.answer not in (None, Answer.OK) and self.scope.answers:
            assert label.call is not None
            assert label.answer is not None
            after = evolve(after, owed=after.owed | {(w, label.call, label.answer)})
        if stepper.action.worker is not None:
            # Where counts are not all recorded, one that was not seen by now will not be.
            others = frozenset(x for x in after.said if x[0] != w)
            after = evolve(
                after, said=others | ({(w, label.counts)} if label.counts is not None else frozenset())
            )
        if self.scope.clock and stepper.action.timer is not None:
            after = self._timed(after, stepper.action.timer, i, seen)
        yield after

    def _is_behind(self, world: World, w: int) -> bool:
        """Has this worker done something before that should have been seen by now?"""
        unsaid = self.scope.counts and any(x[0] == w for x in world.said)
        return unsaid or any(x[0] == w for x in world.owed)

    def _timed(self, world: World, timer: Timer, i: int, seen: Observation) -> World:
        assert seen.at_ms is not None
        lasts_ms = seen.lasts_ms or 0
        others = frozenset(d for d in world.deadlines if d[2] != i)
        return self._ticked(evolve(world, deadlines=others | {(seen.at_ms + lasts_ms, timer, i)}), seen.at_ms)

    def _ticked(self, world: World, now_ms: int) -> World:
        for deadline in sorted((d for d in world.deadlines if d[0] <= now_ms), key=lambda d: d[0]):
            world = evolve(world, deadlines=world.deadlines - {deadline})
            for stepper in self._by_event[Event.EXPIRES if deadline[1] is Timer.LOCK else Event.VISIBLE]:
                if stepper.allows(*world.state, 0, deadline[2]):
                    world = evolve(world, state=stepper.takes(*world.state, 0, deadline[2]))
        return world

    def _closed(self, worlds: Iterable[World]) -> tuple[World, ...]:
        """The states, and those that can follow by what happens unseen, nearest first."""
        found = dict.fromkeys(worlds)
        todo = deque(worlds)
        while todo:
            world = todo.popleft()
            for stepper in self._hidden:
                for w, i in stepper.choices(world.state):
                    if stepper.action.worker is not None and self._is_behind(world, w):
                        continue
                    broken = world.broken | self._promises.broken_by(stepper.action, world.state, w, i)
                    after = evolve(world, state=stepper.takes(*world.state, w, i), broken=broken)
                    if after not in found:
                        found[after] = None
                        todo.append(after)
        return tuple(found)

    # What to say when nothing explains it

    def _allowed(self, worlds: Iterable[World], seen: Observation) -> Iterator[str]:
        told: dict[str, None] = {}
        for world in worlds:
            for stepper in self._steppers:
                label = stepper.action.label
                if label.event in _BY_TIME:
                    continue
                for w, _ in stepper.choices(world.state):
                    if seen.worker is not None and (
                        stepper.action.worker is None or w != self.workers[seen.worker]
                    ):
                        continue
                    told[str(label).removesuffix(", although it took effect")] = None
        yield from told

    def _reason(self, worlds: Iterable[World], seen: Observation) -> str:
        relaxed = evolve(seen, answer=None, effect=None, attempt=None, completions=())
        for world in worlds:
            if any(True for _ in self._explained(world, relaxed)):
                return "the call was allowed here, but not with this answer or these contents"
        return "this was not allowed here"

    def described(self, world: World) -> tuple[str, ...]:
        """One state in words: each item, and each worker that has something in hand."""
        names = {number: shown(name) for name, number in self.workers.items()}
        texts = {(i, t): shown(text) for text, i, t in world.tokens}
        items = []
        for name, number in self.items.items():
            of_item = {t: text for (i, t), text in texts.items() if i == number}
            told = describe_item(world.state[1][number], lambda t, known=of_item: known.get(t, f"token {t}"))  # type: ignore[misc]
            items.append(f"{shown(name)}: {told}")
        workers = [
            f"{names.get(w, item_name(w))}: {describe_worker(record)}"
            for w, record in enumerate(world.state[0])
            if record != INITIAL_WORKER
        ]
        return (*items, *workers)


def _each_once(worlds: Iterable[World]) -> tuple[World, ...]:
    """Without repetition, in order: what is told of them is the same in every run."""
    return tuple(dict.fromkeys(worlds))


@cache
def _compiled(variant: Variant, actions: tuple[Action, ...]) -> tuple[tuple[Stepper, ...], _StepPromises]:
    """What a monitor of this variant needs, made once however many runs are judged."""
    chosen = specialized(actions, variant.settings)
    return tuple(Stepper(a) for a in chosen), _StepPromises(variant, chosen)


class _StepPromises:
    """The promises about steps and states, ready to be asked of one concrete step or state."""

    def __init__(self, variant: Variant, actions: tuple[Action, ...]) -> None:
        self._steps: dict[str, list[tuple[str, object]]] = {}
        for action in actions:
            terms = [(p.id, variant.obligation(part, action)) for p in PROMISES for part in p.parts]
            self._steps[action.name] = [(pid, predicate(t)) for pid, t in terms if t is not None]
        self._states = [
            (p.id, predicate(substitute(part.state, variant.settings)))
            for p in PROMISES
            for part in p.parts
            if part.state is not None
        ]

    def broken_by(self, action: Action, state: State, w: int, i: int) -> frozenset[str]:
        """The promises that this step breaks."""
        return frozenset(pid for pid, keeps in self._steps[action.name] if not keeps(*state, w, i))  # type: ignore[operator]

    def judged(self, world: World) -> World:
        """The world with the promises that its state breaks."""
        found = frozenset(pid for pid, keeps in self._states if not keeps(*world.state))
        return evolve(world, broken=world.broken | found)
