"""`peeklock vectors`: what it writes, what it says, and what it leaves alone; and what its page says."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from specified_store import SpecifiedStore

from peeklock.cli.main import run
from peeklock.harness.adapter.interface import PermanentError, RetryableError
from peeklock.harness.vectors.replay import read_vectors
from peeklock.model.vectors.files import file_name
from peeklock.spec.notation.actions import Call
from peeklock.spec.variants.capabilities import STANDARD, Capabilities, Expired, Order, Renewal

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = (DOCS / "vectors.md").read_text(encoding="utf-8")


def test_the_command_says_what_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "vectors"
    assert run(["vectors", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "123 vectors with 725 calls in 8 files" in out
    assert "359 of the 359 kinds of state that can be reached" in out
    assert run(["vectors", str(folder), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["vectors"], data["calls"], data["kinds"]) == (123, 725, {"reachable": 359, "shown": 359})
    assert sorted(p.name for p in folder.iterdir()) == data["files"]
    assert sum(entry["kinds"] for entry in data["coverage"]) == 359


@pytest.mark.parametrize(
    ("name", "text"),
    [("mine.toml", 'renew = false\norder = "none"\n'), ("mine.json", '{"renew": false, "order": "none"}')],
)
def test_the_command_takes_capabilities_and_removes_what_the_store_has_not(
    name: str, text: str, tmp_path: Path
) -> None:
    file, folder = tmp_path / name, tmp_path / "vectors"
    file.write_text(text, encoding="utf-8")
    assert run(["vectors", str(folder)]) == 0
    assert (folder / file_name(Call.RENEW)).exists()
    assert run(["vectors", str(folder), "--capabilities", str(file)]) == 0
    assert not (folder / file_name(Call.RENEW)).exists()
    assert {v.capabilities for v in read_vectors(folder)} == {Capabilities(renew=False, order=Order.NONE)}


@pytest.mark.parametrize("foreign", ["notes.txt", "store-ack.json"])
def test_a_folder_with_foreign_files_is_left_as_it_is(
    foreign: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / foreign).write_text("mine", encoding="utf-8")
    assert run(["vectors", str(tmp_path)]) == 2
    assert [p.name for p in tmp_path.iterdir()] == [foreign]
    told = capsys.readouterr().err
    assert f"holds {foreign}, which peeklock vectors did not write" in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("mine.toml", 'order = "lifo"', "order is 'lifo'; allowed: fifo, none"),
        ("mine.toml", "order =", "Invalid value"),
        ("mine.json", "[1]", "the capabilities are no table"),
        ("mine.json", '{"renew": 1}', "renew is 1; allowed: true, false"),
        ("mine.yaml", "renew: true", "allowed: FILE.toml, FILE.json"),
    ],
)
def test_wrong_capabilities_are_told_in_one_line_and_nothing_is_written(
    name: str, text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, folder = tmp_path / name, tmp_path / "vectors"
    file.write_text(text, encoding="utf-8")
    assert run(["vectors", str(folder), "--capabilities", str(file)]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert str(file) in err
    assert err.count("\n") == 1
    assert not folder.exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["vectors", str(tmp_path / "not" / "there")]) == 2
    assert "cannot be written to: No such file or directory" in capsys.readouterr().err


# The page


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_loop_of_the_page_takes_every_vector_and_finds_a_fault() -> None:
    (loop,) = [b for b in blocks("python") if "def replay" in b]
    assert len(loop.splitlines()) <= 60
    known: dict[str, Any] = {"Retryable": RetryableError, "Permanent": PermanentError}
    exec(loop, known)
    vectors = [
        vector
        for file in sorted((DOCS / "vectors").iterdir())
        for vector in json.loads(file.read_text(encoding="utf-8"))["vectors"]
    ]
    assert len(vectors) == 123
    for vector in vectors:
        known["replay"](vector, SpecifiedStore(STANDARD))
    for other in (Capabilities(renewal=Renewal.EXTENDS), Capabilities(ack_after_expiry=Expired.ACCEPTED)):
        failed = 0
        for vector in vectors:
            try:
                known["replay"](vector, SpecifiedStore(other))
            except AssertionError:
                failed += 1
        assert failed > 0


def test_the_program_of_the_page_takes_every_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = [b for b in blocks("python") if "read_vectors" in b]
    made = []

    def make_store() -> SpecifiedStore:
        made.append(SpecifiedStore(STANDARD))
        return made[-1]

    monkeypatch.chdir(DOCS.parent)
    exec(program, {"make_store": make_store})
    assert len(made) == 123


def test_the_page_quotes_what_there_is() -> None:
    assert "123 vectors with 725 calls, none with more than 12" in PAGE
    assert "359 kinds of state" in PAGE
    (quoted,) = blocks("json")
    there = json.loads((DOCS / "vectors" / "store-ack.json").read_text(encoding="utf-8"))["vectors"]
    assert json.loads(quoted) in there
    (toml,) = blocks("toml")
    assert Capabilities.declared(tomllib.loads(toml)) == Capabilities(renew=False, order=Order.NONE)
