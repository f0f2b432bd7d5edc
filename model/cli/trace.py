"""``peeklock trace``: does a recorded run of a real system follow the specification?"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from peeklock.cli.errors import UsageError
from peeklock.cli.options import policies_of
from peeklock.cli.show import console, say
from peeklock.harness.judge import Judgement, judge
from peeklock.harness.observation import shown
from peeklock.harness.tracefile import TraceError, read
from peeklock.spec.policy import Policy
from peeklock.spec.protocol import PROMISES


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
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Judge one file."""
    (policy,) = policies_of([options.policy])
    try:
        header, observations = read(options.file)
        found = judge(header, observations, policy)
    except TraceError as error:
        raise UsageError(str(error)) from None
    if found.observations == 0:
        raise UsageError(
            f"{options.file}: nothing was recorded after the header, so there is nothing to judge"
        )
    if options.json:
        print(json.dumps(_data(found, policy), indent=2, ensure_ascii=False))
    else:
        _print(found, policy, header.source)
    return 0 if found.conforms else 1


def _print(found: Judgement, policy: Policy, source: str) -> None:
    out = console()
    if source:
        say(out, f"run: {shown(source)}")
    if found.violation is None:
        out.print(
            f"[green]conforms[/green] to policy {policy.name}: {found.observations} observations explained"
        )
        texts = {p.id: p.text for p in PROMISES}
        for broken in found.broken:
            say(
                out,
                f"[yellow]note:[/yellow] it breaks {broken}, which this policy does not keep: {texts[broken]}",
            )
        return
    seen = found.violation.seen
    say(out, f"[bold red]✗ violates[/bold red] policy {policy.name} at observation {found.observations}")
    say(out, f"  {seen.place}" + (f", t = {seen.at_ms} ms" if seen.at_ms is not None else ""))
    say(out, f"  seen: {seen}")
    say(
        out,
        f"  {found.violation.reason}; allowed would have been: {'; '.join(found.violation.allowed) or 'nothing'}",
    )
    for promise in PROMISES:
        if promise.id in found.violation.promises:
            say(out, f"  it breaks {promise.id}: {promise.text}")
    for number, state in enumerate(
        s or ("nothing is in the store, nobody has anything in hand",) for s in found.told_before
    ):
        out.print("  the state before it:" if number == 0 else "  or:")
        for text in state:
            say(out, f"    {text}")


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
