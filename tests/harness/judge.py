"""Judging a recorded run: does the specification explain it, and which promises did it break?"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from peeklock.harness.observation import Observation
from peeklock.harness.strands import Strands
from peeklock.harness.tracefile import Header
from peeklock.harness.world import Violation
from peeklock.spec.faults import FAULTS
from peeklock.spec.policy import Policy
from peeklock.spec.protocol import Variant


@frozen
class Judgement:
    """What was found of a recorded run."""

    observations: int
    violation: Violation | None
    told_before: tuple[tuple[str, ...], ...]
    """The states before the violation, in words; a few of them."""
    broken: tuple[str, ...]
    """The promises that the run broke although the policy's rules explain it."""

    @property
    def conforms(self) -> bool:
        """Was the run explained to its end, and was there a run at all?"""
        return self.violation is None and self.observations > 0


def monitor_of(header: Header, policy: Policy) -> Strands:
    """The monitor that judges such a run, with all fault classes on."""
    if header.max_attempts is not None:
        policy = evolve(policy, max_attempts=header.max_attempts)
    return Strands(Variant(policy, frozenset(f.name for f in FAULTS)), header.scope)


def judge(header: Header, observations: Iterable[Observation], policy: Policy) -> Judgement:
    """Hold a run against the protocol under a policy, with all fault classes on."""
    monitor = monitor_of(header, policy)
    count = 0
    for count, seen in enumerate(observations, 1):
        try:
            monitor.observe(seen)
        except Violation as violation:
            return Judgement(count, violation, violation.told, ())
    return Judgement(count, None, (), monitor.broken())
