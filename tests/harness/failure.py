"""One failed run as data: what was done, what was seen, which promise that breaks, and how to see it again."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from peeklock.harness.observation import Observation
from peeklock.harness.reproduction import source, trace_lines
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
    numbers: tuple[int, ...] = ()
    """For each observation, the number of the step that it is of, from 1."""
    looks: Mapping[int, tuple[tuple[str, str], ...]] = field(factory=dict)
    """The completions that were there, as (item, completion), by how many observations came before."""
    made_by: str | None = None
    """``module:name`` of the function that makes what was checked, where it can be imported."""

    @property
    def promises(self) -> tuple[str, ...]:
        """The promises that are broken, by their ids, the most telling first."""
        return self.violation.promises

    @property
    def sentences(self) -> tuple[str, ...]:
        """The same in words."""
        return tuple(f"{pid}: {SENTENCES[pid]}" for pid in self.promises)

    def line(self) -> str:
        """The whole of it in one line."""
        return (
            f"{self.subject} does not keep its contract: {', '.join(self.promises) or self.violation.reason}"
        )

    @property
    def deterministic(self) -> bool:
        """Did the repeated run go the same way?"""
        return self.seen_at_repeat is None

    def program(self) -> str:
        """A Python program that makes the same calls, and fails as long as the same is answered."""
        return source(
            self.subject,
            self.made_by,
            self.capabilities,
            self.steps,
            self.numbers,
            self.observations,
            self.looks,
            self.violation,
            self.sentences,
        )

    def trace_lines(self) -> tuple[str, ...]:
        """The run as the lines of a trace file."""
        return tuple(trace_lines(self.subject, self.capabilities, self.observations, self.looks))


def importable(function: object) -> str | None:
    """``module:name`` of a function; None for one that cannot be imported, as it was made inside another."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module in (None, "__main__") or not isinstance(name, str) or not name.isidentifier():
        return None
    return f"{module}:{name}"
