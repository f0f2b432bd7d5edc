"""``peeklock export``: the bounded world in the language of another tool."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peeklock.cli.shared.errors import UsageError
from peeklock.cli.shared.options import add_world_options, promises_of, variants_of, world_of
from peeklock.model.export.common import write_whole
from peeklock.model.export.promela import promela
from peeklock.model.export.tla import MODULE, configuration, tla
from peeklock.model.search.world import World
from peeklock.spec.compose import POSSIBILITIES
from peeklock.spec.promises.promise import Possibility, Promise

LANGUAGES = ("promela", "tla")


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "export",
        help=summary,
        description="Write the bounded world and its promises in the language of another model checker, so that "
        "a verdict can be had twice. The file says how to check it.",
        epilog="example: peeklock export promela --policy retry --items 1 -o peeklock.pml",
    )
    parser.add_argument("language", metavar="LANGUAGE", help="promela (for Spin) or tla (for TLC)")
    parser.add_argument("--policy", default="retry", metavar="NAME|FILE.toml", help="default: retry")
    parser.add_argument("--promise", metavar="ID,…", help="only these promises (default: all)")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE|DIR",
        help=f"promela: the file (default: standard output); tla: the folder for {MODULE}.tla and {MODULE}.cfg "
        "(default: this one)",
    )
    add_world_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Export one world."""
    if options.language not in LANGUAGES:
        raise UsageError(f"unknown language {options.language!r}; allowed: {', '.join(LANGUAGES)}")
    if options.limit_seconds is not None or options.limit_mib is not None:
        raise UsageError("an export does not search, so it has no --limit-seconds and no --limit-mib")
    promises = promises_of(options.promise)
    possibilities = POSSIBILITIES if options.promise is None else ()
    (variant,) = variants_of([options.policy])
    world = world_of(options, variant)
    if options.language == "promela" and options.output is None:
        print(promela(world, promises, possibilities), end="")
        return 0
    texts = _texts(options, world, promises, possibilities)
    try:
        write_whole(texts)
    except OSError as error:
        raise UsageError(f"cannot write {', '.join(map(str, texts))}: {error.strerror}") from None
    for path in texts:
        print(f"wrote {path}")
    return 0


def _texts(
    options: argparse.Namespace,
    world: World,
    promises: tuple[Promise, ...],
    possibilities: tuple[Possibility, ...],
) -> Mapping[Path, str]:
    """What is to be written, by where."""
    if options.language == "promela":
        return {options.output: promela(world, promises, possibilities)}
    folder = options.output or Path()
    return {
        folder / f"{MODULE}.tla": tla(world, promises, possibilities),
        folder / f"{MODULE}.cfg": configuration(world, promises, possibilities),
    }
