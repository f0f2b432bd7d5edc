"""Adapters that are wrong: each is told in one line, with the place and the remedy, and without a traceback of ours."""

from __future__ import annotations

import math
import sys
import traceback
from collections.abc import Callable
from typing import Any, ClassVar

import faulty_stores
import pytest
from faulty_stores import PlainStore
from hypothesis import settings

from peeklock.harness.adapter.wrapping import AdapterError, errors_of
from peeklock.harness.concurrent.check import check_store_by_processes, check_store_concurrently
from peeklock.harness.store.check import check_store
from peeklock.harness.worker.check import check_worker

SHARED = PlainStore()
FEW = settings(max_examples=50, database=None)


class _Without(PlainStore):
    renew = None  # type: ignore[assignment]


class _OtherSignature(PlainStore):
    def fetch(self) -> None:  # type: ignore[override]
        return None


class _OtherKind(PlainStore):
    def fetch(self, lock_timeout_ms: int) -> Any:
        return "i1"


class _NoCount(PlainStore):
    def fetch(self, lock_timeout_ms: int) -> Any:
        found = super().fetch(lock_timeout_ms)
        return None if found is None else faulty_stores.Delivery(found.item, found.token)


class _OwnError(PlainStore):
    def current(self, token: str) -> Any:
        raise LookupError("no such\nlock")


class _Exits(PlainStore):
    def ack(self, token: str, completion: str | None) -> None:
        sys.exit(3)


class _IsNotClosed(PlainStore):
    def close(self) -> None:
        raise OSError("busy")


class _SharesItsCompletions(PlainStore):
    ALL: ClassVar[list[tuple[str, str]]] = []

    def __init__(self) -> None:
        super().__init__()
        self.done = self.ALL


class _SharesItsRows(PlainStore):
    EVER: ClassVar[set[str]] = set()

    def enqueue(self, item: str, delay_ms: int) -> None:
        if item in self.EVER:
            raise LookupError(item)
        self.EVER.add(item)
        super().enqueue(item, delay_ms)


class _ReturnsWhetherItDid(PlainStore):
    def ack(self, token: str, completion: str | None) -> Any:
        try:
            super().ack(token, completion)
        except faulty_stores.PermanentError:
            return False


class _Awaited(PlainStore):
    async def fetch(self, lock_timeout_ms: int) -> Any:  # type: ignore[override]
        return super().fetch(lock_timeout_ms)


class _AwaitedAck(PlainStore):
    async def ack(self, token: str, completion: str | None) -> None:  # type: ignore[override]
        super().ack(token, completion)


async def made_later() -> PlainStore:
    return PlainStore()


class _NoToken(PlainStore):
    def new_token(self) -> str:
        return ""


def _raising(error: BaseException) -> type[PlainStore]:
    class Raises(PlainStore):
        def fetch(self, lock_timeout_ms: int) -> Any:
            raise error

    return Raises


@pytest.mark.parametrize(
    ("make_store", "words"),
    [
        (
            _Without,
            "_Without has no method renew; give it renew(token, extend_for_ms), or declare renew=False",
        ),
        (_OtherSignature, "_OtherSignature.fetch cannot be called as fetch(lock_timeout_ms)"),
        (
            _OtherKind,
            "_OtherKind.fetch returned 'i1'; it should return a peeklock.harness.adapter.interface.Delivery",
        ),
        (_NoCount, "attempt_count is None; it should be a whole number, or declare attempt_counts=False"),
        (_OwnError, "_OwnError.renew raised LookupError('no such lock') in test_wrong_adapters.py:"),
        (_Exits, "_Exits.ack raised SystemExit('3') in test_wrong_adapters.py:"),
        (
            _IsNotClosed,
            "at the end of a run: _IsNotClosed.close raised OSError('busy') in test_wrong_adapters.py:",
        ),
        (lambda: 1 / 0, "make_store raised ZeroDivisionError('division by zero') in test_wrong_adapters.py:"),
        (
            lambda: None,
            "make_store returned None; it should be a function that returns the adapter of a fresh,",
        ),
        (
            PlainStore(),
            "make_store is a PlainStore; it should be a function that returns the adapter of a fresh,",
        ),
        (lambda: SHARED, "make_store returned the same PlainStore again; is the store fresh and empty?"),
        (
            _SharesItsCompletions,
            "before the first step: completions returned ('i1', 'result of step 3'); make_store should make a fresh,",
        ),
        (
            _SharesItsRows,
            "step 1: _SharesItsRows.enqueue raised LookupError('i1') in test_wrong_adapters.py:",
        ),
        (_SharesItsRows, "permanent=…; is the store fresh and empty?"),
        (
            _ReturnsWhetherItDid,
            "_ReturnsWhetherItDid.ack returned False; it should return None where it is done",
        ),
        (
            _Awaited,
            "step 2: _Awaited.fetch returned a coroutine; it should be a plain function that runs it to",
        ),
        (_AwaitedAck, "_AwaitedAck.ack returned a coroutine; it should be a plain function that runs it to"),
        (made_later, "make_store returned a coroutine; it should be a plain function"),
        (_NoToken, "a Delivery whose token is ''; it should be a text that is not empty"),
        (_raising(KeyError("x")), "fetch raised KeyError('x') in test_wrong_adapters.py:"),
        (_raising(GeneratorExit()), "fetch raised GeneratorExit in test_wrong_adapters.py:"),
        (_raising(BaseException("odd")), "fetch raised BaseException('odd') in test_wrong_adapters.py:"),
        (5, "make_store is an int; it should be a function"),
    ],
)
def test_a_wrong_adapter_is_told_in_one_line_with_the_remedy(make_store: Any, words: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the words are checked below
        check_store(make_store, seed=1, settings=FEW)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "name BaseException in" not in str(caught.value)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [f.name for f in frames] == [
        "test_a_wrong_adapter_is_told_in_one_line_with_the_remedy",
        "check_store",
    ]
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None


def test_an_interrupt_passes_through_an_adapter() -> None:
    with pytest.raises(KeyboardInterrupt):
        check_store(_raising(KeyboardInterrupt()), seed=1, settings=FEW)


def test_an_exception_of_the_stores_own_counts_as_what_it_is_said_to_be() -> None:
    class Refuses(PlainStore):
        def current(self, token: str) -> Any:
            try:
                return super().current(token)
            except faulty_stores.PermanentError:
                raise LookupError from None

    assert check_store(Refuses, permanent=(LookupError,), settings=FEW, seed=1).coverage.complete


def test_a_call_that_does_not_return_is_ended() -> None:
    with pytest.raises(ValueError, match=r"Hangs\.renew did not return within 0\.3 s"):
        check_store(faulty_stores.Hangs, call_limit_s=0.3, settings=FEW, seed=1)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            {"permanent": "LockLost"},
            "permanent is 'LockLost'; it should be a class of exceptions, or several: ",
        ),
        (
            {"retryable": ("Busy",)},
            "retryable is ('Busy',); it should be a class of exceptions, or several: ",
        ),
        ({"permanent": LookupError()}, "permanent is LookupError(); it should be a class of exceptions"),
        ({"capabilities": "fifo"}, "capabilities is 'fifo'; it should be a Capabilities, such as "),
    ],
)
@pytest.mark.parametrize("check", [check_store, check_store_concurrently, check_store_by_processes])
def test_a_slip_in_what_is_said_of_a_store_is_told_in_one_line(
    check: Callable[..., object], said: dict[str, Any], words: str
) -> None:
    with pytest.raises(AdapterError) as caught:
        check(at_place if check is check_store_by_processes else PlainStore, **said)
    assert words in str(caught.value)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [f.name for f in frames][1:] == [check.__name__]


@pytest.mark.parametrize(
    ("check", "said", "words"),
    [
        (check, said, words)
        for said, words in (
            ({"seed": "a"}, "seed is 'a'; allowed: a whole number"),
            ({"artifacts": 3}, "artifacts is 3; allowed: the path of a folder"),
            ({"name": 3}, "name is 3; allowed: a text"),
        )
        for check in (check_store, check_worker, check_store_concurrently, check_store_by_processes)
    ]
    + [
        (check, said, words)
        for said, words in (
            ({"budget_s": "x"}, "budget_s is 'x'; allowed: seconds, 0 or more"),
            ({"budget_s": -1}, "budget_s is -1; allowed: seconds, 0 or more"),
            ({"settings": 3}, "settings is 3; allowed: hypothesis.settings(...)"),
        )
        for check in (check_store, check_worker)
    ]
    + [
        (check_worker, {"run_limit_s": math.inf}, "run_limit_s is inf; allowed: seconds, more than 0"),
        (check_store, {"call_limit_s": 0}, "call_limit_s is 0; allowed: seconds, more than 0"),
        (check_store_concurrently, {"threads": 1_000}, "threads is 1000; allowed: 2 to 64"),
        (check_store_by_processes, {"processes": 1}, "processes is 1; allowed: 2 to 64"),
        (check_store_by_processes, {"rounds": 0}, "rounds is 0; allowed: a whole number, 1 or more"),
    ],
)
def test_an_option_that_cannot_be_is_told_in_one_line(
    check: Callable[..., object], said: dict[str, Any], words: str
) -> None:
    with pytest.raises(AdapterError) as caught:
        check(at_place if check is check_store_by_processes else PlainStore, **said)
    assert str(caught.value) == words
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [f.name for f in frames][1:] == [check.__name__]


def at_place(place: str) -> PlainStore:
    """The store of another process."""
    return PlainStore()


def test_an_exception_of_the_stores_own_need_not_be_in_a_tuple() -> None:
    assert errors_of("permanent", LookupError) == (LookupError,)
    assert errors_of("permanent", [LookupError, OSError]) == (LookupError, OSError)
    with pytest.raises(AdapterError):
        errors_of("permanent", KeyboardInterrupt)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize(
    ("make_store", "words"),
    [
        (
            _Without,
            "_Without has no method renew; give it renew(token, extend_for_ms), or declare renew=False",
        ),
        (
            lambda: None,
            "make_store returned None; it should be a function that returns the adapter of a fresh, ",
        ),
        (PlainStore(), "make_store is a PlainStore; it should be a function"),
        (_OwnError, "raised LookupError('no such lock') in test_wrong_adapters.py:"),
    ],
)
def test_a_wrong_adapter_under_many_threads_is_told_in_the_same_line(make_store: Any, words: str) -> None:
    with pytest.raises(AdapterError) as caught:
        check_store_concurrently(make_store, threads=2, rounds=5)
    assert words in str(caught.value)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [f.name for f in frames][1:] == ["check_store_concurrently"]
