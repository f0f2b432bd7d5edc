"""Revisions: a side whose protocol is that of another commit, read from the repository without touching its files.

The ``spec/`` of the commit is put beside the present model, and another process searches it and answers questions
here in lines of JSON. What the present model cannot read is refused, and not guessed at.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any

from attrs import frozen

from peeklock.model.review.sides import Account, Word, from_data, line_of, word_data
from peeklock.spec.reading.narrative import Line


class RevisionError(ValueError):
    """A revision that does not exist, or has nothing that can be searched; one line."""


class NoRepositoryError(RevisionError):
    """There is no repository here to look for a revision in, or no git; one line."""


def _git(*arguments: str, where: Path | None = None) -> bytes:
    """What git prints; ``RevisionError`` with its last line when it fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=where, capture_output=True, check=False)
    except OSError as error:
        raise RevisionError(f"git cannot be run: {error.strerror}") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise RevisionError(said[-1] if said else f"git {arguments[0]} failed")
    return done.stdout


@frozen
class Revision:
    """A commit of the repository that we stand in."""

    name: str
    """As it was asked for."""
    commit: str
    top: Path

    @classmethod
    def found(cls, name: str) -> Revision:
        """The commit of this name; ``RevisionError`` when there is none, or no repository."""
        try:
            top = Path(_git("rev-parse", "--show-toplevel").decode().rstrip("\n"))
        except RevisionError as error:
            raise NoRepositoryError(str(error)) from None
        try:
            commit = _git("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}").decode().strip()
        except RevisionError:
            raise RevisionError(f"{name}: no such revision in {top}") from None
        return cls(name, commit, top)

    @property
    def has_protocol(self) -> bool:
        """Is there a specification in it?"""
        return bool(_git("ls-tree", "--name-only", self.commit, "spec/compose.py", where=self.top).strip())

    def file(self, path: str) -> str:
        """A file as it is there; ``RevisionError`` when it is not, or no text."""
        try:
            return _git("show", f"{self.commit}:{path}").decode("utf-8")
        except RevisionError:
            raise RevisionError(f"{self.name}: has no file {path}") from None
        except UnicodeDecodeError:
            raise RevisionError(f"{self.name}:{path}: not a text file") from None

    def unpack(self, folder: Path) -> None:
        """Its specification, as the room ``peeklock.spec``, with the present model beside it."""
        package = folder / "peeklock"
        package.mkdir()
        archive = _git("archive", "--format=tar", self.commit, "spec", where=self.top)
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(package, filter="data")
        (package / "model").symlink_to(Path(__file__).resolve(strict=False).parents[1])


class _Searcher:
    """The process that answers about a revision, and its folder."""

    def __init__(self, revision: Revision, files: Mapping[str, str]) -> None:
        """``files`` are written beside its room, by their names. ``RevisionError`` when there is nothing to search."""
        if not revision.has_protocol:
            raise RevisionError(f"{revision.name}: has no spec/compose.py, so there is nothing to compare")
        self._name = revision.name
        self._folder = tempfile.TemporaryDirectory(prefix="peeklock-diff-")
        folder = Path(self._folder.name)
        try:
            revision.unpack(folder)
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
            self._errors = (folder / "errors").open("w+", encoding="utf-8", errors="replace")
            self._process = subprocess.Popen(
                [sys.executable, "-m", "peeklock.model.review.revision_server"],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                encoding="utf-8",
            )
        except BaseException:
            self._folder.cleanup()
            raise

    def asked(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question of :mod:`revisions_served`; ``RevisionError`` when there is none."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            said = self._process.stdout.readline()
        except BrokenPipeError:
            said = ""
        if not said:
            raise RevisionError(
                f"{self._name}: its spec/ is not one that this model can search: {self._last_words()}"
            )
        answer: dict[str, Any] = json.loads(said)
        if "error" in answer:
            raise RevisionError(f"{self._name}: {answer['error']}")
        return answer

    def _last_words(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().splitlines() if line.strip()]
        if not lines:
            return f"it ended with exit code {self._process.returncode}"
        return lines[-1].replace(f"{self._folder.name}/peeklock/", "")

    def close(self) -> None:
        """End the process, and take the folder away."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
        self._errors.close()
        self._folder.cleanup()


class Revised:
    """A side under the protocol of another revision. Close it: it has a process and a folder."""

    def __init__(
        self, title: str, revision: Revision, policy: str, text: str | None, sizes: dict[str, Any]
    ) -> None:
        """``text`` is the policy file's, where the policy is one; ``sizes`` are those of :mod:`revisions_served`.

        ``RevisionError`` when the revision cannot be searched.
        """
        name = policy if text is None else Path(policy).name
        self._searcher = _Searcher(revision, {} if text is None else {name: text})
        try:
            self.account: Account = from_data(self._searcher.asked({"title": title, "policy": name, **sizes}))
        except (KeyError, TypeError) as error:
            self.close()
            raise RevisionError(f"{revision.name}: its answer cannot be read: {error!r}") from None
        except BaseException:
            self.close()
            raise

    def runs(self, words: tuple[Word, ...]) -> list[tuple[Line, ...]]:
        """For each word a shortest run, told; ``RevisionError`` for a word that no delivery has."""
        asked = self._searcher.asked({"words": [word_data(w) for w in words]})
        return [tuple(line_of(x) for x in run) for run in asked["runs"]]

    def close(self) -> None:
        """End the process, and take the folder away."""
        self._searcher.close()

    def __enter__(self) -> Revised:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def policies_at(revision: Revision) -> tuple[str, ...]:
    """The named policies of a revision; ``RevisionError`` when it cannot be searched."""
    with closing(_Searcher(revision, {})) as searcher:
        return tuple(searcher.asked({"policies": None})["policies"])
