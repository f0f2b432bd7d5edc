"""What a mutant is: a fault of the field, made small, and the promises that must notice it."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from walking import VirtualStore


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
    """A recorded run of a worker that does what its policy does not allow, and the same run done right."""

    slug: str
    fault: str
    link: str | None
    policy: str
    records: tuple[str, ...]
    right: tuple[str, ...]
    """Lines of a trace file that conform."""
    wrong: tuple[str, ...]
    """Lines of which the last one must be rejected."""
    promises: frozenset[str]


def caught_by(slug: str, made: type[VirtualStore], link: str | None, promises: str) -> StoreMutant:
    """The faulty store of a class; its docstring's first paragraph tells the fault."""
    told = (made.__doc__ or "").split("\n\n")[0]
    return StoreMutant(slug, " ".join(told.split()), link, made, frozenset(promises.split()))
