"""A failure as it is printed."""

from __future__ import annotations

from peeklock.harness.failure import Failure


def told(failure: Failure) -> str:
    """The report of a failure, for a reader who does not know the specification."""
    violation = failure.violation
    lines = [f"{failure.subject} does not keep its contract", *failure.sentences, ""]
    lines += [f"{n:>3}  {seen}" for n, seen in enumerate(failure.observations, 1)]
    lines += ["", f"the last answer cannot be explained: {violation.reason}"]
    lines += [f"allowed: {a}" for a in violation.allowed]
    return "\n".join(lines)
