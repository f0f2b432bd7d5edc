"""Every faulty worker is caught, with the right promise or duty named; the correct ones never are."""

from __future__ import annotations

import pytest
from mutant import SEEDS, WORKERS_BUDGET, WorkerMutant, named_by
from registry import WORKERS
from twin_worker import AcksOnce, HardenedTwin, OneAttempt, TwinWorker, runs
from workers_holding import AT_MOST_ONE

from peeklock.harness.failure.report import ContractViolation
from peeklock.harness.worker.check import check_worker
from peeklock.harness.worker.corner_cases import corners
from peeklock.harness.worker.schedule import COMPLETES, DUTIES
from peeklock.spec.law.policy import Policy
from peeklock.spec.variants.policy_file import find_variant

TWINS: dict[str | Policy, type[TwinWorker]] = {
    "retry": TwinWorker,
    "before": AcksOnce,
    "hardened": HardenedTwin,
    AT_MOST_ONE: OneAttempt,
}


@pytest.mark.parametrize("mutant", WORKERS, ids=lambda m: m.slug)
def test_a_faulty_worker_is_caught_at_every_seed_with_the_right_promise(mutant: WorkerMutant) -> None:
    policy = mutant.policy if isinstance(mutant.policy, Policy) else find_variant(mutant.policy).policy
    for seed in SEEDS:
        with pytest.raises(ContractViolation) as caught:
            check_worker(runs(mutant.make), policy, seed=seed, settings=WORKERS_BUDGET)
        failure = caught.value.failure
        assert mutant.named & named_by(failure), f"seed {seed}: {caught.value}"
        assert failure.deterministic
        if failure.runs <= len(corners(policy)):
            break  # The corners are played first, and are the same at every seed.


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("policy", TWINS, ids=lambda p: getattr(p, "name", p))
def test_the_correct_worker_is_never_caught(policy: str | Policy, seed: int) -> None:
    report = check_worker(runs(TWINS[policy]), policy, seed=seed)
    assert report.runs > 0
    assert report.coverage.complete


def test_every_worker_is_a_change_of_the_twin_of_its_policy() -> None:
    for mutant in WORKERS:
        assert issubclass(mutant.make, TWINS[mutant.policy]), mutant.slug


def test_every_duty_is_one_that_some_faulty_worker_does_not_do() -> None:
    named = frozenset[str]().union(*(m.named for m in WORKERS))
    assert {d.name for d in DUTIES} - named == {COMPLETES.name}


def test_no_two_workers_have_one_name() -> None:
    assert len({m.slug for m in WORKERS}) == len(WORKERS)
