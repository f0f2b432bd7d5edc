"""What could have happened instead: the other steps from the state before a promise broke."""

from __future__ import annotations

from peeklock.model.search.verdicts import BrokenPart
from peeklock.model.search.world import World
from peeklock.spec.notation.terms import substitute
from peeklock.spec.reading.evaluate import Stepper, predicate
from peeklock.spec.reading.narrative import Line, line


def alternatives(world: World, broken: BrokenPart) -> list[Line]:
    """How the same call could have been answered instead, so that the part is kept; each answer told once."""
    before, last = broken.trace.states[-2], broken.trace.steps[-1]
    found: dict[tuple[str, str, str], Line] = {}
    for action in world.actions:
        if action.label.call is None or action.label.call is not last.action.label.call:
            continue
        stepper = Stepper(action)
        for w, i in stepper.choices(before):
            after = stepper.takes(*before, w, i)
            if broken.part.state is not None:
                keeps = predicate(substitute(broken.part.state, world.variant.settings))(*after)
            else:
                term = world.variant.obligation(broken.part, action)
                keeps = term is None or predicate(term)(*before, w, i)
            if keeps and (w, i) == (last.worker, last.item):
                told = line(action, before, after, w, i)
                found.setdefault((told.who, told.does, told.answer), told)
    seen = line(last.action, before, broken.trace.states[-1], last.worker, last.item)
    return [told for told in found.values() if (told.does, told.answer) != (seen.does, seen.answer)]
