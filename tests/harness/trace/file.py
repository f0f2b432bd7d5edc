"""Trace files: a recorded run as JSON lines, the first of which says what was recorded.

There are three kinds. Workers and a store: what was seen, in the order in which it was seen. A store alone, one call
at a time: the same, and looks at its completions. A store alone under concurrent calls: where each call begins and
where it ends. What a line leaves out was not seen, and every possibility is kept.
"""

from __future__ import annotations

import enum
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from attrs import evolve, frozen

from peeklock.harness.linear.history import Invoke, Return
from peeklock.harness.monitor.observation import Observation, shown
from peeklock.harness.monitor.world import Scope
from peeklock.harness.trace.calls import calls, is_of_call
from peeklock.harness.trace.line import Line, Times, TraceError, lines_of, quoted
from peeklock.harness.trace.observations import Look, seen_of_store, seen_of_workers
from peeklock.spec.variants.capabilities import STANDARD, Capabilities, CapabilitiesError

VERSION = 1
RECORDS = ("clock", "counts", "handlers", "answers", "stops")
OF_A_STORE_ALONE = ("clock", "answers")
"""What can be recorded of a store alone."""
OF_HEADERS = ("peeklock_trace", "records", "max_attempts", "source", "capabilities", "slack_ms")
Entry: TypeAlias = Observation | Look | Invoke | Return


class Kind(enum.Enum):
    """What a file is a record of."""

    WORKERS = "workers and a store"
    STORE = "a store alone, one call at a time"
    CALLS = "a store alone, under concurrent calls"


@frozen
class Header:
    """The first line of a trace file, and what kind of lines follow it."""

    scope: Scope
    max_attempts: int | None = None
    source: str = ""
    capabilities: Capabilities | None = None
    """What the store declares; None where the first line does not speak of a store alone."""
    slack_ms: int = 0
    """By how much a recorded time may be off, either way."""
    kind: Kind = Kind.WORKERS

    @property
    def store(self) -> Capabilities:
        """The contract of the store."""
        return self.capabilities or STANDARD


def header_line(capabilities: Capabilities, source: str, slack_ms: int = 0) -> str:
    """The first line of a file that records a store alone, with its times."""
    header = {
        "peeklock_trace": VERSION,
        "records": ["clock"],
        "capabilities": capabilities.differences,
        "slack_ms": slack_ms or None,
        "source": shown(source),
    }
    return json.dumps({name: value for name, value in header.items() if value is not None})


def read(path: Path) -> tuple[Header, Iterator[Entry]]:
    """The header of a trace file, and what follows it, read as it is asked for.

    ``TraceError`` for a file that cannot be read, now or when the line is come to that is wrong.
    """
    try:
        lines = lines_of(path)
        first = next(lines, None)
        second = next(lines, None) if first is not None else None
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    if first is None:
        raise TraceError(
            f'{path}:1:1: the file is empty; allowed: a header such as {{"peeklock_trace": {VERSION}}}'
        )
    header = _header(first)
    rest = itertools.chain(() if second is None else (second,), lines)
    times = Times(header.scope.clock, header.slack_ms)
    if second is not None and is_of_call(second):
        header = evolve(header, kind=Kind.CALLS)
        return header, calls(path, rest, times)
    if header.kind is Kind.STORE:
        return header, seen_of_store(rest, times)
    return header, seen_of_workers(rest, times)


def _header(line: Line) -> Header:
    version = line.data.get("peeklock_trace")
    if type(version) is not int or version != VERSION:
        found = quoted(version) if "peeklock_trace" in line.data else "missing"
        raise line.wrong(f"peeklock_trace is {found}; allowed: {VERSION}", "peeklock_trace")
    line.known(OF_HEADERS)
    capabilities = None
    if "capabilities" in line.data:
        try:
            capabilities = Capabilities.declared(line.data["capabilities"])
        except CapabilitiesError as error:
            raise line.wrong(str(error), "capabilities") from None
    records, allowed = line.texts("records"), RECORDS if capabilities is None else OF_A_STORE_ALONE
    for name in records:
        if name not in allowed:
            of = "" if capabilities is None else " of a store alone"
            raise line.wrong(f"records names {quoted(name)}; allowed{of}: {', '.join(allowed)}", "records")
    maximum = line.at_least("max_attempts", 1)
    if capabilities is not None and maximum is not None:
        raise line.wrong("max_attempts is of workers; allowed of a store alone: leave it out", "max_attempts")
    return Header(
        Scope(**{name: name in records for name in RECORDS}),
        maximum,
        line.typed("source", str) or "",
        capabilities,
        line.at_least("slack_ms", 0) or 0,
        Kind.WORKERS if capabilities is None else Kind.STORE,
    )
