"""How the failure of a store is told: the step that is wrong, the promises that it breaks, and how to see it again."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import faulty_stores
import pytest
from faulty_stores import PlainStore
from hypothesis import settings

from peeklock.cli import main
from peeklock.harness.adapter.interface import Delivery, PermanentError
from peeklock.harness.failure.failure import Failure
from peeklock.harness.failure.report import ContractViolation
from peeklock.harness.failure.report_text import tale_of, told
from peeklock.harness.store.check import check_store
from peeklock.spec.notation.actions import Answer, Call
from peeklock.spec.reading.timed_store import Fault
from peeklock.spec.variants.capabilities import STANDARD, Capabilities, Order, Renewal, UnknownToken

HERE = Path(__file__).parent


class SaysOkAgain(PlainStore):
    """An ack that has committed is said to be ok when it is repeated; nothing is enqueued then."""

    def ack(self, token: str, completion: str | None) -> None:
        if token in self.owner and self.owner[token] in dict(self.done):
            return
        super().ack(token, completion)


class GivesBackAgain(PlainStore):
    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        if token not in self.owner or any(row.token == token for row in self.rows.values()):
            super().abandon(token, delay_ms, ignore_attempt)


class CancelsAgain(PlainStore):
    def __init__(self) -> None:
        super().__init__()
        self.ever: set[str] = set()

    def cancel(self, items: Sequence[str]) -> Sequence[str]:
        self.ever |= set(super().cancel(items))
        return [item for item in dict.fromkeys(items) if item in self.ever]


class StrangersMayAck(PlainStore):
    def ack(self, token: str, completion: str | None) -> None:
        if token in self.owner:
            super().ack(token, completion)


class CountsToFour(PlainStore):
    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        found = super().fetch(lock_timeout_ms)
        return found and Delivery(found.item, found.token, min(found.attempt_count or 0, 4))


class HalfMended(CountsToFour):
    """Another wrong count."""

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        found = super().fetch(lock_timeout_ms)
        return found and Delivery(
            found.item, found.token, 7 if found.attempt_count == 4 else found.attempt_count
        )


class Refused(LookupError):
    pass


class RefusesInItsOwnWay(PlainStore):
    def locked(self, token: str) -> faulty_stores.Row:
        try:
            return super().locked(token)
        except PermanentError:
            raise Refused from None


def failure_of(
    make_store: Callable[[], PlainStore],
    capabilities: Capabilities = STANDARD,
    *,
    seed: int = 1,
    permanent: tuple[type[Exception], ...] = (),
) -> Failure:
    few = settings(max_examples=500, database=None)
    with pytest.raises(ContractViolation) as caught:
        check_store(make_store, capabilities, seed=seed, settings=few, permanent=permanent)
    return caught.value.failure


@pytest.mark.parametrize(
    ("make_store", "does"),
    [
        (SaysOkAgain, ["enqueue", "fetch", "ack", "ack"]),
        (GivesBackAgain, ["enqueue", "fetch", "abandon", "abandon"]),
        (CancelsAgain, ["enqueue", "cancel", "cancel"]),
    ],
)
def test_a_call_that_is_wrong_the_second_time_is_told_after_the_first(
    make_store: Callable[[], PlainStore], does: list[str], tmp_path: Path
) -> None:
    tale = tale_of(failure_of(make_store))
    assert [step.does.split()[0] for step in tale.steps] == does
    assert [bool(step.mark) for step in tale.steps] == [False] * (len(does) - 1) + [True]
    assert tale.allowed, "what would have been right is said"


def test_promises_about_completions_are_named_only_where_more_completions_were_seen() -> None:
    assert failure_of(SaysOkAgain).promises == ("S5", "C4")
    assert failure_of(faulty_stores.AcceptsAcksAfterExpiry).promises == ("S5", "C4")
    assert failure_of(CancelsAgain).promises == ("C4",)
    enqueues = failure_of(faulty_stores.RepeatedAcksEnqueueAgain)
    assert enqueues.promises == ("S1", "S2", "S3", "S5", "C4")


def test_a_token_that_was_never_issued_is_called_that() -> None:
    failure = failure_of(StrangersMayAck)
    assert failure.promises == ("S5", "C4")
    assert "the token was never issued" in told(failure)
    assert [step.call for step in failure.steps] == [Call.ACK]


class RefusesStrangersOnly(PlainStore):
    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        with contextlib.ExitStack() as stack:
            if token in self.owner:
                stack.enter_context(contextlib.suppress(PermanentError))
            super().abandon(token, delay_ms, ignore_attempt)


class ClearsAnothersLockInSilence(faulty_stores.AbandonClearsAnothersLock):
    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        with contextlib.suppress(PermanentError):
            super().abandon(token, delay_ms, ignore_attempt)


@pytest.mark.parametrize(
    ("make_store", "excuses"),
    [
        (faulty_stores.KeepsNoOrder, ["order=Order.NONE"]),
        (faulty_stores.TheYoungestFirst, ["order=Order.NONE"]),
        (faulty_stores.ProlongsLocks, ["renewal=Renewal.EXTENDS"]),
        (faulty_stores.AbandonsInSilence, ["abandon_unknown_token=UnknownToken.SILENT"]),
        # Declared so, less would be looked at.
        (faulty_stores.AttemptsAreNotCounted, []),
        (faulty_stores.CompletionsAreLost, []),
        (faulty_stores.RefusedAcksEnqueue, []),
        # Declared so, another run would not conform.
        (faulty_stores.RenewalsDoNothing, []),
        (ClearsAnothersLockInSilence, []),
        (faulty_stores.AcceptsStaleTokens, []),
        (SaysOkAgain, []),
        (CancelsAgain, []),
    ],
)
def test_the_capability_that_would_make_it_right_is_named(
    make_store: Callable[[], PlainStore], excuses: list[str]
) -> None:
    failure = failure_of(make_store)
    assert [excuse.in_python for excuse in failure.excuses] == excuses
    note = f"would conform if the store declared {' or '.join(excuses)}."
    assert (note in told(failure)) == bool(excuses)


@pytest.mark.parametrize("make_store", [PlainStore, RefusesStrangersOnly])
def test_a_store_that_should_say_nothing_of_a_token_is_told_so(make_store: Callable[[], PlainStore]) -> None:
    failure = failure_of(make_store, Capabilities(abandon_unknown_token=UnknownToken.SILENT))
    assert failure.promises == ("C4",)
    text = told(failure)
    assert "The store is declared silent of such tokens, so it must answer ok and change nothing" in text
    assert "abandon → ok" in text


def test_several_completions_are_told_in_the_plural() -> None:
    assert "There are now 2 completions of i1" in told(failure_of(faulty_stores.RefusedAcksEnqueue))


def test_what_is_declared_already_is_no_excuse() -> None:
    declared = Capabilities(order=Order.NONE, renewal=Renewal.EXTENDS)
    assert not failure_of(faulty_stores.AcceptsStaleTokens, declared).excuses


def test_an_item_that_is_not_the_oldest_is_called_that() -> None:
    text = told(failure_of(faulty_stores.TheYoungestFirst))
    assert "This was not the oldest that could be handed out" in text
    assert "the oldest first" in text


# The program


def test_the_program_asserts_what_is_allowed_so_half_a_repair_fails() -> None:
    failure = failure_of(CountsToFour)
    module: dict[str, object] = {"__name__": "reproduction"}
    exec(failure.program(), module)
    reproduce = module["reproduce"]
    assert callable(reproduce)
    with pytest.raises(AssertionError, match=r"i1, attempt 4.*allowed: \['i1, attempt 5'\]"):
        reproduce(CountsToFour())
    with pytest.raises(AssertionError, match="i1, attempt 7"):
        reproduce(HalfMended())
    reproduce(PlainStore())


def test_the_program_looks_at_the_completions_as_well() -> None:
    module: dict[str, object] = {"__name__": "reproduction"}
    exec(failure_of(SaysOkAgain).program(), module)
    reproduce = module["reproduce"]
    assert callable(reproduce)
    with pytest.raises(AssertionError, match=r"permanent error.*result of step 4"):
        reproduce(faulty_stores.RefusedAcksEnqueue())
    reproduce(PlainStore())


def test_the_program_knows_the_stores_own_errors() -> None:
    module: dict[str, object] = {"__name__": "reproduction"}
    exec(failure_of(faulty_stores.AcceptsAcksAfterExpiry, permanent=(Refused,)).program(), module)
    reproduce = module["reproduce"]
    assert callable(reproduce)
    reproduce(RefusesInItsOwnWay())


@pytest.mark.parametrize("command", [["-m", "pytest", "-q", "-p", "no:cacheprovider"], []])
def test_the_program_runs_by_itself_and_under_pytest_from_any_directory(
    command: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "reproduce.py"
    path.write_text(failure_of(faulty_stores.AcceptsAcksAfterExpiry).program(), encoding="utf-8")
    made = subprocess.run(
        [sys.executable, *command, path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert made.returncode == 1
    assert "AssertionError: it ended with ('ok', [('i1', 'result of step 4')])" in made.stdout + made.stderr
    assert "allowed: [('permanent error', [])]" in made.stdout + made.stderr


def test_the_program_of_a_store_over_the_wire_starts_it_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAULT", "stale-ack")
    monkeypatch.chdir(HERE.parent / "adapters")
    options = ["--examples", "30", "--seed", "1", "--artifacts", str(tmp_path)]
    assert main.run(["conform", "store", *options, "--", sys.executable, "python_store.py"]) == 1
    assert 'would conform if the store declared "ack_after_expiry": "accepted"' in capsys.readouterr().out
    (program,) = tmp_path.glob("*/reproduce.py")
    made = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert "AssertionError: it ended with ('ok'" in made.stderr
    monkeypatch.delenv("FAULT")
    mended = {name: value for name, value in os.environ.items() if name != "FAULT"}
    subprocess.run([sys.executable, program], cwd=tmp_path, env=mended, check=True, timeout=120)


# Shortening


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_simple_fault_late_in_a_run_is_told_in_all_but_the_fewest_steps(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine the time for shortening could be over before it is done.
    monkeypatch.setattr("peeklock.harness.store.check.SHORTENING_S", 60.0)
    failure = failure_of(CountsToFour, seed=seed)
    assert sum(step.call is Call.FETCH for step in failure.steps) == 5
    assert len(failure.steps) == 10, "between two fetches the item comes free once"
    assert all(step.fault is Fault.NONE for step in failure.steps)
    assert all(seen.answer is Answer.OK for seen in failure.observations)
    assert failure.is_plain


def test_where_there_was_no_time_to_shorten_a_run_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("peeklock.harness.store.check.SHORTENING_S", 0.0)
    failure = failure_of(CountsToFour)
    assert not failure.is_plain
    assert "There may be a shorter run" in told(failure)
    monkeypatch.undo()
    assert "There may be a shorter run" not in told(failure_of(SaysOkAgain))
