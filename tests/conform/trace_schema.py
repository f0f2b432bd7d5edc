"""The schema of trace files, and what holds a file against it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

ROOT = Path(__file__).parent.parent.parent
SCHEMA = json.loads((ROOT / "docs" / "trace.schema.json").read_text(encoding="utf-8"))
VALIDATORS = {
    name: jsonschema.Draft202012Validator({"$defs": SCHEMA["$defs"], "$ref": f"#/$defs/{name}"})
    for name in (ref["$ref"].removeprefix("#/$defs/") for ref in SCHEMA["anyOf"])
}


def kind_of(line: dict[str, Any], of_a_store: bool) -> str:
    """Which of the schema's kinds of lines this has to be."""
    if "peeklock_trace" in line:
        return "header_of_a_store" if of_a_store else "header_of_workers"
    for word, kind in (("invoke", "invoke"), ("return", "return"), ("completions", "look")):
        if word in line:
            return kind
    return "seen_of_a_store" if of_a_store else "seen_of_workers"


def held(path: Path) -> None:
    """Every line of the file is as the schema says."""
    lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    assert len(lines) > 1
    for line in lines:
        kind = kind_of(line, "capabilities" in lines[0])
        assert VALIDATORS[kind].is_valid(line), f"{path.name}: {line} is no {kind}"


def written(folder: Path, *lines: str | dict[str, Any]) -> Path:
    """A trace file of these lines, which is held against the schema."""
    path = folder / "run.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    held(path)
    return path
