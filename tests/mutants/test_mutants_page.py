"""The page of faults has a row for every mutant, in their order, and for no other."""

from __future__ import annotations

from pathlib import Path

from mutant import reported
from registry import ELSEWHERE, RACES, RUNS, STORES, WORKERS

PAGE = Path(__file__).parents[2] / "docs" / "mutants.md"


def test_the_page_has_a_row_for_every_fault_and_for_no_other() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    rows = [line for line in lines if not line.startswith(("| ---", "| fault |", "| report |"))]
    faults = [f"| {m.fault} | {reported(m.slug, m.link)} |" for m in (*STORES, *RACES, *WORKERS, *RUNS)]
    faults += [f"| {reported(slug, link)} | {why} |" for slug, link, why in ELSEWHERE]
    assert len(rows) == len(faults), "run tests/bench/mutants_table.py"
    for row, fault in zip(rows, faults, strict=True):
        assert row.startswith(fault), "run tests/bench/mutants_table.py"
