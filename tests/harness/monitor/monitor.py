"""The monitor: the set of states of the specification that explain what was seen so far.

A lost response leaves two states, a later answer removes one, and an empty set is a violation: then the monitor
says what was seen, in which states the run could have been before it, and what those would have allowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from copy import copy

from attrs import evolve

from peeklock.harness.monitor.blame import blame
from peeklock.harness.monitor.engine import TakenFrom, engine
from peeklock.harness.monitor.observation import Observation, shown
from peeklock.harness.monitor.standing import Standing, Until
from peeklock.harness.monitor.world import (
    CALLS_AND_HANDLERS,
    HELD,
    STARTS_TIMER,
    Deadline,
    Follows,
    Scope,
    Sight,
    Violation,
    World,
    with_room,
    without,
)
from peeklock.spec.compose import ACTIONS, PROMISES
from peeklock.spec.law.state import completions
from peeklock.spec.notation.actions import Action, Answer, Call
from peeklock.spec.reading.evaluate import INITIAL_ITEM, INITIAL_WORKER, PLACE, Record
from peeklock.spec.reading.narrative import describe_item, describe_worker
from peeklock.spec.reading.wording import item_name
from peeklock.spec.variants.variant import Variant

MOST_STATES_TOLD = 3
NOT_LIKE_THIS = "the call was allowed here, but not with this answer or these contents"
NOT_HERE = "this was not allowed here"
"""The two reasons that a monitor gives."""


class Monitor:
    """Keeps every state that explains a run, observation by observation."""

    def __init__(
        self, variant: Variant, scope: Scope = CALLS_AND_HANDLERS, actions: tuple[Action, ...] = ACTIONS
    ) -> None:
        self.variant, self.scope = variant, scope
        self.engine = engine(variant, scope, actions)
        self.worlds: tuple[World, ...] = (World(),)
        self.now_ms: int | None = None
        self.workers: dict[str, int] = {}
        self.items: dict[str, int] = {}
        self.tokens: dict[str, int] = {}
        self.taken: Counter[str] = Counter()
        """How often each action of the specification explained something that was seen, by its name."""
        self._latest: dict[str, tuple[tuple[World, ...], Sight]] = {}
        """For each worker the latest step that was seen of it with an item in hand, and the states before it."""

    def observe(self, seen: Observation) -> None:
        """Take in one observation; ``Violation`` when no state explains it.

        With a clock, ``ValueError`` for an observation without its time, or without a length where it may start a
        timer.
        """
        if self.scope.clock:
            if seen.at_ms is None:
                raise ValueError(f"{seen}: with a clock, at_ms is needed")
            if seen.lasts_ms is None and seen.call in STARTS_TIMER and seen.answer is not Answer.NOTHING:
                raise ValueError(f"{seen}: with a clock, lasts_ms is needed")
        if seen.at_ms is not None:
            self.pass_time(seen.at_ms, seen.until_ms)
        sight = self._sight(seen)
        before = self.worlds
        after = tuple(dict.fromkeys(w for world in before for w in self._followed(world, sight, seen)))
        if not after:
            raise self._violation(seen, sight)
        self.worlds = after
        if seen.worker is not None and seen.counts is None and seen.answer is not Answer.NOTHING:
            self._latest[seen.worker] = before, sight

    def pass_time(self, now_ms: int, until_ms: int | None = None) -> None:
        """Let the timers that are due run out, and, up to ``until_ms``, keep open those that may be."""
        self.now_ms = now_ms
        if self.scope.clock:
            latest_ms = now_ms if until_ms is None else until_ms
            self.worlds = tuple(
                dict.fromkeys(w for world in self.worlds for w in self._ticked(world, now_ms, latest_ms))
            )

    def broken(self) -> tuple[str, ...]:
        """The promises that are broken in every state that explains the run."""
        sets = [self.engine.promises.broken_in(w.core) for w in self.worlds]
        certain = frozenset.intersection(*sets) if sets else frozenset()
        return tuple(p.id for p in PROMISES if p.id in certain)

    def forget_unseen(self) -> None:
        """Drop the states in which something is owed that should have been seen by now: at the end of a run."""
        self.worlds = tuple(
            w for w in self.worlds if not w.core.owed and not (self.scope.counts and w.core.said)
        )

    def excuse_counts(self, worker: str) -> None:
        """Take what the worker should have counted by now for counted."""
        number = self.workers[worker]
        others = (frozenset(x for x in w.core.said if x[0] != number) for w in self.worlds)
        self.worlds = tuple(
            dict.fromkeys(
                evolve(w, core=evolve(w.core, said=said)) for w, said in zip(self.worlds, others, strict=True)
            )
        )

    def narrow(self, keep: Callable[[World], bool]) -> None:
        """Drop the states that something else speaks against, such as a look at the store."""
        self.worlds = tuple(w for w in self.worlds if keep(w))

    def completions_of(self, item: str) -> frozenset[int]:
        """How many completions the item can have, by the states that explain the run."""
        number = self.items.get(item)
        if number is None:
            return frozenset({0})
        return frozenset(w.state[1][number][PLACE[completions]] for w in self.worlds)

    def told(self) -> tuple[tuple[str, ...], ...]:
        """The states that explain the run, in words; a few of them."""
        told = {self.described(w): None for w in self.worlds}
        return tuple(told)[:MOST_STATES_TOLD]

    def standings(self) -> tuple[Standing, ...]:
        """The states that explain the run, with names."""
        texts = {number: text for text, number in self.tokens.items()}
        names = {number: name for name, number in self.items.items()}
        found = []
        for world in self.worlds:
            found.append(
                Standing(
                    {name: world.state[1][number] for name, number in self.items.items()},
                    {name: world.state[0][number] for name, number in self.workers.items()},
                    {(names[i], t): texts[number] for number, i, t in world.core.tokens},
                    {names[d.item]: Until(d.timer, d.earliest_ms, d.latest_ms) for d in world.deadlines},
                )
            )
        return tuple(found)

    # Workers that come and go

    def adopt(self, worker: str, records: tuple[Record, ...]) -> None:
        """A worker comes in, of which these records are possible."""
        self.workers[worker] = len(self.workers)
        self.worlds = tuple(
            evolve(w, core=with_room(w.core, (record,), ())) for w in self.worlds for record in records
        )

    def release(self, worker: str) -> tuple[Record, ...]:
        """A worker with nothing in hand goes: what it may be. None, and nothing changes, where it cannot be idle."""
        place = self.workers[worker]
        left: dict[World, None] = {}
        records: dict[Record, None] = {}
        for world in self.worlds:
            for core in self.engine.closed(world.core):
                record = core.state[0][place]
                if record[HELD] == 0 and not self.engine.is_behind(core, place):
                    records[record] = None
                    left[World(without(core, place), world.deadlines)] = None
        if records:
            self.worlds = tuple(left)
            del self.workers[worker]
            self.workers = {name: n - (n > place) for name, n in self.workers.items()}
        return tuple(records)

    def in_hand(self, worker: str) -> tuple[Record, ...]:
        """What the worker may be, with something in hand; none where it may have nothing."""
        place = self.workers[worker]
        cores = (core for world in self.worlds for core in self.engine.closed(world.core))
        records = tuple(dict.fromkeys(core.state[0][place] for core in cores))
        return () if any(record[HELD] == 0 for record in records) else records

    def visited_by(self, worker: str, records: tuple[Record, ...]) -> Monitor:
        """The same monitor with this worker in it, which has another item in hand, of which no more is told here."""
        visited = copy(self)
        visited.workers = {**self.workers, worker: len(self.workers)}
        visited.items = {**self.items, f"(in the hand of {worker})": len(self.items)}
        holding = [(*r[:HELD], len(visited.items), *r[HELD + 1 :]) for r in records]
        visited.worlds = tuple(
            evolve(w, core=with_room(w.core, (record,), (INITIAL_ITEM,)))
            for w in self.worlds
            for record in holding
        )
        return visited

    # One observation

    def _sight(self, seen: Observation) -> Sight:
        new_worker = seen.worker is not None and seen.worker not in self.workers
        new_item = seen.item is not None and seen.item not in self.items
        if new_worker or new_item:
            if seen.worker is not None:
                self.workers.setdefault(seen.worker, len(self.workers))
            if seen.item is not None:
                self.items.setdefault(seen.item, len(self.items))
            more = (INITIAL_WORKER,) * new_worker, (INITIAL_ITEM,) * new_item
            self.worlds = tuple(evolve(w, core=with_room(w.core, *more)) for w in self.worlds)
        if seen.token is not None and seen.token not in self.tokens and seen.call is Call.FETCH:
            self.tokens[seen.token] = len(self.tokens)
        return Sight(
            seen.call,
            seen.event,
            seen.counts,
            None if seen.worker is None else self.workers[seen.worker],
            None if seen.item is None else self.items[seen.item],
            None if seen.token is None else self.tokens.get(seen.token),
            seen.answer,
            seen.effect,
            seen.attempt,
            seen.completions,
            seen.token is not None,
        )

    def _followed(self, world: World, sight: Sight, seen: Observation) -> Iterator[World]:
        for follows in self.engine.follow(world.core, sight):
            if follows.action:
                self.taken[follows.action] += 1
            if follows.timer is None:
                yield World(follows.core, world.deadlines)
            else:
                yield from self._timed(world, follows, seen)

    def _timed(self, world: World, follows: Follows, seen: Observation) -> Iterator[World]:
        assert follows.timer is not None
        assert seen.at_ms is not None
        lasts_ms = seen.lasts_ms or 0
        earliest_ms, latest_ms = seen.at_ms, seen.at_ms if seen.until_ms is None else seen.until_ms
        now_ms = earliest_ms, latest_ms
        running = [d for d in world.deadlines if d.item == follows.item]
        if follows.prolongs and running:
            earliest_ms, latest_ms = running[0].earliest_ms, running[0].latest_ms
        started = Deadline(follows.item, follows.timer, earliest_ms + lasts_ms, latest_ms + lasts_ms)
        others = tuple(d for d in world.deadlines if d.item != follows.item)
        yield from self._ticked(World(follows.core, (*others, started)), *now_ms)

    def _ticked(self, world: World, now_ms: int, latest_ms: int) -> Iterator[World]:
        """The world with the timers run out that are due; twice where one may be."""
        for deadline in sorted(world.deadlines, key=lambda d: d.earliest_ms):
            if deadline.earliest_ms > latest_ms:
                break
            others = tuple(d for d in world.deadlines if d is not deadline)
            run_out = World(self.engine.run_out(world.core, deadline.timer, deadline.item), others)
            if deadline.latest_ms > now_ms:
                yield from self._ticked(run_out, now_ms, latest_ms)
                continue
            world = run_out
        yield world

    # What to say when nothing explains it

    def _violation(self, seen: Observation, sight: Sight) -> Violation:
        told = self.told()
        closed = tuple(World(core, w.deadlines) for w in self.worlds for core in self.engine.closed(w.core))
        return Violation(
            seen,
            closed,
            self.engine.allowed((w.core, sight) for w in closed),
            self._reason(closed, sight),
            blame(self.engine).at_stake([(w.core, sight) for w in self.worlds], self._latest_steps(seen)),
            told,
        )

    def _reason(self, worlds: Iterable[World], sight: Sight) -> str:
        relaxed = evolve(sight, answer=None, effect=None, attempt=None, completions=())
        for world in worlds:
            if any(True for _ in self.engine.explained(world.core, relaxed)):
                return NOT_LIKE_THIS
        return NOT_HERE

    def _latest_steps(self, seen: Observation) -> list[TakenFrom]:
        worlds, sight = self._latest.get(seen.worker or "", ((), None))
        if sight is None:
            return []
        steps = (t for w in worlds for t in self.engine.steps(w.core, sight))
        return [
            t for t in steps if t[1][0].item is not None
        ]  # a fetch that found nothing leaves nothing in hand

    def described(self, world: World) -> tuple[str, ...]:
        """One state in words: each item, and each worker that has something in hand."""
        names = {number: shown(name) for name, number in self.workers.items()}
        texts = {number: shown(text) for text, number in self.tokens.items()}
        known = {(i, t): texts[number] for number, i, t in world.core.tokens}
        items = []
        for name, number in self.items.items():
            of_item = {t: text for (i, t), text in known.items() if i == number}
            told = describe_item(world.state[1][number], lambda t, of=of_item: of.get(t, f"token {t}"))  # type: ignore[misc]
            items.append(f"{shown(name)}: {told}")
        workers = [
            f"{names.get(w, item_name(w))}: {describe_worker(record)}"
            for w, record in enumerate(world.state[0])
            if record != INITIAL_WORKER
        ]
        return (*items, *workers)
