"""How fast a concurrent history is judged: calls by many workers on a store that is right, recorded and then judged."""

from __future__ import annotations

import random
import time

from attrs import frozen

from peeklock.harness.linear.history import Invoke, Return
from peeklock.harness.linear.item_model import StoreAnswer, StoreCall
from peeklock.harness.linear.store_history import StoreHistory
from peeklock.spec.notation.actions import Answer, Call

LOCK_MS = 1_000
MOST_ALIVE = 16


@frozen
class HistoryTiming:
    """A history that was judged."""

    calls: int
    workers: int
    seconds: float


class _Contract:
    """The contract in a few lines, to answer the calls of a made-up history at once."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[str, int, int]] = {}
        self.issued = 0

    def answer(self, call: StoreCall, now_ms: int) -> StoreAnswer:
        """What the store answers, at the moment at which the call takes effect."""
        if call.call is Call.ENQUEUE:
            self.rows[call.items[0]] = ("", 0, 0)
            return StoreAnswer(Answer.OK, now_ms)
        if call.call is Call.FETCH:
            for item, (_, until_ms, attempt) in self.rows.items():
                if until_ms <= now_ms:
                    self.issued += 1
                    token = f"t{self.issued}"
                    self.rows[item] = (token, now_ms + call.lasts_ms, attempt + 1)
                    return StoreAnswer(Answer.OK, now_ms, (item,), token, attempt + 1)
            return StoreAnswer(Answer.NOTHING, now_ms)
        for item, (token, until_ms, attempt) in self.rows.items():
            if token == call.token and until_ms > now_ms:
                if call.call is Call.RENEW:
                    self.rows[item] = (token, now_ms + call.lasts_ms, attempt)
                else:
                    del self.rows[item]
                return StoreAnswer(Answer.OK, now_ms)
        return StoreAnswer(Answer.PERMANENT, now_ms)


def history(calls: int, workers: int, seed: int = 0) -> list[Invoke | Return]:
    """A history of so many calls, nearly all of which overlap; deterministic for a seed."""
    chance, store = random.Random(seed), _Contract()
    events: list[Invoke | Return] = []
    running: dict[int, tuple[StoreCall, StoreAnswer | None]] = {}
    held: dict[int, str] = {}
    now_ms = begun = 0
    while begun < calls or running:
        now_ms += chance.random() < 0.2
        worker = chance.randrange(workers)
        if worker not in running:
            if begun < calls:
                call = _next(chance, store, begun, held.get(worker), now_ms, f"w{worker}")
                running[worker] = call, None
                events.append(Invoke(worker, call))
                begun += 1
            continue
        call, told = running[worker]
        if told is None:
            running[worker] = call, store.answer(call, now_ms)
            continue
        del running[worker]
        events.append(
            Return(worker, result=StoreAnswer(told.answer, now_ms, told.items, told.token, told.attempt))
        )
        if told.token is not None:
            held[worker] = told.token
    return events


def _next(
    chance: random.Random, store: _Contract, number: int, token: str | None, now_ms: int, caller: str
) -> StoreCall:
    if len(store.rows) < MOST_ALIVE and chance.random() < 0.25:
        return StoreCall(Call.ENQUEUE, now_ms, (f"i{number}",), caller=caller)
    if token is None or chance.random() < 0.4:
        return StoreCall(Call.FETCH, now_ms, lasts_ms=LOCK_MS, caller=caller)
    call = chance.choice((Call.RENEW, Call.ACK, Call.ACK))
    return StoreCall(call, now_ms, token=token, lasts_ms=LOCK_MS, caller=caller)


def measure(calls: int = 10_000, workers: int = 8) -> HistoryTiming:
    """Judge such a history; ``Violation`` if the judge is wrong."""
    events = history(calls, workers)
    began = time.process_time()
    judge = StoreHistory()
    for event in events:
        judge.add(event)
    judge.end()
    assert judge.calls == calls
    return HistoryTiming(calls, workers, time.process_time() - began)
