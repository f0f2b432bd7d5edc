"""The other process of :mod:`~peeklock.model.review.revisions`: searches the specification that it was started with.

It reads lines of JSON and answers each with one: what it is asked is the names of its policies; or first which world,
answered by the account of it, and then words, each answered by a run.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from attrs import asdict, evolve

from peeklock.model.review.behaviours import Letter
from peeklock.model.review.sides import Present, to_data
from peeklock.model.search.engine import Limits
from peeklock.model.search.world import World
from peeklock.spec.law.faults import FAULTS, KNOWN_FAULTS
from peeklock.spec.law.policy import POLICIES
from peeklock.spec.variants.policy_file import find_variant


def _side(asked: dict[str, Any]) -> Present:
    """The side that is asked for; ``ValueError`` for what this specification does not have."""
    variant = find_variant(asked["policy"])
    policy = variant.policy
    given = "max_attempts" in policy.given
    maximum = asked["max_attempts"] or (policy.max_attempts if given else 2)
    faults = {f.name for f in FAULTS} if asked["only"] is None else set(asked["only"])
    faults = (faults | set(asked["with"]) | variant.store.faults) - set(asked["without"])
    unknown = sorted(faults - {f.name for f in KNOWN_FAULTS})
    if unknown:
        raise ValueError(f"has no fault class {unknown[0]!r}")
    world = World(
        evolve(variant, policy=evolve(policy, max_attempts=maximum), faults=frozenset(faults)),
        asked["workers"],
        asked["items"],
        asked["deliveries"] or maximum + 2,
    )
    return Present(asked["title"], policy, world, Limits(asked["seconds"], asked["bytes"]))


def serve() -> None:
    """Answer until the input ends."""
    side = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer: dict[str, Any]
            if "policies" in asked:
                answer = {"policies": list(POLICIES)}
            elif side is None:
                side = _side(asked)
                answer = to_data(side.account)
            else:
                words = tuple(tuple(Letter(*a) for a in word) for word in asked["words"])
                answer = {"runs": [[asdict(x) for x in run] for run in side.runs(words)]}
        except (ValueError, LookupError) as error:
            answer = {"error": " ".join(str(error).split())}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
