"""One store under several processes: a right one conforms, a race is caught, and nothing is left running."""

from __future__ import annotations

import os
import subprocess
import traceback
from collections.abc import Iterator
from functools import partial

import pytest
from reference import ERRORS
from shared_stores import (
    cannot_be_opened,
    checks_then_claims_at,
    dies_in_an_ack_at,
    hangs_in_an_ack_at,
    sqlite_store_at,
    sqlite_store_in_real_time_at,
)

from peeklock.harness.adapter.wrapping import AdapterError
from peeklock.harness.concurrent import check as concurrent
from peeklock.harness.concurrent.check import check_store_by_processes
from peeklock.harness.failure.report import ContractViolation
from peeklock.spec.variants.capabilities import Capabilities


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    yield
    found = subprocess.run(
        ["ps", "-ww", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False
    )
    assert "peeklock.harness.wire.serving" not in found.stdout


def test_the_reference_store_conforms_under_three_processes() -> None:
    report = check_store_by_processes(sqlite_store_at, rounds=6, **ERRORS)
    assert report.subject == "shared_stores.sqlite_store_at"
    assert report.overlapping
    assert report.calls == sum(report.coverage.reached.values()) > report.overlapping


def test_the_reference_store_conforms_under_two_processes_in_real_time() -> None:
    report = check_store_by_processes(
        sqlite_store_in_real_time_at, Capabilities(virtual_clock=False), processes=2, rounds=4, **ERRORS
    )
    assert report.overlapping


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_fetch_of_two_transactions_is_caught(seed: int) -> None:
    with pytest.raises(ContractViolation) as caught:
        check_store_by_processes(checks_then_claims_at, rounds=100, seed=seed, **ERRORS)
    assert {"S6", "C1"} & set(caught.value.failure.promises)


def test_what_a_process_said_last_is_told_when_it_dies() -> None:
    with pytest.raises(
        AdapterError, match=r"(?s)ack: the program ended with exit code 1.*KeyError.*who died"
    ):
        check_store_by_processes(dies_in_an_ack_at, rounds=20, **ERRORS)
    with pytest.raises(AdapterError, match=r"(?s)new: the program ended.*FileNotFoundError: no store"):
        check_store_by_processes(cannot_be_opened)


def test_a_process_that_hangs_is_ended() -> None:
    with pytest.raises(AdapterError, match=r"ack: no line within 0.5 s"):
        check_store_by_processes(hangs_in_an_ack_at, rounds=20, call_limit_s=0.5, **ERRORS)


def test_what_another_process_cannot_find_is_refused() -> None:
    with pytest.raises(AdapterError, match=r"allowed: functions and classes at the top of a module"):
        check_store_by_processes(lambda place: sqlite_store_at(place))
    with pytest.raises(ValueError, match="2 to 64"):
        check_store_by_processes(sqlite_store_at, processes=1)


def test_an_interrupt_comes_out_bare(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupts(rounds: int, calls: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(concurrent, "check_programs", partial(concurrent.check_programs, watch=interrupts))
    with pytest.raises(KeyboardInterrupt) as caught:
        check_store_by_processes(sqlite_store_at, processes=2, **ERRORS)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [f.name for f in frames][1:] == ["check_store_by_processes"]
    assert caught.value.__suppress_context__
