"""Every mutant, and what cannot be made one."""

from __future__ import annotations

import runs_holding
import runs_settling
import stores_handing_out
import stores_racing
import stores_settling
import stores_tokens
import workers_counting
import workers_holding
import workers_settling
from mutant import RunMutant, StoreMutant, WorkerMutant

STORES: tuple[StoreMutant, ...] = (
    *stores_tokens.MUTANTS,
    *stores_settling.MUTANTS,
    *stores_handing_out.MUTANTS,
)

RUNS: tuple[RunMutant, ...] = (*runs_settling.MUTANTS, *runs_holding.MUTANTS)
RACES: tuple[StoreMutant, ...] = stores_racing.MUTANTS
"""Stores that are caught only where calls are made at the same time."""

WORKERS: tuple[WorkerMutant, ...] = (
    *workers_settling.MUTANTS,
    *workers_counting.MUTANTS,
    *workers_holding.MUTANTS,
)

_GH = "https://github.com/"
ELSEWHERE: tuple[tuple[str, str, str], ...] = (
    (
        "drain-stops-renewal-first",
        _GH + "Azure-Samples/Durable-Task-Scheduler/issues/331",
        "not a fault by this protocol: at a shutdown renewing stops, and the grace is shorter than the lock",
    ),
)
"""What is not a mutant, its report, and why."""
