"""How an operation takes effect in a world: at one moment, at which every item that it is about stands as it must."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from peeklock.harness.linear.making import Making, Way
from peeklock.harness.linear.rules import OWN, STALE, Effect, Rules, has_token, is_gone, timer_of
from peeklock.harness.linear.worlds import (
    ENQUEUED_PLACE,
    ENQUEUED_TIME,
    FRESH,
    PLACE,
    READ_PLACE,
    READ_TIME,
    SPACING,
    TIME,
    UNSEEN,
    Item,
    Op,
    World,
    due,
    of_item,
    starts,
)
from peeklock.harness.linear.zone import ANY, Draft, earliest, latest, latest_or
from peeklock.harness.run.steps import NEVER_ISSUED
from peeklock.spec.notation.actions import Answer, Call
from peeklock.spec.reading.evaluate import INITIAL_ITEM, Record

_NOTHING = Item()


class Taking:
    """Lets operations take effect."""

    def __init__(
        self,
        rules: Rules,
        fifo: bool,
        clock: bool,
        about: Callable[[World, int], Iterable[Op]],
        item_of: Callable[[str], int | None],
        settled: Callable[[int], Item | None],
    ) -> None:
        self.rules, self.fifo, self.clock = rules, fifo, clock
        self._about, self._item_of, self._settled = about, item_of, settled
        self._new: Collection[int] = ()
        self.taken_for_younger: set[int] = set()
        """The items of which it then depends that they were enqueued later than another."""
        self.effort = [0, 0]
        """The bounds that were copied so far, a measure of the time taken, and how many may be."""
        self.most_ways: int | None = None
        """How many ways are kept; None for all."""
        self.is_wide = False
        """Where there are more, leave open on what the operation relies, and not ways out."""
        self.is_cut = False  # were there more?
        self.blocked: int | None = None
        """The item because of which the latest operation could not take effect."""

    def item(self, world: World, i: int) -> Item:
        """Where the item stands."""
        return world.items.get(i) or self._settled(i) or _NOTHING

    def ways(
        self,
        world: World,
        op: Op,
        only: Collection[int] | None = None,
        before: float = ANY,
        changed: Collection[int] = (),
    ) -> list[Way]:
        """The ways in which the operation can take effect next; ``only`` these items may a lost fetch take.

        ``before`` is an event before which it must do so; ``changed`` are items on which it may depend only because of
        what other operations have just done.
        """
        self.blocked, self._new = None, changed
        self.taken_for_younger = set()
        most = min(op.ended, before)
        draft = Draft(world.zone)
        draft.add(PLACE, op.began * SPACING + 1, most if most == ANY else most * SPACING - 1)
        if self.clock:
            if op.from_ms > op.until_ms:
                return []
            draft.add(TIME, op.from_ms, op.until_ms)
        making = Making(draft, dict(world.items), set(world.past), self.effort)
        return [self._made(world, op, m) for m in self._each(world, op, making, only)]

    def _each(self, world: World, op: Op, making: Making, only: Collection[int] | None) -> Iterator[Making]:
        if op.call is Call.FETCH:
            if op.answer is Answer.NOTHING:
                yield from self._found_nothing(world, op, making)
                return
            for i in op.items or [i for i in world.items if only is None or i in only]:
                yield from self._fetched(world, op, making.copy(), i)
        elif op.call is Call.CANCEL:
            yield from self._cancelled(world, op, making)
        elif op.token is None:
            yield from self._changed(world, op, making, op.items[0])
        else:
            yield from self._presented(world, op, making)

    def _presented(self, world: World, op: Op, making: Making) -> Iterator[Making]:
        assert op.token is not None
        i = self._item_of(op.token)
        if i is None:
            i = next((k for token, k in world.bound if token == op.token), None)
        if i is not None:
            yield from self._changed(world, op, making, i)
            return
        if op.token != NEVER_ISSUED:
            for k, item in world.items.items():
                if item.token == UNSEEN:
                    yield from self._changed(world, op, making.copy(), k, bind=True)
        if not op.optional and self.rules.may_stay(INITIAL_ITEM, op.call, op.answer, STALE):
            yield making

    # One item

    def _stays(self, world: World, op: Op, i: int) -> Iterator[Item]:
        """How the item stands, and how it stood before, as far as the operation may rely on that."""
        yield self.item(world, i)
        if not op.optional:  # one that may never take effect does so before what would come in between
            for k, item in world.past:
                if k == i:
                    yield item

    def _seen(self, making: Making, i: int, item: Item) -> Iterator[tuple[Making, Record]]:
        """Where the item can stand at the moment: with its timer running, and with it run out."""
        if timer_of(item.record) is None:
            yield making, item.record
            return
        draft, end = making.draft, due(i, item.stay)
        moment, apart = (TIME, 0) if self.clock else (PLACE, 1)
        may_be_over = draft.earliest(end) <= draft.latest(moment) - apart
        may_run = draft.earliest(moment) < draft.latest(end)
        over = making.copy() if may_be_over and may_run else making
        if may_run and making.draft.at_most(moment, end, -1):
            yield making, item.record
        if may_be_over and over.draft.at_most(end, moment, -apart):
            yield over, self.rules.run_out(item.record)

    def _after(self, draft: Draft, moment: int, place: bool) -> bool:
        """Add that the operation comes after this moment; False where it cannot."""
        return moment not in draft.zone or draft.at_most(moment, PLACE if place else TIME, -int(place))

    def _relies(self, world: World, making: Making, i: int, item: Item) -> bool:
        """The operation depends on how the item stands or stood, and changes nothing. False where it cannot be."""
        draft = making.draft
        current = world.items[i].stay == item.stay
        if current or i in self._new:
            making.touched.setdefault(i, False)
        for place in (True, False) if self.clock else (True,):
            if not self._after(draft, starts(i, item.stay, place), place):
                return False
            mine, after = (PLACE if place else TIME), starts(i, item.stay + 1, place)
            if not current:
                if after in draft.zone and not draft.at_most(mine, after, -int(place)):
                    return False
                continue
            read = of_item(i, READ_PLACE if place else READ_TIME)
            if read not in draft.zone:
                making.set_to[read] = mine, 0
                continue
            fresh = FRESH - 1 - len(making.set_to)
            draft.add(fresh, -ANY, max(draft.latest(mine), draft.latest(read)))
            making.set_to[read] = fresh, 0
            if not (draft.at_most(mine, fresh, 0) and draft.at_most(read, fresh, 0)):
                return False
        return True

    def _writes(self, world: World, making: Making, i: int) -> bool:
        """The operation changes the item: it comes after all that relied on how it stood. False where it cannot."""
        item, draft = world.items[i], making.draft
        making.touched[i] = True
        for place in (True, False) if self.clock else (True,):
            for moment in (starts(i, item.stay, place), of_item(i, READ_PLACE if place else READ_TIME)):
                if not self._after(draft, moment, place):
                    return False
            making.set_to[starts(i, item.stay + 1, place)] = (PLACE if place else TIME), 0
        making.drop += [of_item(i, READ_PLACE), of_item(i, READ_TIME)]
        making.past.add((i, item))
        return True

    def _changed(self, world: World, op: Op, making: Making, i: int, bind: bool = False) -> Iterator[Making]:
        """The call does to this item what it can, or is answered so because of how it stands."""
        item = self.item(world, i)
        answer = Answer.OK if op.call is Call.ENQUEUE else op.answer
        found = False
        if i not in world.items:  # gone for good
            if not op.optional and self._may_stay(item, item.record, op, answer):
                yield making
            else:
                self.blocked = i
            return
        changing = making.copy()
        if self._writes(world, changing, i):
            for seen, record in self._seen(changing, i, item):
                for held in self._held(item, op, bind):
                    token = op.token if bind else item.token
                    for effect in self.rules.effects(record, op.call, answer, held, None):
                        for after in self._affected(seen.copy(), op, i, record, effect, token):
                            found = True
                            yield after
        if not bind and not op.optional:
            for stood in self._stays(world, op, i):
                reading = making.copy()
                if self._relies(world, reading, i, stood):
                    for seen, record in self._seen(reading, i, stood):
                        if self._may_stay(stood, record, op, answer):
                            found = True
                            yield seen
        if not found:
            self.blocked = i

    def _held(self, item: Item, op: Op, bind: bool) -> tuple[int | None, ...]:
        """Which of the item's tokens the call may present."""
        if op.call is Call.ENQUEUE:
            return (None,)
        if bind:
            return (OWN,)
        if op.token is None:
            return (OWN, STALE) if has_token(item.record) else (STALE,)
        return (OWN if item.token == op.token else STALE,)

    def _may_stay(self, item: Item, record: Record, op: Op, answer: Answer | None) -> bool:
        return any(self.rules.may_stay(record, op.call, answer, held) for held in self._held(item, op, False))

    def _affected(
        self, making: Making, op: Op, i: int, record: Record, effect: Effect, token: str | None
    ) -> Iterator[Making]:
        """The call takes effect on the item, which stands so and then has this token, if it has one."""
        draft, stay = making.draft, making.items[i].stay
        making.items[i] = Item(effect.record, token if has_token(effect.record) else None, stay + 1)
        if op.call is Call.ENQUEUE and self.fifo:
            for which, moment in ((ENQUEUED_TIME, TIME), (ENQUEUED_PLACE, PLACE)):
                if moment == TIME and not self.clock:
                    continue
                mine = of_item(i, which)
                if not (draft.at_most(mine, moment, 0) and draft.at_most(moment, mine, 0)):
                    return
        was, end = due(i, stay), due(i, stay + 1)
        if effect.timer:
            running = effect.prolongs and timer_of(record) is not None
            if self.clock:
                making.set_to[end] = (was if running else TIME), op.lasts_ms
                if running:
                    draft.take(was)
            else:
                draft.add(FRESH, -ANY, ANY)
                making.set_to[end] = FRESH, 0
                if not draft.at_most(PLACE, FRESH, -1) or (running and not draft.at_most(was, FRESH, 0)):
                    return
        elif timer_of(effect.record) is not None:
            draft.take(was)
            making.set_to[end] = was, 0
        yield making

    def _cancelled(self, world: World, op: Op, making: Making) -> Iterator[Making]:
        makings = [making]
        for i in op.items:
            item, found = self.item(world, i), list[Making]()
            if i not in world.items:  # gone for good
                if op.removed and i in op.removed:
                    return
                continue
            for one in makings:
                if op.removed is None or i in op.removed:
                    changing = one.copy()
                    if self._writes(world, changing, i):
                        for seen, record in self._seen(changing, i, item):
                            for effect in self.rules.effects(record, op.call, Answer.OK, None, None):
                                found += self._affected(seen.copy(), op, i, record, effect, item.token)
                if op.removed is None or i not in op.removed:
                    for stood in self._stays(world, op, i):
                        reading = one.copy()
                        if self._relies(world, reading, i, stood):
                            for seen, record in self._seen(reading, i, stood):
                                if not self.rules.effects(record, op.call, Answer.OK, None, None):
                                    found.append(seen)
            if not found:
                self.blocked = i
                return
            makings = found
        for one in makings:
            if not op.optional or any(one.touched.values()):
                yield one

    # Fetches

    def _fetched(self, world: World, op: Op, making: Making, i: int) -> Iterator[Making]:
        item = self.item(world, i)
        found: list[Making] = []
        if i in world.items and self._writes(world, making, i):
            for seen, record in self._seen(making, i, item):
                for effect in self.rules.effects(record, op.call, op.answer, None, op.attempt):
                    found += self._affected(seen.copy(), op, i, record, effect, op.token or UNSEEN)
        if not found:
            self.blocked = i
            return
        if not self.fifo:
            yield from found
            return
        for other in list(world.items):
            if other == i or self.is_younger(world, other, i):
                continue
            ways = [after for one in found for after in self._behind(world, op, one.copy(), i, other)]
            if not ways:
                self.blocked = other
                return
            found = self._kept(found, ways)
        yield from found

    def is_younger(self, world: World, one: int, other: int) -> bool:
        """Is it certain that the first item was enqueued after the second?"""
        for which in (ENQUEUED_PLACE, ENQUEUED_TIME):
            least = earliest(world.zone, of_item(one, which))
            if latest(world.zone, of_item(other, which)) < least:
                return True
        if world.items[one].record == INITIAL_ITEM:
            began = [op.began for op in self._about(world, one) if op.call is Call.ENQUEUE]
            most = latest(world.zone, of_item(other, ENQUEUED_PLACE))
            return all(most < at * SPACING for at in began)
        return False

    def _behind(self, world: World, op: Op, making: Making, i: int, other: int) -> Iterator[Making]:
        """A fetch may take the item before the other one: because it is older, or the other cannot be fetched."""
        item = self.item(world, other)
        absent = item.record == INITIAL_ITEM
        if self.is_out_of_reach(world, op, other):
            self._leave([making], other)
            yield making
            return
        older = making.copy()
        if self._is_before(older.draft, i, other):
            self.taken_for_younger.add(other)
            yield older
        if absent:  # an item that is enqueued later is the younger one
            return
        for stood in self._stays(world, op, other):
            reading = making.copy()
            if stood.record != INITIAL_ITEM and self._relies(world, reading, other, stood):
                for seen, record in self._seen(reading, other, stood):
                    if not self.rules.comes_first(record):
                        yield seen

    def _is_before(self, draft: Draft, i: int, other: int) -> bool:
        for which, apart in ((ENQUEUED_TIME, 0), (ENQUEUED_PLACE, 1)):
            if (self.clock or apart) and not draft.at_most(of_item(i, which), of_item(other, which), -apart):
                return False
        return True

    def _found_nothing(self, world: World, op: Op, making: Making) -> Iterator[Making]:
        makings = [making]
        for i in list(world.items):
            if self.is_out_of_reach(world, op, i):
                self._leave(makings, i)
                continue
            found = []
            for one in makings:
                for stood in self._stays(world, op, i):
                    reading = one.copy()
                    if self._relies(world, reading, i, stood):
                        for seen, record in self._seen(reading, i, stood):
                            if self.rules.finds_nothing(record):
                                found.append(seen)
            if not found:
                self.blocked = i
                return
            makings = self._kept(makings, found)
        yield from makings

    def _kept(self, before: list[Making], found: list[Making]) -> list[Making]:
        """The ways found, if they are not too many; else some of them, or those before."""
        if self.most_ways is None or len(found) <= self.most_ways or len(found) <= len(before):
            return found
        self.is_cut = True
        return before if self.is_wide else found[: self.most_ways]

    def _leave(self, makings: list[Making], i: int) -> None:
        if i in self._new:
            for making in makings:
                making.touched.setdefault(i, False)

    def is_out_of_reach(self, world: World, op: Op, i: int) -> bool:
        """Can the item be fetched at no moment of the operation, whatever else happens meanwhile?"""
        item, zone = world.items[i], world.zone
        if latest_or(zone, starts(i, item.stay, True)) > op.began * SPACING:
            return False
        if self.clock and latest_or(zone, starts(i, item.stay, False)) > op.from_ms:
            return False
        if is_gone(item.record):
            return True
        if self.rules.comes_first(item.record) or not self.rules.finds_nothing(item.record):
            return False
        if timer_of(item.record) is not None and not (
            self.clock and earliest(world.zone, due(i, item.stay)) > op.until_ms
        ):
            return False
        return all(
            other.number == op.number
            or not self.rules.starts_timer(other.call, other.answer)
            or (self.clock and other.from_ms + other.lasts_ms > op.until_ms)
            for other in self._about(world, i)
        )

    def _made(self, world: World, op: Op, making: Making) -> Way:
        drop = [TIME, PLACE, *making.drop]
        drop += [moment for moment in making.draft.place if moment <= FRESH]
        for i, writes in making.touched.items():
            if writes and timer_of(making.items[i].record) is None:
                drop.append(due(i, making.items[i].stay))
        zone = making.draft.done(making.set_to, drop)
        mine = frozenset({op.number})
        done, used = (world.done, world.used | mine) if op.optional else (world.done | mine, world.used)
        bound = world.bound
        if op.call is not Call.FETCH and op.token is not None and self._item_of(op.token) is None:
            bound |= {(op.token, i) for i in making.touched}
        return Way(World(making.items, done, used, zone, frozenset(making.past), bound), making.touched)
