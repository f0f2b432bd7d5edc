"""Many workers on one store at the same time: what they saw is recorded, and held against the contract.

A check is many short rounds. In each a few items are enqueued, and the workers make their calls, each time all at the
same moment: they fetch, renew, ack or abandon, repeat what they did, and present tokens of others. Between the phases
of a round time passes, so that locks run out; on a clock of the store's own without waiting.
"""

from __future__ import annotations

import math
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from attrs import define, field

from peeklock.harness.adapter import outcomes
from peeklock.harness.adapter.clocks import MovedClock, RunClock, WaitedClock, unit_ms
from peeklock.harness.adapter.options import check_options
from peeklock.harness.adapter.program import BrokenProgram
from peeklock.harness.adapter.wrapping import (
    AdapterError,
    Errors,
    Guarded,
    Unwatched,
    check_adapter,
    check_capabilities,
    errors_of,
    made_by,
)
from peeklock.harness.concurrent.thread_pool import Aim, Crew, Handle, Recorder, Worker, switching_often
from peeklock.harness.failure.concurrent_failure import calls_about, failure_of
from peeklock.harness.failure.coverage import Coverage
from peeklock.harness.failure.report import ContractViolation, Inconclusive, Report
from peeklock.harness.failure.report_text import kept, tale_of, told
from peeklock.harness.linear.history import Begins, Invoke, Operation, Return, joined
from peeklock.harness.linear.item_model import StoreAnswer
from peeklock.harness.linear.store_history import StoreHistory, seen_of
from peeklock.harness.monitor.world import Violation
from peeklock.harness.run.store_judge import miscounted, unsent
from peeklock.harness.store.check import MOST_BUSY, left_out, subject_of
from peeklock.harness.wire.format import DEFAULT_TIMEOUT_S
from peeklock.harness.wire.serving import Served, command_of
from peeklock.harness.wire.store import StoreProgram
from peeklock.spec.notation.actions import Answer, Call
from peeklock.spec.reading.timed_store import honest_actions
from peeklock.spec.variants.capabilities import STANDARD, Capabilities, CompletionWrite, Order

USUALLY_S = 5.0
"""How long a check takes that is not told otherwise."""
VIRTUAL_LOCK_MS = 1_000
PHASES = (0.0, 0.5, 1.0, 0.001)
"""How far the clock moves before each phase of a round, in lock timeouts."""
CALLS_IN_A_PHASE = 4
ITEMS_IN_A_ROUND = 3
AIMS = (Aim.FETCH, Aim.MEET, Aim.MEET, Aim.ANY)
"""What the workers are about at a moment, one of these."""


def check_store_concurrently(
    make_store: Callable[[], Any],
    capabilities: Capabilities = STANDARD,
    *,
    make_client: Callable[[Any], Any] | None = None,
    threads: int = 8,
    seconds: float | None = None,
    rounds: int | None = None,
    seed: int = 0,
    retryable: Errors = (),
    permanent: Errors = (),
    call_limit_s: float = DEFAULT_TIMEOUT_S,
    name: str | None = None,
    artifacts: Path | str | None = None,
) -> Report:
    """Let many threads use one store, and hold what they saw against the contract that its capabilities declare.

    ``make_store`` returns the adapter of a fresh, empty store. ``make_client`` makes what one thread uses, in that
    thread, such as a connection of its own; by default all use the store itself. It is the store's ``advance`` that
    moves the time of all. The check ends after ``seconds`` or so many ``rounds``, by default after five seconds, or
    when something is found; ``seed`` chooses the calls, and chance how they meet. ``call_limit_s`` is how long a call
    may take, in seconds. ``retryable``, ``permanent`` and ``artifacts`` are as in ``check_store``.

    ``ContractViolation`` with the calls that no order explains, ``Inconclusive`` where nothing can be said,
    ``AdapterError`` where the adapter or an option is at fault, or its calls do not return.
    """
    __tracebackhide__ = True

    def guarded(adapter: Any) -> Guarded:
        return Guarded(adapter, capabilities, Unwatched(), *errors)

    @contextmanager
    def handle(number: int) -> Iterator[Guarded]:
        _ = number
        if make_client is None:
            yield own
            return
        client = make_client(store)
        try:
            yield guarded(client)
        finally:
            _close(client)

    limits = {"seconds": seconds, "rounds": rounds, "seed": seed, "call_limit_s": call_limit_s}
    try:
        check_options(threads=threads, name=name, artifacts=artifacts, **limits)
        errors = errors_of("retryable", retryable), errors_of("permanent", permanent)
        store = made_by(make_store, Unwatched())
        check_adapter(store, capabilities)
        own = guarded(store)
        subject = name or subject_of(make_store)
        try:
            return _Check(subject, capabilities, (own,), handle, threads, seed, call_limit_s, artifacts).run(
                seconds, rounds
            )
        finally:
            _close(store)
    except (AdapterError, KeyboardInterrupt) as error:
        raise error.with_traceback(None) from None


def check_store_by_processes(
    open_store: Callable[[str], Any],
    capabilities: Capabilities = STANDARD,
    *,
    processes: int = 3,
    seconds: float | None = None,
    rounds: int | None = None,
    seed: int = 0,
    retryable: Errors = (),
    permanent: Errors = (),
    call_limit_s: float = DEFAULT_TIMEOUT_S,
    name: str | None = None,
    artifacts: Path | str | None = None,
) -> Report:
    """Let several processes use one store, and hold what they saw against the contract.

    ``open_store`` returns an adapter of the store at a place: the path of a folder that is empty at first, the same
    for all of them. It is called once in each process, so it has to be a function at the top of a module that can be
    imported. ``advance`` is called in each of them. All else is as in ``check_store_concurrently``; what a process
    that dies wrote to stderr is in the ``AdapterError``.
    """
    __tracebackhide__ = True
    try:
        check_capabilities(capabilities)
        limits = {"seconds": seconds, "rounds": rounds, "seed": seed, "call_limit_s": call_limit_s}
        check_options(processes=processes, name=name, artifacts=artifacts, **limits)
        own = errors_of("retryable", retryable), errors_of("permanent", permanent)
        command = command_of(Served(open_store, capabilities, *own))
        return check_programs(
            command,
            processes,
            capabilities,
            seconds=seconds,
            rounds=rounds,
            seed=seed,
            call_limit_s=call_limit_s,
            name=name or subject_of(open_store),
            artifacts=artifacts,
        )
    except (AdapterError, BrokenProgram) as error:
        raise AdapterError(str(error)) from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt from None


def check_programs(
    command: Sequence[str],
    programs: int,
    capabilities: Capabilities | None = None,
    *,
    seconds: float | None = None,
    rounds: int | None = None,
    seed: int = 0,
    call_limit_s: float = DEFAULT_TIMEOUT_S,
    name: str | None = None,
    artifacts: Path | str | None = None,
    watch: Callable[[int, int], None] = lambda rounds, calls: None,
) -> Report:
    """Let several copies of a program that is a store use one store, as ``check_store_by_processes``.

    By default its capabilities and its name are those that it announces. ``watch`` is told the rounds and the calls
    that were made. ``BrokenProgram`` where one of them does not keep to the wire format.
    """
    __tracebackhide__ = True
    check_options(processes=programs)
    with ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="peeklock-"))
        patience_s = max(call_limit_s, DEFAULT_TIMEOUT_S)  # to begin takes longer than a call
        running = [stack.enter_context(StoreProgram(command, patience_s)) for _ in range(programs)]
        for program in running:
            program.capabilities = capabilities or program.capabilities
        declared = running[0].capabilities
        handles = [Guarded(p.new_store(place), declared, Unwatched()) for p in running]
        for program in running:
            program.set_timeout(call_limit_s)
        check = _Check(
            name or running[0].name,
            declared,
            tuple(handles),
            lambda number: nullcontext(handles[number]),
            programs,
            seed,
            2 * call_limit_s,
            artifacts,
            watch,
        )
        report = check.run(seconds, rounds)
        for handle in handles:
            _close(handle.adapter)
        return report


def _close(adapter: Any) -> None:
    close: Callable[[], None] | None = getattr(adapter, "close", None)
    if close is not None:
        close()


@define
class _Check:
    """One store, its clock, and what is known of what it did."""

    subject: str
    capabilities: Capabilities
    clocks: tuple[Guarded, ...]
    """What the time of the store is moved by, where it can be; the harness makes its own calls by the first."""
    handle: Handle
    workers: int
    seed: int
    call_limit_s: float
    artifacts: Path | str | None
    watch: Callable[[int, int], None] = lambda rounds, calls: None
    clock: RunClock = field(init=False)
    recorder: Recorder = field(init=False)
    judge: StoreHistory = field(init=False)
    lock_ms: int = VIRTUAL_LOCK_MS
    answers: Counter[str] = field(factory=Counter)
    rounds: int = 0
    overlapping: int = 0
    made: int = 0
    written: Counter[str] = field(factory=Counter)
    """The completions that were seen in the store, by item."""
    events: tuple[Invoke | Return, ...] = ()
    """Of the latest round."""

    def __attrs_post_init__(self) -> None:
        self.clock = MovedClock(self._move) if self.capabilities.virtual_clock else WaitedClock()
        self.recorder = Recorder(self.clock)
        self.judge = StoreHistory(self.capabilities)

    def _move(self, ms: int) -> None:
        for store in self.clocks:
            store.plain("between calls", "advance", ms)

    def run(self, seconds: float | None, rounds: int | None) -> Report:
        """So many rounds, and as many as there is time for; what was found is raised."""
        __tracebackhide__ = True
        began_s = time.monotonic()
        if seconds is None:
            seconds = math.inf if rounds is not None else USUALLY_S
        chance = random.Random(self.seed)
        if not self.capabilities.virtual_clock:
            self.lock_ms = unit_ms(lambda: self._own(Call.FETCH, lasts_ms=VIRTUAL_LOCK_MS))
        crew = Crew(
            [
                Worker(
                    f"w{n}",
                    random.Random(f"{self.seed}/{n}"),
                    self.recorder,
                    self.capabilities,
                    self.lock_ms,
                )
                for n in range(self.workers)
            ],
            self.handle,
            self.recorder,
        )
        try:
            with switching_often():
                while self.rounds != rounds and time.monotonic() < began_s + seconds:
                    self._round(crew, chance)
                    self.watch(self.rounds, self.answers.total())
        except Violation as violation:
            raise self._found(violation, time.monotonic() - began_s) from None
        finally:
            crew.dismiss()
        return self._report(time.monotonic() - began_s)

    def _round(self, crew: Crew, chance: random.Random) -> None:
        """One round, judged at its end."""
        self.rounds += 1
        items = [f"r{self.rounds}-{n}" for n in range(ITEMS_IN_A_ROUND)]
        for item in items:
            self._own(Call.ENQUEUE, items=(item,))
        for share in PHASES:
            self.clock.pass_ms(int(share * self.lock_ms))
            crew.calls([chance.choice(AIMS) for _ in range(CALLS_IN_A_PHASE)], items, self.call_limit_s)
        self._clear()
        self._judged()

    def _own(self, call: Call, **of: Any) -> StoreAnswer:
        self.made += 1
        return self.recorder.made("harness", self.made, self.clocks[0], call, **of)

    def _clear(self) -> None:
        """Nothing is left of the round."""
        if Call.CANCEL in self.capabilities.calls:
            enqueued = [e.what.items[0] for e in self._begun() if e.what.call is Call.ENQUEUE]
            self._own(Call.CANCEL, items=tuple(enqueued))
            return
        self.clock.pass_ms(self.lock_ms)  # more than any delay
        while (token := self._own(Call.FETCH, lasts_ms=self.lock_ms).token) is not None:
            self._own(Call.ACK, token=token)

    def _begun(self) -> list[Invoke]:
        return [e for e in self.recorder.events if isinstance(e, Invoke)]

    def _judged(self) -> None:
        self.events = tuple(self.recorder.events)
        self.recorder.events.clear()
        running: dict[Any, Call] = {}
        for event in self.events:
            if isinstance(event, Invoke):
                self.overlapping += bool(running)
                running[event.key] = event.what.call
            else:
                self.answers[f"{running.pop(event.key).value} -> {event.result.answer.value}"] += 1
        for event in self.events:
            self.judge.add(event)
        if self.capabilities.completion is not CompletionWrite.NONE:
            self._look()

    def _look(self) -> None:
        """Hold the completions that are new, and those of the round's items, against what the calls explain."""
        made = [step.operation for step in joined(self.events) if isinstance(step, Begins)]
        enqueued = [o.what.items[0] for o in made if o.what.call is Call.ENQUEUE]
        new = self.clocks[0].plain("between calls", "completions")[self.written.total() :]
        self.written.update(item for item, _ in new)
        for item in dict.fromkeys((*enqueued, *(item for item, _ in new))):
            number, possible = self.written[item], self.judge.completions_of(item)
            if number not in possible:
                raise Violation(seen_of(_latest(made, item), item), (), *miscounted(item, number, possible))
        for item, completion in new:
            if self.recorder.sent.get(completion, Answer.PERMANENT) is Answer.PERMANENT:
                raise Violation(seen_of(_latest(made, item), item), (), *unsent(item, completion))

    def _found(self, violation: Violation, seconds: float) -> ContractViolation:
        failure = failure_of(
            self.subject,
            self.capabilities,
            self.workers,
            self.events,
            violation,
            seed=self.seed,
            rounds=self.rounds,
            seconds=seconds,
        )
        return ContractViolation(failure, told(failure, kept(failure, tale_of(failure), self.artifacts)))

    def _report(self, seconds: float) -> Report:
        __tracebackhide__ = True
        calls, busy = self.answers.total(), sum(n for a, n in self.answers.items() if a.endswith(_BUSY))
        if not self.overlapping:
            raise Inconclusive(
                f"{self.subject}: nothing can be said: no two of {calls} calls overlapped in {seconds:.1f} s"
            )
        if busy > MOST_BUSY * calls:
            raise Inconclusive(
                f"{self.subject}: nothing can be said: {busy} of {calls} calls answered a retryable error"
            )
        coverage = self._coverage()
        warnings = tuple(f"never seen: {label}" for label in coverage.never)
        report = Report(
            self.subject,
            "store",
            self.rounds,
            calls,
            seconds,
            self.seed,
            coverage,
            warnings,
            self.overlapping,
        )
        outcomes.note(report.line())
        return report

    def _coverage(self) -> Coverage:
        left = left_out(self.capabilities) | {
            "faults": "none is made where calls overlap: a retryable error is one that the store answers by itself",
            "one moment for all items": "a fetch that finds nothing may have found each item taken at another moment",
        }
        if self.capabilities.order is Order.FIFO:
            left["the order of items whose enqueues overlap"] = "either of them may be the older one"
            left["the order where a fetch began before the enqueue of what it returned"] = (
                "it is not known yet which items are older"
            )
        labels = {
            f"{a.label.call.value} -> {a.label.answer.value}"
            for a in honest_actions(self.capabilities)
            if a.label.call is not None and a.label.answer is not None
        }
        never = sorted(n for n in labels if not self.answers[n] and not n.endswith(_BUSY))
        return Coverage(dict(sorted(self.answers.items())), tuple(never), left)


_BUSY = Answer.RETRYABLE.value


def _latest(made: Sequence[Operation], item: str) -> Operation:
    """The latest of the calls that has to do with this item; of all, where none has."""
    return (calls_about(item, made) or tuple(made))[-1]
