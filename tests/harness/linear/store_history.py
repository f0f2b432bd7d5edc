"""Histories of concurrent calls to a store, judged item by item by the store's contract, at any length.

Every operation concerns the item of its token; a fetch the item that it returned, a cancel each of its items. A fetch
that found nothing is put to every item that was alive when it began: each must not have been fetchable at some moment
of the fetch. That is weaker than one moment for all of them, so what is allowed is never called a violation. A fetch
that failed, or of which nobody knows, may have taken any item alive. In a store that keeps an order, a fetch is put as
well to every item that is surely older than the one that it returned: none of them may have come first.

Items that are settled are forgotten, so memory grows with the items alive and with what happens while the longest
call is open.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping

from attrs import define, evolve, field, frozen

from peeklock.harness.linear.history import Begins, Invoke, Joiner, Operation, Outcome, Return
from peeklock.harness.linear.item_model import (
    NEVER_MS,
    YOUNGER,
    About,
    ItemModel,
    ItemWorld,
    StoreAnswer,
    StoreCall,
    is_gone,
)
from peeklock.harness.linear.linearize import NotLinearizable, Search
from peeklock.harness.monitor.blame import blame
from peeklock.harness.monitor.observation import Observation, shown
from peeklock.harness.monitor.world import Core, Sight, Violation
from peeklock.harness.run.store_judge import not_for_strangers
from peeklock.spec.law.state import completions
from peeklock.spec.notation.actions import Answer, Call
from peeklock.spec.reading.evaluate import PLACE
from peeklock.spec.reading.narrative import describe_item
from peeklock.spec.variants.capabilities import STANDARD, Capabilities, Order

MOST_SETTLED = 1_000
"""Settled items that are kept: a token of one that is older is judged as one that was never issued."""
MOST_STATES_TOLD = 3
AT_NO_MOMENT = "not allowed at any moment of the call"
"""The reason why an answer is wrong that no order of the calls explains."""


@define
class Life:
    """What is known of one item."""

    search: Search[ItemWorld]
    tokens: dict[str, int] = field(factory=dict)
    """Its tokens, numbered in the order in which the fetches began that returned them."""
    begun: int | None = None
    """When its first enqueue began, in beginnings and ends of calls."""
    enqueued: int | None = None
    """When an enqueue of it had certainly happened."""


@frozen
class Part:
    """What an operation is to one item."""

    item: str
    life: Life
    operation: Operation
    """The same operation; ``what`` is an ``About``, and its result is part of that."""


Listener = Callable[[bool, Operation, Part], None]
"""Is told each part of an operation: whether it begins there, or has ended; the operation; the part."""


class StoreHistory:
    """Judges the calls of a store as they are made."""

    def __init__(
        self,
        capabilities: Capabilities = STANDARD,
        clock: bool = True,
        listener: Listener = lambda begins, operation, part: None,
    ) -> None:
        self.capabilities = capabilities
        self.model = ItemModel(capabilities, clock)
        self.calls = 0
        self._listener = listener
        self._joiner = Joiner()
        self._alive: dict[str, Life] = {}
        self._settled: OrderedDict[str, Life] = OrderedDict()
        self._of_token: dict[str, str] = {}
        self._parts: dict[int, tuple[Part, ...]] = {}
        self._steps = 0
        self._tokens_unseen = False
        """Was there a fetch whose token nobody saw?"""

    def add(self, event: Invoke | Return) -> None:
        """Take in one event (``StoreCall``, ``StoreAnswer``); ``Violation`` when nothing explains it."""
        for step in self._joiner.add(event):
            self._take(step.operation, isinstance(step, Begins))

    def end(self) -> None:
        """The calls that are still open are of unknown outcome."""
        for step in self._joiner.end():
            self._take(step.operation, isinstance(step, Begins))

    def remembered(self) -> int:
        """Of how many items anything is known."""
        return len(self._alive) + len(self._settled)

    def alive(self) -> tuple[str, ...]:
        """The items that may have a row."""
        return tuple(self._alive)

    def completions_of(self, item: str) -> frozenset[int]:
        """How many completions the item can have, when no call is open; none for one that is unknown or forgotten."""
        life = self._known(item)
        if life is None:
            return frozenset({0})
        return frozenset(c.state.core.state[1][0][PLACE[completions]] for c in life.search.configurations)

    def _known(self, item: str) -> Life | None:
        return self._alive.get(item) or self._settled.get(item)

    # One operation begins, or has ended

    def _take(self, operation: Operation, begins: bool) -> None:
        self._steps += 1
        if begins:
            self._begin(operation)
            return
        self._look_at_token(operation)
        if operation.what.call is Call.ENQUEUE and operation.result.answer is Answer.OK:
            life = self._life(operation.what.items[0])
            life.enqueued = life.enqueued or self._steps
        for part in self._parts.pop(operation.number):
            try:
                part.life.search.complete(part.operation)
            except NotLinearizable as found:
                raise self._violation(operation, part, found) from None
            finally:
                self._listener(False, operation, part)
            self._look_again(part)

    def _begin(self, operation: Operation) -> None:
        self.calls += 1
        parts = []
        for items, about in self._concerned(operation):
            part_of_it = Operation(operation.number, about, operation.outcome)
            for item in items:
                part = Part(item, self._life(item), part_of_it)
                part.life.search.invoke(part_of_it)
                self._listener(True, operation, part)
                parts.append(part)
        if operation.outcome is not Outcome.INFO:
            self._parts[operation.number] = tuple(parts)

    def _life(self, item: str) -> Life:
        life = self._known(item)
        if life is None:
            life = self._alive[item] = Life(Search(self.model))
        return life

    def _look_again(self, part: Part) -> None:
        if part.item not in self._alive or not all(is_gone(c.state) for c in part.life.search.configurations):
            return
        self._settled[part.item] = self._alive.pop(part.item)
        while len(self._settled) > MOST_SETTLED:
            _, life = self._settled.popitem(last=False)
            for token in life.tokens:
                del self._of_token[token]

    # What an operation is to which item

    def _concerned(self, operation: Operation) -> Iterator[tuple[Iterable[str], About]]:
        call: StoreCall = operation.what
        told: StoreAnswer | None = operation.result
        answer = None if told is None else told.answer
        if call.call is Call.FETCH:
            yield from self._fetched(call, told, answer)
        elif call.call is Call.CANCEL:
            for item in dict.fromkeys((*call.items, *(() if told is None else told.items))):
                had_row = None
                if told is not None and answer is Answer.OK and told.names_items:
                    had_row = item in told.items
                about = self._about(call, told, None, Answer.OK)
                yield (item,), evolve(about, had_row=had_row, optional=answer is not Answer.OK)
        elif call.call is Call.ENQUEUE:
            life = self._life(call.items[0])
            life.begun = life.begun or self._steps
            about = self._about(call, told, None, Answer.OK)
            yield call.items, evolve(about, optional=answer is not Answer.OK)
        elif call.token in self._of_token:
            item = self._of_token[call.token]
            yield (item,), self._about(call, told, self._life(item).tokens[call.token], answer)
        elif call.token is None:
            yield call.items, self._about(call, told, None, answer)

    def _fetched(
        self, call: StoreCall, told: StoreAnswer | None, answer: Answer | None
    ) -> Iterator[tuple[Iterable[str], About]]:
        if told is not None and told.items:
            item, token = told.items[0], told.token
            number = None
            if token is None:
                self._tokens_unseen = True
            elif self._of_token.setdefault(token, item) == item:
                tokens = self._life(item).tokens
                number = tokens.setdefault(token, len(tokens))
            about = self._about(call, told, number, answer)
            yield (item,), about
            beside = evolve(about.sight, item=YOUNGER, token=None, attempt=None, names_token=False)
            yield tuple(self._older_than(item)), evolve(about, sight=beside)
            return
        lost = answer is not Answer.NOTHING
        self._tokens_unseen |= lost
        yield tuple(self._alive), evolve(self._about(call, told, None, answer), optional=lost)

    def _older_than(self, item: str) -> Iterator[str]:
        """The items alive that have been in the queue for longer than this one, if they are there at all."""
        begun = self._life(item).begun
        if self.capabilities.order is not Order.FIFO or begun is None:
            return
        for other, life in self._alive.items():
            if other == item:  # they are in the order in which they were first heard of
                return
            if life.enqueued is not None and life.enqueued < begun:
                yield other

    def _about(
        self, call: StoreCall, told: StoreAnswer | None, token: int | None, answer: Answer | None
    ) -> About:
        counted = self.capabilities.attempt_counts and told is not None
        sight = Sight(
            call=call.call,
            event=None,
            counts=None,
            worker=None,
            item=None if answer is Answer.NOTHING else 0,
            token=token,
            answer=answer,
            effect=None,
            attempt=told.attempt if counted and told is not None else None,
            completions=(),
            names_token=token is not None,
        )
        return About(
            self.model.same(sight), call.at_ms, NEVER_MS if told is None else told.until_ms, call.lasts_ms
        )

    # What to say when nothing explains it

    def _look_at_token(self, operation: Operation) -> None:
        """A token is given out once, and one that nobody was given is refused."""
        call, told = operation.what, operation.result
        if call.call is Call.FETCH:
            owner = None if told.token is None else self._of_token.get(told.token)
            if owner is not None and owner != told.items[0]:
                reason = f"this token was given out before, for {shown(owner)}"
                raise Violation(seen_of(operation, told.items[0]), (), (), reason, ("S4",))
        elif call.token is not None and call.token not in self._of_token:
            seen = seen_of(operation, None)
            instead = not_for_strangers(seen, self.capabilities, self._tokens_unseen)
            if instead:
                reason = "the token was never issued, or its item was settled long ago"
                raise Violation(seen, (), instead, reason, ("S5", "C4"))

    def _violation(self, operation: Operation, part: Part, found: NotLinearizable) -> Violation:
        about: About = part.operation.what
        worlds: list[ItemWorld] = [
            w
            for c in found.before
            for w in self.model.ticked(c.state, about.from_ms, about.until_ms)  # type: ignore[arg-type]
        ]
        names = {number: text for text, number in part.life.tokens.items()}
        rows = dict.fromkeys(
            f"{part.item}: {describe_item(w.core.state[1][0], _named(w, names))}" for w in worlds
        )
        ways = [self._way(w, about.sight) for w in worlds]
        item, older, reason = part.item, None, AT_NO_MOMENT
        if about.sight.item == YOUNGER:
            item, older = operation.result.items[0], part.item
            reason = f"at every moment of it {part.item}, which is older, could be handed out"
        return Violation(
            seen_of(operation, item),
            (),
            self.model.engine.allowed(ways),
            reason,
            blame(self.model.engine).at_stake(ways),
            tuple((told_row,) for told_row in tuple(rows)[:MOST_STATES_TOLD]),
            older,
        )

    def _way(self, world: ItemWorld, sight: Sight) -> tuple[Core, Sight]:
        """The world with one client more, and the client whose token it is, or that one."""
        holder = self.model.holder(world.core, sight)
        client = len(world.core.state[0]) if holder is None else holder
        return self.model.with_free(world.core, sight), evolve(sight, worker=client)


def _named(world: ItemWorld, names: Mapping[int, str]) -> Callable[[int], str]:
    of = {k: names[number] for number, _, k in world.core.tokens}
    return lambda k: of.get(k, f"token {k}")


def seen_of(operation: Operation, item: str | None) -> Observation:
    """A call with its answer, as one thing that was seen of this item."""
    call: StoreCall = operation.what
    told: StoreAnswer | None = operation.result
    ended = told or StoreAnswer(Answer.OK, NEVER_MS)
    return Observation(
        call=call.call,
        worker=call.caller or None,
        item=item,
        token=call.token or ended.token,
        answer=None if told is None else told.answer,
        attempt=ended.attempt,
        at_ms=call.at_ms,
        until_ms=ended.until_ms,
        lasts_ms=call.lasts_ms,
        place=ended.place or f"call {operation.number + 1}",
    )


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
