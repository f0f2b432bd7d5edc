"""The page about stores: its adapter conforms, what it declares is taken, and its failure is printed as it shows."""

from __future__ import annotations

import inspect
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import page_queue
import pytest
from reference import ERRORS, Locked, memory_store
from shared_stores import sqlite_store_at

from peeklock.harness.failure.report import ContractViolation
from peeklock.harness.store.check import RUNS_FOR_AN_EXAMPLE, check_store
from peeklock.harness.store.generation import corners, interpreted
from peeklock.harness.worker.check import check_worker
from peeklock.harness.worker.corner_cases import corners as worker_corners
from peeklock.spec.law.policy import POLICIES
from peeklock.spec.notation.actions import ABANDONS, Call
from peeklock.spec.reading.timed_store import Fault
from peeklock.spec.variants.capabilities import STANDARD, Capabilities

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = (DOCS / "your-store.md").read_text(encoding="utf-8")


def block(name: str) -> str:
    """The fenced block that follows a marker."""
    found = re.search(rf"<!-- run as a test: {name} -->\n```\w+\n(.*?)```", PAGE, re.S)
    assert found, name
    return found[1]


def names(queue: type) -> dict[str, Any]:
    """What the page's programs define, over a queue."""
    defined: dict[str, Any] = {"__name__": "page", "Queue": queue}
    exec(block("the adapter") + block("the check"), defined)
    return defined


def test_the_adapter_of_the_page_is_about_twenty_lines_and_conforms() -> None:
    assert sum(bool(line.strip()) for line in block("the adapter").splitlines()) <= 28
    names(page_queue.Queue)["test_the_queue_keeps_its_contract"]()


def test_what_the_page_declares_is_taken() -> None:
    exec(block("what is declared"), names(page_queue.Queue))


def test_the_failure_is_printed_as_the_page_shows_it() -> None:
    with pytest.raises(ContractViolation) as caught:
        check_store(names(page_queue.ForgetfulQueue)["Adapter"], name="the queue", seed=1)
    printed = re.sub(r"^Found in run .*$", "Found in run …", str(caught.value), flags=re.M)
    assert block("the failure").strip() == printed.strip()


def test_the_checks_by_many_at_once_conform(monkeypatch: pytest.MonkeyPatch) -> None:
    (busy,), (refused,) = ERRORS["retryable"], ERRORS["permanent"]
    mine = SimpleNamespace(
        Busy=busy, Refused=refused, make_store=lambda: Locked(memory_store()), open_store=sqlite_store_at
    )
    monkeypatch.setitem(sys.modules, "my_store", mine)  # type: ignore[arg-type]
    defined: dict[str, Any] = {}
    exec(block("many at once"), defined)
    checks = [check for name, check in defined.items() if name.startswith("test_")]
    assert len(checks) == 2
    for check in checks:
        check()


@pytest.mark.parametrize(("check", "page"), [(check_store, "your-store"), (check_worker, "your-worker")])
def test_the_page_tells_every_option_with_its_default(check: Callable[..., object], page: str) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    table = re.search(r"^\| option \| default \| means \|\n\| --- \|.*\n((?:\|.*\n)+)", text, re.M)
    assert table
    told: dict[str, str] = {}
    for row in table[1].splitlines():
        names, default, _ = (cell.strip() for cell in row.strip("|").split("|", 2))
        told |= dict.fromkeys(re.findall(r"\w+", names), default)
    options = inspect.signature(check).parameters
    assert list(told) == list(options)
    for name, default in told.items():
        literal = re.fullmatch(r"`(.*)`", default)
        value = eval(literal[1], {"Capabilities": Capabilities}) if literal else None
        assert options[name].default == (value if default else inspect.Parameter.empty), name
        assert "five times" not in default or RUNS_FOR_AN_EXAMPLE == 5


def test_what_the_page_says_is_not_tried_is_not_generated() -> None:
    chance = random.Random(1)
    kinds = (None, *Call)
    drawn = [
        [
            (chance.choice(kinds), chance.randrange(8), chance.randrange(8), chance.randrange(8))
            for _ in range(40)
        ]
        for _ in range(100)
    ]
    tried = [*corners(STANDARD), *(interpreted(draws, STANDARD) for draws in drawn)]
    steps = [step for program in tried for step in program]

    def lengths(*calls: Call | None) -> str:
        found = sorted({str(s.ms) for s in steps if s.call in calls}, key=int)
        return " and ".join((", ".join(found[:-1]), found[-1]))

    enqueued = [[s.items for s in program if s.call is Call.ENQUEUE] for program in tried]
    waited_ms = max(s.ms for s in steps if s.call is None)
    failing = {s.call for s in steps if s.fault is not Fault.NONE}
    unfailing = " and ".join(c.value for c in Call if c not in failing)
    part = " ".join(PAGE.split("## What is not tried\n")[1].split("\n## ")[0].split())
    assert all(len(set(items)) == len(items) for items in enqueued)
    for said in (
        f"at most {max(map(len, enqueued))} items in one run",
        f"Locks of {lengths(Call.FETCH, Call.RENEW)} ms",
        f"delays of {lengths(Call.ENQUEUE, *ABANDONS)} ms",
        f"waits of {waited_ms} ms at most",
        f"Of the calls, {unfailing} are not made to fail",
    ):
        assert said in part


def test_the_pages_and_the_command_tell_about_how_many_runs_are_made_first() -> None:
    stores = round(len(list(corners(STANDARD))), -1)
    workers = {round(len(worker_corners(policy)), -2) for policy in POLICIES.values()}
    assert f"About {stores} short runs are made first" in PAGE
    assert workers == {100}
    assert "after about 100 that are made first" in (DOCS / "your-worker.md").read_text(encoding="utf-8")
    assert f"About {stores} short runs of a store are made first, and about 100 of a worker" in (
        DOCS / "wire-format.md"
    ).read_text(encoding="utf-8")
