"""The host that a worker under check is run on: it answers by the script, and judges each call and each pause."""

from __future__ import annotations

from typing import NoReturn

from peeklock.harness.adapter.interface import PermanentError, RetryableError
from peeklock.harness.adapter.wrapping import said
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.worker.host import Completion, Counted, HostDelivery, Woken
from peeklock.harness.worker.schedule import (
    COMPLETES,
    DELAYS,
    DROPS,
    GRACE,
    KNOWS,
    LOCK_OVER,
    RESTS,
    SAME,
    SIGNALS,
    STAYS,
)
from peeklock.harness.worker.script import OK, Fault
from peeklock.harness.worker.watch import InHand, Watch
from peeklock.harness.worker.worker_world import Scene, fetch_seen
from peeklock.spec.law.state import Phase, Result
from peeklock.spec.notation.actions import Answer, Call, Event, Metric

_KINDS = {"result": Result.SUCCESS, "application error": Result.APPLICATION_ERROR, "poison": Result.POISON}
_METRICS = {m.value: m for m in Metric}
_FAR_MS = 10**15


class Stage(Watch):
    """The host of one worker, from its birth to its end."""

    def __init__(self, scene: Scene, name: str) -> None:
        super().__init__(scene, name)
        self._shutdown_at_ms: int | None = None
        self._calls = 0
        self._told_nothing = False

    # The host's side, as the worker calls it

    def fetch(self, lock_timeout_ms: int) -> HostDelivery | None:
        """See Host.fetch."""
        self._enters("fetch", lock_timeout_ms)
        scene = self.scene
        scene.fetches_made += 1
        self._wants_lock("fetch", lock_timeout_ms)
        self._must_have_stopped(leaving=True)
        free = self.belief.is_idle and not self.belief.is_draining
        if free and scene.is_done:
            scene.finished = True
            self._dies()
        self.schedule.since_ms = scene.now_ms if self.belief.is_idle else self.schedule.since_ms
        if not scene.store.may_fetch:
            if not (free and self._told_nothing):
                self._told_nothing = True
                self._sees_no_fetch(Answer.NOTHING, lock_timeout_ms)
            return None
        fault, asked_ms = scene.next_fetch(), scene.now_ms
        self._takes(fault)
        if not scene.store.may_fetch:
            self._sees_no_fetch(Answer.NOTHING, lock_timeout_ms)
            return None
        items = scene.store.moment.items
        outcome = scene.call(Call.FETCH, ms=lock_timeout_ms, fault=fault)
        if outcome.item is None:
            self._sees_no_fetch(Answer.RETRYABLE, lock_timeout_ms)
            raise RetryableError("fetch: the store cannot fetch just now")
        taken = scene.fetched(outcome)
        item, told = taken.item, taken.answer is Answer.OK
        if told:
            self._begins(
                InHand(item, taken.token, taken.attempt_count, scene.next_delivery(item), scene.now_ms)
            )
        self._sees(fetch_seen(self.name, taken, lock_timeout_ms), items[outcome.item])
        if not told:
            raise RetryableError("fetch: the response was lost")
        self.schedule.taken(asked_ms, scene.now_ms)
        if scene.deliveries > scene.most_deliveries:
            self._is_wrong(f"delivered {scene.deliveries} times in all; {scene.unsettled()}", COMPLETES)
        assert self._hand is not None
        return HostDelivery(item, taken.token, taken.attempt_count, self._hand.plan.has_handler)

    def renew(self, token: str, extend_for_ms: int) -> None:
        """See Host.renew."""
        self._enters("renew", extend_for_ms)
        self._wants_lock("renew", extend_for_ms)
        fault = OK
        if self._hand is not None:
            fault = _nth(self._hand.plan.renewals, self._hand.renewals)
            self._hand.renewals += 1
        asked_ms = self.now_ms
        answer = self._calls_store(Call.RENEW, token, fault, extend_for_ms)
        if answer is Answer.OK:
            self.schedule.taken(asked_ms, self.now_ms)
        elif self.belief.is_renewing:
            self.schedule.renewal_failed(self.now_ms)
        _raises("renew", answer)

    def ack(self, token: str, completion: Completion | None) -> None:
        """See Host.ack."""
        self._enters("ack")
        self._must_have_stopped()
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
        answer = self._calls_store(Call.ACK, token, fault, completion=completion)
        self.schedule.since_ms = self.now_ms
        if hand is not None:
            if hand.said is not None and completion.text != hand.said.text:
                self._is_wrong(f"carries {completion.text!r}; allowed: {hand.said.text!r}", SAME)
            hand.said = completion
        _raises("ack", answer)

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool = False) -> None:
        """See Host.abandon."""
        self._enters("abandon", delay_ms)
        self._must_have_stopped()
        due_ms = self._abandon_delay_ms()
        fault = OK if self._hand is None else self._hand.plan.abandon
        call = Call.ABANDON_IGNORING_ATTEMPT if ignore_attempt else Call.ABANDON
        answer = self._calls_store(call, token, fault, delay_ms)
        if delay_ms != due_ms and self.scene.setup.capabilities.abandon_delay:
            self._is_wrong(f"delay_ms is {delay_ms}; allowed: {due_ms}", DELAYS)
        _raises("abandon", answer)

    def start_handler(self, token: str) -> None:
        """See Host.start_handler."""
        self._enters("start_handler")
        self._handles("start_handler")
        self._sees_event(Event.HANDLER_STARTS, token)
        hand = self._hand
        assert hand is not None
        if not hand.plan.has_handler:
            self._is_wrong("no handler is registered for it", KNOWS)
        hand.runs, hand.ends_ms = True, self.now_ms + hand.plan.takes_ms

    def no_handler(self, token: str) -> None:
        """See Host.no_handler."""
        self._enters("no_handler")
        self._handles("no_handler")
        self._sees_event(Event.HANDLER_MISSING, token)
        assert self._hand is not None
        if self._hand.plan.has_handler:
            self._is_wrong("a handler is registered for it", KNOWS)

    def cancel_handler(self, token: str) -> None:
        """See Host.cancel_handler."""
        self._enters("cancel_handler")
        hand = self._running("cancel_handler")
        if self.schedule.signalled_ms is None:
            self._is_told_to_stop(hand, token)

    def abort_handler(self, token: str) -> None:
        """See Host.abort_handler."""
        self._enters("abort_handler")
        hand = self._running("abort_handler")
        if not self._is_grace_over():
            if self.schedule.signalled_ms is None and self.scene.setup.policy.cancellation_grace_ms == 0:
                self._is_told_to_stop(hand, token)
            if self.belief.phase is not Phase.STOPPING:
                self._fails(f"abort_handler {token}", "nothing has told it to stop", GRACE)
            self._has_given_grace(token)
            self._sees_event(Event.HANDLER_STOPPED, token)
        hand.runs = False

    def wait(self, until_ms: int) -> Woken:
        """See Host.wait."""
        self._enters("wait", until_ms)
        times = [until_ms, *self._wakes()]
        to_ms = max(self.now_ms, min(times))
        self._is_in_time(to_ms)
        if to_ms > self.now_ms:
            self._time_passed()
        self.scene.advance(to_ms)
        if self._shutdown_at_ms is not None and self._shutdown_at_ms <= self.now_ms and not self._is_told:
            self.schedule.shutdown_ms = self.now_ms
            self._sees_event(Event.SHUTDOWN, None)
        return self._woken()

    def count(self, metric: Counted) -> None:
        """See Host.count."""
        if self.dead:
            self._dies_again()
        if metric not in _METRICS:
            raise ValueError(f"count: metric is {metric!r}; allowed: {', '.join(_METRICS)}")
        if self.scene.setup.counts:
            self._sees(Observation(counts=_METRICS[metric]), None)
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

    def raised(self, error: Exception | SystemExit) -> None:
        """The worker has raised an exception of its own."""
        self._fails("raises", said(error), STAYS)

    def _crashes(self) -> NoReturn:
        if not self.belief.is_idle:
            self._sees_event(Event.CRASH, None)
        self._dies()

    # What every call begins with

    def _enters(self, call: str, *numbers: int) -> None:
        if self.dead:
            self._dies_again()
        for number in numbers:
            if type(number) is not int or number < 0:
                raise ValueError(f"{call}: {number!r}; allowed: a whole number of milliseconds, 0 or more")
        self._owes_no_count(call)
        told = _waits(numbers[0], self.now_ms) if call == "wait" else call.replace("_", " ")
        self._calls += 1
        self._unseen.append(told)
        if self._calls > self.scene.setup.tolerances.most_calls:
            self._fails(call, f"call {self._calls} since time passed last", RESTS, then=self._unseen)
        hand = self._hand
        if hand is not None and not self.belief.is_idle:
            hand.calls += 1
            if hand.calls == hand.plan.crash_at:
                self._crashes()

    def _handles(self, call: str) -> None:
        if not self.scene.setup.handlers:
            raise ValueError(f"{call}: the worker is declared not to report its handlers (handlers=False)")

    def _is_told_to_stop(self, hand: InHand, token: str) -> None:
        if self.belief.phase is not Phase.STOPPING:
            over_ms = self.schedule.asked_ms + self.scene.setup.policy.lock_timeout_ms
            self._sees_event(Event.LOCK_OVER, token)
            if self.now_ms < over_ms - self.scene.setup.tolerances.early_ms:
                self._is_wrong(f"its lock is held until {over_ms} ms", LOCK_OVER)
        self.schedule.signalled_ms = self.now_ms
        if hand.plan.stops_ms is not None and hand.ends_ms is not None:
            hand.ends_ms = min(hand.ends_ms, self.now_ms + hand.plan.stops_ms)

    def _has_given_grace(self, token: str) -> None:
        grace_ms, told_ms = self.scene.setup.policy.cancellation_grace_ms, self.schedule.signalled_ms
        if told_ms is None:
            self._fails(f"abort_handler {token}", "it was not told to stop", SIGNALS)
        if self.now_ms < told_ms + grace_ms - self.scene.setup.tolerances.early_ms:
            self._fails(f"abort_handler {token}", f"its grace is over at {told_ms + grace_ms} ms", GRACE)

    def _must_have_stopped(self, leaving: bool = False) -> None:
        """What a worker has done with a handler that it runs by itself, by what it does next."""
        if self.scene.setup.handlers or self._hand is None:
            return
        over_ms = self.schedule.asked_ms + self.scene.setup.policy.lock_timeout_ms
        is_over = self.now_ms >= over_ms - self.scene.setup.tolerances.early_ms
        fails = self.belief.phase is Phase.HANDLING and self.schedule.renewal_failing
        if leaving and fails and is_over:
            self._sees_event(Event.LOCK_OVER, self._hand.token)
        if self.belief.phase is Phase.STOPPING:
            self._sees_event(Event.HANDLER_STOPPED, self._hand.token)

    def _running(self, call: str) -> InHand:
        self._handles(call)
        if self._hand is None or not self._hand.runs:
            raise ValueError(f"{call}: no handler runs")
        return self._hand

    # Time

    def _wakes(self) -> list[int]:
        hand = self._hand
        handler = [hand.ends_ms] if hand is not None and hand.runs and hand.ends_ms is not None else []
        asked = [] if self._shutdown_at_ms is None or self._is_told else [self._shutdown_at_ms]
        return handler + asked

    def _time_passed(self) -> None:
        self._calls = 0
        self._unseen.clear()

    def _takes(self, fault: Fault) -> None:
        if fault.takes_ms:
            self.scene.advance(self.now_ms + fault.takes_ms)
            self.schedule.control_ms = self.now_ms
            self._time_passed()

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

    def _begins(self, hand: InHand) -> None:
        self._hand = hand
        if hand.plan.shutdown_ms is not None and not self._is_told:
            self._shutdown_at_ms = self.now_ms + hand.plan.shutdown_ms

    def _calls_store(
        self, call: Call, token: str, fault: Fault, lasts_ms: int = 0, completion: Completion | None = None
    ) -> Answer:
        self._takes(fault)
        scene = self.scene
        item = scene.item_of(token)
        before = None if item is None else scene.record(item)
        outcome = scene.call(call, token=token, ms=lasts_ms, fault=fault)
        answer = outcome.answers[0]
        seen = Observation(
            call,
            item=item,
            token=token,
            answer=answer,
            effect=outcome.effect,
            completions=() if completion is None else (_KINDS[completion.kind],),
            lasts_ms=lasts_ms if call not in (Call.ACK, Call.CANCELLATION_ACK) else None,
        )
        self._sees(seen, before)
        return answer

    def _sees_no_fetch(self, answer: Answer, lock_timeout_ms: int) -> None:
        self._sees(Observation(Call.FETCH, answer=answer, effect=False, lasts_ms=lock_timeout_ms), None)

    def _sees_event(self, event: Event, token: str | None) -> None:
        hand = self._hand
        item = None if hand is None or self.belief.is_idle else hand.item
        seen = Observation(event=event, item=item if token else None, token=token)
        self._sees(seen, None if item is None else self.scene.record(item))


def _waits(until_ms: int, now_ms: int) -> str:
    when = "" if until_ms > now_ms else ", which is now" if until_ms == now_ms else ", which is over"
    return f"wait until {until_ms} ms{when}"


def _nth(faults: tuple[Fault, ...], n: int) -> Fault:
    return faults[n] if n < len(faults) else OK


def _raises(call: str, answer: Answer) -> None:
    if answer is Answer.RETRYABLE:
        raise RetryableError(f"{call}: the store is busy, or its response was lost")
    if answer is Answer.PERMANENT:
        raise PermanentError(f"{call}: refused")
