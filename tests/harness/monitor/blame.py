"""Blame: which promises are broken by what no state explains. The promises themselves are asked.

What was seen is taken to have happened all the same: as a step without its guards, of a worker that has in hand what
it presents, that has not forgotten what it was done with, or that counts what it should not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from attrs import evolve

from peeklock.harness.monitor.engine import Engine, TakenFrom, choices, fits
from peeklock.harness.monitor.promise_checks import StepPromises
from peeklock.harness.monitor.world import HELD, Core, Sight
from peeklock.spec.compose import PROMISES
from peeklock.spec.law.state import Result, attempt_count, issued, result, token
from peeklock.spec.notation.actions import Action, Answer, Call, Metric
from peeklock.spec.reading.evaluate import PLACE, Record, State, Stepper
from peeklock.spec.reading.hypothetical import answered, counted, remembered, taken_up, unguarded
from peeklock.spec.variants.capabilities import OF_A_STORE

_RESULTS = list(Result)
_NO_RESULT = _RESULTS.index(Result.NONE)
_NO_STORES_FAULT = frozenset({"cancel", "expiry"})


@cache
def blame(engine: Engine) -> Blame:
    """The one that asks for this engine; made only where something is found."""
    return Blame(engine)


class Blame:
    """Asks the promises of one variant of the protocol."""

    def __init__(self, engine: Engine) -> None:
        variant = engine.variant
        self._engine, self._promises = engine, engine.promises
        self._unfailing = StepPromises(evolve(variant, faults=variant.faults & _NO_STORES_FAULT))
        self._ruled_out = tuple(unguarded(engine.actions, variant.settings))

    def at_stake(
        self, ways: Sequence[tuple[Core, Sight]], latest: Sequence[TakenFrom] = ()
    ) -> tuple[str, ...]:
        """The promises that what was seen would break, the most telling first: those of every world that it met.

        Where no promise is broken in all of them, those that are in some. The sight goes with each world, since a
        worker's number may differ from world to world. ``latest`` are the steps that the worker's latest may have been.
        """
        if any(seen.call is Call.FETCH for _, seen in ways):
            if any(number == seen.token for core, seen in ways for number, _, _ in core.tokens):
                return ("S4",)
            if all(_miscounts(core, seen) for core, seen in ways) and any(
                self._engine.follow(core, evolve(seen, attempt=None)) for core, seen in ways
            ):
                return ("C2",)
        sets = list(self._broken(ways, latest))
        named = frozenset.intersection(*sets) if sets else frozenset()
        named = named or frozenset().union(*sets)
        if not self._engine.has_workers:
            named &= OF_A_STORE
        return tuple(p.id for p in PROMISES if p.id in named)

    def _broken(
        self, ways: Sequence[tuple[Core, Sight]], latest: Sequence[TakenFrom]
    ) -> Iterator[frozenset[str]]:
        engine = self._engine
        counts = next((seen.counts for _, seen in ways), None)
        behind = any(s.worker is not None and engine.is_behind(core, s.worker) for core, s in ways)
        if counts is not None or (behind and engine.scope.counts):
            # A verdict that is said again, or was not said in time, is one of the worker's latest step.
            for step in latest:
                verdict = step[1][0].label.counts
                yield self._of_count(step, counts, verdict is not None and not behind)
            return
        kept = next((_kept_after(step) for step in latest), None)
        for core, seen in ways:
            # Of what may have happened unseen before, that after which the fewest promises are broken.
            sets = (self._of_call_or_event(before, seen, kept) for before in engine.closed(core))
            yield min(filter(None, sets), key=len, default=frozenset[str]())

    def _of_call_or_event(self, core: Core, seen: Sight, kept: Record | None) -> frozenset[str]:
        """The promises that what was seen would break in this world, had it happened all the same.

        ``kept`` is what the worker would still have in hand, had it not forgotten it; that is asked first.
        """
        states = [core.state]
        if kept is not None and seen.worker is not None and _held(core.state, seen.worker) == 0:
            states.insert(0, _with_worker(core.state, seen.worker, kept))
        return next(filter(None, (self._of_step(state, core, seen) for state in states)), frozenset())

    def _of_step(self, state: State, core: Core, seen: Sight) -> frozenset[str]:
        named = frozenset[str]()
        if self._engine.has_workers:
            state, named = self._presenting(state, core, seen)
        # Where a store stands alone no fault excuses a refusal: what is made to fail may be tried again.
        refuses = seen.answer is Answer.PERMANENT and not self._engine.has_workers
        promises = self._unfailing if refuses else self._promises
        found = [
            promises.broken_by(action, state, w, i)
            for action in self._could_be(seen)
            for w, i in choices(core, action, seen)
            if not seen.names_token or seen.call is Call.FETCH or _held(state, w) in (0, i + 1)
        ]
        # Of the steps that it could have been, the one that breaks the fewest promises, and is wrong at all.
        telling = found if named else [f for f in found if f]
        return named | (min(telling, key=len) if telling else frozenset())

    def _of_count(self, taken: TakenFrom, counts: Metric | None, again: bool) -> frozenset[str]:
        """The promises that are broken where the worker counts this of the step, or nothing.

        ``again`` says that the verdict of the step was counted before.
        """
        before, (step, *where) = taken
        miscounted = counted(step, counts)
        if not again:
            return self._promises.broken_by(miscounted, before, *where)
        for action in (remembered(step), step):
            after = Stepper(action).takes(*before, *where)
            broken = self._promises.broken_by(miscounted, after, *where, of_counts=True)
            if broken:
                return broken
        return frozenset()

    def _could_be(self, seen: Sight) -> Iterable[Action]:
        """The steps that it could have been: of this variant, or else of the protocol, or with another answer."""
        speaking = [s.action for s in self._engine.speaking_of(seen)]
        ruled_out = [a for a in self._ruled_out if a.label.call is seen.call and a.label.event is seen.event]
        for actions in (speaking, ruled_out):
            fitting = [a for a in actions if fits(a.label, seen)]
            if fitting:
                return fitting
        if seen.answer is None:
            return ()
        return [answered(a, seen.answer) for a in speaking if a.label.takes_effect == seen.effect]

    def _presenting(self, state: State, core: Core, seen: Sight) -> tuple[State, frozenset[str]]:
        """The state in which the worker has in hand what it presents, and what it breaks to have it there."""
        w = seen.worker
        if w is None or seen.call in (None, Call.FETCH) or not seen.names_token:
            return state, frozenset()
        assert seen.call is not None
        record = state[0][w]
        known = [(i, k) for number, i, k in core.tokens if number == seen.token]
        i = record[HELD] - 1 if seen.item is None else seen.item
        if not known and i < 0:
            return state, frozenset()
        i, k = known[0] if known else (i, state[1][i][PLACE[issued]] + 1)
        carried = _RESULTS[record[PLACE[result]]]
        if seen.completions and carried not in seen.completions:
            carried = seen.completions[0]
        if (record[HELD], record[PLACE[token]], record[PLACE[result]]) == (i + 1, k, _RESULTS.index(carried)):
            return state, frozenset()
        taking = taken_up(seen.call, k, carried)
        had_none = record[HELD] == 0 or (record[HELD] == i + 1 and record[PLACE[result]] == _NO_RESULT)
        broken = frozenset[str]() if had_none else self._promises.broken_by(taking, state, w, i)
        return Stepper(taking).takes(*state, w, i), broken


def _kept_after(taken: TakenFrom) -> Record:
    """What a worker would have in hand after the step, had it not forgotten it."""
    before, (step, w, i) = taken
    return Stepper(remembered(step)).takes(*before, w, i)[0][w]


def _miscounts(core: Core, seen: Sight) -> bool:
    if seen.item is None or seen.attempt is None:
        return False
    return core.state[1][seen.item][PLACE[attempt_count]] + 1 != seen.attempt


def _held(state: State, w: int) -> int:
    return state[0][w][HELD] if state[0] else 0


def _with_worker(state: State, w: int, record: Record) -> State:
    workers, items = state
    return (*workers[:w], record, *workers[w + 1 :]), items
