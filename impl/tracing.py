"""What workers did, as the lines of a trace file: docs/trace-format.md says what they mean."""

import json
from collections.abc import Callable, Container

from attrs import define, field

from peeklock.impl import metrics
from peeklock.impl.effects import Abandon, Ack, Answer, Fetch, Ok, Refused, Renew
from peeklock.impl.events import (
    Called,
    Counted,
    Dropped,
    Event,
    HandlerAborted,
    HandlerCancelled,
    HandlerEnded,
    HandlerStarted,
    ShutdownRequested,
)
from peeklock.impl.policy import RETRY, Policy
from peeklock.impl.store import Completion, CompletionKind

RECORDS = ("clock", "answers", "handlers", "counts", "stops")
"""What is never missed: all that there is to record."""
_VERDICTS = {
    metrics.SUCCESS: "success",
    metrics.APPLICATION_ERROR: "application error",
    metrics.INFRASTRUCTURE_ERROR: "infrastructure error",
    metrics.POISON: "poison",
    metrics.UNCERTAIN: "uncertain",
}
_COMPLETIONS = {
    CompletionKind.SUCCESS: "result",
    CompletionKind.APPLICATION_ERROR: "application error",
    CompletionKind.POISON: "poison",
}


@define
class Tracer:
    """An observer of workers that gives `write` a line for everything that they do, without the line's end.

    Workers that share a store share a tracer. What the orchestrator does and a crash are not theirs to tell: there
    are methods for these, to be called when it is done. Times are of the store's clock.
    """

    write: Callable[[str], object]
    handlers: Container[str]
    """The names that have a handler."""
    policy: Policy = RETRY
    _stopping: set[str] = field(factory=set)
    """Workers whose handler was told to stop."""
    _leaving: set[str] = field(factory=set)
    """Workers whose lock was over by their own time: they leave the delivery to it."""
    _left: set[str] = field(factory=set)
    _renewal_failed: set[str] = field(factory=set)
    _drop_at_ms: dict[str, int] = field(factory=dict)

    def begin(self, source: str = "") -> None:
        """The first line; `source` says where the run is from."""
        self._line(
            peeklock_trace=1, records=RECORDS, max_attempts=self.policy.max_attempts, source=source or None
        )

    def enqueued(self, item: str, at_ms: int, delay_ms: int = 0) -> None:
        """The item was enqueued."""
        self._line(t_ms=at_ms, call="enqueue", item=item, answer="ok", lasts_ms=delay_ms)

    def cancelled(self, item: str, at_ms: int) -> None:
        """The item was cancelled, and had a row."""
        self._line(t_ms=at_ms, call="cancel", item=item, answer="ok")

    def crashed(self, worker: str, at_ms: int) -> None:
        """The worker is gone, with something in its hand."""
        self._happens(worker, "the worker crashes", at_ms)

    def __call__(self, event: Event) -> None:
        """What a worker tells."""
        match event:
            case Called():
                self._called(event)
            case HandlerStarted(worker, at_ms, delivery):
                self._happens(worker, "the handler starts", at_ms, delivery.token)
            case HandlerCancelled(worker, at_ms, token):
                self._stopping.add(worker)
                if worker not in self._renewal_failed:
                    self._leaving.add(worker)
                    self._happens(worker, "by the worker's own time its lock is over", at_ms, token)
            case HandlerEnded(worker, at_ms, token, _, failed):
                if worker in self._stopping:
                    self._stopped(worker, at_ms, token)
                else:
                    with_what = "an application error" if failed else "a result"
                    self._happens(worker, f"the handler ends with {with_what}", at_ms, token)
                self._stopping.discard(worker)
            case HandlerAborted(worker, at_ms, token):
                # An abort at the end of the shutdown grace is told once more, as a drop.
                if worker in self._stopping and not self._grace_is_over(worker, at_ms):
                    self._stopped(worker, at_ms, token)
                self._stopping.discard(worker)
            case Counted(worker, at_ms, _, name):
                self._line(t_ms=at_ms, counts=_VERDICTS[name], worker=worker)
            case ShutdownRequested(worker, at_ms, drop_at_ms):
                self._drop_at_ms[worker] = drop_at_ms
                self._happens(worker, "a shutdown begins", at_ms)
            case Dropped(worker, at_ms):
                # What is left to a lock that is over was told when the handler was over.
                if self._grace_is_over(worker, at_ms) and worker not in self._left:
                    self._happens(worker, "the shutdown grace is over", at_ms)
                self._leaving.discard(worker)

    def _stopped(self, worker: str, at_ms: int, token: str) -> None:
        self._happens(worker, "the cancelled handler is over", at_ms, token)
        if worker in self._leaving:
            self._left.add(worker)

    def _grace_is_over(self, worker: str, at_ms: int) -> bool:
        return worker in self._drop_at_ms and at_ms >= self._drop_at_ms[worker]

    # Calls

    def _called(self, event: Called) -> None:
        worker, answer = event.worker, _answer(event.answer)
        asked = {"t_ms": event.at_ms, "worker": worker}
        match event.call:
            case Fetch(lock_timeout_ms):
                for memory in (self._stopping, self._leaving, self._left, self._renewal_failed):
                    memory.discard(worker)
                self._fetched(event, answer, lock_timeout_ms)
            case Renew(token, extend_for_ms):
                self._renewal_failed.discard(worker)
                again = answer == "retryable error" and self.policy.after_retryable_renewal == "retry"
                if answer != "ok" and not again:
                    self._renewal_failed.add(worker)
                self._line(**asked, call="renew", token=token, answer=answer, lasts_ms=extend_for_ms)
            case Ack(token, None):
                self._line(**asked, call="cancellation ack", token=token, answer=answer)
            case Ack(token, Completion(kind)):
                self._line(**asked, call="ack", token=token, answer=answer, completion=_COMPLETIONS[kind])
            case Abandon(token, delay_ms, ignore_attempt):
                call = "abandon, ignoring the attempt" if ignore_attempt else "abandon"
                self._line(**asked, call=call, token=token, answer=answer, lasts_ms=delay_ms)

    def _fetched(self, event: Called, answer: str, lock_timeout_ms: int) -> None:
        got = event.answer.value if isinstance(event.answer, Ok) else None
        self._line(
            t_ms=event.at_ms,
            worker=event.worker,
            call="fetch",
            item=None if got is None else got.item.id,
            token=None if got is None else got.token,
            attempt=None if got is None else got.attempt_count,
            answer="nothing" if got is None and answer == "ok" else answer,
            lasts_ms=lock_timeout_ms,
        )
        is_poison = got is not None and got.attempt_count > self.policy.max_attempts
        if got is not None and not is_poison and got.item.name not in self.handlers:
            self._happens(event.worker, "no handler is registered", event.at_ms, got.token)

    def _happens(self, worker: str, what: str, at_ms: int, token: str | None = None) -> None:
        self._line(t_ms=at_ms, event=what, worker=worker, token=token)

    def _line(self, **fields: object) -> None:
        self.write(json.dumps({name: value for name, value in fields.items() if value is not None}))


def _answer(answer: Answer) -> str:
    if not isinstance(answer, Refused):
        return "ok"
    return "retryable error" if answer.error.retryable else "permanent error"
