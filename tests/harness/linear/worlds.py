"""A world: one way to explain a history so far, where each item stands and what is known of the moments."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, field, frozen

from peeklock.harness.linear.rules import Rules, is_gone, timer_of
from peeklock.harness.linear.zone import Draft, Zone, covers, latest, united
from peeklock.spec.notation.actions import Answer, Call
from peeklock.spec.reading.evaluate import INITIAL_ITEM, Record

UNSEEN = "\0unseen"
"""Stands for a token that nobody saw."""
SPACING = 1 << 20
"""How many operations there is room for between two events of a history."""
TIME, PLACE = -2, -1
"""The moment of the operation that takes effect: by the clock, and in the order of events."""
FRESH = -3
"""The first of the numbers that are free; those below it are free as well."""
_ITEM, _STAY = 1 << 24, 1 << 3
READ_TIME, READ_PLACE, ENQUEUED_TIME, ENQUEUED_PLACE = range(4)
_START_TIME, _START_PLACE, _DUE = range(3)


def of_item(i: int, which: int) -> int:
    """A moment of the item: when its standing was last relied on, or when it was enqueued."""
    return i * _ITEM + which


def starts(i: int, stay: int, place: bool) -> int:
    """The moment when an item came to stand so, by the clock or in the order of events."""
    return i * _ITEM + (stay + 1) * _STAY + (_START_PLACE if place else _START_TIME)


def due(i: int, stay: int) -> int:
    """The moment when the timer runs out."""
    return i * _ITEM + (stay + 1) * _STAY + _DUE


class Undecided(Exception):
    """The search has reached its budget, and what it had left explains the history no more."""

    def __init__(self, where: str = "") -> None:
        super().__init__(
            f"{where}: undecided: too many orders of the calls up to here are possible, and none of those looked at"
            " explains it; record more answers, or judge a shorter run"
        )


@frozen(eq=False)
class Op:
    """An operation as the search sees it. Items are numbers. Times are integer milliseconds."""

    number: int
    call: Call
    answer: Answer | None
    """None where nobody knows it."""
    began: int
    ended: float
    """The events with which it began and ended; infinity where it never did."""
    from_ms: int
    until_ms: float
    lasts_ms: int = 0
    items: tuple[int, ...] = ()
    """What is enqueued, cancelled or returned; of a call whose token was not seen, what it is about."""
    token: str | None = None
    """What is presented, or was returned."""
    attempt: int | None = None
    removed: frozenset[int] | None = None
    """Of a cancel: the items that had a row, where that is known."""
    optional: bool = False
    """It may never take effect."""

    @property
    def kind(self) -> tuple[object, ...] | None:
        """The same for operations that differ only in when they began; None where they differ in their ends."""
        if not self.optional or self.ended != float("inf"):
            return None
        return self.call, self.answer, self.lasts_ms, self.items, self.token


@frozen(cache_hash=True)
class Item:
    """Where an item stands."""

    record: Record = INITIAL_ITEM
    token: str | None = None
    """The token that the row has."""
    stay: int = 0
    """How many other standings of the item are still remembered from before."""


@frozen(eq=False)
class World:
    """One way to explain a history so far."""

    items: dict[int, Item]
    done: frozenset[int] = frozenset()
    """The open operations that have taken effect; of those that may never do so, see ``used``."""
    used: frozenset[int] = frozenset()
    zone: Zone = field(factory=dict)
    past: frozenset[tuple[int, Item]] = frozenset()
    """How items stood before, where an answer that is not known yet may be due to that."""
    bound: frozenset[tuple[str, int]] = frozenset()
    """Tokens that no fetch was seen to return, and the items that they must be of all the same."""

    @property
    def key(self) -> tuple[object, ...]:
        """What worlds must have in common to be compared."""
        return frozenset(self.items.items()), self.done, self.past, self.bound

    def has(self, op: Op) -> bool:
        """Has the operation taken effect?"""
        return op.number in (self.used if op.optional else self.done)


class Frontier:
    """Worlds, without those that another of them makes superfluous."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[object, ...], list[World]] = {}

    def __iter__(self) -> Iterator[World]:
        for worlds in self._by_key.values():
            yield from worlds

    def __len__(self) -> int:
        return sum(map(len, self._by_key.values()))

    def add(self, world: World) -> bool:
        """Add the world; False where another one explains all that it can."""
        known = self._by_key.setdefault(world.key, [])
        if any(w.used <= world.used and covers(w.zone, world.zone) for w in known):
            return False
        known[:] = [w for w in known if not (world.used <= w.used and covers(world.zone, w.zone))]
        known.append(world)
        return True

    def blurred(self) -> list[World]:
        """Fewer worlds, which explain all that these do, and may explain more."""
        found = []
        for worlds in self._by_key.values():
            one = worlds[0]
            for world in worlds[1:]:
                zone = united(one.zone, world.zone, exactly=False)
                assert zone is not None
                one = evolve(one, used=one.used & world.used, zone=zone)
            found.append(one)
        return found

    def united(self) -> list[World]:
        """The worlds, those made one that differ in nothing but when, where no more is explained by that."""
        found: list[World] = []
        for worlds in self._by_key.values():
            kept: list[World] = []
            for world in worlds:
                again = True
                while again:
                    again = False
                    for other in kept:
                        if other.used == world.used:
                            zone = united(other.zone, world.zone)
                            if zone is not None:
                                kept.remove(other)
                                world, again = evolve(world, zone=zone), True
                                break
                kept.append(world)
            found += kept
        return found


@frozen
class Horizon:
    """Before which no operation takes effect any more: this time, and this event."""

    from_ms: float
    place: float


def tidied(world: World, rules: Rules, clock: bool, any_: Horizon, answered: Horizon) -> World:
    """The same world without what no operation depends on any more: of any kind, or of those that were answered."""
    drop: list[int] = []
    items: dict[int, Item] = {}
    zone, set_to = world.zone, dict[int, tuple[int, int]]()
    past = set()
    for i, item in world.past:
        if latest(zone, starts(i, item.stay + 1, True)) <= answered.place or (
            clock and latest(zone, starts(i, item.stay + 1, False)) < answered.from_ms
        ):
            drop += [starts(i, item.stay, True), starts(i, item.stay, False), due(i, item.stay)]
        else:
            past.add((i, item))
    kept = {i for i, _ in past}
    for i, item in world.items.items():
        horizon = answered if is_gone(item.record) else any_  # what may have happened changes it no more
        for place, read in ((False, READ_TIME), (True, READ_PLACE)):
            most = horizon.place if place else horizon.from_ms
            for moment in (starts(i, item.stay, place), of_item(i, read)):
                if i not in kept and latest(zone, moment) <= most:
                    drop.append(moment)
        if timer_of(item.record) is not None:
            if latest(zone, due(i, item.stay)) <= (any_.from_ms if clock else any_.place):
                item = evolve(item, record=rules.run_out(item.record))
        elif is_gone(item.record):
            drop += [of_item(i, ENQUEUED_TIME), of_item(i, ENQUEUED_PLACE)]
        if timer_of(item.record) is None:
            drop.append(due(i, item.stay))
        if item.stay and i not in kept:
            for old, new in (
                (due(i, item.stay), due(i, 0)),
                (starts(i, item.stay, True), starts(i, 0, True)),
                (starts(i, item.stay, False), starts(i, 0, False)),
            ):
                if old in zone and old not in drop:
                    set_to[new] = old, 0
                drop.append(old)
            item = evolve(item, stay=0)
        items[i] = item
    drop = [moment for moment in drop if moment in zone]
    if not drop and not set_to and len(past) == len(world.past):
        return world
    draft = Draft(zone)
    for old, _ in set_to.values():
        draft.take(old)
    return evolve(world, items=items, zone=draft.done(set_to, drop), past=frozenset(past))
