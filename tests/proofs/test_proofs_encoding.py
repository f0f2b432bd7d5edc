"""Two readers of the same terms agree: formulas for Z3, and the spec's evaluation on concrete states."""

import enum
import itertools
import random
from collections.abc import Iterator

import pytest

from peeklock.proofs import ALL_FAULTS, LEMMAS
from peeklock.proofs.encode import Asker, Encoder, Model, Outcome
from peeklock.proofs.inductive import AnyMaximum
from peeklock.proofs.quantifiers import Named, Untreatable, Witnesses, instantiated, witnessed
from peeklock.spec.compose import PROMISES, I, W, resolved, specialized
from peeklock.spec.law.policy import POLICIES, rule
from peeklock.spec.law.state import issued, token, working_on
from peeklock.spec.notation.actions import Action
from peeklock.spec.notation.terms import (
    BOOL,
    ITEM,
    NAT,
    NO_ITEM,
    TRUE,
    WORKER,
    Term,
    Variable,
    after,
    constant,
    every,
    negate,
    parameter,
    some,
    substitute,
)
from peeklock.spec.reading.evaluate import (
    ITEM_VARIABLES,
    WORKER_VARIABLES,
    State,
    Stepper,
    encoded,
    predicate,
)

WORKERS = tuple(parameter(f"the worker {k}", WORKER) for k in range(2))
ITEMS = tuple(parameter(f"the item {k}", ITEM) for k in range(2))
ALL = Named(WORKERS, ITEMS)
MAXIMUM = {rule.max_attempts: 2}


def a_number(random: random.Random, variable: Variable) -> int:
    if variable.sort.members:
        return random.randrange(len(variable.sort.members))
    if variable.sort == ITEM:
        return random.randrange(len(ITEMS) + 1)
    return random.randrange(2 if variable.sort == BOOL else 4)


def a_state(random: random.Random) -> State:
    return (
        tuple(tuple(a_number(random, v) for v in WORKER_VARIABLES) for _ in WORKERS),
        tuple(tuple(a_number(random, v) for v in ITEM_VARIABLES) for _ in ITEMS),
    )


def value(variable: Variable, number: int) -> Term:
    if variable.sort == ITEM:
        return ITEMS[number - 1] if number else NO_ITEM
    plain: bool | int | enum.Enum = number
    if variable.sort.members:
        plain = variable.sort.members[number]
    elif variable.sort == BOOL:
        plain = bool(number)
    return constant(plain, variable.sort)


def model_of(state: State, w: int, i: int, witnesses: dict[Term, Term], encoder: Encoder) -> Model:
    """Z3's picture of a concrete state, with the parameters of an action and the witnesses chosen."""
    asker = Asker(encoder, (*WORKERS, *ITEMS), limit=1_000_000)
    for names in (WORKERS, ITEMS):
        for a, b in itertools.combinations(names, 2):
            asker.given(negate(a == b))
    for names, records, variables in (
        (WORKERS, state[0], WORKER_VARIABLES),
        (ITEMS, state[1], ITEM_VARIABLES),
    ):
        for name, record in zip(names, records, strict=True):
            for variable, number in zip(variables, record, strict=True):
                asker.given(variable[name] == value(variable, number))
    for name, chosen in {W: WORKERS[w], I: ITEMS[i], **witnesses}.items():
        asker.given(name == chosen)
    answer = asker.ask(())
    assert answer.outcome is Outcome.POSSIBLE
    assert answer.model is not None
    return answer.model


def ways(goal: Term) -> Iterator[tuple[Term, dict[Term, Term]]]:
    """The negated goal as Z3 is asked about it, for every choice of its witnesses."""
    witnesses = Witnesses("some")
    negated = witnessed(negate(goal), witnesses)
    choices = (WORKERS if t.sort == WORKER else ITEMS for t in witnesses.found)
    for chosen in itertools.product(*choices):
        yield instantiated(negated, ALL), dict(zip(witnesses.found, chosen, strict=True))


class Picture:
    """One concrete state as Z3 sees it, with an action's parameters chosen."""

    def __init__(self, state: State, w: int, i: int) -> None:
        self.state, self.w, self.i = state, w, i
        self._models: dict[tuple[str, ...], Model] = {}

    def model(self, witnesses: dict[Term, Term]) -> Model:
        key = tuple(f"{name} is {chosen}" for name, chosen in witnesses.items())
        if key not in self._models:
            self._models[key] = model_of(self.state, self.w, self.i, witnesses, ENCODER)
        return self._models[key]

    def value(self, term: Term) -> object:
        return self.model({}).value(instantiated(term, ALL))

    def refutes(self, goal: Term) -> bool:
        """Is there a choice of witnesses that makes the negated goal true?"""
        return any(self.model(chosen).value(negated) for negated, chosen in ways(goal))


ENCODER = Encoder()


def pictures(seed: str, number: int) -> Iterator[Picture]:
    rng = random.Random(seed)
    for _ in range(number):
        yield Picture(a_state(rng), rng.randrange(len(WORKERS)), rng.randrange(len(ITEMS)))


def settled(policy: str) -> tuple[AnyMaximum, list[Term], tuple[Action, ...]]:
    """A variant, its lemmas and promises about states, and its actions."""
    variant = AnyMaximum(POLICIES[policy], ALL_FAULTS)
    settings = {**variant.settings, **MAXIMUM}
    states = [lemma.state for lemma in LEMMAS]
    states += [p.state for q in PROMISES for p in q.parts if p.state is not None]
    return variant, [substitute(s, settings) for s in states], specialized(variant.actions(), MAXIMUM)


@pytest.mark.parametrize("policy", list(POLICIES))
def test_claims_about_states_mean_the_same_to_z3(policy: str) -> None:
    _, states, _ = settled(policy)
    for picture in pictures(policy, 10):
        for term in states:
            holds = predicate(term)(*picture.state)
            assert picture.value(term) == holds, term
            assert picture.refutes(term) != holds, term


@pytest.mark.parametrize("policy", list(POLICIES))
def test_guards_and_effects_mean_the_same_to_z3(policy: str) -> None:
    _, states, actions = settled(policy)
    for picture in pictures(f"{policy} steps", 5):
        w, i = picture.w, picture.i
        for action in actions:
            stepper = Stepper(action)
            allowed = all(picture.value(g) for g in action.guards)
            assert allowed == bool(stepper.allows(*picture.state, w, i)), action.name
            later = stepper.takes(*picture.state, w, i)
            for effect in action.effects:
                records, variables = (later[0][w], WORKER_VARIABLES)
                if effect.variable.index == ITEM:
                    records, variables = (later[1][i], ITEM_VARIABLES)
                number = records[variables.index(effect.variable)]
                assert picture.value(effect.value) == picture.value(value(effect.variable, number)), effect
            for term in states[:: len(states) // 5]:
                kept = resolved(after(term), action.effects)
                assert picture.refutes(kept) != predicate(term)(*later), (action.name, term)


@pytest.mark.parametrize("policy", list(POLICIES))
def test_claims_about_steps_mean_the_same_to_z3(policy: str) -> None:
    variant, _, actions = settled(policy)
    compared = 0
    for picture in pictures(f"{policy} claims", 4):
        for action, part in itertools.product(actions, (p for q in PROMISES for p in q.parts)):
            goal = variant.obligation(part, action)
            if goal is None or goal is TRUE:
                continue
            goal = substitute(goal, MAXIMUM)
            holds = predicate(goal)(*picture.state, picture.w, picture.i)
            assert picture.refutes(goal) != holds, (action.name, part.text)
            compared += 1
    assert compared > 100


def test_a_count_is_truncated_at_zero() -> None:
    encoder = Encoder()
    n = parameter("n", NAT)
    asker = Asker(encoder, (), limit=1_000_000)
    asker.given(n - 2 != 0)
    asker.given(n < 3)
    assert asker.ask(()).outcome is Outcome.IMPOSSIBLE


def test_a_natural_number_is_never_negative() -> None:
    n = parameter("n", NAT)
    asker = Asker(Encoder(), (), limit=1_000_000)
    asker.given(n + 1 < 1)
    assert asker.ask(()).outcome is Outcome.IMPOSSIBLE


def test_no_item_is_not_an_item() -> None:
    asker = Asker(Encoder(), (I,), limit=1_000_000)
    asker.given(I == NO_ITEM)
    assert asker.ask(()).outcome is Outcome.IMPOSSIBLE


def test_items_that_are_compared_by_age_are_refused_not_dropped() -> None:
    with pytest.raises(Untreatable, match="no formula for 'lt' of Bool"):
        Encoder().formula(ITEMS[0] < ITEMS[1])


def test_a_witness_that_depends_on_others_is_refused_not_dropped() -> None:
    served = every(ITEM, lambda i: some(WORKER, lambda w: working_on[w] == i))
    with pytest.raises(Untreatable, match="a witness that depends on others"):
        instantiated(served, ALL)


def test_only_what_is_in_hand_matters_to_a_claim_about_what_is_in_hand() -> None:
    claim = every(ITEM, lambda i: negate(working_on[W] == i) | (token[W] <= issued[i]))
    expected = (working_on[W] == NO_ITEM) | (token[W] <= issued[working_on[W]])
    assert instantiated(claim, ALL) is expected
    assert encoded(NO_ITEM) == 0
