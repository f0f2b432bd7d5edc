"""Replaying test vectors: read from the files that ``peeklock vectors`` writes, made of any store's adapter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import define, field, frozen

from peeklock.harness.adapter.clocks import MovedClock, RunClock, WaitedClock
from peeklock.harness.adapter.wrapping import Guarded, Told, Watchdog
from peeklock.harness.vectors.files import AFTER_EFFECT, BEFORE_EFFECT, ERROR, NEVER_ISSUED, Expected, Vector
from peeklock.harness.vectors.files import VectorsError as VectorsError
from peeklock.harness.vectors.files import read_vectors as read_vectors
from peeklock.spec.notation.actions import Answer

ARGUMENTS = {
    "enqueue": ("item", "delay_ms"),
    "fetch": ("lock_timeout_ms",),
    "renew": ("token", "extend_for_ms"),
    "ack": ("token", "completion"),
    "abandon": ("token", "delay_ms", "ignore_attempt"),
    "cancel": ("items",),
}
"""The arguments of each call, in the order in which an adapter's method takes them."""
_LOST = "that it takes effect and its answer is lost"


@frozen
class Mismatch:
    """The first thing in which a store differs from a vector."""

    vector: Vector
    place: str
    """Which step, or the end."""
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.vector.name}\n  {self.place}: expected {self.expected}, got {self.got}"


def replay(
    vector: Vector,
    adapter: Any,
    *,
    injects_faults: bool = False,
    retryable: tuple[type[Exception], ...] = (),
    permanent: tuple[type[Exception], ...] = (),
    call_limit_s: float = 10.0,
) -> Mismatch | None:
    """Make a vector's calls of a fresh, empty store, through its ``StoreAdapter``; None where all is as expected.

    ``injects_faults`` says that the adapter has ``fail_next``; without it a call that is to fail before its effect is
    not made, and the answer of one that is to fail after it is dropped. ``retryable`` and ``permanent`` are exceptions
    of the store's own that count as such. A store without a virtual clock is waited for. ``AdapterError`` where the
    adapter is at fault, or a call takes longer than ``call_limit_s`` seconds.
    """
    with Watchdog(call_limit_s) as watchdog:
        store = Guarded(adapter, vector.capabilities, watchdog, retryable, permanent)
        return _Replay(vector, store, injects_faults).mismatch()


@define
class _Replay:
    vector: Vector
    store: Guarded
    injects_faults: bool
    clock: RunClock = field(init=False)
    place: str = "before the first step"
    now_ms: int = 0
    tokens: dict[str, str] = field(factory=dict)
    """The store's own tokens, by the names that they have in the vector."""
    issued: set[str] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        self.clock = WaitedClock()
        if self.vector.capabilities.virtual_clock:
            self.clock = MovedClock(lambda ms: self.store.plain(self.place, "advance", ms))

    def mismatch(self) -> Mismatch | None:
        """The first one."""
        try:
            self._take("step", self.vector.steps)
            self._look("after the last step")
            self._take("drain", self.vector.drain)
            self._look("after the drain")
        except _Differs as found:
            expected, got = found.args
            return Mismatch(self.vector, self.place, expected, got)
        return None

    def _take(self, what: str, steps: Sequence[Expected]) -> None:
        for number, step in enumerate(steps, 1):
            self.place = f"{what} {number} of {len(steps)}, {step.call} at {step.at_ms} ms ({step.state})"
            if step.at_ms > self.now_ms:
                self.clock.pass_ms(step.at_ms - self.now_ms)
                self.now_ms = step.at_ms
            told = self._made(step)
            if told is not None:
                self._judge(step, told)

    def _made(self, step: Expected) -> Told | None:
        """Make the call; None where it fails before it has begun."""
        if step.fault is not None and self.injects_faults:
            self.store.plain(self.place, "fail_next", step.call, step.fault == AFTER_EFFECT)
        elif step.fault == BEFORE_EFFECT:
            return None
        arguments = [self._argument(name, step.arguments) for name in ARGUMENTS[step.call]]
        return self.store.call(self.place, step.call, *arguments)

    def _argument(self, name: str, given: Mapping[str, Any]) -> Any:
        value = given[name]
        return self.tokens.get(value, NEVER_ISSUED) if name == "token" else value

    def _judge(self, step: Expected, told: Told) -> None:
        found = told.value if step.call == "fetch" and told.answer is Answer.OK else None
        nothing = step.call == "fetch" and told.answer is Answer.OK and found is None
        answer = (Answer.NOTHING if nothing else told.answer).value
        got = answer if found is None else f"item {found.item}"
        if step.fault == AFTER_EFFECT and not self.injects_faults:
            if answer != Answer.OK.value:
                raise _Differs(_LOST, got)
        elif step.answer == ERROR:
            if answer not in (Answer.RETRYABLE.value, Answer.PERMANENT.value):
                raise _Differs(ERROR, got)
        elif answer != step.answer:
            raise _Differs(step.answer, got)
        if found is not None:
            self._compare(step, found)
        if step.call == "cancel" and told.answer is Answer.OK:
            removed = (step.gives or {}).get("removed", [])
            if sorted(told.value) != sorted(removed):
                raise _Differs(f"that it removes {_listed(removed)}", _listed(told.value))

    def _compare(self, step: Expected, found: Any) -> None:
        """A delivery, with what is expected of it."""
        if found.token in self.issued:
            raise _Differs("a token that was never issued before", f"{found.token} again")
        self.issued.add(found.token)
        for name, value in (step.gives or {}).items():
            if name == "token":
                self.tokens[value] = found.token
            elif getattr(found, name) != value:
                raise _Differs(f"{name.replace('_', ' ')} {value}", str(getattr(found, name)))

    def _look(self, place: str) -> None:
        """At the completions."""
        if self.vector.completions is None:
            return
        self.place = place
        found = self.store.plain(place, "completions")
        if tuple(found) != self.vector.completions:
            raise _Differs(_completions(self.vector.completions), _completions(found))


class _Differs(Exception):
    """What was expected, and what there was."""


def _completions(pairs: Iterable[tuple[str, str]]) -> str:
    return "the completions " + _listed(f"{completion!r} of {item}" for item, completion in pairs)


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words) or "none"
