"""What the pages show is what comes out today: every generated block is made anew and compared."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from peeklock.cli.docs.docs import pages

ROOT = Path(__file__).parent.parent.parent
TEXTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in pages(ROOT)}
GENERATED = sorted((n for n in TEXTS if "<!-- generated: " in TEXTS[n]), key=lambda n: -len(TEXTS[n]))
"""The pages with generated blocks, the longest first: it is mostly the one that takes longest."""

Checked = subprocess.CompletedProcess[str]


def checked(page: str) -> Checked:
    command = [sys.executable, "-m", "peeklock.cli.main", "docs", "--check", page]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)


@pytest.fixture(scope="module")
def checks() -> Iterator[dict[str, Future[Checked]]]:
    """The check of each page; as many run at a time as there are processors."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {page: pool.submit(checked, page) for page in GENERATED}


@pytest.mark.parametrize("page", GENERATED)
def test_the_generated_blocks_of_a_page_are_fresh(page: str, checks: dict[str, Future[Checked]]) -> None:
    done = checks[page].result()
    assert done.returncode == 0, f"run `peeklock docs {page}`:\n{done.stdout}{done.stderr}"
