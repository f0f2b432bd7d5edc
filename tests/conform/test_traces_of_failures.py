"""The trace that a failed check of a store leaves is judged as the check judged it, and is told in the same steps."""

from __future__ import annotations

from pathlib import Path

import faulty_stores
import pytest
from faulty_stores import PlainStore
from hypothesis import settings
from trace_schema import written

from peeklock.cli.main import run
from peeklock.harness.failure.failure import Failure
from peeklock.harness.failure.report import ContractViolation
from peeklock.harness.failure.report_text import tale_of
from peeklock.harness.store.check import check_store
from peeklock.harness.trace.file import Kind, read
from peeklock.harness.trace.judge import judge
from peeklock.harness.trace.story_of_trace import tale_of_trace
from peeklock.spec.law.policy import RETRY
from peeklock.spec.variants.capabilities import STANDARD, Capabilities, UnknownToken

SILENT = Capabilities(abandon_unknown_token=UnknownToken.SILENT)
IN_REAL_TIME = Capabilities(virtual_clock=False)
WITH_FAULTS = Capabilities(fault_injection=True)


class FailsOnDemandAndForgets(faulty_stores.FailsOnDemand, faulty_stores.CompletionsAreLost):
    pass


STORES: dict[type[PlainStore], Capabilities] = {
    faulty_stores.AcceptsStaleTokens: STANDARD,
    faulty_stores.LocksNeverExpire: STANDARD,
    faulty_stores.RepeatedAcksEnqueueAgain: STANDARD,
    faulty_stores.RefusedAcksEnqueue: STANDARD,
    faulty_stores.CompletionsAreLost: STANDARD,
    faulty_stores.TheYoungestFirst: STANDARD,
    faulty_stores.AttemptsAreNotCounted: STANDARD,
    faulty_stores.TokensAreTheItemsNames: STANDARD,
    faulty_stores.CancelLeavesLockedRows: STANDARD,
    faulty_stores.CancelSaysNothing: STANDARD,
    faulty_stores.StrangersMayAbandon: STANDARD,
    faulty_stores.CarriesAnotherCompletion: STANDARD,
    faulty_stores.IsOftenBusy: STANDARD,
    faulty_stores.AbandonsInSilence: STANDARD,
    faulty_stores.AcceptsAcksAfterExpiry: SILENT,
    faulty_stores.ProlongsLocks: SILENT,
    faulty_stores.InRealTimeLocksNeverExpire: IN_REAL_TIME,
    FailsOnDemandAndForgets: WITH_FAULTS,
}


def failure_of(make: type[PlainStore]) -> Failure:
    with pytest.raises(ContractViolation) as caught:
        check_store(make, STORES[make], seed=1, settings=settings(max_examples=300, database=None))
    return caught.value.failure


@pytest.mark.parametrize("make", STORES, ids=lambda make: make.__name__)
def test_the_trace_of_a_failure_has_its_verdict_its_promises_and_its_steps(
    make: type[PlainStore], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = failure_of(make)
    path = written(tmp_path, *failure.trace_lines())
    header, entries = read(path)
    assert (header.kind, header.capabilities) == (Kind.STORE, failure.capabilities)
    found = judge(header, entries, RETRY)
    assert found.violation is not None
    assert (found.violation.promises, found.violation.reason) == (failure.promises, failure.violation.reason)
    assert tale_of_trace(path, found, RETRY).steps == tale_of(failure).steps
    assert run(["trace", str(path)]) == 1
    assert failure.promises[0] in capsys.readouterr().out


def test_without_its_last_step_and_the_look_after_it_it_conforms(tmp_path: Path) -> None:
    failure = failure_of(faulty_stores.AcceptsStaleTokens)
    path = written(tmp_path, *failure.trace_lines()[:-2])
    assert judge(*read(path), RETRY).conforms
