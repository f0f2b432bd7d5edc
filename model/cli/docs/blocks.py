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
``edit FILE NAME OLD => NEW``
    a function with one line changed (taken out, where NEW is empty), as a diff; the change is made in the page's copy
    of the project
``edit FILE NAME OLD => NEW | COMMAND``
    the same in a copy of its own, and what a command then prints there
``write FILE TEXT``
    a file that the reader writes, in the page's copy; ``\\n`` in the text begins a new line
``typed COMMAND``
    any command and what it prints, in the page's copy
anything else
    a table of :mod:`~peeklock.cli.docs.reference` or :mod:`~peeklock.cli.docs.findings`
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from peeklock.cli.docs.architecture import ARCHITECTURE
from peeklock.cli.docs.findings import FINDINGS
from peeklock.cli.docs.reference import REFERENCE, code, table
from peeklock.cli.docs.scratch import Scratch, as_process, definition, read
from peeklock.cli.docs.speed import SPEED
from peeklock.cli.shared.commands import COMMANDS, parser
from peeklock.cli.shared.errors import UsageError

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SECONDS = re.compile(r",? (in )?\d+(\.\d+)? s\b")
_PROOFS = re.compile(r" +proofs: [\d,]+ questions")
"""How many questions a proof takes varies a little: it depends on which lemmas the prover happens to use."""
_LANGUAGE = {".toml": "toml", ".jsonl": "json", ".py": "python"}


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


def _source(rest: str) -> str:
    path, _, name = rest.partition(" ")
    return fenced(f"# {path}\n{definition(path, name, read(path))}", "python")


def _file(path: str) -> str:
    return fenced(
        f"# {path}\n{read(path)}" if path.endswith(".toml") else read(path),
        _LANGUAGE.get(Path(path).suffix, "text"),
    )


class Blocks:
    """Makes the blocks of one page. ``commands`` is what the command line has parsed its command with.

    What was ``made`` for other pages is not made again, but for what happens in the page's own copy of the project.
    """

    def __init__(self, made: dict[str, str]) -> None:
        self._made = made
        self._scratch: Scratch | None = None
        self._ways: dict[str, Callable[[str], str]] = {
            "run": self._run,
            "markdown": self._markdown,
            "source": _source,
            "file": _file,
        }
        self._ways_in_copy: dict[str, Callable[[str], str]] = {
            "edit": self._edit,
            "write": self._write,
            "typed": self._typed,
        }

    def make(self, what: str) -> str:
        """The text of a block."""
        kind, _, rest = what.partition(" ")
        if kind in self._ways_in_copy:
            return self._ways_in_copy[kind](rest)
        if what not in self._made:
            self._made[what] = self._ways[kind](rest) if kind in self._ways else self._table(what)
        return self._made[what]

    def close(self) -> None:
        """Remove the page's copy of the project."""
        if self._scratch is not None:
            self._scratch.close()

    @property
    def _copy(self) -> Scratch:
        self._scratch = self._scratch or Scratch()
        return self._scratch

    def _edit(self, rest: str) -> str:
        place, _, command = rest.partition(" | ")
        path, name, change = place.split(" ", 2)
        before, _, after = change.partition(" =>")
        if not command:
            return fenced(self._copy.edit(path, name, before, after.strip()), "diff")
        with Scratch() as copy:
            diff = copy.edit(path, name, before, after.strip())
            exit_code, output = copy.run(command)
        return f"{fenced(diff, 'diff')}\n\n{fenced(_session(command, exit_code, output), 'console')}"

    def _write(self, rest: str) -> str:
        path, _, text = rest.partition(" ")
        text = text.replace("\\n", "\n")
        self._copy.write(path, f"{text}\n")
        return fenced(f"# {path}\n{text}", _LANGUAGE.get(Path(path).suffix, "text"))

    def _typed(self, command: str) -> str:
        return fenced(_session(command, *self._copy.run(command)), "console")

    def _table(self, what: str) -> str:
        tables = {"commands": self._list_of_commands, **REFERENCE, **ARCHITECTURE, **FINDINGS, **SPEED}
        if what not in tables:
            allowed = [*(f"{w} …" for w in (*self._ways, *self._ways_in_copy)), *tables]
            raise UsageError(f"unknown block {what!r}; allowed: {', '.join(allowed)}")
        return tables[what]()

    def _list_of_commands(self) -> str:
        return table(
            ("command", "does"), ((code(f"peeklock {c}"), does) for c, (_, does) in COMMANDS.items())
        )

    def _run(self, command: str) -> str:
        words, _ = _parsed(command)
        if words[:2] == ["peeklock", "trace"]:
            # The states that explain a run are a set: the same order every time needs the same hashes every time.
            line = [sys.executable, "-m", "peeklock.cli.main", *words[1:]]
            exit_code, output = as_process(line, {"PYTHONHASHSEED": "0"})
        elif words[:1] == ["peeklock"] and words[1] in COMMANDS:
            exit_code, output = self._in_process(*words[1:])
        elif words[:2] == ["python", "-m"]:
            exit_code, output = as_process([sys.executable, *words[1:]])
        else:
            raise UsageError(f"{command!r} is neither a command of peeklock nor python -m …")
        return fenced(_session(command, exit_code, output), "console")

    def _markdown(self, command: str) -> str:
        words, _ = _parsed(command)
        if words[:1] != ["peeklock"] or "--markdown" not in words or words[1] not in COMMANDS:
            raise UsageError(f"{command!r} is no command of peeklock with --markdown")
        return self._in_process(*words[1:])[1].rstrip()

    def _in_process(self, name: str, *arguments: str) -> tuple[int, str]:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            options = parser([name]).parse_args([name, *arguments])
            exit_code: int = options.run(options)
        return exit_code, output.getvalue()
