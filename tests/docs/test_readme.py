"""The store of the README is checked as the README says, and so is its fault."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from peeklock.harness.failure.report import ContractViolation
from peeklock.spec.notation.actions import Call

README = Path(__file__).parent.parent.parent / "README.md"


def checked(change: tuple[str, str] = ("", "")) -> Callable[[], None]:
    """The README's own test, of its store with one text replaced by another."""
    found = re.search(
        r"<!-- run as a test -->\n```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S
    )
    assert found
    source = found[1].replace(*change) if change[0] else found[1]
    names: dict[str, Any] = {"__name__": "readme"}
    exec(source, names)
    test: Callable[[], None] = names["test_my_store"]
    return test


def test_the_store_of_the_readme_keeps_its_contract() -> None:
    checked()()


def test_its_planted_fault_is_found_in_three_calls_as_a_renewal_and_named() -> None:
    with pytest.raises(ContractViolation) as caught:
        checked(('row["until"] > self.now_ms', 'row["until"] >= self.now_ms'))()
    failure = caught.value.failure
    assert "S5" in failure.promises
    assert [seen.call for seen in failure.observations] == [Call.ENQUEUE, Call.FETCH, Call.RENEW]
    assert "i1's lock t1 has expired" in str(caught.value)
