"""Progress on a terminal, silence elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType

from peeklock.model.search.engine import Statistics
from peeklock.spec.reading.wording import many

INTERVAL_SECONDS = 0.3


class Progress:
    """One line on a terminal's standard error that says how far a search is; it is gone when the search is over."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._shown = 0.0
        self._on = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._on and self._shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    def report(self, statistics: Statistics, left_in_level: int) -> None:
        """Show the numbers of a search that is under way."""
        rate = statistics.generated / max(statistics.seconds, 0.001) / 1e6
        self.show(
            f"{many(statistics.distinct, 'state')}, depth {statistics.depth}, {left_in_level:,} left in this level, "
            f"{rate:.1f} million steps a second"
        )

    def show(self, text: str) -> None:
        """Show how far something is, if nothing was shown a moment ago."""
        now = time.monotonic()
        if self._on and now - self._shown > INTERVAL_SECONDS:
            self._shown = now
            # A line that wraps could not be taken back.
            line = f"{text} ({self.what})"[: shutil.get_terminal_size().columns - 1]
            sys.stderr.write("\r\x1b[2K" + line)
            sys.stderr.flush()
