"""A long run, judged item by item: a strand is a monitor of one item and of the workers that have it in hand.

Items meet only where a fetch finds nothing, and where nobody knows which item a lost fetch took; there every strand
that it may be about is asked for itself. So what is allowed is never called a violation, and memory grows with the
items alive and not with the length of the run.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator

from attrs import evolve

from peeklock.harness.monitor.monitor import Monitor
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.monitor.standing import Standing
from peeklock.harness.monitor.world import CALLS_AND_HANDLERS, Scope, Violation
from peeklock.spec.compose import ACTIONS, PROMISES
from peeklock.spec.law.state import Row, row
from peeklock.spec.notation.actions import Action, Answer, Call
from peeklock.spec.reading.evaluate import INITIAL_WORKER, PLACE, Record
from peeklock.spec.variants.variant import Variant

MOST_SETTLED = 1_000
"""Settled items that are kept: a call with a token of one that is older is judged as one with an unknown token."""
_ROWS = list(Row)
_SETTLED = frozenset({_ROWS.index(Row.ACKED), _ROWS.index(Row.CANCELLED)})
_FETCHABLE = frozenset({_ROWS.index(Row.READY), _ROWS.index(Row.EXPIRED)})
_ROW = PLACE[row]
_ASKER = "(another worker)"


class Strands:
    """Keeps, for every item alive, the states that explain what was seen of it. It is used like a ``Monitor``."""

    def __init__(
        self, variant: Variant, scope: Scope = CALLS_AND_HANDLERS, actions: tuple[Action, ...] = ACTIONS
    ) -> None:
        self.variant, self.scope, self._actions = variant, scope, actions
        self._alive: dict[str, Monitor] = {}
        self._settled: OrderedDict[str, Monitor] = OrderedDict()
        self._of_token: dict[str, str] = {}
        self._holding: dict[str, str] = {}
        self._resting: dict[str, Monitor] = {}
        """Workers with nothing in hand that something is known of."""
        self._waiting: set[str] = set()
        """Items of which a state may be fetchable, or become so by time."""
        self._broken: set[str] = set()
        self._now_ms: int | None = None
        self.taken: Counter[str] = Counter()

    def observe(self, seen: Observation) -> None:
        """Take in one observation; ``Violation`` when no state explains it."""
        if seen.at_ms is not None:
            self._now_ms = seen.at_ms
        if seen.call is Call.FETCH and seen.worker is not None:
            self._free(seen)
        if seen.call is Call.FETCH and seen.item is None:
            self._ask_all(seen)
            return
        item = self._item_of(seen)
        if item is None:
            self._rest(seen)
            return
        strand = self._strand(item, seen)
        if seen.call is Call.FETCH:
            if seen.worker is not None:
                self._take_in_hand(strand, seen.worker, item)
            if seen.token is not None and self._of_token.setdefault(seen.token, item) != item:
                other = f"{seen.token} is a token of {self._of_token[seen.token]}"
                raise Violation(seen, strand.worlds, (), other, ("S4",), strand.told())
        elif seen.worker is not None and seen.worker not in strand.workers:
            self._has_nothing_else(strand, seen)
            self._take_in_hand(strand, seen.worker, item)
        strand.observe(seen)
        self._look_again(item, strand)

    def broken(self) -> tuple[str, ...]:
        """The promises that are broken in every state that explains the run."""
        found = set(self._broken)
        for strand in (*self._alive.values(), *self._settled.values()):
            found.update(strand.broken())
        return tuple(p.id for p in PROMISES if p.id in found)

    def _has_nothing_else(self, strand: Monitor, seen: Observation) -> None:
        """``Violation`` where the worker does this while it has another item in hand."""
        assert seen.worker is not None
        item = self._holding.get(seen.worker, "")
        other = self._alive.get(item) or self._settled.get(item)
        records = () if other is None or seen.worker not in other.workers else other.in_hand(seen.worker)
        if records:
            try:
                strand.visited_by(seen.worker, records).observe(seen)
            except Violation as violation:
                v = violation
                raise Violation(seen, v.before, v.allowed, v.reason, v.promises, strand.told()) from None

    # Which strand

    def _item_of(self, seen: Observation) -> str | None:
        if seen.item is not None:
            return seen.item
        if seen.token is not None:
            found = self._of_token.get(seen.token)
            if found is not None:
                return found
        return None if seen.worker is None else self._holding.get(seen.worker)

    def _strand(self, item: str, seen: Observation) -> Monitor:
        strand = self._alive.get(item) or self._settled.get(item)
        if strand is None:
            strand = self._alive[item] = Monitor(self.variant, self.scope, self._actions)
            strand.taken = self.taken
            if self._now_ms is not None:
                strand.pass_time(self._now_ms)
        return strand

    def _rest(self, seen: Observation) -> None:
        """A worker with nothing in hand, as far as is known, does something."""
        assert seen.worker is not None
        resting = self._resting.setdefault(seen.worker, Monitor(self.variant, self.scope, self._actions))
        resting.observe(seen)

    # Workers go from strand to strand

    def _free(self, seen: Observation) -> None:
        """The worker asks for work: in the strand that it was in it must have nothing in hand."""
        assert seen.worker is not None
        item = self._holding.pop(seen.worker, None)
        if item is None:
            return
        strand = self._alive.get(item) or self._settled.get(item)
        if strand is None or seen.worker not in strand.workers:
            return
        records = strand.release(seen.worker)
        if not records:
            strand.observe(seen)  # it tells why it cannot be
            raise AssertionError("a worker that is busy was allowed to fetch")
        self._keep(seen.worker, records)
        self._look_again(item, strand)

    def _keep(self, worker: str, records: tuple[Record, ...]) -> None:
        if records == (INITIAL_WORKER,):
            self._resting.pop(worker, None)
            return
        resting = Monitor(self.variant, self.scope, self._actions)
        resting.adopt(worker, records)
        self._resting[worker] = resting

    def _take_in_hand(self, strand: Monitor, worker: str, item: str) -> None:
        if worker in strand.workers:
            return
        resting = self._resting.pop(worker, None)
        records = (INITIAL_WORKER,) if resting is None else resting.release(worker) or (INITIAL_WORKER,)
        strand.adopt(worker, records)
        self._holding[worker] = item

    # What is about every item

    def _ask_all(self, seen: Observation) -> None:
        """Nothing was found, or nobody knows what was."""
        worker = seen.worker
        if worker in self._resting:
            self._resting[worker].observe(seen)
        for item in tuple(self._waiting) if self.scope.clock else self._maybe_taken(seen):
            strand = self._alive[item]
            if self._now_ms is not None:
                strand.pass_time(self._now_ms, seen.until_ms)
            strand.adopt(_ASKER, (INITIAL_WORKER,))
            strand.observe(evolve(seen, worker=_ASKER))
            strand.release(_ASKER)
            self._look_again(item, strand)

    def _maybe_taken(self, seen: Observation) -> tuple[str, ...]:
        """Without a clock anything may have become fetchable unseen; that nothing was there says less."""
        if seen.answer is Answer.NOTHING:
            return tuple(self._waiting)
        return tuple(self._alive)

    # What is over

    def _look_again(self, item: str, strand: Monitor) -> None:
        rows = {w.state[1][0][_ROW] for w in strand.worlds}
        if rows <= _SETTLED:
            self._waiting.discard(item)
            if item in self._alive:
                del self._alive[item]
                self._settled[item] = strand
                self._forget_old()
        elif self.scope.clock or not rows.isdisjoint(_FETCHABLE):
            self._waiting.add(item)
        else:
            self._waiting.discard(item)

    def _forget_old(self) -> None:
        while len(self._settled) > MOST_SETTLED:
            _, strand = self._settled.popitem(last=False)
            self._broken.update(strand.broken())
            for token in strand.tokens:
                self._of_token.pop(token, None)
            for worker in strand.workers:
                self._holding.pop(worker, None)

    def standings(self) -> Iterator[Standing]:
        """The states of every item that is remembered, with names."""
        for strand in (*self._alive.values(), *self._settled.values()):
            yield from strand.standings()

    def pass_time(self, now_ms: int, until_ms: int | None = None) -> None:
        """Let the timers that are due run out."""
        for strand in self._alive.values():
            strand.pass_time(now_ms, until_ms)
