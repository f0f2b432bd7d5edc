"""Checking workers: the reference conforms, and each mistake is found, named, told and played again."""

from __future__ import annotations

import json
import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from attrs import evolve, fields
from mutant import named_by
from quiet_worker import QuietWorker
from reference_worker import run_reference
from twin_worker import TwinWorker, runs
from workers_counting import CountsNothing, CountsUncertainTwice
from workers_holding import NeverRenews, RenewsAfterShutdown
from workers_settling import AbandonsAfterRetryable, AbandonsWhenUncertain, DoesNotWait

import peeklock.impl as impl
from peeklock.harness.adapter.wrapping import AdapterError
from peeklock.harness.failure.report import ContractViolation, Inconclusive
from peeklock.harness.trace.file import read
from peeklock.harness.trace.judge import judge
from peeklock.harness.worker import schedule
from peeklock.harness.worker.check import check_worker, replay_worker
from peeklock.harness.worker.corner_cases import corners
from peeklock.harness.worker.host import Host, RunWorker
from peeklock.harness.worker.schedule import DUTIES, Tolerances
from peeklock.harness.worker.script import (
    RESPONSE_LOST,
    RETRYABLE,
    DeliveryPlan,
    ItemPlan,
    Script,
    as_source,
)
from peeklock.harness.worker.shrink_script import shortened
from peeklock.harness.worker.worker_failure import WorkerFailure
from peeklock.spec.compose import NEVER_TAKEN
from peeklock.spec.law.policy import HARDENED, POLICIES, RETRY, AfterUncertain, Policy
from peeklock.spec.variants.capabilities import Capabilities, Order, Renewal

IMPLEMENTED = {"before": impl.BEFORE, "retry": impl.RETRY, "hardened": impl.HARDENED}
FEW = hypothesis.settings(max_examples=30, database=None)


def failure_of(run_worker: object, policy: str | Policy = "retry", **options: object) -> WorkerFailure:
    with pytest.raises(ContractViolation) as caught:
        check_worker(run_worker, policy, seed=1, settings=FEW, **options)  # type: ignore[arg-type]
    failure = caught.value.failure
    assert isinstance(failure, WorkerFailure)
    return failure


@pytest.mark.parametrize("name", IMPLEMENTED)
def test_the_reference_worker_conforms_to_each_policy_and_takes_each_step(name: str) -> None:
    report = check_worker(run_reference(IMPLEMENTED[name]), name, seed=1)
    assert report.runs > 150
    assert report.coverage.complete
    assert report.warnings == ()


@pytest.mark.parametrize("name", IMPLEMENTED)
def test_what_a_worker_cannot_be_seen_to_do_is_what_its_policy_never_does(name: str) -> None:
    left_out = check_worker(run_reference(IMPLEMENTED[name]), name, seed=1, settings=FEW).coverage.left_out
    for step in left_out:
        stated = any(text in step for text in NEVER_TAKEN[name])
        assert stated or (name == "before" and "ends renewing" in step), step


OTHERS = {
    "uncertain at once": {"after_first_permanent": "uncertain"},
    "abandons when uncertain": {"after_uncertain": "abandon"},
    "never uncertain": {"after_later_permanent": "abandon"},
    "never cancels": {"after_retryable_renewal": "abandon", "after_permanent_renewal": "abandon"},
    "leaves it": {"after_exhaustion": "leave", "after_cancellation_ack": "leave"},
    "hardened by half": {"after_retryable_renewal": "retry", "poison_ack": "retried"},
    "in a hurry": {"cancellation_grace_ms": 0, "shutdown_grace_ms": 0, "ack_waits_ms": (0, 0, 0, 0)},
    "short locks": {"lock_timeout_ms": 4_000, "max_attempts": 1, "abandon_ignores_attempt": True},
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_reference_worker_conforms_to_any_policy(name: str, tmp_path: Path) -> None:
    changes = OTHERS[name]
    file = tmp_path / f"{name.replace(' ', '-')}.toml"
    lines = [f"{field} = {json.dumps(value)}" for field, value in changes.items()]
    file.write_text("\n".join(lines), encoding="utf-8")
    report = check_worker(run_reference(evolve(impl.RETRY, **changes)), file, seed=1, settings=FEW)
    assert report.coverage.never == ()


def test_a_worker_in_plain_loops_conforms() -> None:
    report = check_worker(runs(TwinWorker), seed=1)
    assert report.coverage.complete
    assert "conforms" in report.line()


def test_the_behaviour_that_was_replaced_is_caught_under_the_policy_that_replaced_it() -> None:
    failure = failure_of(run_reference(impl.BEFORE))
    assert failure.promises[0] == "S10"
    assert failure.script == Script(deliveries=(DeliveryPlan(acks=(RETRYABLE,)),))


@pytest.mark.parametrize(
    ("name", "policy"), [("retry", "hardened"), ("hardened", "retry"), ("retry", "before")]
)
def test_a_worker_of_one_policy_is_caught_under_another(name: str, policy: str) -> None:
    assert failure_of(run_reference(IMPLEMENTED[name]), policy).finding.what


def test_a_policy_of_ones_own_is_held_to(tmp_path: Path) -> None:
    file = tmp_path / "patient.toml"
    file.write_text('base = "retry"\nmax_attempts = 2\nack_attempts = 2\nack_waits_ms = [50]\n')
    mine = evolve(impl.RETRY, max_attempts=2, ack_waits_ms=(50,))
    assert check_worker(run_reference(mine), file, seed=1, settings=FEW).runs > 100
    assert failure_of(
        run_reference(evolve(mine, ack_waits_ms=(60,))), str(file), tolerances=Tolerances(late_ms=5)
    )


def test_what_a_failure_says_can_be_played_again() -> None:
    failure = failure_of(run_reference(impl.BEFORE))
    program = failure.program()
    assert len(program.splitlines()) < 10
    with pytest.raises(ContractViolation, match="S10"):
        exec(program.replace("run_worker = ...", "pass"), {"run_worker": run_reference(impl.BEFORE)})
    exec(program.replace("run_worker = ...", "pass"), {"run_worker": run_reference(impl.RETRY)})


def test_a_program_names_the_policy_and_what_was_declared() -> None:
    policy = evolve(RETRY, name="mine", max_attempts=2, after_uncertain=AfterUncertain.ABANDON)
    stores = Capabilities(order=Order.NONE, renewal=Renewal.EXTENDS)
    late = Tolerances(late_ms=7)
    failure = failure_of(
        run_reference(impl.RETRY), policy, capabilities=stores, counts=False, tolerances=late
    )
    program = failure.program()
    for text in (
        "max_attempts=2",
        'AfterUncertain("abandon")',
        'Renewal("extends")',
        "counts=False",
        "late_ms=7",
    ):
        assert text in program
    with pytest.raises(ContractViolation):
        exec(program.replace("run_worker = ...", "pass"), {"run_worker": run_reference(impl.RETRY)})


def test_a_program_imports_the_worker_that_can_be_imported() -> None:
    program = failure_of(returns_at_once_after_a_fetch).program()
    assert f"from {__name__} import returns_at_once_after_a_fetch" in program


@pytest.mark.parametrize("fault", [AbandonsWhenUncertain, CountsUncertainTwice, RenewsAfterShutdown])
def test_a_failure_leaves_a_page_a_program_and_a_trace_that_breaks_the_same_promises(
    fault: type[TwinWorker], tmp_path: Path
) -> None:
    failure = failure_of(runs(fault), artifacts=tmp_path, name="my worker")
    folder = tmp_path / "my_worker"
    assert {p.name for p in folder.iterdir()} == {"failure.html", "reproduce.py", "trace.jsonl"}
    assert (folder / "reproduce.py").read_text() == failure.program()
    page = (folder / "failure.html").read_text()
    assert all(f"<b>{pid}</b>" in page for pid in failure.promises)
    found = judge(*read(folder / "trace.jsonl"), RETRY)
    assert found.violation is not None
    assert found.violation.promises == failure.promises
    assert str(found.violation.seen) in failure.finding.what


def test_what_was_not_done_in_time_leaves_a_run_that_is_explained(tmp_path: Path) -> None:
    failure = failure_of(runs(NeverRenews), artifacts=tmp_path, name="my worker")
    assert failure.finding.duty is not None
    assert failure.finding.duty.name in (tmp_path / "my_worker" / "failure.html").read_text()
    assert judge(*read(tmp_path / "my_worker" / "trace.jsonl"), RETRY).conforms


def test_a_finding_is_told_where_its_files_cannot_be_written(tmp_path: Path) -> None:
    place = tmp_path / "taken"
    place.write_text("a file\n")
    with pytest.raises(ContractViolation) as caught:
        check_worker(runs(NeverRenews), artifacts=str(place))
    assert str(caught.value).splitlines()[-1] == f"could not write to {place}: Not a directory"


def returns_at_once_after_a_fetch(host: Host) -> None:
    host.fetch(TwinWorker.LOCK_MS)


def test_the_message_tells_the_run_the_reason_and_what_was_allowed() -> None:
    with pytest.raises(ContractViolation) as caught:
        check_worker(runs(NeverRenews), seed=1, name="my worker")
    text = str(caught.value)
    assert text.startswith("my worker does not keep the protocol under the policy retry\n")
    assert "duty 'renews in time'" in text
    assert "worker 1 waits on at 25100 ms: i1 (t1): not done in time" in text
    assert "Script(deliveries=(DeliveryPlan(takes_ms=" in text


def test_a_worker_that_goes_otherwise_each_time_is_called_nondeterministic() -> None:
    lives = 0

    def moody(host: Host) -> None:
        nonlocal lives
        lives += 1
        runs(DoesNotWait if lives % 2 else TwinWorker)(host)

    with pytest.raises(ContractViolation, match="the worker is nondeterministic") as caught:
        check_worker(moody, seed=1)
    assert not caught.value.failure.deterministic


@pytest.mark.parametrize(
    ("run_worker", "words"),
    [
        (None, "NoneType cannot be called as run_worker(host): None is not a callable object"),
        (lambda: None, "<lambda> cannot be called as run_worker(host): too many positional arguments"),
    ],
)
def test_what_cannot_be_called_with_a_host_is_no_worker(run_worker: Any, words: str) -> None:
    for check in (check_worker, lambda worker: replay_worker(worker, Script())):
        with pytest.raises(AdapterError) as caught:
            check(run_worker)
        assert str(caught.value).endswith(words)


def test_nothing_can_be_said_of_a_worker_that_never_fetches() -> None:
    with pytest.raises(Inconclusive, match="never fetched"):
        check_worker(lambda host: None, seed=1)


def test_an_exception_of_the_workers_own_is_a_finding() -> None:
    def breaks(host: Host) -> None:
        host.fetch(TwinWorker.LOCK_MS)
        raise KeyError("queue")

    failure = failure_of(breaks)
    assert failure.finding.duty == schedule.STAYS
    where = f"test_check_worker.py:{breaks.__code__.co_firstlineno + 2}"
    assert f"raises at 0 ms: KeyError('queue') in {where}" in str(failure.finding)


def test_a_worker_that_blocks_by_itself_is_told_to_wait_on_the_host() -> None:
    def blocks(host: Host) -> None:
        while True:
            pass

    with pytest.raises(AdapterError, match=r"took more than 0.2 s; a worker lets time pass by host.wait"):
        check_worker(blocks, seed=1, run_limit_s=0.2, name="blocks")


def test_a_worker_that_swallows_its_end_is_told_so_and_runs_no_further() -> None:
    names = []

    def swallows(host: Host) -> None:
        names.append(threading.current_thread().name)
        while True:
            with suppress(BaseException):
                host.wait(TwinWorker(host).LOCK_MS)

    def nests(host: Host) -> None:
        while True:
            with suppress(BaseException):
                swallows(host)

    for worker in (swallows, nests):
        with pytest.raises(
            AdapterError, match=r"the worker swallowed Crashed, 100 times; let it pass: except Exc"
        ):
            check_worker(worker, seed=1, run_limit_s=60)
        with pytest.raises(AdapterError, match=r"swallowed Crashed"):
            replay_worker(worker, corners(RETRY)[0])
    assert len(names) == 4  # a worker that was left behind is not run on


def test_a_worker_that_neither_calls_its_host_nor_ends_is_ended() -> None:
    threads = []

    def spins(host: Host) -> None:
        threads.append(threading.current_thread())
        while True:
            pass

    with pytest.raises(AdapterError, match=r"took more than 0.2 s"):
        check_worker(spins, seed=1, run_limit_s=0.2)
    assert [thread.is_alive() for thread in threads] == [False]


@pytest.mark.parametrize("call", ["wait", "fetch"])
def test_a_call_that_cannot_be_meant_is_named(call: str) -> None:
    def asks(host: Host) -> None:
        host.fetch(TwinWorker.LOCK_MS)
        getattr(host, call)("soon")

    assert f"{call}: 'soon'; allowed: a whole number" in str(failure_of(asks).finding)


def test_a_worker_that_counts_nothing_conforms_when_that_is_declared() -> None:
    report = check_worker(runs(CountsNothing), seed=1, counts=False, settings=FEW)
    assert report.coverage.left_out["counts"] == "the worker is declared not to report them"
    assert failure_of(runs(CountsNothing)).finding.duty == schedule.COUNTS


def test_a_worker_that_runs_its_own_handlers_is_judged_by_its_calls() -> None:
    report = check_worker(runs(QuietWorker), seed=1, handlers=False)
    assert any("handlers" in what for what in report.coverage.left_out)


def quiet(fault: type[TwinWorker]) -> RunWorker:
    """A worker with this fault that runs its handlers by itself."""
    return runs(type(fault.__name__, (fault, QuietWorker), {}))  # pyright: ignore[reportGeneralTypeIssues]


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        (NeverRenews, "renews in time"),
        (DoesNotWait, "waits between attempts"),
        (RenewsAfterShutdown, "is done in the grace"),
        (AbandonsAfterRetryable, "S10"),
        (AbandonsWhenUncertain, "S7"),
    ],
)
def test_a_mistake_of_a_worker_that_runs_its_own_handlers_is_caught(
    fault: type[TwinWorker], named: str
) -> None:
    assert named in named_by(failure_of(quiet(fault), handlers=False))


def test_a_worker_stands_stores_that_differ_from_the_contract() -> None:
    silent = Capabilities(order=Order.NONE, renewal=Renewal.EXTENDS)
    assert check_worker(runs(TwinWorker), capabilities=silent, seed=1, settings=FEW).runs > 100


def test_a_store_without_renewals_is_no_store_for_a_worker() -> None:
    with pytest.raises(AdapterError, match="renew=False"):
        check_worker(runs(TwinWorker), capabilities=Capabilities(renew=False))


def test_an_item_that_is_never_completed_is_told() -> None:
    patience = Tolerances(patience_ms=10_000)
    script = Script((ItemPlan(),), (DeliveryPlan(takes_ms=60_000),))
    with pytest.raises(ContractViolation, match="completes at last"):
        replay_worker(runs(TwinWorker), script, tolerances=patience)


def test_an_item_that_is_delivered_without_end_is_told() -> None:
    endless = evolve(HARDENED, name="endless", abandon_ignores_attempt=True)
    run_worker = run_reference(evolve(impl.HARDENED, abandon_ignores_attempt=True))
    plans = (DeliveryPlan(acks=(RETRYABLE,) * 5),) * 4
    assert replay_worker(run_worker, Script(deliveries=plans), endless).finding is None


def test_a_run_is_the_same_each_time() -> None:
    one, other = (replay_worker(runs(TwinWorker), script) for script in (corners(RETRY)[30],) * 2)
    assert one.seen == other.seen


@pytest.mark.parametrize("name", POLICIES)
def test_every_corner_says_itself_as_source(name: str) -> None:
    names = {c.__name__: c for c in (Script, DeliveryPlan, ItemPlan, type(RETRYABLE))}
    for script in corners(POLICIES[name]):
        assert eval(as_source(script), dict(names)) == script


def test_a_script_is_shortened_to_what_its_failure_needs() -> None:
    long = Script(
        (ItemPlan(700), ItemPlan(left=0)),
        (DeliveryPlan(takes_ms=7, acks=(RETRYABLE, RESPONSE_LOST, RETRYABLE)), DeliveryPlan(crash_at=3)),
        (RETRYABLE,),
    )
    short = shortened(long, lambda s: any(len(d.acks) > 1 for d in s.deliveries))
    assert short == Script(deliveries=(DeliveryPlan(acks=(RETRYABLE, RETRYABLE)),))


PAGE = (Path(__file__).parent.parent.parent / "docs" / "your-worker.md").read_text(encoding="utf-8")


def test_the_page_for_workers_names_every_duty() -> None:
    for duty in DUTIES:
        assert f"| {duty.name} | {duty.sentence} | {duty.source or '-'} |" in PAGE


def test_the_page_for_workers_names_every_tolerance() -> None:
    for option in fields(Tolerances):
        assert f"| `{option.name}` | {option.default} |" in PAGE


def test_the_worker_of_the_page_conforms() -> None:
    worker, test = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(worker + test, names)
    names["test_my_worker"]()
    assert check_worker(names["run_worker"], seed=1).coverage.complete


def test_the_failure_of_the_page_is_what_is_printed() -> None:
    with pytest.raises(ContractViolation) as caught:
        check_worker(runs(AbandonsAfterRetryable), seed=1, name="worker that abandons too soon")
    printed = [line.rstrip() for line in str(caught.value).splitlines()]
    shown = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    # The last line has the seconds that it took.
    assert shown[1].splitlines()[:-1] == printed[:-1]
