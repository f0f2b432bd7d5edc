"""The schema of trace files says what the reader takes, in the specification's words."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from attrs import fields
from trace_schema import ROOT, SCHEMA, VALIDATORS, held

from peeklock.harness.linear.history import Outcome
from peeklock.harness.trace.calls import OF_BEGINNINGS, OF_ENDS
from peeklock.harness.trace.file import OF_A_STORE_ALONE, OF_HEADERS, RECORDS
from peeklock.harness.trace.observations import COMPLETIONS, OF_LOOKS, OF_STORE, OF_WORKERS
from peeklock.spec.notation.actions import Answer, Call, Event, Metric
from peeklock.spec.variants.capabilities import STANDARD, Capabilities

DEFINED: dict[str, Any] = SCHEMA["$defs"]


def values(kind: type[enum.Enum]) -> list[Any]:
    return [member.value for member in kind]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_words_are_those_of_the_specification() -> None:
    words: dict[str, type[enum.Enum]] = {"call": Call, "event": Event, "verdict": Metric, "answer": Answer}
    for name, kind in words.items():
        assert DEFINED[name]["enum"] == values(kind)
    assert DEFINED["return"]["properties"]["return"]["enum"] == values(Outcome)
    assert DEFINED["seen_of_workers"]["properties"]["completion"]["enum"] == list(COMPLETIONS)
    for name, records in (("header_of_workers", RECORDS), ("header_of_a_store", OF_A_STORE_ALONE)):
        assert tuple(DEFINED[name]["properties"]["records"]["items"]["enum"]) == records
    declared = DEFINED["capabilities"]["properties"]
    assert list(declared) == [f.name for f in fields(Capabilities)]
    for name, says in declared.items():
        default, kind = getattr(STANDARD, name), Capabilities.named(name)
        assert says["default"] == getattr(default, "value", default)
        if issubclass(kind, enum.Enum):
            assert says["enum"] == values(kind)
        else:
            assert says["type"] == "boolean"


def test_the_fields_are_those_that_the_reader_knows() -> None:
    known = {
        "seen_of_workers": OF_WORKERS,
        "seen_of_a_store": OF_STORE,
        "look": OF_LOOKS,
        "invoke": OF_BEGINNINGS,
        "return": OF_ENDS,
    }
    for name, names in known.items():
        assert set(DEFINED[name]["properties"]) == set(names), name
    headers = DEFINED["header_of_workers"]["properties"] | DEFINED["header_of_a_store"]["properties"]
    assert set(headers) == set(OF_HEADERS)


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "data").rglob("*.jsonl")), ids=lambda p: p.stem)
def test_the_runs_of_a_real_system_are_as_the_schema_says(path: Path) -> None:
    held(path)


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("header_of_workers", {"peeklock_trace": 2}),
        ("header_of_a_store", {"peeklock_trace": 1, "capabilities": {"order": "any"}}),
        ("header_of_a_store", {"peeklock_trace": 1, "capabilities": {}, "max_attempts": 1}),
        ("seen_of_workers", {"call": "steal", "item": "i1"}),
        ("seen_of_a_store", {"call": "ack", "token": "t1", "completion": "result"}),
        ("look", {"completions": [["i1"]]}),
        ("invoke", {"invoke": "fetch"}),
        ("return", {"id": 1, "return": "perhaps"}),
    ],
)
def test_the_schema_refuses_what_is_wrong(kind: str, line: dict[str, Any]) -> None:
    assert not VALIDATORS[kind].is_valid(line)
