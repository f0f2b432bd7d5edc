"""What is told of a worker that fails: once, where it went wrong, with what would have been right in the same kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from twin_worker import TwinWorker, runs
from workers_settling import AbandonsAfterRetryable

from peeklock.harness.failure.report import ContractViolation
from peeklock.harness.story.story import Tale, TaleStep
from peeklock.harness.worker.check import replay_worker
from peeklock.harness.worker.host import Completion, Host
from peeklock.harness.worker.schedule import GIVES_BACK, RESTS, SAME, Tolerances
from peeklock.harness.worker.script import PERMANENT, RETRYABLE, DeliveryPlan, ItemPlan, Script
from peeklock.harness.worker.worker_failure import WorkerFailure, tale_of
from peeklock.spec.law.policy import HARDENED, RETRY, AfterUncertain
from peeklock.spec.variants.capabilities import OF_A_STORE

ONE = Script()
RETRIED = Script(deliveries=(DeliveryPlan(acks=(RETRYABLE,)),))
UNCERTAIN = Script(deliveries=(DeliveryPlan(acks=(RETRYABLE, PERMANENT)),))


class _Otherwise:
    """A host on which a conforming worker does one thing otherwise."""

    def __init__(self, host: Host, **otherwise: Callable[..., Any]) -> None:
        self._host, self._otherwise = host, otherwise

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._host, name)
        if name not in self._otherwise:
            return real
        return lambda *args: self._otherwise[name](self._host, *args)


def _worker(**otherwise: Callable[..., Any]) -> Callable[[Host], None]:
    return lambda host: runs(TwinWorker)(_Otherwise(host, **otherwise))  # type: ignore[arg-type]


def _failure(run_worker: Callable[[Host], None], script: Script, **options: Any) -> WorkerFailure:
    with pytest.raises(ContractViolation) as caught:
        replay_worker(run_worker, script, **options)
    failure = caught.value.failure
    assert isinstance(failure, WorkerFailure)
    return failure


def _tale(run_worker: Callable[[Host], None], script: Script, **options: Any) -> Tale:
    return tale_of(_failure(run_worker, script, **options))


def _counts_an_error(host: Host, metric: Any) -> None:
    host.count("infrastructure error" if metric == "uncertain" else metric)


def test_a_wrong_call_that_is_accepted_is_told_once() -> None:
    def shouts(host: Host, token: str, completion: Completion) -> None:
        host.ack(token, evolve(completion, text=completion.text.upper()))

    failure = _failure(_worker(ack=shouts), ONE)
    tale = tale_of(failure)
    assert failure.finding.duty == SAME
    assert [s.does for s in tale.steps if s.does.startswith("ack")] == ["ack i1 under t1 with a result"]
    assert tale.steps[-1].mark == "carries 'RESULT OF T1'; allowed: 'result of t1'"
    assert tale.before[0][1] == "worker 1 is in its ack sequence"


def test_for_a_wrong_count_the_right_count_is_told() -> None:
    failure = _failure(_worker(count=_counts_an_error), UNCERTAIN)
    assert tale_of(failure).allowed == ("counts uncertain",)
    assert set(failure.promises) >= {"S7"}


def test_where_nothing_is_to_be_counted_that_is_told_with_the_calls() -> None:
    tale = _tale(runs(AbandonsAfterRetryable), RETRIED)
    assert tale.allowed == ("no count, but a call: renew or ack",)


def test_what_the_worker_did_after_a_wrong_count_is_a_step_of_its_own() -> None:
    tale = _tale(runs(AbandonsAfterRetryable), RETRIED)
    wrong, after = tale.steps[-2:]
    assert (wrong.does, wrong.mark) == ("counts infrastructure error", "not allowed here")
    assert after.does == "abandon i1 under t1 with a delay of 100 ms"
    assert tale.found[1] == "Not allowed here."


def test_a_right_call_after_a_wrong_count_is_not_blamed() -> None:
    failure = _failure(_worker(count=_counts_an_error), UNCERTAIN)
    assert failure.finding.violation is not None
    assert failure.promises == failure.finding.violation.promises


@pytest.mark.parametrize("policy", [RETRY, HARDENED])
def test_a_fetch_in_place_of_an_abandon_breaks_the_workers_promise(policy: Any) -> None:
    mine = evolve(policy, name="mine", after_uncertain=AfterUncertain.ABANDON)
    failure = _failure(runs(TwinWorker), UNCERTAIN, policy=mine)
    assert failure.promises == ("C5",)
    assert failure.finding.duty == GIVES_BACK


def test_a_fetch_with_an_item_in_hand_breaks_the_workers_promise() -> None:
    def fetches_too(host: Host, token: str) -> None:
        host.start_handler(token)
        host.fetch(TwinWorker.LOCK_MS)

    for items in ((ItemPlan(),), (ItemPlan(), ItemPlan())):
        promises = _failure(_worker(start_handler=fetches_too), Script(items)).promises
        assert promises == ("C5",)
        assert not OF_A_STORE & set(promises)


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(3)])
def test_a_worker_that_raises_is_told_with_the_line(error: BaseException) -> None:
    def breaks(host: Host, token: str) -> None:
        raise error

    tale = _tale(_worker(start_handler=breaks), ONE)
    line = breaks.__code__.co_firstlineno + 1
    assert tale.steps[-1] == TaleStep(
        3,
        "worker 1",
        "raises",
        at_ms=0,
        mark=f"{type(error).__name__}('{error}') in {__file__.rpartition('/')[2]}:{line}",
    )


def test_the_deliveries_that_wear_an_item_out_are_told_in_one() -> None:
    def breaks(host: Host, token: str, completion: Completion) -> None:
        raise RuntimeError("boom")

    tale = _tale(_worker(ack=breaks), Script((ItemPlan(left=0),)))
    assert [s.number for s in tale.steps] == [1, None, 22, 23]
    assert tale.lanes == ("worker 1",)
    assert tale.steps[1].does.startswith(
        "10 times, steps 2 to 21: worker rival: fetch with a lock of 1 ms → "
    )


def test_a_busy_wait_is_told_in_one_step_with_how_often() -> None:
    def waits_for_nothing(host: Host, until_ms: int) -> Any:
        woken = host.wait(host.now_ms + 5)
        while True:
            host.wait(woken.now_ms)

    script = Script(deliveries=(DeliveryPlan(takes_ms=100),))
    failure = _failure(_worker(wait=waits_for_nothing), script, tolerances=Tolerances(most_calls=50))
    tale = tale_of(failure)
    assert failure.finding.duty == RESTS
    assert tale.steps[-2].does == "50 times, steps 4 to 53: wait until 5 ms, which is now"
    assert tale.steps[-1] == TaleStep(
        54, "worker 1", "wait until 5 ms, which is now", at_ms=5, mark="call 51 since time passed last"
    )


def test_a_parameter_is_told_by_its_name_also_at_the_beginning_of_a_sentence() -> None:
    later = _worker(abandon=lambda host, token, delay_ms, *more: host.abandon(token, delay_ms + 100, *more))
    tale = _tale(later, Script(deliveries=(DeliveryPlan(acks=(PERMANENT,)),)))
    assert tale.found[1].startswith("delay_ms is 200; allowed: 100")
