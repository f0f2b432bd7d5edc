"""The lemmas: each is proved, named once, told why, and needed."""

import pytest
from attrs import evolve

from peeklock.proofs import ALL_FAULTS, LEMMAS, prove
from peeklock.proofs.report import induct, widest_faults
from peeklock.spec.compose import PROMISES
from peeklock.spec.law.policy import POLICIES
from peeklock.spec.notation.terms import substitute
from peeklock.spec.promises.promise import Promise
from peeklock.spec.reading.evaluate import initial_state, predicate
from peeklock.spec.variants.variant import Variant


def needed_somewhere() -> set[str]:
    """The lemmas without which a promise, or a lemma that a promise rests on, is not proved any more."""
    needed: set[str] = set()
    for policy in POLICIES.values():
        promises: dict[frozenset[str], list[Promise]] = {}
        for promise in PROMISES:
            for faults in widest_faults(promise, policy):
                promises.setdefault(faults, []).append(promise)
        for faults, some in promises.items():
            induction = induct(policy, faults, tuple(some))
            for lemma in LEMMAS:
                if lemma.name in induction.findings and lemma.name in induction.standing:
                    needed |= {lemma.name} if any(True for _ in induction.needs(lemma.name)) else set()
    return needed


def test_every_lemma_is_needed() -> None:
    assert {lemma.name for lemma in LEMMAS} - needed_somewhere() == set()


def test_every_lemma_has_one_name_and_a_reason() -> None:
    assert len({lemma.name for lemma in LEMMAS}) == len(LEMMAS)
    assert all(lemma.why for lemma in LEMMAS)


@pytest.mark.parametrize("policy", list(POLICIES))
def test_every_lemma_holds_at_first_in_a_world_of_two_workers_and_two_items(policy: str) -> None:
    settings = Variant(POLICIES[policy]).settings
    for lemma in LEMMAS:
        assert predicate(substitute(lemma.state, settings))(*initial_state(2, 2)), lemma.name


def test_without_a_lemma_that_it_needs_a_promise_is_not_proved() -> None:
    without = tuple(lemma for lemma in LEMMAS if lemma.name != "no two workers have the same delivery")
    report = prove(POLICIES["hardened"], lemmas=without)
    assert not report.ok
    assert set(report.unexpected()) == {"S11 is refuted, not proved", "C7 is refuted, not proved"}


def test_a_lemma_that_is_false_is_dropped_and_harms_nothing() -> None:
    wrong = evolve(LEMMAS[0], name="wrong", state=~LEMMAS[0].state)
    report = prove(POLICIES["hardened"], ALL_FAULTS, lemmas=(*LEMMAS, wrong))
    assert report.ok
    assert report.row("wrong").broken_by
