"""A copy of the project in which the documentation changes a line, writes a file and types commands."""

from __future__ import annotations

import ast
import difflib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from peeklock.cli.shared.errors import UsageError

ROOMS = {"spec": "spec", "model": "model", "cli": "model/cli", "proofs": "proofs", "harness": "tests/harness"}
"""The rooms that the command needs, and where they are in a checkout."""


def read(path: str | Path) -> str:
    """The text of a file of the project; ``UsageError`` when it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def definition(path: str, name: str, text: str) -> str:
    """A function, a class or a named value as it stands in the text of a file; ``UsageError`` without it."""
    for node in ast.parse(text).body:
        first = node.lineno
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found, first = node.name == name, min([first, *(d.lineno for d in node.decorator_list)])
        else:
            found = isinstance(node, ast.Assign) and name in [ast.unparse(t) for t in node.targets]
        if found:
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    raise UsageError(f"{path} has no {name}")


def as_process(
    command: list[str], more: Mapping[str, str] | None = None, where: Path | None = None
) -> tuple[int, str]:
    """Run a command, with more in its environment: its exit code and all that it printed.

    ``UsageError`` when it did not run to an end that a reader could be shown.
    """
    # Where a git hook runs this, GIT_DIR names the reader's repository, and the copy is not to be added to that.
    here = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    usual = {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command,
        cwd=where,
        env={**here, **usual, **(more or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if done.returncode not in (0, 1) or "Traceback (most recent call last)" in done.stdout:
        raise UsageError(f"exit code {done.returncode}: {(done.stdout.splitlines() or ['no output'])[-1]}")
    return done.returncode, done.stdout


class Scratch:
    """The copy. It is a git working tree, so that a change in it can be taken back; leave it to remove it."""

    def __init__(self) -> None:
        """Copy what the command needs from the checkout in which we are."""
        self._folder = tempfile.TemporaryDirectory(prefix="peeklock-docs-")
        self.root = Path(self._folder.name) / "peeklock"
        self._path = Path(self._folder.name) / "path"
        package = self._path / "peeklock"
        package.mkdir(parents=True)
        for room, place in ROOMS.items():
            shutil.copytree(
                place, self.root / place, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
            )
            (package / room).symlink_to(self.root / place)
        (self._path / "bin").mkdir()
        command = self._path / "bin" / "peeklock"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m peeklock.cli.main "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        as_process(["git", "init", "--quiet"], where=self.root)
        as_process(["git", "add", "--all"], where=self.root)

    def __enter__(self) -> Scratch:
        """The copy itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove it."""
        self.close()

    def close(self) -> None:
        """Remove it."""
        self._folder.cleanup()

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        (self.root / path).write_text(text, encoding="utf-8")

    def edit(self, path: str, name: str, before: str, after: str) -> str:
        """Change one line of a definition, or take it out where nothing is to come instead; the change as a diff."""
        text = read(self.root / path)
        old = definition(path, name, text)
        if before not in [line.strip() for line in old.splitlines()]:
            raise UsageError(f"{path}: {name} has no line {before!r}")
        lines = (line.replace(before, after) if line.strip() == before else line for line in old.splitlines())
        new = "\n".join(line for line in lines if line.strip())
        self.write(path, text.replace(old, new))
        return "\n".join(list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=4))[3:])

    def run(self, command: str) -> tuple[int, str]:
        """Type a command: its exit code and all that it printed."""
        here = {
            "PYTHONPATH": str(self._path),
            "PATH": f"{self._path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }
        return as_process(["sh", "-c", command], here, self.root)
