"""Every mutant, and what cannot be made one."""

from __future__ import annotations

import stores_handing_out
import stores_settling
import stores_tokens
from mutant import StoreMutant

STORES: tuple[StoreMutant, ...] = (
    *stores_tokens.MUTANTS,
    *stores_settling.MUTANTS,
    *stores_handing_out.MUTANTS,
)
