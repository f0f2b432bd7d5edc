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
from typing import Any, Generic, TypeVar

import hypothesis
import hypothesis.core
from attrs import define, frozen
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.database import ExampleDatabase
from hypothesis.errors import Flaky
from hypothesis.strategies import SearchStrategy

P_ = TypeVar("P_")
R_ = TypeVar("R_")

NOT_OURS = (
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.too_slow,
    HealthCheck.nested_given,
)
"""What Hypothesis would say of how a test is written: this one is not the caller's."""


SHRINK_S = 5.0
"""How long Hypothesis may shorten a run that failed."""


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
    """By which the search can be repeated; None where Hypothesis chose by itself, or remembered a run."""
    was_over: bool
    """The budget was over before all runs were made."""
    wavered: bool
    """The run that failed did not fail again."""


@define
class _Hunt(Generic[P_, R_]):
    attempt: Callable[[P_], Attempt[R_]]
    budget_s: float
    began_s: float
    shrink_s: float = SHRINK_S
    runs: int = 0
    latest: Attempt[R_] | None = None
    found_s: float | None = None
    was_over: bool = False
    remembered: bool = False

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
    first: Iterable[P_] = (),
) -> Hunted[R_]:
    """Make runs until one fails, and then the shortest that fails like it; at most as many as the settings say.

    With a ``seed`` nothing is remembered from earlier searches. The ``first`` runs are made before those that are
    drawn, whatever the settings say; they are not shortened.
    """
    given = settings or hypothesis.settings()
    drawn = None
    if seed is None and not given.derandomize and hypothesis.core.global_force_seed is None:
        drawn = random.SystemRandom().getrandbits(32)
    state = _Hunt(attempt, budget_s, time.monotonic())

    def one(program: P_) -> None:
        state.take(program)

    database = None
    if given.database is not None and seed is None:
        database = _Keyed(given.database, key, state)
    search = hypothesis.given(programs)(one)
    if seed is not None or drawn is not None:
        search = hypothesis.seed(drawn if seed is None else seed)(search)
    # After the seed, which else takes the database away.
    search = hypothesis.settings(
        given,
        database=database,
        deadline=None,
        suppress_health_check=NOT_OURS,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
        phases=[p for p in given.phases if p is not Phase.explain],
    )(search)
    wavered = False
    try:
        for program in first:
            state.take(program)
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
        None if state.remembered else drawn if seed is None else seed,
        state.was_over,
        wavered,
    )


class _Keyed(ExampleDatabase):
    """A database in which each check has examples of its own."""

    def __init__(self, inner: ExampleDatabase, name: str, hunt: _Hunt[Any, Any]) -> None:
        super().__init__()
        self._inner, self._name, self._hunt = inner, name.encode(), hunt

    def _key(self, key: bytes) -> bytes:
        return hashlib.sha256(self._name + b"\0" + key).digest()

    def save(self, key: bytes, value: bytes) -> None:
        self._inner.save(self._key(key), value)

    def fetch(self, key: bytes) -> Iterable[bytes]:
        for value in self._inner.fetch(self._key(key)):
            self._hunt.remembered = True
            yield value

    def delete(self, key: bytes, value: bytes) -> None:
        self._inner.delete(self._key(key), value)
