"""The host that a worker under check is run on: it answers by the script, and judges each call and each pause."""

from __future__ import annotations

from typing import NoReturn

from attrs import define, evolve

from peeklock.harness.adapter import PermanentError, RetryableError
from peeklock.harness.belief import Belief
from peeklock.harness.host import Completion, Counted, Crashed, Ended, HostDelivery, Woken
from peeklock.harness.observation import Observation
from peeklock.harness.scene import Finding, Scene, fetch_seen
from peeklock.harness.schedule import (
    COMPLETES,
    COUNTS,
    DELAYS,
    DRAINS,
    DROPS,
    GRACE,
    KNOWS,
    LOCK_LENGTH,
    LOCK_OVER,
    RENEWS,
    RESTS,
    SAME,
    SIGNALS,
    STAYS,
    WAITS,
    Due,
    Duty,
    Schedule,
    backoff_ms,
)
from peeklock.harness.script import OK, DeliveryPlan, Fault
from peeklock.harness.spec_store import Answered
from peeklock.harness.world import Violation
from peeklock.spec.actions import Answer, Call, Event, Metric
from peeklock.spec.evaluate import Record
from peeklock.spec.state import Phase, Result, Trouble

_KINDS = {"result": Result.SUCCESS, "application error": Result.APPLICATION_ERROR, "poison": Result.POISON}
_METRICS = {m.value: m for m in Metric}
_FAR_MS = 10**15


@define
class _InHand:
    """The delivery that the worker has."""

    item: str
    token: str
    attempt_count: int
    plan: DeliveryPlan
    fetched_ms: int
    calls: int = 0
    acks: int = 0
    renewals: int = 0
    runs: bool = False
    """The handler was started, and its end was not told yet."""
    ends_ms: int | None = None
    said: Completion | None = None
    """What the completion has to be."""

    def outcome(self) -> tuple[Ended, str]:
        """How the handler ends."""
        if self.plan.fails:
            return "application error", f"error of {self.token}"
        return "result", f"result of {self.token}"


class Stage:
    """The host of one worker, from its birth to its end."""

    def __init__(self, scene: Scene, name: str) -> None:
        self.scene, self.name = scene, name
        setup = scene.setup
        self.belief = Belief(setup.variant, setup.capabilities, setup.handlers)
        self.schedule = Schedule(setup.policy, setup.tolerances, setup.handlers)
        self.schedule.since_ms = scene.now_ms
        self.dead = False
        self._hand: _InHand | None = None
        self._shutdown_at_ms: int | None = None
        self._calls = 0
        self._told_nothing = False
        self._counted: list[Metric] = []
        """What was counted of the delivery in hand."""
        self._was_retried = False
        self._miscounted: Finding | None = None

    # The host's side, as the worker calls it

    @property
    def now_ms(self) -> int:
        """The time."""
        return self.scene.now_ms

    def fetch(self, lock_timeout_ms: int) -> HostDelivery | None:
        """See Host.fetch."""
        self._enters("fetch", lock_timeout_ms)
        scene = self.scene
        scene.fetches_made += 1
        self._wants_lock("fetch", lock_timeout_ms)
        self._must_not_drain("fetch")
        free = self.belief.is_idle and not self.belief.is_draining
        if free and scene.is_done:
            scene.finished = True
            self._dies()
        self.schedule.since_ms = scene.now_ms if self.belief.is_idle else self.schedule.since_ms
        if scene.store.fetchable() is None:
            if not (free and self._told_nothing):
                self._told_nothing = True
                self._sees_no_fetch(Answer.NOTHING, lock_timeout_ms)
            return None
        fault, asked_ms = scene.next_fetch(), scene.now_ms
        self._takes(fault)
        item = scene.store.fetchable()
        if item is None or fault.kind == "retryable":
            answer = Answer.NOTHING if item is None else Answer.RETRYABLE
            self._sees_no_fetch(answer, lock_timeout_ms)
            if item is None:
                return None
            raise RetryableError("fetch: the store cannot fetch just now")
        lost = fault.kind == "response lost"
        before = scene.store.record(item)
        taken = scene.store.fetch(item, lock_timeout_ms, lost)
        if not lost:
            self._begins(
                _InHand(item, taken.token, taken.attempt_count, scene.next_delivery(item), scene.now_ms)
            )
        self._sees(fetch_seen(self.name, taken, lock_timeout_ms), before)
        if lost:
            raise RetryableError("fetch: the response was lost")
        self.schedule.taken(asked_ms, scene.now_ms)
        if scene.deliveries > scene.most_deliveries:
            self._fails("fetch", f"delivered {scene.deliveries} times in all; {scene.unsettled()}", COMPLETES)
        assert self._hand is not None
        return HostDelivery(item, taken.token, taken.attempt_count, self._hand.plan.has_handler)

    def renew(self, token: str, extend_for_ms: int) -> None:
        """See Host.renew."""
        self._enters("renew", extend_for_ms)
        self._wants_lock("renew", extend_for_ms)
        self._must_not_drain("renew")
        fault = OK
        if self._hand is not None:
            fault = _nth(self._hand.plan.renewals, self._hand.renewals)
            self._hand.renewals += 1
        asked_ms = self.now_ms
        answered = self._calls_store(Call.RENEW, token, fault, extend_for_ms)
        if answered.answer is Answer.OK:
            self.schedule.taken(asked_ms, self.now_ms)
        elif self.belief.is_renewing:
            self.schedule.renewal_failed(self.now_ms)
        _raises("renew", answered)

    def ack(self, token: str, completion: Completion | None) -> None:
        """See Host.ack."""
        self._enters("ack")
        hand = self._hand
        if completion is None:
            fault = OK if hand is None else hand.plan.cancellation_ack
            _raises("ack", self._calls_store(Call.CANCELLATION_ACK, token, fault))
            return
        if not isinstance(completion, Completion) or completion.kind not in _KINDS:
            raise ValueError(
                f"ack: completion is {completion!r}; allowed: None, Completion of {', '.join(_KINDS)}"
            )
        self._not_early("ack", token)
        fault = OK
        if hand is not None:
            fault = _nth(hand.plan.acks, hand.acks)
            hand.acks += 1
        answered = self._calls_store(Call.ACK, token, fault, completion=completion)
        self._was_retried |= answered.answer is Answer.RETRYABLE
        self.schedule.since_ms = self.now_ms
        if hand is not None:
            if hand.said is not None and completion.text != hand.said.text:
                self._fails(f"ack {token}", f"carries {completion.text!r}; allowed: {hand.said.text!r}", SAME)
            hand.said = completion
        _raises("ack", answered)

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool = False) -> None:
        """See Host.abandon."""
        self._enters("abandon", delay_ms)
        due_ms = self._abandon_delay_ms()
        fault = OK if self._hand is None else self._hand.plan.abandon
        call = Call.ABANDON_IGNORING_ATTEMPT if ignore_attempt else Call.ABANDON
        answered = self._calls_store(call, token, fault, delay_ms)
        if delay_ms != due_ms and self.scene.setup.capabilities.abandon_delay:
            self._fails(f"abandon {token}", f"delay_ms is {delay_ms}; allowed: {due_ms}", DELAYS)
        _raises("abandon", answered)

    def start_handler(self, token: str) -> None:
        """See Host.start_handler."""
        self._enters("start_handler")
        self._handles("start_handler")
        self._sees_event(Event.HANDLER_STARTS, token)
        hand = self._hand
        assert hand is not None
        if not hand.plan.has_handler:
            self._fails(f"start_handler {token}", "no handler is registered for it", KNOWS)
        hand.runs, hand.ends_ms = True, self.now_ms + hand.plan.takes_ms

    def no_handler(self, token: str) -> None:
        """See Host.no_handler."""
        self._enters("no_handler")
        self._handles("no_handler")
        self._sees_event(Event.HANDLER_MISSING, token)
        assert self._hand is not None
        if self._hand.plan.has_handler:
            self._fails(f"no_handler {token}", "a handler is registered for it", KNOWS)

    def cancel_handler(self, token: str) -> None:
        """See Host.cancel_handler."""
        self._enters("cancel_handler")
        hand = self._running("cancel_handler")
        if self.schedule.signalled_ms is not None:
            return
        if self.belief.phase is not Phase.STOPPING:
            over_ms = self.schedule.asked_ms + self.scene.setup.policy.lock_timeout_ms
            self._sees_event(Event.LOCK_OVER, token)
            if self.now_ms < over_ms - self.scene.setup.tolerances.early_ms:
                self._fails(f"cancel_handler {token}", f"its lock is held until {over_ms} ms", LOCK_OVER)
        self.schedule.signalled_ms = self.now_ms
        if hand.plan.stops_ms is not None and hand.ends_ms is not None:
            hand.ends_ms = min(hand.ends_ms, self.now_ms + hand.plan.stops_ms)

    def abort_handler(self, token: str) -> None:
        """See Host.abort_handler."""
        self._enters("abort_handler")
        hand = self._running("abort_handler")
        if not self._is_grace_over():
            if self.belief.phase is not Phase.STOPPING:
                self._fails(f"abort_handler {token}", "nothing has told it to stop", GRACE)
            if self.schedule.signalled_ms is None:
                self._fails(f"abort_handler {token}", "it was not told to stop", SIGNALS)
            over_ms = self.schedule.signalled_ms + self.scene.setup.policy.cancellation_grace_ms
            if self.now_ms < over_ms - self.scene.setup.tolerances.early_ms:
                self._fails(f"abort_handler {token}", f"its grace is over at {over_ms} ms", GRACE)
            self._sees_event(Event.HANDLER_STOPPED, token)
        hand.runs = False

    def wait(self, until_ms: int) -> Woken:
        """See Host.wait."""
        self._enters("wait", until_ms)
        times = [until_ms, *self._wakes()]
        to_ms = max(self.now_ms, min(times))
        self._is_in_time(to_ms)
        if to_ms > self.now_ms:
            self._calls = 0
        self.scene.advance(to_ms)
        if self._shutdown_at_ms is not None and self._shutdown_at_ms <= self.now_ms and not self._is_told:
            self.schedule.shutdown_ms = self.now_ms
            self._sees_event(Event.SHUTDOWN, None)
        return self._woken()

    def count(self, metric: Counted) -> None:
        """See Host.count."""
        if self.dead:
            raise Crashed
        if metric not in _METRICS:
            raise ValueError(f"count: metric is {metric!r}; allowed: {', '.join(_METRICS)}")
        if self.scene.setup.counts:
            self._sees(Observation(counts=_METRICS[metric]), None)
            self._counted.append(_METRICS[metric])
            self.belief.counted()

    # How a worker ends

    def returned(self) -> None:
        """The worker has returned."""
        if self.dead:
            return
        self._owes_no_count("return")
        schedule = self.schedule
        if schedule.shutdown_ms is None:
            self._fails("returns", "nobody asked it to shut down", STAYS)
        over_ms = schedule.shutdown_ms + self.scene.setup.policy.shutdown_grace_ms
        if not self.belief.is_idle and self.now_ms < over_ms - self.scene.setup.tolerances.early_ms:
            self._fails("returns", f"with {self._about()} in hand; the grace is over at {over_ms} ms", DROPS)
        self._sees_event(Event.GRACE_ENDS, None)

    def raised(self, error: Exception) -> None:
        """The worker has raised an exception of its own."""
        self._fails("raises", f"{type(error).__name__}: {error}", STAYS)

    def _dies(self) -> NoReturn:
        self.dead = True
        raise Crashed

    def _crashes(self) -> NoReturn:
        if not self.belief.is_idle:
            self._sees_event(Event.CRASH, None)
        self._dies()

    # What every call begins with

    def _enters(self, call: str, *numbers: int) -> None:
        if self.dead:
            raise Crashed
        for number in numbers:
            if type(number) is not int or number < 0:
                raise ValueError(f"{call}: {number!r}; allowed: a whole number of milliseconds, 0 or more")
        self._owes_no_count(call)
        self._calls += 1
        if self._calls > self.scene.setup.tolerances.most_calls:
            self._fails(call, f"call {self._calls} since time passed last", RESTS)
        hand = self._hand
        if hand is not None and not self.belief.is_idle:
            hand.calls += 1
            if hand.calls == hand.plan.crash_at:
                self._crashes()

    def _owes_no_count(self, call: str) -> None:
        if self._miscounted is not None:
            if call in ("wait", "return"):
                self.scene.finding = self._miscounted
                self._dies()
            return
        owed = self.belief.counts
        if owed is not None and self.scene.setup.counts:
            self._fails(call, f"the verdict {owed.value} was not counted", COUNTS, f"counts {owed.value}")

    def _handles(self, call: str) -> None:
        if not self.scene.setup.handlers:
            raise ValueError(f"{call}: the worker is declared not to report its handlers (handlers=False)")

    def _running(self, call: str) -> _InHand:
        self._handles(call)
        if self._hand is None or not self._hand.runs:
            raise ValueError(f"{call}: no handler runs")
        return self._hand

    def _wants_lock(self, call: str, ms: int) -> None:
        due_ms = self.scene.setup.policy.lock_timeout_ms
        if ms != due_ms:
            self._fails(call, f"asks for {ms} ms; the policy's lock_timeout_ms is {due_ms}", LOCK_LENGTH)

    def _must_not_drain(self, call: str) -> None:
        # Where the monitor does not see shutdowns, nobody else would say so.
        if self.belief.is_draining and not self.scene.setup.handlers:
            self._fails(call, "a shutdown has begun", DRAINS if call == "fetch" else RENEWS)

    def _not_early(self, call: str, token: str) -> None:
        belief, setup = self.belief, self.scene.setup
        if belief.phase is Phase.ACKING and 0 < belief.attempts < setup.policy.ack_attempts:
            due_ms = self.schedule.since_ms + setup.policy.ack_waits_ms[belief.attempts - 1]
            if self.now_ms < due_ms - setup.tolerances.early_ms:
                self._fails(f"{call} {token}", f"attempt {belief.attempts + 1} is due at {due_ms} ms", WAITS)

    def _abandon_delay_ms(self) -> int:
        policy, hand = self.scene.setup.policy, self._hand
        missing = self.belief.trouble is Trouble.HANDLER_MISSING
        if not self.scene.setup.handlers:
            missing = self.belief.phase is Phase.FETCHED
        return backoff_ms(policy, hand.attempt_count) if missing and hand else policy.abandon_delay_ms

    # Time

    @property
    def _is_told(self) -> bool:
        return self.schedule.shutdown_ms is not None

    def _is_grace_over(self) -> bool:
        begun_ms, setup = self.schedule.shutdown_ms, self.scene.setup
        if begun_ms is None:
            return False
        return self.now_ms >= begun_ms + setup.policy.shutdown_grace_ms - setup.tolerances.early_ms

    def _wakes(self) -> list[int]:
        hand = self._hand
        handler = [hand.ends_ms] if hand is not None and hand.runs and hand.ends_ms is not None else []
        asked = [] if self._shutdown_at_ms is None or self._is_told else [self._shutdown_at_ms]
        return handler + asked

    def _takes(self, fault: Fault) -> None:
        if fault.takes_ms:
            self.scene.advance(self.now_ms + fault.takes_ms)
            self.schedule.control_ms = self.now_ms
            self._calls = 0

    def _is_in_time(self, to_ms: int) -> None:
        """``Crashed`` where something is due before that time."""
        belief, scene = self.belief, self.scene
        dues = self.schedule.dues(belief.phase, belief.attempts, belief.result, belief.is_renewing)
        if not scene.is_done:
            dues.append(Due(COMPLETES, scene.progress_ms + scene.setup.tolerances.patience_ms))
        first = min(dues, key=lambda d: d.at_ms, default=Due(COMPLETES, _FAR_MS))
        if to_ms > first.at_ms:
            scene.advance(first.at_ms)
            reason = f"{self._about()}: not done in time"
            if first.duty is COMPLETES:
                reason = scene.unsettled()
            self._fails("waits on", reason, first.duty)

    def _woken(self) -> Woken:
        hand, handler, text = self._hand, None, ""
        if hand is not None and hand.runs and hand.ends_ms is not None and hand.ends_ms <= self.now_ms:
            hand.runs = False
            handler, text = hand.outcome()
            if self.belief.phase is Phase.STOPPING:
                self._sees_event(Event.HANDLER_STOPPED, hand.token)
            else:
                ended = Event.HANDLER_FAILS if hand.plan.fails else Event.HANDLER_SUCCEEDS
                self._sees_event(ended, hand.token)
                hand.said = Completion(handler, text)
        return Woken(self.now_ms, handler, text, self._is_told)

    # What is seen

    def _begins(self, hand: _InHand) -> None:
        self._hand, self._counted, self._was_retried = hand, [], False
        if hand.plan.shutdown_ms is not None and not self._is_told:
            self._shutdown_at_ms = self.now_ms + hand.plan.shutdown_ms

    def _calls_store(
        self, call: Call, token: str, fault: Fault, lasts_ms: int = 0, completion: Completion | None = None
    ) -> Answered:
        self._takes(fault)
        store = self.scene.store
        item = store.item_of(token)
        before = None if item is None else store.record(item)
        answered = store.call(call, token, fault, lasts_ms)
        seen = Observation(
            call,
            item=item,
            token=token,
            answer=answered.answer,
            effect=answered.effect,
            completions=() if completion is None else (_KINDS[completion.kind],),
            lasts_ms=lasts_ms if call not in (Call.ACK, Call.CANCELLATION_ACK) else None,
        )
        self._sees(seen, before)
        return answered

    def _sees_no_fetch(self, answer: Answer, lock_timeout_ms: int) -> None:
        self._sees(Observation(Call.FETCH, answer=answer, effect=False, lasts_ms=lock_timeout_ms), None)

    def _sees_event(self, event: Event, token: str | None) -> None:
        hand = self._hand
        item = None if hand is None or self.belief.is_idle else hand.item
        seen = Observation(event=event, item=item if token else None, token=token)
        self._sees(seen, None if item is None else self.scene.store.record(item))

    def _sees(self, seen: Observation, item: Record | None) -> None:
        """Let the monitor judge what the worker does; ``Crashed``, with a finding, when it is not allowed."""
        seen = evolve(seen, worker=self.name)
        scene, was = self.scene, self.belief.phase
        hidden = seen.event is not None and not scene.setup.handlers
        try:
            if not hidden:
                scene.see(seen)
        except Violation as violation:
            self._is_not_allowed(violation)
            return
        if self._miscounted is not None:
            self.scene.finding = self._miscounted
            self._dies()
        if seen.counts is None:
            self.belief.follow(seen, item)
        if self.belief.phase is not was:
            self.schedule.since_ms, self.schedule.signalled_ms = self.now_ms, None

    def _is_not_allowed(self, violation: Violation) -> None:
        """A wrong count is told with what the worker does next, which says more of what it meant by it."""
        found = self._miscounted or Finding(
            f"{violation.seen} at {self.now_ms} ms", violation.reason, None, violation, violation.allowed
        )
        named = (*found.promises, *(p for p in violation.promises if p not in found.promises))
        if violation.seen.counts is not None and self._miscounted is None:
            self._miscounted = evolve(found, promises=self._broken_by_count(violation.seen.counts))
            return
        if found.violation is not violation:
            found = evolve(found, reason=f"{found.reason}; then {violation.seen}")
        self.scene.finding = evolve(found, promises=named)
        self._dies()

    def _broken_by_count(self, metric: Metric) -> tuple[str, ...]:
        """The promises about counts that this one breaks, of a delivery that the worker had or has."""
        said, found = self._counted, []
        if Metric.UNCERTAIN in said:
            found.append("S7")
        if metric is Metric.UNCERTAIN and not self._was_retried:
            found.append("S8")
        done = self._hand is not None and self.scene.store.is_completed(self._hand.item)
        if metric is Metric.INFRASTRUCTURE_ERROR and done:
            found.append("S13")
        if metric is Metric.POISON and Metric.POISON in said:
            found.append("S14")
        return tuple(found)

    def _fails(self, what: str, reason: str, duty: Duty, *allowed: str) -> NoReturn:
        found = Finding(f"worker {self.name} {what} at {self.now_ms} ms", reason, duty, None, allowed)
        self.scene.finding = self._miscounted or found
        self._dies()

    def _about(self) -> str:
        return (
            "nothing"
            if self._hand is None or self.belief.is_idle
            else f"{self._hand.item} ({self._hand.token})"
        )


def _nth(faults: tuple[Fault, ...], n: int) -> Fault:
    return faults[n] if n < len(faults) else OK


def _raises(call: str, answered: Answered) -> None:
    if answered.answer is Answer.RETRYABLE:
        raise RetryableError(f"{call}: the store is busy, or its response was lost")
    if answered.answer is Answer.PERMANENT:
        raise PermanentError(f"{call}: refused")
