"""``peeklock trace``: does a recorded run of a real system follow the specification?"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

from peeklock.cli.errors import UsageError
from peeklock.cli.options import policies_of
from peeklock.cli.show import add_tale_options, console, say, show_tale
from peeklock.harness.judge import Judgement, judge, monitor_of
from peeklock.harness.observation import shown
from peeklock.harness.retelling import tell
from peeklock.harness.tale import Tale
from peeklock.harness.tracefile import TraceError, read
from peeklock.spec.policy import Policy
from peeklock.spec.protocol import PROMISES

MOST_HELD = 2_000
"""Observations before a violation that are held in memory, to tell those of them that have to do with it."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "trace",
        help="judge a recorded run",
        description="Does a recorded run follow the specification? Exit code 0 when it does, 1 when something was seen "
        "that no state of the specification explains, 2 when the file cannot be read.",
        epilog="example: peeklock trace run.jsonl --policy before",
    )
    parser.add_argument("file", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--policy", default="retry", metavar="NAME|FILE.toml", help="default: retry")
    add_tale_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Judge one file."""
    (policy,) = policies_of([options.policy])
    if options.file.exists() and not options.file.is_file():
        raise UsageError(
            f"{options.file}: not a file, and a violation is told by reading it again; allowed: a file"
        )
    try:
        header, observations = read(options.file)
        found = judge(header, observations, policy)
    except TraceError as error:
        raise UsageError(str(error)) from None
    if found.observations == 0:
        raise UsageError(
            f"{options.file}: nothing was recorded after the header, so there is nothing to judge"
        )
    if found.violation is not None:
        show_tale(options, _tale(options.file, found, policy), _data(found, policy))
    elif options.json:
        print(json.dumps(_data(found, policy), indent=2, ensure_ascii=False))
    else:
        _print(found, policy, header.source)
    return 0 if found.conforms else 1


def _tale(path: Path, found: Judgement, policy: Policy) -> Tale:
    """The end of the run, up to what nothing explains; the file is read once more."""
    assert found.violation is not None
    header, again = read(path)
    monitor, earlier = monitor_of(header, policy), max(found.observations - MOST_HELD, 0)
    for seen in itertools.islice(again, earlier):
        monitor.observe(seen)
    return tell(
        itertools.islice(again, found.observations - earlier),
        lambda: monitor,
        earlier=earlier,
        title=f"✗ violates policy {policy.name} at observation {found.observations}",
        setting=found.violation.seen.place + (f"; run: {shown(header.source)}" if header.source else ""),
    )


def _print(found: Judgement, policy: Policy, source: str) -> None:
    out = console()
    if source:
        say(out, f"run: {shown(source)}")
    out.print(f"[green]conforms[/green] to policy {policy.name}: {found.observations} observations explained")
    texts = {p.id: p.text for p in PROMISES}
    for broken in found.broken:
        say(
            out,
            f"[yellow]note:[/yellow] it breaks {broken}, which this policy does not keep: {texts[broken]}",
        )


def _data(found: Judgement, policy: Policy) -> dict[str, Any]:
    data: dict[str, Any] = {
        "policy": policy.name,
        "conforms": found.conforms,
        "observations": found.observations,
        "broken": list(found.broken),
    }
    if found.violation is not None:
        data["violation"] = {
            "place": found.violation.seen.place,
            "seen": str(found.violation.seen),
            "reason": found.violation.reason,
            "breaks": list(found.violation.promises),
            "allowed": list(found.violation.allowed),
            "before": [list(s) for s in found.told_before],
        }
    return data
