"""Making a run of a store that fails shorter and plainer, as long as it fails in the same way.

Hypothesis shortens what it drew; what is taken away here are the steps themselves, which is quick where it is slow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from attrs import evolve

from peeklock.harness.spec_store import SpecStore
from peeklock.harness.steps import Program, Step, item_name
from peeklock.spec.actions import Call
from peeklock.spec.capabilities import Capabilities
from peeklock.spec.timed_store import Fault

PLAIN_LOCK_MS = 1_000


def plainer(
    program: Program, capabilities: Capabilities, still_fails: Callable[[Program], bool], budget_s: float
) -> Program:
    """The program with all taken away that its failure does not need, as far as the budget (seconds) allows."""
    end_s = time.monotonic() + budget_s
    tried = set[Program]()
    while True:
        for candidate in _plainer(program, capabilities):
            if candidate in tried:
                continue
            if time.monotonic() > end_s:
                return program
            tried.add(candidate)
            if still_fails(candidate):
                program = candidate
                break
        else:
            return program


def _plainer(program: Program, capabilities: Capabilities) -> Iterator[Program]:
    size = len(program) // 2
    while size:
        for start in range(0, len(program), size):
            yield _without(program, capabilities, start, min(start + size, len(program)))
        size //= 2
    for k, step in enumerate(program):
        if step.fault is not Fault.NONE:
            yield _with(program, k, evolve(step, fault=Fault.NONE))
        if step.call is Call.CANCEL and len(step.items) > 1:
            for item in step.items:
                yield _with(program, k, evolve(step, items=(item,)))
        if step.call is Call.ABANDON_IGNORING_ATTEMPT and Call.ABANDON in capabilities.calls:
            yield _with(program, k, evolve(step, call=Call.ABANDON))
        if step.call in (Call.FETCH, Call.RENEW) and step.ms != PLAIN_LOCK_MS:
            yield _with(program, k, evolve(step, ms=PLAIN_LOCK_MS))
        if step.call is None and step.ms % 10 == 1:
            yield _with(program, k, evolve(step, ms=step.ms - 1))
        if step.call in (Call.ENQUEUE, Call.ABANDON, Call.ABANDON_IGNORING_ATTEMPT) and step.ms:
            yield _with(program, k, evolve(step, ms=0))
    renamed = _renamed(program)
    if renamed != program:
        yield renamed


def _renamed(program: Program) -> Program:
    """The program with its items counted from 1, in the order in which they come in."""
    enqueued = [item for step in program if step.call is Call.ENQUEUE for item in step.items]
    names = {item: item_name(number) for number, item in enumerate(enqueued, 1)}
    return tuple(evolve(step, items=tuple(names.get(i, i) for i in step.items)) for step in program)


def _with(program: Program, k: int, step: Step) -> Program:
    return (*program[:k], step, *program[k + 1 :])


def _without(program: Program, capabilities: Capabilities, start: int, end: int) -> Program:
    """The program without these steps, and without those that present the token of a delivery that is gone."""
    forecast = SpecStore(capabilities)
    renumbered: dict[int, int | None] = {0: 0}
    kept: list[Step] = []
    gone = {item for step in program[start:end] if step.call is Call.ENQUEUE for item in step.items}
    for k, step in enumerate(program):
        before = len(forecast.deliveries)
        forecast.take(step, Fault.NONE)
        number = renumbered.get(step.delivery)
        stays = not start <= k < end
        if len(forecast.deliveries) > before:
            count = sum(n is not None for n in renumbered.values())
            renumbered[before + 1] = count if stays else None
        items = tuple(i for i in step.items if i not in gone)
        if stays and number is not None and (items or not step.items):
            kept.append(evolve(step, delivery=number, items=items))
    return tuple(kept)
