"""``peeklock trace``: does a recorded run of a real system follow the specification?"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from peeklock.cli.shared.errors import UsageError
from peeklock.cli.shared.options import variants_of
from peeklock.cli.shared.show import add_tale_options, console, say, show_tale
from peeklock.harness.linear.worlds import Undecided
from peeklock.harness.monitor.observation import shown
from peeklock.harness.trace.file import Header, Kind, read
from peeklock.harness.trace.judge import Judgement, judge
from peeklock.harness.trace.line import TraceError
from peeklock.harness.trace.story_of_trace import tale_of_trace
from peeklock.spec.compose import PROMISES
from peeklock.spec.law.policy import RETRY, Policy
from peeklock.spec.reading.wording import many


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "trace",
        help=summary,
        description="Does a recorded run follow the specification? Workers and their store are held to a policy, "
        "a store that was recorded alone to its contract; the file's first line says which. Exit code 0 when it does, "
        "1 when something was seen that no state of the specification explains, 2 when it cannot be read or decided.",
        epilog="example: peeklock trace run.jsonl --policy before",
    )
    parser.add_argument("file", type=Path, metavar="FILE.jsonl")
    parser.add_argument(
        "--policy",
        metavar="NAME|FILE.toml",
        help="of the workers, where the file records any; default: retry",
    )
    add_tale_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Judge one file."""
    policy = variants_of([options.policy or RETRY.name])[0].policy
    if options.file.exists() and not options.file.is_file():
        raise UsageError(
            f"{options.file}: not a file, and a violation is told by reading it again; allowed: a file"
        )
    try:
        header, entries = read(options.file)
        if options.policy is not None and header.kind is not Kind.WORKERS:
            raise UsageError(
                f"{options.file} records {header.kind.value}, which follows no policy; allowed: leave --policy out"
            )
        found = judge(header, entries, policy)
        if found.observations == 0:
            raise UsageError(
                f"{options.file}: nothing was recorded after the header, so there is nothing to judge"
            )
        tale = None if found.violation is None else tale_of_trace(options.file, found, policy)
    except (TraceError, Undecided) as error:
        raise UsageError(str(error)) from None
    data = _data(header, found, policy)
    if tale is not None:
        show_tale(options, tale, data)
    elif options.json:
        print(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        _print(header, found, policy)
    return 0 if found.conforms else 1


def _print(header: Header, found: Judgement, policy: Policy) -> None:
    out = console()
    if header.source:
        say(out, f"run: {shown(header.source)}")
    if header.kind is Kind.WORKERS:
        say(
            out,
            f"[green]conforms[/green] to policy {policy.name}: {many(found.observations, 'observation')} explained",
        )
    else:
        say(
            out,
            f"[green]conforms[/green] to the store's contract: {many(found.observations, 'line')} explained",
        )
        say(out, f"judged: {_judged(header)}")
    if found.exact_until is not None:
        say(
            out,
            f"[yellow]note:[/yellow] {many(found.exact_until, 'line')} were judged exactly; the budget ended there. "
            "In the rest, a lock or a delay may begin anywhere within its call.",
        )
    texts = {p.id: p.text for p in PROMISES}
    for broken in found.broken:
        say(
            out,
            f"[yellow]note:[/yellow] it breaks {broken}, which this policy does not keep: {texts[broken]}",
        )


def _judged(header: Header) -> str:
    """What a file of a store alone is held against."""
    differences = ", ".join(f"{name} = {value}" for name, value in header.store.differences.items())
    contract = (
        f"under the declared capabilities ({differences})" if differences else "under the standard contract"
    )
    if header.kind is Kind.STORE:
        return f"{header.kind.value}, {contract}"
    what = f"{header.kind.value}, item by item, {contract}"
    return what if header.capabilities is not None else f"{what}; not what workers do"


def _data(header: Header, found: Judgement, policy: Policy) -> dict[str, Any]:
    data: dict[str, Any] = {
        "records": header.kind.value,
        "policy": policy.name if header.kind is Kind.WORKERS else None,
        "conforms": found.conforms,
        "observations": found.observations,
        "broken": list(found.broken),
    }
    if found.exact_until is not None:
        data["exact_until"] = found.exact_until
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
