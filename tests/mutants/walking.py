"""Walks at random over a store, from a seed, and has every answer judged by the monitor.

The walk is chosen by the seed and by what the monitor says is possible; nothing is chosen to fit a fault.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol

from attrs import frozen

from peeklock.harness.adapter import PermanentError, StoreAdapter, VirtualTime
from peeklock.harness.monitor import Monitor
from peeklock.harness.observation import Observation
from peeklock.harness.world import Scope, Violation
from peeklock.spec.actions import Answer, Call
from peeklock.spec.capabilities import STANDARD, store_alone
from peeklock.spec.evaluate import PLACE
from peeklock.spec.policy import RETRY
from peeklock.spec.protocol import Variant
from peeklock.spec.state import Result, Row, row

ITEMS = ("a", "ab", "b")
"""One name begins another, for stores that compare carelessly."""
LENGTHS_MS = (100, 1_500, 30_000)
DELAYS_MS = (0, 0, 100, 1_500)
MOST_EXAMPLES, STEPS = 1_000, 30
_HONEST = frozenset({"cancel", "expiry"})
_A_STORES_OWN = STANDARD.promised | {"C1", "C2", "C4"}
"""What else a step breaks is about workers that keep to a policy, and the clients here do anything."""
_ROWS = list(Row)
_IN_QUEUE = {Row.DELAYED, Row.READY, Row.LOCKED, Row.EXPIRED}


class VirtualStore(StoreAdapter, VirtualTime, Protocol):
    """A store on a clock of its own."""


@frozen
class Caught:
    """A violation that a walk came upon."""

    promises: tuple[str, ...]
    reason: str
    examples: int
    """How many walks it took, this one included."""


def hunt(make_store: Callable[[], VirtualStore], seed: int, examples: int = MOST_EXAMPLES) -> Caught | None:
    """The first violation that the walks of a seed come upon; None where there is none in so many walks."""
    for number in range(examples):
        walk = _Walk(make_store(), random.Random(f"{seed}/{number}"))
        try:
            walk.go()
        except Violation as violation:
            named = tuple(p for p in violation.promises if p in _A_STORES_OWN)
            return Caught(named, str(violation), number + 1)
        except _Wrong as wrong:
            return Caught(wrong.promises, str(wrong), number + 1)
    return None


class _Wrong(Exception):
    """What the store holds is not what its answers say."""

    def __init__(self, text: str, *promises: str) -> None:
        super().__init__(text)
        self.promises = promises


class _Walk:
    def __init__(self, store: VirtualStore, rng: random.Random) -> None:
        self.store, self.rng, self.now_ms = store, rng, 0
        self.monitor = Monitor(Variant(RETRY, _HONEST, fifo=True), Scope(clock=True), store_alone(STANDARD))
        self.tokens: list[tuple[str, str]] = []
        self.ends_ms: list[int] = []
        self.left = list(ITEMS[: rng.choice((1, 1, 2, 3))])

    def go(self) -> None:
        steps = (self.enqueue, self.fetch, self.renew, self.ack, self.ack_nothing, self.abandon, self.cancel)
        weights = (3, 8, 4, 4, 1, 4, 1)
        self.enqueue()
        for _ in range(STEPS):
            if self.ends_ms and self.rng.random() < 0.35:
                self.pass_time()
            else:
                self.rng.choices(steps, weights)[0]()
            self.look()
        self.drain()

    def drain(self) -> None:
        """Let every lock and delay run out, so that what was lost is missed."""
        for _ in ITEMS:
            self.advance(100_000)
            self.fetch()
            self.look()

    # The calls

    def enqueue(self) -> None:
        if self.left:
            item, delay_ms = self.left.pop(0), self.rng.choice(DELAYS_MS)
            self.store.enqueue(item, delay_ms)
            self.ends_ms.append(self.now_ms + delay_ms)
            self.see(Call.ENQUEUE, Answer.OK, item=item, lasts_ms=delay_ms)

    def fetch(self) -> None:
        lock_ms = self.rng.choice(LENGTHS_MS)
        got = self.store.fetch(lock_ms)
        if got is None:
            self.see(Call.FETCH, Answer.NOTHING, worker="nobody")
            return
        self.ends_ms.append(self.now_ms + lock_ms)
        self.see(
            Call.FETCH,
            Answer.OK,
            worker=got.token,
            item=got.item,
            token=got.token,
            attempt=got.attempt_count,
            lasts_ms=lock_ms,
        )
        self.tokens.append((got.token, got.item))

    def renew(self) -> None:
        length_ms = self.rng.choice(LENGTHS_MS)
        self.ends_ms.append(self.now_ms + length_ms)
        self.present(Call.RENEW, lambda t, _: self.store.renew(t, length_ms), length_ms)

    def ack(self) -> None:
        self.present(Call.ACK, lambda t, item: self.store.ack(t, f"result of {item}"))

    def ack_nothing(self) -> None:
        self.present(Call.CANCELLATION_ACK, lambda t, _: self.store.ack(t, None))

    def abandon(self) -> None:
        delay_ms, uncounted = self.rng.choice(DELAYS_MS), self.rng.random() < 0.3
        self.ends_ms.append(self.now_ms + delay_ms)
        call = Call.ABANDON_IGNORING_ATTEMPT if uncounted else Call.ABANDON
        self.present(call, lambda t, _: self.store.abandon(t, delay_ms, uncounted), delay_ms)

    def cancel(self) -> None:
        item = self.rng.choice(ITEMS)
        there = self.is_queued(item)
        found = list(self.store.cancel([item, "never enqueued"]))
        if found != ([item] if there else []):
            raise _Wrong(f"cancel of {item} says that it removed {found}", "C4")
        for name in found:
            self.see(Call.CANCEL, Answer.OK, item=name)

    def present(self, call: Call, made: Callable[[str, str], None], lasts_ms: int | None = None) -> None:
        if not self.tokens:
            return
        # The newest tokens are the telling ones.
        token, item = self.tokens[-1 - min(int(self.rng.expovariate(0.9)), len(self.tokens) - 1)]
        try:
            made(token, item)
            answer = Answer.OK
        except PermanentError:
            answer = Answer.PERMANENT
        carried = (Result.SUCCESS,) if call is Call.ACK else ()
        self.see(call, answer, worker=token, token=token, completions=carried, lasts_ms=lasts_ms)

    # Time

    def pass_time(self) -> None:
        """To the end of a lock or a delay, or to just before or after it."""
        coming = [t for t in self.ends_ms if t >= self.now_ms] or [self.now_ms]
        self.advance(max(0, self.rng.choice(coming) + self.rng.choice((-1, 0, 0, 1)) - self.now_ms))

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        self.store.advance(ms)
        self.monitor.pass_time(self.now_ms)

    # The judge

    def see(self, call: Call, answer: Answer, **seen: object) -> None:
        self.monitor.observe(Observation(call, answer=answer, at_ms=self.now_ms, **seen))  # type: ignore[arg-type]

    def is_queued(self, item: str) -> bool:
        number = self.monitor.items.get(item)
        (world,) = self.monitor.worlds
        return number is not None and _ROWS[world.state[1][number][PLACE[row]]] in _IN_QUEUE

    def look(self) -> None:
        """Completions are there exactly when an ack that carried them was accepted."""
        held = [item for item, _ in self.store.completions()]
        for item in ITEMS:
            count = held.count(item)
            if count not in self.monitor.completions_of(item):
                raise _Wrong(f"{count} completions of {item}", *(("S2", "S3") if count > 1 else ("S3",)))
        for item, completion in self.store.completions():
            if completion != f"result of {item}":
                raise _Wrong(f"the completion of {item} is {completion!r}", "S3")
        if broken := STANDARD.promised.intersection(self.monitor.broken()):
            raise _Wrong("explained, yet broken", *broken)
