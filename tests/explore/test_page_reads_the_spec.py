"""The page's code and Python read the same specification and come to the same: steps, states, promises and words."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from wandering import places, wander, world_of, world_over

from peeklock.cli.explore.data import as_data
from peeklock.cli.explore.page import asset
from peeklock.cli.explore.text import Walk, step_text, summary
from peeklock.model.explore.walks import Explorer, Move, step_of
from peeklock.model.search.world import World
from peeklock.spec.compose import PROMISES
from peeklock.spec.law.policy import POLICIES
from peeklock.spec.notation.terms import negate
from peeklock.spec.reading.evaluate import State
from peeklock.spec.variants.policy_file import read_variant

HERE = Path(__file__).parent
DEVIANT = read_variant(HERE.parent.parent / "docs" / "policies" / "abandon-revives.toml")


def _changed_protocol() -> World:
    """The protocol with the last guard of every ack turned round."""
    world = world_of(POLICIES["retry"])
    changed = [
        evolve(a, guards=(*a.guards[:-1], negate(a.guards[-1]))) if a.name.startswith("ack: failed") else a
        for a in world.actions_of_protocol
    ]
    return evolve(world, actions_of_protocol=tuple(changed))


WORLDS = {
    **{f"{name}, two items": world_of(policy) for name, policy in POLICIES.items()},
    "retry, three workers and one item": world_of(POLICIES["retry"], workers=3, items=1),
    "a store that deviates": world_over(DEVIANT, items=1),
    "another protocol": _changed_protocol(),
}


def numbers(state: State) -> list[list[list[int]]]:
    return [[[int(value) for value in record] for record in records] for records in state]


def expected(walk: Walk, moves: tuple[Move, ...]) -> dict[str, Any]:
    return {
        "position": walk.position,
        "state": numbers(walk.state),
        "moves": [
            {
                "step": str(step_of(m.taken)),
                "sentence": step_text(m),
                "truth": list(m.line.truth),
                "belief": list(m.line.belief),
                "after": numbers(m.later),
                "breaks": [[b.promise.id, b.part.text] for b in m.breaks],
            }
            for m in moves
        ],
        "summary": summary(walk),
    }


def in_node(world: World, walks: list[list[str]]) -> Any:
    """What the page's code says of these places."""
    script = asset("spec.js") + asset("walk.js") + (HERE / "in_node.js").read_text(encoding="utf-8")
    given = json.dumps({"data": as_data(world), "walks": walks})
    done = subprocess.run(
        ["node", "-e", script], input=given, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.adapters
@pytest.mark.parametrize("name", WORLDS)
def test_the_page_and_python_agree_on_random_walks(name: str) -> None:
    world = WORLDS[name]
    explorer = Explorer(world)
    here = [[expected(*place) for place in places(wander(explorer, seed, 40))] for seed in range(8)]
    there = in_node(world, [[place["position"] for place in walk] for walk in here])
    for mine, its in zip(here, there, strict=True):
        assert its["note"] == ""
        for place, found in zip(mine, its["places"], strict=True):
            assert found == place
    assert sum(len(place["moves"]) for walk in here for place in walk) > 1000
    assert any("≠ in truth" in place["summary"] for walk in here for place in walk)


@pytest.mark.adapters
def test_the_page_and_python_find_the_same_nearest_way_to_break_a_promise() -> None:
    world = world_of(POLICIES["before"], workers=1, items=1)
    explorer = Explorer(world)
    (found,) = in_node(world, [[Walk(explorer).position]])
    ways = {p.id: explorer.way_to_break(world.initial(), p, 500) for p in PROMISES}
    assert found["ways"] == {
        pid: None if way is None else [str(step_of(m.taken)) for m in way] for pid, way in ways.items()
    }
    assert {pid for pid, way in ways.items() if way} >= {"S10", "S12"}


@pytest.mark.adapters
def test_what_has_to_be_said_of_a_link_is_said_in_the_same_words() -> None:
    world = world_of(POLICIES["retry"], items=1)
    explorer = Explorer(world)
    walk = wander(explorer, 1, 12)
    of, *steps = walk.position.split("/")
    links = {
        "of another protocol": "/".join(["00000000", *steps]),
        "of another protocol, and with a step of it": "/".join(["00000000", *steps[:3], "00000.1.1"]),
        "with a step that cannot be taken": "/".join([of, *steps[:3], *steps[:1]]),
        "with a worker that there is not": "/".join([of, steps[0], steps[1][:-3] + "9.1"]),
    }
    for found, link in zip(in_node(world, [[link] for link in links.values()]), links.values(), strict=True):
        note = Walk(explorer).follow(link)
        assert note
        assert found["note"] == note
