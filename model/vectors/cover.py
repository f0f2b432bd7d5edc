"""Covering paths: all that a small timed store can show, and few short runs that show all of it.

The graph of a world's states is made once, breadth first. A run goes to what it is made for by a shortest way, of those
the one that shows most that is new, and calls what changes nothing where it stands.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

import networkx as nx
from attrs import define, field, frozen

from peeklock.model.vectors.kinds import Kind, kinds
from peeklock.spec.notation.actions import ABANDONS, Call
from peeklock.spec.reading.timed_store import (
    MADE,
    PRESENTING,
    STRANGER,
    Fault,
    Moment,
    Outcome,
    Step,
    nothing,
    timed_store,
)
from peeklock.spec.variants.capabilities import Capabilities

MOST_CALLS = 12
"""No run has more calls."""


@frozen
class Times:
    """The lengths that calls are made with, in milliseconds."""

    lock_ms: int = 30_000
    extensions_ms: tuple[int, ...] = (10_500, 45_000)
    delay_ms: int = 2_500
    exact: bool = True
    """Calls are made 1 ms before a timer runs out, when it does, and long after it; else ``slack_ms`` after it only."""
    long_ms: int = 3_600_000
    longest_ms: int = 100_000
    """No timer has longer to run; where a renewal extends what is left, it could be any time."""
    slack_ms: int = 0
    """No call is made in so many milliseconds before a timer runs out."""


VIRTUAL = Times()
REAL = Times(
    lock_ms=1_000, extensions_ms=(600, 1_500), delay_ms=500, exact=False, longest_ms=5_000, slack_ms=200
)
"""For a store that runs on a clock of its own, which has to be waited for."""


@frozen
class Small:
    """A world to be explored whole."""

    items: int
    deliveries: int
    closely: bool
    """With faults, and around the end of each timer; else only calls that succeed or change nothing."""


WORLDS = (Small(items=1, deliveries=3, closely=True), Small(items=2, deliveries=3, closely=False))


@frozen(eq=False)
class Edge:
    """A step from a state, with what it shows."""

    source: Moment
    step: Step
    outcome: Outcome
    kinds: tuple[Kind, ...]

    @property
    def target(self) -> Moment:
        """The state after it."""
        return self.outcome.after

    @property
    def stays(self) -> bool:
        """Nothing changes."""
        return self.source == self.target


Path: TypeAlias = tuple[Edge, ...]


@define(slots=False, eq=False)
class Graph:
    """All states of a small world, and the steps between them."""

    capabilities: Capabilities
    world: Small
    times: Times
    edges: list[Edge] = field(init=False, factory=list)
    """In the order in which a breadth-first search finds them."""
    level: dict[Moment, int] = field(init=False, factory=dict)
    """How many steps it takes at least to a state."""
    steps: dict[tuple[Moment, Step], Edge] = field(init=False, factory=dict)
    shortest: nx.DiGraph[Moment] = field(init=False, factory=nx.DiGraph)
    """The states, with every edge that lies on a shortest way."""
    staying: dict[Moment, list[Edge]] = field(init=False, factory=dict)
    """The calls that change nothing, by state."""

    def __attrs_post_init__(self) -> None:
        first = nothing(self.world.items)
        self.level[first] = 0
        self.shortest.add_node(first)
        for moment in (queue := [first]):
            for edge in self._edges(moment):
                self.edges.append(edge)
                self.steps[moment, edge.step] = edge
                if edge.stays:
                    self.staying.setdefault(moment, []).append(edge)
                    continue
                if edge.target not in self.level:
                    self.level[edge.target] = self.level[moment] + 1
                    queue.append(edge.target)
                if self.level[edge.target] == self.level[moment] + 1:
                    if not self.shortest.has_edge(moment, edge.target):
                        self.shortest.add_edge(moment, edge.target, ways=[])
                    self.shortest[moment][edge.target]["ways"].append(edge)

    @cached_property
    def _has(self) -> frozenset[Call]:
        return frozenset(self.capabilities.calls)

    @property
    def first(self) -> Moment:
        """Nothing is enqueued yet."""
        return next(iter(self.level))

    def _edges(self, moment: Moment) -> Iterator[Edge]:
        store = timed_store(self.capabilities)
        for step in self._steps(moment):
            outcome = store.certain(moment, step)
            if outcome is None or outcome.after.deliveries > self.world.deliveries:
                continue
            left_ms = [n for n in outcome.after.left_ms if n is not None]
            if any(0 < n < self.times.slack_ms or n > self.times.longest_ms for n in left_ms):
                continue
            yield Edge(moment, step, outcome, kinds(moment, step, outcome))

    def _steps(self, moment: Moment) -> Iterator[Step]:
        times = self.times
        yield from (s for s in self._calls(moment) if s.call in self._has)
        left_ms = moment.dues_ms
        if times.exact and self.world.closely and 0 in moment.left_ms:
            yield Step(ms=times.long_ms)
        if left_ms and times.exact and self.world.closely and left_ms[0] > 1:
            yield Step(ms=left_ms[0] - 1)
        if left_ms:
            yield Step(ms=left_ms[0] + times.slack_ms)

    def _calls(self, moment: Moment) -> Iterator[Step]:
        has, times, n = self.capabilities, self.times, moment.enqueued
        if n < self.world.items:
            for ms in (0, times.delay_ms) if has.enqueue_delay else (0,):
                yield Step(Call.ENQUEUE, ms, items=(n,))
        faults = MADE if self.world.closely else (Fault.NONE,)
        for fault in faults:
            yield Step(Call.FETCH, times.lock_ms, fault=fault)
        stranger = (STRANGER,) if self.world.closely else ()
        for token in (*moment.tokens, *stranger):
            for call in PRESENTING:
                for ms in self._lengths(call):
                    for fault in faults:
                        yield Step(call, ms, token=token, fault=fault)
        for i in range(n):
            yield Step(Call.CANCEL, items=(i,))
        yield Step(Call.CANCEL)
        if n > 1:
            yield Step(Call.CANCEL, items=tuple(range(n)))

    def _lengths(self, call: Call) -> tuple[int, ...]:
        if call is Call.RENEW:
            return self.times.extensions_ms if self.world.closely else (self.times.lock_ms,)
        return (0, self.times.delay_ms) if call in ABANDONS and self.capabilities.abandon_delay else (0,)

    @cached_property
    def showing(self) -> dict[Kind, list[Edge]]:
        """For each kind the edges that show it, of those with the fewest steps before them."""
        found: dict[Kind, list[Edge]] = {}
        for edge in self.edges:
            for kind in edge.kinds:
                known = found.setdefault(kind, [])
                if not known or self.level[known[0].source] == self.level[edge.source]:
                    known.append(edge)
        return found

    def way_to(self, moment: Moment, wanted: set[Kind]) -> Path:
        """Of the shortest ways to a state the one that shows most of what is wanted."""
        near = nx.ancestors(self.shortest, moment) | {moment}
        weighed: nx.DiGraph[Moment] = nx.DiGraph()
        weighed.add_nodes_from(m for m in self.level if m in near)
        for u in weighed:
            for v in self.shortest[u]:
                if v in near:
                    edge = max(self.shortest[u][v]["ways"], key=lambda e: _new(e.kinds, wanted))
                    weighed.add_edge(u, v, edge=edge, shows=_new(edge.kinds, wanted))
        states = nx.dag_longest_path(weighed, weight="shows")
        ways = {(u, v): data["edge"] for u, v, data in weighed.edges(data=True)}
        # A path whose beginning shows nothing may begin late: what is missing is any shortest way.
        lead = nx.shortest_path(weighed, self.first, states[0])
        tail = nx.shortest_path(weighed, states[-1], moment)
        whole = [*lead[:-1], *states, *tail[1:]]
        return tuple(ways[u, v] for u, v in itertools.pairwise(whole))


def _new(shown: Iterable[Kind], wanted: set[Kind]) -> int:
    return sum(kind in wanted for kind in shown)


@frozen
class Run:
    """A covering run: what it was made for, and its steps."""

    made_for: Kind
    path: Path

    @property
    def shown(self) -> frozenset[Kind]:
        """All kinds that it shows."""
        return frozenset(kind for edge in self.path for kind in edge.kinds)

    @property
    def calls(self) -> int:
        """How many calls it makes."""
        return _calls(self.path)


def _calls(path: Iterable[Edge]) -> int:
    return sum(edge.step.call is not None for edge in path)


@define
class _Cover:
    graphs: tuple[Graph, ...]
    wanted: set[Kind] = field(init=False)
    where: dict[Kind, Graph] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        for graph in self.graphs:
            for kind in graph.showing:
                self.where.setdefault(kind, graph)
        self.wanted = set(self.where)

    def runs(self) -> list[Run]:
        """The runs; those whose kinds others show as well are left out again."""
        found = []
        for kind in sorted(self.where, key=self._hardest_first):
            if kind in self.wanted:
                run = Run(kind, self._run(kind))
                self.wanted -= run.shown
                found.append(run)
        return _needed(found)

    def _hardest_first(self, kind: Kind) -> tuple[bool, int]:
        # What changes nothing is called on the way of what changes something; of that, the deepest holds the most.
        edges = self.where[kind].showing[kind]
        return all(e.stays for e in edges), -self.where[kind].level[edges[0].source]

    def _run(self, kind: Kind) -> Path:
        graph = self.where[kind]
        ways = [
            (*graph.way_to(edge.source, self.wanted), edge) for edge in self._promising(graph.showing[kind])
        ]
        best = max(ways, key=lambda way: len({k for e in way for k in e.kinds} & self.wanted))
        return self._with_what_changes_nothing(graph, best)

    def _promising(self, edges: list[Edge]) -> list[Edge]:
        most = max(_new(e.kinds, self.wanted) for e in edges)
        return [e for e in edges if _new(e.kinds, self.wanted) == most]

    def _with_what_changes_nothing(self, graph: Graph, way: Path) -> Path:
        """The way with the calls before and after its last step that change nothing and are still wanted."""
        last = way[-1]
        left = self.wanted - {k for e in way for k in e.kinds}
        repeat = _repeated(graph, last)
        room = MOST_CALLS - _calls(way) - len(repeat)
        before = _wanted_here(graph, last.source, left, room)
        after = _wanted_here(graph, last.target, left, room - len(before)) if not last.stays else ()
        return (*way[:-1], *before, last, *repeat, *(e for e in after if e not in repeat))


def _repeated(graph: Graph, last: Edge) -> Path:
    """After a lost response, what the caller is told when it asks again."""
    if last.step.fault is not Fault.AFTER_EFFECT:
        return ()
    again = Step(last.step.call, last.step.ms, last.step.items, last.step.token)
    found = graph.steps.get((last.target, again))
    return () if found is None else (found,)


def _wanted_here(graph: Graph, moment: Moment, left: set[Kind], room: int) -> Path:
    found: list[Edge] = []
    for edge in graph.staying.get(moment, ()):
        if len(found) < room and _new(edge.kinds, left):
            found.append(edge)
            left.difference_update(edge.kinds)
    return tuple(found)


def _needed(runs: list[Run]) -> list[Run]:
    """The runs without those that show nothing of their own, looked for from the first made to the last."""
    kept = list(runs)
    for run in runs:
        others = {kind for other in kept if other is not run for kind in other.shown}
        if run.shown <= others:
            kept.remove(run)
    return kept


def graphs_of(capabilities: Capabilities) -> tuple[Graph, ...]:
    """The small worlds of a store with these capabilities, explored."""
    times = VIRTUAL if capabilities.virtual_clock else REAL
    return tuple(Graph(capabilities, world, times) for world in WORLDS)


def covering_runs(graphs: tuple[Graph, ...]) -> list[Run]:
    """Few short runs that together show every kind that the graphs have."""
    return _Cover(graphs).runs()


def reachable(graphs: tuple[Graph, ...]) -> list[Kind]:
    """Every kind that the graphs have, in the order in which it is found."""
    return list(dict.fromkeys(kind for graph in graphs for kind in graph.showing))
