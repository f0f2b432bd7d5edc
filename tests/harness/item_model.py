"""Histories of concurrent calls to a store, judged item by item by the store's contract.

Every operation concerns the item of its token; a fetch the item that it returned, a cancel each of its items. A fetch
that found nothing is put to every item that was alive when it began: each must not have been fetchable at some moment
of the fetch. That is weaker than one moment for all of them, so what is allowed is never called a violation. A fetch
that failed, or of which nobody knows, may have taken any item alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from attrs import evolve, frozen

from peeklock.harness.engine import Engine, engine
from peeklock.harness.history import Begins, Invoke, Joiner, Operation, Outcome, Return
from peeklock.harness.linearize import NotLinearizable, Search
from peeklock.harness.observation import Observation
from peeklock.harness.world import Core, Scope, Sight, Violation, with_room, without
from peeklock.spec.actions import Answer, Call, Timer
from peeklock.spec.capabilities import OF_A_STORE, STANDARD, Capabilities, honest, store_alone
from peeklock.spec.evaluate import INITIAL_ITEM, INITIAL_WORKER, PLACE
from peeklock.spec.faults import FAULTS
from peeklock.spec.narrative import describe_item
from peeklock.spec.policy import RETRY
from peeklock.spec.protocol import PROMISES, Variant
from peeklock.spec.state import Row, completions, row

SCOPE = Scope(clock=True, answers=False)
NEVER_MS = 2**62
"""The end of an operation that never ended, in milliseconds."""
MOST_STATES_TOLD = 3
MOST_REMEMBERED = 20_000
"""Steps kept, so that memory does not grow with the length of a history."""
_ROWS, _ROW = list(Row), PLACE[row]
_GONE = frozenset({_ROWS.index(Row.ACKED), _ROWS.index(Row.CANCELLED)})
_NO_ROW = _GONE | {_ROWS.index(Row.ABSENT)}


@frozen(cache_hash=True)
class StoreCall:
    """A call that is made. Times are integer milliseconds."""

    call: Call
    at_ms: int
    """It takes effect not before this."""
    items: tuple[str, ...] = ()
    """What is enqueued or cancelled."""
    token: str | None = None
    lasts_ms: int = 0
    caller: str = ""

    def __str__(self) -> str:
        about = ", ".join(self.items) or self.token or ""
        return f"{self.caller}: {self.call.value} {about}".strip()


@frozen(cache_hash=True)
class StoreAnswer:
    """How a call ended."""

    answer: Answer
    until_ms: int
    """It took effect not after this."""
    items: tuple[str, ...] = ()
    """What a fetch returned, or a cancel removed."""
    token: str | None = None
    """The token that a fetch returned."""
    attempt: int | None = None

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


VARIANT = Variant(RETRY, frozenset(f.name for f in FAULTS))
"""Every fault class on; a store may fail, but see ``honest``."""


class ItemModel:
    """One item of the contract, with clients that do anything: a model for ``linearize.Search``.

    Each token has a client of its own, in the order in which the tokens were issued.
    """

    def __init__(self, capabilities: Capabilities = STANDARD) -> None:
        self.engine: Engine = engine(VARIANT, SCOPE, honest(store_alone(capabilities)))
        self.initial = ItemWorld(with_room(Core(), (), (INITIAL_ITEM,)))
        self._steps: dict[tuple[ItemWorld, About], tuple[ItemWorld, ...]] = {}

    def step(self, state: ItemWorld, operation: Operation) -> Iterable[ItemWorld]:
        """The worlds that can follow when the operation happens here, somewhere in its time."""
        about: About = operation.what
        known = self._steps.get((state, about))
        if known is not None:
            return known
        found: dict[ItemWorld, None] = {}
        for here in self.ticked(state, about.from_ms, about.until_ms):
            if about.optional:
                found[here] = None
            found.update(dict.fromkeys(self._followed(here, about)))
        if len(self._steps) > MOST_REMEMBERED:
            self._steps.clear()
        self._steps[state, about] = tuple(found)
        return self._steps[state, about]

    def spent(self, state: ItemWorld, operation: Operation) -> bool:
        """Whether the item is gone: then nothing changes it any more."""
        _ = operation
        return state.core.state[1][0][_ROW] in _GONE

    def _followed(self, here: ItemWorld, about: About) -> Iterator[ItemWorld]:
        core, sight = here.core, about.sight
        if sight.call is Call.CANCEL and about.had_row is not True and core.state[1][0][_ROW] in _NO_ROW:
            yield here
            return
        if about.had_row is False:
            return
        fetches = sight.call is Call.FETCH
        clients = len(core.state[0])
        if fetches:
            core, client = with_room(core, (INITIAL_WORKER,), ()), clients
        else:
            owners = [k for number, _, k in core.tokens if number == sight.token]
            client = owners[0] - 1 if owners else 0
            if sight.names_token and not owners:
                return
        worker = client if fetches or sight.names_token else None
        for follows in self.engine.follow(core, evolve(sight, worker=worker)):
            # A free client breaks the promises of workers at its will; those are not the question here.
            after = evolve(follows.core, broken=frozenset())
            if fetches and after.state[0][clients] == INITIAL_WORKER:
                after = without(after, clients)
            if follows.timer is None:
                yield self._settled(evolve(here, core=after))
                continue
            from_ms, until_ms = about.from_ms, about.until_ms
            if follows.prolongs and here.timer is not None:
                from_ms, until_ms = here.earliest_ms, here.latest_ms
            started = ItemWorld(after, follows.timer, from_ms + about.lasts_ms, until_ms + about.lasts_ms)
            yield from self.ticked(started, about.from_ms, about.until_ms)

    def ticked(self, world: ItemWorld, from_ms: int, until_ms: int) -> Iterator[ItemWorld]:
        """The world between these times: with its timer run out, if it is due; with both, if it may be."""
        if world.timer is None or world.earliest_ms > until_ms:
            yield world
            return
        yield ItemWorld(self.engine.run_out(world.core, world.timer, 0))
        if world.latest_ms > from_ms:
            yield world

    def _settled(self, world: ItemWorld) -> ItemWorld:
        gone = world.core.state[1][0][_ROW] in _GONE
        return ItemWorld(world.core) if gone else world


class StoreHistory:
    """Judges the calls of a store as they are made, at any length: memory grows with the items."""

    def __init__(self, capabilities: Capabilities = STANDARD) -> None:
        self.capabilities = capabilities
        self.model = ItemModel(capabilities)
        self.calls = 0
        self._joiner = Joiner()
        self._searches: dict[str, Search[ItemWorld]] = {}
        self._alive: dict[str, None] = {}
        self._token_items: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._asked: dict[int, tuple[tuple[str, Operation], ...]] = {}

    def add(self, event: Invoke | Return) -> None:
        """Take in one event (``StoreCall``, ``StoreAnswer``); ``Violation`` when nothing explains it."""
        for step in self._joiner.add(event):
            self._take(step.operation, isinstance(step, Begins))

    def end(self) -> None:
        """The calls that are still open are of unknown outcome."""
        for step in self._joiner.end():
            self._take(step.operation, isinstance(step, Begins))

    def alive(self) -> tuple[str, ...]:
        """The items that may have a row."""
        return tuple(self._alive)

    def completions_of(self, item: str) -> frozenset[int]:
        """How many completions the item can have, when no call is open."""
        search = self._searches.get(item)
        if search is None:
            return frozenset({0})
        return frozenset(c.state.core.state[1][0][PLACE[completions]] for c in search.configurations)

    def _take(self, operation: Operation, begins: bool) -> None:
        if begins:
            self.calls += 1
            asked = tuple(
                (
                    item,
                    evolve(
                        operation,
                        what=about,
                        outcome=Outcome.INFO if self._may_never(operation) else Outcome.OK,
                    ),
                )
                for item, about in self._concerned(operation)
            )
            for item, part in asked:
                if item not in self._searches:
                    self._searches[item] = Search(self.model)
                    self._alive[item] = None
                self._searches[item].invoke(part)
            if not self._may_never(operation):
                self._asked[operation.number] = asked
            return
        for item, part in self._asked.pop(operation.number):
            search = self._searches[item]
            try:
                search.complete(part)
            except NotLinearizable as found:
                raise self._violation(operation, item, part, found) from None
            if all(c.state.core.state[1][0][_ROW] in _GONE for c in search.configurations):
                self._alive.pop(item, None)

    @staticmethod
    def _may_never(operation: Operation) -> bool:
        return operation.outcome is Outcome.INFO

    # What an operation is to which item

    def _concerned(self, operation: Operation) -> Iterator[tuple[str, About]]:
        call: StoreCall = operation.what
        told: StoreAnswer | None = operation.result
        answer = None if told is None else told.answer
        if call.call is Call.FETCH:
            if told is not None and told.token is not None:
                self._numbers.setdefault(told.token, len(self._numbers))
                self._token_items.setdefault(told.token, told.items[0])
                yield told.items[0], self._about(call, told, told.token, answer)
                return
            lost = answer is not Answer.NOTHING
            for item in tuple(self._alive):
                yield item, evolve(self._about(call, told, None, answer), optional=lost)
        elif call.token is not None:
            if call.token in self._token_items:
                yield self._token_items[call.token], self._about(call, told, call.token, answer)
        elif call.call is Call.CANCEL:
            for item in dict.fromkeys(call.items):
                had_row = None if told is None or answer is not Answer.OK else item in told.items
                about = self._about(call, told, None, Answer.OK)
                yield item, evolve(about, had_row=had_row, optional=answer is not Answer.OK)
        else:
            about = self._about(call, told, None, Answer.OK)
            yield call.items[0], evolve(about, optional=answer is not Answer.OK)

    def _about(
        self, call: StoreCall, told: StoreAnswer | None, token: str | None, answer: Answer | None
    ) -> About:
        counted = self.capabilities.attempt_counts and told is not None
        sight = Sight(
            call=call.call,
            event=None,
            counts=None,
            worker=None,
            item=None if answer is Answer.NOTHING else 0,
            token=None if token is None else self._numbers[token],
            answer=answer,
            effect=None,
            attempt=told.attempt if counted and told is not None else None,
            completions=(),
            names_token=token is not None,
        )
        return About(sight, call.at_ms, NEVER_MS if told is None else told.until_ms, call.lasts_ms)

    # What to say when nothing explains it

    def _violation(
        self, operation: Operation, item: str, part: Operation, found: NotLinearizable
    ) -> Violation:
        call, told, about = operation.what, operation.result, part.what
        seen = Observation(
            call=call.call,
            worker=call.caller or None,
            item=item,
            token=call.token or told.token,
            answer=told.answer,
            attempt=told.attempt,
            at_ms=call.at_ms,
            until_ms=told.until_ms,
            lasts_ms=call.lasts_ms,
            place=f"call {operation.number + 1}",
        )
        worlds: list[ItemWorld] = [
            w
            for c in found.before
            for w in self.model.ticked(c.state, about.from_ms, about.until_ms)  # type: ignore[arg-type]
        ]
        rows = dict.fromkeys(f"{item}: {describe_item(w.core.state[1][0], self._named(w))}" for w in worlds)
        beside = "; ".join(str(o.what.sight.call.value) for o in found.others)
        reason = f"no moment between its beginning and its end explains it for {item}"
        reason += f"; open beside it: {beside}" if beside else ""
        return Violation(
            seen,
            (),
            tuple(self._allowed(worlds)),
            reason,
            self._promises(worlds, about.sight),
            tuple((told_row,) for told_row in tuple(rows)[:MOST_STATES_TOLD]),
        )

    def _named(self, world: ItemWorld) -> Callable[[int], str]:
        texts = {number: text for text, number in self._numbers.items()}
        of = {k: texts[number] for number, _, k in world.core.tokens}
        return lambda k: of.get(k, f"token {k}")

    def _allowed(self, worlds: Iterable[ItemWorld]) -> Iterator[str]:
        told: dict[str, None] = {}
        for world in worlds:
            core = with_room(world.core, (INITIAL_WORKER,), ())
            for stepper in self.model.engine.steppers:
                label = stepper.action.label
                if label.event is None and any(True for _ in stepper.choices(core.state)):
                    told[str(label).removesuffix(", although it took effect")] = None
        yield from told

    def _promises(self, worlds: Iterable[ItemWorld], sight: Sight) -> tuple[str, ...]:
        """What it would break in every state that it met, had it happened all the same."""
        sets = []
        for world in worlds:
            owners = [k - 1 for number, _, k in world.core.tokens if number == sight.token]
            client = owners[0] if owners else len(world.core.state[0])
            core = with_room(world.core, (INITIAL_WORKER,), ())
            sets.append(self.model.engine.breaks(core, evolve(sight, worker=client)))
        named = frozenset.intersection(*sets) if sets else frozenset()
        named = (named or frozenset().union(*sets)) & OF_A_STORE
        return tuple(p.id for p in PROMISES if p.id in named)


def judge_history(
    history: Iterable[Invoke | Return], capabilities: Capabilities = STANDARD
) -> Violation | None:
    """Hold a history of concurrent calls against the contract: None, or the first call that nothing explains."""
    judge = StoreHistory(capabilities)
    try:
        for event in history:
            judge.add(event)
        judge.end()
    except Violation as violation:
        return violation
    return None
