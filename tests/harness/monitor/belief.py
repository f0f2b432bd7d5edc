"""What the worker under check should believe and do next: its side of the specification, followed step by step.

The harness knows every answer and every effect, so there is one state and no choice. The monitor judges; this only
says what phase an accepted step has led to, from which the duties of time follow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

from peeklock.harness.monitor.observation import Observation
from peeklock.spec.compose import specialized
from peeklock.spec.law.state import (
    Phase,
    Result,
    Trouble,
    attempts,
    draining,
    phase,
    renewing,
    result,
    trouble,
)
from peeklock.spec.notation.actions import Action, Call, Event, Metric
from peeklock.spec.notation.terms import Variable
from peeklock.spec.reading.evaluate import INITIAL_WORKER, PLACE, Record, Stepper, decoded
from peeklock.spec.variants.capabilities import Capabilities, protocol_with
from peeklock.spec.variants.variant import Variant

IMPLIED = (
    Event.HANDLER_MISSING,
    Event.HANDLER_STARTS,
    Event.HANDLER_SUCCEEDS,
    Event.HANDLER_FAILS,
    Event.LOCK_OVER,
    Event.HANDLER_STOPPED,
)


@cache
def worker_actions(variant: Variant, capabilities: Capabilities) -> tuple[Action, ...]:
    """Every step that a worker takes part in."""
    actions = specialized(protocol_with(capabilities), variant.settings)
    return tuple(a for a in actions if a.worker is not None)


@cache
def _steppers(variant: Variant, capabilities: Capabilities) -> dict[Call | Event | None, list[Stepper]]:
    found: dict[Call | Event | None, list[Stepper]] = {}
    for action in worker_actions(variant, capabilities):
        found.setdefault(action.label.call or action.label.event, []).append(Stepper(action))
    return found


class Belief:
    """One worker, from its birth to its end."""

    def __init__(self, variant: Variant, capabilities: Capabilities, handlers: bool) -> None:
        self._steppers = _steppers(variant, capabilities)
        self._handlers = handlers
        self._record: Record = INITIAL_WORKER
        self.counts: Metric | None = None
        """The verdict that the latest step has to be counted as."""
        self.taken: Counter[str] = Counter()
        """How often each action was taken, by its name."""

    def follow(self, seen: Observation, item: Record | None) -> None:
        """Take an accepted step; ``item`` is the record of the item in hand, or to be, before the step."""
        todo: list[tuple[Record, tuple[Action, ...]]] = [(self._record, ())]
        for record, before in todo:
            action, after = self._step(record, seen, item)
            if action is not None:
                self._record = after
                self.counts = action.label.counts
                self.taken.update(a.name for a in (*before, action))
                return
            if not self._handlers:
                todo += self._implied(record, before, seen, item)
        raise AssertionError(f"the monitor allowed what the worker's own steps do not: {seen}")

    def counted(self) -> None:
        """The verdict was counted."""
        self.counts = None

    def _implied(
        self, record: Record, before: tuple[Action, ...], seen: Observation, item: Record | None
    ) -> Iterator[tuple[Record, tuple[Action, ...]]]:
        """What a worker that does not report its handlers may have done before."""
        for event in IMPLIED:
            action, after = self._step(record, Observation(event=event), item)
            if action is not None:
                yield after, (*before, action)

    def _step(self, record: Record, seen: Observation, item: Record | None) -> tuple[Action | None, Record]:
        items = () if item is None else (item,)
        for stepper in self._steppers.get(seen.call or seen.event, ()):
            action, label = stepper.action, stepper.action.label
            if seen.call is not None and (label.answer, label.takes_effect) != (
                seen.answer,
                bool(seen.effect),
            ):
                continue
            if action.item is not None and item is None:
                continue
            carried = decoded(result, record[PLACE[result]])
            if seen.call is Call.ACK and seen.completions and carried not in seen.completions:
                continue
            if stepper.allows((record,), items, 0, 0):
                return action, stepper.takes((record,), items, 0, 0)[0][0]
        return None, record

    def _of(self, variable: Variable) -> object:
        return decoded(variable, self._record[PLACE[variable]])

    @property
    def phase(self) -> Phase:
        """What it is doing."""
        found = self._of(phase)
        assert isinstance(found, Phase)
        return found

    @property
    def attempts(self) -> int:
        """Attempts made in the ack sequence."""
        return self._record[PLACE[attempts]]

    @property
    def result(self) -> Result:
        """What its completion carries."""
        found = self._of(result)
        assert isinstance(found, Result)
        return found

    @property
    def trouble(self) -> Trouble:
        """What went wrong before or instead of its ack sequence."""
        found = self._of(trouble)
        assert isinstance(found, Trouble)
        return found

    @property
    def is_renewing(self) -> bool:
        """Does it keep its lock renewed?"""
        return bool(self._of(renewing))

    @property
    def is_draining(self) -> bool:
        """Has a shutdown begun?"""
        return bool(self._of(draining))

    @property
    def is_idle(self) -> bool:
        """Has it nothing in hand?"""
        return self.phase is Phase.IDLE
