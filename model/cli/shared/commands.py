"""The commands, each in a module that is imported only where the command is used."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from peeklock.cli.shared.errors import UsageError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


COMMANDS = {
    "check": ("check.check", "explore every state, prove, and print the promise table"),
    "explain": ("check.explain", "the shortest trace that breaks a promise"),
    "explore": ("explore.explore", "walk through the state space"),
    "diff": ("diff.diff", "what can now happen that could not before, between two policies or revisions"),
    "trace": ("conform.trace", "judge a recorded run"),
    "conform": ("conform.conform", "check a store or a worker in any language"),
    "vectors": ("write.vectors", "test vectors for a store in any language"),
    "export": ("write.export", "the bounded world as a model for Spin or TLC"),
    "docs": ("docs.docs", "rewrite the generated tables and outputs in README.md and docs/"),
}
"""The module of each command, which is imported only where the command is used, and what the command does."""


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version  # it takes a while

        print(f"peeklock {version('peeklock')}")
        parser.exit()


def parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of the whole command line, with the options of the command that these arguments name."""
    top = _Parser(
        prog="peeklock",
        description="The executable specification of how a worker settles work items that it took under a lock.",
        epilog="example: peeklock check --policy retry",
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for command, (module, summary) in COMMANDS.items():
        if command in arguments[:1]:
            import_module(f"peeklock.cli.{module}").add_parser(commands, summary)
        else:
            commands.add_parser(command, help=summary)
    return top
