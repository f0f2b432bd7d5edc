"""What is seen of a store, held against its contract: the monitor, and three looks that no call's answer gives.

The contract is the declared one: what it explains is right, whatever the standard promises.

A token that was never issued is nobody's, so it must be refused; a cancel that does not name an item says that it had
no row; and the completions can be looked at. The items are judged together, in the order in which they were handed out
as well; what that costs grows with their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from attrs import evolve

from peeklock.harness.monitor.monitor import Monitor
from peeklock.harness.monitor.observation import Observation, shown
from peeklock.harness.monitor.standing import Standing
from peeklock.harness.monitor.world import Scope, Violation, World
from peeklock.harness.run.spec_store import refusals
from peeklock.harness.run.steps import NEVER_ISSUED
from peeklock.spec.compose import PROMISES
from peeklock.spec.law.state import Row, completions, current, row
from peeklock.spec.notation.actions import ABANDONS, ACKS, Answer, Call
from peeklock.spec.notation.terms import Variable
from peeklock.spec.reading.evaluate import PLACE
from peeklock.spec.reading.timed_store import honest_actions, variant
from peeklock.spec.variants.capabilities import OF_COMPLETIONS, Capabilities, UnknownToken

TIMED = Scope(clock=True)
_ROWS = list(Row)
_QUEUED = frozenset(map(_ROWS.index, (Row.DELAYED, Row.READY, Row.LOCKED, Row.EXPIRED)))
_NOT_QUEUED = frozenset(range(len(_ROWS))) - _QUEUED
_FETCHABLE = frozenset(map(_ROWS.index, (Row.READY, Row.EXPIRED)))

NOT_SILENT = "the store is declared silent of such tokens, so it must answer ok and change nothing"

Looks: TypeAlias = Mapping[int, tuple[tuple[str, str], ...]]
"""The completions that were there, as (item, completion), by how many observations came before."""


class StoreJudge:
    """Takes in what was seen of a store, one observation after the other; used like a ``Monitor``."""

    def __init__(
        self,
        capabilities: Capabilities,
        looks: Looks | None = None,
        ends: tuple[int, Violation] | None = None,
        scope: Scope = TIMED,
    ) -> None:
        """A judge; of a run that was judged before, with what was looked at, and at which observation it ended how."""
        self.capabilities, self._ends = capabilities, ends
        self._monitor = Monitor(variant(capabilities), scope, honest_actions(capabilities))
        self._looks = looks or {}
        self._count = 0
        self._sent: dict[str, Observation] = {}
        """The acks by the completions that they carried."""
        self._tokens_unseen = self._payloads_unseen = False
        self._had_it_happened: tuple[str, ...] = ()
        """The promises that the latest answer breaks if all has happened that it says."""
        self._latest: Observation | None = None

    @property
    def taken(self) -> Counter[str]:
        """How often each action of the specification explained something, by its name."""
        return self._monitor.taken

    def observe(self, seen: Observation) -> None:
        """Take in one observation; ``Violation`` when no state explains it."""
        self._count += 1
        self._latest = seen
        if self._ends is not None and self._count == self._ends[0]:
            raise self._ends[1]
        if seen.payload is not None:
            self._sent[seen.payload] = seen
        elif seen.call is Call.ACK:
            self._payloads_unseen = True
        if seen.unasked:
            assert seen.call is not None
            raise self.unasked(seen, f"{seen.call.value} -> {Answer.OK.value}")
        if seen.call is Call.FETCH:
            self._tokens_unseen |= (
                seen.token is None and seen.answer is not Answer.NOTHING and seen.effect is not False
            )
        if seen.call is not Call.FETCH and seen.token is not None and seen.token not in self._monitor.tokens:
            self._stranger(seen)
        elif seen.call is Call.CANCEL and seen.answer is Answer.NOTHING:
            self._had_no_row(seen)
        elif seen.call is Call.CANCEL and not self._may_stand(seen.item, _QUEUED):
            raise self._violation(("cancel -> it had no row",), "there was no row", ("C4",))
        else:
            try:
                self._monitor.observe(seen)
            except Violation as violation:
                raise self._put_plainly(violation) from None
        looked = self._looks.get(self._count)
        if looked is not None:
            self.look(looked)

    def look(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Take in the completions, as (item, text); ``Violation`` when no state has them, or no ack carried one."""
        assert self._latest is not None, "there is something to see before there are completions"
        items = [item for item, _ in pairs]
        for item in dict.fromkeys((*self._monitor.items, *items)):
            number, possible = items.count(item), self._monitor.completions_of(item)
            if number not in possible:
                raise self._violation(*miscounted(item, number, possible))
            if len(possible) > 1:
                self._narrow(item, completions, frozenset({number}))
        for item, text in () if self._payloads_unseen else pairs:
            if text not in self._sent or self._sent[text].answer is Answer.PERMANENT:
                raise self._never_sent(item, text)

    def also(self, violation: Violation, pairs: Sequence[tuple[str, str]]) -> Violation:
        """The violation by the latest answer, where the completions were looked at after it: they may break more."""
        try:
            self.look(pairs)
        except Violation as seen_there:
            named = {*violation.promises, *self._had_it_happened, *seen_there.promises}
            if violation.seen.call is Call.ACK and violation.seen.token in self._monitor.tokens:
                # An ack does enqueue: whether its row went with it, or was gone, the step itself says.
                named -= {"S3"} - {*self._had_it_happened}
            violation.promises = tuple(p.id for p in PROMISES if p.id in named)
        return violation

    def pass_time(self, now_ms: int, until_ms: int | None = None) -> None:
        """Let the timers that are due run out."""
        self._monitor.pass_time(now_ms, until_ms)

    def completions_of(self, item: str) -> frozenset[int]:
        """How many completions the item can have, by the states that explain the run."""
        return self._monitor.completions_of(item)

    def told(self) -> tuple[tuple[str, ...], ...]:
        """The states that explain the run, in words; a few of them."""
        return self._monitor.told()

    def standings(self) -> tuple[Standing, ...]:
        """The states that explain the run, with names; of those who call nothing is known."""
        return tuple(evolve(s, workers={}) for s in self._monitor.standings())

    def described(self, world: World) -> tuple[str, ...]:
        """One state in words."""
        return self._monitor.described(world)

    def unasked(self, seen: Observation, instead: str) -> Violation:
        """What to raise where a store answers a retryable error and nothing was wrong."""
        self._latest = seen
        return self._violation(
            (instead,),
            "a retryable error, but no fault was made and the store is not said to be busy",
            ("C4",),
        )

    def _never_sent(self, item: str, completion: str) -> Violation:
        return self._violation(*unsent(item, completion))

    def _stranger(self, seen: Observation) -> None:
        instead = not_for_strangers(seen, self.capabilities, self._tokens_unseen)
        if instead:
            if self._should_be_silent(seen):
                raise self._violation(instead, NOT_SILENT, ("C4",))
            raise self._violation(instead, "the token was never issued", ("S5", "C4"))

    def _should_be_silent(self, seen: Observation) -> bool:
        """Does it refuse an abandon whose token is current in no state, though it is declared to say nothing of it?"""
        silent = self.capabilities.abandon_unknown_token is UnknownToken.SILENT
        if not silent or seen.call not in ABANDONS or seen.answer is not Answer.PERMANENT:
            return False
        number = self._monitor.tokens.get(seen.token or "")
        return not any(
            of == number and w.state[1][item][PLACE[current]] == k
            for w in self._monitor.worlds
            for of, item, k in w.core.tokens
        )

    def _had_no_row(self, seen: Observation) -> None:
        assert seen.item is not None
        if seen.item not in self._monitor.items:
            return
        if not self._may_stand(seen.item, _NOT_QUEUED):
            raise self._violation(
                (f"cancel {seen.item} -> ok",), f"the row of {shown(seen.item)} was there", ("C4",)
            )
        self._narrow(seen.item, row, _NOT_QUEUED)

    def _put_plainly(self, violation: Violation) -> Violation:
        """The violation with what a caller needs to know: no fault was made, so no error may be retried."""
        seen = violation.seen
        allowed = violation.allowed
        if seen.answer is not Answer.RETRYABLE and self.capabilities.error_classes:
            allowed = tuple(a for a in allowed if not a.endswith(f"-> {Answer.RETRYABLE.value}"))
        reason = violation.reason
        if seen.call is Call.FETCH:
            reason = {
                Answer.NOTHING: "there was an item to hand out",
                Answer.OK: "this was not the oldest that could be handed out"
                if self._may_stand(seen.item, _FETCHABLE)
                else "this could not be handed out now",
            }.get(seen.answer or Answer.RETRYABLE, reason)
            reason = {"S4": "this token was given out before", "C2": "the attempt count is wrong"}.get(
                "".join(violation.promises[:1]), reason
            )
        elif seen.call not in (Call.ENQUEUE, Call.CANCEL):
            reason = {
                Answer.OK: "the store should have refused this",
                Answer.PERMANENT: "the store should have done this",
            }.get(seen.answer or Answer.RETRYABLE, reason)
        promises = violation.promises
        if self._should_be_silent(seen):
            reason, promises = NOT_SILENT, ("C4",)
        # A completion more is seen by looking only: that is for ``also`` to name.
        self._had_it_happened = promises
        promises = tuple(p for p in promises if p not in OF_COMPLETIONS)
        return Violation(seen, violation.before, allowed, reason, promises, violation.told)

    def _narrow(self, item: str, variable: Variable, values: frozenset[int]) -> None:
        number, place = self._monitor.items[item], PLACE[variable]
        self._monitor.narrow(lambda world: world.state[1][number][place] in values)

    def _may_stand(self, item: str | None, rows: frozenset[int]) -> bool:
        """Has the item's row, by some state that explains the run, one of these standings?"""
        number = self._monitor.items.get(item or "")
        return number is not None and any(
            w.state[1][number][PLACE[row]] in rows for w in self._monitor.worlds
        )

    def _violation(self, allowed: tuple[str, ...], reason: str, promises: tuple[str, ...]) -> Violation:
        assert self._latest is not None
        return Violation(self._latest, self._monitor.worlds, allowed, reason, promises, self._monitor.told())


def not_for_strangers(seen: Observation, capabilities: Capabilities, unseen: bool) -> tuple[str, ...]:
    """What should have been answered to a token that nobody was seen to get; nothing where it was answered so.

    ``unseen``: there was a fetch whose token nobody saw, so that it may be this one, unless the harness made it up.
    """
    assert seen.call is not None
    if unseen and seen.token != NEVER_ISSUED:
        return ()
    allowed = refusals(capabilities, seen.call)
    if seen.answer is None and not seen.effect:
        return ()
    if seen.answer in allowed or (seen.answer is Answer.RETRYABLE and not seen.effect):
        return ()
    return tuple(f"{seen.call.value} -> {a.value}" for a in Answer if a in allowed)


Wrong: TypeAlias = tuple[tuple[str, ...], str, tuple[str, ...]]
"""What would be right, what is wrong, and the promises that it breaks."""


def miscounted(item: str, number: int, possible: Iterable[int]) -> Wrong:
    """What is wrong where an item has so many completions."""
    right = tuple(f"{_counted(n)} of {shown(item)}" for n in sorted(possible))
    are = "are" if number > 1 else "is"
    return (
        right,
        f"there {are} now {_counted(number)} of {shown(item)}",
        ("S2", "S3") if number > 1 else ("S3",),
    )


def unsent(item: str, completion: str) -> Wrong:
    """What is wrong where an item has a completion that no accepted ack carried."""
    reason = (
        f"there is now the completion {shown(completion)!r} of {shown(item)}, which no accepted ack carried"
    )
    return (f"the completion of {shown(item)} that the ack carried",), reason, ("S3",)


def _counted(number: int) -> str:
    return {0: "no completion", 1: "one completion"}.get(number, f"{number} completions")


def carries_completion(call: Call | None) -> bool:
    """Can this call enqueue a completion, or wrongly do so?"""
    return call in (*ACKS, Call.RENEW, Call.CANCEL) or (call is not None and call.value.startswith("abandon"))
