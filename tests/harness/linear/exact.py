"""Histories of concurrent calls to a store, judged exactly.

What is decided is whether every call can have taken effect at one moment between its beginning and its end, or, where
nobody knows its outcome, at any later one or never, so that all answers are right; see ``linear.decide``. This module
gives the calls to it, and says of one that nothing explains what is wrong.

Items that are settled are forgotten, so memory grows with the items alive and with what happens while the longest
call is open.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator

from attrs import define, evolve, field

from peeklock.harness.linear.budget import MOST_EFFORT, MOST_STEPS, MOST_WORLDS
from peeklock.harness.linear.decide import Decision
from peeklock.harness.linear.findings import Place, Unexplained
from peeklock.harness.linear.history import Begins, Invoke, Joiner, Operation, Return
from peeklock.harness.linear.item_model import StoreAnswer, StoreCall
from peeklock.harness.linear.rules import FREE, OWN, STALE, caller, timer_of
from peeklock.harness.linear.store_history import AT_NO_MOMENT, MOST_SETTLED, MOST_STATES_TOLD, seen_of
from peeklock.harness.linear.worlds import UNSEEN, Item, Op, Undecided
from peeklock.harness.monitor.blame import blame
from peeklock.harness.monitor.engine import engine
from peeklock.harness.monitor.observation import shown
from peeklock.harness.monitor.world import Core, Scope, Sight, Violation
from peeklock.harness.run.store_judge import not_for_strangers
from peeklock.spec.notation.actions import Answer, Call
from peeklock.spec.reading.evaluate import INITIAL_WORKER
from peeklock.spec.reading.narrative import describe_item
from peeklock.spec.reading.timed_store import honest_actions, variant
from peeklock.spec.variants.capabilities import STANDARD, Capabilities


@define
class _Tokens:
    """The tokens that fetches returned, and of which items."""

    items: dict[str, str] = field(factory=dict)
    of: dict[str, list[str]] = field(factory=dict)
    repeated: dict[int, str] = field(factory=dict)
    """The fetches that returned a token that another one returned, and the item that it was of."""
    unseen: bool = False
    """Was there a fetch whose token nobody saw?"""


class ExactHistory:
    """Judges the calls of a store as they are made."""

    def __init__(
        self,
        capabilities: Capabilities = STANDARD,
        clock: bool = True,
        most_steps: int = MOST_STEPS,
        most_worlds: int = MOST_WORLDS,
        most_effort: int = MOST_EFFORT,
        widens: bool = True,
    ) -> None:
        self.capabilities, self.clock = capabilities, clock
        self.calls = 0
        self._decision = Decision(capabilities, clock, most_steps, most_worlds, most_effort, widens)
        self._joiner = Joiner()
        self._numbers: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._count = 0
        self._settled: OrderedDict[int, None] = OrderedDict()
        self._tokens = _Tokens()
        self._ops: dict[int, Op] = {}

    def add(self, event: Invoke | Return) -> None:
        """Take in one event (``StoreCall``, ``StoreAnswer``); ``Violation`` when nothing explains it.

        ``Undecided`` where the search has reached its budget.
        """
        for step in self._joiner.add(event):
            self._take(step.operation, isinstance(step, Begins))

    def end(self) -> None:
        """The calls that are still open are of unknown outcome."""
        for step in self._joiner.end():
            self._take(step.operation, isinstance(step, Begins))

    # One operation begins, or has ended

    def _take(self, operation: Operation, begins: bool) -> None:
        if begins:
            self.calls += 1
            op = self._op(operation)
            if operation.ended is not None:
                self._ops[operation.number] = op
            self._decision.begin(op)
            return
        op = self._ops.pop(operation.number)
        self._look_at_token(operation, op)
        try:
            assert operation.ended is not None
            self._decision.end(op, operation.ended)
        except Unexplained as found:
            raise self._violation(operation, op, found) from None
        except Undecided:
            raise Undecided(seen_of(operation, None).place) from None
        self._forget_settled()

    def _op(self, operation: Operation) -> Op:
        call: StoreCall = operation.what
        told: StoreAnswer | None = operation.result
        answer = None if told is None else told.answer
        names, token, attempt, removed = call.items, call.token, None, None
        if call.call is Call.FETCH:
            names = () if told is None else told.items[:1]
            token = None if told is None else told.token
            if told is not None and self.capabilities.attempt_counts:
                attempt = told.attempt
            self._note_token(operation.number, token, names, answer)
        elif call.call is Call.CANCEL and told is not None and answer is Answer.OK:
            names = (*names, *told.items)
            if told.names_items:
                removed = frozenset(map(self._number, told.items))
        return Op(
            operation.number,
            call.call,
            answer,
            operation.began,
            math.inf if operation.ended is None else operation.ended,
            call.at_ms,
            math.inf if told is None else told.until_ms,
            call.lasts_ms,
            tuple(dict.fromkeys(map(self._number, names))),
            token,
            attempt,
            removed,
            self._decision.rules.is_optional(call.call, answer),
        )

    def _note_token(
        self, number: int, token: str | None, names: tuple[str, ...], answer: Answer | None
    ) -> None:
        tokens = self._tokens
        if token is None:
            tokens.unseen |= answer is not Answer.NOTHING
        elif token in tokens.items:
            tokens.repeated[number] = tokens.items[token]
        else:
            tokens.items[token] = names[0]
            tokens.of.setdefault(names[0], []).append(token)

    def _number(self, name: str) -> int:
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = self._count
            self._names[found] = name
            self._count += 1
        return found

    def _forget_settled(self) -> None:
        for i in self._decision.settled:
            self._settled.setdefault(i)
        while len(self._settled) > MOST_SETTLED:
            i, _ = self._settled.popitem(last=False)
            name = self._names.pop(i)
            del self._numbers[name]
            tokens = self._tokens.of.pop(name, [])
            for token in tokens:
                del self._tokens.items[token]
            self._decision.forget(i, tokens)

    # Where an item stands

    def _between(self, place: Place, from_ms: float, until_ms: float) -> Iterator[Item]:
        """The item at some moment between these times: with its timer run out, if that may be, and without."""
        item = place.item
        if timer_of(item.record) is None:
            yield item
            return
        if not self.clock or place.earliest_ms <= until_ms:
            yield evolve(item, record=self._decision.rules.run_out(item.record))
        if not self.clock or place.latest_ms > from_ms:
            yield item

    # What to say when nothing explains it

    def _look_at_token(self, operation: Operation, op: Op) -> None:
        """A token is given out once, and one that nobody was given is refused."""
        call: StoreCall = operation.what
        owner = self._tokens.repeated.pop(operation.number, None)
        if owner is not None:
            reason = f"this token was given out before, for {shown(owner)}"
            raise Violation(seen_of(operation, operation.result.items[0]), (), (), reason, ("S4",))
        if call.call is not Call.FETCH and call.token is not None and call.token not in self._tokens.items:
            seen = seen_of(operation, None)
            instead = not_for_strangers(seen, self.capabilities, self._tokens.unseen)
            if instead:
                reason = "the token was never issued, or its item was settled long ago"
                raise Violation(seen, (), instead, reason, ("S5", "C4"))

    def _violation(self, operation: Operation, op: Op, found: Unexplained) -> Violation:
        """What is wrong with the operation, by where the item stands that is in its way."""
        mine = op.items[0] if op.items else self._decision.item_of.get(op.token or "")
        wrong = (
            next((i for i in found.in_the_way if i != mine), mine) if mine not in found.in_the_way else mine
        )
        if wrong is None:
            wrong = next(iter(found.in_the_way), None)
        older, reason = None, AT_NO_MOMENT
        item = mine if mine is not None else wrong
        if op.call is Call.FETCH and mine is not None and wrong != mine and wrong is not None:
            older = self._names[wrong]
            reason = f"at every moment of it {older}, which is older, could be handed out"
        places = dict.fromkeys(
            one
            for world in found.worlds
            if wrong is not None
            for one in self._between(self._decision.place(world, wrong), op.from_ms, op.until_ms)
        )
        name = "" if wrong is None else self._names[wrong]
        rows = dict.fromkeys(f"{name}: {describe_item(one.record, _named(one))}" for one in places)
        ways = [self._way(one, op, wrong != mine and mine is not None) for one in places]
        judge = engine(
            variant(self.capabilities),
            Scope(clock=self.clock, answers=False),
            honest_actions(self.capabilities),
        )
        return Violation(
            seen_of(operation, None if item is None else self._names[item]),
            (),
            judge.allowed(ways),
            reason,
            blame(judge).at_stake(ways),
            tuple((row,) for row in tuple(rows)[:MOST_STATES_TOLD]),
            older,
        )

    def _way(self, item: Item, op: Op, is_older: bool) -> tuple[Core, Sight]:
        """The item with a client of its token, and one that makes the call; with a younger item, if that is meant."""
        clients = [caller(OWN)]
        tokens = {(0, 0, OWN)}
        token: int | None = 1 if op.call is Call.FETCH and op.token is not None and not is_older else None
        worker: int | None = 0
        if op.call in (Call.ENQUEUE, Call.CANCEL):
            worker = None
        elif op.call is Call.FETCH:
            clients.append(INITIAL_WORKER)
            worker = 1
        elif op.token is not None and item.token != op.token:
            clients.append(caller(STALE))
            tokens.add((1, 0, STALE))
            worker = token = 1
        else:
            token = 0
        sight = Sight(
            call=op.call,
            event=None,
            counts=None,
            worker=worker,
            item=None if op.answer is Answer.NOTHING else int(is_older),
            token=token,
            answer=Answer.OK if op.call in (Call.ENQUEUE, Call.CANCEL) else op.answer,
            effect=None,
            attempt=None if is_older else op.attempt,
            completions=(),
            names_token=token is not None,
        )
        records = (item.record, FREE) if is_older else (item.record,)
        return Core((tuple(clients), records), frozenset(tokens)), sight


def _named(item: Item) -> Callable[[int], str]:
    return lambda k: f"token {k}" if item.token in (None, UNSEEN) else str(item.token)
