"""How results look: one console, one table of verdicts, one way to tell a trace."""

from __future__ import annotations

import sys

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from peeklock.model.traces import Trace
from peeklock.spec.narrative import Line, line

PIPE_WIDTH = 120
"""The width of what is written to a file or a pipe, where no terminal says how wide it is."""


def console() -> Console:
    """The console for results: colour and the terminal's width on a terminal, plain text elsewhere."""
    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False, emoji=False)


def told(trace: Trace) -> list[Line]:
    """The steps of a trace, told."""
    return [
        line(step.action, trace.states[k], trace.states[k + 1], step.worker, step.item)
        for k, step in enumerate(trace.steps)
    ]


def lanes(lines: list[Line], broken_at: int | None) -> Table:
    """A run in lanes: who did what, what the store answered, what is true, what the worker makes of it."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, expand=False)
    for heading, justify in (("", "right"), ("who", "left"), ("does", "left"), ("is told", "left")):
        table.add_column(heading, justify=justify, style="bold" if heading == "who" else "")  # type: ignore[arg-type]
    table.add_column("truth in the store")
    table.add_column("the worker")
    for number, step in enumerate(lines, 1):
        wrong = number - 1 == broken_at
        answer = Text(step.answer)
        if step.faults:
            answer.append(("\n" if step.answer else "") + f"! {' and '.join(step.faults)}", style="yellow")
        table.add_row(
            Text(f"✗ {number}" if wrong else str(number), style="bold red" if wrong else ""),
            step.who,
            step.does,
            answer,
            "; ".join(step.truth),
            "; ".join(step.belief),
        )
    return table
