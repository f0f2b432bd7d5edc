"""Writes docs/mutants.md: every fault, which promise catches it, and how long that takes.

Run as ``PYTHONPATH=tests/mutants .venv/bin/python tests/bench/mutants_table.py``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from attrs import frozen
from mutant import RunMutant, StoreMutant
from registry import ELSEWHERE, RACES, RUNS, STORES

from peeklock.harness.concurrent import check_store_concurrently
from peeklock.harness.report import ContractViolation
from peeklock.harness.stores import check_store

PAGE = Path(__file__).parents[2] / "docs" / "mutants.md"
SEEDS, MOST_ROUNDS = range(10), 600
_OPENING = f"""# Faults of the field

What public bug reports tell of queues of this kind, made small: as a faulty store, or as a recorded run of a faulty
worker or store. Next to them stand other faults of the same kinds. Each is caught; the correct store that they are
changes of never is. `make test` holds this; [the code](../tests/mutants) shows each fault in a few lines.

This page is written by `tests/bench/mutants_table.py`; the times are of the machine that it ran on.

## Faulty stores

`check_store` in its default budget, at {len(SEEDS)} seeds. Given are the medians of the runs that were made until the
fault was caught, and of the whole time, in which the run is shortened as well; and the promises that were named at
every seed, or one of which was at each.

| fault | reported | promise | runs | ms |
| --- | --- | --- | --- | --- |
"""
_RACES = """
## Races

Stores that are right as long as one call is made at a time, and are caught by `check_store_concurrently`. Given are the
promises of which one must be named, and the medians of the rounds and of the time.

| fault | reported | promise | rounds | ms |
| --- | --- | --- | --- | --- |
"""
_RUNS = """
## Recorded runs

Each is rejected by [`peeklock trace`](trace-format.md) at the very line of the fault, and the same run, done right, is
explained.

| fault | reported | policy | promise |
| --- | --- | --- | --- |
"""
_ELSEWHERE = """
## Not made a mutant here

| report | why |
| --- | --- |
"""


def _reported(mutant: StoreMutant | RunMutant) -> str:
    if mutant.link is None:
        return "another of its kind"
    slug = mutant.slug.removeprefix("run: ").removeprefix("race: ")
    return f"[{slug}]({mutant.link})"


@frozen
class Catch:
    """A faulty store that was caught."""

    runs: int
    promises: frozenset[str]
    seconds: float
    """Of the processor."""


def catch(mutant: StoreMutant, seed: int) -> Catch:
    """Check a faulty store; ``SystemExit`` where it is not caught."""
    began_s = time.process_time()
    try:
        check_store(mutant.make, seed=seed)
    except ContractViolation as caught:
        failure = caught.failure
        return Catch(failure.runs, frozenset(failure.promises), time.process_time() - began_s)
    raise SystemExit(f"{mutant.slug}: not caught at seed {seed}")


def _store_row(mutant: StoreMutant) -> str:
    caught = [catch(mutant, seed) for seed in SEEDS]
    always = frozenset.intersection(*(c.promises for c in caught))
    told = ", ".join(sorted(always)) or " or ".join(sorted(mutant.promises))
    runs, ms = median(c.runs for c in caught), median(c.seconds for c in caught) * 1_000
    return f"| {mutant.fault} | {_reported(mutant)} | {told} | {runs:g} | {ms:.0f} |"


def _race_row(mutant: StoreMutant) -> str:
    rounds, times_ms = [], []
    for seed in SEEDS:
        began = time.perf_counter()
        try:
            check_store_concurrently(mutant.make, seed=seed, rounds=MOST_ROUNDS)
        except ContractViolation as caught:
            rounds.append(caught.failure.runs)
        else:
            raise SystemExit(f"{mutant.slug}: not caught at seed {seed}")
        times_ms.append((time.perf_counter() - began) * 1_000)
    told = " or ".join(sorted(mutant.promises))
    return f"| {mutant.fault} | {_reported(mutant)} | {told} | {median(rounds):g} | {median(times_ms):.0f} |"


def _run_row(mutant: RunMutant) -> str:
    told = " or ".join(sorted(mutant.promises))
    return f"| {mutant.fault} | {_reported(mutant)} | `{mutant.policy}` | {told} |"


def page() -> Iterator[str]:
    """The page, piece by piece."""
    yield _OPENING
    for store in STORES:
        yield _store_row(store) + "\n"
    yield _RACES
    for race in RACES:
        yield _race_row(race) + "\n"
    yield _RUNS
    for run in RUNS:
        yield _run_row(run) + "\n"
    yield _ELSEWHERE
    for slug, link, why in ELSEWHERE:
        yield f"| [{slug}]({link}) | {why} |\n"


if __name__ == "__main__":
    PAGE.write_text("".join(page()), encoding="utf-8")
    print(f"{PAGE.name}: {len(STORES)} stores, {len(RACES)} races, {len(RUNS)} runs", file=sys.stderr)
