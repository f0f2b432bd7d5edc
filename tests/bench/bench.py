"""``make bench``: this engine, a plain evaluation of the same terms, and Spin on the exported model, in one run.

Writes docs/speed.json, from which the tables and the plot of docs/speed.md are made. Takes about a quarter of an
hour; with ``--quick``, the smallest worlds once, to see that it works.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from attrs import evolve
from measuring import Checked, World, check, measure, where
from spin_runner import EVERYTHING_CHECKED, NOTHING_CHECKED, SpinFailed, run_spin

from peeklock.cli.docs.speed import MEASURED, PLOT, plot
from peeklock.model.search.world import World as BoundedWorld
from peeklock.spec.law.policy import POLICIES
from peeklock.spec.variants.variant import Variant

HERE = Path(__file__).parent
WORLDS = tuple(World("retry", *size) for size in ((2, 1, 4), (2, 2, 1), (2, 2, 2), (2, 2, 4)))
QUICK = (World("retry", 1, 1, 4),)
PLAIN_AT_MOST = 5_000_000
"""Steps beyond which plain evaluation is not measured: it would take many minutes."""
SPIN_CHECKS_AT_MOST = 40_000_000
"""Steps beyond which Spin only explores."""
UNREDUCED = ("--no-symmetry", "--no-clearing")
GROWTH_SECONDS, GROWTH_MIB = 30, 1024


def compare(world: World, times: int) -> dict[str, Any]:
    """One row of the comparison."""
    full = check(world, *UNREDUCED, times=times)
    reduced = check(world, times=times)
    assert full.verdicts == reduced.verdicts, f"{world}: a reduction changed a verdict"
    row: dict[str, Any] = {"world": str(world), "distinct": full.distinct, "generated": full.generated}
    row["engine"], row["reduced"] = _numbers(full), _numbers(reduced)
    row["reduced"]["distinct"] = reduced.distinct
    row["plain"] = _plain(world, full, times) if full.generated <= PLAIN_AT_MOST else None
    row["spin"] = _spin(world, full, times)
    return row


def _plain(world: World, full: Checked, times: int) -> dict[str, Any]:
    command = [sys.executable, str(HERE / "plain.py"), *str(world).replace(",", "").split()]
    runs = [measure(command) for _ in range(times)]
    plain = json.loads(runs[0].out)
    assert (plain["distinct"], plain["generated"]) == (full.distinct, full.generated), (
        f"{world}: other counts"
    )
    assert plain["broken"] == sorted(p for p, v in full.verdicts.items() if v == "fails"), (
        f"{world}: other verdicts"
    )
    return {"seconds": median(r.seconds for r in runs), "mebibytes": median(r.mebibytes for r in runs)}


def _numbers(found: Checked) -> dict[str, Any]:
    return {"seconds": found.seconds, "mebibytes": found.mebibytes, "rate": found.generated / found.seconds}


def _spin(world: World, full: Checked, times: int) -> dict[str, Any]:
    variant = Variant(evolve(POLICIES[world.policy], max_attempts=2))
    bounded = BoundedWorld(variant, world.workers, world.items, world.deliveries)
    # Spin reports every single violation, which for a large world is more than can be read: there it checks nothing.
    checked = full.generated <= SPIN_CHECKS_AT_MOST
    options = EVERYTHING_CHECKED if checked else NOTHING_CHECKED
    runs = [run_spin(bounded, spin=options, pan=("-m1000000", "-w26")) for _ in range(times)]
    assert runs[0].stored == full.distinct, f"{world}: Spin stores {runs[0].stored}, not {full.distinct}"
    violated = {name.split("_")[0] for name in runs[0].violated if name[0] in "SC"}
    broken = {p for p, v in full.verdicts.items() if v == "fails"}
    assert not checked or violated == broken, f"{world}: Spin finds {violated}"
    return {
        "seconds": median(r.seconds for r in runs),
        "pan_seconds": median(r.pan_seconds for r in runs),
        "mebibytes": median(r.mebibytes for r in runs),
        "checked": checked,
    }


SERIES = {
    "workers": [World("retry", n, 1, 4) for n in range(1, 8)],
    "items": [World("retry", 2, n, 3) for n in range(1, 5)],
    "deliveries": [World("retry", 2, 2, n) for n in range(1, 8)],
    "workers and items": [World("retry", n, n, 2) for n in range(1, 4)],
}


def _with_attempts(folder: Path, attempts: int) -> World:
    """The world of two workers and two items under ``retry`` with another number of ack attempts."""
    waits = [100 * 2**k for k in range(attempts - 1)]
    policy = folder / f"{attempts}-attempts.toml"
    policy.write_text(f"ack_attempts = {attempts}\nack_waits_ms = {waits}\n", encoding="utf-8")
    return World(str(policy), 2, 2, 4)


def grow_attempts(quick: bool) -> list[dict[str, Any]]:
    """Time and memory as the number of ack attempts grows."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        for attempts in (1, 2) if quick else (1, 2, 3, 5, 8, 12):
            one = check(_with_attempts(Path(name), attempts))
            row = {
                "world": f"retry 2, 2, 4 with {attempts} attempts",
                "distinct": one.distinct,
                **_numbers(one),
            }
            found.append({**row, "stopped": ""})
            _progress(f"growth, attempts: {attempts}: {one.distinct:,} states, {one.seconds:.1f} s")
    return found


def grow(quick: bool) -> dict[str, list[dict[str, Any]]]:
    """Time and memory as each size grows, until a world needs more than a minute or a gigabyte."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name, worlds in SERIES.items():
        found[name] = []
        for world in worlds[: 2 if quick else None]:
            limits = ("--limit-seconds", str(GROWTH_SECONDS), "--limit-mib", str(GROWTH_MIB))
            one = check(world, *limits)
            found[name].append(
                {"world": str(world), "distinct": one.distinct, **_numbers(one), "stopped": one.stopped}
            )
            _progress(f"growth, {name}: {world}: {one.distinct:,} states, {one.seconds:.1f} s {one.stopped}")
            if one.stopped:
                break
    return found


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _spin_version() -> str:
    said = subprocess.run(["spin", "-V"], capture_output=True, text=True, check=False)
    return said.stdout.strip() or "spin"


def main() -> int:
    """Measure, and write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("-o", "--output", type=Path, default=HERE.parent.parent / "docs" / "speed.json")
    options = parser.parse_args()
    rows = []
    try:
        for world in QUICK if options.quick else WORLDS:
            rows.append(compare(world, times=1 if options.quick else 5))
            _progress(f"{world}: {json.dumps(rows[-1])}")
    except SpinFailed as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    here = where()
    data = {
        **here,
        "versions": {**here["versions"], "numpy": np.__version__, "spin": _spin_version()},
        "comparison": rows,
        "growth": {**grow(options.quick), "attempts": grow_attempts(options.quick)},
    }
    if not options.quick or "-o" in sys.argv or "--output" in sys.argv:
        options.output.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        if options.output.name == MEASURED.name:
            (options.output.parent / PLOT.name).write_text(plot(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
