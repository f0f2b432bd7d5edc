"""Checkpoints: a search that was stopped, in a file, for a later run to go on from.

What is kept is the search at the beginning of the level that it was in: its levels, its records and their numbers,
and what it had found and counted. Tables are worked out again as they are needed.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from peeklock.model.search.engine import Search, Statistics

FORMAT = 1


class CheckpointError(ValueError):
    """A checkpoint that cannot be used: not one, or of another search. One line, with the file's name."""


def fingerprint(search: Search) -> str:
    """What a search is about, as a short text: the same for the same world, protocol, promises and reductions."""
    world = search.world
    said = [
        repr(
            (world.workers, world.items, world.deliveries, world.variant.fifo, sorted(world.variant.faults))
        ),
        repr(world.variant.policy),
        repr((search.symmetric, search.clearing)),
        *(f"{a.name}|{a.guards}|{a.effects}" for a in world.actions),
        *(f"{w.part.text}|{w.part.state}|{w.wanted}" for w in search.watches),
    ]
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:24]


def save(search: Search, path: Path) -> None:
    """Write the search as it was at the beginning of the level that it is in; wholly or not at all."""
    kept = search.at_level
    header: dict[str, Any] = {
        "format": FORMAT,
        "search": fingerprint(search),
        "extra_bits": search.extra_bits,
        "found": {str(bit): level for bit, level in search.found.items()},
        "stuck": search.stuck,
        "generated": kept.generated,
        "fired": kept.fired,
        "seconds": search.statistics.seconds,
        "workers": search.packing.workers.records,
        "items": search.packing.items.records,
        "level_sizes": [len(level) for level in search.levels],
    }
    arrays: dict[str, Any] = {f"fold{k}": a for k, a in enumerate(search.packing.folded_words())}
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        arrays |= {"header": np.array(json.dumps(header)), "states": np.concatenate(search.levels)}
        np.savez(file, allow_pickle=False, **arrays)
    os.replace(part, path)


def restore(search: Search, path: Path) -> None:
    """Put a fresh search where the one in the file was. ``CheckpointError`` when the file is not of this search."""
    try:
        with np.load(path, allow_pickle=False) as data:
            header = json.loads(str(data["header"]))
            states = data["states"]
            folds = [data[name] for name in sorted(data.files) if name.startswith("fold")]
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile):
        raise CheckpointError(f"{path}: not a checkpoint, or damaged; remove it to begin anew") from None
    if header.get("format") != FORMAT:
        raise CheckpointError(f"{path}: a checkpoint of format {header.get('format')}; allowed: {FORMAT}")
    if header["search"] != fingerprint(search):
        raise CheckpointError(
            f"{path}: the checkpoint of another search; allowed: the same policy, faults, sizes, promises and options"
        )
    ends = np.cumsum(header["level_sizes"])
    levels = [states[end - size : end] for size, end in zip(header["level_sizes"], ends, strict=True)]
    search.resume(
        levels,
        Statistics(
            distinct=len(states),
            generated=header["generated"],
            depth=len(levels) - 1,
            seconds=header["seconds"],
            level_sizes=list(header["level_sizes"]),
            fired=dict(header["fired"]),
        ),
        workers=[tuple(r) for r in header["workers"]],
        items=[tuple(r) for r in header["items"]],
        folds=folds,
        extra_bits=header["extra_bits"],
    )
    search.found = {int(bit): level for bit, level in header["found"].items()}
    search.stuck = header["stuck"]
