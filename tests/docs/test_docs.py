"""The documentation: links lead somewhere, commands exist, and policies do what is told of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from peeklock.cli import main
from peeklock.cli.docs.diagrams import phase_diagram, row_diagram
from peeklock.cli.docs.docs import checkout, renewed
from peeklock.cli.shared.commands import parser
from peeklock.cli.shared.errors import UsageError
from peeklock.model.search.world import World
from peeklock.spec.law.policy import POLICIES
from peeklock.spec.law.state import Phase, Row, phase, row
from peeklock.spec.reading.evaluate import State, Stepper
from peeklock.spec.reading.narrative import get
from peeklock.spec.variants.variant import Variant

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    *(ROOT / page for page in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "proofs/assumptions.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
POLICY_FILES = sorted((ROOT / "docs" / "policies").glob("*.toml"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def fences(text: str) -> Iterator[str]:
    """What stands in fenced blocks."""
    yield from (m[1] for m in re.finditer(r"^```[a-z]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def anchors(page: Path) -> set[str]:
    """The names under which the headings of a page can be linked to."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = page.parent / path if path else page
        assert there.exists(), f"{name(page)}: {target}"
        assert not anchor or anchor in anchors(there), f"{name(page)}: {target}"


def test_the_map_of_the_documentation_leads_to_every_page() -> None:
    page = ROOT / "docs" / "README.md"
    linked = {t.partition("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))}
    assert {p.name for p in page.parent.glob("*.md")} - {page.name} - linked == set(), (
        "add them to docs/README.md"
    )


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_that_are_shown_exist(page: Path) -> None:
    for block in fences(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            shown = re.fullmatch(r"\s*(?:\$ )?peeklock ([a-z][^|#]*)(?:[|#].*)?", line)
            if shown:
                words = shlex.split(shown[1])
                parser(words).parse_args(words)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_page_tells_where_or_how_fast_it_was_made(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert str(ROOT) not in text
    assert not re.search(r"/tmp/|/home/", text)
    assert not re.search(r"steps, depth \d+, \d", text)


def documented() -> dict[str, tuple[set[str], set[str], int]]:
    """What docs/what-if.md says of each policy file: what it breaks, what it mends, and the exit code."""
    text = (ROOT / "docs" / "what-if.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| \[[^\]]*\]\(#\S+\) \(\[file\]\(policies/(\S+)\)\) \|.*\| ([^|]*) \| ([^|]*) \| (\d) \|$",
        text,
        re.MULTILINE,
    )
    return {file: (_ids(breaks), _ids(mends), int(code)) for file, breaks, mends, code in rows}


def _ids(cell: str) -> set[str]:
    return set(re.findall(r"[SC]\d+", cell))


def test_every_policy_file_is_documented() -> None:
    assert set(documented()) == {p.name for p in POLICY_FILES}


@pytest.mark.parametrize("file", ["longer-grace", "no-cancellation-ack", "abandon-revives"])
def test_the_command_says_of_a_policy_file_what_the_table_says(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The table of all files is made anew in test_fresh.py; here is one file that changes no verdict, one that mends and
    # one that breaks.
    monkeypatch.chdir(ROOT)
    breaks, mends, expected = documented()[f"{file}.toml"]
    path = f"docs/policies/{file}.toml"
    code = main.run(["check", "--policy", path, "--items", "1", "--no-proof", "--no-causes"])
    differs = [line for line in capsys.readouterr().out.splitlines() if line.startswith("not as stated")]
    assert code == expected
    assert _ids("".join(differs)) == breaks | mends


def test_the_policies_that_the_pages_speak_of_break_what_they_say() -> None:
    found = {file.removesuffix(".toml"): breaks for file, (breaks, _, _) in documented().items()}
    assert "S7" in found["abandon-after-uncertain"]
    assert "S8" in found["believes-no-refusal"]
    assert "S9" in found["six-attempts"]
    assert "S10" in found["abandon-at-second-error"]
    assert documented()["no-cancellation-ack.toml"][1] == {"S12"}


# The generator


def test_a_stale_block_is_named_and_then_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "peeklock"\n')
    (tmp_path / "docs").mkdir()
    page = tmp_path / "README.md"
    page.write_text("before\n<!-- generated: rows -->\nold\n<!-- /generated -->\nafter\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "docs")
    assert main.run(["docs", "--check"]) == 1
    assert "stale: README.md: rows" in capsys.readouterr().out
    assert "old" in page.read_text(encoding="utf-8")
    assert main.run(["docs"]) == 0
    assert main.run(["docs", "--check"]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- generated: rows -->\n| name | means |")
    assert text.endswith("|\n<!-- /generated -->\nafter\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<!-- generated: rows -->\n", "is not closed"),
        ("\n<!-- /generated -->\n", "p.md:2: <!-- /generated --> without its other half"),
        ("<!-- generated: rows -->\n<!-- generated: rows -->\n<!-- /generated -->", "p.md:2: "),
    ],
)
def test_markers_come_in_pairs(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        renewed("p.md", text, lambda what: what)


@pytest.mark.parametrize(
    "what",
    [
        "rowz",
        "run ls",
        "source spec/law/store.py nothing_like_it",
        "file no/such.toml",
        "edit spec/law/store.py fetched x =>",
        "typed no-such-command",
    ],
)
def test_a_block_that_cannot_be_made_is_bad_input(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "peeklock"\n')
    (tmp_path / "README.md").write_text(f"<!-- generated: {what} -->\n<!-- /generated -->\n")
    for folder in ("spec", "model", "proofs", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    assert main.run(["docs", "--check"]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("peeklock: README.md:")
    assert errors.count("\n") == 1


def test_what_a_page_types_happens_in_a_copy_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "peeklock"\n')
    for folder in ("spec", "model", "proofs", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "docs").mkdir()
    text = "".join(
        f"<!-- generated: {what} -->\n<!-- /generated -->\n"
        for what in (
            'write mine.toml base = "retry"\\nack_attempts = 5',
            "typed grep attempts mine.toml",
            "edit spec/law/store.py abandoned is_current(i, t), =>",
            "typed git diff --shortstat",
        )
    )
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    (tmp_path / "docs" / "other.md").write_text(
        "<!-- generated: typed ls mine.toml || true -->\n<!-- /generated -->\n", encoding="utf-8"
    )
    store = (ROOT / "spec" / "law" / "store.py").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "somebody's"))
    assert main.run(["docs"]) == 0
    shown = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert '```toml\n# mine.toml\nbase = "retry"\nack_attempts = 5\n```' in shown
    assert "$ grep attempts mine.toml\nack_attempts = 5\n" in shown
    assert "-        is_current(i, t),\n" in shown
    assert "1 file changed, 1 deletion(-)" in shown
    assert "No such file" in (tmp_path / "docs" / "other.md").read_text(encoding="utf-8")
    assert not (tmp_path / "mine.toml").exists()
    assert not (tmp_path / "somebody's").exists()
    assert (ROOT / "spec" / "law" / "store.py").read_text(encoding="utf-8") == store
    capsys.readouterr()


def test_a_page_that_is_not_there_is_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main.run(["docs", "--check", "docs/no-such.md"]) == 2
    assert "unknown page 'docs/no-such.md'; allowed: README.md, docs/" in capsys.readouterr().err


def test_outside_a_checkout_there_is_nothing_to_do(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n')
    with pytest.raises(UsageError, match="not in a checkout"):
        checkout(tmp_path)
    assert checkout(ROOT / "docs") == ROOT


# The diagrams


def taken() -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """The moves of rows and of phases that happen in a small world, under one of the policies."""
    rows, phases = set(), set()
    for policy in POLICIES.values():
        world = World(Variant(policy), workers=1, items=1, deliveries=1)
        steppers = [Stepper(a) for a in world.actions]
        start: State = world.initial()
        seen, todo = {start}, [start]
        while todo:
            state = todo.pop()
            for stepper in steppers:
                for w, i in stepper.choices(state):
                    after = stepper.takes(*state, w, i)
                    rows.add((get(state[1][i], row), get(after[1][i], row)))
                    phases.add((get(state[0][w], phase), get(after[0][w], phase)))
                    if after not in seen:
                        seen.add(after)
                        todo.append(after)
    return {(a.name, b.name) for a, b in rows}, {(a.name, b.name) for a, b in phases}  # type: ignore[attr-defined]


def drawn(diagram: str, members: type[Row] | type[Phase]) -> set[tuple[str, str]]:
    known = {m.name for m in members}
    found = set(re.findall(r"^    (\w+) --> (\w+)", diagram, re.MULTILINE))
    assert {x for edge in found for x in edge} == known
    return found


def test_the_diagrams_show_the_moves_that_can_happen_and_no_others() -> None:
    rows, phases = taken()
    assert {e for e in rows if e[0] != e[1]} == drawn(row_diagram(), Row) - {("EXPIRED", "LOCKED")}
    to_idle = {(p.name, "IDLE") for p in Phase}  # a crash leads there from everywhere, and is not drawn
    poison_needs_more_deliveries = {("IDLE", "ACKING")}
    moved = {e for e in phases if e[0] != e[1]}
    assert moved - to_idle == drawn(phase_diagram(), Phase) - to_idle - poison_needs_more_deliveries
