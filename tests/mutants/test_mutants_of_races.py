"""Every store that is wrong only under concurrent calls is caught by them; the correct one never is."""

from __future__ import annotations

import hypothesis
import pytest
from mutant import SEEDS, StoreMutant
from registry import RACES
from stores_racing import LockedTwin

from peeklock.harness.concurrent.check import check_store_concurrently
from peeklock.harness.failure.report import ContractViolation
from peeklock.harness.store.check import check_store

ROUNDS = 200


@pytest.mark.parametrize("mutant", RACES, ids=lambda m: m.slug)
def test_a_race_is_caught_by_concurrent_calls(mutant: StoreMutant) -> None:
    named: list[set[str]] = []
    for seed in SEEDS:
        with pytest.raises(ContractViolation) as caught:
            check_store_concurrently(mutant.make, seed=seed, rounds=ROUNDS)
        named.append(set(caught.value.failure.promises))
    # Threads meet as they please: what is seen first, and so which promise is named, differs from run to run.
    assert any(mutant.promises & promises for promises in named), named


@pytest.mark.parametrize("mutant", RACES, ids=lambda m: m.slug)
def test_a_race_is_right_as_long_as_one_call_is_made_at_a_time(mutant: StoreMutant) -> None:
    few = hypothesis.settings(max_examples=100, database=None)
    assert check_store(mutant.make, seed=0, settings=few).runs >= 100


@pytest.mark.parametrize("seed", SEEDS)
def test_the_correct_store_is_never_caught_by_concurrent_calls(seed: int) -> None:
    assert check_store_concurrently(LockedTwin, seed=seed, rounds=8).overlapping
