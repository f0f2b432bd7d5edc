"""Mutants of the specification: every check can fail, and small changes do not go unnoticed.

All of them are tried by ``make mutants``; here the mistakes that people make, and a sample of the rest.
"""

from __future__ import annotations

import random

import pytest

from peeklock.model.mutants.excused import reason_for
from peeklock.model.mutants.judge import Fate, explored, judge
from peeklock.model.mutants.mistakes import MISTAKES, Mistake
from peeklock.model.mutants.mutate import ORIGINAL, Kind, Mutant
from peeklock.model.mutants.run import Verdict, all_mutants, idle_promises, main, run
from peeklock.model.mutants.worlds import ARENAS

pytestmark = pytest.mark.slow

SAMPLE = 30
SEED = 20260729


@pytest.fixture(scope="module")
def mistaken() -> dict[str, Verdict]:
    return {v.mutant.name: v for v in run(m.mutant for m in MISTAKES)}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.name)
def test_a_mistake_that_people_make_is_noticed_by_the_check_that_is_named(
    mistake: Mistake, mistaken: dict[str, Verdict]
) -> None:
    judgement = mistaken[mistake.name].judgement
    assert judgement.noticed_by(mistake.noticed_by) is not None, judgement


def test_every_promise_is_broken_by_some_mistake(mistaken: dict[str, Verdict]) -> None:
    assert idle_promises(mistaken.values()) == ()


def test_small_changes_are_noticed_or_allowed_for_a_reason() -> None:
    small = [m for m in all_mutants() if m.kind is not Kind.MISTAKE]
    chosen = random.Random(SEED).sample(small, SAMPLE)
    assert [v.judgement for v in run(chosen) if v.survives] == []


def test_mutants_are_told_apart_by_their_names() -> None:
    names = [m.name for m in all_mutants()]
    assert len(names) == len(set(names))


def test_the_protocol_itself_is_equivalent() -> None:
    assert judge(Mutant("nothing", Kind.GUARD, lambda: ORIGINAL)).fate is Fate.EQUIVALENT


def test_an_equivalent_mutant_has_as_many_states_and_steps_at_every_depth() -> None:
    mutant = next(m for m in all_mutants() if m.name == "success is confirmed: without trouble[w] := NONE")
    judgement = judge(mutant)
    assert judgement.fate is Fate.EQUIVALENT
    assert reason_for(judgement) is not None
    search, stopped = explored(ARENAS[0], mutant.make())
    own = ARENAS[0].search.statistics
    assert not stopped
    assert (search.statistics.level_sizes, search.statistics.fired) == (own.level_sizes, own.fired)


def test_a_mutant_that_counts_for_ever_is_given_up_and_noticed() -> None:
    (mistake,) = (m for m in MISTAKES if m.name == "a retryable error is retried for ever")
    assert judge(mistake.mutant, mistake.noticed_by).noticed_by("S9") is not None


def test_a_mutant_is_explained_by_its_shortest_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--explain", "fetch hands out a locked row"]) == 0
    told = capsys.readouterr().out
    assert "S6 is broken" in told
    assert "fetch -> i1 under t2, attempt count 2" in told


def test_a_name_that_no_mutant_has_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "no such mutant"]) == 1
    assert "no mutant has that in its name" in capsys.readouterr().out
