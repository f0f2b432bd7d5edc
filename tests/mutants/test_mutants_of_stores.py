"""Every faulty store is caught, with the right promise named; the correct one never is."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutant import DEFAULT_BUDGET, SEEDS, StoreMutant
from registry import RACES, RUNS, STORES
from twin_store import Twin

from peeklock.harness.report import ContractViolation
from peeklock.harness.stores import check_store


@pytest.mark.parametrize("mutant", STORES, ids=lambda m: m.slug)
def test_a_faulty_store_is_caught_at_every_seed_with_the_right_promise(mutant: StoreMutant) -> None:
    for seed in SEEDS:
        with pytest.raises(ContractViolation) as caught:
            check_store(mutant.make, seed=seed, settings=DEFAULT_BUDGET)
        assert mutant.promises & set(caught.value.failure.promises), f"seed {seed}: {caught.value}"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_correct_store_is_never_caught(seed: int) -> None:
    assert check_store(Twin, seed=seed).runs > 0


def test_no_two_mutants_have_one_name() -> None:
    assert len({m.slug for m in STORES}) == len(STORES)


def test_the_page_of_faults_has_every_mutant() -> None:
    page = (Path(__file__).parents[2] / "docs" / "mutants.md").read_text(encoding="utf-8")
    for mutant in (*STORES, *RACES, *RUNS):
        assert f"| {mutant.fault} |" in page, f"{mutant.slug}: run tests/bench/mutants_table.py"
