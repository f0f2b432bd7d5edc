"""One item of a store's contract, with clients that do anything, as a model of which histories can be judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve, frozen

from peeklock.harness.linear.history import Operation
from peeklock.harness.monitor.engine import Engine, engine
from peeklock.harness.monitor.world import Core, Follows, Scope, Sight, with_room, without
from peeklock.spec.law.state import Row, row, token
from peeklock.spec.notation.actions import Answer, Call, Timer
from peeklock.spec.reading.evaluate import INITIAL_ITEM, INITIAL_WORKER, PLACE
from peeklock.spec.reading.timed_store import honest_actions, variant
from peeklock.spec.variants.capabilities import STANDARD, Capabilities

NEVER_MS = 2**62
"""The end of an operation that never ended, in milliseconds."""
MOST_REMEMBERED = 20_000
"""What is kept of what was worked out, so that memory does not grow with the length of a history."""
_ROWS, _ROW, _TOKEN = list(Row), PLACE[row], PLACE[token]
_GONE = frozenset({_ROWS.index(Row.ACKED), _ROWS.index(Row.CANCELLED)})
YOUNGER = 1
"""What is seen of this item is of one that was enqueued later and could be handed out."""
_FREE_ITEM = (*INITIAL_ITEM[:_ROW], _ROWS.index(Row.READY), *INITIAL_ITEM[_ROW + 1 :])
_NO_ROW = _GONE | {_ROWS.index(Row.ABSENT)}


@frozen(cache_hash=True)
class StoreCall:
    """A call that is made. Times are integer milliseconds."""

    call: Call
    at_ms: int
    """It takes effect not before this."""
    items: tuple[str, ...] = ()
    """What is enqueued or cancelled; of another call whose token was not seen, what it is about."""
    token: str | None = None
    lasts_ms: int = 0
    caller: str = ""
    place: str = ""
    """Where its beginning was seen."""

    def __str__(self) -> str:
        about = ", ".join(self.items) or self.token or ""
        return f"{self.caller}: {self.call.value} {about}".strip()


@frozen(cache_hash=True)
class StoreAnswer:
    """How a call ended."""

    answer: Answer
    until_ms: int = NEVER_MS
    """It took effect not after this."""
    items: tuple[str, ...] = ()
    """What a fetch returned, or a cancel removed."""
    token: str | None = None
    """The token that a fetch returned."""
    attempt: int | None = None
    names_items: bool = True
    """Of a cancel that was accepted: whether it is known what had a row."""
    place: str = ""
    """Where its end was seen."""

    def __str__(self) -> str:
        return " ".join((self.answer.value, *self.items, *([self.token] if self.token else [])))


@frozen(cache_hash=True)
class ItemWorld:
    """A world of one item, and when its timer runs out: not before ``earliest_ms``, not after ``latest_ms``."""

    core: Core
    timer: Timer | None = None
    earliest_ms: int = 0
    latest_ms: int = 0


@frozen(cache_hash=True)
class About:
    """What an operation is to one item."""

    sight: Sight
    from_ms: int
    until_ms: int
    lasts_ms: int
    had_row: bool | None = None
    """Of a cancel: whether the item was among those removed; None where nobody knows."""
    optional: bool = False
    """It may not have happened to this item."""


class ItemModel:
    """One item of the contract, with clients that do anything: a model for ``linearize.Search``.

    Each token has a client of its own, unless nobody saw it. Without a clock, timers may run
    out at any moment.
    """

    def __init__(self, capabilities: Capabilities = STANDARD, clock: bool = True) -> None:
        scope = Scope(clock=clock, answers=False)
        self.engine: Engine = engine(variant(capabilities), scope, honest_actions(capabilities))
        self.initial = ItemWorld(with_room(Core(), (), (INITIAL_ITEM,)))
        self._effects = {
            (label.call, label.answer)
            for label in (s.action.label for s in self.engine.steppers)
            if label.takes_effect
        }
        self._sights: dict[Sight, Sight] = {}
        self._outcomes: dict[tuple[Core, Sight], tuple[Follows, ...]] = {}

    def step(self, state: ItemWorld, operation: Operation) -> Iterable[ItemWorld]:
        """The worlds that can follow when the operation happens here, somewhere in its time."""
        about: About = operation.what
        found: dict[ItemWorld, None] = {}
        for here in self.ticked(state, about.from_ms, about.until_ms):
            if about.optional:
                found[here] = None
            found.update(dict.fromkeys(self._followed(here, about)))
        return found

    def spent(self, state: ItemWorld, operation: Operation) -> bool:
        """Whether the item is gone: then nothing changes it any more."""
        _ = operation
        return is_gone(state)

    def reads(self, operation: Operation) -> bool:
        """Whether no such answer to such a call comes with an effect."""
        about: About = operation.what
        if about.sight.item == YOUNGER:
            return True
        answered = about.sight.call, about.sight.answer
        return about.sight.answer is not None and not about.optional and answered not in self._effects

    def _followed(self, here: ItemWorld, about: About) -> Iterator[ItemWorld]:
        if about.sight.call is Call.CANCEL:
            if about.had_row is not True and here.core.state[1][0][_ROW] in _NO_ROW:
                yield here
                return
            if about.had_row is False:
                return
        for follows in self._follow(here.core, about.sight):
            if follows.timer is None:
                yield self._settled(ItemWorld(follows.core, here.timer, here.earliest_ms, here.latest_ms))
                continue
            if about.lasts_ms == 0 and not follows.prolongs:  # it is over at the moment at which it begins
                yield ItemWorld(self.engine.run_out(follows.core, follows.timer, 0))
                continue
            from_ms, until_ms = about.from_ms, about.until_ms
            if follows.prolongs and here.timer is not None:
                from_ms, until_ms = here.earliest_ms, here.latest_ms
            started = ItemWorld(
                follows.core, follows.timer, from_ms + about.lasts_ms, until_ms + about.lasts_ms
            )
            yield from self.ticked(started, about.from_ms, about.until_ms)

    def _follow(self, core: Core, sight: Sight) -> tuple[Follows, ...]:
        """What can follow, whatever the time: worked out once, since items live much the same lives."""
        known = self._outcomes.get((core, sight))
        if known is None:
            if len(self._outcomes) > MOST_REMEMBERED:
                self._outcomes.clear()
            known = self._outcomes[core, sight] = tuple(self._worked_out(core, sight))
        return known

    def same(self, sight: Sight) -> Sight:
        """The sight that is equal to this one: what is compared often is then compared at once."""
        if len(self._sights) > MOST_REMEMBERED:
            self._sights.clear()
        return self._sights.setdefault(sight, sight)

    def _worked_out(self, core: Core, sight: Sight) -> Iterator[Follows]:
        if sight.item == YOUNGER:
            if self.engine.follow(self.with_free(core, sight), sight):
                yield Follows(core)
            return
        fetches = sight.call is Call.FETCH
        clients = len(core.state[0])
        if fetches:
            core, client = self.with_free(core, sight), clients
        else:
            holder = self.holder(core, sight)
            if sight.names_token and holder is None:
                return
            client = holder or 0
        worker = client if fetches or sight.names_token else None
        for follows in self.engine.follow(core, evolve(sight, worker=worker)):
            # A free client breaks the promises of workers at its will; those are not the question here.
            after = evolve(follows.core, broken=frozenset())
            if fetches and after.state[0][clients] == INITIAL_WORKER:
                after = without(after, clients)
            yield evolve(follows, core=after)

    @staticmethod
    def holder(core: Core, sight: Sight) -> int | None:
        """The client that has the token that was seen; None where nobody does."""
        held = [k for number, _, k in core.tokens if number == sight.token]
        return next((w for w, client in enumerate(core.state[0]) if client[_TOKEN] in held), None)

    @staticmethod
    def with_free(core: Core, sight: Sight) -> Core:
        """The world with a client that is free; and with a younger item that is, where the sight is of one."""
        return with_room(core, (INITIAL_WORKER,), (_FREE_ITEM,) if sight.item == YOUNGER else ())

    def ticked(self, world: ItemWorld, from_ms: int, until_ms: int) -> Iterator[ItemWorld]:
        """The world between these times: with its timer run out, if it is due; with both, if it may be."""
        if world.timer is None or world.earliest_ms > until_ms:
            yield world
            return
        yield ItemWorld(self.engine.run_out(world.core, world.timer, 0))
        if world.latest_ms > from_ms:
            yield world

    def _settled(self, world: ItemWorld) -> ItemWorld:
        return ItemWorld(world.core) if is_gone(world) else world


def is_gone(world: ItemWorld) -> bool:
    """Is the item acked or cancelled, which it stays for ever?"""
    return world.core.state[1][0][_ROW] in _GONE
