"""A plain evaluation of the same terms: every state and step by itself, every promise asked of it. For comparison."""

from __future__ import annotations

import json
import sys
import time

from attrs import evolve

from peeklock.model.search.world import World
from peeklock.spec.compose import PROMISES
from peeklock.spec.law.policy import POLICIES
from peeklock.spec.notation.terms import substitute
from peeklock.spec.reading.evaluate import Stepper, predicate
from peeklock.spec.variants.variant import Variant


def explore(world: World) -> dict[str, object]:
    """Distinct states, steps, and the promises that are broken."""
    variant = world.variant
    states = [
        (p.id, predicate(substitute(part.state, variant.settings)))
        for p in PROMISES
        for part in p.parts
        if part.state is not None
    ]
    steps = []
    for action in world.actions:
        terms = [(p.id, variant.obligation(part, action)) for p in PROMISES for part in p.parts]
        steps.append(
            (Stepper(action), [(i, predicate(t)) for i, t in terms if t is not None and t.op != "const"])
        )
    seen, frontier, generated, broken = {world.initial()}, [world.initial()], 0, set[str]()
    while frontier:
        fresh = []
        for state in frontier:
            broken |= {pid for pid, keeps in states if pid not in broken and not keeps(*state)}
            for stepper, asked in steps:
                for w, i in stepper.choices(state):
                    generated += 1
                    broken |= {pid for pid, keeps in asked if pid not in broken and not keeps(*state, w, i)}
                    after = stepper.takes(*state, w, i)
                    if after not in seen:
                        seen.add(after)
                        fresh.append(after)
        frontier = fresh
    return {"distinct": len(seen), "generated": generated, "broken": sorted(broken)}


if __name__ == "__main__":
    name, workers, items, deliveries = sys.argv[1], *map(int, sys.argv[2:5])
    begun = time.monotonic()
    found = explore(World(Variant(evolve(POLICIES[name], max_attempts=2)), workers, items, deliveries))
    print(json.dumps({**found, "seconds": time.monotonic() - begun}))
