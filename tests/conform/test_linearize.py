"""The search for linearizations: histories known from elsewhere, and a brute-force search that must agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from peeklock.harness.linear.history import HistoryError, Invoke, Joiner, Operation, Outcome, Return, joined
from peeklock.harness.linear.linearize import Model, NotLinearizable, check

Event = Invoke | Return


class Register:
    """Reads, writes, and writes that need a value; a compare-and-set answers whether it took place."""

    initial = 0

    def step(self, state: int, operation: Operation) -> Iterable[int]:
        kind, *values = operation.what
        if kind == "write":
            return (values[0],)
        if kind == "read":
            return (state,) if operation.result in (None, state) else ()
        old, new = values
        swapped = state == old
        if operation.result not in (None, swapped):
            return ()
        return (new,) if swapped else (state,)


class ReadingRegister(Register):
    """The same, which says of its reads that they are such."""

    def reads(self, operation: Operation) -> bool:
        return operation.what[0] == "read" and operation.outcome is Outcome.OK


class Queue:
    """First in, first out."""

    initial: tuple[int, ...] = ()

    def step(self, state: tuple[int, ...], operation: Operation) -> Iterable[tuple[int, ...]]:
        if operation.what[0] == "put":
            return ((*state, operation.what[1]),)
        if not state:
            return ((),) if operation.result == "empty" else ()
        return (state[1:],) if operation.result == state[0] else ()


def call(key: str, *what: Any) -> Invoke:
    return Invoke(key, what)


def ok(key: str, result: Any = None) -> Return:
    return Return(key, Outcome.OK, result)


def info(key: str) -> Return:
    return Return(key, Outcome.INFO)


def test_a_read_may_see_a_write_that_is_still_open() -> None:
    history = [call("a", "write", 1), call("b", "read"), ok("b", 1), ok("a")]
    assert check(history, Register()) is None


def test_two_reads_during_a_write_may_see_old_and_then_new_but_not_new_and_then_old() -> None:
    start, first, second = call("a", "write", 1), call("b", "read"), call("c", "read")
    assert check([start, first, ok("b", 0), second, ok("c", 1), ok("a")], Register()) is None
    found = check([start, first, ok("b", 1), second, ok("c", 0), ok("a")], Register())
    assert found is not None
    assert found.operation.what == ("read",)
    assert found.operation.result == 0


def test_a_stale_read_after_a_write_is_found_with_what_was_possible_before_it() -> None:
    found = check(
        [call("a", "write", 1), ok("a"), call("b", "read"), call("c", "read"), ok("b", 0)], Register()
    )
    assert found is not None
    assert [c.state for c in found.before] == [1]
    assert [o.number for o in found.others] == [2]
    assert "no moment" in str(found)


def test_two_consumers_may_not_take_the_same_element() -> None:
    history = [call("p", "put", 1), ok("p"), call("a", "get"), call("b", "get"), ok("a", 1), ok("b", 1)]
    assert check(history, Queue()) is not None
    history[-1] = ok("b", "empty")
    assert check(history, Queue()) is None


def test_elements_come_out_in_order_unless_their_puts_overlap() -> None:
    gets = [call("c", "get"), ok("c", 2), call("d", "get"), ok("d", 1)]
    apart = [call("a", "put", 1), ok("a"), call("b", "put", 2), ok("b")]
    overlapping = [call("a", "put", 1), call("b", "put", 2), ok("a"), ok("b")]
    assert check([*apart, *gets], Queue()) is not None
    assert check([*overlapping, *gets], Queue()) is None


def test_an_operation_of_unknown_outcome_may_take_effect_late_or_never_but_only_once() -> None:
    lost = [call("a", "cas", 0, 1), info("a")]
    reads = [call("b", "read"), ok("b", 0), call("c", "read"), ok("c", 1)]
    again = [call("d", "write", 0), ok("d"), call("e", "read"), ok("e", 1)]
    assert check([*lost, *reads[:2]], Register()) is None
    assert check([*lost, *reads], Register()) is None
    assert check([*lost, *reads, *again], Register()) is not None


def test_an_operation_that_failed_did_not_happen() -> None:
    history = [call("a", "write", 1), Return("a", Outcome.FAIL), call("b", "read"), ok("b", 1)]
    assert check(history, Register()) is not None
    history[-1] = ok("b", 0)
    assert check(history, Register()) is None


def test_parts_are_judged_each_for_itself() -> None:
    def part(operation: Operation) -> Iterable[str]:
        return (operation.what[0],)

    class Keyed(Register):
        def step(self, state: int, operation: Operation) -> Iterable[int]:
            return super().step(state, Operation(0, operation.what[1:], operation.outcome, operation.result))

    history = [call("a", "x", "write", 1), ok("a"), call("b", "y", "read"), ok("b", 0)]
    assert check(history, Keyed(), part) is None
    assert check([*history, call("c", "x", "read"), ok("c", 0)], Keyed(), part) is not None


def test_the_look_ahead_holds_back_only_what_came_since_the_oldest_open_call() -> None:
    joiner = Joiner()
    assert list(joiner.add(call("a", "write", 1))) == []
    assert list(joiner.add(call("b", "write", 2))) == []
    assert list(joiner.add(ok("b"))) == []
    assert len(list(joiner.add(ok("a")))) == 4
    assert list(joiner.end()) == []


def test_a_history_that_cannot_be_is_refused() -> None:
    with pytest.raises(HistoryError, match="open already"):
        list(joined([call("a", "read"), call("a", "read")]))
    with pytest.raises(HistoryError, match="no call is open"):
        list(joined([ok("a")]))


# Brute force


MODELS: tuple[Any, ...] = (Register(), ReadingRegister(), Queue())
of_every_model = pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)


def brute_force(history: Sequence[Event], model: Model[Any]) -> bool:
    """Every order of the operations that happened, and of every choice of those of which nobody knows."""
    begins, ends, operations = {}, {}, {}
    place: dict[Any, int] = {}
    for at, event in enumerate(history):
        if isinstance(event, Invoke):
            place[event.key] = at
            begins[at], ends[at], operations[at] = at, len(history), Operation(at, event.what)
        elif event.outcome is Outcome.OK:
            number = place[event.key]
            ends[number] = at
            operations[number] = Operation(number, operations[number].what, Outcome.OK, event.result)
    certain = [n for n, o in operations.items() if o.outcome is Outcome.OK]
    open_ = [n for n, o in operations.items() if o.outcome is Outcome.INFO]
    for size in range(len(open_) + 1):
        for chosen in combinations(open_, size):
            for order in permutations((*certain, *chosen)):
                if any(ends[b] < begins[a] for k, a in enumerate(order) for b in order[k + 1 :]):
                    continue
                states = {model.initial}
                for number in order:
                    states = {after for state in states for after in model.step(state, operations[number])}
                if states:
                    return True
    return False


@st.composite
def histories(draw: st.DrawFn, queue: bool) -> list[Event]:
    value = st.integers(0, 2)
    if queue:
        kinds = st.one_of(st.tuples(st.just("put"), value), st.just(("get",)))
    else:
        kinds = st.one_of(
            st.just(("read",)), st.tuples(st.just("write"), value), st.tuples(st.just("cas"), value, value)
        )
    history: list[Event] = []
    running: dict[int, tuple[Any, ...]] = {}
    for key in range(draw(st.integers(1, 5))):
        while running and draw(st.booleans()):
            history.append(draw(_end(running)))
        running[key] = draw(kinds)
        history.append(Invoke(key, running[key]))
    while running:
        history.append(draw(_end(running)))
    return history


@st.composite
def _end(draw: st.DrawFn, running: dict[int, tuple[Any, ...]]) -> Return:
    key = draw(st.sampled_from(sorted(running)))
    kind = running.pop(key)[0]
    if kind not in ("get",) and draw(st.integers(0, 3)) == 0:
        return Return(key, Outcome.INFO)
    results: dict[str, st.SearchStrategy[Any]] = {
        "read": st.integers(0, 2),
        "cas": st.booleans(),
        "get": st.one_of(st.integers(0, 2), st.just("empty")),
    }
    return Return(key, Outcome.OK, draw(results.get(kind, st.none())))


@of_every_model
def test_the_search_agrees_with_brute_force(model: Model[Any]) -> None:
    @settings(max_examples=300, deadline=None, derandomize=True, database=None)
    @given(histories(isinstance(model, Queue)))
    def agree(history: list[Event]) -> None:
        assert (check(history, model) is None) == brute_force(history, model)

    agree()


@of_every_model
@pytest.mark.parametrize("verdict", [False, True])
def test_both_verdicts_occur_among_the_histories_compared(model: Model[Any], verdict: bool) -> None:
    quiet = settings(max_examples=300, derandomize=True, database=None)
    history = find(
        histories(isinstance(model, Queue)),
        lambda h: len(h) > 4 and (check(h, model) is None) is verdict,
        settings=quiet,
    )
    found = check(history, model)
    assert (found is None) is verdict
    assert found is None or isinstance(found, NotLinearizable)
