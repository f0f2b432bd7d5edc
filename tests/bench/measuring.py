"""Measures commands as whole processes: wall time, and the most memory that was resident."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from attrs import frozen

PEEKLOCK = (sys.executable, "-m", "peeklock.cli.main")


def where() -> dict[str, Any]:
    """When and on what a benchmark runs."""
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores",
        "versions": {"python": platform.python_version()},
    }


@frozen
class Measured:
    """One run of a command."""

    seconds: float
    mebibytes: float
    out: str


def measure(command: Sequence[str]) -> Measured:
    """Run a command to its end."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
        begun = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, _, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - begun
        out.seek(0)
        return Measured(seconds, usage.ru_maxrss / 1024, out.read())


@frozen
class World:
    """A world of the comparison: policy, workers, items, deliveries."""

    policy: str
    workers: int
    items: int
    deliveries: int

    @property
    def options(self) -> tuple[str, ...]:
        """The world as options of the command line."""
        sizes = (("--workers", self.workers), ("--items", self.items), ("--deliveries", self.deliveries))
        return ("--policy", self.policy, *(str(x) for pair in sizes for x in pair))

    def __str__(self) -> str:
        return f"{self.policy} {self.workers}, {self.items}, {self.deliveries}"


@frozen
class Checked:
    """What several runs of one check took and counted."""

    seconds: float
    mebibytes: float
    distinct: int
    generated: int
    verdicts: dict[str, str]
    stopped: str = ""


def check(world: World, *options: str, times: int = 1) -> Checked:
    """The median of several runs of ``peeklock check``, without the proofs."""
    command = [*PEEKLOCK, "check", "--no-proof", "--no-causes", "--json", *world.options, *options]
    runs = [measure(command) for _ in range(times)]
    (found,) = json.loads(runs[-1].out)["checks"]
    counted: dict[str, Any] = found["statistics"]
    return Checked(
        seconds=median(r.seconds for r in runs),
        mebibytes=median(r.mebibytes for r in runs),
        distinct=counted["distinct"],
        generated=counted["generated"],
        verdicts={p["promise"]: p["verdict"] for p in found["promises"]},
        stopped=found["stopped"],
    )
