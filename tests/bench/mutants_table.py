"""Writes docs/mutants.md: every fault, which promise catches it, and how long that takes.

Run as ``.venv/bin/python tests/bench/mutants_table.py``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

from attrs import frozen
from mutant import SEEDS, RunMutant, StoreMutant, WorkerMutant, named_by, reported
from registry import ELSEWHERE, RACES, RUNS, STORES, WORKERS
from twin_worker import runs

from peeklock.harness.concurrent.check import check_store_concurrently
from peeklock.harness.failure.report import ContractViolation
from peeklock.harness.store.check import check_store
from peeklock.harness.worker.check import check_worker

PAGE = Path(__file__).parents[2] / "docs" / "mutants.md"
MOST_ROUNDS = 600
_OPENING = f"""# Faults of the field

What public bug reports tell of queues of this kind, made small: as a faulty store, as a faulty worker, or as a
recorded run of one of them. Next to them stand other faults of the same kinds. Each is caught; the correct store and
the correct worker that they are changes of never are. `make test` holds this; [the code](../tests/mutants) shows each
fault in a few lines.

This page is written by `.venv/bin/python tests/bench/mutants_table.py`, which measures the
runs and the times anew; they are of the machine that it ran on. The tests hold that every fault is in it.

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
_WORKERS = f"""
## Faulty workers

`check_worker` in its default budget, at {len(SEEDS)} seeds; the correct worker of the same policy passes at each. Given
are the promises that were named at every seed, else the [duty of time](your-worker.md#what-is-judged), and the medians
of the runs and of the time.

| fault | reported | policy | promise or duty | runs | ms |
| --- | --- | --- | --- | --- | --- |
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


@frozen
class Catch:
    """A fault that was caught."""

    runs: int
    named: frozenset[str]
    """The promises, or the duty of time."""
    seconds: float
    """Of the processor."""


def catch(slug: str, check: Callable[[], object]) -> Catch:
    """Make a check; ``SystemExit`` where it catches nothing."""
    began_s = time.process_time()
    try:
        check()
    except ContractViolation as caught:
        return Catch(caught.failure.runs, named_by(caught.failure), time.process_time() - began_s)
    raise SystemExit(f"{slug}: not caught")


def _caught(slug: str, check: Callable[[int], object], least: frozenset[str]) -> str:
    """What is named at every seed, or of which one is at each, and the medians of the runs and of the time."""
    caught = [catch(f"{slug}, seed {seed}", partial(check, seed)) for seed in SEEDS]
    always = frozenset.intersection(*(c.named for c in caught))
    told = ", ".join(sorted(always)) or " or ".join(sorted(least))
    made, ms = median(c.runs for c in caught), median(c.seconds for c in caught) * 1_000
    return f"{told} | {made:g} | {ms:.0f} |"


def _store_row(mutant: StoreMutant) -> str:
    caught = _caught(mutant.slug, lambda seed: check_store(mutant.make, seed=seed), mutant.promises)
    return f"| {mutant.fault} | {reported(mutant.slug, mutant.link)} | {caught}"


def _race_row(mutant: StoreMutant) -> str:
    def check(seed: int) -> object:
        return check_store_concurrently(mutant.make, seed=seed, rounds=MOST_ROUNDS)

    return f"| {mutant.fault} | {reported(mutant.slug, mutant.link)} | {_caught(mutant.slug, check, mutant.promises)}"


def _worker_row(mutant: WorkerMutant) -> str:
    def check(seed: int) -> object:
        return check_worker(runs(mutant.make), mutant.policy, seed=seed)

    policy = mutant.policy if isinstance(mutant.policy, str) else mutant.policy.name
    caught = _caught(mutant.slug, check, mutant.named)
    return f"| {mutant.fault} | {reported(mutant.slug, mutant.link)} | `{policy}` | {caught}"


def _run_row(mutant: RunMutant) -> str:
    told = " or ".join(sorted(mutant.promises))
    return f"| {mutant.fault} | {reported(mutant.slug, mutant.link)} | `{mutant.policy}` | {told} |"


def page() -> Iterator[str]:
    """The page, piece by piece."""
    yield _OPENING
    for store in STORES:
        yield _store_row(store) + "\n"
    yield _RACES
    for race in RACES:
        yield _race_row(race) + "\n"
    yield _WORKERS
    for worker in WORKERS:
        yield _worker_row(worker) + "\n"
    yield _RUNS
    for run in RUNS:
        yield _run_row(run) + "\n"
    yield _ELSEWHERE
    for slug, link, why in ELSEWHERE:
        yield f"| {reported(slug, link)} | {why} |\n"


if __name__ == "__main__":
    PAGE.write_text("".join(page()), encoding="utf-8")
    print(
        f"{PAGE.name}: {len(STORES)} stores, {len(RACES)} races, {len(WORKERS)} workers, {len(RUNS)} runs",
        file=sys.stderr,
    )
