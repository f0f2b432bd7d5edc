"""Runs to try on a store, drawn by Hypothesis and made sense of by the specification alone.

A draw is a kind of step with three small numbers. What the numbers mean depends on what is foreseen of the run so far,
so that every draw is a step that does something; where it cannot be, the nearest that does is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from attrs import evolve, frozen
from hypothesis import strategies as st

from peeklock.harness.run.spec_store import SpecStore
from peeklock.harness.run.steps import NEVER_ENQUEUED, Program, Step, item_name
from peeklock.spec.notation.actions import ABANDONS, Call
from peeklock.spec.reading.timed_store import MADE, Fault
from peeklock.spec.variants.capabilities import Capabilities


@frozen
class Times:
    """The lengths that steps are made with, in milliseconds."""

    locks_ms: tuple[int, ...] = (1_000, 100, 3_000, 30_000)
    delays_ms: tuple[int, ...] = (0, 0, 0, 100)
    nudges_ms: tuple[int, ...] = (0, 0, -1, 1)
    """How long after a timer's end to look; the end itself is the most telling moment."""
    long_ms: int = 100_000
    """A wait beyond every lock and delay, for what happens to those long over; 0 where it has to be waited for."""


VIRTUAL = Times()


def real_times(unit_ms: int) -> Times:
    """Lengths for a store in real time: nothing is looked at so near to a timer's end that the answer is open."""
    half_ms = unit_ms // 2
    return Times(
        (2 * unit_ms, unit_ms, 3 * unit_ms, 5 * unit_ms),
        (0, 0, 0, unit_ms),
        (half_ms, half_ms, -half_ms, -half_ms),
        long_ms=0,
    )


MOST_ITEMS = 4
Draw: TypeAlias = tuple[Call | None, int, int, int]

_FREQUENT: tuple[Call | None, ...] = (
    *(Call.FETCH,) * 5,
    *(Call.ENQUEUE,) * 2,
    *(None,) * 4,
    *(Call.ACK,) * 4,
    *(Call.RENEW,) * 3,
    *(Call.ABANDON,) * 3,
    Call.CANCELLATION_ACK,
    Call.ABANDON_IGNORING_ATTEMPT,
    Call.CANCEL,
)
_FAULTS = (*(Fault.NONE,) * 5, Fault.BEFORE_EFFECT, Fault.AFTER_EFFECT, Fault.AFTER_EFFECT)
_AGES = (0, 0, 0, 1, 1, 2, 3)
"""Whose token: 0 is the newest delivery. What is drawn beyond them is a token never issued."""


def draws(capabilities: Capabilities, most_steps: int) -> st.SearchStrategy[list[Draw]]:
    """Lists of draws, with most_steps at most."""
    kinds = tuple(c for c in _FREQUENT if c is None or c in capabilities.calls)
    return _lists(kinds, most_steps)


_FAR = 7 * 10**14
"""Numbers are drawn from here on. Hypothesis prefers those that stand in the code that is loaded; near to 0 a seed
would mean other runs in another program."""


def _below(end: int) -> st.SearchStrategy[int]:
    return st.integers(_FAR, _FAR + end - 1)


@st.composite
def _lists(draw: st.DrawFn, kinds: tuple[Call | None, ...], most: int) -> list[Draw]:
    """Lists that are long more often than ``lists`` makes them, and shrink as well.

    What makes a check long is the number of draws, so the end and the kind are one, and so are the small numbers.
    """
    kind, small = _below(2 * len(kinds) + 1), _below(8**3)
    found: list[Draw] = []
    while len(found) < most and (k := draw(kind) - _FAR):
        n = draw(small) - _FAR
        found.append((kinds[k % len(kinds)], n // 64, n // 8 % 8, n % 8))
    return found


def programs(
    capabilities: Capabilities, times: Times = VIRTUAL, most_steps: int = 40
) -> st.SearchStrategy[Program]:
    """Runs for a store with these capabilities, each with an end in which all that is left must come out."""
    return draws(capabilities, most_steps).map(lambda drawn: interpreted(drawn, capabilities, times))


def interpreted(drawn: list[Draw], capabilities: Capabilities, times: Times = VIRTUAL) -> Program:
    """The run that these draws mean."""
    forecast = SpecStore(capabilities)
    found = []
    for draw in drawn:
        step = _Choice(forecast, capabilities, times, draw).step()
        forecast.take(step, Fault.NONE)
        found.append(step)
    return (*found, *_drained(forecast, times))


class _Choice:
    """What one draw means now."""

    def __init__(self, forecast: SpecStore, capabilities: Capabilities, times: Times, draw: Draw) -> None:
        self.forecast, self.capabilities, self.times = forecast, capabilities, times
        self.kind, self.a, self.b, self.c = draw
        self.known = forecast.known

    def step(self) -> Step:
        """The step that was drawn, or the nearest that does something."""
        kind = self.kind
        if kind is None:
            return self._wait()
        if kind is Call.ENQUEUE:
            return self._enqueue()
        if kind is Call.FETCH:
            return self._fetch()
        if kind is Call.CANCEL:
            return self._cancel()
        return self._present(kind)

    def _fault(self) -> Fault:
        return _FAULTS[self.c]

    def _enqueue(self) -> Step:
        number = len(self.forecast.items)
        if number == MOST_ITEMS:
            return self._fetch()
        delay_ms = self.times.delays_ms[self.a % 4] if self.capabilities.enqueue_delay else 0
        return Step(Call.ENQUEUE, items=(item_name(number + 1),), ms=delay_ms)

    def _fetch(self) -> Step:
        if not self.forecast.items:
            return self._enqueue()
        return Step(Call.FETCH, ms=self.times.locks_ms[self.a % 4], fault=self._fault())

    def _wait(self) -> Step:
        forecast = self.forecast
        dues_ms = forecast.dues_ms
        if not dues_ms:
            return self._fetch() if forecast.may_fetch or not self.known else self._present(Call.ACK)
        due_ms = dues_ms[self.a % len(dues_ms)]
        nudged_ms = due_ms + self.times.nudges_ms[self.b % 4]
        if nudged_ms <= forecast.now_ms:
            nudged_ms = due_ms + max(self.times.nudges_ms[0], 0)
        return Step(ms=nudged_ms - forecast.now_ms)

    def _present(self, call: Call) -> Step:
        if not self.known:
            return self._fetch()
        is_abandon = call in ABANDONS
        ms = 0
        if call is Call.RENEW:
            ms = self.times.locks_ms[self.b % 4]
        elif is_abandon and self.capabilities.abandon_delay:
            ms = self.times.delays_ms[self.b % 4]
        delivery = 0
        if self.a < len(_AGES):
            delivery = self.known[-1 - _AGES[self.a] % len(self.known)]
        return Step(call, delivery=delivery, ms=ms, fault=self._fault())

    def _cancel(self) -> Step:
        items = self.forecast.items
        if not items:
            return self._enqueue()
        chosen = items[self.a % len(items)]
        if self.b < 5:
            return Step(Call.CANCEL, items=(chosen,))
        return Step(Call.CANCEL, items=(chosen, NEVER_ENQUEUED) if self.b < 7 else tuple(items))


def corners(capabilities: Capabilities, times: Times = VIRTUAL) -> Iterator[Program]:
    """Short runs that are made of every store: each call, well and ill, by a token in each kind of standing."""
    lock_ms = times.locks_ms[0]
    begun = (Step(Call.ENQUEUE, items=("i1",)), Step(Call.FETCH, ms=lock_ms))
    last, over, again = (
        Step(ms=lock_ms + min(times.nudges_ms)),
        Step(ms=lock_ms + times.nudges_ms[0]),
        Step(Call.FETCH, ms=lock_ms),
    )
    gone: list[Program] = [(Step(Call.ACK, delivery=1),)]
    if Call.CANCEL in capabilities.calls:
        gone.append((Step(Call.CANCEL, items=("i1", NEVER_ENQUEUED)),))
    for fault in MADE:
        fetch = Step(Call.FETCH, ms=lock_ms, fault=fault)
        yield _ended((begun[0], fetch, fetch, over, fetch, over, again), capabilities, times)
        for call in (c for c in Call if c in capabilities.calls and Step(c).presents):
            length_ms = lock_ms if call is Call.RENEW else 0
            made = Step(call, delivery=1, ms=length_ms, fault=fault)
            yield _ended((*begun, made, evolve(made, fault=Fault.NONE)), capabilities, times)
            yield _ended((*begun, last, made), capabilities, times)
            yield _ended((*begun, over, made), capabilities, times)
            yield _ended((*begun, over, again, made, again), capabilities, times)
            if fault is Fault.NONE:
                yield _ended((*begun, evolve(made, delivery=0)), capabilities, times)
                for end in gone:
                    yield _ended((*begun, *end, made), capabilities, times)
    yield from _more_corners(capabilities, times)


def _more_corners(capabilities: Capabilities, times: Times) -> Iterator[Program]:
    """Several items at once, and lengths that differ."""
    has, long_ms, short_ms = capabilities.calls, times.locks_ms[0], times.locks_ms[1]
    after_ms, early_ms = times.nudges_ms[0], min(times.nudges_ms)
    fetch = Step(Call.FETCH, ms=long_ms)
    three = tuple(Step(Call.ENQUEUE, items=(item_name(n),)) for n in (1, 2, 3))
    acked = tuple(Step(Call.ACK, delivery=n) for n in (2, 1, 3))
    yield _ended((*three, fetch, fetch, fetch, *acked), capabilities, times)
    delay_ms = max(times.delays_ms)
    wait = Step(ms=delay_ms + early_ms), fetch, Step(ms=after_ms - early_ms), fetch, fetch
    if capabilities.enqueue_delay:
        yield _ended((evolve(three[0], ms=delay_ms), three[1], *wait), capabilities, times)
    for call in (c for c in ABANDONS if c in has):
        back = Step(call, delivery=1)
        yield _ended(
            (three[0], fetch, back, three[1], fetch, Step(call, delivery=2), fetch), capabilities, times
        )
        if capabilities.abandon_delay:
            yield _ended((three[0], fetch, evolve(back, ms=delay_ms), *wait), capabilities, times)
    if Call.CANCEL in has:
        yield _ended((*three, Step(Call.CANCEL, items=three[0].items)), capabilities, times)
    if times.long_ms:
        yield _ended((three[0], fetch, Step(ms=times.long_ms), fetch), capabilities, times)
    if Call.RENEW in has:
        for first_ms, then_ms in ((long_ms, short_ms), (short_ms, long_ms)):
            begun = (three[0], evolve(fetch, ms=first_ms), Step(Call.RENEW, delivery=1, ms=then_ms))
            for end_ms in sorted({first_ms, then_ms}):
                yield _ended((*begun, Step(ms=end_ms + after_ms), fetch), capabilities, times)
        renewed = Step(ms=long_ms // 2), Step(Call.RENEW, delivery=1, ms=long_ms)
        yield _ended(
            (three[0], fetch, *renewed, *renewed, Step(ms=long_ms * 3 // 4), fetch), capabilities, times
        )


def _ended(steps: Program, capabilities: Capabilities, times: Times) -> Program:
    forecast = SpecStore(capabilities)
    for step in steps:
        forecast.take(step, Fault.NONE)
    return (*steps, *_drained(forecast, times))


def _drained(forecast: SpecStore, times: Times) -> Iterator[Step]:
    """Time passes until every timer is over; then all that is left can be fetched, and no more."""
    if forecast.dues_ms:
        yield Step(ms=forecast.dues_ms[-1] - forecast.now_ms + max(times.nudges_ms))
    queued = sum(map(forecast.moment.is_queued, range(len(forecast.items))))
    for _ in range(queued + 1 if forecast.items else 0):
        yield Step(Call.FETCH, ms=max(times.locks_ms))
