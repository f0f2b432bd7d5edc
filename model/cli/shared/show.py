"""How results look: one console, one way to say a sentence, one way to tell a run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from peeklock.cli.shared.errors import UsageError
from peeklock.harness.story.lanes import as_text, steps_as_text
from peeklock.harness.story.lanes_markdown import as_markdown, as_mermaid
from peeklock.harness.story.page import as_html
from peeklock.harness.story.story import Tale, tale_of_steps
from peeklock.model.export.common import write_whole
from peeklock.model.search.traces import Trace
from peeklock.spec.reading.narrative import Line, line

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


def say(out: Console, text: str) -> None:
    """One sentence: wrapped between words on a terminal, one long line in a pipe."""
    out.print(text, soft_wrap=not out.is_terminal)


def tell_run(out: Console, lines: list[Line], broken_at: int | None) -> None:
    """The steps of a run in lanes: who did what, what the store answered, what is true."""
    tell_steps(out, tale_of_steps(lines, title="", broken_at=broken_at))


def tell_steps(out: Console, tale: Tale) -> None:
    """The steps of a tale in lanes, without what else it says."""
    out.file.write(steps_as_text(tale, out.width, _has_colour(out)) + "\n")


def tell_tale(out: Console, tale: Tale) -> None:
    """A whole tale."""
    out.file.write(as_text(tale, out.width, _has_colour(out)) + "\n")


def _has_colour(out: Console) -> bool:
    return out.is_terminal and not out.no_color and out.color_system is not None


def add_tale_options(parser: argparse.ArgumentParser) -> None:
    """The options that choose how a run is told."""
    told_as = parser.add_mutually_exclusive_group()
    told_as.add_argument("--json", action="store_true", help="for machines")
    told_as.add_argument("--markdown", action="store_true", help="for a pull request")
    told_as.add_argument("--mermaid", action="store_true", help="as a Mermaid sequence diagram")
    told_as.add_argument("--html", type=Path, metavar="FILE", help="write one page for a browser")


def show_tale(
    options: argparse.Namespace,
    tale: Tale,
    data: dict[str, Any],
    attachments: Mapping[str, str] | None = None,
) -> None:
    """Tell a tale in the way that the options choose; ``UsageError`` where the page cannot be written."""
    if options.json:
        print(json.dumps(data, indent=2, ensure_ascii=False))
    elif options.markdown:
        print(as_markdown(tale), end="")
    elif options.mermaid:
        print(as_mermaid(tale))
    elif options.html is not None:
        try:
            write_whole({options.html: as_html(tale, attachments)})
        except OSError as error:
            raise UsageError(f"cannot write {options.html}: {error.strerror}") from None
        print(f"wrote {options.html}")
    else:
        tell_tale(console(), tale)
