"""``make bench-harness``: what a check of a store costs, how soon a fault is found, and how fast runs are judged.

All in the processor's time, which other processes do not prolong. Writes docs/harness-speed.json, from which the table
of docs/speed.md is made; a few minutes. With ``--quick`` all is small, printed and not kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import bench_traces
import histories
from attrs import asdict, frozen
from hypothesis import settings
from measuring import where
from mutants_table import catch
from reference import ERRORS, ReferenceAdapter, memory_store
from registry import STORES

from peeklock.cli.docs.speed import HARNESS_MEASURED
from peeklock.harness.store.check import check_store

ROOT = Path(__file__).parents[2]


@frozen
class Row:
    """One thing that was measured, and what it should be."""

    what: str
    measured: str
    should_be: str = ""


class _Noting:
    """A store that notes its calls, to be made again of a bare one."""

    def __init__(self, store: ReferenceAdapter, calls: list[tuple[str, tuple[Any, ...]]]) -> None:
        self._store, self._calls = store, calls

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._store, name)

        def noted(*args: Any) -> Any:
            self._calls.append((name, args))
            return call(*args)

        return noted


def overhead(most: int) -> Iterator[Row]:
    """A default check of the reference store in memory, and the same calls made of it without the check."""
    chosen = settings(max_examples=most, database=None)
    began_s = time.process_time()
    report = check_store(memory_store, seed=1, settings=chosen, **ERRORS)
    checked_s = time.process_time() - began_s
    runs: list[list[tuple[str, tuple[Any, ...]]]] = []

    def noting() -> _Noting:
        runs.append([])
        return _Noting(memory_store(), runs[-1])

    check_store(noting, seed=1, settings=chosen, **ERRORS)
    began_s = time.process_time()
    for calls in runs:
        store = memory_store()
        for name, args in calls:
            with suppress(*ERRORS["retryable"], *ERRORS["permanent"]):
                getattr(store, name)(*args)
    bare_s = time.process_time() - began_s
    calls_made = f"{report.runs:,} runs, {report.calls:,} calls"
    yield Row(f"a check of the store in memory: {calls_made}", f"{checked_s:.1f} s", "under 10 s")
    yield Row("the same calls without the check", f"{bare_s:.3f} s")
    yield Row("the check, as a multiple of that", f"{checked_s / bare_s:.0f}")
    yield Row("what the check adds to one call", f"{(checked_s - bare_s) / report.calls * 1e6:.0f} µs")


def catching(seeds: int, every: int) -> Iterator[Row]:
    """How long it takes to catch each faulty store, at some seeds, with the time in which its run is shortened."""
    chosen = STORES[::every]
    seconds = [
        catch(mutant.slug, partial(check_store, mutant.make, seed=seed)).seconds
        for mutant in chosen
        for seed in range(seeds)
    ]
    what = f"{len(chosen)} faulty stores at {seeds} seeds, each caught"
    yield Row(f"{what}: median", f"{median(seconds):.2f} s", "under 3 s")
    yield Row(f"{what}: slowest", f"{max(seconds):.2f} s", "under 20 s")


def judging(events: int, calls: int) -> Iterator[Row]:
    """How fast a recorded run is judged, and a history of concurrent calls."""
    with tempfile.TemporaryDirectory() as folder:
        for kind in bench_traces.KINDS:
            found = bench_traces.measure(events, kind, Path(folder))
            yield Row(
                f"`peeklock trace` of {events:,} events: {kind}",
                f"{found['a second']:,.0f} a second, {found['MiB']:.0f} MiB",
                "20,000 a second or more",
            )
    one = histories.measure(calls, 8)
    yield Row(
        f"a history of {one.calls:,} calls by {one.workers} workers at once",
        f"{one.seconds:.1f} s",
        "under 10 s",
    )


def main() -> int:
    """Measure, print, and write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    rows = []
    for measured in (
        overhead(20 if quick else 500),
        catching(1, 10) if quick else catching(3, 1),
        judging(5_000, 500) if quick else judging(1_000_000, 10_000),
    ):
        for row in measured:
            rows.append(row)
            aim = f" ({row.should_be})" if row.should_be and not quick else ""
            print(f"{row.what}: {row.measured}{aim}", flush=True)
    if not quick:
        data = {**where(), "rows": [asdict(row) for row in rows]}
        (ROOT / HARNESS_MEASURED).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
