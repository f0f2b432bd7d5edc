"""One failed run as data: what was done, what was seen, which promise that breaks, and how to see it again."""

from __future__ import annotations

from attrs import field, frozen

from peeklock.harness.observation import Observation
from peeklock.harness.steps import Program
from peeklock.harness.world import Violation
from peeklock.spec.capabilities import Capabilities
from peeklock.spec.protocol import PROMISES

SENTENCES = {promise.id: promise.text for promise in PROMISES}


@frozen
class Failure:
    """The shortest run that was found in which a store does not keep its contract."""

    subject: str
    capabilities: Capabilities
    steps: Program
    observations: tuple[Observation, ...]
    """All that was seen, the last of which cannot be explained."""
    violation: Violation
    seed: int | None
    runs: int
    seconds: float
    seen_at_repeat: tuple[Observation, ...] | None = field(default=None)
    """What was seen when the run was repeated, where that was something else."""

    @property
    def promises(self) -> tuple[str, ...]:
        """The promises that are broken, by their ids, the most telling first."""
        return self.violation.promises

    @property
    def sentences(self) -> tuple[str, ...]:
        """The same in words."""
        return tuple(f"{pid}: {SENTENCES[pid]}" for pid in self.promises)

    @property
    def deterministic(self) -> bool:
        """Did the repeated run go the same way?"""
        return self.seen_at_repeat is None
