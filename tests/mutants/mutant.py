"""What a mutant is: a fault of the field, made small, and the promises that must notice it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import hypothesis
from attrs import frozen
from hypothesis import Phase
from twin_worker import TwinWorker

from peeklock.harness.adapter.interface import StoreAdapter, VirtualTime
from peeklock.harness.failure.failure import Failure
from peeklock.harness.store.check import RUNS_FOR_AN_EXAMPLE
from peeklock.harness.worker.schedule import Duty
from peeklock.harness.worker.worker_failure import WorkerFailure
from peeklock.spec.law.policy import Policy

SEEDS = range(10)
UNSHORTENED = tuple(phase for phase in hypothesis.settings().phases if phase is not Phase.shrink)
WORKERS_BUDGET = hypothesis.settings(phases=UNSHORTENED)
STORES_BUDGET = hypothesis.settings(
    WORKERS_BUDGET, max_examples=RUNS_FOR_AN_EXAMPLE * WORKERS_BUDGET.max_examples
)
"""As many runs as a check makes by default. Which promise is named is seen without shortening."""


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
class WorkerMutant:
    """A faulty worker."""

    slug: str
    fault: str
    """In one line."""
    link: str | None
    """The public report; None for another fault of the same kind that we thought of."""
    make: type[TwinWorker]
    named: frozenset[str]
    """The promises, or the duties of time, of which the failure must name at least one."""
    policy: str | Policy = "retry"
    """The policy that it says it keeps."""


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
    return StoreMutant(slug, _told(made), link, made, frozenset(promises.split()))


def done_by(
    slug: str, made: type[TwinWorker], link: str | None, named: str | Duty, policy: str | Policy = "retry"
) -> WorkerMutant:
    """The faulty worker of a class; its docstring tells the fault."""
    names = frozenset({named.name} if isinstance(named, Duty) else named.split())
    return WorkerMutant(slug, _told(made), link, made, names, policy)


def reported(slug: str, link: str | None) -> str:
    """The public report, as the page of faults shows it."""
    if link is None:
        return "another of its kind"
    return f"[{slug.removeprefix('run: ').removeprefix('race: ')}]({link})"


def named_by(failure: Failure) -> frozenset[str]:
    """The promises that a failure names, and the duty of time."""
    duty = failure.finding.duty if isinstance(failure, WorkerFailure) else None
    return frozenset(failure.promises) | ({duty.name} if duty else frozenset())


def _told(made: type) -> str:
    return " ".join((made.__doc__ or "").split("\n\n")[0].split())
