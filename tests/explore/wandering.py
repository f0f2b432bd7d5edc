"""Walks at random, as a curious reader would take them: few steps end what has hardly begun, or change nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator

from attrs import evolve

from peeklock.cli.explore.text import Walk
from peeklock.model.explore.walks import Explorer, Move
from peeklock.model.search.world import World
from peeklock.spec.law.policy import POLICIES, Policy
from peeklock.spec.notation.actions import Call, Event
from peeklock.spec.variants.policy_file import over
from peeklock.spec.variants.variant import Variant

_DULL = (Event.SHUTDOWN, Event.CRASH, Call.CANCEL)


def world_of(policy: Policy, workers: int = 2, items: int = 2) -> World:
    return world_over(over(policy), workers, items)


def world_over(variant: Variant, workers: int = 2, items: int = 2) -> World:
    policy = evolve(variant.policy, max_attempts=2)
    return World(evolve(variant, policy=policy), workers, items)


WORLDS = [world_of(policy, items=1) for policy in POLICIES.values()]
"""One for each policy."""


def wander(explorer: Explorer, seed: int, steps: int) -> Walk:
    """A walk of so many steps."""
    chosen, walk = random.Random(seed), Walk(explorer)
    for _ in range(steps):
        moves = walk.moves
        lively = [m for m in moves if m.later != walk.state and not _is_dull(m)]
        walk.take(chosen.choice(lively if lively and chosen.random() < 0.9 else moves))
    return walk


def _is_dull(move: Move) -> bool:
    label = move.taken.action.label
    return label.event in _DULL or label.call in _DULL


def places(walk: Walk) -> Iterator[tuple[Walk, tuple[Move, ...]]]:
    """The walk at each place from its start to its end, with what could be next there."""
    for at in range(len(walk.path) + 1):
        walk.go(at)
        yield walk, walk.moves
