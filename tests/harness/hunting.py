"""Looking for a run that fails, by Hypothesis: found, shortened, and found again.

What a run is and when it fails is the caller's affair. Nothing of Hypothesis is seen outside but its settings, its
profiles and its database of examples.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import Generic, TypeVar

import hypothesis
import hypothesis.core
from attrs import define, frozen
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.database import ExampleDatabase
from hypothesis.errors import Flaky
from hypothesis.strategies import SearchStrategy

P_ = TypeVar("P_")
R_ = TypeVar("R_")


@frozen
class Attempt(Generic[R_]):
    """What became of one run."""

    result: R_
    fails_as: str | None = None
    """The kind of its failure; a run is shortened to another that fails in the same way. None if it did not fail."""
    slow: bool = False
    """It took so long to fail that it should not be shortened."""


@frozen
class Hunted(Generic[R_]):
    """What was found, and how far the search came."""

    found: R_ | None
    runs: int
    """Runs made before the first failure, and it; all of them where none failed."""
    seconds: float
    seed: int | None
    """By which the search can be repeated; None where Hypothesis was told to choose by itself."""
    was_over: bool
    """The budget was over before all runs were made."""
    wavered: bool
    """The run that failed did not fail again."""


@define
class _Hunt(Generic[P_, R_]):
    attempt: Callable[[P_], Attempt[R_]]
    budget_s: float
    shrink_s: float
    began_s: float
    runs: int = 0
    latest: Attempt[R_] | None = None
    found_s: float | None = None
    was_over: bool = False

    def take(self, program: P_) -> None:
        """Make one run; raises what Hypothesis looks for, or what ends the search."""
        if self._is_over():
            raise _Over
        made = self.attempt(program)
        if self.found_s is None:
            self.runs += 1
        if made.fails_as is not None:
            self.found_s = time.monotonic() if self.found_s is None else self.found_s
            if made.slow:
                self.shrink_s = 0
            self.latest = made
            raise _kind(made.fails_as)

    def _is_over(self) -> bool:
        now_s = time.monotonic()
        if self.found_s is not None:
            return now_s > self.found_s + self.shrink_s
        if now_s <= self.began_s + self.budget_s:
            return False
        self.was_over = True
        return True


class _Over(BaseException):
    """Hypothesis has no way to stop a search but an exception that it does not take for the test's."""


class _Found(Exception):
    pass


@cache
def _kind(name: str) -> type[_Found]:
    """Hypothesis tells failures apart by their type."""
    return type(f"Found{name}", (_Found,), {})


def hunt(
    programs: SearchStrategy[P_],
    attempt: Callable[[P_], Attempt[R_]],
    *,
    key: str,
    settings: hypothesis.settings | None,
    seed: int | None,
    budget_s: float,
    shrink_s: float = 5.0,
) -> Hunted[R_]:
    """Make runs until one fails, and then the shortest that fails like it; at most as many as the settings say."""
    given_s = settings or hypothesis.settings()
    if seed is None and not given_s.derandomize and hypothesis.core.global_force_seed is None:
        seed = random.SystemRandom().getrandbits(32)
    state = _Hunt(attempt, budget_s, shrink_s, time.monotonic())

    def one(program: P_) -> None:
        state.take(program)

    search = hypothesis.settings(
        given_s,
        database=None if given_s.database is None else _Keyed(given_s.database, key),
        deadline=None,
        suppress_health_check=[check for check in HealthCheck if isinstance(check, HealthCheck)],
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
        phases=[p for p in given_s.phases if p is not Phase.explain],
    )(hypothesis.given(programs)(one))
    if seed is not None:
        search = hypothesis.seed(seed)(search)
    wavered = False
    try:
        search()
    except (_Found, _Over):
        pass
    except Flaky:
        wavered = True
    latest = state.latest
    return Hunted(
        None if latest is None else latest.result,
        state.runs,
        time.monotonic() - state.began_s,
        seed,
        state.was_over,
        wavered,
    )


class _Keyed(ExampleDatabase):
    """A database in which each check has examples of its own."""

    def __init__(self, inner: ExampleDatabase, name: str) -> None:
        super().__init__()
        self._inner, self._name = inner, name.encode()

    def _key(self, key: bytes) -> bytes:
        return hashlib.sha256(self._name + b"\0" + key).digest()

    def save(self, key: bytes, value: bytes) -> None:
        self._inner.save(self._key(key), value)

    def fetch(self, key: bytes) -> Iterable[bytes]:
        return self._inner.fetch(self._key(key))

    def delete(self, key: bytes, value: bytes) -> None:
        self._inner.delete(self._key(key), value)
