"""Short histories of concurrent calls, made up by chance: what a store did, or the same with one thing changed.

A store of the specification is run. Clients call it, each one call after the other; a call takes effect some time
after it began, and its answer comes some time later, too late, or never. A fetch may wait for an item.
"""

from __future__ import annotations

import random

from attrs import define, evolve, field, frozen

from peeklock.harness.linear.history import Invoke, Outcome, Return
from peeklock.harness.linear.item_model import NEVER_MS, StoreAnswer, StoreCall
from peeklock.harness.run.steps import NEVER_ISSUED
from peeklock.spec.notation.actions import ABANDONS, ACKS, Answer, Call
from peeklock.spec.reading.timed_store import Fault, Moment, Step, TokenName, nothing, timed_store, with_room
from peeklock.spec.reading.timed_store import Outcome as Out
from peeklock.spec.variants.capabilities import (
    STANDARD,
    Capabilities,
    CompletionWrite,
    Expired,
    Order,
    Renewal,
    UnknownToken,
)

MOST_CALLS, MOST_CLIENTS, MOST_ITEMS = 12, 4, 3
LENGTHS_MS = (0, 1, 2, 3, 5, 9)
UNTIMED_MS = 1_000
KINDS: tuple[Capabilities, ...] = (
    STANDARD,
    STANDARD,
    Capabilities(order=Order.NONE),
    Capabilities(renewal=Renewal.EXTENDS),
    Capabilities(completion=CompletionWrite.SEPARATE),
    Capabilities(completion=CompletionWrite.NONE, order=Order.NONE),
    Capabilities(ack_after_expiry=Expired.ACCEPTED),
    Capabilities(abandon_after_expiry=Expired.REFUSED),
    Capabilities(abandon_unknown_token=UnknownToken.SILENT),
    Capabilities(error_classes=False),
    Capabilities(attempt_counts=False),
    Capabilities(renew=False, cancel=False, abandon_delay=False, enqueue_delay=False),
    Capabilities(abandon=False, abandon_ignoring_attempt=False, order=Order.NONE, attempt_counts=False),
    Capabilities(
        renewal=Renewal.EXTENDS,
        ack_after_expiry=Expired.ACCEPTED,
        error_classes=False,
        completion=CompletionWrite.SEPARATE,
        order=Order.NONE,
    ),
)


@frozen
class History:
    """A history, and what store it is of."""

    capabilities: Capabilities
    clock: bool
    events: tuple[Invoke | Return, ...]
    is_changed: bool
    """Was something changed? Else a store did so."""


@define
class _Running:
    call: StoreCall
    waits: bool = False
    ended: bool = False
    """Its client has gone on; it may take effect all the same."""
    out: Out | None = None
    answer: StoreAnswer | None = None


@define
class _Run:
    chance: random.Random
    capabilities: Capabilities
    clock: bool
    moment: Moment = field(factory=lambda: nothing(0))
    now_ms: int = 0
    names: list[str] = field(factory=list)
    tokens: dict[str, TokenName] = field(factory=dict)
    events: list[Invoke | Return] = field(factory=list)
    open: dict[int, _Running] = field(factory=dict)
    calls: int = 0
    loss: float = 0.0
    """How often an answer is lost."""

    def run(self, calls: int, clients: int, items: int) -> None:
        chance = self.chance
        doing: dict[int, int] = {}
        self.loss = chance.choice((0.0, 0.02, 0.05, 0.15))
        eager = chance.choice((0.2, 0.5, 0.8))
        while self.calls < calls or doing:
            if self.clock and chance.random() < 0.3:
                self._pass(chance.choice((1, 1, 1, 2, 4)))
            client = chance.randrange(clients)
            if client not in doing:
                if self.calls < calls:
                    doing[client] = self._begin(client, items)
                continue
            number = doing[client]
            running = self.open[number]
            if running.out is None and chance.random() < eager:
                self._effect(number)
            elif running.out is not None and chance.random() < 0.7:
                self._end(number)
                del doing[client]
            elif running.out is None and chance.random() < max(self.loss, 0.01):
                self._lose(number)
                del doing[client]
            late = [n for n, r in self.open.items() if r.ended and r.out is None]
            if late and chance.random() < 0.2:
                self._effect(chance.choice(late))

    def _pass(self, ms: int) -> None:
        self.now_ms += ms
        self.moment = timed_store(self.capabilities).outcomes(self.moment, Step(None, ms))[0].after

    def _begin(self, client: int, items: int) -> int:
        chance, calls = self.chance, self.capabilities.calls
        number, self.calls = self.calls, self.calls + 1
        kinds = [Call.FETCH] * 4 + [Call.ENQUEUE] * 2
        if self.tokens:
            kinds += [Call.RENEW, Call.RENEW, Call.ACK, Call.ACK, Call.CANCELLATION_ACK, *ABANDONS]
        if self.names:
            kinds += [Call.CANCEL]
        if number == 0:
            kinds = [Call.ENQUEUE, Call.FETCH]
        call = chance.choice([k for k in kinds if k in calls])
        known = [f"i{n}" for n in range(items)]
        what, token = tuple[str, ...](), None
        if call is Call.ENQUEUE:
            free = [x for x in known if x not in self.names and x not in self._asked()]
            if not free and chance.random() < 0.9:
                call = Call.FETCH
            else:
                what = (chance.choice(free or known),)
        if call is Call.CANCEL:
            what = tuple(chance.sample(known, chance.randint(1, min(2, items))))
        if call not in (Call.ENQUEUE, Call.CANCEL, Call.FETCH):
            token = chance.choice(list(self.tokens))
        lasts_ms = self._length(call)
        made = StoreCall(call, self.now_ms if self.clock else 0, what, token, lasts_ms, f"c{client}")
        self.open[number] = _Running(made, call is Call.FETCH and chance.random() < 0.4)
        self.events.append(Invoke(number, made))
        return number

    def _asked(self) -> set[str]:
        return {r.call.items[0] for r in self.open.values() if r.call.call is Call.ENQUEUE and not r.ended}

    def _length(self, call: Call) -> int:
        if not self.clock:
            return UNTIMED_MS
        if (call is Call.ENQUEUE and (not self.capabilities.enqueue_delay or self.chance.random() < 0.5)) or (
            call in ABANDONS and (not self.capabilities.abandon_delay or self.chance.random() < 0.4)
        ):
            return 0
        return self.chance.choice(LENGTHS_MS)

    def _effect(self, number: int) -> None:
        """The call takes effect, or fails."""
        chance, running = self.chance, self.open[number]
        call, store = running.call, timed_store(self.capabilities)
        fault = (
            chance.choice((Fault.BEFORE_EFFECT, Fault.AFTER_EFFECT))
            if chance.random() < self.loss
            else Fault.NONE
        )
        moment = self.moment
        if not self.clock and chance.random() < 0.2:
            moment = self._some_run_out(moment)
        if call.call in (Call.ENQUEUE, Call.CANCEL):
            if fault is not Fault.NONE:
                return
            items = tuple(self.names.index(x) for x in call.items if x in self.names)
            if call.call is Call.ENQUEUE:
                if items:
                    return
                moment, items = with_room(moment), (len(self.names),)
            (out,) = store.outcomes(moment, Step(call.call, call.lasts_ms, items))
            if call.call is Call.ENQUEUE:
                self.names.append(call.items[0])
        else:
            token = None if call.token is None else self.tokens[call.token]
            outs = store.outcomes(moment, Step(call.call, call.lasts_ms, (), token, fault))
            finds_nothing = bool(outs) and outs[0].answers == (Answer.NOTHING,)
            if call.call is Call.FETCH and running.waits and finds_nothing and chance.random() < 0.8:
                return
            if not outs:
                return
            out = chance.choice(outs)
        running.out, self.moment = out, out.after
        running.answer = self._told(number, running, out)

    def _some_run_out(self, moment: Moment) -> Moment:
        left = tuple(0 if n and self.chance.random() < 0.5 else n for n in moment.left_ms)
        return timed_store(self.capabilities).outcomes(evolve(moment, left_ms=left), Step(None, 0))[0].after

    def _told(self, number: int, running: _Running, out: Out) -> StoreAnswer:
        answer = self.chance.choice(out.answers)
        if answer is Answer.OK and out.item is not None:
            token = f"t{number}"
            if not running.ended:
                self.tokens[token] = out.after.latest_token(out.item)
            return StoreAnswer(answer, 0, (self.names[out.item],), token, out.after.attempt_count(out.item))
        if running.call.call is Call.CANCEL:
            return StoreAnswer(answer, 0, tuple(self.names[i] for i in out.removed))
        return StoreAnswer(answer)

    def _end(self, number: int) -> None:
        running = self.open.pop(number)
        assert running.answer is not None
        told = evolve(running.answer, until_ms=self.now_ms if self.clock else NEVER_MS)
        unclear = self.chance.random()
        if unclear < self.loss:
            self.events.append(Return(number, Outcome.INFO))
        elif unclear < 1.2 * self.loss:
            pass
        elif unclear < 2 * self.loss and running.call.call in (Call.ENQUEUE, Call.CANCEL):
            self.events.append(Return(number, Outcome.OK, StoreAnswer(Answer.RETRYABLE, told.until_ms)))
        else:
            self.events.append(Return(number, Outcome.OK, told))

    def _lose(self, number: int) -> None:
        self.open[number].ended = True
        if self.chance.random() < 0.5:
            self.events.append(Return(number, Outcome.INFO))


def history(seed: int) -> History:
    """The history of this number."""
    chance = random.Random(seed)
    capabilities, clock = chance.choice(KINDS), chance.random() < 0.75
    run = _Run(chance, capabilities, clock)
    run.run(chance.randint(3, MOST_CALLS), chance.randint(1, MOST_CLIENTS), chance.randint(1, MOST_ITEMS))
    events, is_changed = tuple(run.events), chance.random() < 0.6
    return History(capabilities, clock, _changed(events, chance, clock) if is_changed else events, is_changed)


def _changed(
    events: tuple[Invoke | Return, ...], chance: random.Random, clock: bool
) -> tuple[Invoke | Return, ...]:
    """The history with one thing changed."""
    found = list(events)
    at = chance.randrange(len(found))
    event = found[at]
    kind = chance.randrange(5)
    if clock and kind == 0:
        by = chance.choice((1, 2, 5))
        return tuple(_moved(e, by) if k >= at else e for k, e in enumerate(found))
    if isinstance(event, Invoke):
        call: StoreCall = event.what
        if kind == 1 and call.token is not None:
            other = chance.choice([t for e in events for t in [_token(e)] if t] + ["made up", NEVER_ISSUED])
            found[at] = evolve(event, what=evolve(call, token=other))
        elif clock:
            found[at] = evolve(
                event, what=evolve(call, lasts_ms=max(call.lasts_ms + chance.choice((-2, -1, 1, 2)), 0))
            )
        return tuple(found)
    told: StoreAnswer | None = event.result
    if told is None:
        return tuple(found)
    call = next(e.what for e in found if isinstance(e, Invoke) and e.key == event.key)
    if call.call is Call.FETCH and told.items and told.attempt is not None:
        if kind == 1:
            told = evolve(told, attempt=max(told.attempt + chance.choice((-1, 1)), 0))
        elif kind == 2:
            told = evolve(told, items=(chance.choice(["i0", "i1", "i2"]),))
        elif kind == 3:
            told = evolve(told, token=None)
        else:
            told = StoreAnswer(Answer.NOTHING, told.until_ms)
    elif call.call is Call.CANCEL and told.answer is Answer.OK:
        told = evolve(told, names_items=kind < 2, items=told.items[1:] if told.items else call.items[:1])
    elif call.call in (Call.RENEW, *ACKS, *ABANDONS):
        told = evolve(
            told, answer=chance.choice([a for a in Answer if a not in (told.answer, Answer.NOTHING)])
        )
    else:
        found[at] = Return(event.key, chance.choice((Outcome.FAIL, Outcome.INFO)))
        return tuple(found)
    found[at] = evolve(event, result=told)
    return tuple(found)


def _token(event: Invoke | Return) -> str | None:
    return event.result.token if isinstance(event, Return) and event.result is not None else None


def _moved(event: Invoke | Return, by: int) -> Invoke | Return:
    if isinstance(event, Invoke):
        return evolve(event, what=evolve(event.what, at_ms=event.what.at_ms + by))
    if event.result is None:
        return event
    return evolve(event, result=evolve(event.result, until_ms=event.result.until_ms + by))
