"""``peeklock explore``: walk through the state space, in the terminal or on a page."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from attrs import evolve

from peeklock.cli.explore.load import Recorded, Run, is_trace, recorded, runs_of_promises, walks_in
from peeklock.cli.explore.page import as_page
from peeklock.cli.explore.terminal import Terminal
from peeklock.cli.explore.text import Walk, standing, step_data, summary
from peeklock.cli.shared.errors import UsageError
from peeklock.cli.shared.options import (
    add_world_options,
    chosen,
    limits_of,
    promises_of,
    variants_of,
    world_of,
)
from peeklock.cli.shared.show import console
from peeklock.model.explore.walks import Explorer, PositionError, read_position
from peeklock.model.export.common import write_whole
from peeklock.model.search.world import World
from peeklock.spec.variants.variant import Variant


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "explore",
        help=summary,
        description="Walk from the initial state: what can happen next, what each worker believes, what is true, and "
        "what each step would break. In the terminal a number takes a step and ? tells the rest; --html writes the "
        "same as one page for a browser.",
        epilog="example: peeklock explore --promise S12 --html s12.html",
    )
    parser.add_argument("--policy", default="retry", metavar="NAME|FILE.toml", help="default: retry")
    loaded = parser.add_mutually_exclusive_group()
    loaded.add_argument(
        "--promise", metavar="ID,…", help="follow the shortest run that breaks each of these promises"
    )
    loaded.add_argument(
        "--load", type=Path, metavar="FILE", help="follow a recorded run, or a walk that --json printed"
    )
    loaded.add_argument("--at", metavar="POSITION", help="begin at a position, as a link or a summary has it")
    told_as = parser.add_mutually_exclusive_group()
    told_as.add_argument("--html", type=Path, metavar="FILE", help="write one page for a browser")
    told_as.add_argument(
        "--text", action="store_true", help="print the place as text, to paste into a review"
    )
    told_as.add_argument(
        "--json", action="store_true", help="print the place and what can be next, for machines"
    )
    add_world_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Explore. 0 when the reader is done, or when the page is written."""
    (variant,) = variants_of([options.policy], any_store=True)
    trace = recorded(options.load, variant.policy) if options.load and is_trace(options.load) else None
    world = _world(options, variant, trace)
    runs = _runs(options, world, trace)
    explorer = Explorer(world)
    if options.html is not None:
        write_page(options.html, explorer, runs)
        return 0
    if options.json or options.text:
        walks = list(_walks(explorer, runs))
        print(
            "\n".join(map(summary, walks))
            if options.text
            else json.dumps(as_data(explorer.world, walks), indent=2, ensure_ascii=False) + "\n",
            end="",
        )
        return 0
    walk = Walk(explorer)
    notes = [note for r in runs[:1] if (note := walk.follow(r.position, r.note))]
    if runs and options.at is None:
        walk.go(0)
    Terminal(walk, runs, console()).talk(notes)
    return 0


def _walks(explorer: Explorer, runs: tuple[Run, ...]) -> Iterator[Walk]:
    """A walk to the end of each run, or to the start; what else there is to say of it goes to standard error."""
    for run in runs:
        walk = Walk(explorer)
        if note := walk.follow(run.position, run.note):
            print(f"peeklock: {note}", file=sys.stderr)
        yield walk
    if not runs:
        yield Walk(explorer)


def _world(options: argparse.Namespace, variant: Variant, trace: Recorded | None) -> World:
    """The world that was asked for; it has room for the recorded run, if one is followed."""
    if trace is None:
        return world_of(options, variant)
    if options.max_attempts is None:
        options.max_attempts = trace.policy.max_attempts
    world = world_of(options, variant)
    return evolve(world, **{name: max(size, getattr(world, name)) for name, size in trace.sizes.items()})


def _runs(options: argparse.Namespace, world: World, trace: Recorded | None) -> tuple[Run, ...]:
    if trace is not None:
        return (trace.run(world),)
    if options.load is not None:
        return walks_in(options.load)
    if options.at is not None:
        position = options.at.rpartition("#")[2]
        try:
            read_position(position)
        except PositionError as error:
            raise UsageError(f"--at: {error}") from None
        return (Run("the place that was asked for", position),)
    return (
        runs_of_promises(world, promises_of(options.promise), limits_of(options)) if options.promise else ()
    )


def write_page(path: Path, explorer: Explorer, runs: tuple[Run, ...]) -> None:
    """Write the page; ``UsageError`` where it cannot be written."""
    try:
        write_whole({path: as_page(explorer, runs)})
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    print(f"wrote {path}")


def as_data(world: World, walks: Iterable[Walk]) -> dict[str, Any]:
    """The places for machines, each with what can be next."""
    return {
        "policy": world.variant.policy.name,
        "world": str(world),
        "options": chosen(world),
        "walks": [_walk_data(walk) for walk in walks],
    }


def _walk_data(walk: Walk) -> dict[str, Any]:
    return {
        "position": walk.position,
        "note": walk.note,
        "steps": [step_data(move) for move in walk.taken],
        "standing": [line.strip() for line in standing(walk)],
        "broken": [{"promise": pid, "step": number} for pid, number in walk.broken],
        "next": [step_data(move) for move in walk.moves],
    }
