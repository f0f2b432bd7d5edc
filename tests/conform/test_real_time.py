"""Stores whose clock cannot be moved: the check waits for them, and finds what is wrong by more than it must allow.

The machine's clock is a made-up one here, so that what is found does not depend on how busy the machine is.
"""

from __future__ import annotations

from typing import Any

import faulty_stores
import pytest
from faulty_stores import InRealTime, PlainStore
from hypothesis import settings

from peeklock.harness.adapter import clocks
from peeklock.harness.adapter.interface import Delivery
from peeklock.harness.failure.report import ContractViolation, Report
from peeklock.harness.store.check import check_store
from peeklock.spec.variants.capabilities import Capabilities

# Fewer calls, so that less has to be waited for.
REAL = Capabilities(virtual_clock=False, abandon=False, cancel=False, enqueue_delay=False)


class Machine:
    """Stands for the module ``time``: a look at the clock takes ten microseconds, a wait its time, all else none."""

    def __init__(self) -> None:
        self._now_ns = 0

    def monotonic_ns(self) -> int:
        self._now_ns += 10_000
        return self._now_ns

    time_ns = monotonic_ns

    def sleep(self, seconds: float) -> None:
        self._now_ns += int(seconds * 1e9)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = Machine()
    monkeypatch.setattr(clocks, "time", made_up)
    monkeypatch.setattr(faulty_stores, "time", made_up)


class LocksAreTooShort(PlainStore):
    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        return super().fetch(lock_timeout_ms // 2)


class RenewalsAreTooShort(PlainStore):
    def renew(self, token: str, extend_for_ms: int) -> None:
        super().renew(token, extend_for_ms // 3)


def checked(store: type[PlainStore], most: int = 1) -> Report:
    """The check of such a store, on the machine's clock."""

    class Slow(store):  # type: ignore[valid-type, misc]
        advance = InRealTime.advance
        now_ms = InRealTime.now_ms

    few: Any = settings(max_examples=most, database=None)
    return check_store(Slow, REAL, settings=few, seed=1, budget_s=60)


def test_a_store_in_real_time_is_waited_for_and_the_report_says_what_that_leaves_out() -> None:
    report = checked(PlainStore, most=10)
    assert report.runs > 10
    assert "the very end of a lock or a delay, and what is long after it" in report.coverage.left_out


@pytest.mark.parametrize(
    "store",
    [
        faulty_stores.RenewalsDoNothing,
        faulty_stores.LocksNeverExpire,
        faulty_stores.AcceptsAcksAfterExpiry,
        LocksAreTooShort,
        RenewalsAreTooShort,
    ],
)
def test_a_fault_of_time_is_found_in_real_time(store: type[PlainStore]) -> None:
    with pytest.raises(ContractViolation) as caught:
        checked(store)
    failure = caught.value.failure
    assert {"C1", "C4"}.intersection(failure.promises)
    assert any(step.call is None for step in failure.steps)
    assert failure.observations[-1].until_ms is not None


def test_what_is_wrong_by_a_millisecond_is_not_seen_in_real_time() -> None:
    assert checked(faulty_stores.LocksLastOneMillisecondLonger).runs > 10
