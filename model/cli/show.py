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


NARROW = 96
"""Below so many columns lanes do not fit side by side, and a run is told line by line."""


def say(out: Console, text: str) -> None:
    """One sentence: wrapped between words on a terminal, one long line in a pipe."""
    out.print(text, soft_wrap=not out.is_terminal)


def tell_run(out: Console, lines: list[Line], broken_at: int | None) -> None:
    """A run in lanes: who did what, what the store answered, what is true, what the worker makes of it."""
    if out.width >= NARROW:
        out.print(_lanes(lines, broken_at))
        return
    for number, step in enumerate(lines, 1):
        mark = "✗" if number - 1 == broken_at else " "
        answer = f" -> {step.answer}" if step.answer else ""
        faults = f"  [yellow]! {' and '.join(step.faults)}[/yellow]" if step.faults else ""
        out.print(f"[bold]{mark}{number:3} {step.who}[/bold]: {step.does}{answer}{faults}")
        for lane, said in (("truth", step.truth), ("worker", step.belief)):
            if said:
                out.print(f"       {lane}: {'; '.join(said)}")


def _lanes(lines: list[Line], broken_at: int | None) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, expand=False)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("who", style="bold", no_wrap=True)
    for heading in ("does", "is told", "truth in the store", "the worker"):
        table.add_column(heading, overflow="fold")
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
