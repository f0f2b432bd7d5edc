"""Checking stores: the reference conforms, and each fault is found, named and told."""

from __future__ import annotations

from reference import ERRORS, memory_store

from peeklock.harness.stores import check_store


def test_the_reference_store_conforms() -> None:
    report = check_store(memory_store, seed=1, **ERRORS)
    assert report.runs >= 100
    assert report.calls > 1_000
