"""``peeklock vectors``: test vectors that reach every kind of state that a store can be called in."""

from __future__ import annotations

import argparse
import json
import os
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from peeklock.cli.shared.errors import UsageError
from peeklock.cli.shared.show import console, say
from peeklock.model.export.common import write_whole
from peeklock.model.vectors.files import VERSION, Vectors, file_name, vectors_of
from peeklock.spec.notation.actions import Call
from peeklock.spec.variants.capabilities import STANDARD, Capabilities, CapabilitiesError

OURS = tuple(file_name(call) for call in Call)
"""The names of the files that this command writes."""
BEGINS = f'{{\n  "peeklock_vectors": {VERSION},'


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "vectors",
        help=summary,
        description="Write test vectors as JSON: short runs that together show every kind of state in which a store "
        "can be called, with what it has to answer. docs/vectors.md tells how to replay them. Exit code 0 when every "
        "kind is shown, 1 when one is not, 2 when nothing could be written.",
        epilog="example: peeklock vectors vectors/",
    )
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="a new folder, or one with such vectors only"
    )
    parser.add_argument(
        "--capabilities",
        type=Path,
        metavar="FILE",
        help="TOML or JSON: in what the store differs from the standard contract (default: in nothing)",
    )
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the vectors of one store."""
    capabilities = STANDARD if options.capabilities is None else _capabilities(options.capabilities)
    _look_into(options.folder)
    found = vectors_of(capabilities)
    if not found.vectors:
        raise UsageError("there is nothing to show of a store with these capabilities")
    _write(options.folder, found.texts)
    if options.json:
        print(json.dumps(_data(options.folder, found), indent=2, ensure_ascii=False))
    else:
        _print(options.folder, found)
    return 1 if found.missed else 0


def _capabilities(path: Path) -> Capabilities:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix not in (".toml", ".json"):
            raise UsageError(f"{path}: of an unknown kind; allowed: FILE.toml, FILE.json")
        return Capabilities.declared(tomllib.loads(text) if path.suffix == ".toml" else json.loads(text))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (CapabilitiesError, UnicodeDecodeError, tomllib.TOMLDecodeError, json.JSONDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None


def _look_into(folder: Path) -> None:
    """``UsageError`` for a folder with anything in it that this command did not write."""
    try:
        entries = sorted(folder.iterdir()) if folder.exists() or folder.is_symlink() else []
        foreign = [e.name for e in entries if e.name not in OURS or not _is_ours(e)]
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written to: {error.strerror}") from None
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise UsageError(
            f"{folder} holds {foreign[0]}{more}, which peeklock vectors did not write; "
            "allowed: a new folder, or one with such vectors only"
        )


def _is_ours(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(BEGINS)) == BEGINS.encode()


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    """All files or none; those of calls that the store has not go."""
    is_new = not folder.exists()
    try:
        folder.mkdir(exist_ok=True)
        write_whole({folder / name: text for name, text in texts.items()})
        for name in OURS:
            if name not in texts:
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        if is_new and folder.is_dir() and not os.listdir(folder):
            folder.rmdir()
        raise UsageError(f"{folder}: cannot be written to: {error.strerror}") from None


def _shown(found: Vectors) -> Counter[tuple[str, str]]:
    return Counter((kind.call.value, kind.answer) for kind in found.shown)


def _calls(found: Vectors) -> int:
    return sum(len(vector.steps) for vector in found.vectors)


def _print(folder: Path, found: Vectors) -> None:
    out = console()
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("call")
    table.add_column("answer")
    table.add_column("kinds of state", justify="right")
    before = ""
    shown = _shown(found)
    for call, answer in sorted(shown, key=lambda pair: [c.value for c in Call].index(pair[0])):
        table.add_row("" if call == before else call, answer, str(shown[call, answer]))
        before = call
    out.print(table)
    say(
        out,
        f"{len(found.vectors)} vectors with {_calls(found)} calls in {len(found.texts)} files in {folder}: they show "
        f"{len(found.shown)} of the {len(found.kinds)} kinds of state that can be reached",
    )
    for kind in found.missed:
        say(out, f"[red]not shown:[/red] {kind}")


def _data(folder: Path, found: Vectors) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "files": sorted(found.texts),
        "vectors": len(found.vectors),
        "calls": _calls(found),
        "kinds": {"reachable": len(found.kinds), "shown": len(found.shown)},
        "coverage": [
            {"call": call, "answer": answer, "kinds": number}
            for (call, answer), number in _shown(found).items()
        ],
        "missed": [str(kind) for kind in found.missed],
    }
