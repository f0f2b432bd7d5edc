"""The page about stores: its adapter conforms, what it declares is taken, and its failure is printed as it shows."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import page_queue
import pytest
from reference import ERRORS, Locked, memory_store
from shared_stores import sqlite_store_at

from peeklock.harness.report import ContractViolation
from peeklock.harness.stores import check_store

PAGE = (Path(__file__).parent.parent.parent / "docs" / "your-store.md").read_text(encoding="utf-8")


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
