"""``peeklock conform``: a store or a worker in any language, held against the specification over JSON lines."""

from __future__ import annotations

import argparse
import math
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import hypothesis
from attrs import evolve

from peeklock.cli.conform.show import Found, Outcome, in_json, making, runnable, show, write_all
from peeklock.cli.shared.errors import UsageError
from peeklock.cli.shared.options import variants_of
from peeklock.cli.shared.progress import Progress
from peeklock.harness.adapter.options import MOST_AT_ONCE
from peeklock.harness.adapter.program import BrokenProgram
from peeklock.harness.adapter.wrapping import AdapterError
from peeklock.harness.concurrent.check import check_programs
from peeklock.harness.failure.report import ContractViolation, Inconclusive, Report
from peeklock.harness.failure.report_text import tale_of, told_again
from peeklock.harness.store.check import check_store
from peeklock.harness.story.lanes import as_text
from peeklock.harness.wire.store import ProgramStore, StoreProgram
from peeklock.harness.wire.worker import WorkerProgram
from peeklock.harness.worker.check import check_worker
from peeklock.harness.worker.host import Host

STOP_S = 10.0
"""More than it takes to end a program that does not want to."""
LONGEST_RUN = 50
"""So many answers at their slowest may be in one run of a worker."""
MANNER = """The program speaks the wire format, which docs/wire-format.md tells: JSON lines on its standard input and
output. Exit code 0 when it conforms; 1 when it does not; 2 when nothing can be said, because the program cannot be
started, does not keep to the wire format, or too little was seen."""


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "conform",
        help=summary,
        description="Hold a program in any language against the specification.",
        epilog="example: peeklock conform store -- node tests/adapters/node/store.mjs",
    )
    roles = parser.add_subparsers(dest="role", metavar="ROLE", required=True, parser_class=type(parser))
    for role, runs, corners in (("store", 500, 90), ("worker", 100, 100)):
        one = roles.add_parser(
            role,
            help=f"the program is a {role}",
            usage="%(prog)s [options] -- CMD ...",
            description=MANNER,
            epilog=f"example: peeklock conform {role} --seed 1 -- node tests/adapters/node/{role}.mjs",
        )
        one.add_argument(
            "--seed", type=int, metavar="N", help="repeat the check that was made with this seed"
        )
        one.add_argument(
            "--examples",
            type=int,
            default=runs,
            metavar="N",
            help=f"how many runs to generate (default {runs}), after about {corners} short ones that are made first",
        )
        one.add_argument(
            "--timeout",
            type=float,
            default=10.0,
            metavar="S",
            help="seconds that the program may take for one line (default 10)",
        )
        one.add_argument(
            "--budget", type=float, default=60.0, metavar="S", help="seconds for all runs (default 60)"
        )
        if role == "store":
            one.add_argument(
                "--concurrently",
                type=int,
                metavar="N",
                help=f"start the program N times, 2 to {MOST_AT_ONCE}, on one store, and make calls that overlap",
            )
        if role == "worker":
            one.add_argument("--policy", default="retry", metavar="NAME|FILE.toml", help="default: retry")
        one.add_argument(
            "--artifacts", type=Path, metavar="DIR", help="write what was found to this directory"
        )
        one.add_argument("--json", action="store_true", help="for machines")
        one.add_argument("program", nargs=argparse.REMAINDER, metavar="-- CMD ...", help="the program")
        one.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check one program."""
    command = _checked(options)
    with _endable():
        try:
            return _conform(options, command)
        except (BrokenProgram, AdapterError) as error:
            raise UsageError(str(error)) from None


def _checked(options: argparse.Namespace) -> list[str]:
    """The program and its arguments; ``UsageError`` for options that cannot be."""
    command = options.program
    if command[:1] != ["--"] or not command[1:] or not command[1]:
        found = (
            "no program is given" if command in ([], ["--"], ["--", ""]) else f"no -- before {command[0]!r}"
        )
        raise UsageError(f"{found}; allowed: peeklock conform {options.role} [options] -- CMD ...")
    for name in ("timeout", "budget"):
        value = getattr(options, name)
        if not 0 < value < math.inf:
            raise UsageError(f"--{name} is {value:g}; allowed: more than 0")
    at_once = options.concurrently if options.role == "store" else None
    if at_once is not None and not 2 <= at_once <= MOST_AT_ONCE:
        raise UsageError(f"--concurrently is {at_once}; allowed: 2 to {MOST_AT_ONCE}")
    if options.examples < 1:
        raise UsageError(f"--examples is {options.examples}; allowed: 1 or more")
    if options.artifacts is not None:
        try:
            options.artifacts.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--artifacts {options.artifacts}: cannot be made: {error.strerror}") from None
    return list(command[1:])


@contextmanager
def _endable() -> Iterator[None]:
    """Whoever ends this process ends the program with it."""
    numbers = [signal.SIGTERM, signal.SIGHUP] if threading.current_thread() is threading.main_thread() else []
    before = {number: signal.signal(number, _interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _conform(options: argparse.Namespace, command: list[str]) -> int:
    check = _check_store if options.role == "store" else _check_worker
    if options.role == "store" and options.concurrently:
        check = _check_programs
    with Progress(f"conform {options.role}") as progress:
        try:
            report = check(options, command, progress)
        except Inconclusive as error:
            report = str(error)
    written = []
    if options.artifacts is not None and isinstance(report, Found):
        try:
            written = write_all(options.artifacts, report)
        except OSError as error:
            print(f"peeklock: could not write to {options.artifacts}: {error.strerror}", file=sys.stderr)
    show(options, report, written)
    if isinstance(report, Report):
        return 0
    return 1 if isinstance(report, Found) else 2


def _settings(options: argparse.Namespace) -> hypothesis.settings:
    return hypothesis.settings(max_examples=options.examples, database=None, derandomize=False)


def _check_store(options: argparse.Namespace, command: list[str], progress: Progress) -> Outcome:
    with StoreProgram(command, options.timeout) as program:

        def new_store() -> ProgramStore:
            progress.show(f"{program.runs:,} runs, {program.requests:,} requests")
            return program.new_store()

        try:
            return check_store(
                new_store,
                program.capabilities,
                settings=_settings(options),
                seed=options.seed,
                call_limit_s=options.timeout + STOP_S,
                budget_s=options.budget,
                name=program.name,
            )
        except ContractViolation as error:
            # The run that is told was made last.
            failure = evolve(error.failure, makes=making(tuple(command)))
            text = "\n\n".join((as_text(tale_of(failure, in_json)), "\n".join(told_again(failure))))
            return Found(tuple(command), failure, text.rstrip(), program.transcript)


def _check_programs(options: argparse.Namespace, command: list[str], progress: Progress) -> Outcome:
    try:
        return check_programs(
            command,
            options.concurrently,
            seconds=options.budget,
            rounds=options.examples,
            seed=options.seed or 0,
            call_limit_s=options.timeout,
            watch=lambda rounds, calls: progress.show(f"{rounds:,} rounds, {calls:,} calls"),
        )
    except ContractViolation as error:
        return Found(tuple(command), error.failure, as_text(tale_of(error.failure)).rstrip(), ())


def _check_worker(options: argparse.Namespace, command: list[str], progress: Progress) -> Outcome:
    policy = variants_of([options.policy])[0].policy
    with WorkerProgram(command, options.timeout) as program:

        def run_worker(host: Host) -> None:
            progress.show(f"{program.runs:,} runs, {program.requests:,} requests")
            program.run_worker(host)

        try:
            return check_worker(
                run_worker,
                policy,
                counts="counts" in program.reports,
                handlers="handlers" in program.reports,
                settings=_settings(options),
                seed=options.seed,
                run_limit_s=LONGEST_RUN * options.timeout,
                budget_s=options.budget,
                name=program.name,
            )
        except ContractViolation as error:
            text = runnable(str(error), tuple(command), " " * 4)
            return Found(tuple(command), error.failure, text, program.transcript)
