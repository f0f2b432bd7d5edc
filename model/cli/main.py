"""The ``peeklock`` command. Exit code 0: as stated; 1: a finding; 2: bad usage or input; 130: interrupted."""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
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


def run(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without the character gets its number
    try:
        arguments = sys.argv[1:] if arguments is None else arguments
        options = parser(arguments).parse_args(arguments)
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except UsageError as error:
        print(f"peeklock: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("peeklock: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EPIPE):
            raise
        # What is still in the buffer must not be tried again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:
            return 141
        print(f"peeklock: cannot write the output: {error.strerror}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(run())
