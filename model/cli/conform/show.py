"""How ``peeklock conform`` tells what it found, and what it leaves to keep."""

from __future__ import annotations

import argparse
import json
import os
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

from attrs import frozen

from peeklock.cli.shared.errors import UsageError
from peeklock.cli.shared.show import console, tell_tale
from peeklock.harness.failure.failure import Failure
from peeklock.harness.failure.report import Report
from peeklock.harness.failure.report_text import folder_of, tale_of, told_again, write
from peeklock.harness.worker.worker_failure import UNKNOWN, WorkerFailure
from peeklock.harness.worker.worker_failure import tale_of as worker_tale

in_json = attrgetter("in_json")
MOST_WIRE_LINES = 60
"""So many lines of what was said are shown; all of them are in the artifacts."""


@frozen
class Found:
    """A program that does not conform: why, and what was said on the way."""

    command: tuple[str, ...]
    failure: Failure
    text: str
    """The failure as it is printed."""
    wire: tuple[str, ...]
    """None where several programs were spoken to at once."""

    def files(self) -> dict[str, str]:
        """What is written beside the page and the trace, by name."""
        files = {"report.txt": f"{self.text}\n"}
        if not self.wire:
            return files
        files["wire.txt"] = "".join(f"{line}\n" for line in self.wire)
        if isinstance(self.failure, WorkerFailure):
            files["reproduce.py"] = runnable(self.failure.program(), self.command)
        return files


Outcome: TypeAlias = Report | Found | str
"""What came of a check; a text where nothing can be said."""


def making(command: tuple[str, ...]) -> tuple[str, ...]:
    """The lines of Python that reproduce a run on the store that this program is."""
    return (
        "from peeklock.harness.wire.store import StoreProgram",
        "",
        f"with StoreProgram({list(command)!r}, {_here()}) as program:",
        "    reproduce(program.new_store())",
    )


def runnable(text: str, command: tuple[str, ...], indent: str = "") -> str:
    """The program of a worker's failure, with what starts the worker."""
    lines = (
        "from peeklock.harness.wire.worker import WorkerProgram",
        "",
        f"run_worker = WorkerProgram({list(command)!r}, {_here()}).run_worker",
    )
    return text.replace(indent + UNKNOWN, "\n".join((indent + line).rstrip() for line in lines))


def _here() -> str:
    """A program may be named, or name files, as seen from where it was started."""
    return f"directory={os.getcwd()!r}"


def show(options: argparse.Namespace, outcome: Outcome, written: list[Path]) -> None:
    """Print what came of a check; ``UsageError`` where nothing can be said."""
    if options.json:
        print(json.dumps(_data(options, outcome, written), indent=2, ensure_ascii=False))
        return
    if isinstance(outcome, str):
        raise UsageError(outcome)
    if isinstance(outcome, Report):
        print(outcome)
        return
    if isinstance(outcome.failure, WorkerFailure):
        print(outcome.text)
    else:
        tell_tale(console(), tale_of(outcome.failure, in_json))
        which = "the same run"
        if not outcome.failure.deterministic:
            which = "these calls, made again,"
            print("\n" + "\n".join(told_again(outcome.failure)))
        if outcome.wire and not written:
            print(f"\n{which} in JSON lines (> to the program, < from it):\n")
            for line in outcome.wire[:MOST_WIRE_LINES]:
                print(f"  {line}")
            if len(outcome.wire) > MOST_WIRE_LINES:
                left = len(outcome.wire) - MOST_WIRE_LINES
                print(f"  … and {left} lines more: --artifacts DIR writes them all")
    if written:
        print("\n" + "\n".join(f"written to {path}" for path in written))


def write_all(directory: Path, found: Found) -> list[Path]:
    """Write all that is to be kept of a failure into a folder of its own; ``OSError`` where it cannot be written."""
    failure = found.failure
    tale = worker_tale(failure) if isinstance(failure, WorkerFailure) else tale_of(failure, in_json)
    paths = write(failure, tale, directory)
    folder = folder_of(found.failure, directory)
    for name, text in found.files().items():
        unfinished = folder / f"{name}.part"
        unfinished.write_text(text, encoding="utf-8", errors="backslashreplace")
        unfinished.replace(folder / name)
    return sorted({*paths, *(folder / name for name in found.files())})


def _data(options: argparse.Namespace, outcome: Outcome, written: list[Path]) -> dict[str, Any]:
    data: dict[str, Any] = {"role": options.role}
    if options.role == "worker":
        data["policy"] = options.policy
    if isinstance(outcome, str):
        return {**data, "verdict": "inconclusive", "reason": outcome}
    if isinstance(outcome, Report):
        coverage = outcome.coverage
        return {
            **data,
            "verdict": "conforms",
            "subject": outcome.subject,
            "runs": outcome.runs,
            "calls": outcome.calls,
            **({} if outcome.overlapping is None else {"overlapping": outcome.overlapping}),
            "seconds": round(outcome.seconds, 3),
            "seed": outcome.seed,
            "coverage": {
                "reached": dict(coverage.reached),
                "never": list(coverage.never),
                "left_out": dict(coverage.left_out),
            },
            "warnings": list(outcome.warnings),
        }
    failure = outcome.failure
    return {
        **data,
        "verdict": "violates",
        "subject": failure.subject,
        "runs": failure.runs,
        "seconds": round(failure.seconds, 3),
        "seed": failure.seed,
        "promises": dict(s.split(": ", 1) for s in failure.sentences),
        "seen": [str(o) for o in failure.observations],
        "reason": failure.violation.reason,
        "allowed": list(failure.violation.allowed),
        "deterministic": failure.deterministic,
        "seen_again": [str(o) for o in failure.seen_at_repeat or ()],
        "wire": list(outcome.wire),
        "written": [str(path) for path in written],
    }
