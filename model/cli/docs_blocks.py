"""The ways to make a generated block of the documentation. The current folder is the root of the checkout.

``run COMMAND``
    a command and what it prints, ``peeklock …`` or ``python -m peeklock.…``, without how long it took;
    it may end with ``| grep WORD``
``markdown COMMAND``
    what a command of peeklock prints as Markdown, as it is
``source FILE NAME``
    a function or a named value of the project, as it stands in its file
``file PATH``
    a whole file
``edit FILE NAME OLD => NEW | COMMAND``
    a function with one line changed (taken out, where NEW is empty), as a diff, and what a command then prints
anything else
    a table of :mod:`~peeklock.cli.reference` or :mod:`~peeklock.cli.findings`
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from peeklock.cli.errors import UsageError
from peeklock.cli.findings import FINDINGS
from peeklock.cli.reference import REFERENCE, code, table
from peeklock.cli.speed import SPEED

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SECONDS = re.compile(r",? (in )?\d+(\.\d+)? s\b")
_PROOFS = re.compile(r" +proofs: [\d,]+ questions")
"""How many questions a proof takes varies a little: it depends on which lemmas the prover happens to use."""
_LANGUAGE = {".toml": "toml", ".jsonl": "json", ".py": "python"}
ROOMS = {"spec": "spec", "model": "model", "cli": "model/cli", "proofs": "proofs", "harness": "tests/harness"}
"""The rooms that the command needs, and where they are in a checkout."""


def fenced(text: str, language: str = "text") -> str:
    """The text as a block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def _parsed(command: str) -> tuple[list[str], str]:
    """The words of the command, and the word that its output is searched for."""
    alone, _, searched = command.partition(" | grep ")
    return shlex.split(alone), searched


def _session(command: str, exit_code: int, output: str) -> str:
    _, searched = _parsed(command)
    lines = [_SECONDS.sub("", line.rstrip()) for line in _COLOUR.sub("", output).splitlines()]
    lines = [line for line in lines if searched in line and not _PROOFS.match(line)]
    ending = ["$ echo $?", str(exit_code)] if exit_code and not searched else []
    return "\n".join([f"$ {command}", *lines, *ending])


def _as_process(command: list[str], environment: os._Environ[str] | dict[str, str]) -> tuple[int, str]:
    encoding = {"PYTHONIOENCODING": "utf-8", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command,
        env={**environment, **encoding},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if done.returncode not in (0, 1) or "Traceback (most recent call last)" in done.stdout:
        raise UsageError(f"exit code {done.returncode}: {(done.stdout.splitlines() or ['no output'])[-1]}")
    return done.returncode, done.stdout


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def _definition(path: str, name: str) -> str:
    text = _read(path)
    for node in ast.parse(text).body:
        first = node.lineno
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found, first = node.name == name, min([first, *(d.lineno for d in node.decorator_list)])
        else:
            found = isinstance(node, ast.Assign) and name in [ast.unparse(t) for t in node.targets]
        if found:
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    raise UsageError(f"{path} has no {name}")


def _source(rest: str) -> str:
    path, _, name = rest.partition(" ")
    return fenced(f"# {path}\n{_definition(path, name)}", "python")


def _file(path: str) -> str:
    return fenced(
        f"# {path}\n{_read(path)}" if path.endswith(".toml") else _read(path), _LANGUAGE[Path(path).suffix]
    )


def _edit(rest: str) -> str:
    """The project is copied, the line is changed in the copy, and the command is run on that."""
    place, _, command = rest.partition(" | ")
    path, name, change = place.split(" ", 2)
    before, _, after = change.partition(" =>")
    old = _definition(path, name)
    lines = (
        line.replace(before, after.strip()) if line.strip() == before else line for line in old.splitlines()
    )
    new = "\n".join(line for line in lines if line.strip())
    if before not in [line.strip() for line in old.splitlines()]:
        raise UsageError(f"{path}: {name} has no line {before!r}")
    diff = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=4))[3:]
    with tempfile.TemporaryDirectory(prefix="peeklock-docs-") as folder:
        package = Path(folder) / "peeklock"
        package.mkdir()
        for room, source in ROOMS.items():
            shutil.copytree(source, package / room, ignore=shutil.ignore_patterns("__pycache__", "cli"))
        changed = package / Path(path)
        changed.write_text(_read(path).replace(old, new), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": folder}
        module = [sys.executable, "-m", "peeklock.cli.main"]
        exit_code, output = _as_process([*module, *_parsed(command)[0][1:]], environment)
    return "\n\n".join(
        [fenced("\n".join(diff), "diff"), fenced(_session(command, exit_code, output), "console")]
    )


class Blocks:
    """Makes blocks, each once. ``commands`` is what the command line has parsed its command with."""

    def __init__(self, commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
        self._commands = commands
        self._ways: dict[str, Callable[[str], str]] = {
            "run": self._run,
            "markdown": self._markdown,
            "source": _source,
            "file": _file,
            "edit": _edit,
        }
        self._made: dict[str, str] = {}

    def make(self, what: str) -> str:
        """The text of a block."""
        if what not in self._made:
            kind, _, rest = what.partition(" ")
            self._made[what] = self._ways[kind](rest) if kind in self._ways else self._table(what)
        return self._made[what]

    def _table(self, what: str) -> str:
        tables = {"commands": self._list_of_commands, **REFERENCE, **FINDINGS, **SPEED}
        if what not in tables:
            allowed = [*(f"{w} …" for w in self._ways), *tables]
            raise UsageError(f"unknown block {what!r}; allowed: {', '.join(allowed)}")
        return tables[what]()

    def _list_of_commands(self) -> str:
        listed = self._commands._choices_actions
        return table(("command", "does"), ((code(f"peeklock {c.dest}"), str(c.help)) for c in listed))

    def _run(self, command: str) -> str:
        words, _ = _parsed(command)
        if words[:2] == ["peeklock", "trace"]:
            # The states that explain a run are a set: the same order every time needs the same hashes every time.
            line = [sys.executable, "-m", "peeklock.cli.main", *words[1:]]
            exit_code, output = _as_process(line, {**os.environ, "PYTHONHASHSEED": "0"})
        elif words[:1] == ["peeklock"] and words[1] in self._commands.choices:
            exit_code, output = self._in_process(*words[1:])
        elif words[:2] == ["python", "-m"]:
            exit_code, output = _as_process([sys.executable, *words[1:]], os.environ)
        else:
            raise UsageError(f"{command!r} is neither a command of peeklock nor python -m …")
        return fenced(_session(command, exit_code, output), "console")

    def _markdown(self, command: str) -> str:
        words, _ = _parsed(command)
        if words[:1] != ["peeklock"] or "--markdown" not in words or words[1] not in self._commands.choices:
            raise UsageError(f"{command!r} is no command of peeklock with --markdown")
        return self._in_process(*words[1:])[1].rstrip()

    def _in_process(self, name: str, *arguments: str) -> tuple[int, str]:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            options = self._commands.choices[name].parse_args(arguments)
            exit_code: int = options.run(options)
        return exit_code, output.getvalue()
