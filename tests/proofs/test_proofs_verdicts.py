"""What is proved for the three policies, and that it is what the spec states."""

import signal
import threading

import pytest

from peeklock.proofs import ALL_FAULTS, ProofReport, Verdict, prove, prove_as_stated, widest_faults
from peeklock.spec.compose import PROMISES
from peeklock.spec.law.policy import BEFORE, HARDENED, POLICIES, RETRY, Policy

S10, S11, S12, S13, S14 = PROMISES[9:14]
CANNOT_CANCEL = {
    "cancellation ack: cancellation ack committed, cancellation is settled",
    "cancellation ack: cancellation ack committed response lost, cancellation ack failed",
    "cancellation ack: refused, cancellation ack failed",
    "cancellation ack: failed before effect, cancellation ack failed",
    "cancellation ack: refused wrongly, cancellation ack failed",
}
CANNOT_BE_UNCERTAIN = {"ack: refused, refusal is uncertain", "ack: refused wrongly, refusal is uncertain"}


@pytest.fixture(scope="module", params=list(POLICIES))
def reports(request: pytest.FixtureRequest) -> tuple[ProofReport, ...]:
    return prove_as_stated(POLICIES[request.param])


def test_every_promise_is_proved_where_the_spec_states_that_it_holds(
    reports: tuple[ProofReport, ...],
) -> None:
    assert [problem for r in reports for problem in r.unexpected()] == []
    assert all(r.ok for r in reports)
    assert {p for r in reports for p, v in r.verdicts.items() if v is Verdict.PROVED} == {
        p.id for p in PROMISES
    }


def test_every_lemma_is_settled_and_no_question_is_open(reports: tuple[ProofReport, ...]) -> None:
    assert all(not row.doubts for r in reports for row in r.rows)
    assert all(
        row.rests_on == () or set(row.rests_on) <= {r.name for r in report.rows}
        for report in reports
        for row in report.rows
    )


def test_a_proof_rests_only_on_what_is_proved(reports: tuple[ProofReport, ...]) -> None:
    for report in reports:
        proved = {r.name for r in report.rows if r.verdict is Verdict.PROVED}
        for row in report.rows:
            if row.verdict is Verdict.PROVED:
                assert set(row.rests_on) <= proved, row.name


def test_the_lemmas_leave_every_action_possible_that_the_policy_can_take(
    reports: tuple[ProofReport, ...],
) -> None:
    full = reports[0]
    expected = {"before": CANNOT_BE_UNCERTAIN, "retry": set(), "hardened": CANNOT_CANCEL}
    assert set(full.impossible) == expected[full.policy.name]


@pytest.mark.parametrize("policy", [BEFORE, RETRY])
def test_work_is_lost_only_where_renewals_fail(policy: Policy) -> None:
    renewals_succeed = ALL_FAULTS - {"renewal-retryable", "renewal-permanent"}
    lost = prove(policy, ALL_FAULTS, (S12,))
    assert lost.verdicts == {"S12": Verdict.REFUTED}
    assert lost.ok, "the spec states that it fails"
    assert all("cancellation ack committed" in step for step in lost.row("S12.1").broken_by)
    kept = prove(policy, renewals_succeed, (S12,))
    assert kept.verdicts == {"S12": Verdict.PROVED}
    assert {"without renewal-retryable", "without renewal-permanent", "honest-permanent"} <= set(
        kept.assumptions
    )


def test_one_kind_of_failing_renewal_is_enough_to_lose_work() -> None:
    for kind in ("renewal-retryable", "renewal-permanent"):
        report = prove(RETRY, ALL_FAULTS - {kind}, (S12,))
        assert report.verdicts == {"S12": Verdict.REFUTED}, kind


def test_without_honest_permanent_errors_a_hardened_worker_counts_a_failure_that_is_none() -> None:
    report = prove(HARDENED, ALL_FAULTS | {"dishonest-permanent"}, (S13,))
    assert report.verdicts == {"S13": Verdict.REFUTED}
    assert "honest-permanent" not in report.assumptions


def test_the_widest_choices_of_faults_leave_out_one_fault_of_every_cause() -> None:
    assert widest_faults(S12, HARDENED) == (ALL_FAULTS,)
    assert set(widest_faults(S13, RETRY)) == {ALL_FAULTS - {"ack-retryable"}, ALL_FAULTS - {"response-lost"}}
    assert widest_faults(S10, BEFORE) == (ALL_FAULTS - {"ack-retryable", "response-lost"},)


def test_a_promise_is_silent_only_where_the_spec_says_so(reports: tuple[ProofReport, ...]) -> None:
    full = reports[0]
    assert full.silent == {p.id for p in PROMISES if full.policy.name in p.silent_in}


@pytest.mark.parametrize("limit", [300, 1000])
def test_what_is_not_decided_makes_the_rest_unknown_and_never_refuted(limit: int) -> None:
    report = prove(RETRY, limit=limit)
    assert any(row.doubts for row in report.rows)
    assert Verdict.UNKNOWN in report.verdicts.values()
    assert Verdict.REFUTED not in report.verdicts.values()
    assert not report.ok


def test_an_interrupt_ends_a_proof_and_is_no_answer_to_a_question() -> None:
    def again_and_again() -> None:
        while True:
            prove(RETRY)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupt = threading.Timer(0.5, signal.raise_signal, (signal.SIGINT,))
    interrupt.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            again_and_again()
    finally:
        interrupt.join()
        signal.signal(signal.SIGINT, handler)
