"""What could have happened instead: the other steps from the state before a promise broke."""

from __future__ import annotations

from peeklock.model.verdicts import BrokenPart
from peeklock.model.world import World
from peeklock.spec.evaluate import Stepper, predicate
from peeklock.spec.narrative import Line, line
from peeklock.spec.terms import substitute


def alternatives(world: World, broken: BrokenPart) -> list[Line]:
    """The steps that keep the part, each told once: those of the same hand first, the same call before others."""
    before, last = broken.trace.states[-2], broken.trace.steps[-1]
    found: dict[tuple[str, str, str], tuple[tuple[bool, bool, int], Line]] = {}
    for place, action in enumerate(world.actions):
        stepper = Stepper(action)
        for w, i in stepper.choices(before):
            after = stepper.takes(*before, w, i)
            if after == before and action.label.call is None:
                continue
            if broken.part.state is not None:
                keeps = predicate(substitute(broken.part.state, world.variant.settings))(*after)
            else:
                term = world.variant.obligation(broken.part, action)
                keeps = term is None or predicate(term)(*before, w, i)
            if keeps:
                told = line(action, before, after, w, i)
                same_hand = (action.worker is None) == (last.action.worker is None) and w == last.worker
                same_call = action.label.call is last.action.label.call
                rank = (not same_hand, not same_call, place)
                found.setdefault((told.who, told.does, told.answer), (rank, told))
    return [told for _, told in sorted(found.values(), key=lambda f: f[0])]
