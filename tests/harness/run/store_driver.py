"""Taking a run to a store: each step is made, what was answered is seen, and the judge is asked at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from attrs import evolve, field, frozen

from peeklock.harness.adapter.clocks import MovedClock, RunClock, WaitedClock
from peeklock.harness.adapter.wrapping import AdapterError, Guarded, Told
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.monitor.world import Violation
from peeklock.harness.run.spec_store import SpecStore
from peeklock.harness.run.steps import NEVER_ISSUED, Program, Step
from peeklock.harness.run.store_judge import StoreJudge, carries_completion
from peeklock.spec.law.state import Result
from peeklock.spec.notation.actions import ABANDONS, ACKS, Answer, Call
from peeklock.spec.reading.timed_store import Fault, Outcome
from peeklock.spec.variants.capabilities import Capabilities, CompletionWrite, UnknownToken


@frozen
class Run:
    """What became of a program on a store."""

    program: Program
    observations: tuple[Observation, ...] = ()
    steps: tuple[int, ...] = ()
    """For each observation, the number of the step that it is of."""
    looks: Mapping[int, tuple[tuple[str, str], ...]] = field(factory=dict)
    """The completions that were there, by how many observations came before."""
    violation: Violation | None = None
    taken: Counter[str] = field(factory=Counter)
    calls: int = 0
    busy: int = 0
    """Calls that answered a retryable error although no fault was made."""


class Driver:
    """Takes one program to one fresh store."""

    def __init__(self, store: Guarded, capabilities: Capabilities, *, may_be_busy: bool = False) -> None:
        self._store, self._capabilities, self._may_be_busy = store, capabilities, may_be_busy
        self._judge = StoreJudge(capabilities)
        self._forecast = SpecStore(capabilities)
        self._clock: RunClock = WaitedClock()
        if capabilities.virtual_clock:
            self._clock = MovedClock(lambda ms: store.plain(self._place, "advance", ms))
        self._place = "before the first step"
        self._step = 0
        self._deliveries: list[tuple[str, str] | None] = []
        """Worker and token of each delivery; None for one that nobody knows."""
        self._observations: list[Observation] = []
        self._steps: list[int] = []
        self._looks: dict[int, tuple[tuple[str, str], ...]] = {}
        self._at_ms = 0
        self._until_ms: int | None = None
        self._calls = self._busy = 0

    def run(self, program: Program) -> Run:
        """Take the steps until one is a violation, or all are taken. ``AdapterError`` as from ``Guarded``."""
        violation = None
        self._must_be_empty()
        try:
            for self._step, step in enumerate(program, 1):
                self._place = f"step {self._step}"
                self._take(step)
            self._look()
        except Violation as found:
            violation = found
            if carries_completion(found.seen.call) and len(self._observations) not in self._looks:
                self._look(found)
        except _Busy:
            pass
        return Run(
            program,
            tuple(self._observations),
            tuple(self._steps),
            self._looks,
            violation,
            self._judge.taken,
            self._calls,
            self._busy,
        )

    def _must_be_empty(self) -> None:
        if self._capabilities.completion is not CompletionWrite.NONE:
            left = self._store.plain(self._place, "completions")
            if left:
                raise AdapterError(
                    f"{self._place}: completions returned {left[0]!r}; make_store should make a fresh, empty store "
                    "for each run"
                )

    def _take(self, step: Step) -> None:
        if step.presents and step.delivery and not self._is_known(step.delivery):
            return  # the store went another way that the contract leaves open
        foreseen = self._forecast.take(step, Fault.NONE)
        if step.call is None:
            self._clock.pass_ms(step.ms)
            return
        match step.call:
            case Call.ENQUEUE:
                self._enqueue(step)
            case Call.FETCH:
                self._fetch(step, foreseen)
            case Call.CANCEL:
                self._cancel(step)
            case _:
                self._present(step, foreseen)
        if carries_completion(step.call):
            self._look()

    def _is_known(self, delivery: int) -> bool:
        return delivery <= len(self._deliveries) and self._deliveries[delivery - 1] is not None

    # The calls

    def _made(self, step: Step, name: str, *args: object) -> Told | None:
        """Make the call; None where it fails before it has begun."""
        self._calls += 1
        self._at_ms = self._clock.now_ms()
        told = None
        if step.fault is not Fault.BEFORE_EFFECT or self._capabilities.fault_injection:
            if step.fault is not Fault.NONE and self._capabilities.fault_injection:
                self._store.plain(self._place, "fail_next", name, step.fault is Fault.AFTER_EFFECT)
            told = self._store.call(self._place, name, *args)
        self._until_ms = None if self._capabilities.virtual_clock else self._clock.after_ms()
        return told

    def _enqueue(self, step: Step) -> None:
        told = self._made(step, "enqueue", step.items[0], step.ms)
        assert told is not None
        seen = Observation(Call.ENQUEUE, item=step.items[0], answer=told.answer, lasts_ms=step.ms)
        self._see(step, seen, "enqueue -> ok")

    def _fetch(self, step: Step, foreseen: Outcome) -> None:
        told = self._made(step, "fetch", step.ms)
        found = None if told is None else told.value
        worker = letter(len(self._deliveries))
        ok = Answer.NOTHING if found is None else Answer.OK
        answer, effect = outcome_of(step, self._capabilities, None if told is None else told.answer, ok)
        seen = Observation(Call.FETCH, worker=worker, answer=answer, effect=effect, lasts_ms=step.ms)
        if found is not None:
            attempt = found.attempt_count if self._capabilities.attempt_counts else None
            seen = evolve(seen, item=found.item, token=found.token, attempt=attempt)
            self._deliveries.append((worker, found.token) if answer is Answer.OK else None)
        elif effect is None and answer is Answer.RETRYABLE and foreseen.item is not None:
            self._deliveries.append(None)
        instead = "nothing" if foreseen.item is None else self._forecast.items[foreseen.item]
        self._see(step, seen, f"fetch -> {instead}")

    def _cancel(self, step: Step) -> None:
        told = self._made(step, "cancel", step.items)
        assert told is not None
        if told.answer is not Answer.OK:
            self._see(step, Observation(Call.CANCEL, item=step.items[0], answer=told.answer), "cancel -> ok")
            return
        for item in dict.fromkeys((*step.items, *told.value)):
            answer = Answer.OK if item in told.value else Answer.NOTHING
            self._see(step, Observation(Call.CANCEL, item=item, answer=answer))

    def _present(self, step: Step, foreseen: Outcome) -> None:
        call = step.call
        assert call is not None
        worker, token = self._holder(step.delivery)
        completion = completion_of(self._step)
        args: tuple[object, ...] = (step.ms,)
        if call in ACKS:
            args = (completion if call is Call.ACK else None,)
        elif call in ABANDONS:
            args = (step.ms, call is Call.ABANDON_IGNORING_ATTEMPT)
        told = self._made(step, method_of(call), token, *args)
        answer, effect = outcome_of(step, self._capabilities, None if told is None else told.answer)
        seen = Observation(
            call,
            worker=worker,
            token=token,
            answer=answer,
            effect=effect,
            completions=(Result.SUCCESS,) if call is Call.ACK else (),
            payload=completion if call is Call.ACK else None,
            lasts_ms=None if call in ACKS else step.ms,
        )
        self._see(step, seen, f"{call.value} -> {foreseen.answers[0].value}")

    def _holder(self, delivery: int) -> tuple[str, str]:
        if not delivery:
            return "a stranger", NEVER_ISSUED
        known = self._deliveries[delivery - 1]
        assert known is not None
        return known

    # What was seen

    def _see(self, step: Step, seen: Observation, instead: str = "") -> None:
        by_itself = seen.answer is Answer.RETRYABLE and step.fault is Fault.NONE
        unasked = by_itself and self._capabilities.error_classes and not self._may_be_busy
        seen = evolve(seen, at_ms=self._at_ms, until_ms=self._until_ms, unasked=unasked)
        self._observations.append(seen)
        self._steps.append(self._step)
        self._busy += by_itself
        if unasked:
            raise self._judge.unasked(seen, instead)
        if by_itself and step.call in (Call.ENQUEUE, Call.CANCEL):
            raise _Busy
        self._judge.observe(seen)

    def _look(self, after: Violation | None = None) -> None:
        """Look at the completions; ``after`` is what was wrong with the latest answer already."""
        if self._capabilities.completion is CompletionWrite.NONE or not self._observations:
            return
        pairs = tuple(self._store.plain(self._place, "completions"))
        self._looks[len(self._observations)] = pairs
        if after is None:
            self._judge.look(pairs)
        else:
            self._judge.also(after, pairs)


class _Busy(Exception):
    """The store cannot do what the rest of the run needs."""


def outcome_of(
    step: Step, capabilities: Capabilities, told: Answer | None, ok: Answer = Answer.OK
) -> tuple[Answer, bool | None]:
    """What the caller is told of what the store ``told``, and whether the call took effect where that is known.

    None was told where the call failed on its way; ``ok`` is what it is called here where all went well.
    """
    if told is None:
        return Answer.RETRYABLE, False
    answer = ok if told is Answer.OK else told
    if capabilities.fault_injection:
        before = answer is Answer.RETRYABLE and step.fault is Fault.BEFORE_EFFECT
        return answer, False if before else None
    if step.fault is Fault.AFTER_EFFECT and answer is Answer.OK:
        silent = capabilities.abandon_unknown_token is UnknownToken.SILENT
        return Answer.RETRYABLE, None if silent and step.call in ABANDONS else True
    return answer, None


def completion_of(step: int) -> str:
    """The completion that the ack of this step carries."""
    return f"result of step {step}"


def method_of(call: Call) -> str:
    """The adapter's method for a call that presents a token."""
    return "ack" if call in ACKS else "abandon" if call in ABANDONS else call.value


def letter(number: int) -> str:
    """The name of the n-th client, from 0."""
    letter = chr(ord("A") + number % 26)
    return letter if number < 26 else f"{letter}{number // 26}"
