"""The adapters in other languages conform, and each shows a planted mistake that is caught."""

from __future__ import annotations

import subprocess
from pathlib import Path

import hypothesis
import pytest

from peeklock.harness.failure.report import ContractViolation, Report
from peeklock.harness.store.check import check_store
from peeklock.harness.wire.store import StoreProgram
from peeklock.harness.wire.worker import WorkerProgram
from peeklock.harness.worker.check import check_worker
from peeklock.spec.notation.actions import ACKS, Call

pytestmark = pytest.mark.adapters

ADAPTERS = Path(__file__).parent.parent / "adapters"
RUNS = hypothesis.settings(max_examples=300, database=None)
FEW = hypothesis.settings(max_examples=50, database=None)
LONG_S = 60.0


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The commands that start the stores; that in Rust is built first."""
    built = tmp_path_factory.mktemp("rust") / "store"
    source = ADAPTERS / "rust" / "store.rs"
    subprocess.run(["rustc", "--edition", "2021", "-D", "warnings", "-o", built, source], check=True)
    return {"node": ["node", str(ADAPTERS / "node" / "store.mjs")], "rust": [str(built)]}


def checked_store(command: list[str]) -> Report:
    with StoreProgram(command, LONG_S) as program:
        return check_store(
            program.new_store, program.capabilities, settings=RUNS, seed=1, budget_s=LONG_S, name=program.name
        )


def checked_worker() -> Report:
    with WorkerProgram(["node", str(ADAPTERS / "node" / "worker.mjs")], LONG_S) as program:
        return check_worker(program.run_worker, settings=FEW, seed=1, budget_s=LONG_S, name=program.name)


@pytest.mark.parametrize("language", ["node", "rust"])
def test_the_right_store_conforms(language: str, stores: dict[str, list[str]]) -> None:
    report = checked_store(stores[language])
    assert report.subject == f"{language}-store"
    assert report.runs >= 300


@pytest.mark.parametrize(
    ("language", "fault", "shows_in"),
    [
        ("node", "stale-ack", (Call.FETCH, *ACKS)),
        ("node", "locks-nothing", (Call.FETCH,)),
        ("node", "no-delay", (Call.FETCH,)),
        ("rust", "stale-ack", (Call.FETCH, *ACKS)),
        ("rust", "cancels-nothing", tuple(Call)),
        ("rust", "renews-nothing", (Call.FETCH, Call.RENEW, *ACKS)),
    ],
)
def test_the_mistake_of_a_store_is_caught(
    language: str,
    fault: str,
    shows_in: tuple[Call, ...],
    stores: dict[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAULT", fault)
    with pytest.raises(ContractViolation) as caught:
        checked_store(stores[language])
    failure = caught.value.failure
    assert failure.violation.seen.call in shows_in, caught.value
    assert failure.promises
    assert failure.deterministic


def test_the_right_worker_conforms() -> None:
    report = checked_worker()
    assert report.subject == "node-worker"
    assert report.coverage.complete


@pytest.mark.parametrize(
    ("fault", "says"), [("acks-once", "S10"), ("never-uncertain", "S7"), ("never-renews", "renews in time")]
)
def test_the_mistake_of_the_worker_is_caught(fault: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULT", fault)
    with pytest.raises(ContractViolation) as caught:
        checked_worker()
    assert says in str(caught.value)
