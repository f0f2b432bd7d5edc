"""What a check says: that the subject conforms, that it does not, or that nothing can be said."""

from __future__ import annotations

from attrs import field, frozen

from peeklock.harness.failure.coverage import Coverage
from peeklock.harness.failure.failure import Failure
from peeklock.spec.reading.wording import many


@frozen
class Report:
    """A check that was made, and found nothing."""

    subject: str
    kind: str
    """What was checked: a store or a worker."""
    runs: int
    calls: int
    seconds: float
    seed: int | None
    coverage: Coverage
    warnings: tuple[str, ...] = field(default=())
    overlapping: int | None = None
    """How many calls began while another was open; None where one is made at a time. The runs are rounds then."""

    def line(self) -> str:
        """The whole of it in one line."""
        run, beside = (
            ("run", "") if self.overlapping is None else ("round", f", {self.overlapping:,} at once")
        )
        return (
            f"{self.subject} conforms: {many(self.runs, run)}, {many(self.calls, 'call')}{beside}, "
            f"{self.seconds:.1f} s, "
            f"{len(self.coverage.reached)} of {len(self.coverage.reached) + len(self.coverage.never)} "
            f"{'steps' if self.kind == 'worker' else '(call, answer) pairs'} seen"
            + "".join(f"; {w}" for w in self.warnings)
        )

    def __str__(self) -> str:
        return "\n".join((self.line(), *self.coverage.lines()))


class ContractViolation(AssertionError):
    """The subject does not keep its contract. The message is the report, for a reader; ``failure`` is the data."""

    def __init__(self, failure: Failure, message: str) -> None:
        super().__init__(message)
        self.failure = failure


class Inconclusive(AssertionError):
    """Nothing can be said: too little was run, or too much of it failed. Never counted as conforming."""
