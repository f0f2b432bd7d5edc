"""The ``peeklock`` command. Exit code 0: as stated; 1: a finding; 2: bad usage or input; 130: interrupted."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path

from peeklock.cli.shared.checkout import refuse_another_spec
from peeklock.cli.shared.commands import parser
from peeklock.cli.shared.errors import UsageError


def run(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without the character gets its number
    try:
        arguments = sys.argv[1:] if arguments is None else arguments
        options = parser(arguments).parse_args(arguments)
        refuse_another_spec(Path.cwd())
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
