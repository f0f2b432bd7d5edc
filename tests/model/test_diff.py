"""Behaviours are what deliveries look like, the comparison of two is exact, and what it says can be shown."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import pytest
from attrs import evolve

from peeklock.model.review.behaviours import ITEM_FETCHED, Automaton, Behaviours, Letter
from peeklock.model.review.diff import Change, Difference, Witness, longest
from peeklock.model.review.divergences import partings, shortest
from peeklock.model.review.policy_notes import about_five, about_needless, about_time
from peeklock.model.review.sides import Found, Present, from_data, to_data
from peeklock.model.review.timing import timing
from peeklock.model.search.world import World
from peeklock.spec.compose import ACTIONS
from peeklock.spec.law.faults import FAULTS
from peeklock.spec.law.policy import BEFORE, HARDENED, POLICIES, RETRY, AfterExhaustion, Policy
from peeklock.spec.law.state import Phase, phase
from peeklock.spec.notation.actions import Call
from peeklock.spec.reading.narrative import get
from peeklock.spec.variants.variant import Variant

pytestmark = pytest.mark.slow

ALL = frozenset(f.name for f in FAULTS)


def world(policy: Policy, faults: frozenset[str] = ALL, items: int = 2) -> World:
    return World(Variant(evolve(policy, max_attempts=2), faults), items=items)


@cache
def side(policy: Policy) -> Present:
    return Present(policy.name, policy, world(policy, items=1))


def behaviours(policy: Policy) -> Behaviours:
    return side(policy).behaviours


@cache
def automaton(policy: Policy, faults: frozenset[str] = ALL) -> Automaton:
    return side(policy).account.automaton if faults == ALL else Behaviours(world(policy, faults)).automaton()


def difference(old: Policy, new: Policy) -> Difference:
    return Difference(side(old).account, side(new).account)


def accepts(found: Automaton, word: tuple[Letter, ...]) -> bool:
    state: int | None = 0
    for letter in word:
        state = found.steps[state].get(letter) if state is not None else None
    return state == 1


def words(found: Automaton, longest_word: int) -> set[tuple[Letter, ...]]:
    """Every word of up to so many letters."""
    complete: set[tuple[Letter, ...]] = set()
    level: list[tuple[tuple[Letter, ...], int]] = [((), 0)]
    for _ in range(longest_word):
        level = [((*word, a), t) for word, state in level for a, t in found.steps[state].items()]
        complete |= {word for word, state in level if state == 1}
    return complete


def plain(word: tuple[Letter, ...]) -> bool:
    return not any(a.does in ("the worker crashes", "a shutdown begins") for a in word)


# Behaviours


def walked(found: Behaviours, seed: int) -> Iterator[tuple[Letter, ...]]:
    """What the deliveries to the first worker look like in a random run."""
    chance = random.Random(seed)
    state, word = 0, list[Letter]()
    for _ in range(60):
        moves = [m for m in found.moves[state] if found.actions[m.action].label.call is not Call.CANCEL]
        if not moves:
            return
        telling = [m for m in moves if m.letter is not None]
        move = chance.choice(telling if telling and chance.random() < 0.7 else moves)
        state = move.target
        if move.letter is not None:
            word.append(move.letter)
        if word and get(found.states[state][0][0], phase) is Phase.IDLE:
            yield tuple(word)
            word.clear()


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_what_a_random_run_shows_of_a_delivery_is_a_behaviour(policy: Policy) -> None:
    found = behaviours(policy)
    seen = {word for seed in range(300) for word in walked(found, seed)}
    assert len(seen) > 30
    assert all(accepts(automaton(policy), word) for word in seen)


@pytest.mark.parametrize("policy", [BEFORE, RETRY], ids=lambda p: p.name)
def test_every_short_behaviour_is_shown_by_a_run_of_the_world(policy: Policy) -> None:
    found = behaviours(policy)
    short = sorted(words(automaton(policy), 4))
    assert len(short) > 10
    for word in short:
        trace = found.run(word)
        about = [s.action.label for s in trace.steps if s.action.worker is not None and s.worker == 0]
        said = [what.value for label in about if (what := label.event or label.call) is not None]
        assert said[-len(word) :] == [a.does for a in word]
        assert trace.states[0] == found.world.initial()
        assert all(before != after for before, after in pairwise(trace.states)) or "renew" in said


def test_a_word_that_is_no_behaviour_has_no_run() -> None:
    with pytest.raises(LookupError, match="no delivery looks like this: fetch -> an item; ack -> ok"):
        behaviours(BEFORE).run((ITEM_FETCHED, Letter("ack", "ok", "success")))


@pytest.mark.parametrize(
    ("policy", "faults", "sizes"),
    [
        (BEFORE, ALL, {"max_attempts": 2}),
        (BEFORE, ALL, {"workers": 3}),
        (RETRY, ALL, {"max_attempts": 2}),
        (RETRY, frozenset({"ack-retryable", "expiry"}), {"items": 2}),
    ],
    ids=lambda x: x.name if isinstance(x, Policy) else "",
)
def test_a_larger_world_has_the_same_behaviours(
    policy: Policy, faults: frozenset[str], sizes: dict[str, int]
) -> None:
    larger = Behaviours(world(policy, faults), **sizes).automaton()
    assert larger.minimal() == automaton(policy, faults).minimal()


def test_the_smallest_automaton_has_the_same_words() -> None:
    found = automaton(RETRY)
    smaller = Automaton(found.places, found.minimal())
    assert len(smaller.steps) < len(found.steps)
    end = next(k for k, row in enumerate(smaller.steps) if not row)
    level = [((), 0)]
    complete = set()
    for _ in range(6):
        level = [((*word, a), t) for word, state in level for a, t in smaller.steps[state].items()]
        complete |= {word for word, state in level if state == end}
    assert complete == words(found, 6)


# The comparison


@pytest.mark.parametrize(
    ("old", "new"), [(BEFORE, RETRY), (RETRY, HARDENED), (BEFORE, HARDENED)], ids=lambda p: p.name
)
def test_the_shortest_difference_is_the_one_that_trying_all_words_finds(old: Policy, new: Policy) -> None:
    groups = partings(automaton(old), automaton(new))
    for less, more, gains in ((old, new, True), (new, old, False)):
        word = shortest(groups, gains)
        assert word is not None
        assert accepts(automaton(more), word)
        assert not accepts(automaton(less), word)
        only = words(automaton(more), len(word)) - words(automaton(less), len(word))
        assert min(len(w) for w in only if plain(w)) == len(word)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_fewer_faults_leave_fewer_behaviours(policy: Policy) -> None:
    fewer = automaton(policy, ALL - {"ack-retryable", "response-lost"})
    groups = partings(automaton(policy), fewer)
    assert shortest(groups, gains=True) is None
    assert (shortest(groups, gains=False) is None) == (fewer.minimal() == automaton(policy).minimal())
    assert partings(fewer, fewer) == ()


@pytest.mark.parametrize(
    ("old", "new"), [(BEFORE, RETRY), (RETRY, HARDENED), (HARDENED, RETRY)], ids=lambda p: p.name
)
def test_every_ending_is_a_behaviour_of_its_side_only(old: Policy, new: Policy) -> None:
    endings = 0
    for group in partings(automaton(old), automaton(new)):
        for branch, more, less in ((group.lost, old, new), (group.gained, new, old)):
            for ending in branch.endings:
                endings += 1
                assert accepts(automaton(more), ending.word)
                assert not accepts(automaton(less), ending.word)
                assert behaviours(more).run(ending.word).steps
    assert endings > 5


def test_a_sequence_that_is_left_where_another_goes_on_is_a_difference() -> None:
    leaves = evolve(RETRY, name="leaves", after_exhaustion=AfterExhaustion.LEAVE)
    (group,) = partings(automaton(RETRY), automaton(leaves))
    assert [e.last for e in group.gained.endings] == ["ack"]
    assert group.attempts == {5}
    assert {e.last for e in group.lost.endings} > {"abandon"}


def test_the_change_that_retries_acks_is_told_in_one_parting() -> None:
    (group,) = difference(BEFORE, RETRY).groups
    assert (group.parting.does, group.answers, group.attempts) == ("ack", {"retryable error"}, {1})
    assert (group.lost.sequences, group.gained.sequences) == (3, 11)
    gained = {(e.last, e.counts, e.acks) for e in group.gained.endings if e.last in ("ack", "abandon")}
    assert gained == {
        ("ack", ("success",), (2, 5)),
        ("ack", ("uncertain",), (2, 5)),
        ("abandon", ("infrastructure error",), (5, 5)),
    }


def test_the_follow_ups_are_told_by_what_the_worker_sees() -> None:
    partings_told = {
        (g.parting.phase, g.parting.does, *sorted(g.answers)): g for g in difference(RETRY, HARDENED).groups
    }
    renewal = partings_told["runs the handler", "renew", "retryable error"]
    assert "cancellation ack" in {e.last for e in renewal.lost.endings}
    assert "cancellation ack" not in {e.last for e in renewal.gained.endings}
    exhausted = partings_told["is in its ack sequence", "ack", "retryable error"]
    poison = [g for g in difference(RETRY, HARDENED).groups if g.parting.is_poison]
    assert exhausted in poison or exhausted.attempts == {5}
    assert {e.counts for g in poison for e in g.gained.endings} >= {("poison",), ("uncertain",)}


def test_promises_change_as_the_protocol_says() -> None:
    changes = {p.id: p.change for p in difference(BEFORE, RETRY).changed}
    assert changes == {
        "S7": Change.SPEAKS,
        "S8": Change.SPEAKS,
        "S10": Change.MENDED,
        "S11": Change.MENDED,
        "S13": Change.BETTER,
    }
    assert difference(BEFORE, RETRY).findings == ()
    changes = {p.id: p.change for p in difference(RETRY, HARDENED).changed}
    assert changes == dict.fromkeys(("S12", "S13", "S14"), Change.MENDED)


def test_going_back_is_a_finding() -> None:
    back = difference(RETRY, BEFORE)
    assert {p.id: p.change for p in back.findings} == {
        "S10": Change.BROKEN,
        "S11": Change.BROKEN,
        "S13": Change.WORSE,
    }


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ((("a",),), (("a", "b"),), Change.BETTER),
        ((("a", "b"),), (("a",),), Change.WORSE),
        ((("a",),), (("b",),), Change.WORSE),
        ((("a",), ("b",)), (("a",),), Change.BETTER),
        ((("a",),), (("a",),), Change.NONE),
    ],
)
def test_a_promise_is_worse_where_new_faults_break_it(
    old: tuple[tuple[str, ...], ...], new: tuple[tuple[str, ...], ...], change: Change
) -> None:
    account = side(BEFORE).account
    sides = [evolve(account, promises=(Found("S1", "text", "fails", causes),)) for causes in (old, new)]
    assert [p.change for p in Difference(*sides).promises] == [change]


def test_of_a_promise_that_is_easier_to_break_the_run_of_a_new_cause_is_told() -> None:
    account = side(BEFORE).account
    lines = next(f.lines for f in account.promises if len(f.lines) > 2)
    old = Found(
        "S1", "text", "fails", (("a", "b"), ("c",)), "old", lines[:1], (("ab", lines), ("c", lines[:1]))
    )
    new = Found(
        "S1", "text", "fails", (("a",), ("c",)), "new", lines[:1], (("a", lines[:2]), ("c", lines[:1]))
    )
    (promised,) = Difference(*(evolve(account, promises=(f,)) for f in (old, new))).promises
    assert promised.witness == Witness(True, "a", lines[:2], new.causes)
    (back,) = Difference(*(evolve(account, promises=(f,)) for f in (new, old))).promises
    assert back.witness == Witness(True, "old", lines[:1], old.causes)


def test_each_smallest_set_of_faults_has_its_shortest_run() -> None:
    for found in side(RETRY).account.promises:
        assert len(found.causes) == len(found.by_cause)
        for cause, (false, lines) in zip(found.causes, found.by_cause, strict=True):
            assert false
            assert {f for line in lines for f in line.faults} == set(cause)
            assert len(lines) >= len(found.lines) > 0


def test_a_run_that_meets_more_than_it_takes_says_so() -> None:
    (s14,) = (f for f in side(RETRY).account.promises if f.id == "S14")
    (text,) = about_needless("S14", s14.lines, s14.causes)
    assert "also meets fetch-lost, which is not needed to break S14" in text
    for cause, (_, lines) in zip(s14.causes, s14.by_cause, strict=True):
        assert list(about_needless("S14", lines, [cause])) == []
    assert list(about_needless("S14", s14.lines, ())) == []


def test_a_promise_of_one_side_only_is_told_and_a_broken_new_one_is_a_finding() -> None:
    account = side(BEFORE).account
    without = evolve(account, promises=())
    holds, fails = (evolve(account, promises=(Found("S99", "text", v),)) for v in ("holds", "fails"))
    assert [p.change for p in Difference(without, holds).promises] == [Change.ADDED]
    assert [p.change for p in Difference(holds, without).promises] == [Change.REMOVED]
    assert [p.change for p in Difference(without, fails).findings] == [Change.BROKEN]


def test_an_account_survives_being_written_as_json() -> None:
    account = side(HARDENED).account
    assert from_data(json.loads(json.dumps(to_data(account)))) == account


def test_the_longest_ack_sequences_are_counted() -> None:
    counted = {p.name: (longest(automaton(p)).acks, longest(automaton(p)).calls) for p in POLICIES.values()}
    assert counted == {"before": (1, 2), "retry": (5, 6), "hardened": (5, 6)}


def test_the_steps_of_changed_protocols_are_named() -> None:
    old, new = side(RETRY).account, side(RETRY).account
    name = ACTIONS[0].name
    changed = evolve(new, protocol={**new.protocol, name: "when nothing", "more": "then more"})
    assert Difference(old, changed).steps == ((), ("more",), (name,))


# Times


def test_the_times_of_the_default_policy() -> None:
    t = timing(RETRY.ack_waits_ms, RETRY.shutdown_grace_ms, RETRY.lock_timeout_ms, RETRY.renewal_buffer_ms)
    assert t.begins_ms == (0, 100, 300, 700, 1500)
    assert (t.waits_ms, t.attempts_in_grace, t.lock_left_ms) == (1500, 4, 5000)
    assert not t.lock_can_expire_in_grace


@pytest.mark.parametrize(
    ("grace", "attempts"), [(0, 0), (1, 1), (100, 1), (101, 2), (1500, 4), (1501, 5), (9000, 5)]
)
def test_an_attempt_that_would_begin_as_the_grace_ends_does_not(grace: int, attempts: int) -> None:
    assert timing((100, 200, 400, 800), grace, 30_000, 5_000).attempts_in_grace == attempts


@pytest.mark.parametrize(
    ("lock", "buffer", "left"),
    [
        (30_000, 5_000, 5_000),
        (15_000, 5_000, 5_000),
        (14_000, 5_000, 7_000),
        (5_000, 5_000, 2_000),
        (1_000, 0, 0),
    ],
)
def test_what_a_lock_has_left_when_renewing_stops(lock: int, buffer: int, left: int) -> None:
    assert timing((), 0, lock, buffer).lock_left_ms == left


def test_the_remarks_say_what_five_means_and_where_times_do_not_fit() -> None:
    (five,) = about_five(8, {"S9", "S10"})
    assert "S9 and S10 speak of five attempts by definition" in five
    assert list(about_five(5, {"S9"})) == []
    assert list(about_five(8, ())) == []
    times = list(about_time(timing((100, 200, 400, 800, 1600, 3200, 6400), 5_001, 30_000, 5_000)))
    assert "only 6 of 8 attempts can begin" in times[1]
    assert "it can expire within the grace" in times[2]
    for grace, words in ((4_999, "it outlasts the grace"), (5_000, "with nothing to spare")):
        assert words in list(about_time(timing((), grace, 30_000, 5_000)))[-1]
