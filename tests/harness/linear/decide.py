"""The decision: can every operation of a history be given one moment at which all of them are explained?

The search is just in time: it keeps the worlds that explain the history so far, and lets an operation take effect only
when its own end demands it, or because another one that has to is not explained without it. So what has taken effect
is what came before in every explanation; how operations on different items lie to each other is left open. Each item
has moments of its own, and operations that are about several tie them together.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Iterator

from attrs import evolve

from peeklock.harness.linear.budget import MORE, MOST_EFFORT, MOST_PENDING, MOST_STEPS, MOST_WORLDS, UNITED
from peeklock.harness.linear.findings import Place, Unexplained
from peeklock.harness.linear.making import Touched, Way
from peeklock.harness.linear.rules import is_gone, rules
from peeklock.harness.linear.taking import Taking
from peeklock.harness.linear.worlds import (
    READ_PLACE,
    READ_TIME,
    SPACING,
    UNSEEN,
    Frontier,
    Horizon,
    Item,
    Op,
    Undecided,
    World,
    due,
    of_item,
    starts,
    tidied,
)
from peeklock.harness.linear.zone import covers, earliest, latest
from peeklock.spec.law.state import completions
from peeklock.spec.notation.actions import Answer, Call
from peeklock.spec.reading.evaluate import PLACE as PLACE_OF
from peeklock.spec.variants.capabilities import Capabilities, Order


class Decision:
    """The worlds that explain a history."""

    def __init__(
        self,
        capabilities: Capabilities,
        clock: bool = True,
        most_steps: int = MOST_STEPS,
        most_worlds: int = MOST_WORLDS,
        most_effort: int = MOST_EFFORT,
        widens: bool = True,
    ) -> None:
        self._widens = widens
        self.rules, self.clock, self._most_steps = rules(capabilities), clock, most_steps
        self._most_worlds, self.is_complete = most_worlds, True
        self._most_effort = most_effort
        self.worlds: list[World] = [World({})]
        self.open: dict[int, Op] = {}
        self.settled: dict[int, Item] = {}
        """Items whose rows are gone, whatever happened."""
        self.completions: dict[int, frozenset[int]] = {}
        """How many completions the items can have whose rows are gone."""
        self.item_of: dict[str, int] = {}
        """The items of the tokens that were returned."""
        self._fetch_of: dict[str, int] = {}
        fifo = capabilities.order is Order.FIFO
        self.taking = Taking(
            self.rules, fifo, clock, self.about, self.item_of.get, lambda i: self.settled.get(i)
        )
        self._capabilities = capabilities
        self.taking.most_ways = most_worlds if widens else None
        self.taking.effort[1] = most_effort
        self._from_ms: float = -math.inf
        self._steps = 0
        self._is_wide = False
        self._wide: Decision | None = None
        """Worlds that explain all that can be explained and maybe more, once not all worlds could be kept."""

    # Operations begin and end

    def begin(self, op: Op) -> None:
        """The operation begins."""
        if self._wide is not None:
            self._wide.begin(op)
        self._from_ms = max(self._from_ms, op.from_ms)
        self.open[op.number] = op
        new = [i for i in op.items if i not in self.settled and any(i not in w.items for w in self.worlds)]
        if new:
            self.worlds = [evolve(w, items={**dict.fromkeys(new, Item()), **w.items}) for w in self.worlds]
        if op.call is Call.FETCH and op.token is not None and op.token not in self.item_of:
            self.item_of[op.token] = op.items[0]
            self._fetch_of[op.token] = op.number

    def end(self, op: Op, at: int) -> None:
        """The operation ends with this event; ``Unexplained`` where it cannot have taken effect by now."""
        if self._wide is not None:
            try:
                self._wide.end(op, at)
            except Undecided:
                self._wide = None
        if op.optional:
            pending = [p for p in self.open.values() if p.optional and p.ended <= at]
            for late in pending[: max(len(pending) - MOST_PENDING, 0)]:
                self._finish(late)
        else:
            self._finish(op)
        self._tidy(at)
        self._limit()

    def _limit(self) -> None:
        """Keep no more worlds than there may be."""
        if len(self.worlds) <= self._most_worlds:
            wide = self._wide
            if wide is not None and len(self.worlds) == len(wide.worlds) == 1:
                (one,), (other,) = self.worlds, wide.worlds
                if one.key == other.key and one.used <= other.used and covers(one.zone, other.zone):
                    self._wide, self.is_complete = None, True  # nothing that was left out matters any more
            return
        if self._is_wide:
            worlds = Frontier()
            for world in self.worlds:
                worlds.add(world)
            self.worlds = worlds.blurred()
            return
        if self.is_complete:
            self._wide = self._widened() if self._widens else None
            self.is_complete = False
        self.worlds = sorted(self.worlds, key=lambda w: len(w.used))[: self._most_worlds]

    def _go_on_wide(self, op: Op, before: list[World]) -> None:
        """Not all that the operation may have done is looked at: go on with what may be more, beside that."""
        if self.is_complete:
            self.worlds, self.is_complete = before, False
            if not self._widens:
                return
            self._wide = self._widened()
            try:
                self._wide._finish(op)
            except Undecided:
                self._wide = None

    def _widened(self) -> Decision:
        wide = Decision(
            self._capabilities, self.clock, MORE * self._most_steps, self._most_worlds, self._most_effort
        )
        wide.taking.effort = self.taking.effort
        wide.worlds, wide.open = list(self.worlds), dict(self.open)
        wide.settled.update(self.settled)
        wide.completions.update(self.completions)
        wide.item_of.update(self.item_of)
        wide._fetch_of.update(self._fetch_of)
        wide._from_ms, wide._is_wide = self._from_ms, True
        wide.taking.is_wide = True
        wide._limit()
        return wide

    def about(self, world: World, i: int) -> Iterator[Op]:
        """The open operations that may still change where the item stands, in this world."""
        for op in self.open.values():
            if not world.has(op) and self._may_touch(op, i):
                yield op

    def possible(self, i: int) -> dict[Place, None]:
        """Where the item may stand now: of the open operations, any may have taken effect."""
        seen = Frontier()
        todo = deque(w for w in self.worlds if seen.add(w))
        for _ in range(self._most_steps):
            if not todo:
                break
            world = todo.popleft()
            for other in self.about(world, i):
                for way in self.taking.ways(world, other, (i,)):
                    if seen.add(way.world):
                        todo.append(way.world)
        return {self.place(world, i): None for world in seen}

    def place(self, world: World, i: int) -> Place:
        """Where the item stands in this world."""
        item = self.taking.item(world, i)
        end = due(i, item.stay)
        return Place(item, earliest(world.zone, end), latest(world.zone, end))

    def _may_touch(self, op: Op, i: int) -> bool:
        if op.items:
            return i in op.items
        if op.call is Call.FETCH or op.token is None:
            return op.answer is not Answer.NOTHING
        known = self.item_of.get(op.token)
        return known is None or known == i

    # One operation has to have taken effect

    def _finish(self, op: Op) -> None:
        before = self.worlds
        found, seen = Frontier(), Frontier()
        todo: deque[tuple[World, tuple[Touched, ...]]] = deque()
        for world in self.worlds:
            if op.optional:
                found.add(evolve(world, used=world.used - {op.number}))
            if world.has(op):
                found.add(_without(world, op))
            elif seen.add(world):
                todo.append((world, ()))
        self._steps = 0
        self.taking.is_cut = False
        in_the_way: dict[int, None] = {}
        while todo:
            world, trail = todo.popleft()
            self._steps += 1
            if self._steps > self._most_steps:
                if self._is_wide:
                    raise Undecided
                if len(found) or self._steps > MORE * self._most_steps:
                    self._go_on_wide(op, before)
                    break
            changed = {i for touched in trail for i in touched}
            ways = self.taking.ways(world, op, changed=changed)
            blocked = self.taking.blocked
            if blocked is not None:
                in_the_way[blocked] = None
            for way in ways:
                if _is_needed(trail, way.touched):
                    found.add(_without(way.world, op))
            concerned = {i for way in ways for i in way.touched} | self.taking.taken_for_younger
            if not ways and blocked is not None:
                concerned = {blocked}
            elif not ways:
                concerned = set(world.items)
            for way in self._others(world, op, concerned, changed):
                if seen.add(way.world):
                    todo.append((way.world, (*trail, way.touched)))
        if not len(found):
            if self.taking.is_cut and not self._is_wide:
                self._go_on_wide(op, before)
            if not self.is_complete:
                raise Undecided
            raise Unexplained(op, tuple(seen), tuple(in_the_way))
        if self.taking.is_cut and not self._is_wide:
            self._go_on_wide(op, before)
        del self.open[op.number]
        self.worlds = list(found)

    def _others(self, world: World, op: Op, concerned: set[int], changed: Collection[int]) -> Iterator[Way]:
        """What the other open operations may do first, as far as it has to do with these items."""
        others = [
            o for o in self.open.values() if o.number != op.number and not world.has(o) and self._may_write(o)
        ]
        reach: dict[int, Collection[int]] = {}
        grown = True
        while grown:
            grown = False
            for other in others:
                near = self._near(world, other, concerned)
                if near and len(near) > len(reach.get(other.number, ())):
                    reach[other.number] = near
                    if not concerned.issuperset(near):
                        concerned |= set(near)
                        grown = True
        kinds: dict[object, int] = {}
        for other in sorted(others, key=lambda o: -o.began):
            if other.number not in reach:
                continue
            before = math.inf
            if (
                other.kind is not None
            ):  # of operations that are alike, the latest that has begun by then will do
                before = kinds.get(other.kind, math.inf)
                kinds[other.kind] = other.began
            lost = other.call is Call.FETCH and not other.items
            yield from self.taking.ways(world, other, reach[other.number] if lost else None, before, changed)

    def _may_write(self, op: Op) -> bool:
        """Can the operation change anything? One that only reads may do so in the past as well, when its end comes."""
        if op.call is Call.CANCEL:
            return op.removed is None or bool(op.removed)
        return self.rules.has_effect(op.call, op.answer)

    def _near(self, world: World, op: Op, concerned: set[int]) -> Collection[int]:
        """The items that the operation may be about, where one of them is concerned; none where it is not."""
        if op.call is Call.FETCH:
            found: set[int] = set()
            for i in op.items or world.items:
                if not self._is_gone(world, i):
                    near = {i, *self._before(world, op, i)}
                    # One that may never take effect has to do so before what it relies on is changed.
                    if i in concerned or (op.optional and not near.isdisjoint(concerned)):
                        found |= near
            return found
        if op.items:
            return op.items if any(i in concerned for i in op.items) else ()
        assert op.token is not None
        known = self.item_of.get(op.token)
        if known is not None:
            return (known,) if known in concerned else ()
        return [k for k in concerned if k in world.items and world.items[k].token in (UNSEEN, op.token)]

    def _before(self, world: World, op: Op, i: int) -> Iterator[int]:
        """The items that may have to be handed out before this one."""
        if not self.taking.fifo:
            return
        for other in world.items:
            if other == i or self._is_gone(world, other) or world.items[other] == Item():
                continue
            if not self.taking.is_younger(world, other, i) and not self.taking.is_out_of_reach(
                world, op, other
            ):
                yield other

    @staticmethod
    def _is_gone(world: World, i: int) -> bool:
        return i not in world.items or is_gone(world.items[i].record)

    def forget(self, i: int, tokens: Collection[str]) -> None:
        """Forget an item whose row is gone: what is said of it later is as of one that never was."""
        self.settled.pop(i, None)
        self.completions.pop(i, None)
        for token in tokens:
            self.item_of.pop(token, None)
            self._fetch_of.pop(token, None)
        if self._wide is not None:
            self._wide.forget(i, tokens)

    # What need not be remembered

    def _tidy(self, at: int) -> None:
        self._forget_spent(at)
        any_ = self._horizon(at, self.open.values())
        answered = self._horizon(at, (op for op in self.open.values() if not op.optional))
        worlds = Frontier()
        for world in self.worlds:
            worlds.add(tidied(world, self.rules, self.clock, any_, answered))
        self.worlds = worlds.united() if len(worlds) < UNITED else list(worlds)
        self._settle()

    def _horizon(self, at: int, ops: Iterable[Op]) -> Horizon:
        from_ms, place = self._from_ms, float(at)
        for op in ops:
            from_ms, place = min(from_ms, op.from_ms), min(place, op.began)
        return Horizon(from_ms, place * SPACING)

    def _settle(self) -> None:
        first = self.worlds[0]
        for i in list(first.items):
            if not all(_is_settled(w, i) for w in self.worlds):
                continue
            self.completions[i] = frozenset(w.items[i].record[PLACE_OF[completions]] for w in self.worlds)
            self.settled[i] = first.items[i]
            worlds = Frontier()
            for w in self.worlds:
                worlds.add(evolve(w, items={k: v for k, v in w.items.items() if k != i}))
            self.worlds = list(worlds)

    def _forget_spent(self, at: int) -> None:
        for op in [o for o in self.open.values() if o.optional]:
            if all(op.number in w.used or self._is_spent(w, op, at) for w in self.worlds):
                del self.open[op.number]
                mine = frozenset({op.number})
                self.worlds = [evolve(w, used=w.used - mine) for w in self.worlds]

    def _is_spent(self, world: World, op: Op, at: int) -> bool:
        """Can the operation change nothing any more?"""
        items: Iterable[int] = op.items
        if op.call is Call.FETCH:
            items = [i for i in world.items if not self._is_gone(world, i)]
            if op.ended > at:
                return False
        elif op.call is Call.ENQUEUE and world.items.get(op.items[0]) != Item():
            return True
        elif op.call is not Call.CANCEL and op.token is not None:
            i = self.item_of.get(op.token)
            if i is None:
                if op.ended > at:
                    return False
                items = list(world.items)
            else:
                fetch = self._fetch_of[op.token]
                was_fetched = fetch not in self.open or fetch in world.done
                if i not in world.items or (was_fetched and world.items[i].token != op.token):
                    return True
                items = (i,)
        return all(self._is_gone(world, i) or self._is_over(world, op, i) for i in items)

    def _is_over(self, world: World, op: Op, i: int) -> bool:
        zone, stay = world.zone, world.items[i].stay
        if earliest(zone, starts(i, stay, True)) >= op.ended * SPACING:
            return True
        return self.clock and earliest(zone, starts(i, stay, False)) > op.until_ms


def _is_settled(world: World, i: int) -> bool:
    item = world.items[i]
    if not is_gone(item.record) or any(k == i for k, _ in world.past):
        return False
    moments = (starts(i, item.stay, True), starts(i, item.stay, False))
    return not any(m in world.zone for m in (*moments, of_item(i, READ_TIME), of_item(i, READ_PLACE)))


def _without(world: World, op: Op) -> World:
    return evolve(world, done=world.done - {op.number}, used=world.used - {op.number})


def _is_needed(trail: tuple[Touched, ...], touched: Touched) -> bool:
    """Did all that was done before have to be, for one that came after it?"""
    if not trail:
        return True
    after = [touched]
    for earlier in reversed(trail):
        if not any(writes or later[i] for later in after for i, writes in earlier.items() if i in later):
            return False
        after.append(earlier)
    return True
