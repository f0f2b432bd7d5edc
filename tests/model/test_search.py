"""The search: exact, the same with and without symmetry, and the same as a plain evaluation of the terms."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from peeklock.model.search.checkpoint import restore, save
from peeklock.model.search.engine import INTERRUPTED, Limits, Search, Statistics, Stopped
from peeklock.model.search.packing import Packing
from peeklock.model.search.tables import Watch
from peeklock.model.search.traces import shortest
from peeklock.model.search.verdicts import Verdict, check
from peeklock.model.search.world import World, WorldError
from peeklock.spec.compose import NEVER_TAKEN, POSSIBILITIES, PROMISES, I
from peeklock.spec.law.policy import POLICIES
from peeklock.spec.law.state import Row, issued, row
from peeklock.spec.notation.actions import Action, Call
from peeklock.spec.notation.terms import FALSE, substitute
from peeklock.spec.promises.promise import always
from peeklock.spec.reading.evaluate import State, Stepper, predicate
from peeklock.spec.variants.variant import Variant

SOME_FAULTS = frozenset({"ack-retryable", "response-lost", "renewal-retryable", "crash"})


def world(
    policy: str = "retry", workers: int = 1, items: int = 1, deliveries: int = 4, **changes: object
) -> World:
    variant = Variant(evolve(POLICIES[policy], max_attempts=2))
    return World(evolve(variant, **changes), workers, items, deliveries)  # type: ignore[arg-type]


def plainly(small: World) -> tuple[set[State], int]:
    """Every reachable state, and the number of steps, by walking the states one by one."""
    steppers = [Stepper(a) for a in small.actions]
    seen, todo, steps = {small.initial()}, [small.initial()], 0
    while todo:
        state = todo.pop()
        for stepper in steppers:
            for w, i in stepper.choices(state):
                steps += 1
                after = stepper.takes(*state, w, i)
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
    return seen, steps


@pytest.mark.parametrize(
    "small",
    [
        world("before"),
        world("retry"),
        world("hardened"),
        world("retry", workers=2, faults=SOME_FAULTS),
        world("retry", workers=2, deliveries=2, faults=frozenset()),
        world("hardened", items=2, deliveries=2, faults=SOME_FAULTS),
        world("retry", items=2, deliveries=1, fifo=True),
    ],
    ids=str,
)
def test_the_search_finds_exactly_the_states_and_steps_of_a_plain_evaluation(small: World) -> None:
    states, steps = plainly(small)
    search = Search(small, symmetric=False, clearing=False)
    statistics = search.run()
    words = {search.packing.key(s) for s in states}
    assert {w for level in search.levels for w in level.tolist()} == words
    assert (statistics.distinct, statistics.generated) == (len(states), steps)


PINNED = {
    ("before", 1, 1, 4): (480, 2301, 16),
    ("retry", 2, 1, 3): (29_292, 279_204, 22),
    ("hardened", 2, 2, 1): (166_264, 1_881_752, 24),
}


@pytest.mark.parametrize(("shape", "numbers"), PINNED.items())
def test_three_small_worlds_have_the_size_they_had(
    shape: tuple[str, int, int, int], numbers: tuple[int, int, int]
) -> None:
    """Distinct states, steps and depth, without symmetry: they change only when the protocol does."""
    statistics = Search(world(*shape), symmetric=False, clearing=False).run()
    assert (statistics.distinct, statistics.generated, statistics.depth) == numbers


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shape", [(2, 1, 4), (1, 2, 3)])
@pytest.mark.parametrize(("symmetric", "clearing"), [(True, False), (False, True), (True, True)])
def test_no_reduction_changes_a_verdict_or_the_length_of_a_trace(
    policy: str, shape: tuple[int, int, int], symmetric: bool, clearing: bool
) -> None:
    found = [
        check(world(policy, *shape), symmetric=s, clearing=c, with_causes=False)
        for s, c in ((symmetric, clearing), (False, False))
    ]
    rows = [
        [(j.promise.id, j.verdict, [(b.part.text, len(b.trace.steps)) for b in j.broken]) for j in c.promises]
        for c in found
    ]
    assert rows[0] == rows[1]
    assert [r.found for r in found[0].possibilities] == [r.found for r in found[1].possibilities]
    assert found[0].never_fired == found[1].never_fired
    assert found[0].statistics.distinct < found[1].statistics.distinct


def test_what_is_over_is_not_cleared_where_something_can_still_happen_to_it() -> None:
    """A changed protocol in which a deleted row is fetched again: the search notices, and clears nothing."""
    small = world("retry", workers=2, deliveries=2)

    def revived(action: Action) -> Action:
        if action.label.call is not Call.FETCH or not action.label.takes_effect:
            return action
        changed = {row[I] == Row.EXPIRED: row[I] == Row.ACKED}
        return evolve(action, guards=tuple(substitute(g, changed) for g in action.guards))

    changed = evolve(small, actions_of_protocol=tuple(map(revived, small.actions_of_protocol)))
    search = Search(changed)
    plain = Search(changed, clearing=False)
    assert search.run().level_sizes == plain.run().level_sizes
    assert not search.clearing


@pytest.mark.slow
def test_every_state_stands_for_its_renamings() -> None:
    """The canonical states are exactly one of each class of states that differ by names only."""
    small = world("retry", workers=2, items=2, deliveries=1, faults=SOME_FAULTS)
    states, _ = plainly(small)
    search = Search(small, clearing=False)
    search.run()
    classes = set(search.packing.canonical_keys(list(states)).tolist())
    assert {w for level in search.levels for w in level.tolist()} == classes


@pytest.mark.parametrize("policy", POLICIES)
def test_the_levels_are_distances(policy: str) -> None:
    """A finding at level n has a trace of n steps, or of n + 1 where a step shows it."""
    result = check(world(policy), with_causes=False)
    for judged in result.promises:
        for broken in judged.broken:
            steps = len(broken.trace.steps)
            assert steps == broken.level + (broken.part.state is None)


@pytest.mark.slow
def test_a_trace_is_a_run_of_the_protocol_that_ends_in_what_it_shows() -> None:
    small = world("retry", workers=2, items=2, deliveries=2)
    result = check(small, with_causes=False)
    for judged in result.promises:
        for broken in judged.broken:
            states, steps = broken.trace.states, broken.trace.steps
            assert states[0] == small.initial()
            for k, step in enumerate(steps):
                stepper = Stepper(step.action)
                assert stepper.allows(*states[k], step.worker, step.item)
                assert stepper.takes(*states[k], step.worker, step.item) == states[k + 1]
            if broken.part.state is not None:
                keeps = predicate(substitute(broken.part.state, small.variant.settings))
                assert [keeps(*s) for s in states] == [True] * (len(states) - 1) + [False]


def test_a_watch_on_the_impossible_is_found_in_the_first_state() -> None:
    search = Search(world(), (Watch(always("never", FALSE), wanted=False),))
    search.run()
    assert search.found == {0: 0}


def test_a_stuck_state_is_told_from_a_legitimate_end() -> None:
    """Nothing is stuck in the protocol; take away that locks expire, and a crash leaves an item for ever."""
    assert check(world(), with_causes=False).stuck is None
    without = world(faults=SOME_FAULTS)
    maimed = evolve(
        without, actions_of_protocol=tuple(a for a in without.actions_of_protocol if a.name != "lock expires")
    )
    result = check(maimed, with_causes=False)
    assert result.stuck is not None
    assert not result.as_stated
    assert "crash" in result.stuck.steps[-1].action.name or "lost" in result.stuck.steps[-1].action.name


def test_a_search_that_is_stopped_knows_nothing_of_what_it_did_not_see() -> None:
    result = check(world("retry", 2, 2), limits=Limits(bytes=1 << 20), with_causes=False)
    assert result.stopped == "the limit of 1 MiB of memory"
    assert Verdict.UNKNOWN in {j.verdict for j in result.promises}
    assert Verdict.HOLDS not in {j.verdict for j in result.promises}
    assert not result.as_stated


def test_an_interrupt_keeps_what_was_found() -> None:
    def interrupt(statistics: Statistics, left: int) -> None:
        if statistics.depth >= 12:
            raise KeyboardInterrupt

    result = check(world("retry", 2, 1), report=interrupt, with_causes=False)
    assert result.stopped == INTERRUPTED
    verdicts = {j.promise.id: j.verdict for j in result.promises}
    assert verdicts["S12"] is Verdict.FAILS
    assert verdicts["S1"] is Verdict.UNKNOWN


@pytest.mark.parametrize(("extra_bits", "words"), [(0, 1), (10, 2), (22, 3)])
@pytest.mark.parametrize("symmetric", [True, False])
def test_a_state_of_several_words_is_explored_as_exactly_as_one_of_one(
    extra_bits: int, words: int, symmetric: bool
) -> None:
    small = world("retry", workers=2, items=2, deliveries=1)
    one, more = Search(small, symmetric=symmetric), Search(small, symmetric=symmetric, extra_bits=extra_bits)
    assert one.run().fired == more.run().fired
    assert one.statistics.level_sizes == more.statistics.level_sizes
    assert more.packing.words == words


def test_a_search_begins_again_when_record_numbers_need_more_room() -> None:
    small = world("retry", workers=2)
    search = Search(small, extra_bits=-5)
    assert search.run().level_sizes == Search(small).run().level_sizes
    assert search.packing.worker_bits > Packing(2, 1, True, -5).worker_bits


@pytest.mark.slow
@pytest.mark.parametrize("extra_bits", [0, 22])
def test_a_search_continued_from_a_checkpoint_is_the_search_uninterrupted(
    extra_bits: int, tmp_path: Path
) -> None:
    small, watches = (
        world("retry", workers=2),
        tuple(Watch(part, wanted=False) for p in PROMISES for part in p.parts),
    )
    whole = Search(small, watches, extra_bits=extra_bits)
    whole.run()
    stopped = Search(small, watches, extra_bits=extra_bits)
    stopped.can_be_continued = True

    def stop(statistics: Statistics, left: int) -> None:
        if statistics.depth == 12:
            raise KeyboardInterrupt

    with pytest.raises(Stopped):
        stopped.run(report=stop)
    save(stopped, tmp_path / "checkpoint")
    again = Search(small, watches)
    restore(again, tmp_path / "checkpoint")
    found = again.run()
    assert found.level_sizes == whole.statistics.level_sizes
    assert (found.generated, found.fired) == (whole.statistics.generated, whole.statistics.fired)
    assert again.found == whole.found
    assert {b: len(shortest(again, b).steps) for b in again.found} == {
        b: len(shortest(whole, b).steps) for b in whole.found
    }


def test_a_trace_comes_out_of_states_of_several_words() -> None:
    small = world("retry", workers=2)
    watches = tuple(Watch(part, wanted=False) for p in PROMISES for part in p.parts)
    lengths = []
    for extra_bits in (0, 22):
        search = Search(small, watches, extra_bits=extra_bits)
        search.run()
        lengths.append({bit: len(shortest(search, bit).steps) for bit in search.found})
    assert lengths[0] == lengths[1]
    assert lengths[0]


def test_a_world_has_at_least_one_of_everything() -> None:
    with pytest.raises(WorldError, match="deliveries is 0; allowed in a bounded world: 1 to 250"):
        world(deliveries=0)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_action_of_a_policy_fires_or_is_stated_not_to(policy: str) -> None:
    result = check(world(policy), with_causes=False)
    assert result.silently_gone == ()
    assert bool(result.never_fired) == bool(NEVER_TAKEN[policy])


def test_an_action_that_never_fires_is_a_finding() -> None:
    """Take away that a lost fetch takes effect: no promise is broken, but something is no longer looked at."""
    small = world("retry")
    spoilt = evolve(
        small,
        actions_of_protocol=tuple(
            evolve(a, guards=(*a.guards, FALSE)) if a.name.startswith("renew: refused wrongly") else a
            for a in small.actions_of_protocol
        ),
    )
    assert check(spoilt, with_causes=False).as_stated  # an action that is not there is not missed
    silent = evolve(
        small,
        actions_of_protocol=tuple(
            evolve(a, guards=(*a.guards, issued[I] < 0)) if a.name.startswith("renew: refused wrongly") else a
            for a in small.actions_of_protocol
        ),
    )
    result = check(silent, with_causes=False)
    assert not result.as_stated
    assert all(name.startswith("renew: refused wrongly") for name in result.silently_gone)
    assert result.silently_gone


def test_each_promise_and_possibility_has_an_id_of_its_own() -> None:
    ids = [p.id for p in (*PROMISES, *POSSIBILITIES)]
    assert len(ids) == len(set(ids))
