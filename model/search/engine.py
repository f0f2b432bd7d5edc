"""The search: breadth first, whole frontiers at a time, exact, every watch judged on every state and step."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeAlias

import numpy as np
from attrs import define, field, frozen

from peeklock.model.search.local import grounded
from peeklock.model.search.packing import Columns, Forms, Ints, Packing, TooManyRecords, Words
from peeklock.model.search.tables import Rule, Table, Watch, rules_of
from peeklock.model.search.view import Mask, Question, View, column_question
from peeklock.model.search.visited import Visited
from peeklock.model.search.world import World
from peeklock.spec.law.state import Row, issued, row
from peeklock.spec.notation.terms import Term, Variable, arguments, both
from peeklock.spec.reading.evaluate import ITEM_VARIABLES, PLACE, Record, State

CHUNK = 1 << 16
"""States expanded at once: enough to hide the cost of a call, few enough to stay in the cache."""

THREADS = min(os.cpu_count() or 1, 4)


@define
class Statistics:
    """What a search did."""

    distinct: int = 0
    generated: int = 0
    depth: int = 0
    seconds: float = 0.0
    level_sizes: list[int] = field(factory=list)
    fired: dict[str, int] = field(factory=dict)
    """In how many distinct states, and for how many choices of its parameters, each action was enabled."""
    worker_records: int = 0
    item_records: int = 0


INTERRUPTED = "an interrupt"


class NotOver(Exception):
    """Something can happen to an item that was taken to be over."""


class Stopped(Exception):
    """A search that ended before it was complete: why, and how far it came."""

    def __init__(self, reason: str, statistics: Statistics) -> None:
        super().__init__(reason)
        self.reason = reason
        self.statistics = statistics


@frozen
class AtLevel:
    """What a search had counted when it began with the level that it is in."""

    generated: int
    fired: dict[str, int]


@frozen
class Limits:
    """When to stop although there is more to explore."""

    seconds: float | None = None
    bytes: int | None = None


NO_LIMITS = Limits()


@define
class Placed:
    """A table at its place in the state: which worker's and which item's records it reads, and where it applies."""

    table: Table
    worker: int
    item: int
    applies: Question | None = None
    findings: tuple[tuple[int, Question], ...] = ()


Move: TypeAlias = "tuple[Placed, Ints | None, Ints]"
"""A table at its place, the states of a view in which it applies (None: all), and their pairs of records."""


class Search:
    """One exhaustive exploration of a world. ``levels`` keeps every distinct state by its distance from the start."""

    def __init__(
        self,
        world: World,
        watches: tuple[Watch, ...] = (),
        symmetric: bool = True,
        clearing: bool = True,
        extra_bits: int = 0,
    ) -> None:
        """What a search leaves out, and never changes a verdict by.

        ``symmetric``: states that differ by the names of workers or items only. ``clearing``: states that differ
        only by what is remembered of an item that is gone and in no worker's hand. ``extra_bits`` widens the room
        for each record's number beyond what a search begins with.
        """
        self.world, self.watches, self.symmetric, self.clearing = world, watches, symmetric, clearing
        self.can_be_continued = False
        """Remember at each level what a checkpoint needs."""
        self._begin(extra_bits)

    def _begin(self, extra_bits: int) -> None:
        world, watches = self.world, self.watches
        self.extra_bits = extra_bits
        # An order among items tells them apart, so they cannot be renamed.
        symmetric = self.symmetric and not world.variant.fifo
        rules = rules_of(world, watches)
        kept = frozenset(_places_read(self._wide_terms(rules))) if self.clearing else None
        self.packing = Packing(world.workers, world.items, symmetric, extra_bits, kept)
        self.statistics = Statistics()
        self._counted: dict[str, int] = {}
        """How often each action was enabled before this run, where it goes on from another."""
        self.at_level = AtLevel(0, {})
        self.levels: list[Words] = []
        self.found: dict[int, int] = {}
        """For each watch (its place in ``watches``) that found something, the level at which it first did."""
        self.stuck: int | None = None
        """The level of the first state, not settled, in which nothing can change without a further fault."""
        self.places = list(self._placed(rules))
        self.state_questions = {
            bit: self._question(w.part.state if w.wanted else ~w.part.state)
            for bit, w in enumerate(watches)
            if w.part.state is not None
        }
        self._quiet_questions = [
            self._question(both(*world.actions[rule.place].guards, rule.wide_quiet), w, i)
            for rule in rules
            if rule.wide_quiet is not None
            for w in range(world.workers if rule.touches[0] else 1)
            for i in range(world.items if rule.touches[1] else 1)
        ]

    def _wide_terms(self, rules: list[Rule]) -> Iterator[Term]:
        """What is said of whole states."""
        for watch in self.watches:
            if watch.part.state is not None:
                yield watch.part.state
        for rule in rules:
            yield from rule.wide_guards
            yield from (term for _, term in rule.wide_findings)
            if rule.wide_quiet is not None:
                yield rule.wide_quiet

    def _question(self, term: Term, w: int | None = None, i: int | None = None) -> Question:
        return column_question(grounded(term, self.world.workers, self.world.items, w, i))

    def _placed(self, rules: list[Rule]) -> Iterator[Placed]:
        groups: dict[tuple[tuple[bool, bool], int], list[Rule]] = {}
        for rule in rules:
            groups.setdefault((rule.touches, rule.place if rule.is_wide else -1), []).append(rule)
        for (touches, _), members in groups.items():
            for i in range(self.world.items if touches[1] else 1):
                table = Table(members, self.packing.workers, self.packing.items, i)
                for w in range(self.world.workers if touches[0] else 1):
                    if not members[0].is_wide:
                        yield Placed(table, w, i)
                        continue
                    wide = members[0]
                    applies = both(*wide.wide_guards)
                    yield Placed(
                        table,
                        w,
                        i,
                        self._question(applies, w, i),
                        tuple(
                            (bit, self._question(applies & term, w, i)) for bit, term in wide.wide_findings
                        ),
                    )

    def run(
        self,
        limits: Limits = NO_LIMITS,
        report: Callable[[Statistics, int], None] | None = None,
        start: Iterable[State] = (),
    ) -> Statistics:
        """Explore everything from the initial state, or from other states; ``Stopped`` when a limit is reached."""
        start = tuple(start)
        try:
            return self._run(limits, report, start)
        except KeyboardInterrupt:
            self._finish()
            raise Stopped(INTERRUPTED, self.statistics) from None
        except TooManyRecords:
            # It was begun with too little room for their numbers: begin again with more.
            self._begin(self.extra_bits + 2)
            return self.run(limits, report, start)
        except NotOver:
            # A changed protocol, in which something can still happen to an item that is gone.
            self.clearing = False
            self._begin(self.extra_bits)
            return self.run(limits, report, start)

    def _run(
        self, limits: Limits, report: Callable[[Statistics, int], None] | None, start: Iterable[State]
    ) -> Statistics:
        statistics, visited = self.statistics, Visited()
        here = time.monotonic()
        begun = here - statistics.seconds
        if self.levels:  # it goes on from where another search was stopped
            for level in self.levels[:-1]:
                visited.add(level)
            frontier = self.levels[-1]
        else:
            frontier = unique(self.packing.canonical_keys(list(start) or [self.world.initial()]))
            self._enter(frontier)
        while len(frontier):
            visited.add(frontier)
            if self.can_be_continued:
                self.at_level = AtLevel(statistics.generated, self._fired())
            fresh: list[Words] = []
            for place, found in self._expanded(frontier):
                fresh.append(found)
                statistics.seconds = time.monotonic() - begun
                if report is not None:
                    report(statistics, len(frontier) - place)
                # The level that is made is copied twice when it is sorted; what is visited is kept by levels, too.
                used = sum(f.nbytes for f in fresh) * 3 + visited.nbytes * 2
                self._heed(limits, time.monotonic() - here, used)
            frontier = visited.new_among(unique(np.concatenate(fresh)))
            if len(frontier):
                self._enter(frontier)
        self._finish()
        statistics.seconds = time.monotonic() - begun
        return statistics

    def _enter(self, frontier: Words) -> None:
        statistics = self.statistics
        self.levels.append(frontier)
        statistics.depth = len(self.levels) - 1
        statistics.distinct += len(frontier)
        statistics.level_sizes.append(len(frontier))

    def resume(
        self,
        levels: list[Words],
        statistics: Statistics,
        workers: list[Record],
        items: list[Record],
        folds: list[Words],
        extra_bits: int,
    ) -> None:
        """Take the place of a search that was stopped: ``run`` then expands the last of the levels."""
        self._begin(extra_bits)
        self.packing.resume(workers, items, folds)
        self.levels, self.statistics, self._counted = levels, statistics, dict(statistics.fired)

    def _heed(self, limits: Limits, seconds: float, used: int) -> None:
        statistics = self.statistics
        reason = ""
        if limits.seconds is not None and seconds > limits.seconds:
            reason = f"the limit of {limits.seconds:g} seconds"
        if limits.bytes is not None and used > limits.bytes:
            reason = f"the limit of {limits.bytes >> 20} MiB of memory"
        if reason:
            self._finish()
            raise Stopped(reason, statistics)

    def _expanded(self, frontier: Words) -> Iterator[tuple[int, Words]]:
        """For each chunk of a level its place and its canonical successors, without repetition.

        What is looked up is looked up here, in order; the rest of the work is numpy's, and other threads do it.
        """
        if len(frontier) <= CHUNK:
            yield 0, self._reached(*self._looked_up(frontier), self.packing.forms())
            return
        waiting: deque[tuple[int, Future[Words]]] = deque()
        with ThreadPoolExecutor(THREADS) as threads:
            for place in range(0, len(frontier), CHUNK):
                view, moves = self._looked_up(frontier[place : place + CHUNK])
                waiting.append((place, threads.submit(self._reached, view, moves, self.packing.forms())))
                if len(waiting) > THREADS:
                    yield waiting[0][0], waiting.popleft()[1].result()
            while waiting:
                yield waiting[0][0], waiting.popleft()[1].result()

    def _reached(self, view: View, moves: list[Move], forms: Forms) -> Words:
        found = [self._successors(placed, view, rows, pairs)[1] for placed, rows, pairs in moves]
        return unique(self.packing.keys(self.packing.canonical(_joined(found), forms)))

    def _looked_up(self, keys: Words) -> tuple[View, list[Move]]:
        """Some states of the level in hand judged, and for each table the pairs of records in them."""
        view = View(self.packing, keys)
        level = len(self.levels) - 1
        for bit, question in self.state_questions.items():
            if bit not in self.found and view.where(question).any():
                self.found[bit] = level
        live = np.zeros(len(keys), bool)
        moves: list[Move] = []
        for placed in self.places:
            rows, pairs = self._pairs(placed, view)
            self.statistics.generated += placed.table.count(pairs)
            if rows is None:
                live |= placed.table.live(pairs)
            else:
                live[rows] |= placed.table.live(pairs)
            moves.append((placed, rows, pairs))
            if self.clearing and placed.table.touches_what_is_over:
                raise NotOver
            for bit, _, _ in placed.table.findings:
                self.found.setdefault(bit, level)
            placed.table.findings.clear()
            for bit, question in placed.findings:
                if bit not in self.found and view.where(question).any():
                    self.found[bit] = level
        self._look_for_stuck(keys, live, level)
        self.packing.check()
        return view, moves

    def _pairs(self, placed: Placed, view: View) -> tuple[Ints | None, Ints]:
        workers, items = view.worker(placed.worker), view.item(placed.item)
        if placed.applies is None:
            return None, placed.table.pairs(workers, items)
        rows = np.flatnonzero(view.where(placed.applies))
        return rows, placed.table.pairs(workers[rows], items[rows])

    def _successors(self, placed: Placed, view: View, rows: Ints | None, pairs: Ints) -> tuple[Ints, Columns]:
        packing = self.packing
        origin, workers, items = placed.table.successors(pairs)
        origin = origin if rows is None else rows[origin]
        after = [column[origin] for column in view.columns]
        if placed.table.uses[0]:
            packing.put(after, packing.worker_places[placed.worker], workers)
        if placed.table.uses[1]:
            packing.put(after, packing.item_places[placed.item], items)
        return origin, after

    def steps(self, keys: Words, quiet: bool = False) -> Iterator[tuple[Ints, Words]]:
        """The successors of some states, as (place of the state, canonical key of the successor).

        With ``quiet``, only of states and tables in which something can change without a further fault.
        """
        view = View(self.packing, keys)
        for placed in self.places:
            rows, pairs = self._pairs(placed, view)
            if quiet:
                live = placed.table.live(pairs)
                rows, pairs = np.flatnonzero(live) if rows is None else rows[live], pairs[live]
            origin, after = self._successors(placed, view, rows, pairs)
            yield origin, self.packing.keys(self.packing.canonical(after, self.packing.forms()))

    def _look_for_stuck(self, keys: Words, live: Mask, level: int) -> None:
        if self.stuck is None and not live.all() and self.stuck_among(keys[~live]).any():
            self.stuck = level

    def stuck_among(self, keys: Words) -> Mask:
        """Which of some states, in which no table sees a change without a fault, are neither settled nor live."""
        view = View(self.packing, keys)
        live = np.zeros(len(keys), bool)
        for question in self._quiet_questions:
            live |= view.where(question)
        settled = np.fromiter((self._is_settled(r) for r in self.packing.items.records), bool)
        done = np.ones(len(keys), bool)
        for i in range(self.world.items):
            done &= settled[view.item(i)]
        return ~(live | done)

    def _is_settled(self, record: tuple[int, ...]) -> bool:
        """The item is gone, or only the bound on deliveries keeps it from being fetched."""
        state = list(Row)[record[PLACE[row]]]
        at_bound = record[PLACE[issued]] >= self.world.deliveries
        return state in (Row.ACKED, Row.CANCELLED) or (at_bound and state in (Row.READY, Row.EXPIRED))

    def _fired(self) -> dict[str, int]:
        """How often each action was enabled so far."""
        totals = [0] * len(self.world.actions)
        for table in {id(p.table): p.table for p in self.places}.values():
            for place, times in table.fired().items():
                totals[place] += times
        before = self._counted
        return {a.name: before.get(a.name, 0) + n for a, n in zip(self.world.actions, totals, strict=True)}

    def _finish(self) -> None:
        statistics = self.statistics
        statistics.fired = self._fired()
        statistics.worker_records, statistics.item_records = (
            len(self.packing.workers),
            len(self.packing.items),
        )


def _places_read(terms: Iterable[Term]) -> Iterator[int]:
    """The places of the items' variables that terms read."""
    for term in terms:
        variable = term.args[0] if term.op == "read" else None
        if isinstance(variable, Variable) and variable in ITEM_VARIABLES:
            yield PLACE[variable]
        yield from _places_read(arguments(term))


def _joined(parts: list[Columns]) -> Columns:
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def unique(keys: Words) -> Words:
    """The keys in order, each once."""
    keys = np.sort(keys)
    if len(keys) < 2:
        return keys
    return keys[np.concatenate(([True], keys[1:] != keys[:-1]))]
