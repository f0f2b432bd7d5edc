"""Nothing is shown that nobody runs: a fenced block is generated, or names the test that checks it, or
says why none does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen

from peeklock.cli.docs.docs import pages

ROOT = Path(__file__).parent.parent.parent
PAGES = (*pages(ROOT), "CHANGELOG.md", "proofs/assumptions.md")
TESTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in ROOT.glob("tests/**/test_*.py")
    if path != Path(__file__)
}


@frozen
class Block:
    """A fenced block that is not generated."""

    page: str
    line: int
    said: str
    """What the comment in the line above it says."""


def blocks(page: str, text: str) -> Iterator[Block]:
    text = f"\n{text}"  # so that a block in the first line has a line above it
    generated = re.compile(r"^<!-- generated: .*?^<!-- /generated -->$", re.MULTILINE | re.DOTALL)
    spans = [m.span() for m in generated.finditer(text)]
    for fence in re.finditer(r"^(.*)\n( *)```[^\n]*\n(?:.*\n)*?\2```$", text, re.MULTILINE):
        if not any(start < fence.end() < end for start, end in spans):
            comment = re.fullmatch(r"<!-- (.*) -->", fence[1].strip())
            yield Block(page, text.count("\n", 0, fence.end(1)) + 1, comment[1] if comment else "")


def trouble(block: Block) -> str:
    """What is wrong with a block; nothing when it is run, or when it says why it is not."""
    named = block.page.rpartition("/")[2]
    if re.fullmatch(r"not run: \S.*", block.said):
        return ""
    if run := re.fullmatch(r"checked by (tests/\S+\.py)", block.said):
        return "" if named in TESTS.get(run[1], "") else f"{run[1]} does not speak of {named}"
    if marker := re.fullmatch(r"(run as a test|transcript)(?:: (.+))?", block.said):
        wanted = (f"<!-- {block.said} -->", f'"{marker[2]}"')
        marked = [text for text in TESTS.values() if named in text and any(w in text for w in wanted)]
        return "" if marked else f"no test of {named} asks for {block.said!r}"
    return (
        "nobody runs it; write <!-- generated: … --> around it (see model/cli/docs/blocks.py), or "
        "<!-- checked by tests/….py --> or <!-- not run: why --> in the line above"
    )


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_run_or_says_why_not(page: str) -> None:
    found = blocks(page, (ROOT / page).read_text(encoding="utf-8"))
    assert [f"{b.page}:{b.line}: {why}" for b in found if (why := trouble(b))] == []


@pytest.mark.parametrize(
    ("comment", "says"),
    [
        ("", "nobody runs it"),
        ("<!-- not run: -->", "nobody runs it"),
        ("<!-- checked by tests/no_such.py -->", "tests/no_such.py does not speak of new.md"),
        ("<!-- checked by tests/docs/test_readme.py -->", "does not speak of new.md"),
        ("<!-- run as a test -->", "no test of new.md asks for 'run as a test'"),
    ],
)
def test_a_new_block_that_nobody_runs_is_found(comment: str, says: str) -> None:
    text = f"Text.\n{comment}\n```console\n$ peeklock check\nall is well\n```\n"
    (block,) = blocks("docs/new.md", text)
    assert block.line == 3
    assert says in trouble(block)


def test_a_generated_block_is_not_asked_for_more() -> None:
    text = "<!-- generated: run peeklock check -->\n```console\n$ peeklock check\n```\n<!-- /generated -->\n"
    assert list(blocks("docs/new.md", text)) == []
