"""Runs to tell: what was seen of stores and workers that go wrong, and names that nobody should trust."""

from __future__ import annotations

from peeklock.harness.monitor.monitor import Monitor
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.monitor.world import CALLS_AND_HANDLERS
from peeklock.harness.run.store_judge import StoreJudge
from peeklock.harness.story.story import Tale
from peeklock.harness.story.story_of_run import tell
from peeklock.spec.law.policy import RETRY
from peeklock.spec.law.state import Result
from peeklock.spec.notation.actions import Answer, Call, Event
from peeklock.spec.variants.capabilities import STANDARD
from peeklock.spec.variants.variant import Variant

HOSTILE = '<script>alert("i")</script>|`*_[x](http://example.com)\n;#\u202e'


def enqueued(at_ms: int = 0, item: str = "i1") -> Observation:
    return Observation(Call.ENQUEUE, item=item, answer=Answer.OK, at_ms=at_ms, lasts_ms=0)


def fetched(
    at_ms: int, token: str, attempt: int, worker: str = "A", item: str = "i1", lasts_ms: int = 100
) -> Observation:
    return Observation(
        Call.FETCH,
        worker=worker,
        item=item,
        token=token,
        attempt=attempt,
        answer=Answer.OK,
        at_ms=at_ms,
        lasts_ms=lasts_ms,
    )


def nothing_fetched(at_ms: int, worker: str = "B") -> Observation:
    return Observation(Call.FETCH, worker=worker, answer=Answer.NOTHING, at_ms=at_ms, lasts_ms=100)


def acked(
    at_ms: int, token: str, answer: Answer = Answer.OK, worker: str = "A", effect: bool | None = None
) -> Observation:
    return Observation(
        Call.ACK,
        worker=worker,
        token=token,
        answer=answer,
        effect=effect,
        completions=(Result.SUCCESS,),
        at_ms=at_ms,
    )


def of_a_store(*seen: Observation) -> Tale:
    return tell(seen, lambda: StoreJudge(STANDARD), title="a store does not keep its contract")


STALE_TOKEN = (enqueued(), fetched(0, "t1", 1), fetched(100, "t2", 2, "B"), acked(110, "t1"))
LOCKED_ITEM = (enqueued(), fetched(0, "t1", 1), fetched(99, "t2", 2, "B"))
LOST_ITEM = (enqueued(), fetched(0, "t1", 1), nothing_fetched(100))


def hostile() -> Tale:
    return of_a_store(
        enqueued(item=HOSTILE),
        fetched(0, HOSTILE, 1, HOSTILE, HOSTILE),
        fetched(99, f"{HOSTILE}2", 2, "B", HOSTILE),
    )


def of_a_worker() -> Tale:
    """It abandons after one retryable error."""
    run = (
        Observation(Call.ENQUEUE, item="i1", answer=Answer.OK),
        Observation(Call.FETCH, worker="A", item="i1", token="t1", attempt=1, answer=Answer.OK),
        Observation(event=Event.HANDLER_STARTS, worker="A"),
        Observation(event=Event.HANDLER_SUCCEEDS, worker="A"),
        Observation(Call.ACK, worker="A", token="t1", answer=Answer.RETRYABLE),
        Observation(Call.ABANDON, worker="A", token="t1", answer=Answer.OK),
    )
    return tell(run, lambda: Monitor(Variant(RETRY), CALLS_AND_HANDLERS), title="a worker goes wrong")
