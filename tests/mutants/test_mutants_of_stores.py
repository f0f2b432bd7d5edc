"""Every faulty store is caught, with the right promise named; the correct one never is."""

from __future__ import annotations

import pytest
from mutant import SEEDS, STORES_BUDGET, StoreMutant
from registry import STORES
from twin_store import Twin

from peeklock.harness.failure.report import ContractViolation
from peeklock.harness.store.check import check_store


@pytest.mark.parametrize("mutant", STORES, ids=lambda m: m.slug)
def test_a_faulty_store_is_caught_at_every_seed_with_the_right_promise(mutant: StoreMutant) -> None:
    for seed in SEEDS:
        with pytest.raises(ContractViolation) as caught:
            check_store(mutant.make, seed=seed, settings=STORES_BUDGET)
        assert mutant.promises & set(caught.value.failure.promises), f"seed {seed}: {caught.value}"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_correct_store_is_never_caught(seed: int) -> None:
    assert check_store(Twin, seed=seed).runs > 0


def test_no_two_mutants_have_one_name() -> None:
    assert len({m.slug for m in STORES}) == len(STORES)
