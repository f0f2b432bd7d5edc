"""Judging a recorded run: does the specification explain it, and which promises did it break?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attrs import evolve, frozen

from peeklock.harness.linear.exact import ExactHistory
from peeklock.harness.linear.history import Invoke, Return
from peeklock.harness.linear.store_history import StoreHistory
from peeklock.harness.linear.worlds import Undecided
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.monitor.strands import Strands
from peeklock.harness.monitor.world import Violation
from peeklock.harness.run.store_judge import StoreJudge, carries_completion
from peeklock.harness.trace.file import Entry, Header, Kind
from peeklock.harness.trace.observations import Look
from peeklock.spec.law.faults import FAULTS
from peeklock.spec.law.policy import Policy
from peeklock.spec.variants.variant import Variant


@frozen
class Judgement:
    """What was found of a recorded run."""

    observations: int
    """How many lines were taken in."""
    violation: Violation | None
    told_before: tuple[tuple[str, ...], ...]
    """The states before the violation, in words; a few of them."""
    broken: tuple[str, ...]
    """The promises that the run broke although the policy's rules explain it."""
    exact_until: int | None = None
    """The line after which concurrent calls were no longer judged exactly; None where all of them were."""

    @property
    def conforms(self) -> bool:
        """Was the run explained to its end, and was there a run at all?"""
        return self.violation is None and self.observations > 0


def monitor_of(header: Header, policy: Policy) -> Strands:
    """The monitor that judges workers and a store, with all fault classes on."""
    if header.max_attempts is not None:
        policy = evolve(policy, max_attempts=header.max_attempts)
    return Strands(Variant(policy, frozenset(f.name for f in FAULTS)), header.scope)


def judge(header: Header, entries: Iterable[Entry], policy: Policy) -> Judgement:
    """Hold a run against the specification.

    Workers and a store are held against the protocol under the policy, a store alone against its contract; then the
    policy has no part in it.
    """
    counted = _Counted(entries)
    try:
        broken = _JUDGES[header.kind](header, counted, policy)
    except Violation as violation:
        return Judgement(counted.count, violation, violation.told, (), counted.exact_until)
    return Judgement(counted.count, None, (), broken, counted.exact_until)


class _Counted:
    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries, self.count = entries, 0
        self.exact_until: int | None = None

    def __iter__(self) -> Iterator[Any]:
        for entry in self._entries:
            self.count += 1
            yield entry


def _workers(header: Header, entries: Iterable[Observation], policy: Policy) -> tuple[str, ...]:
    monitor = monitor_of(header, policy)
    for seen in entries:
        monitor.observe(seen)
    return monitor.broken()


def _store(header: Header, entries: _Counted, _: Policy) -> tuple[str, ...]:
    store = StoreJudge(header.store, scope=header.scope)
    found: Violation | None = None
    for entry in entries:
        if found is not None:
            if isinstance(entry, Look):
                raise store.also(found, entry.completions)
            entries.count -= 1
            raise found
        if isinstance(entry, Look):
            store.look(entry.completions)
            continue
        try:
            store.observe(entry)
        except Violation as violation:
            if not carries_completion(entry.call):
                raise
            found = violation  # the completions may be looked at in the next line
    if found is not None:
        raise found
    return ()


def _calls(header: Header, entries: _Counted, _: Policy) -> tuple[str, ...]:
    """Exactly, as long as that can be decided; then item by item. ``Undecided`` where the two differ by then."""
    item_by_item: StoreHistory | None = StoreHistory(header.store, header.scope.clock)
    exact: ExactHistory | None = ExactHistory(header.store, header.scope.clock)
    for event in itertools.chain(entries, (None,)):
        if exact is not None:
            try:
                _tell(exact, event)
            except Undecided:
                if item_by_item is None:
                    raise
                exact, entries.exact_until = None, entries.count
        if item_by_item is not None:
            try:
                _tell(item_by_item, event)
            except Violation:
                if exact is None:
                    raise
                item_by_item = None  # some order explains it all the same
    return ()


def _tell(history: StoreHistory | ExactHistory, event: Invoke | Return | None) -> None:
    if event is None:
        history.end()
    else:
        history.add(event)


_JUDGES: dict[Kind, Callable[[Header, _Counted, Policy], tuple[str, ...]]] = {
    Kind.WORKERS: _workers,
    Kind.STORE: _store,
    Kind.CALLS: _calls,
}
