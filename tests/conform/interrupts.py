"""Programs that a test interrupts."""

from __future__ import annotations

import signal


def heed_interrupts() -> None:
    """To be called in a new program: a job that runs in the background inherits an interrupt that is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
