"""Lines of trace files, written short."""

from __future__ import annotations

import json

from mutant import RunMutant

RETRYABLE, PERMANENT, OK = "retryable error", "permanent error", "ok"


def header(*records: str, max_attempts: int | None = None) -> str:
    """The first line; everything of a worker is recorded, but for the clock, if nothing else is said."""
    told = {"peeklock_trace": 1, "records": records or ("handlers", "answers", "counts", "stops")}
    return json.dumps(told | ({} if max_attempts is None else {"max_attempts": max_attempts}))


def line(**fields: object) -> str:
    """One line of a trace file."""
    return json.dumps(fields)


def enqueue(item: str = "i1", **more: object) -> str:
    """An item comes."""
    return line(call="enqueue", item=item, answer=OK, **more)


def fetch(token: str = "t1", worker: str = "A", item: str = "i1", attempt: int = 1, **more: object) -> str:
    """A worker gets an item."""
    return line(call="fetch", worker=worker, item=item, token=token, attempt=attempt, answer=OK, **more)


def handler(ends: str | None = None, token: str = "t1", worker: str = "A") -> str:
    """The handler starts, or ends with a result or an application error."""
    event = "the handler starts" if ends is None else f"the handler ends with {ends}"
    return line(event=event, worker=worker, token=token)


def event(what: str, worker: str = "A", token: str = "t1") -> str:
    """Something else that happens to a worker."""
    return line(event=what, worker=worker, token=token)


def calls(call: str, answer: str, token: str = "t1", worker: str = "A", **more: object) -> str:
    """A call with a token."""
    return line(call=call, worker=worker, token=token, answer=answer, **more)


def ack(answer: str, completion: str = "result", token: str = "t1", worker: str = "A", **more: object) -> str:
    """A completion ack."""
    return calls("ack", answer, token, worker, completion=completion, **more)


def counts(verdict: str, worker: str = "A") -> str:
    """A worker counts a verdict."""
    return line(counts=verdict, worker=worker)


BEGUN = (header(), enqueue(), fetch(), handler())
DONE = (*BEGUN, handler("a result"))
"""A result is in hand."""
ACKED = (ack(OK), counts("success"))
TIRED = tuple(ack(RETRYABLE) for _ in range(5))
GIVEN_BACK = (counts("infrastructure error"), calls("abandon", OK))
FIRST_REFUSED = (ack(PERMANENT),)
LATER_REFUSED = (ack(RETRYABLE), ack(PERMANENT))
STOPPED = event("the cancelled handler is over")


def rejected(
    slug: str,
    fault: str,
    link: str | None,
    *,
    begins: tuple[str, ...],
    wrong: tuple[str, ...],
    right: tuple[str, ...],
    promises: str,
    policy: str = "retry",
) -> RunMutant:
    """A run and its two ends."""
    return RunMutant(slug, fault, link, begins, wrong, right, policy, frozenset(promises.split()))
