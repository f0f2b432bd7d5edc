"""The wire format is what its page and its schema say: both are held against each other and against real programs."""

from __future__ import annotations

import json
import re
import sys
from enum import Enum
from pathlib import Path
from typing import Any

import hypothesis
import jsonschema
import pytest
from attrs import fields

from peeklock.harness.adapter.program import Child
from peeklock.harness.store.check import check_store
from peeklock.harness.wire.store import StoreProgram
from peeklock.harness.wire.worker import REPORTS, WorkerProgram
from peeklock.harness.worker.check import check_worker
from peeklock.spec.variants.capabilities import STANDARD, Capabilities

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "wire-format.md").read_text(encoding="utf-8")
SCHEMA = json.loads((ROOT / "docs" / "wire.schema.json").read_text(encoding="utf-8"))
PROGRAMS = {
    role: [sys.executable, str(ROOT / "tests" / "adapters" / f"python_{role}.py")]
    for role in ("store", "worker")
}
FEW = hypothesis.settings(max_examples=40, database=None)


VALIDATORS = {
    kind: jsonschema.Draft202012Validator({"$defs": SCHEMA["$defs"], "$ref": f"#/$defs/{kind}"})
    for kind in ("to_store", "from_store", "to_worker", "from_worker")
}


def is_valid(kind: str, text: str) -> bool:
    return bool(VALIDATORS[kind].is_valid(json.loads(text)))


def held(lines: list[str], role: str) -> None:
    """Each line is one of its direction."""
    assert lines
    for line in lines:
        kind = f"to_{role}" if line.startswith("> ") else f"from_{role}"
        assert is_valid(kind, line[2:]), line


def section(heading: str) -> str:
    return re.split(r"^## ", PAGE.split(f"\n## {heading}\n")[1], flags=re.MULTILINE)[0]


def shown(text: str) -> list[str]:
    """The messages in a part of the page."""
    return re.findall(r"^[<>] \{.*\}$", text, re.MULTILINE)


def transcript(role: str) -> list[str]:
    found = re.search(rf"<!-- transcript: {role} -->\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1].splitlines()


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_message_of_the_page_is_in_the_schema() -> None:
    for role, heading in (("store", "A store"), ("worker", "A worker")):
        part = section(heading)
        held(shown(part), role)
        requests = re.findall(r"^\| `(\{.*?\})` \|", part, re.MULTILINE)
        kind = "to_store" if role == "store" else "from_worker"
        assert {json.loads(r)["call"] for r in requests} == calls(kind)
        for number, request in enumerate(requests, 1):
            assert is_valid(kind, request), request
            assert json.loads(request)["id"] == number
    handshakes = shown(section("The handshake"))
    held(handshakes[:2], "store")
    held(handshakes[2:], "worker")


def calls(kind: str) -> set[str]:
    """The calls that the schema has in one direction."""
    messages = [m.get("properties", {}) for m in SCHEMA["$defs"][kind]["oneOf"]]
    return {m["call"]["const"] for m in messages if "call" in m}


@pytest.mark.parametrize("role", PROGRAMS)
def test_the_transcript_of_the_page_is_what_the_program_says(role: str) -> None:
    with Child(PROGRAMS[role], 30.0) as child:
        for line in transcript(role):
            if line.startswith("> "):
                child.send(line[2:], line)
            else:
                assert json.loads(child.receive(line)) == json.loads(line[2:])


def test_what_is_said_in_a_check_is_in_the_schema() -> None:
    with StoreProgram(PROGRAMS["store"], 30.0) as store:
        seen: list[str] = []

        def new_store() -> Any:
            seen.extend(store.transcript)
            return store.new_store()

        check_store(new_store, store.capabilities, settings=FEW, seed=1)
    held(seen, "store")
    assert {json.loads(line[2:])["call"] for line in seen if line.startswith('> {"id')} >= calls("to_store")
    with WorkerProgram(PROGRAMS["worker"], 30.0) as worker:
        check_worker(worker.run_worker, settings=FEW, seed=1)
        held(list(worker.transcript), "worker")


def test_the_capabilities_are_those_of_the_specification() -> None:
    told = {
        name: re.findall(r"`(\S+?)`", values)
        for name, values in re.findall(r"^\| `(\w+)` \| (`.*?) \|", PAGE, re.MULTILINE)
        if not name.startswith("{")
    }
    schema = SCHEMA["$defs"]["capabilities"]["properties"]
    names = [f.name for f in fields(Capabilities)]
    assert list(told) == list(schema) == names
    for name in names:
        kind, default = Capabilities.named(name), getattr(STANDARD, name)
        values = [m.value for m in kind] if issubclass(kind, Enum) else [True, False]
        default = default.value if isinstance(default, Enum) else default
        assert schema[name]["default"] == default
        assert json.loads(told[name][0]) == default
        assert sorted(json.loads(v) for v in told[name]) == sorted(values)
        assert schema[name].get("enum", [True, False]) == values


def test_a_worker_may_report_what_the_schema_says() -> None:
    announcement = SCHEMA["$defs"]["from_worker"]["oneOf"][0]["properties"]
    assert tuple(announcement["reports"]["items"]["enum"]) == REPORTS


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("from_store", '{"id": 1}'),
        ("from_store", '{"id": 1, "ok": null, "error": "permanent"}'),
        ("from_store", '{"id": 1, "error": "fatal"}'),
        ("from_store", '{"id": 1, "ok": {"item": "i1"}}'),
        ("from_store", '{"peeklock": 2, "name": "x"}'),
        ("from_worker", '{"id": 1, "call": "ack", "token": "t1"}'),
        ("from_worker", '{"id": 1, "call": "sleep"}'),
        ("from_worker", '{"id": 0, "call": "fetch", "lock_timeout_ms": 1}'),
    ],
)
def test_the_schema_refuses_what_is_wrong(kind: str, text: str) -> None:
    assert not is_valid(kind, text)
