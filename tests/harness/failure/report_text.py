"""A failure of a store as it is printed; and any failure as files to keep: a page, a program and a trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

from peeklock.harness.adapter import outcomes
from peeklock.harness.failure.concurrent_failure import ConcurrentFailure
from peeklock.harness.failure.excuses import Excuse
from peeklock.harness.failure.failure import Failure
from peeklock.harness.run.replay import parted_at
from peeklock.harness.run.store_judge import StoreJudge
from peeklock.harness.story.lanes import as_text
from peeklock.harness.story.page import as_html
from peeklock.harness.story.story import Tale
from peeklock.harness.story.story_of_run import tell
from peeklock.harness.trace.story_of_trace import tale_of_calls

Said: TypeAlias = Callable[[Excuse], str]
"""How a capability is written."""
in_python: Said = attrgetter("in_python")
WIDTH = 100


def tale_of(failure: Failure, said: Said = in_python) -> Tale:
    """The failure, told step by step."""
    if isinstance(failure, ConcurrentFailure):
        return _of_calls_at_once(failure)
    found = f"Found in run {failure.runs}, after {failure.seconds:.1f} s"
    notes = [f"{found}." if failure.seed is None else f"{found}; seed={failure.seed} finds it again."]
    excuses = " or ".join(said(one) for one in failure.excuses)
    if not failure.deterministic:
        notes = [
            f"{found}.",
            "The store is nondeterministic: the same calls, made again, were answered otherwise.",
        ]
    if not failure.is_plain:
        notes.append("There may be a shorter run: the time for shortening this one was over.")
    if excuses:
        notes.insert(0, f"This run would conform if the store declared {excuses}.")
    return tell(
        failure.observations,
        lambda: StoreJudge(
            failure.capabilities, failure.looks, (len(failure.observations), failure.violation)
        ),
        title=f"{failure.subject} does not keep its contract"
        + ("" if failure.deterministic else ", and is nondeterministic"),
        promises=failure.promises,
        reason=failure.violation.reason,
        allowed=failure.violation.allowed,
        notes=notes,
    )


def _of_calls_at_once(failure: ConcurrentFailure) -> Tale:
    seed = f"seed={failure.seed} makes such calls again; how they meet is chance."
    return tale_of_calls(
        failure.events,
        failure.capabilities,
        failure.violation,
        title=f"{failure.subject} does not keep its contract when it is called by {failure.workers} at once",
        notes=[f"Found in round {failure.runs}, after {failure.seconds:.1f} s; {seed}"],
    )


def told(failure: Failure, kept: tuple[str, ...] = ()) -> str:
    """The report of a failure, for a reader who does not know the specification."""
    parts = [as_text(tale_of(failure), WIDTH)]
    parts.append("\n".join(told_again(failure)))
    program = failure.program()
    if program:
        lines = "".join(f"    {line}".rstrip() + "\n" for line in program.splitlines())
        parts.append(f"To {'see it again' if failure.deterministic else 'make these calls'}:\n\n{lines}")
    parts.append("\n".join(kept))
    return "\n\n".join(part.rstrip() for part in parts if part)


def told_again(failure: Failure) -> Iterator[str]:
    """What was seen when the run was repeated, with the first answer that differs; nothing where none does."""
    if failure.seen_at_repeat is None:
        return
    first, again = failure.observations, failure.seen_at_repeat
    parted = parted_at(first, again)
    yield "The same calls, made again:"
    for n, one in enumerate(again):
        mark, was = " ", ""
        if n == parted:
            mark, was = "≠", f"   (before: {first[n]})" if n < len(first) else "   (before: nothing more)"
        yield f"{mark} {n + 1:>3}  {one}{was}"
    if parted is None or parted >= len(again):
        yield "≠      there it ended otherwise"


def kept(failure: Failure, tale: Tale, artifacts: Path | str | None) -> tuple[str, ...]:
    """Note that a check found this, and write its files; the lines that say where they are, or why there are none."""
    outcomes.note(failure.line())
    directory = artifacts or outcomes.artifacts()
    if directory is None:
        return ()
    try:
        return tuple(f"written to {path}" for path in write(failure, tale, Path(directory)))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return (f"could not write to {directory}: {reason}",)


def write(failure: Failure, tale: Tale, directory: Path) -> tuple[Path, ...]:
    """Write the files of a failure into a folder of its own in this directory, and return what was written."""
    folder = folder_of(failure, directory)
    folder.mkdir(parents=True, exist_ok=True)
    if not (directory / ".gitignore").exists():
        (directory / ".gitignore").write_text("*\n", encoding="utf-8")
    program, trace = failure.program(), "".join(f"{line}\n" for line in failure.trace_lines())
    beside = {name: text for name, text in (("reproduce.py", program), ("trace.jsonl", trace)) if text}
    texts = {"failure.html": as_html(tale, beside), **beside}
    for name, text in texts.items():
        unfinished = folder / f"{name}.part"
        unfinished.write_text(text, encoding="utf-8", errors="backslashreplace")
        unfinished.replace(folder / name)
    return tuple(folder / name for name in texts)


def folder_of(failure: Failure, directory: Path) -> Path:
    """The folder in this directory that is for the failures of this subject."""
    return directory / (re.sub(r"[^A-Za-z0-9_.-]+", "_", failure.subject)[-100:].lstrip(".") or "_")
