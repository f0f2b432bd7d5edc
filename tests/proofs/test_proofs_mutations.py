"""A changed protocol or policy is judged, not believed: refuted with a state that one can read."""

from collections.abc import Callable

import pytest
from attrs import evolve

from peeklock.proofs import ProofReport, Verdict, prove
from peeklock.spec.compose import ACTIONS, PROMISES, I, W
from peeklock.spec.law.policy import HARDENED, RETRY, AfterExhaustion, AfterUncertain
from peeklock.spec.law.state import Row, completions, current, issued, phase, row, token, working_on
from peeklock.spec.law.store import lock_is_valid
from peeklock.spec.notation.actions import Action, Call
from peeklock.spec.notation.terms import ITEM, WORKER, Assignment, every, some
from peeklock.spec.promises.promise import Promise, always, at
from peeklock.spec.variants.free_client import STORE_ALONE


def changed(which: Callable[[Action], bool], change: Callable[[Action], Action]) -> tuple[Action, ...]:
    assert any(map(which, ACTIONS))
    return tuple(change(a) if which(a) else a for a in ACTIONS)


def acks_take_effect(action: Action) -> bool:
    return action.label.call is Call.ACK and action.label.takes_effect


def without_guard(action: Action) -> Action:
    guards = tuple(g for g in action.guards if g is not lock_is_valid(I, token[W]))
    assert len(guards) == len(action.guards) - 1
    return evolve(action, guards=guards)


def without_assignment(target: object) -> Callable[[Action], Action]:
    def change(action: Action) -> Action:
        effects = tuple(a for a in action.effects if a.target is not target)
        assert len(effects) == len(action.effects) - 1
        return evolve(action, effects=effects)

    return change


def broken(report: ProofReport) -> set[str]:
    return {p for p, verdict in report.verdicts.items() if verdict is Verdict.REFUTED}


def test_an_ack_that_does_not_need_a_valid_lock_completes_twice() -> None:
    report = prove(HARDENED, actions=changed(acks_take_effect, without_guard))
    assert {"S2", "S3", "S5"} <= broken(report)
    assert not report.ok
    found = report.row("S2.1").counterexample
    assert found is not None
    assert found.disagreement == ""
    text = str(found)
    assert "item i1: row = ACKED" in text
    assert "completions = 1" in text
    assert "by worker A, item i1 leads to:" in text
    assert "completions = 2" in text
    assert text.endswith("which breaks: an item has at most one completion")


@pytest.mark.parametrize(
    ("target", "promise"),
    [(row[I], "S3"), (current[I], "S4"), (completions[I], "S3"), (phase[W], "C5")],
)
def test_an_ack_that_forgets_to_write_something_is_noticed(target: object, promise: str) -> None:
    settles = changed(
        lambda a: a.name == "ack: ack committed, success is confirmed",
        without_assignment(target),
    )
    assert promise in broken(prove(HARDENED, actions=settles))


def test_a_fetch_that_issues_an_old_token_is_refuted() -> None:
    def reissue(action: Action) -> Action:
        effects = (e for e in action.effects if e.target is not current[I])
        return evolve(action, effects=(*effects, Assignment(current[I], issued[I])))

    fetches = changed(lambda a: a.label.call is Call.FETCH and a.label.takes_effect, reissue)
    assert "S4" in broken(prove(HARDENED, actions=fetches))


def test_six_attempts_break_only_what_speaks_of_five() -> None:
    six = evolve(HARDENED, name="six", ack_attempts=6, ack_waits_ms=(100, 200, 400, 800, 1600))
    assert broken(prove(six)) == {"S9", "S10"}


def test_three_attempts_break_what_exhaustion_excuses() -> None:
    three = evolve(HARDENED, name="three", ack_attempts=3, ack_waits_ms=(100, 200))
    assert broken(prove(three)) == {"S10", "S11"}


def test_abandoning_an_uncertain_delivery_breaks_what_makes_the_verdict_final() -> None:
    report = prove(evolve(RETRY, name="what if", after_uncertain=AfterUncertain.ABANDON))
    assert {"S7", "S10"} <= broken(report)
    assert report.verdicts["S2"] is Verdict.PROVED


def test_leaving_an_exhausted_delivery_to_its_lock_keeps_what_retry_keeps() -> None:
    left = prove(evolve(RETRY, name="left", after_exhaustion=AfterExhaustion.LEAVE))
    assert broken(left) == {"S12", "S13", "S14"}


def test_what_rests_on_a_broken_claim_is_judged_without_it() -> None:
    def forget_nothing(action: Action) -> Action:
        return evolve(action, effects=())

    kept_row = changed(lambda a: a.name == "cancelled", forget_nothing)
    assert broken(prove(HARDENED, actions=kept_row)) == {"C4"}


def test_a_store_with_clients_that_do_anything_keeps_its_own_promises() -> None:
    of_the_store = tuple(
        p for p in PROMISES if p.id in {"S1", "S2", "S3", "S4", "S5", "S6", "C2", "C4", "C6"}
    )
    report = prove(RETRY, promises=of_the_store, actions=STORE_ALONE)
    assert set(report.verdicts.values()) == {Verdict.PROVED}


def test_a_claim_that_is_false_at_first_is_refuted_by_the_initial_state() -> None:
    wrong = Promise(
        "X1", "wrong", (always("every item is enqueued", every(ITEM, lambda i: row[i] != Row.ABSENT)),)
    )
    found = prove(RETRY, promises=(wrong,)).row("X1.1")
    assert found.verdict is Verdict.REFUTED
    assert found.broken_by[0] == "the initial state"
    assert str(found.counterexample).startswith("initially:")


def test_a_claim_that_cannot_be_treated_is_unknown_and_never_proved() -> None:
    somebody = every(ITEM, lambda i: some(WORKER, lambda w: working_on[w] == i))
    odd = Promise(
        "X2",
        "odd",
        (
            always("everybody is served", somebody),
            at("by somebody", lambda label: True, lambda s: row[s.i] == row[s.i]),
        ),
    )
    report = prove(RETRY, promises=(odd,))
    assert report.verdict(odd) in (Verdict.UNKNOWN, Verdict.REFUTED)
    assert not report.ok
    assert report.row("X2.2").verdict is Verdict.UNKNOWN, "it speaks of an item in steps that have none"
    assert any("is not about one item" in doubt for doubt in report.row("X2.2").doubts)


def test_unknown_is_a_failure() -> None:
    report = prove(HARDENED, limit=1)
    assert Verdict.UNKNOWN in report.verdicts.values()
    assert Verdict.REFUTED not in report.verdicts.values()
    assert not report.ok
    assert any("not proved" in problem for problem in report.unexpected())
