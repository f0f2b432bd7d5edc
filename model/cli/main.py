"""The ``peeklock`` command. Exit code 0: as stated; 1: a finding; 2: bad usage or input; 130: interrupted."""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from typing import NoReturn

from peeklock.cli.errors import UsageError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    # Here, where an interrupt is handled: it takes a while.
    from importlib.metadata import version

    from peeklock.cli import check, conform, diff, docs, explain, explore, export, trace, vectors

    top = _Parser(
        prog="peeklock",
        description="The executable specification of how a worker settles work items that it took under a lock.",
        epilog="example: peeklock check --policy retry",
    )
    top.add_argument("--version", action="version", version=f"peeklock {version('peeklock')}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for command in (check, explain, explore, diff, trace, conform, vectors, export, docs):
        command.add_parser(commands)
    return top


def run(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without the character gets its number
    try:
        options = parser().parse_args(arguments)
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
