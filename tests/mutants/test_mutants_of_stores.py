"""Every faulty store is caught, with the right promise named; the correct one never is."""

from __future__ import annotations

import pytest
from mutant import StoreMutant
from registry import STORES
from twin_store import Twin
from walking import hunt

SEEDS = range(10)


@pytest.mark.parametrize("mutant", STORES, ids=lambda m: m.slug)
def test_a_faulty_store_is_caught_at_every_seed_with_the_right_promise(mutant: StoreMutant) -> None:
    for seed in SEEDS:
        caught = hunt(mutant.make, seed)
        assert caught is not None, f"seed {seed}: {mutant.fault}"
        assert mutant.promises & set(caught.promises), f"seed {seed}: {caught}"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_correct_store_is_never_caught(seed: int) -> None:
    assert hunt(Twin, seed) is None


def test_no_two_mutants_have_one_name() -> None:
    assert len({m.slug for m in STORES}) == len(STORES)
