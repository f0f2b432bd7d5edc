"""Terms: data that cannot be mistaken for truth values, and simplifies only to what means the same."""

from __future__ import annotations

import itertools

import pytest

from peeklock.spec.compose import I, W, resolved
from peeklock.spec.law.state import Phase, Row, attempts, issued, phase, renewing, row, working_on
from peeklock.spec.notation.terms import (
    FALSE,
    ITEM,
    TRUE,
    WORKER,
    after,
    before,
    both,
    choose,
    either,
    equal,
    every,
    implies,
    negate,
    parameter,
    some,
    substitute,
)
from peeklock.spec.reading.evaluate import predicate

A, B = renewing[W], phase[W] == Phase.IDLE
WORKER_2 = parameter("v", WORKER)


def test_a_term_has_no_truth_value() -> None:
    """``and`` on terms would drop a condition without a word."""
    with pytest.raises(TypeError, match="no truth value"):
        assert A and B  # noqa: PT018  # the mistake itself
    with pytest.raises(TypeError, match="no truth value"):
        assert not A


def test_equal_terms_are_one_object() -> None:
    assert (A & B) is (renewing[W] & (phase[W] == Phase.IDLE))


def test_junctions_simplify() -> None:
    assert both() is TRUE
    assert either() is FALSE
    assert (A & True) is A
    assert (A & FALSE) is FALSE
    assert (A | ~A) is TRUE
    assert (A & A) is A
    assert ~~A is A
    assert implies(FALSE, A) is TRUE
    assert choose(A, B, B) is B


def test_different_members_are_never_equal() -> None:
    assert equal(phase[W], phase[W]) is TRUE
    one, other = phase[W] == Phase.IDLE, phase[W] == Phase.ACKING
    assert substitute(one, {phase[W]: Phase.ACKING}) is FALSE
    assert one is not other


def test_sorts_are_kept_apart() -> None:
    with pytest.raises(TypeError, match="indexed by Worker"):
        phase[I]
    with pytest.raises(TypeError, match="not a value of sort Phase"):
        assert (phase[W] == Row.READY) is not None
    with pytest.raises(TypeError, match="not a value of sort Nat"):
        attempts[W].becomes(-1)
    with pytest.raises(TypeError, match="only a variable can be assigned"):
        (attempts[W] + 1).becomes(2)


def test_bound_names_are_fresh() -> None:
    """An inner quantifier of the same sort cannot capture the outer one's name."""
    nested = every(WORKER, lambda a: some(WORKER, lambda b: (attempts[a] < attempts[b]) | renewing[a]))
    holds = predicate(nested)
    from peeklock.spec.reading.evaluate import PLACE, initial_state

    (worker, other), items = initial_state(2, 1)
    low = worker
    high = (*other[: PLACE[attempts]], 1, *other[PLACE[attempts] + 1 :])
    assert not holds((low, high), items)
    kept = (*high[: PLACE[renewing]], 1, *high[PLACE[renewing] + 1 :])
    assert holds((low, kept), items)


def test_after_is_what_a_step_writes() -> None:
    effects = (row[I].becomes(Row.LOCKED), issued[I].becomes(issued[I] + 1))
    assert resolved(after(row[I]) == Row.LOCKED, effects) is TRUE
    assert resolved(after(issued[I]) == issued[I] + 1, effects) is TRUE
    assert resolved(after(phase[W]) == phase[W], effects) is TRUE
    assert resolved(after(before(issued[I]) < issued[I]), effects) is (issued[I] < issued[I] + 1)


def test_after_of_another_index_stays_open() -> None:
    """A step about item i says nothing of item j until it is known whether they are the same."""
    j = parameter("j", ITEM)
    open_ = resolved(after(row[j]) == Row.LOCKED, (row[I].becomes(Row.LOCKED),))
    assert substitute(open_, {j: I}) is TRUE
    assert open_ is not TRUE


def test_what_cannot_be_less_is_false() -> None:
    assert (attempts[W] + 1 < 1) is FALSE
    assert (attempts[W] < 1) is not FALSE


def test_terms_read_like_what_they_say() -> None:
    text = str((phase[W] == Phase.ACKING) & (attempts[W] + 1 < 5) & (working_on[W] != I))
    assert text == "phase[w] = ACKING & attempts[w] + 1 < 5 & working_on[w] != i"


@pytest.mark.parametrize(("a", "b"), list(itertools.product((False, True), repeat=2)))
def test_negation_is_negation(a: bool, b: bool) -> None:
    def values(term: object) -> object:
        return substitute(term, {A: a, B: b})  # type: ignore[arg-type]

    assert values(negate(both(A, B))) is values(either(~A, ~B))
