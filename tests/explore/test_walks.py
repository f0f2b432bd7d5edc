"""Walks: what can be next, what it breaks, how deliveries live, and positions."""

from __future__ import annotations

import itertools

import pytest
from attrs import evolve
from wandering import WORLDS, places, wander, world_of

from peeklock.cli.explore.text import deliveries
from peeklock.harness.monitor.promise_checks import StepPromises
from peeklock.harness.monitor.world import Core
from peeklock.model.explore.lives import life_of, moves
from peeklock.model.explore.walks import (
    Explorer,
    PositionError,
    Step,
    code_of,
    fingerprint,
    position,
    read_position,
    step_of,
)
from peeklock.model.search.verdicts import check
from peeklock.model.search.world import World
from peeklock.spec.compose import ACTIONS, PROMISES
from peeklock.spec.law.life import Life
from peeklock.spec.law.policy import BEFORE, HARDENED, RETRY
from peeklock.spec.law.state import issued
from peeklock.spec.reading.evaluate import PLACE
from peeklock.spec.variants.deviations import Deviations, RepeatedAck, protocol_over

DEVIANT = Deviations(repeated_ack=RepeatedAck.OK, abandon_revives_acked=True, permanent_honest=False)


def named(world: World) -> str:
    return world.variant.policy.name


@pytest.mark.parametrize("world", WORLDS, ids=named)
def test_each_step_breaks_what_the_monitor_says_that_it_breaks(world: World) -> None:
    explorer, promises = Explorer(world), StepPromises(world.variant)
    broken = 0
    for seed in range(10):
        for walk, possible in places(wander(explorer, seed, 30)):
            for move in possible:
                taken, here = move.taken, walk.state
                by_step = promises.broken_by(taken.action, here, taken.worker, taken.item)
                by_state = promises.broken_in(Core(move.later)) - promises.broken_in(Core(here))
                assert {b.promise.id for b in move.breaks} == by_step | by_state, move.line
                broken += len(move.breaks)
    assert (broken > 0) == (world.variant.policy.name != "hardened")


@pytest.mark.parametrize("policy", [BEFORE, RETRY], ids=lambda p: p.name)
def test_the_shortest_run_that_breaks_a_promise_breaks_it_with_its_last_step(policy: object) -> None:
    world = world_of(policy, items=1)  # type: ignore[arg-type]
    explorer, failing = Explorer(world), 0
    for judged in check(world, PROMISES, (), with_causes=False).promises:
        for found in judged.broken[:1]:
            failing += 1
            _, steps = read_position(position(world, found.trace.steps))
            taken, missing = explorer.follow(steps)
            assert missing is None
            assert taken[-1].later == found.trace.states[-1]
            assert [m.taken for m in taken] == list(found.trace.steps)
            assert judged.promise in [b.promise for b in taken[-1].breaks]
    assert failing >= 3


@pytest.mark.parametrize("world", WORLDS, ids=named)
def test_every_move_of_a_delivery_is_one_of_the_drawing(world: World) -> None:
    larger = evolve(world, items=2)
    explorer, known, met = Explorer(larger), moves(world), set[tuple[Life | None, Life]]()
    for seed in range(8):
        walk = wander(explorer, seed, 40)
        for before, after in itertools.pairwise(walk.states):
            for i, t in itertools.product(range(larger.items), range(1, larger.deliveries + 1)):
                was, now = life_of(before, i, t), life_of(after, i, t)
                if was is not now:
                    assert now is not None
                    met.add((was, now))
    assert met <= set(known)
    assert len(met) > len(known) // 2


def test_every_delivery_has_one_life_at_a_time() -> None:
    walk = wander(Explorer(world_of(RETRY)), 3, 40)
    of_each = list(deliveries(walk))
    assert len(of_each) == sum(record[PLACE[issued]] for record in walk.state[1])
    for delivery in of_each:
        assert delivery.lives[0] is Life.LOCKED
        assert all(a is not b for a, b in itertools.pairwise(delivery.lives))


def test_no_two_actions_have_the_same_code() -> None:
    names = {a.name for a in (*ACTIONS, *protocol_over(DEVIANT))}
    assert len({code_of(name) for name in names}) == len(names) > len(ACTIONS)


def test_a_position_is_read_as_it_was_written() -> None:
    world = world_of(RETRY)
    walk = wander(Explorer(world), 1, 20)
    of, steps = read_position(walk.position)
    assert of == fingerprint(ACTIONS)
    assert steps == tuple(step_of(m.taken) for m in walk.taken)
    assert all(steps)


@pytest.mark.parametrize("text", ["", "x", "12345678/", "12345678/abcde.1", "12345678/abcde.1.1/"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(PositionError, match="no position"):
        read_position(text)


def test_a_walk_can_be_tried_under_another_policy_as_far_as_it_goes() -> None:
    world = world_of(RETRY, items=1)
    (judged,) = check(world, tuple(p for p in PROMISES if p.id == "S12"), (), with_causes=False).promises
    _, steps = read_position(position(world, judged.broken[0].trace.steps))
    taken, missing = Explorer(world_of(HARDENED, items=1)).follow(steps)
    assert 0 < len(taken) < len(steps)
    assert missing == steps[len(taken)]


def test_a_step_that_no_action_is_cannot_be_taken() -> None:
    assert Explorer(world_of(RETRY)).follow([Step("00000", 1, 1)]) == ([], Step("00000", 1, 1))


def test_the_fingerprint_is_that_of_the_protocol_and_not_of_the_policy() -> None:
    first = ACTIONS[0]
    changed = (evolve(first, guards=first.guards[:-1]), *ACTIONS[1:])
    renamed = (evolve(first, name="enqueued otherwise"), *ACTIONS[1:])
    prints = {fingerprint(a) for a in (ACTIONS, changed, renamed, protocol_over(DEVIANT))}
    assert len(prints) == 4
    assert {fingerprint(w.actions_of_protocol) for w in WORLDS} == {fingerprint(ACTIONS)}
