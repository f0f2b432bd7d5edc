"""The checks of this process, one line each, for whoever sums them up; and where their files go."""

from __future__ import annotations

import sys
from pathlib import Path

LINES: list[str] = []


def note(line: str) -> None:
    """A check is over."""
    LINES.append(line)


def artifacts() -> Path | None:
    """Where files go by default: as the pytest plugin says, where it is in use; None where none are written."""
    plugin = sys.modules.get("peeklock.harness.plugin")
    return None if plugin is None else plugin.artifacts()
