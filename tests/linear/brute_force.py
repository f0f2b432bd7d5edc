"""Whether a history is explained, decided in the most simple-minded way: every order, and every millisecond.

It shares nothing with the judge but the specification: the store with a clock is let run, and at each moment each call
that is open may take effect, or time may pass, or the next event may come. It is for short histories.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cache

from attrs import evolve, frozen

from peeklock.harness.linear.history import Invoke, Outcome, Return
from peeklock.harness.linear.item_model import StoreAnswer, StoreCall
from peeklock.harness.run.steps import NEVER_ISSUED
from peeklock.spec.notation.actions import Answer, Call
from peeklock.spec.reading.timed_store import (
    MADE,
    STRANGER,
    Moment,
    Step,
    TokenName,
    nothing,
    timed_store,
    with_room,
)
from peeklock.spec.reading.timed_store import Outcome as Out
from peeklock.spec.variants.capabilities import Capabilities


@frozen(cache_hash=True)
class State:
    """Where a run of the store may be."""

    at: int
    """How many events have come."""
    now_ms: int
    moment: Moment
    names: tuple[str, ...]
    """The items, the oldest first."""
    tokens: frozenset[tuple[str, TokenName]]
    unseen: frozenset[TokenName]
    """Tokens of fetches that nobody saw the answer of."""
    done: frozenset[int]


class BruteForce:
    """Runs a store with these capabilities in every way; remembers what calls do."""

    def __init__(self, capabilities: Capabilities, clock: bool = True) -> None:
        self.store, self.clock, self.capabilities = timed_store(capabilities), clock, capabilities
        self.outcomes = cache(self._outcomes)
        self.run_out = cache(self._run_out)
        self.later = cache(self._later)

    def explains(self, events: Sequence[Invoke | Return]) -> bool:
        """Is there a run of the store that looks so from outside?"""
        calls: dict[int, tuple[StoreCall, StoreAnswer | None]] = {}
        numbers: list[int] = []
        running: dict[Hashable, int] = {}
        failed: set[int] = set()
        for event in events:
            if isinstance(event, Invoke):
                running[event.key] = len(calls)
                calls[len(calls)] = event.what, None
                numbers.append(running[event.key])
                continue
            number = running.pop(event.key)
            numbers.append(number)
            if event.outcome is Outcome.OK:
                calls[number] = calls[number][0], event.result
            if event.outcome is Outcome.FAIL:
                failed.add(number)
        self._known = {told.token for _, told in calls.values() if told is not None and told.token}
        start = State(0, 0, nothing(0), (), frozenset(), frozenset(), frozenset(failed))
        seen, todo = {start}, [start]
        while todo:
            state = todo.pop()
            if state.at == len(events):
                return True
            for after in self._next(state, events, numbers, calls):
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
        return False

    def _next(
        self,
        state: State,
        events: Sequence[Invoke | Return],
        numbers: list[int],
        calls: dict[int, tuple[StoreCall, StoreAnswer | None]],
    ) -> Iterator[State]:
        event = events[state.at]
        number = numbers[state.at]
        if isinstance(event, Invoke):
            time_ms = event.what.at_ms
        else:
            time_ms = state.now_ms if event.result is None else event.result.until_ms
        if not self.clock:
            time_ms = 0
        if state.now_ms < time_ms:
            yield evolve(state, now_ms=state.now_ms + 1, moment=self.later(state.moment))
        elif isinstance(event, Invoke) or number in state.done or _may_be_lost(*calls[number]):
            yield evolve(state, at=state.at + 1)
        ended = {n for n, e in zip(numbers[: state.at], events, strict=False) if isinstance(e, Return)}
        for number in dict.fromkeys(numbers[: state.at]):
            call, told = calls[number]
            if number not in state.done and (number not in ended or told is None):
                yield from self._taken(evolve(state, done=state.done | {number}), call, told)
        if not self.clock:
            for i in range(len(state.names)):
                after = self.run_out(state.moment, i)
                if after != state.moment:
                    yield evolve(state, moment=after)

    def _taken(self, state: State, call: StoreCall, told: StoreAnswer | None) -> Iterator[State]:
        answer = None if told is None else told.answer
        optional = told is None or answer is Answer.RETRYABLE
        if call.call is Call.ENQUEUE:
            if call.items[0] not in state.names:
                moment = with_room(state.moment)
                step = Step(call.call, call.lasts_ms, (len(state.names),))
                for out in self.outcomes(moment, step):
                    yield evolve(state, moment=out.after, names=(*state.names, *call.items))
            return
        if call.call is Call.CANCEL:
            had = [state.names.index(x) for x in call.items if x in state.names]
            for out in self.outcomes(state.moment, Step(call.call, items=tuple(had))):
                removed = {state.names[i] for i in out.removed}
                if optional or told is None or not told.names_items or removed == set(told.items):
                    yield evolve(state, moment=out.after)
            return
        if call.call is Call.FETCH:
            yield from self._fetched(state, call, told)
            return
        for token, tokens in self._presented(state, call):
            for fault in MADE:
                for out in self.outcomes(state.moment, Step(call.call, call.lasts_ms, (), token, fault)):
                    if answer is None or answer in out.answers:
                        yield evolve(state, moment=out.after, tokens=tokens)

    def _presented(
        self, state: State, call: StoreCall
    ) -> Iterator[tuple[TokenName, frozenset[tuple[str, TokenName]]]]:
        bound = dict(state.tokens)
        if call.token is None:
            i = state.names.index(call.items[0]) if call.items[0] in state.names else 0
            yield STRANGER, state.tokens
            if state.moment.items and call.items[0] in state.names:
                yield state.moment.latest_token(i), state.tokens
        elif call.token in bound:
            yield bound[call.token], state.tokens
        else:
            yield STRANGER, state.tokens
            if call.token not in self._known and call.token != NEVER_ISSUED:
                for token in state.unseen - set(bound.values()):
                    yield token, state.tokens | {(call.token, token)}

    def _fetched(self, state: State, call: StoreCall, told: StoreAnswer | None) -> Iterator[State]:
        for fault in MADE:
            for out in self.outcomes(state.moment, Step(call.call, call.lasts_ms, fault=fault)):
                if told is not None and told.answer not in out.answers:
                    continue
                if out.item is None:
                    yield evolve(state, moment=out.after)
                    continue
                token = out.after.latest_token(out.item)
                if told is None or not told.items:
                    yield evolve(state, moment=out.after, unseen=state.unseen | {token})
                    continue
                counted = told.attempt is not None and self.capabilities.attempt_counts
                if state.names[out.item] != told.items[0] or (
                    counted and out.after.attempt_count(out.item) != told.attempt
                ):
                    continue
                if told.token is None:
                    yield evolve(state, moment=out.after, unseen=state.unseen | {token})
                elif told.token not in dict(state.tokens):
                    yield evolve(state, moment=out.after, tokens=state.tokens | {(told.token, token)})

    # What is remembered

    def _outcomes(self, moment: Moment, step: Step) -> tuple[Out, ...]:
        if step.token is not None and step.token[0] >= len(moment.items):
            moment_there = with_room(moment)
            found = self.store.outcomes(moment_there, step)
            return tuple(evolve(out, after=moment) for out in found if not out.effect)
        found = self.store.outcomes(moment, step)
        return tuple(evolve(out, after=_without_names(out.after)) for out in found)

    def _later(self, moment: Moment) -> Moment:
        return _without_names(self.store.outcomes(moment, Step(None, 1))[0].after)

    def _run_out(self, moment: Moment, i: int) -> Moment:
        left = moment.left_ms
        if left[i] is None:
            return moment
        over = evolve(moment, left_ms=(*left[:i], 0, *left[i + 1 :]))
        return _without_names(self.store.outcomes(over, Step(None, 0))[0].after)


def _may_be_lost(call: StoreCall, told: StoreAnswer | None) -> bool:
    return told is None or told.answer is Answer.RETRYABLE


def _without_names(moment: Moment) -> Moment:
    return evolve(moment, tokens=(), renewed=(False,) * len(moment.items))


@cache
def brute_force(capabilities: Capabilities, clock: bool = True) -> BruteForce:
    """Made once for each kind of store."""
    return BruteForce(capabilities, clock)
