"""Introduces the reference implementation to the monitor: its calls and events, as observations."""

from __future__ import annotations

from attrs import define, field

from peeklock.harness.monitor import Monitor
from peeklock.harness.observation import Observation
from peeklock.impl import (
    Abandon,
    Ack,
    Called,
    Completion,
    CompletionKind,
    Counted,
    Dropped,
    Event,
    Fetch,
    HandlerAborted,
    HandlerCancelled,
    HandlerEnded,
    HandlerStarted,
    Ok,
    Refused,
    Renew,
    ShutdownRequested,
    metrics,
)
from peeklock.spec import actions
from peeklock.spec.actions import Answer, Call, Metric
from peeklock.spec.state import Result

METRICS = {
    metrics.SUCCESS: Metric.SUCCESS,
    metrics.APPLICATION_ERROR: Metric.APPLICATION_ERROR,
    metrics.INFRASTRUCTURE_ERROR: Metric.INFRASTRUCTURE_ERROR,
    metrics.POISON: Metric.POISON,
    metrics.UNCERTAIN: Metric.UNCERTAIN,
}
RESULTS = {
    CompletionKind.SUCCESS: Result.SUCCESS,
    CompletionKind.APPLICATION_ERROR: Result.APPLICATION_ERROR,
    CompletionKind.POISON: Result.POISON,
}


@define
class Recorder:
    """Turns what workers tell their observer into observations, and gives them to a monitor."""

    monitor: Monitor
    handlers: tuple[str, ...]
    seen: list[Observation] = field(factory=list)
    _stopping: set[str] = field(factory=set)
    """Workers whose handler was told to stop."""
    _leaving: set[str] = field(factory=set)
    """Workers whose lock was over by their own time: they leave the delivery to it."""
    _left: set[str] = field(factory=set)
    _renewal_failed: set[str] = field(factory=set)
    _drop_at_ms: dict[str, int] = field(factory=dict)

    def observe(self, seen: Observation) -> None:
        """Give one observation to the monitor, and keep it."""
        self.seen.append(seen)
        self.monitor.observe(seen)

    def happens(self, worker: str, what: actions.Event, at_ms: int, token: str | None = None) -> None:
        """An event of a worker."""
        self.observe(Observation(event=what, worker=worker, token=token, at_ms=at_ms))

    def __call__(self, event: Event) -> None:
        match event:
            case Called():
                self._called(event)
            case HandlerStarted(worker, at_ms, delivery):
                self.happens(worker, actions.Event.HANDLER_STARTS, at_ms, delivery.token)
            case HandlerCancelled(worker, at_ms, token):
                self._stopping.add(worker)
                if worker not in self._renewal_failed:
                    self._leaving.add(worker)
                    self.happens(worker, actions.Event.LOCK_OVER, at_ms, token)
            case HandlerEnded(worker, at_ms, token, _, failed):
                ended = actions.Event.HANDLER_FAILS if failed else actions.Event.HANDLER_SUCCEEDS
                if worker in self._stopping:
                    self._stopped(worker, at_ms, token)
                else:
                    self.happens(worker, ended, at_ms, token)
                self._stopping.discard(worker)
            case HandlerAborted(worker, at_ms, token):
                # An abort at the end of the shutdown grace is told once more, as a drop.
                if worker in self._stopping and not self._grace_is_over(worker, at_ms):
                    self._stopped(worker, at_ms, token)
                self._stopping.discard(worker)
            case Counted(worker, at_ms, _, name):
                self.observe(Observation(counts=METRICS[name], worker=worker, at_ms=at_ms))
            case ShutdownRequested(worker, at_ms, drop_at_ms):
                self._drop_at_ms[worker] = drop_at_ms
                self.happens(worker, actions.Event.SHUTDOWN, at_ms)
            case Dropped(worker, at_ms, token):
                # What is left to a lock that is over was told when the handler was over.
                if self._grace_is_over(worker, at_ms) and worker not in self._left:
                    self.happens(worker, actions.Event.GRACE_ENDS, at_ms)
                self._leaving.discard(worker)

    def _stopped(self, worker: str, at_ms: int, token: str) -> None:
        self.happens(worker, actions.Event.HANDLER_STOPPED, at_ms, token)
        if worker in self._leaving:
            self._left.add(worker)

    def _grace_is_over(self, worker: str, at_ms: int) -> bool:
        return worker in self._drop_at_ms and at_ms >= self._drop_at_ms[worker]

    def _called(self, event: Called) -> None:
        worker, at_ms = event.worker, event.at_ms
        answer = Answer.OK
        if isinstance(event.answer, Refused):
            answer = Answer.RETRYABLE if event.answer.error.retryable else Answer.PERMANENT
        match event.call:
            case Fetch(lock_timeout_ms):
                for memory in (self._stopping, self._leaving, self._left, self._renewal_failed):
                    memory.discard(worker)
                self._fetched(event, answer, lock_timeout_ms)
            case Renew(token, extend_for_ms):
                self._renewal_failed.discard(worker)
                if answer is not Answer.OK and not (answer is Answer.RETRYABLE and self._renews_again):
                    self._renewal_failed.add(worker)
                self.observe(
                    Observation(
                        Call.RENEW,
                        worker=worker,
                        token=token,
                        answer=answer,
                        at_ms=at_ms,
                        lasts_ms=extend_for_ms,
                    )
                )
            case Ack(token, None):
                self.observe(
                    Observation(Call.CANCELLATION_ACK, worker=worker, token=token, answer=answer, at_ms=at_ms)
                )
            case Ack(token, Completion() as completion):
                carried = (RESULTS[completion.kind],)
                self.observe(
                    Observation(
                        Call.ACK, worker=worker, token=token, answer=answer, completions=carried, at_ms=at_ms
                    )
                )
            case Abandon(token, delay_ms, ignore_attempt):
                call = Call.ABANDON_IGNORING_ATTEMPT if ignore_attempt else Call.ABANDON
                self.observe(
                    Observation(
                        call, worker=worker, token=token, answer=answer, at_ms=at_ms, lasts_ms=delay_ms
                    )
                )

    @property
    def _renews_again(self) -> bool:
        return self.monitor.variant.policy.after_retryable_renewal.value == "retry"

    def _fetched(self, event: Called, answer: Answer, lock_timeout_ms: int) -> None:
        delivery = event.answer.value if isinstance(event.answer, Ok) else None
        if answer is Answer.OK and delivery is None:
            answer = Answer.NOTHING
        self.observe(
            Observation(
                Call.FETCH,
                worker=event.worker,
                item=None if delivery is None else delivery.item.id,
                token=None if delivery is None else delivery.token,
                attempt=None if delivery is None else delivery.attempt_count,
                answer=answer,
                at_ms=event.at_ms,
                lasts_ms=lock_timeout_ms,
            )
        )
        is_poison = delivery is not None and delivery.attempt_count > self.monitor.variant.policy.max_attempts
        if delivery is not None and not is_poison and delivery.item.name not in self.handlers:
            self.happens(event.worker, actions.Event.HANDLER_MISSING, event.at_ms, delivery.token)
