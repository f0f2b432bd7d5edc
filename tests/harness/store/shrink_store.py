"""Making a run of a store that fails shorter and plainer, as long as it fails in the same way.

What is taken away are the steps themselves, where Hypothesis would try what it drew: that takes fewer runs, and the
same ones every time.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Container, Iterator

from attrs import evolve

from peeklock.harness.run.spec_store import SpecStore
from peeklock.harness.run.steps import Program, Step, item_name
from peeklock.spec.notation.actions import ABANDONS, Call
from peeklock.spec.reading.timed_store import Fault
from peeklock.spec.variants.capabilities import Capabilities

PLAIN_LOCK_MS = 1_000
MOST_IN_PAIRS = 12
"""Of a run with no more steps, any two are tried without as well."""


def plainer(
    program: Program, capabilities: Capabilities, still_fails: Callable[[Program], bool], budget_s: float
) -> bool:
    """Try the program with less and less in it, from what fails on; False where the budget (seconds) was over first.

    What fails at last fails no more with any one thing taken away. The budget is for a store that is slow: where it
    suffices, the same runs are made on every machine.
    """
    end_s = time.monotonic() + budget_s
    tried = {program}
    while True:
        for candidate in _plainer(program, capabilities):
            if candidate in tried:
                continue
            if time.monotonic() > end_s:
                return False
            tried.add(candidate)
            if still_fails(candidate):
                program = candidate
                break
        else:
            return True


def _plainer(program: Program, capabilities: Capabilities) -> Iterator[Program]:
    size = len(program) // 2
    while size:
        for start in range(0, len(program), size):
            yield _without(program, capabilities, range(start, min(start + size, len(program))))
        size //= 2
    if capabilities.virtual_clock:
        yield _even(program, capabilities, 0)
        yield _even(program, capabilities, -1)
    forecast = SpecStore(capabilities)
    for k, step in enumerate(program):
        if step.call is None and capabilities.virtual_clock and forecast.dues_ms:
            yield _with(program, k, evolve(step, ms=forecast.dues_ms[0] - forecast.now_ms))
        forecast.take(step, Fault.NONE)
        if step.fault is not Fault.NONE:
            yield _with(program, k, evolve(step, fault=Fault.NONE))
        if step.call is Call.CANCEL and len(step.items) > 1:
            for item in step.items:
                yield _with(program, k, evolve(step, items=(item,)))
        if step.call is Call.ABANDON_IGNORING_ATTEMPT and Call.ABANDON in capabilities.calls:
            yield _with(program, k, evolve(step, call=Call.ABANDON))
        yield _with(program, k, _plain(step))
    if len(program) <= MOST_IN_PAIRS:
        for pair in itertools.combinations(range(len(program)), 2):
            yield _without(program, capabilities, pair)
    yield _renamed(program)


def _plain(step: Step) -> Step:
    """The step with the plainest length."""
    if step.call in (Call.FETCH, Call.RENEW):
        return evolve(step, ms=PLAIN_LOCK_MS)
    return evolve(step, ms=0) if step.call in (Call.ENQUEUE, *ABANDONS) else step


def _even(program: Program, capabilities: Capabilities, due: int) -> Program:
    """The program with the plainest lengths throughout, and each wait until what is due then: the first or the last."""
    forecast = SpecStore(capabilities)
    found: list[Step] = []
    for step in map(_plain, program):
        if step.call is None:
            if not forecast.dues_ms:
                continue
            step = evolve(step, ms=forecast.dues_ms[due] - forecast.now_ms)
        forecast.take(step, Fault.NONE)
        found.append(step)
    return tuple(found)


def _renamed(program: Program) -> Program:
    """The program with its items counted from 1, in the order in which they come in."""
    enqueued = [item for step in program if step.call is Call.ENQUEUE for item in step.items]
    names = {item: item_name(number) for number, item in enumerate(enqueued, 1)}
    return tuple(evolve(step, items=tuple(names.get(i, i) for i in step.items)) for step in program)


def _with(program: Program, k: int, step: Step) -> Program:
    return (*program[:k], step, *program[k + 1 :])


def _without(program: Program, capabilities: Capabilities, left_out: Container[int]) -> Program:
    """The program without these steps, and without those that present the token of a delivery that is gone."""
    forecast = SpecStore(capabilities)
    renumbered: dict[int, int | None] = {0: 0}
    kept: list[Step] = []
    gone = {
        item
        for k, step in enumerate(program)
        if k in left_out and step.call is Call.ENQUEUE
        for item in step.items
    }
    for k, step in enumerate(program):
        before = len(forecast.deliveries)
        forecast.take(step, Fault.NONE)
        number = renumbered.get(step.delivery)
        stays = k not in left_out
        if len(forecast.deliveries) > before:
            count = sum(n is not None for n in renumbered.values())
            renumbered[before + 1] = count if stays else None
        items = tuple(i for i in step.items if i not in gone)
        if stays and number is not None and (items or not step.items):
            kept.append(evolve(step, delivery=number, items=items))
    return tuple(kept)
