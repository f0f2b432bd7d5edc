"""Watching one worker: what it does goes to the monitor, what it does not do in time is found by the duties."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NoReturn

from attrs import define, evolve

from peeklock.harness.monitor.belief import Belief
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.monitor.world import Violation
from peeklock.harness.story.story import TaleStep
from peeklock.harness.worker.host import Completion, Crashed, Ended
from peeklock.harness.worker.schedule import (
    COMPLETES,
    COUNTS,
    DRAINS,
    LOCK_LENGTH,
    WAITS,
    Due,
    Duty,
    Schedule,
    backoff_ms,
)
from peeklock.harness.worker.script import DeliveryPlan
from peeklock.harness.worker.worker_world import Finding, Scene
from peeklock.spec.compose import PROMISES
from peeklock.spec.law.state import Phase, Trouble
from peeklock.spec.notation.actions import Call
from peeklock.spec.reading.evaluate import Record
from peeklock.spec.variants.capabilities import OF_A_STORE

MOST_SWALLOWED = 100
"""So many calls may a worker make that was told that it is dead: to tidy up, it may need a few."""
_FAR_MS = 10**15
_AT_ONCE = (Phase.FETCHED, Phase.STOPPING, Phase.CANCELLING, Phase.ABANDONING, Phase.DECIDING)


@define
class InHand:
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


class Watch:
    """The eyes on one worker, from its birth to its end."""

    def __init__(self, scene: Scene, name: str) -> None:
        self.scene, self.name = scene, name
        setup = scene.setup
        self.belief = Belief(setup.variant, setup.capabilities, setup.handlers)
        self.schedule = Schedule(setup.policy, setup.tolerances, setup.handlers)
        self.schedule.since_ms = scene.now_ms
        self.dead = False
        self.when_swallowed: Callable[[], None] = lambda: None
        self._raised_again = 0
        self._hand: InHand | None = None
        self._miscounted: Finding | None = None
        self._unseen: list[str] = []
        """The calls since time passed last that the monitor has not seen."""

    @property
    def now_ms(self) -> int:
        """The time."""
        return self.scene.now_ms

    # What is seen

    def _sees(self, seen: Observation, item: Record | None) -> None:
        """Let the monitor judge what the worker does; ``Crashed``, with a finding, when it is not allowed."""
        seen = evolve(seen, worker=self.name)
        scene, was = self.scene, self.belief.phase
        self._unseen.clear()
        try:
            scene.see(seen)
        except Violation as violation:
            self._is_not_allowed(violation)
            return
        if self._miscounted is not None:
            self._dies()
        if seen.counts is None:
            self.belief.follow(seen, item)
        if self.belief.phase is not was:
            self.schedule.since_ms, self.schedule.signalled_ms = self.now_ms, None

    def _is_not_allowed(self, violation: Violation) -> None:
        """A wrong count is told with what the worker does next, which says more of what it meant by it."""
        found = self._found(violation)
        if violation.seen.counts is not None and self._miscounted is None:
            self._miscounted = found
            self.scene.monitor.excuse_counts(self.name)
            return
        if self._miscounted is not None:
            named = {*found.promises, *self._miscounted.promises}
            found = evolve(self._miscounted, promises=tuple(p.id for p in PROMISES if p.id in named))
        self.scene.finding = found
        self._dies()

    def _found(self, violation: Violation) -> Finding:
        seen = violation.seen
        what, reason = f"{evolve(seen, place='')} at {self.now_ms} ms", self._reason(seen, violation)
        # The store is the specification's own, and keeps what a store promises.
        promises = tuple(pid for pid in violation.promises if pid not in OF_A_STORE)
        return Finding(what, reason, self._owed(seen), violation, violation.allowed, promises)

    def _owed(self, seen: Observation) -> Duty | None:
        """What the worker had to do at once, and did something else."""
        if self.belief.is_draining and seen.call in (Call.FETCH, Call.RENEW):
            return DRAINS
        if self.belief.phase not in _AT_ONCE:
            return None
        return self._dues()[0].duty

    def _reason(self, seen: Observation, violation: Violation) -> str:
        hand = self._hand
        if hand is None or seen.token is None or seen.call is None or seen.call is Call.FETCH:
            return violation.reason
        if self.belief.is_idle:
            return f"it has nothing in hand, and is done with {hand.token}"
        return violation.reason if seen.token == hand.token else f"in its hand is {hand.token}"

    def _fails(self, what: str, reason: str, duty: Duty, *allowed: str, then: Sequence[str] = ()) -> NoReturn:
        """``Crashed``, with a duty that was not done in time, or by what the monitor does not see.

        ``then`` is what the worker did since the monitor saw something of it, where it is more than ``what``.
        """
        who = f"worker {self.name}"
        steps = tuple(TaleStep(None, who, does, at_ms=self.now_ms) for does in then or (what,))
        found = Finding(f"{who} {what} at {self.now_ms} ms", reason, duty, None, allowed, then=steps)
        self.scene.finding = self._miscounted or found
        self._dies()

    def _is_wrong(self, reason: str, duty: Duty) -> NoReturn:
        """``Crashed``, with a duty that was not done by what the monitor has seen last."""
        what = f"{evolve(self.scene.seen[-1], place='')} at {self.now_ms} ms"
        self.scene.finding = self._miscounted or Finding(what, reason, duty)
        self._dies()

    def _about(self) -> str:
        return (
            "nothing"
            if self._hand is None or self.belief.is_idle
            else f"{self._hand.item} ({self._hand.token})"
        )

    def _dies(self) -> NoReturn:
        self.dead = True
        self.scene.finding = self.scene.finding or self._miscounted
        raise Crashed

    def leave(self) -> None:
        """Nobody waits for the worker any more: its next call does not return."""
        self.dead, self._raised_again = True, MOST_SWALLOWED

    def _dies_again(self) -> NoReturn:
        """``Crashed`` once more; a worker that has swallowed it for long is held for ever, in its own thread."""
        self._raised_again += 1
        if self._raised_again > MOST_SWALLOWED:
            self.when_swallowed()
            threading.Event().wait()
        raise Crashed

    # What is owed, and when

    def _owes_no_count(self, call: str) -> None:
        if self._miscounted is not None:
            if call in ("wait", "return"):
                self._dies()
            return
        owed = self.belief.counts
        if owed is not None and self.scene.setup.counts:
            self._fails(call, f"the verdict {owed.value} was not counted", COUNTS, f"counts {owed.value}")

    def _wants_lock(self, call: str, ms: int) -> None:
        due_ms = self.scene.setup.policy.lock_timeout_ms
        if ms != due_ms:
            self._fails(call, f"asks for {ms} ms; the policy's lock_timeout_ms is {due_ms}", LOCK_LENGTH)

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

    @property
    def _is_told(self) -> bool:
        return self.schedule.shutdown_ms is not None

    def _is_grace_over(self) -> bool:
        begun_ms, setup = self.schedule.shutdown_ms, self.scene.setup
        if begun_ms is None:
            return False
        return self.now_ms >= begun_ms + setup.policy.shutdown_grace_ms - setup.tolerances.early_ms

    def _is_in_time(self, to_ms: int) -> None:
        """``Crashed`` where something is due before that time."""
        scene, dues = self.scene, self._dues()
        if not scene.is_done:
            dues.append(Due(COMPLETES, scene.progress_ms + scene.setup.tolerances.patience_ms))
        first = min(dues, key=lambda d: d.at_ms, default=Due(COMPLETES, _FAR_MS))
        if to_ms > first.at_ms:
            scene.advance(first.at_ms)
            reason = f"{self._about()}: not done in time"
            if first.duty is COMPLETES:
                reason = scene.unsettled()
            self._fails("waits on", reason, first.duty)

    def _dues(self) -> list[Due]:
        belief = self.belief
        return self.schedule.dues(belief.phase, belief.attempts, belief.result, belief.is_renewing)
