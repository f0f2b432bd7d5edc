"""A program that is a store: the adapter's calls as requests, one answer for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from peeklock.harness.adapter.interface import Delivery, PermanentError, RetryableError
from peeklock.harness.wire.format import DEFAULT_TIMEOUT_S, Conversation, Line, capabilities_of, told
from peeklock.spec.variants.capabilities import Capabilities

ADMINISTRATION = ("new", "advance", "fail_next", "close")
"""The requests that are no calls of the contract: they cannot fail."""


class StoreProgram(Conversation):
    """A store in another process, for many runs: each begins with a fresh empty store."""

    def __init__(
        self, command: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S, directory: str | None = None
    ) -> None:
        super().__init__(command, "store", timeout_s, directory)
        self.capabilities: Capabilities = capabilities_of(self.announced)
        announced = self.announced
        self.shares: bool = "shared_place" in announced.data and announced.typed("shared_place", bool)
        """Several of it can have one store open, at a place that they are told."""
        self._number = 0

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self.child.pid

    def set_timeout(self, seconds: float) -> None:
        """How long each message may take from now on."""
        self.child.timeout_s = seconds

    def new_store(self, place: str | None = None) -> ProgramStore:
        """A fresh empty store; the one before it is over.

        At a place, the path of a folder that is empty at first, it is one that other programs open as well.
        """
        if place is not None and not self.shares:
            raise self.broken(
                "the handshake",
                "it does not say that several programs can have one store open; allowed where they are to: "
                '"shared_place": true',
            )
        self.lines.clear()
        self.runs += 1
        self._number = 0
        self.request("new", {} if place is None else {"place": place})
        return ProgramStore(self)

    def request(self, call: str, arguments: dict[str, Any]) -> Line:
        """One request; the line that answers it. Raises what the store raises."""
        self.requests += 1
        self._number = number = self._number + 1
        line = self.ask(
            {"id": number, "call": call, **arguments}, f"run {self.runs}, request {number}, {call}"
        )
        line.answers(number)
        if "error" not in line.data:
            line.known(("id", "ok"))
            if "ok" not in line.data:
                line.wrong("neither ok nor error is there; allowed: one of the two")
            return line
        line.known(("id", "error", "message"))
        message = line.typed("message", str) if "message" in line.data else ""
        kind = line.data["error"]
        if kind not in ("retryable", "permanent"):
            line.wrong(f"error is {told(kind)}; allowed: retryable, permanent")
        if call in ADMINISTRATION:
            line.wrong(
                f"it answers an error ({told(message)}); {call} is no call of the store and may not fail"
            )
        raise (RetryableError if kind == "retryable" else PermanentError)(message)


class ProgramStore:
    """One run's store: a ``StoreAdapter`` with virtual time and injected faults, as far as the program has them."""

    def __init__(self, program: StoreProgram) -> None:
        self._program = program

    def _nothing(self, call: str, arguments: dict[str, Any]) -> None:
        line = self._program.request(call, arguments)
        if line.data["ok"] is not None:
            line.wrong(f"ok is {told(line.data['ok'])}; allowed: null")

    def enqueue(self, item: str, delay_ms: int) -> None:
        """See ``StoreAdapter``."""
        self._nothing("enqueue", {"item": item, "delay_ms": delay_ms})

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        """See ``StoreAdapter``."""
        line = self._program.request("fetch", {"lock_timeout_ms": lock_timeout_ms})
        if line.data["ok"] is None:
            return None
        found = line.inside("ok", ("item", "token", "attempt_count"))
        counted = self._program.capabilities.attempt_counts or found.data.get("attempt_count") is not None
        return Delivery(
            found.typed("item", str),
            found.typed("token", str),
            found.typed("attempt_count", int) if counted else None,
        )

    def renew(self, token: str, extend_for_ms: int) -> None:
        """See ``StoreAdapter``."""
        self._nothing("renew", {"token": token, "extend_for_ms": extend_for_ms})

    def ack(self, token: str, completion: str | None) -> None:
        """See ``StoreAdapter``."""
        self._nothing("ack", {"token": token, "completion": completion})

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        """See ``StoreAdapter``."""
        arguments = {"token": token, "delay_ms": delay_ms, "ignore_attempt": ignore_attempt}
        self._nothing("abandon", arguments)

    def cancel(self, items: Sequence[str]) -> Sequence[str]:
        """See ``StoreAdapter``."""
        line = self._program.request("cancel", {"items": list(items)})
        for item in line.typed("ok", list):
            if not isinstance(item, str):
                line.wrong(f"ok has {told(item)} in it; allowed: the ids of items, which are texts")
        return tuple(line.data["ok"])

    def completions(self) -> Sequence[tuple[str, str]]:
        """See ``StoreAdapter``."""
        line = self._program.request("completions", {})
        found = []
        for number in range(len(line.typed("ok", list))):
            one = line.inside("ok", ("item", "completion"), number)
            found.append((one.typed("item", str), one.typed("completion", str)))
        return found

    def advance(self, ms: int) -> None:
        """See ``VirtualTime``."""
        self._nothing("advance", {"ms": ms})

    def fail_next(self, call: str, after_effect: bool) -> None:
        """See ``FaultInjection``."""
        self._nothing("fail_next", {"which": call, "after_effect": after_effect})

    def close(self) -> None:
        """See ``Closing``; nothing where the program has been ended."""
        if not self._program.is_over:
            self._nothing("close", {})
