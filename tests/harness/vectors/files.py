"""The files of test vectors, as they are read. See docs/vectors.md for the format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import fields, frozen

from peeklock.spec.variants.capabilities import Capabilities

VERSION = 1
NEVER_ISSUED = "never-issued"
"""The token that stands for itself: no store has given it out."""
ERROR = "an error"
"""The expected answer where a store's refusals cannot be told from errors that may be retried."""
BEFORE_EFFECT, AFTER_EFFECT = "before effect", "after effect"
CALLS = ("enqueue", "fetch", "renew", "ack", "abandon", "cancel")


class VectorsError(ValueError):
    """Files of vectors that cannot be read: which, what is wrong and what is allowed, in one line."""


@frozen
class Expected:
    """One call with what is expected of it."""

    at_ms: int
    call: str
    """The adapter's method."""
    arguments: Mapping[str, Any]
    answer: str
    state: str
    """In which kind of state it is made, in words."""
    fault: str | None = None
    gives: Mapping[str, Any] | None = None
    """What it returns: of a fetch the item, a name for its token and the attempt count; of a cancel what it removes."""


@frozen
class Vector:
    """One test vector."""

    file: str
    name: str
    capabilities: Capabilities
    """Of the store for which it was made."""
    needs: Mapping[str, Any]
    """Those of them that matter here."""
    steps: tuple[Expected, ...]
    drain: tuple[Expected, ...]
    queued: tuple[Mapping[str, Any], ...]
    """The rows that are left after the steps."""
    completions: tuple[tuple[str, str], ...] | None
    """All that were enqueued, oldest first, as (item, completion); None for a store that has none."""

    def is_for(self, capabilities: Capabilities) -> bool:
        """Must a store with these capabilities answer as expected here?"""
        values = {name: getattr(capabilities, name) for name in self.needs}
        return all(
            getattr(values[name], "value", values[name]) == value for name, value in self.needs.items()
        )


def read_vectors(folder: Path) -> tuple[Vector, ...]:
    """All vectors of stores in a folder, file by file in the order of their names.

    ``VectorsError`` where a file cannot be read, or there is no vector at all.
    """
    try:
        found = [vector for file in sorted(folder.glob("store-*.json")) for vector in _read(file)]
    except OSError as error:
        raise VectorsError(f"{error.filename or folder}: cannot be read: {error.strerror}") from error
    if not found:
        raise VectorsError(f"{folder}: no vectors in it; allowed: a folder that peeklock vectors wrote")
    return tuple(found)


def _read(file: Path) -> list[Vector]:
    allowed = "allowed: what docs/vectors.schema.json has"
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or data.get("peeklock_vectors") != VERSION:
            raise VectorsError(f"peeklock_vectors is not {VERSION}; {allowed}")
        capabilities = Capabilities.declared(data["capabilities"])
        return [_vector(file.name, capabilities, entry) for entry in data["vectors"]]
    except VectorsError as error:
        raise VectorsError(f"{file}: {error}") from None
    except KeyError as error:
        raise VectorsError(f"{file}: {error} is missing; {allowed}") from None
    except json.JSONDecodeError as error:
        raise VectorsError(f"{file}:{error.lineno}:{error.colno}: no JSON: {error.msg}; {allowed}") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise VectorsError(f"{file}: {error}; {allowed}") from None


def _vector(file: str, capabilities: Capabilities, entry: Mapping[str, Any]) -> Vector:
    end = entry["at_the_end"]
    unknown = [name for name in entry["needs"] if name not in _NAMES]
    if unknown:
        raise VectorsError(f"unknown capability {unknown[0]!r}; allowed: {', '.join(_NAMES)}")
    return Vector(
        file=file,
        name=entry["name"],
        capabilities=capabilities,
        needs=entry["needs"],
        steps=tuple(map(_expected, entry["steps"])),
        drain=tuple(map(_expected, entry["drain"])),
        queued=tuple(end["queued"]),
        completions=tuple((one["item"], one["completion"]) for one in end["completions"])
        if "completions" in end
        else None,
    )


def _expected(entry: Mapping[str, Any]) -> Expected:
    call, fault = entry["call"], entry.get("fault")
    if call not in CALLS:
        raise VectorsError(f"unknown call {call!r}; allowed: {', '.join(CALLS)}")
    if fault not in (None, BEFORE_EFFECT, AFTER_EFFECT):
        raise VectorsError(f"unknown fault {fault!r}; allowed: {BEFORE_EFFECT}, {AFTER_EFFECT}")
    return Expected(
        at_ms=entry["at_ms"],
        call=call,
        arguments=entry["with"],
        answer=entry["answer"],
        state=entry["state"],
        fault=fault,
        gives=entry.get("gives"),
    )


_NAMES = tuple(f.name for f in fields(Capabilities))
