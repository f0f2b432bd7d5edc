"""Every mutant, and what cannot be made one."""

from __future__ import annotations

import runs_holding
import runs_settling
import stores_handing_out
import stores_settling
import stores_tokens
from mutant import RunMutant, StoreMutant

STORES: tuple[StoreMutant, ...] = (
    *stores_tokens.MUTANTS,
    *stores_settling.MUTANTS,
    *stores_handing_out.MUTANTS,
)

RUNS: tuple[RunMutant, ...] = (*runs_settling.MUTANTS, *runs_holding.MUTANTS)
