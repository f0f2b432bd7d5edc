"""Runs Spin on a bounded world: what it counts, what it finds, and how long it takes."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from peeklock.model.export.promela import promela
from peeklock.model.search.world import World
from peeklock.spec.compose import POSSIBILITIES, PROMISES
from peeklock.spec.promises.promise import Possibility, Promise

NO_REDUCTION = ("-O2", "-DSAFETY", "-DNOREDUCE")
"""How gcc is called, so that every step is taken: the counts are then those of the world."""
NOTHING_CHECKED = ("-DNONE",)
EVERYTHING_CHECKED = ("-DPOSSIBILITIES",)


class SpinFailed(Exception):
    """Spin is not there, does not accept the model, or did not get through."""


@frozen
class SpinRun:
    """What one exhaustive run of Spin found and took."""

    stored: int
    """Distinct states."""
    transitions: int
    """Steps, and one more for each state where promises are checked, and one for the initial state.

    Spin rounds it to eight digits.
    """
    errors: int
    violated: frozenset[str]
    """The names of the assertions that were violated: S12_1, R3."""
    first_violation: int | None
    """After how many steps the first was found; the fewest when the search is breadth first."""
    depth: int
    mebibytes: float
    spin_seconds: float
    gcc_seconds: float
    pan_seconds: float

    @property
    def seconds(self) -> float:
        """All three stages."""
        return self.spin_seconds + self.gcc_seconds + self.pan_seconds


def run_spin(
    world: World,
    promises: tuple[Promise, ...] = PROMISES,
    possibilities: tuple[Possibility, ...] = POSSIBILITIES,
    *,
    spin: Sequence[str] = NOTHING_CHECKED,
    gcc: Sequence[str] = NO_REDUCTION,
    pan: Sequence[str] = ("-m100000",),
) -> SpinRun:
    """Export a world, and have Spin explore all of it, past every error. ``SpinFailed`` when that cannot be done."""
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            raise SpinFailed(
                f"{tool} is not installed; it is needed here: apt-get install spin gcc libc6-dev"
            )
    with tempfile.TemporaryDirectory(prefix="peeklock-spin-") as name:
        folder = Path(name)
        (folder / "peeklock.pml").write_text(promela(world, promises, possibilities), encoding="utf-8")
        _, spin_seconds = _timed(["spin", "-a", "-o2", *spin, "peeklock.pml"], folder)
        _, gcc_seconds = _timed(["gcc", *gcc, "-w", "-o", "pan", "pan.c"], folder)
        said, pan_seconds = _timed(["./pan", "-c0", *pan], folder)
    for bad in ("max search depth too small", "out of memory", "Search not completed"):
        if bad in said:
            raise SpinFailed(f"the run is not complete: {bad}")
    first = re.search(r"assertion violated .* \(at depth (\d+)\)", said)
    return SpinRun(
        stored=int(float(_number(r"([\d.e+]+) states, stored", said))),
        transitions=int(float(_number(r"([\d.e+]+) transitions", said))),
        errors=int(float(_number(r"errors: (\d+)", said))),
        violated=frozenset(re.findall(r"assertion violated \((\w+)\|\|", said)),
        first_violation=int(first.group(1)) if first else None,
        depth=int(float(_number(r"depth reached (\d+)", said))),
        mebibytes=float(_number(r"([\d.]+)\s+total actual memory usage", said)),
        spin_seconds=spin_seconds,
        gcc_seconds=gcc_seconds,
        pan_seconds=pan_seconds,
    )


def _timed(command: list[str], folder: Path) -> tuple[str, float]:
    begun = time.monotonic()
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    seconds = time.monotonic() - begun
    if ended.returncode != 0 or (command[0] == "spin" and "rror" in ended.stdout):
        raise SpinFailed(f"{' '.join(command)} failed: {(ended.stdout + ended.stderr)[-2000:]}")
    return ended.stdout + ended.stderr, seconds


def _number(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise SpinFailed(f"Spin did not say {pattern!r}: {text[-2000:]}")
    return found.group(1)
