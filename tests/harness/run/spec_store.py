"""The specification's store with names: each call takes one of the outcomes that the contract allows.

Runs are generated on it alone. What a real store answers has no part in that, so a run that failed can be shortened
and repeated.
"""

from __future__ import annotations

from functools import cache

from attrs import define, field

from peeklock.harness.run.steps import Step
from peeklock.spec.law.state import Row
from peeklock.spec.notation.actions import Answer, Call
from peeklock.spec.reading.timed_store import (
    STRANGER,
    Fault,
    Moment,
    Outcome,
    TimedStore,
    TokenName,
    nothing,
    timed_store,
    with_room,
)
from peeklock.spec.reading.timed_store import Step as NumberedStep
from peeklock.spec.variants.capabilities import Capabilities


@define
class SpecStore:
    """The store of the specification after some steps."""

    capabilities: Capabilities
    _store: TimedStore = field(init=False)
    now_ms: int = field(default=0, init=False)
    moment: Moment = field(factory=lambda: nothing(1), init=False)
    """There is always room for one more item."""
    items: list[str] = field(factory=list, init=False)
    """All items that were ever enqueued, oldest first."""
    deliveries: list[TokenName] = field(factory=list, init=False)
    """The tokens of all deliveries, also of those whose fetch failed after it took effect."""

    def __attrs_post_init__(self) -> None:
        self._store = timed_store(self.capabilities)

    def take(self, step: Step, *instead: Fault) -> Outcome:
        """Take a step; where its fault cannot happen, with another instead. An item is enqueued once at most."""
        if step.call is Call.ENQUEUE:
            self.items += step.items
            self.moment = with_room(self.moment)
        outcome = self._store.first(self.moment, self._numbered(step), *instead)
        self.moment = outcome.after
        if step.call is None:
            self.now_ms += step.ms
        if outcome.item is not None:
            self.deliveries.append(self.moment.latest_token(outcome.item))
        return outcome

    def _numbered(self, step: Step) -> NumberedStep:
        items = tuple(self.items.index(name) for name in step.items if name in self.items)
        token = self._token(step.delivery) if step.presents else None
        return NumberedStep(step.call, step.ms, items, token, step.fault)

    def _token(self, delivery: int) -> TokenName:
        return self.deliveries[delivery - 1] if 0 < delivery <= len(self.deliveries) else STRANGER

    def pass_time(self, to_ms: int) -> tuple[str, ...]:
        """Let time pass; the items whose locks expired in it."""
        before = self.moment
        self.take(Step(ms=to_ms - self.now_ms))
        return tuple(
            name
            for i, name in enumerate(self.items)
            if before.row(i) is Row.LOCKED and self.moment.row(i) is Row.EXPIRED
        )

    @property
    def may_fetch(self) -> bool:
        """Could an item be fetched now?"""
        return any(map(self.moment.is_fetchable, range(len(self.items))))

    @property
    def known(self) -> tuple[int, ...]:
        """The deliveries, by number from 1, whose tokens somebody was told."""
        return tuple(n for n, token in enumerate(self.deliveries, 1) if token in self.moment.tokens)

    @property
    def dues_ms(self) -> tuple[int, ...]:
        """When each timer that still runs is over, the next first."""
        return tuple(self.now_ms + left_ms for left_ms in self.moment.dues_ms)


@cache
def refusals(capabilities: Capabilities, call: Call) -> frozenset[Answer]:
    """What may be answered to a token that is nobody's."""
    refused = timed_store(capabilities).first(nothing(1), NumberedStep(call, token=STRANGER))
    return frozenset(refused.answers)
