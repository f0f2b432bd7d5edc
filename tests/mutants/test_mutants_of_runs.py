"""Every recorded run with a fault in it is rejected at its last line; the same run, done right, is explained."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutant import RunMutant
from registry import RUNS
from trace_schema import held

from peeklock.harness.trace.file import read
from peeklock.harness.trace.judge import Judgement, judge
from peeklock.spec.law.policy import POLICIES


def judged(mutant: RunMutant, lines: tuple[str, ...], folder: Path) -> Judgement:
    path = folder / "run.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    held(path)
    return judge(*read(path), POLICIES[mutant.policy])


@pytest.mark.parametrize("mutant", RUNS, ids=lambda m: m.slug)
def test_a_run_is_rejected_where_the_fault_is_and_not_before(mutant: RunMutant, tmp_path: Path) -> None:
    lines = (*mutant.begins, *mutant.wrong)
    found = judged(mutant, lines, tmp_path)
    assert found.violation is not None, f"explained: {mutant.fault}"
    assert found.observations == len(lines) - 1, f"rejected too early: {found.violation}"
    assert mutant.promises & set(found.violation.promises), found.violation.promises


@pytest.mark.parametrize("mutant", RUNS, ids=lambda m: m.slug)
def test_the_same_run_done_right_is_explained(mutant: RunMutant, tmp_path: Path) -> None:
    found = judged(mutant, (*mutant.begins, *mutant.right), tmp_path)
    assert found.conforms, found.violation


def test_no_two_runs_have_one_name() -> None:
    assert len({m.slug for m in RUNS}) == len(RUNS)
