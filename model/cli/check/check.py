"""``peeklock check``: explore every state of a bounded world, and print the promise table."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from peeklock.cli.check.explain import as_data, causes_in_words
from peeklock.cli.check.proving import Proofs, proofs_for
from peeklock.cli.shared.errors import UsageError
from peeklock.cli.shared.options import (
    add_world_options,
    chosen,
    limits_of,
    promises_of,
    variants_of,
    world_of,
)
from peeklock.cli.shared.progress import Progress
from peeklock.cli.shared.show import console, say
from peeklock.model.review.policy_notes import about_five, about_time
from peeklock.model.review.timing import TIMES, timing
from peeklock.model.search.checkpoint import CheckpointError
from peeklock.model.search.engine import INTERRUPTED, Limits
from peeklock.model.search.verdicts import Check, Judged, Reached, Verdict, check
from peeklock.model.search.world import World
from peeklock.proofs import Verdict as Proof
from peeklock.spec.compose import POSSIBILITIES
from peeklock.spec.law.faults import FAULTS, KNOWN_FAULTS
from peeklock.spec.promises.promise import Promise
from peeklock.spec.reading.wording import many
from peeklock.spec.variants.deviations import NO_DEVIATIONS


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "check",
        help=summary,
        description="Explore every state of a bounded world and prove what holds in all worlds; print what was found "
        "of each promise. Exit code 0 when every verdict is as the specification states it, 1 when not.",
        epilog="example: peeklock check --policy retry --without renewal-retryable,renewal-permanent",
    )
    parser.add_argument(
        "--policy",
        action="append",
        metavar="NAME|FILE.toml",
        help="before, retry, hardened or a file (default: all three)",
    )
    parser.add_argument("--promise", metavar="ID,…", help="only these promises")
    parser.add_argument("--no-proof", action="store_true", help="search only")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE",
        help="write a stopped search there; go on from it if it is there",
    )
    parser.add_argument("--no-causes", action="store_true", help="do not look for the smallest causes")
    parser.add_argument(
        "--no-symmetry", action="store_true", help="explore states that differ by names only, too"
    )
    parser.add_argument("--no-clearing", action="store_true", help="keep the history of items that are over")
    parser.add_argument("--json", action="store_true", help="for machines")
    add_world_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check one or several policies. 0 when all is as stated, 1 when not, 130 when interrupted."""
    promises = promises_of(options.promise)
    worlds = [world_of(options, v) for v in variants_of(options.policy, any_store=True)]
    limits = limits_of(options)
    if options.checkpoint is not None and len(worlds) != 1:
        raise UsageError("--checkpoint is for one search; allowed: with one --policy")
    results: list[Check] = []
    proofs: list[Proofs] = []
    interrupted, unproved = False, ""
    for world in worlds:
        results.append(_checked(world, promises, options, limits))
        interrupted = results[-1].stopped == INTERRUPTED
        if not interrupted and not options.no_proof:
            try:
                proofs.append(proofs_for(world, promises))
            except KeyboardInterrupt:  # what the search found is told all the same
                interrupted, unproved = True, world.variant.policy.name
        if interrupted:
            break
    if options.json:
        data = [_data(r, proofs[k] if k < len(proofs) else None) for k, r in enumerate(results)]
        print(json.dumps({"checks": data}, indent=2, ensure_ascii=False))
    else:
        _print(console(), results, proofs, unproved)
    if interrupted:
        print("peeklock: interrupted", file=sys.stderr)
        return 130
    return 0 if all(r.as_stated for r in results) and not any(p.missing() for p in proofs) else 1


def _checked(
    world: World, promises: tuple[Promise, ...], options: argparse.Namespace, limits: Limits
) -> Check:
    with Progress(f"{world.variant.policy.name}, {world}") as progress:
        try:
            return check(
                world,
                promises,
                POSSIBILITIES if options.promise is None else (),
                symmetric=not options.no_symmetry,
                clearing=not options.no_clearing,
                limits=limits,
                report=progress.report,
                with_causes=not options.no_causes,
                checkpoint=options.checkpoint,
            )
        except CheckpointError as error:
            raise UsageError(str(error)) from None
        except OSError as error:
            raise UsageError(f"{options.checkpoint}: cannot be written: {error.strerror}") from None


def _print(out: Console, results: list[Check], proofs: list[Proofs], unproved: str) -> None:
    first = results[0].world
    say(out, f"{first}")
    say(out, f"fault classes: {_faults_in_words(first.variant.faults)}")
    for variant in (r.world.variant for r in results):
        if variant.store != NO_DEVIATIONS:
            say(out, f"the store of {variant.policy.name} deviates from the contract: {variant.store}")
    out.print()
    out.print(_verdict_table(results, proofs))
    if proofs:
        out.print(
            f"{PROVED} proved for any number of workers, items, tokens and deliveries, and any max_attempts"
        )
    if results[0].possibilities:
        out.print()
        out.print(_possibility_table(results))
    for place, result in enumerate(results):
        broken = [j for j in result.promises if j.verdict is Verdict.FAILS]
        if broken:
            out.print()
            out.print(f"broken under {result.world.variant.policy.name}:")
        for j in broken:
            part = j.broken[0]
            say(
                out,
                f"  [bold]{j.promise.id}[/bold] after {many(len(part.trace.steps), 'step')}, "
                f"where this is false: {part.part.text}.",
            )
            say(out, f"     {causes_in_words(j)}")
            if place < len(proofs) and proofs[place].assuming_less(j.promise):
                off = "; or ".join(proofs[place].assuming_less(j.promise))
                say(out, f"     Proved for all sizes where these are off: {off}.")
            say(out, f"     peeklock explain {j.promise.id} {chosen(result.world)}")
        for text in _remarks(result):
            say(out, f"  note: {text}.")
    out.print()
    for place, result in enumerate(results):
        _print_statistics(out, result)
        if place < len(proofs):
            p = proofs[place]
            say(out, f"  proofs: {p.queries:,} questions, {p.seconds:.1f} s")
    _print_conclusion(out, results, proofs, unproved)


def _remarks(result: Check) -> Iterator[str]:
    """What has to be known of the policy to read its verdicts rightly."""
    policy = result.world.variant.policy
    broken = {j.promise.id for j in result.promises if j.verdict is Verdict.FAILS}
    yield from about_five(policy.ack_attempts, broken if policy.source else ())
    if any(name in TIMES for name in policy.given):
        yield from about_time(timing(*(getattr(policy, name) for name in TIMES)))


def _faults_in_words(faults: frozenset[str]) -> str:
    off = [f.name for f in KNOWN_FAULTS if f.name not in faults]
    if {f.name for f in FAULTS} == faults:
        return f"all on; assumed: permanent errors are honest ({', '.join(off)} is off)"
    return f"{', '.join(f.name for f in KNOWN_FAULTS if f.name in faults) or 'none'}; off: {', '.join(off) or 'none'}"


def _verdict_table(results: list[Check], proofs: list[Proofs]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("", style="bold")
    table.add_column("promise")
    for result in results:
        table.add_column(result.world.variant.policy.name)
    for place, judged in enumerate(results[0].promises):
        cells = [
            _verdict_cell(r.promises[place], proofs[k].verdict(judged.promise) if k < len(proofs) else None)
            for k, r in enumerate(results)
        ]
        table.add_row(judged.promise.id, judged.promise.text, *cells)
    return table


_STYLE = {
    Verdict.HOLDS: "green",
    Verdict.FAILS: "bold red",
    Verdict.UNKNOWN: "bold yellow",
    Verdict.SILENT: "",
    Verdict.NOT_SHOWN: "yellow",
}


PROVED = "∎"


def _verdict_cell(judged: Judged, proof: Proof | None) -> Text:
    cell = Text(judged.verdict.value, style=_STYLE[judged.verdict])
    if judged.verdict is Verdict.NOT_SHOWN and proof is Proof.PROVED:
        return Text(f"holds {PROVED} (stated: {judged.stated.value})", style="bold magenta")
    if judged.verdict is Verdict.UNKNOWN and proof is Proof.PROVED:
        return Text(f"holds {PROVED}", style=_STYLE[Verdict.HOLDS])  # for every size, so for this one too
    if judged.verdict is Verdict.HOLDS and proof is not None:
        cell.append(f" {PROVED}" if proof is Proof.PROVED else " (here; not proved)")
    if not judged.as_stated:
        cell.append(f" (stated: {judged.stated.value})", style="bold magenta")
    return cell


def _possibility_table(results: list[Check]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("", style="bold")
    table.add_column("what must be able to happen")
    for result in results:
        table.add_column(result.world.variant.policy.name)
    for place, reached in enumerate(results[0].possibilities):
        cells = [_possibility_cell(r.possibilities[place]) for r in results]
        table.add_row(reached.possibility.id, reached.possibility.text, *cells)
    return table


def _possibility_cell(reached: Reached) -> Text:
    word = {True: "happens", False: "-", None: "unknown"}[reached.found]
    cell = Text(word)
    if not reached.as_stated:
        stated = "happens" if reached.stated else "cannot"
        cell.append(f" (stated: {stated})", style="bold magenta")
    return cell


def _print_statistics(out: Console, result: Check) -> None:
    s = result.statistics
    name = result.world.variant.policy.name
    ended = "every state explored" if not result.stopped else f"stopped at {result.stopped}"
    say(
        out,
        f"{name}: {ended}: {many(s.distinct, 'distinct state')}, {many(s.generated, 'step')}, depth {s.depth}, "
        f"{s.seconds:.1f} s",
    )
    if result.stopped and len(s.level_sizes) > 1:
        growth = s.level_sizes[-1] / max(s.level_sizes[-2], 1)
        say(
            out,
            f"  covered: all runs of up to {many(s.depth, 'step')}; the last level was {growth:.2f} times the one "
            "before" + (", so more states than were covered are still to come" if growth > 1 else ""),
        )
    if result.stuck is not None:
        say(
            out,
            f"  [bold red]stuck[/bold red] after {many(len(result.stuck.steps), 'step')}: nothing can change any more",
        )
    if result.silently_gone:
        say(out, f"  never happened: {'; '.join(result.silently_gone)}")
    elif result.never_fired and not result.stopped:
        say(out, f"  {len(result.never_fired)} kinds of steps never happened (--json names them)")


def _print_conclusion(out: Console, results: list[Check], proofs: list[Proofs], unproved: str) -> None:
    unknown = [r for r in results if r.stopped]
    wrong = [
        f"{row_id} under {r.world.variant.policy.name}"
        for r in results
        for row_id in (
            *(j.promise.id for j in r.promises if not j.as_stated and j.verdict is not Verdict.UNKNOWN),
            *(p.possibility.id for p in r.possibilities if not p.as_stated and p.found is not None),
            *(("a stuck state",) if r.stuck is not None else ()),
            *(f"'{name}', which never happens," for name in r.silently_gone),
        )
    ]
    wrong += [
        f"the proof of {pid} under {p.main.policy.name}" for p in proofs for pid in dict.fromkeys(p.missing())
    ]
    for place, r in enumerate(results):
        proved = proofs[place].verdict if place < len(proofs) else (lambda promise: None)
        open_ = [
            j.promise.id
            for j in r.promises
            if j.verdict is Verdict.UNKNOWN and proved(j.promise) is not Proof.PROVED
        ]
        if r.stopped:
            name = r.world.variant.policy.name
            left = (
                f"unknown under {name}: {', '.join(open_)}"
                if open_
                else f"under {name} the search was not complete"
            )
            say(out, f"[bold yellow]unfinished:[/bold yellow] {left}")
        if not_shown := [j.promise.id for j in r.promises if j.verdict is Verdict.NOT_SHOWN]:
            say(
                out,
                f"note: {', '.join(not_shown)} cannot break in a world this small; use --deliveries "
                f"{r.world.variant.policy.max_attempts + 2} or more (max_attempts + 2)",
            )
        for text in proofs[place].gaps(r) if place < len(proofs) else ():
            say(out, f"not proved: {text}")
    if unproved:
        say(out, f"[bold yellow]unfinished:[/bold yellow] the proofs under {unproved}")
    if wrong:
        say(out, f"[bold red]not as stated:[/bold red] {', '.join(wrong)}")
    elif not unknown and not unproved:
        based = {p.stands_for for r in results if (p := r.world.variant.policy).source}
        basis = f" for policy {', '.join(sorted(based))}, on which it is based" if based else ""
        out.print(f"[bold green]every verdict is as the specification states it{basis}[/bold green]")


def _data(result: Check, proofs: Proofs | None) -> dict[str, Any]:
    s = result.statistics
    return {
        "policy": result.world.variant.policy.name,
        "world": {
            "workers": result.world.workers,
            "items": result.world.items,
            "deliveries": result.world.deliveries,
            "max_attempts": result.world.variant.policy.max_attempts,
        },
        "faults": sorted(result.world.variant.faults),
        "promises": [
            {**as_data(j, result), "proof": proofs.verdict(j.promise).value if proofs is not None else None}
            for j in result.promises
        ],
        "possibilities": [
            {"id": p.possibility.id, "text": p.possibility.text, "found": p.found, "stated": p.stated}
            for p in result.possibilities
        ],
        "statistics": {
            "distinct": s.distinct,
            "generated": s.generated,
            "depth": s.depth,
            "seconds": round(s.seconds, 3),
            "fired": s.fired,
            "never_fired": list(result.never_fired),
        },
        "stopped": result.stopped,
        "stuck": result.stuck is not None,
        "as_stated": result.as_stated and not (proofs is not None and proofs.missing()),
    }
