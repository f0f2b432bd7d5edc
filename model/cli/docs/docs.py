"""``peeklock docs``: rewrite what is generated in README.md and docs/, or say what of it is stale.

A generated block stands between ``<!-- generated: WHAT -->`` and ``<!-- /generated -->``; WHAT says how it is
made, so a page can have a new one without a line of Python. The ways are in
:mod:`~peeklock.cli.docs.blocks`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import frozen

from peeklock.cli.docs.blocks import Blocks
from peeklock.cli.shared.checkout import checkout_above
from peeklock.cli.shared.errors import UsageError

_MARKER = re.compile(r"<!-- (generated: (?P<what>[^\n]*?)|/generated) -->")
CLOSING = "<!-- /generated -->"


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "docs",
        help=summary,
        description="Rewrite every generated block in README.md and docs/*.md of this checkout, or in the pages "
        "that are named. With --check, write nothing; exit code 1 when a block is stale.",
        epilog="example: peeklock docs --check docs/what-if.md",
    )
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="only these, by their path from the root")
    parser.add_argument("--check", action="store_true", help="only say which blocks are stale")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.set_defaults(run=run)


@frozen
class Page:
    """One page as it is and as it should be."""

    path: str
    old: str
    new: str
    blocks: int
    stale: tuple[str, ...]


def run(options: argparse.Namespace) -> int:
    """Write or check the blocks. 0 when they were written or are fresh, 1 when a check finds a stale one."""
    root = checkout(Path.cwd())
    made: dict[str, str] = {}
    found = []
    with contextlib.chdir(root):
        for path in _asked(options.pages, root):
            with contextlib.closing(Blocks(made)) as blocks:
                found.append(renewed(path, Path(path).read_text(encoding="utf-8"), _announced(blocks.make)))
    if not options.check:
        for page in found:
            if page.stale:
                (root / page.path).write_text(page.new, encoding="utf-8")
    stale = [(page.path, what) for page in found for what in page.stale]
    if options.json:
        words = {
            "checked" if options.check else "written": True,
            "stale": [{"file": f, "block": b} for f, b in stale],
        }
        print(json.dumps(words, indent=2, ensure_ascii=False))
    else:
        for path, what in stale:
            print(f"{'stale' if options.check else 'written'}: {path}: {what}")
        fresh = sum(page.blocks for page in found) - len(stale)
        print(
            f"{fresh} of {fresh + len(stale)} blocks in {len(found)} files {'are' if options.check else 'were'} fresh"
        )
    return 1 if options.check and stale else 0


def _asked(names: list[str], root: Path) -> list[str]:
    known = pages(root)
    for name in names:
        if name not in known:
            raise UsageError(f"unknown page {name!r}; allowed: {', '.join(known)}")
    return names or known


def checkout(start: Path) -> Path:
    """The checkout of the project that this folder is in; ``UsageError`` where it is in none."""
    folder = checkout_above(start)
    if folder is None:
        raise UsageError(
            f"{start} is not in a checkout of peeklock: no pyproject.toml with that name here or above"
        )
    return folder


def pages(root: Path) -> list[str]:
    """The pages that may have generated blocks, by their path from the root."""
    found = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    return [str(p.relative_to(root)) for p in found if p.exists()]


def renewed(path: str, text: str, make: Callable[[str], str]) -> Page:
    """The page with every block made anew; ``UsageError`` where the markers are not in pairs."""
    pieces: list[str] = []
    stale: list[str] = []
    opened: tuple[str, int] | None = None
    done = blocks = 0
    for marker in _MARKER.finditer(text):
        line = f"{path}:{text.count(chr(10), 0, marker.start()) + 1}"
        what = marker["what"]
        if (what is None) == (opened is None):
            raise UsageError(f"{line}: {marker[0]} without its other half; a block ends with {CLOSING}")
        if what is not None:
            opened = (what, marker.end())
            continue
        assert opened is not None
        what, start = opened
        try:
            body = f"\n{make(what)}\n"
        except UsageError as error:
            raise UsageError(f"{line}: {what}: {error}") from None
        if body != text[start : marker.start()]:
            stale.append(what)
        pieces += [text[done:start], body]
        done, opened, blocks = marker.start(), None, blocks + 1
    if opened is not None:
        raise UsageError(f"{path}: the block {opened[0]!r} is not closed with {CLOSING}")
    return Page(path, text, "".join([*pieces, text[done:]]), blocks, tuple(stale))


def _announced(make: Callable[[str], str]) -> Callable[[str], str]:
    """On a terminal, say what is being made: some blocks take seconds."""

    def announced(what: str) -> str:
        if sys.stderr.isatty():
            print(f"\r\x1b[2K{what[:100]}", end="", file=sys.stderr, flush=True)
        text = make(what)
        if sys.stderr.isatty():
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)
        return text

    return announced
