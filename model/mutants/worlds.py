"""The worlds in which mutants are tried, and what the unchanged protocol does in each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

import numpy as np
from attrs import evolve, field, frozen

from peeklock.model.mutants.mutate import ORIGINAL
from peeklock.model.search.engine import Search
from peeklock.model.search.local import grounded
from peeklock.model.search.tables import Watch
from peeklock.model.search.view import View, column_question
from peeklock.model.search.world import World
from peeklock.spec.compose import POSSIBILITIES, PROMISES
from peeklock.spec.law.faults import DISHONEST, FAULTS, FIFO, fault
from peeklock.spec.law.policy import (
    BEFORE,
    HARDENED,
    RETRY,
    AfterCancellationAck,
    AfterExhaustion,
    AfterRefusal,
    AfterRetryableRenewal,
    AfterUncertain,
    PoisonAck,
    Policy,
    rule,
)
from peeklock.spec.notation.actions import Action
from peeklock.spec.notation.terms import Term, arguments, both, either, equal
from peeklock.spec.promises.promise import Part, Possibility, Promise
from peeklock.spec.variants.variant import Variant

WATCHES: dict[Watch, Promise | Possibility] = {
    **{Watch(part, wanted=False): promise for promise in PROMISES for part in promise.parts},
    **{Watch(p.part, wanted=True): p for p in POSSIBILITIES},
}
OWNERS = tuple(WATCHES.values())

ALL = frozenset(f.name for f in FAULTS)


_Obligations: TypeAlias = dict[Part, Term | None]


@frozen(slots=False)
class Remembering(Variant):
    """A variant that works out what a part asks of an action once only: mutants share most of their actions."""

    _by_step: dict[tuple[object, ...], _Obligations] = field(factory=dict, eq=False, repr=False)
    _by_action: dict[Action, _Obligations] = field(factory=dict, eq=False, repr=False)
    """The action that was asked about last: one is asked about many times on end."""

    def obligation(self, part: Part, action: Action) -> Term | None:
        """What the part asks of a state in which the action is taken; its guards do not matter to that."""
        known = self._by_action.get(action)
        if known is None:
            self._by_action.clear()
            known = self._by_action[action] = self._by_step.setdefault(step_of(action), {})
        if part not in known:
            known[part] = super().obligation(part, action)
        return known[part]


@frozen(slots=False, eq=False)
class Arena:
    """A world, and what the unchanged protocol was found to do in it."""

    name: str
    world: World
    switch: Term | None = None
    """Where given, the world differs from another by this setting, and is of use to sentences that ask for it."""

    def concerns(self, changed: Iterable[Action]) -> bool:
        """Can this world tell more of these actions than the others?"""
        return self.switch is None or any(_speaks_of(g, self.switch) for a in changed for g in a.guards)

    @cached_property
    def search(self) -> Search:
        """The unchanged protocol, explored."""
        search = Search(self.world, tuple(WATCHES))
        search.run()
        return search

    @cached_property
    def broken(self) -> frozenset[str]:
        """The promises that do not hold here anyhow."""
        return frozenset(OWNERS[bit].id for bit in self.search.found if isinstance(OWNERS[bit], Promise))

    @cached_property
    def _view(self) -> View:
        return View(self.search.packing, np.concatenate(self.search.levels))

    @cached_property
    def _own(self) -> dict[str, Action]:
        return {a.name: a for a in self.world.actions}

    def ready(self) -> None:
        """Work out everything that is needed of the unchanged protocol."""
        _ = self.broken, self._view, self._own

    def mutated(self, actions: tuple[Action, ...]) -> World:
        """This world under other actions."""
        return evolve(self.world, actions_of_protocol=actions)

    def differs(
        self, changed: tuple[Action, ...], gone: tuple[Action, ...], actions: tuple[Action, ...]
    ) -> bool:
        """Does a changed action do anything else in a reachable state than it did, or one that is gone anything?

        If not, then the mutant has the same reachable states and the same steps: every run of the one is a run of
        the other, by induction on its length.
        """
        theirs = {a.name: a for a in self.mutated(changed).actions}
        names = dict.fromkeys(a.name for a in (*changed, *gone))
        alike = all(self._is_alike(self._own.get(name), theirs.get(name)) for name in names)
        return not alike and not self._does_the_same(names, self.mutated(actions).actions)

    def _is_alike(self, mine: Action | None, other: Action | None) -> bool:
        action = mine or other
        return action is None or not any(self._somewhere(term, action) for term in _differences(mine, other))

    def adds(self, changed: tuple[Action, ...]) -> bool:
        """Can a changed action take a step, in a state that the protocol reaches, that the protocol does not take?

        If not, then every run of the mutant is one of the protocol, and no promise can be broken.
        """
        for action in self.mutated(changed).actions:
            like = (both(*a.guards) for a in self._own.values() if step_of(a) == step_of(action))
            if self._somewhere(both(*action.guards, ~either(*like)), action):
                return True
        return False

    def _does_the_same(self, names: Iterable[str], theirs: tuple[Action, ...]) -> bool:
        """Where an action is missing, does another one take the same step, and the other way round?"""
        both_sides = (*self._own.values(), *theirs)
        for step in dict.fromkeys(step_of(a) for a in both_sides if a.name in names):
            like = [
                [both(*a.guards) for a in side if step_of(a) == step] for side in (self._own.values(), theirs)
            ]
            mine, other = (either(*guards) for guards in like)
            action = next(a for a in both_sides if step_of(a) == step)
            if self._somewhere(either(mine & ~other, other & ~mine), action):
                return False
        return True

    def _somewhere(self, term: Term, action: Action) -> bool:
        world = self.world
        for w in range(world.workers) if action.worker is not None else (None,):
            for i in range(world.items) if action.item is not None else (None,):
                if self._view.where(column_question(grounded(term, world.workers, world.items, w, i))).any():
                    return True
        return False


def _speaks_of(term: Term, switch: Term) -> bool:
    return term is switch or any(_speaks_of(a, switch) for a in arguments(term))


def _differences(mine: Action | None, other: Action | None) -> Iterator[Term]:
    """Where one can happen and the other cannot, or both can and do not write the same."""
    for one in (mine, other):
        if one is None and other is not mine:
            there = mine or other
            assert there is not None
            yield both(*there.guards)
    if mine is None or other is None:
        return
    a, b = both(*mine.guards), both(*other.guards)
    yield either(a & ~b, b & ~a)
    if mine.label != other.label:
        yield a
    written = {e.target: e.value for e in mine.effects}
    rewritten = {e.target: e.value for e in other.effects}
    yield a & either(
        *(
            ~equal(written.get(target, target), rewritten.get(target, target))
            for target in dict.fromkeys((*written, *rewritten))
        )
    )


def _arena(
    name: str,
    policy: Policy = RETRY,
    faults: frozenset[str] = ALL,
    workers: int = 2,
    items: int = 1,
    fifo: bool = False,
    switch: Term | None = None,
) -> Arena:
    variant = Remembering(evolve(policy, max_attempts=2), faults, fifo)
    return Arena(name, World(variant, workers, items), switch)


def _arenas() -> Iterator[Arena]:
    yield _arena("retry")
    yield _arena("hardened", HARDENED)
    # Under these, the promises that retry is stated to break do hold.
    renewal_errors = {"renewal-retryable", "renewal-permanent"}
    yield _arena(
        "retry without renewal errors and lost responses", faults=ALL - renewal_errors - {"response-lost"}
    )
    unheard = {"ack-retryable", "ack-permanent", "expiry", "shutdown"}
    yield _arena("retry, where poison is heard", faults=ALL - renewal_errors - unheard)
    yield _arena("retry, two items", workers=1, items=2)
    yield _arena("hardened, two items", HARDENED, workers=1, items=2)
    yield _arena("before", BEFORE, switch=rule.ack_attempts)
    four = evolve(RETRY, ack_attempts=4, ack_waits_ms=(100, 200, 400))
    yield _arena("retry with four attempts", four, switch=rule.ack_attempts)
    # A fault must be one that is switched on.
    for name in (f.name for f in FAULTS):
        yield _arena(f"retry without {name}", faults=ALL - {name}, switch=fault(name))
    hopeful = fault("renewal-retryable")
    yield _arena("hardened without renewal-retryable", HARDENED, ALL - {"renewal-retryable"}, switch=hopeful)
    yield _arena(
        "retry without expiry, two items", faults=ALL - {"expiry"}, workers=1, items=2, switch=fault("expiry")
    )
    # Choices that no named policy makes.
    for choice, policy in (
        ("abandon_ignores_attempt", evolve(RETRY, abandon_ignores_attempt=True)),
        ("after_exhaustion", evolve(RETRY, after_exhaustion=AfterExhaustion.LEAVE)),
        ("after_first_permanent", evolve(RETRY, after_first_permanent=AfterRefusal.UNCERTAIN)),
        ("after_later_permanent", evolve(RETRY, after_later_permanent=AfterRefusal.ABANDON)),
        ("after_uncertain", evolve(RETRY, after_uncertain=AfterUncertain.ABANDON)),
        ("after_retryable_renewal", evolve(RETRY, after_retryable_renewal=AfterRetryableRenewal.ABANDON)),
        ("after_cancellation_ack", evolve(RETRY, after_cancellation_ack=AfterCancellationAck.LEAVE)),
    ):
        value = getattr(policy, choice)
        shown = str(value).lower() if isinstance(value, bool) else value.value
        yield _arena(f"retry, {choice.replace('_', ' ')}: {shown}", policy, switch=getattr(rule, choice))
    uncounted = evolve(RETRY, abandon_ignores_attempt=True)
    for name in ("abandon-fails", "response-lost"):
        switch = rule.abandon_ignores_attempt
        yield _arena(f"retry, uncounted, without {name}", uncounted, ALL - {name}, switch=switch)
    retried = evolve(RETRY, poison_ack=PoisonAck.RETRIED, after_exhaustion=AfterExhaustion.LEAVE)
    yield _arena("retry, poison retried and left", retried, switch=rule.after_exhaustion)
    doubtful = evolve(
        RETRY,
        poison_ack=PoisonAck.RETRIED,
        after_first_permanent=AfterRefusal.UNCERTAIN,
        after_uncertain=AfterUncertain.ABANDON,
    )
    yield _arena("retry, always uncertain and abandoned", doubtful, switch=rule.after_uncertain)
    yield _arena(
        "retry, uncertain at first only, and abandoned",
        evolve(doubtful, poison_ack=PoisonAck.ONCE, after_later_permanent=AfterRefusal.ABANDON),
        switch=rule.after_uncertain,
    )
    yield _arena("retry with dishonest answers", faults=ALL | {DISHONEST.name}, switch=fault(DISHONEST.name))
    yield _arena("retry, oldest first", workers=1, items=2, fifo=True, switch=FIFO)


ARENAS = tuple(_arenas())


def changed_in(actions: tuple[Action, ...]) -> tuple[tuple[Action, ...], tuple[Action, ...]]:
    """The actions that are not as in the protocol, and those of the protocol that are gone."""
    own = {a.name: a for a in ORIGINAL}
    changed = tuple(a for a in actions if a.name not in own or _content(own[a.name]) != _content(a))
    there = {a.name for a in actions}
    return changed, tuple(a for a in ORIGINAL if a.name not in there)


def step_of(action: Action) -> tuple[object, ...]:
    """What the action does, whenever it can happen."""
    return (
        action.label,
        tuple(p.serial for p in action.params),
        frozenset((e.target.serial, e.value.serial) for e in action.effects),
    )


def _content(action: Action) -> tuple[object, ...]:
    return frozenset(g.serial for g in action.guards), step_of(action)
