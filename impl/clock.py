"""One source of time for a store and its workers, in integer milliseconds."""

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time and lets it pass. Everything that shares locks must share one clock."""

    def now_ms(self) -> int:
        """The present, in milliseconds since a fixed but arbitrary beginning."""
        ...

    def wait_ms(self, n: int) -> None:
        """Return when at least `n` milliseconds have passed; at once when n <= 0."""
        ...


class VirtualClock:
    """A clock that moves only when told to, for tests and simulations."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """The time it was last moved to, in milliseconds."""
        return self._now_ms

    def wait_ms(self, n: int) -> None:
        """Move on by `n` milliseconds without waiting; not at all when n <= 0."""
        self._now_ms += max(0, n)

    def advance(self, n_ms: int) -> None:
        """Move on by `n_ms` milliseconds. ValueError when that would go back in time."""
        if n_ms < 0:
            raise ValueError(f"time does not go back: advance({n_ms})")
        self._now_ms += n_ms


class RealClock:
    """The system's wall clock: the only one that several processes and a reboot agree on."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    def wait_ms(self, n: int) -> None:
        """Sleep for `n` milliseconds; not at all when n <= 0."""
        if n > 0:
            time.sleep(n / 1000)
