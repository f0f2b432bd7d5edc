"""The time of a run: a store's own clock that the harness moves, or real time that it waits for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class RunClock(Protocol):
    """When things happen in a run, in milliseconds since its beginning."""

    def now_ms(self) -> int:
        """Not later than what happens next."""
        ...

    def after_ms(self) -> int:
        """Not earlier than what happened last."""
        ...

    def pass_ms(self, ms: int) -> None:
        """Let so much time pass."""
        ...


class MovedClock:
    """A store's own clock: it stands still but for ``advance``."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance, self._now_ms = advance, 0

    def now_ms(self) -> int:
        """The time, exactly."""
        return self._now_ms

    after_ms = now_ms

    def pass_ms(self, ms: int) -> None:
        """Move the store's clock."""
        self._advance(ms)
        self._now_ms += ms


SLACK_MS = 2
"""By how much a store that counts whole milliseconds, on a clock of its own, may be early or late."""


class WaitedClock:
    """Real time. A wait ends where it was foreseen to, so that slow calls before it do not add up."""

    def __init__(self) -> None:
        self._began_ns, self._foreseen_ms = time.monotonic_ns(), 0

    def now_ms(self) -> int:
        """The time, and a little less."""
        return max(self._exact_ms() - SLACK_MS, 0)

    def after_ms(self) -> int:
        """The time, and a little more."""
        return self._exact_ms() + 1 + SLACK_MS

    def _exact_ms(self) -> int:
        return (time.monotonic_ns() - self._began_ns) // 1_000_000

    def pass_ms(self, ms: int) -> None:
        """Wait, unless the time has come already."""
        self._foreseen_ms += ms
        left_ns = self._began_ns + self._foreseen_ms * 1_000_000 - time.monotonic_ns()
        if left_ns > 0:
            time.sleep(left_ns / 1e9)


SHORTEST_MS = 20
ROUND_TRIPS = 20
"""A lock lasts so many of the store's slowest calls, so that it does not run out where it is not meant to."""


def unit_ms(call: Callable[[], object], tries: int = 30) -> int:
    """How long a short lock should be on a store in real time, by its slowest of some calls; in milliseconds."""
    slowest_ns = 0
    for _ in range(tries):
        began_ns = time.monotonic_ns()
        call()
        slowest_ns = max(slowest_ns, time.monotonic_ns() - began_ns)
    return max(SHORTEST_MS, ROUND_TRIPS * slowest_ns // 1_000_000)
