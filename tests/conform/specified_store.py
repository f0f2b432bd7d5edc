"""A store that is the specification's own, so that it has any capabilities."""

from __future__ import annotations

from typing import Any

from peeklock.harness.adapter.interface import Delivery, PermanentError, RetryableError
from peeklock.model.vectors.files import NEVER_ISSUED
from peeklock.spec.law.state import completions
from peeklock.spec.notation.actions import ABANDONS, ACKS, Call
from peeklock.spec.reading.evaluate import PLACE
from peeklock.spec.reading.timed_store import STRANGER, Step, nothing, timed_store, with_room
from peeklock.spec.variants.capabilities import Capabilities


class SpecifiedStore:
    """Answers what the specification does; where that leaves a choice, always the same."""

    def __init__(self, capabilities: Capabilities, injects: bool = False) -> None:
        self.store, self.moment = timed_store(capabilities), nothing(1)
        self.injects, self.failing = injects, dict[str, bool]()
        self.items: list[str] = []
        self.tokens: dict[str, tuple[int, int]] = {}
        self.done: list[tuple[str, str]] = []
        self.carried = ""

    def _called(self, step: Step) -> Any:
        after_effect = self.failing.pop(_method(step.call), None)
        if after_effect is False:
            raise RetryableError
        # Where the store may choose, it takes the last.
        chosen = self.store.outcomes(self.moment, step)[-1]
        before, self.moment = self.moment, chosen.after
        if step.token is not None and step.token != STRANGER:
            i, place = step.token[0], PLACE[completions]
            if self.moment.items[i][place] > before.items[i][place]:
                self.done.append((self.items[i], self.carried))
        if after_effect:
            raise RetryableError
        if chosen.answers[0].value.endswith("error"):
            raise PermanentError
        return chosen

    def enqueue(self, item: str, delay_ms: int) -> None:
        self.items.append(item)
        self.moment = with_room(self.moment)
        self._called(Step(Call.ENQUEUE, delay_ms, items=(len(self.items) - 1,)))

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        chosen = self._called(Step(Call.FETCH, lock_timeout_ms))
        if chosen.item is None:
            return None
        token = self.moment.latest_token(chosen.item)
        text = f"{self.items[chosen.item]}/{token[1]}"
        self.tokens[text] = token
        return Delivery(self.items[chosen.item], text, self.moment.attempt_count(chosen.item))

    def _held(self, token: str) -> tuple[int, int]:
        assert token in self.tokens or token == NEVER_ISSUED
        return self.tokens.get(token, STRANGER)

    def renew(self, token: str, extend_for_ms: int) -> None:
        self._called(Step(Call.RENEW, extend_for_ms, token=self._held(token)))

    def ack(self, token: str, completion: str | None) -> None:
        self.carried = completion or ""
        call = Call.CANCELLATION_ACK if completion is None else Call.ACK
        self._called(Step(call, token=self._held(token)))

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        call = Call.ABANDON_IGNORING_ATTEMPT if ignore_attempt else Call.ABANDON
        self._called(Step(call, delay_ms, token=self._held(token)))

    def cancel(self, items: list[str]) -> list[str]:
        known = tuple(self.items.index(i) for i in items if i in self.items)
        return [self.items[i] for i in self._called(Step(Call.CANCEL, items=known)).removed]

    def completions(self) -> list[tuple[str, str]]:
        return self.done

    def advance(self, ms: int) -> None:
        (later,) = self.store.outcomes(self.moment, Step(ms=ms))
        self.moment = later.after

    def fail_next(self, call: str, after_effect: bool) -> None:
        assert self.injects
        self.failing[call] = after_effect


def _method(call: Call | None) -> str:
    assert call is not None
    return "ack" if call in ACKS else "abandon" if call in ABANDONS else call.value
