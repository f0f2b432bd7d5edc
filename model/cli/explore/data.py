"""What the page of ``peeklock explore`` reads: the specification of one world as data, with no rule left out.

The page evaluates it; no rule of the protocol, no promise and no sentence stands in the page's own code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from peeklock.harness.story.story import note_on
from peeklock.model.explore.term_table import TermTable
from peeklock.model.explore.walks import MOST_SEARCHED, code_of, fingerprint
from peeklock.model.search.world import World
from peeklock.spec.compose import PROMISES, I, T
from peeklock.spec.law.faults import KNOWN_FAULTS
from peeklock.spec.law.life import IN_HAND, Life, allowed_by, is_in
from peeklock.spec.law.state import BELIEF, HISTORY, issued, token, working_on
from peeklock.spec.notation.actions import Action, Metric
from peeklock.spec.notation.terms import ITEM, WORKER, Variable, substitute
from peeklock.spec.reading.evaluate import (
    INITIAL_ITEM,
    INITIAL_WORKER,
    ITEM_VARIABLES,
    PLACE,
    WORKER_VARIABLES,
)
from peeklock.spec.reading.narrative import (
    ITEM_TOLD,
    WORKER_TOLD,
    actor,
    answers,
    beliefs,
    causes_of,
    doings,
    truths,
)
from peeklock.spec.reading.wording import HOLES, Saying, item_name, token_name, told_variables, worker_name


class _Writer:
    def __init__(self, world: World) -> None:
        self.world = world
        self.table = TermTable()

    def sayings(self, sayings: Iterable[Saying]) -> list[list[Any]]:
        return [[s.words, self.table.of(s.when)] for s in sayings]

    def action(self, action: Action) -> dict[str, Any]:
        label, variant, of = action.label, self.world.variant, self.table.of
        asks = [
            [PROMISES.index(promise), promise.parts.index(part), of(term)]
            for promise, part, term in variant.obligations(action)
        ]
        answer = "" if label.answer is None else label.answer.value
        causes = [
            [list(names), note_on(answer, names, label.takes_effect), of(enough)]
            for names, enough in causes_of(action)
        ]
        return {
            "code": code_of(action.name),
            "name": action.name,
            "sentence": action.sentence,
            "hasWorker": action.worker is not None,
            "hasItem": action.item is not None,
            "guards": self.table.all_of(action.guards),
            "writes": [self.table.writes(action, WORKER), self.table.writes(action, ITEM)],
            "asks": asks,
            "who": actor(label, None),
            "does": self.sayings(doings(label)),
            "answer": self.sayings(answers(label)),
            "belief": self.sayings(beliefs(label)),
            "causes": causes,
            "counts": "" if label.counts is None else label.counts.value,
        }

    def promises(self) -> list[dict[str, Any]]:
        settings = self.world.variant.settings
        return [
            {
                "id": promise.id,
                "text": promise.text,
                "parts": [
                    {
                        "text": part.text,
                        "state": None
                        if part.state is None
                        else self.table.of(substitute(part.state, settings)),
                    }
                    for part in promise.parts
                ],
            }
            for promise in PROMISES
        ]

    def holes(self) -> dict[str, Any]:
        return {
            name: {
                "term": self.table.of(hole.term),
                "kind": "item" if hole.term.sort == ITEM else "token" if hole.is_token else "number",
            }
            for name, hole in HOLES.items()
        }


def _variable(variable: Variable) -> dict[str, Any]:
    kind = "belief" if variable in BELIEF else "history" if variable in HISTORY else "store"
    told = variable in told_variables((*WORKER_TOLD, *ITEM_TOLD))
    return {
        "name": variable.name,
        "meaning": variable.meaning,
        "kind": kind,
        "isTold": told,
        "words": [m.value for m in variable.sort.members],
        "isSwitch": variable.sort.name == "Bool",
    }


def as_data(world: World) -> dict[str, Any]:
    """The world and all that the specification says of it."""
    writer = _Writer(world)
    policy = world.variant.policy
    most = world.deliveries
    data: dict[str, Any] = {
        "fingerprint": fingerprint(world.actions_of_protocol),
        "policy": policy.name,
        "world": str(world),
        "initial": [[list(INITIAL_WORKER)] * world.workers, [list(INITIAL_ITEM)] * world.items],
        "variables": [[_variable(v) for v in vs] for vs in (WORKER_VARIABLES, ITEM_VARIABLES)],
        "places": {v.name: PLACE[v] for v in (working_on, token, issued)},
        "workers": [worker_name(w) for w in range(world.workers)],
        "items": [item_name(i) for i in range(world.items)],
        "tokens": [[token_name(i, t) for t in range(most + 1)] for i in range(world.items)],
        "actions": [writer.action(a) for a in world.actions],
        "truth": writer.sayings(truths()),
        "describe": [writer.sayings(WORKER_TOLD), writer.sayings(ITEM_TOLD)],
        "holes": writer.holes(),
        "promises": writer.promises(),
        "lives": [
            {"name": life.name, "meaning": life.value, "is": writer.table.of(is_in(life, I, T))}
            for life in Life
        ],
        "inHand": IN_HAND.name,
        "allowedBy": {m.value: [life.name for life in allowed_by(m, policy)] for m in Metric},
        "mostSearched": MOST_SEARCHED,
        "faults": {f.name: f.sentence for f in KNOWN_FAULTS},
    }
    data["terms"] = writer.table.rows
    return data
