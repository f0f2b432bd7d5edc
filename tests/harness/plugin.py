"""The pytest plugin: a marker, files of what was found, and a line for each check at the end of the run.

The harness itself is imported by the tests that use it, and not here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

_KEPT_IN: list[Path] = []


def artifacts() -> Path | None:
    """The folder for the files of what a check found."""
    return _KEPT_IN[-1] if _KEPT_IN else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where files go."""
    parser.addini(
        "peeklock_artifacts",
        "folder for the page, the program and the trace of what a check found; empty for none",
        default=".peeklock",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, and where files go."""
    config.addinivalue_line("markers", "peeklock: checks a store or a worker against the peek-lock protocol")
    folder = str(config.getini("peeklock_artifacts"))
    if folder:
        _KEPT_IN.append(Path(config.rootpath) / folder)


def pytest_unconfigure() -> None:
    """The run is over."""
    _KEPT_IN.clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for each check that was made."""
    outcomes = sys.modules.get("peeklock.harness.adapter.outcomes")
    if outcomes is not None and outcomes.LINES:
        terminalreporter.section("peeklock")
        for line in outcomes.LINES:
            terminalreporter.write_line(line)
