"""What surrounds a worker under check: the store, the time, the orchestrator and a rival, all by the script."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from attrs import evolve, field, frozen

from peeklock.harness.monitor.monitor import Monitor
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.monitor.world import Scope, Violation
from peeklock.harness.run.spec_store import SpecStore
from peeklock.harness.run.steps import Step
from peeklock.harness.story.story import TaleStep
from peeklock.harness.worker.schedule import Duty, Tolerances
from peeklock.harness.worker.script import OK, DeliveryPlan, Fault, Script
from peeklock.spec.law.policy import Policy
from peeklock.spec.law.state import Result, completions
from peeklock.spec.notation.actions import Answer, Call, Event, Metric
from peeklock.spec.reading.evaluate import PLACE, Record
from peeklock.spec.reading.timed_store import Outcome
from peeklock.spec.variants.capabilities import STANDARD, Capabilities, Order, protocol_with
from peeklock.spec.variants.variant import Variant

RIVAL = "rival"
_WEARING_MS = 1


@frozen
class Setup:
    """What is declared of a worker, and of the store that it is to be checked with."""

    policy: Policy
    capabilities: Capabilities = STANDARD
    counts: bool = True
    """The worker reports the verdicts that it counts."""
    handlers: bool = True
    """The worker lets the host run its handlers; else it runs them itself, and says nothing of them."""
    tolerances: Tolerances = field(factory=Tolerances)

    @property
    def variant(self) -> Variant:
        """The protocol that the worker is held to: every fault class is on."""
        return Variant(self.policy)

    def monitor(self) -> Monitor:
        """A monitor of all that the harness sees of such a worker."""
        scope = Scope(clock=True, counts=self.counts, handlers=self.handlers, stops=True)
        return Monitor(self.variant, scope, protocol_with(self.capabilities))


@frozen
class Fetched:
    """What a fetch took, and what its caller was told."""

    item: str
    token: str
    attempt_count: int
    answer: Answer


@frozen
class Finding:
    """What a worker did that it may not, or did not do that it must."""

    what: str
    """What was seen, and when."""
    reason: str
    duty: Duty | None = None
    """The duty of time that was not done."""
    violation: Violation | None = None
    """What the monitor said."""
    allowed: tuple[str, ...] = ()
    """What would have been allowed."""
    promises: tuple[str, ...] = ()
    """The promises that this breaks, the most telling first."""
    then: tuple[TaleStep, ...] = ()
    """What the worker did after all that was seen, the last of it wrong; empty where what was seen last is wrong."""

    @property
    def kind(self) -> str:
        """By what one failure is told from another while a script is shortened."""
        if self.promises:
            return self.promises[0]
        return "unexplained" if self.duty is None else self.duty.name

    def __str__(self) -> str:
        duty = "" if self.duty is None else f" [{self.duty.name}]"
        return f"{self.what}: {self.reason}{duty}"


class Scene:
    """One run's surroundings, which outlive the workers that are run in it."""

    def __init__(self, script: Script, setup: Setup) -> None:
        self.script, self.setup = script, setup
        # A rival takes the very item whose lock has expired, be there an older one; else the oldest comes first.
        self.store = SpecStore(evolve(setup.capabilities, order=Order.NONE))
        self.monitor = setup.monitor()
        self.seen: list[Observation] = []
        self.finding: Finding | None = None
        self.finished = False
        self.fetches_made = 0
        self.progress_ms = 0
        """When an item was handed out or settled last."""
        self.deliveries = 0
        self._fetches = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._planned = 0
        self._rivals: dict[str, str] = {}
        self._settled: set[str] = set()
        for n, plan in enumerate(script.items, 1):
            self._enqueue(f"i{n}", plan.delay_ms if plan.left is None else 0)
            if plan.left is not None:
                self._wear(f"i{n}", setup.policy.max_attempts - plan.left)

    # Time

    @property
    def now_ms(self) -> int:
        """The one clock of the run."""
        return self.store.now_ms

    def advance(self, to_ms: int) -> None:
        """Let time pass, and all happen that is due."""
        while (next_ms := self._next_ms()) is not None and next_ms <= to_ms:
            for item in self.store.pass_time(next_ms):
                self._when_expired(item)
            while self._events and self._events[0][0] <= next_ms:
                heappop(self._events)[2]()
        self.store.pass_time(max(to_ms, self.now_ms))

    def at(self, at_ms: int, what: Callable[[], None]) -> None:
        """Let something happen at this time."""
        self._planned += 1
        heappush(self._events, (at_ms, self._planned, what))

    def _next_ms(self) -> int | None:
        return min((*self.store.dues_ms[:1], *(at_ms for at_ms, _, _ in self._events[:1])), default=None)

    # The store

    def call(
        self, call: Call, item: str | None = None, token: str | None = None, ms: int = 0, fault: Fault = OK
    ) -> Outcome:
        """Make a call of the store, which fails as the fault says."""
        items = () if item is None else (item,)
        first, *others = fault.ways
        return self.store.take(Step(call, items, self._delivery(token), ms, first), *others)

    def _delivery(self, token: str | None) -> int:
        return next((n for n in range(1, len(self.store.deliveries) + 1) if token_text(n) == token), 0)

    def item_of(self, token: str) -> str | None:
        """The item that a token was issued for."""
        number = self._delivery(token)
        return self.store.items[self.store.deliveries[number - 1][0]] if number else None

    def record(self, item: str) -> Record:
        """The item's record in the specification."""
        return self.store.moment.items[self.store.items.index(item)]

    def is_completed(self, item: str) -> bool:
        """Was a completion of the item enqueued?"""
        return self.record(item)[PLACE[completions]] > 0

    def fetched(self, outcome: Outcome) -> Fetched:
        """The latest fetch, which took something."""
        assert outcome.item is not None, "there is something to fetch"
        item, token = self.store.items[outcome.item], token_text(len(self.store.deliveries))
        return Fetched(item, token, outcome.after.attempt_count(outcome.item), outcome.answers[0])

    # What is seen

    def see(self, seen: Observation) -> None:
        """Let the monitor judge what happens now; ``Violation`` when it is not allowed."""
        seen = evolve(seen, at_ms=self.now_ms, place=f"step {len(self.seen) + 1}")
        self.seen.append(seen)
        self.monitor.observe(seen)
        gone = {name for i, name in enumerate(self.store.items) if self.store.moment.is_settled(i)}
        if gone != self._settled:
            self._settled, self.progress_ms = gone, self.now_ms

    @property
    def is_done(self) -> bool:
        """Are all items settled?"""
        return len(self._settled) == len(self.store.items)

    def unsettled(self) -> str:
        """The items that are not settled, in words."""
        left = [(i, name) for i, name in enumerate(self.store.items) if name not in self._settled]
        return "; ".join(f"{name} is {self.store.moment.row(i).value}" for i, name in left)

    # The script

    def next_delivery(self, item: str) -> DeliveryPlan:
        """What is to happen to the delivery of this item that the worker has just got."""
        plans = self.script.deliveries
        plan = plans[self.deliveries] if self.deliveries < len(plans) else DeliveryPlan()
        self.deliveries += 1
        self.progress_ms = self.now_ms
        self._rivals[item] = plan.rival
        if plan.cancelled_ms is not None:
            self.at(self.now_ms + plan.cancelled_ms, lambda: self._cancel(item))
        return plan

    def next_fetch(self) -> Fault:
        """What is to happen to this fetch."""
        faults = self.script.fetches
        self._fetches += 1
        return faults[self._fetches - 1] if self._fetches <= len(faults) else OK

    @property
    def most_deliveries(self) -> int:
        """More than this many no worker needs."""
        each = self.setup.policy.max_attempts + len(self.script.fetches) + 3
        return len(self.script.deliveries) + each * len(self.script.items)

    def _enqueue(self, item: str, delay_ms: int) -> None:
        self.call(Call.ENQUEUE, item, ms=delay_ms)
        self.see(Observation(Call.ENQUEUE, item=item, answer=Answer.OK, effect=True, lasts_ms=delay_ms))

    def _cancel(self, item: str) -> None:
        if self.call(Call.CANCEL, item).removed:
            self.see(Observation(Call.CANCEL, item=item, answer=Answer.OK, effect=True))

    # The rival

    def _when_expired(self, item: str) -> None:
        mode = self._rivals.pop(item, "none")
        if mode == "none":
            return
        taken = self._rival_fetches(item, self.setup.policy.lock_timeout_ms)
        if mode == "crashes" or taken.attempt_count > self.setup.policy.max_attempts:
            self._rival_does(Event.CRASH, taken)
            return
        self._rival_does(Event.HANDLER_STARTS, taken)
        self._rival_does(Event.HANDLER_SUCCEEDS, taken)
        done = self.call(Call.ACK, token=taken.token)
        self.see(
            Observation(
                Call.ACK,
                worker=RIVAL,
                item=item,
                token=taken.token,
                answer=done.answers[0],
                effect=done.effect,
                completions=(Result.SUCCESS,),
            )
        )
        if self.setup.counts:
            self.see(Observation(counts=Metric.SUCCESS, worker=RIVAL))

    def _rival_fetches(self, item: str, lock_timeout_ms: int) -> Fetched:
        taken = self.fetched(self.call(Call.FETCH, item, ms=lock_timeout_ms))
        self.see(fetch_seen(RIVAL, taken, lock_timeout_ms))
        return taken

    def _rival_does(self, event: Event, taken: Fetched) -> None:
        if self.setup.handlers or event is Event.CRASH:
            self.see(Observation(event=event, worker=RIVAL, item=taken.item, token=taken.token))

    def _wear(self, item: str, deliveries: int) -> None:
        """The rival gets it so often, and crashes each time."""
        for _ in range(deliveries):
            taken = self._rival_fetches(item, _WEARING_MS)
            self._rival_does(Event.CRASH, taken)
            self.advance(self.now_ms + _WEARING_MS)


def token_text(number: int) -> str:
    """The token of the n-th delivery of a run, from 1."""
    return f"t{number}"


def fetch_seen(worker: str, taken: Fetched, lock_timeout_ms: int) -> Observation:
    """A fetch that took something, as it is seen."""
    told = taken.answer is Answer.OK
    return Observation(
        Call.FETCH,
        worker=worker,
        item=taken.item,
        token=taken.token if told else None,
        attempt=taken.attempt_count if told else None,
        answer=taken.answer,
        effect=True,
        lasts_ms=lock_timeout_ms,
    )
