"""The trace that the demo writes of itself is explained by the specification, and says all that happened."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_schema import held

from peeklock.harness.trace.file import Kind, read
from peeklock.harness.trace.judge import judge
from peeklock.impl.demo import SCRIPTS, main
from peeklock.spec.law.policy import BEFORE, RETRY


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_trace_of_a_scene_conforms(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.jsonl"
    assert main([name, "--trace", str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"{name}:")
    held(path)
    header, entries = read(path)
    assert header.kind is Kind.WORKERS
    assert all((header.scope.clock, header.scope.counts, header.scope.stops, header.scope.answers))
    assert judge(header, entries, RETRY).conforms
    assert judge(*read(path), BEFORE).violation is not None, "with one attempt only, the second is too much"


def test_a_verdict_that_is_left_out_of_it_is_missed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    main(["retried", "--trace", str(path)])
    lines = path.read_text().splitlines()
    goes_on = '{"t_ms": 300, "worker": "worker", "call": "fetch", "answer": "nothing", "lasts_ms": 30000}'
    without = [line for line in lines if '"counts": ' not in line]
    for kept, conforms in ((lines, True), (without, False)):
        path.write_text("".join(f"{line}\n" for line in [*kept, goes_on]))
        assert judge(*read(path), RETRY).conforms is conforms


def test_a_file_that_cannot_be_written_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["retried", "--trace", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"{tmp_path}: cannot be written: Is a directory\n"
