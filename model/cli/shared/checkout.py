"""The checkout of the project that a command is run in, and whether its specification is the one that is read."""

from __future__ import annotations

import contextlib
import tomllib
from pathlib import Path

import peeklock.spec
from peeklock.cli.shared.errors import UsageError


def checkout_above(start: Path) -> Path | None:
    """The nearest folder, from here upwards, that is a checkout of the project; None where there is none."""
    for folder in (start, *start.parents):
        with contextlib.suppress(OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
            project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8")).get(
                "project", {}
            )
            if project.get("name") == "peeklock":
                return folder
    return None


def refuse_another_spec(start: Path) -> None:
    """``UsageError`` in a checkout whose specification is not the one that this command has been installed with.

    A verdict on the installed copy would be taken for one on the lines that were just changed.
    """
    folder = checkout_above(start)
    if folder is None or not (folder / "spec").is_dir():
        return
    read = Path(str(peeklock.spec.__file__)).parent
    here = folder / "spec"
    changed = [p for p in sorted({*_sources(read), *_sources(here)}) if _differ(read / p, here / p)]
    if changed:
        raise UsageError(
            f"{here / changed[0]} is not the specification that this command reads, which is {read}; "
            f"run `make .venv/ready` in {folder} and then {folder / '.venv' / 'bin' / 'peeklock'}, or run it elsewhere"
        )


def _sources(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*.py")}


def _differ(one: Path, other: Path) -> bool:
    try:
        return one.read_bytes() != other.read_bytes()
    except OSError:
        return True
