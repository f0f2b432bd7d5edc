"""Every mutant, and what cannot be made one."""

from __future__ import annotations

import runs_holding
import runs_settling
import stores_handing_out
import stores_racing
import stores_settling
import stores_tokens
from mutant import RunMutant, StoreMutant

STORES: tuple[StoreMutant, ...] = (
    *stores_tokens.MUTANTS,
    *stores_settling.MUTANTS,
    *stores_handing_out.MUTANTS,
)

RUNS: tuple[RunMutant, ...] = (*runs_settling.MUTANTS, *runs_holding.MUTANTS)
RACES: tuple[StoreMutant, ...] = stores_racing.MUTANTS
"""Stores that are caught only where calls are made at the same time."""

_GH = "https://github.com/"
_BY_TIME = (
    "a duty of time of a worker; a recorded run cannot show a renewal that is missing, only a live worker can"
)
ELSEWHERE: tuple[tuple[str, str, str], ...] = (
    ("hold-longer-than-lock-no-renewal", _GH + "celery/celery/issues/5935", _BY_TIME),
    ("renewed-once-only", _GH + "googleapis/google-cloud-ruby/issues/4103", _BY_TIME),
    (
        "poison-kills-a-running-item",
        _GH + "laravel/framework/issues/48539",
        f"the run is lawful for the store, and its cause is {_BY_TIME}",
    ),
    (
        "drain-stops-renewal-first",
        _GH + "Azure-Samples/Durable-Task-Scheduler/issues/331",
        "not a fault by this protocol: at a shutdown renewing stops, and the grace is shorter than the lock",
    ),
)
"""What is not a mutant, its report, and why."""
