"""What a mutant is: a fault of the field, made small, and the promises that must notice it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import hypothesis
from attrs import frozen
from hypothesis import Phase

from peeklock.harness.adapter import StoreAdapter, VirtualTime
from peeklock.harness.stores import RUNS_FOR_AN_EXAMPLE

SEEDS = range(10)
UNSHORTENED = tuple(phase for phase in hypothesis.settings().phases if phase is not Phase.shrink)
DEFAULT_BUDGET = hypothesis.settings(
    max_examples=RUNS_FOR_AN_EXAMPLE * hypothesis.settings().max_examples, phases=UNSHORTENED
)
"""As many runs as a check of a store makes by default. Which promise is named is seen without shortening."""


class VirtualStore(StoreAdapter, VirtualTime, Protocol):
    """A store on a clock of its own."""


@frozen
class StoreMutant:
    """A faulty store."""

    slug: str
    fault: str
    """In one line."""
    link: str | None
    """The public report; None for another fault of the same kind that we thought of."""
    make: Callable[[], VirtualStore]
    promises: frozenset[str]
    """The promises of which the violation must name at least one."""


@frozen
class RunMutant:
    """A recorded run up to the step at which a worker or a store does what it may not, and what it may do instead."""

    slug: str
    fault: str
    """In one line."""
    link: str | None
    begins: tuple[str, ...]
    """Lines of a trace file, the header included."""
    wrong: tuple[str, ...]
    """Lines that may not follow; the run is rejected at the last of them."""
    right: tuple[str, ...]
    """Lines that may follow instead."""
    policy: str
    promises: frozenset[str]
    """The promises that are broken; the violation must name at least one."""


def caught_by(slug: str, made: type[VirtualStore], link: str | None, promises: str) -> StoreMutant:
    """The faulty store of a class; its docstring's first paragraph tells the fault."""
    told = (made.__doc__ or "").split("\n\n")[0]
    return StoreMutant(slug, " ".join(told.split()), link, made, frozenset(promises.split()))
