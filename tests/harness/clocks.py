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


class WaitedClock:
    """Real time. A wait ends where it was foreseen to, so that slow calls before it do not add up."""

    def __init__(self) -> None:
        self._began_ns, self._foreseen_ms = time.monotonic_ns(), 0

    def now_ms(self) -> int:
        """The time, rounded down."""
        return (time.monotonic_ns() - self._began_ns) // 1_000_000

    def after_ms(self) -> int:
        """The time, rounded up."""
        return self.now_ms() + 1

    def pass_ms(self, ms: int) -> None:
        """Wait, unless the time has come already."""
        self._foreseen_ms += ms
        left_ns = self._began_ns + self._foreseen_ms * 1_000_000 - time.monotonic_ns()
        if left_ns > 0:
            time.sleep(left_ns / 1e9)
