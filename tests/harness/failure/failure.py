"""One failed run as data: what was done, what was seen, which promise that breaks, and how to see it again."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from peeklock.harness.failure.asking import Asking, ask
from peeklock.harness.failure.excuses import End, Excuse
from peeklock.harness.failure.reproduction import source, trace_lines
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.monitor.world import Violation
from peeklock.harness.run.steps import Program
from peeklock.harness.run.store_driver import Run
from peeklock.spec.compose import PROMISES
from peeklock.spec.variants.capabilities import Capabilities

SENTENCES = {promise.id: promise.text for promise in PROMISES}


@frozen
class Failure:
    """A run in which a store does not keep its contract, made as short as it could be."""

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
    ends: tuple[End, ...] = ()
    """How the last step could have ended."""
    excuses: tuple[Excuse, ...] = ()
    """The capabilities with any one of which, declared, the run would conform."""
    makes: tuple[str, ...] = ()
    """Lines of Python that make what was checked and reproduce the run on it; none where nobody knows how."""
    asking: Asking = ask
    """What makes the calls of it, and knows its errors."""
    is_plain: bool = True
    """Nothing in the run can be left out; else the time for shortening it was over."""

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
        """A Python program that makes the same calls, and fails until the last is answered as is allowed."""
        run = Run(self.steps, self.observations, self.numbers, self.looks)
        sentences = self.sentences or (self.violation.reason,)
        return source(self.subject, run, self.capabilities, self.ends, sentences, self.makes, self.asking)

    def trace_lines(self) -> tuple[str, ...]:
        """The run as the lines of a trace file."""
        return tuple(trace_lines(self.subject, self.capabilities, self.observations, self.looks))


def importable(function: object) -> str | None:
    """``module:name`` of a function; None for one that cannot be imported, as it was made inside another."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module in (None, "__main__") or not isinstance(name, str) or not name.isidentifier():
        return None
    return f"{module}:{name}"


def making(function: object) -> tuple[str, ...]:
    """The lines of Python that reproduce a run on what this function makes; none where it cannot be imported."""
    module, _, name = (importable(function) or "").partition(":")
    if not name:
        return ()
    found = f"from {module} import {name}", "", f"reproduce({name}())"
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return found
    up = module.count(".") + (Path(file).name == "__init__.py")
    place = Path(file).resolve().parents[up]
    return (
        "# Where the module was when this was found.",
        f"sys.path.insert(0, {json.dumps(str(place))})",
        *found,
    )
