"""Calls of many workers at once that no order explains, as data, and as the lines of a trace file."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from attrs import evolve, frozen

from peeklock.harness.adapter.clocks import SLACK_MS
from peeklock.harness.failure.failure import Failure
from peeklock.harness.linear.history import Begins, Invoke, Operation, Return, joined
from peeklock.harness.linear.item_model import StoreAnswer, StoreCall
from peeklock.harness.linear.store_history import judge_history, seen_of
from peeklock.harness.monitor.world import Violation
from peeklock.harness.trace.calls import begin_line, end_line
from peeklock.harness.trace.file import header_line
from peeklock.spec.variants.capabilities import Capabilities


@frozen(kw_only=True)
class ConcurrentFailure(Failure):
    """The round in which a store does not keep its contract under concurrent calls. The runs are rounds."""

    workers: int
    events: tuple[Invoke | Return, ...]
    """The beginnings and ends of all calls of the round, in the order of real time."""

    @property
    def deterministic(self) -> bool:
        """How calls meet is chance."""
        return False

    def program(self) -> str:
        """Nothing: no program makes the calls meet again as they did."""
        return ""

    def trace_lines(self) -> tuple[str, ...]:
        """The round as the lines of a trace file."""
        return tuple(self._lines())

    def _lines(self) -> Iterator[str]:
        # A recorded time is as exact as the clock: how far it may be off is said once, in the header.
        early_ms, late_ms = (0, 0) if self.capabilities.virtual_clock else (SLACK_MS, SLACK_MS + 1)
        yield header_line(self.capabilities, self.subject, late_ms)
        running: dict[Hashable, tuple[int, StoreCall]] = {}
        now_ms = number = 0
        for event in self.events:
            if isinstance(event, Invoke):
                number += 1
                now_ms = max(now_ms, event.what.at_ms + early_ms)
                running[event.key] = number, event.what
                yield begin_line(number, evolve(event.what, at_ms=now_ms))
            else:
                told: StoreAnswer | None = event.result
                now_ms = now_ms if told is None else max(now_ms, told.until_ms - late_ms)
                yield end_line(*running.pop(event.key), told, now_ms)


def failure_of(
    subject: str,
    capabilities: Capabilities,
    workers: int,
    events: Sequence[Invoke | Return],
    violation: Violation,
    *,
    seed: int,
    rounds: int,
    seconds: float,
) -> ConcurrentFailure:
    """The failure that the latest round showed, which is told of that round alone where that shows it too."""
    violation = judge_history(events, capabilities) or violation
    made = [step.operation for step in joined(events) if isinstance(step, Begins)]
    item = violation.seen.item
    return ConcurrentFailure(
        subject=subject,
        capabilities=capabilities,
        steps=(),
        observations=tuple(seen_of(o, item) for o in calls_about(item, made)),
        violation=violation,
        seed=seed,
        runs=rounds,
        seconds=seconds,
        workers=workers,
        events=tuple(events),
    )


def calls_about(item: str | None, made: Sequence[Operation]) -> tuple[Operation, ...]:
    """Those of the calls that name an item, return it, or present a token of it."""
    told = {o.number: o.result for o in made if o.result is not None}
    fetched = {n for n, answer in told.items() if item in answer.items}
    tokens = {told[n].token for n in fetched} - {None}
    return tuple(o for o in made if o.number in fetched or item in o.what.items or o.what.token in tokens)
