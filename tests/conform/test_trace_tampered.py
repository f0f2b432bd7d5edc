"""A file that was tampered with is judged or refused, in one line, and never ends in a fault of the reader."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from trace_schema import ROOT, SCHEMA

from peeklock.harness.story.lanes import as_text
from peeklock.harness.trace.file import read
from peeklock.harness.trace.judge import judge
from peeklock.harness.trace.line import TraceError
from peeklock.harness.trace.story_of_trace import tale_of_trace
from peeklock.spec.law.policy import RETRY

RUNS = ROOT / "tests" / "data"
KEYS = sorted({name for kind in SCHEMA["$defs"].values() for name in kind.get("properties", ())})
WORDS = [word for kind in ("call", "event", "verdict", "answer") for word in SCHEMA["$defs"][kind]["enum"]]
VALUES: list[Any] = [
    None,
    True,
    False,
    -1,
    0,
    1,
    2,
    10**20,
    1.5,
    "",
    "i1",
    "t1",
    "t2",
    "info",
    "fail",
    *WORDS,
]
VALUES += [[], ["i1"], [["i1", "x"]], {}, {"order": "none"}, {"completion": "none"}, {"error_classes": False}]
ONE_CALL_AT_A_TIME = [
    {"peeklock_trace": 1, "records": ["clock"], "capabilities": {}},
    {"t_ms": 0, "call": "enqueue", "item": "i1", "answer": "ok", "lasts_ms": 0},
    {"t_ms": 0, "call": "fetch", "item": "i1", "token": "t1", "attempt": 1, "answer": "ok", "lasts_ms": 50},
    {"t_ms": 40, "until_ms": 60, "call": "ack", "token": "t1", "answer": "ok", "payload": "done"},
    {"completions": [["i1", "done"]], "t_ms": 70},
]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def tampered(chance: random.Random, lines: list[dict[str, Any]]) -> str:
    found = [dict(line) for line in lines]
    for _ in range(chance.randint(1, 3)):
        k, j = chance.randrange(len(found)), chance.randrange(len(found))
        match chance.randrange(6):
            case 0 | 1:
                found[k][chance.choice(list(found[k]) or KEYS)] = chance.choice(VALUES)
            case 2:
                found[k][chance.choice(KEYS)] = chance.choice(VALUES)
            case 3:
                found[k].pop(chance.choice([*found[k], ""]), None)
            case 4:
                found[k:k] = [dict(found[j])]
            case 5:
                del found[k : k + len(found) // 4]
    text = "".join(f"{json.dumps(line)}\n" for line in found)
    return text[: -chance.randint(1, 30)] if chance.random() < 0.1 else text


@pytest.mark.parametrize("name", ["calls/late-ack", "calls/timeout", "duroxide/abandonlock", "one at a time"])
def test_it_is_judged_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    chance = random.Random(name)
    lines = ONE_CALL_AT_A_TIME if name == "one at a time" else lines_of(RUNS / f"{name}.jsonl")
    path = tmp_path / "run.jsonl"
    found: Counter[bool] = Counter()
    refusals: list[str] = []
    for _ in range(250):
        path.write_text(tampered(chance, lines), encoding="utf-8")
        try:
            judgement = judge(*read(path), RETRY)
        except TraceError as error:
            refusals.append(str(error))
            continue
        if judgement.violation is not None:
            assert as_text(tale_of_trace(path, judgement, RETRY))
        found[judgement.conforms] += 1
    assert set(found) == {True, False}
    assert refusals
    assert all(said.startswith(f"{path}:") and "\n" not in said for said in refusals)
