"""The page of ``peeklock explore``: one file that needs no network and works from ``file://``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from peeklock.cli.explore.data import as_data
from peeklock.cli.explore.life import life_svg
from peeklock.cli.explore.load import Run
from peeklock.harness.story.page import CONTENT_POLICY
from peeklock.harness.story.page_assets import STYLE
from peeklock.model.explore.lives import moves
from peeklock.model.explore.walks import Explorer

SCRIPTS = ("spec.js", "walk.js", "page.js")
"""In the order in which they build on each other."""

_KEYS = (
    ("1 2 3 …", "take the step with this number (Enter where a longer number begins with it)"),
    ("↑ ↓", "from choice to choice; Enter takes the one that is chosen"),
    ("← Backspace", "one step back"),
    ("→", "one step forward, where the walk or the run goes on"),
    ("Home End", "to the start; to the end of the walk"),
    ("t", "the place as text, to paste into a review"),
    ("o", "open a walk that was written by peeklock explore or explain --json"),
    ("p", "to the promises"),
    ("?", "this list"),
)


def asset(name: str) -> str:
    """A file that the page is made of."""
    return (files("peeklock.cli.explore") / "assets" / name).read_text(encoding="utf-8")


def as_page(explorer: Explorer, runs: Sequence[Run]) -> str:
    """The page for a world, with runs to follow."""
    world = explorer.world
    data: dict[str, Any] = {
        **as_data(world),
        "runs": [{"title": r.title, "note": r.note, "position": r.position} for r in runs],
    }
    # In a script element only these three could end it or begin something else.
    told = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    told = told.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return Template(asset("page.html")).substitute(
        content_policy=CONTENT_POLICY,
        policy=escape(world.variant.policy.name),
        world=escape(str(world)),
        style=STYLE + asset("explore.css"),
        keys="".join(f"<dt><kbd>{escape(k)}</kbd></dt><dd>{escape(text)}</dd>" for k, text in _KEYS),
        life=life_svg(moves(world)),
        data=told,
        script="".join(asset(name) for name in SCRIPTS),
    )
