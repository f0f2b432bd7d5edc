"""One failed run of a worker as data, in words, and as a program that shows it again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from attrs import evolve, field, fields, frozen

from peeklock.harness.failure.failure import Failure
from peeklock.harness.failure.report_text import WIDTH
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.monitor.world import Violation
from peeklock.harness.story.lanes import as_text
from peeklock.harness.story.story import Tale
from peeklock.harness.story.story_of_run import tell
from peeklock.harness.trace.observations import COMPLETIONS
from peeklock.harness.worker.play import Played
from peeklock.harness.worker.script import Script, as_source
from peeklock.harness.worker.worker_world import Finding, Setup
from peeklock.spec.law.policy import POLICIES, Policy

UNKNOWN = "run_worker = ...  # the function that was checked"
"""Stands in a program for a function that cannot be imported."""


@frozen(kw_only=True)
class WorkerFailure(Failure):
    """The shortest script that was found under which a worker does not keep the protocol."""

    setup: Setup
    script: Script
    finding: Finding
    importable: str | None = field(default=None)
    """``module:name`` of the function that was checked, where that can be imported."""

    @property
    def promises(self) -> tuple[str, ...]:
        """The promises that are broken, by their ids, the most telling first; none where a duty was not done."""
        return self.finding.promises

    def line(self) -> str:
        """The whole of it in one line."""
        policy, wrong = self.setup.policy.name, ", ".join(self.promises) or self.finding.reason
        return f"{self.subject} does not keep the protocol under the policy {policy}: {wrong}"

    def program(self) -> str:
        """A Python program of a few lines that plays the script again."""
        module, _, name = (self.importable or "").partition(":")
        given = f"from {module} import {name}" if name else UNKNOWN
        records = ["DeliveryPlan", "Fault", "ItemPlan", "Script"]
        options = [
            (f.name, getattr(self.setup, f.name))
            for f in fields(Setup)
            if f.name != "policy" and getattr(self.setup, f.name) != getattr(Setup(self.setup.policy), f.name)
        ]
        extra = "".join(f",\n    {option}={as_source(value, '    ')}" for option, value in options)
        lines = [
            f"# {self.finding}",
            "from peeklock.harness import replay_worker",
            f"from peeklock.harness.worker.script import {', '.join(records)}",
            given,
            "",
            f"SCRIPT = {as_source(self.script)}",
            f"replay_worker({name or 'run_worker'}, SCRIPT, {_policy(self.setup.policy)}{extra})",
        ]
        text = "\n".join(lines) + "\n"
        return "".join(_imports(text)) + text

    def trace_lines(self) -> tuple[str, ...]:
        """The run as the lines of a trace file of workers, all of which is recorded that the worker reports."""
        setup = self.setup
        records = ["clock", "answers", "stops", *["handlers"] * setup.handlers, *["counts"] * setup.counts]
        header = {
            "peeklock_trace": 1,
            "records": records,
            "max_attempts": setup.policy.max_attempts,
            "source": self.subject,
        }
        return (json.dumps(header), *(json.dumps(_fields(one)) for one in self.observations))


def _fields(one: Observation) -> dict[str, object]:
    kinds = {"call": one.call, "event": one.event, "counts": one.counts, "answer": one.answer}
    told = {name: None if value is None else value.value for name, value in kinds.items()}
    carried = [name for name, results in COMPLETIONS.items() if results == one.completions]
    fields = {
        "t_ms": one.at_ms,
        **told,
        "worker": one.worker,
        "item": one.item,
        "token": one.token,
        "attempt": one.attempt,
        "effect": one.effect,
        "completion": carried[0] if carried else None,
        "lasts_ms": one.lasts_ms,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _policy(policy: Policy) -> str:
    if POLICIES.get(policy.name) == policy:
        return as_source(policy.name)
    base = POLICIES[policy.stands_for or "retry"]
    changed = [f.name for f in fields(Policy) if getattr(policy, f.name) != getattr(base, f.name)]
    inner = ", ".join(f"{name}={as_source(getattr(policy, name))}" for name in changed)
    return f'evolve(POLICIES["{base.name}"], {inner})'


def _imports(text: str) -> list[str]:
    """What a program names besides scripts."""
    found = []
    if "evolve(" in text:
        found += ["from attrs import evolve\n", "from peeklock.spec.law.policy import *\n"]
    if "Capabilities(" in text:
        found.append("from peeklock.spec.variants.capabilities import *\n")
    if "Tolerances(" in text:
        found.append("from peeklock.harness.worker.schedule import Tolerances\n")
    return found


def failure_of(
    subject: str,
    run_worker: Callable[..., Any],
    setup: Setup,
    script: Script,
    played: Played,
    *,
    seed: int | None,
    runs: int,
    seconds: float,
    again: Played | None,
) -> WorkerFailure:
    """The failure that a run showed; ``again`` is the same script played once more, where that went otherwise."""
    finding = played.finding
    assert finding is not None
    violation = finding.violation or Violation(
        played.seen[-1], (), finding.allowed, str(finding), finding.promises
    )
    return WorkerFailure(
        subject=subject,
        capabilities=setup.capabilities,
        steps=(),
        observations=played.seen,
        violation=violation,
        seed=seed,
        runs=runs,
        seconds=seconds,
        seen_at_repeat=None if again is None else again.seen,
        setup=setup,
        script=script,
        finding=finding,
        importable=importable(run_worker),
    )


def importable(function: Callable[..., Any]) -> str | None:
    """Where a function can be imported from; None for one that was made inside another."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module is None or name is None or not name.isidentifier():
        return None
    return f"{module}:{name}"


def tale_of(failure: WorkerFailure) -> Tale:
    """The failure, told step by step."""
    finding = failure.finding
    notes = []
    if finding.duty is not None:
        source = f" (set by {finding.duty.source})" if finding.duty.source else ""
        notes.append(f"duty '{finding.duty.name}': {finding.duty.sentence}{source}")
    if not failure.deterministic:
        notes.append("The same script, played again, went otherwise: the worker is nondeterministic.")
    return tell(
        failure.observations,
        failure.setup.monitor,
        title=f"{failure.subject} does not keep the protocol under the policy {failure.setup.policy.name}",
        reason=finding.reason,
        allowed=finding.allowed,
        promises=failure.promises,
        then=finding.then,
        notes=notes,
    )


def told(failure: WorkerFailure, kept: tuple[str, ...] = ()) -> str:
    """The failure as it is printed."""
    parts = [as_text(tale_of(failure), WIDTH)]
    if failure.seen_at_repeat is not None:
        again = (f"{o.at_ms:>9} ms  {evolve(o, place='')}" for o in failure.seen_at_repeat)
        parts.append("\n".join(("What was seen when it was played again:", *again)))
    parts.append(
        "\n".join(("To play it again:", "", *(f"    {x}".rstrip() for x in failure.program().splitlines())))
    )
    seed = "" if failure.seed is None else f", seed {failure.seed}"
    parts.append(f"Found in run {failure.runs}, {failure.seconds:.1f} s{seed}.")
    parts.append("\n".join(kept))
    return "\n\n".join(part for part in parts if part)
