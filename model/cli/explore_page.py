"""The page of ``peeklock explore``: one file that needs no network and works from ``file://``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from peeklock.cli.explore_data import as_data
from peeklock.cli.explore_life import life_svg
from peeklock.cli.explore_load import Run
from peeklock.harness.page import CONTENT_POLICY
from peeklock.harness.page_assets import STYLE
from peeklock.model.lives import moves
from peeklock.model.walks import Explorer

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
    return (files("peeklock.cli") / "assets" / name).read_text(encoding="utf-8")


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
    keys = "".join(f"<dt><kbd>{escape(k)}</kbd></dt><dd>{escape(text)}</dd>" for k, text in _KEYS)
    policy = escape(world.variant.policy.name)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">
<title>peeklock explore: {policy}</title>
<style>{STYLE}{asset("explore.css")}</style>
</head>
<body>
<main>
<header><h1>peeklock explore</h1><p class="setting">policy {policy}; {escape(str(world))}</p></header>
<nav aria-label="the walk">
<button id="restart" title="to the start (Home)" aria-label="to the start">⇤</button>
<button id="back" title="one step back (← or Backspace)">←<span class="word"> Back</span></button>
<span id="place"></span>
<button id="forward" title="one step forward (→)"><span class="word">Forward </span>→</button>
<button id="end" title="to the end of the walk (End)" aria-label="to the end">⇥</button>
<span class="more"><button id="open" title="open a walk (o)">Open</button>
<button id="text" title="the place as text (t)">Text</button>
<button id="help" title="keys (?)" aria-label="keys">?</button></span>
</nav>
<p id="said" class="hidden-text" aria-live="polite"></p>
<div class="runs" hidden><span>Runs:</span><span id="runs"></span></div>
<p id="note" role="status" hidden></p>
<div id="broken" role="status" hidden></div>
<div class="columns">
<div class="left">
<section class="next" aria-labelledby="h-next"><h2 id="h-next">What can happen next</h2><div id="next"></div></section>
<section class="lives" aria-labelledby="h-lives"><h2 id="h-lives">The life of each delivery</h2>
<div id="lives"></div></section>
</div>
<div class="right">
<section class="promises" aria-labelledby="h-promises"><h2 id="h-promises">Promises</h2>
<div id="promises"></div><div id="promise" hidden></div></section>
<section class="standing" aria-labelledby="h-now"><h2 id="h-now">Where things stand</h2><div id="standing"></div></section>
<section class="walk" aria-labelledby="h-walk"><h2 id="h-walk">How it came to this</h2><div id="walk"></div></section>
</div>
</div>
</main>
<input type="file" id="file" accept=".json,application/json" hidden aria-label="a walk">
<dialog id="keys" aria-label="keys"><h2>Keys</h2><dl>{keys}</dl>
<form method="dialog"><button>Close</button></form></dialog>
<dialog id="texts" aria-label="the place as text"><h2>The place as text</h2>
<textarea id="summary" readonly aria-label="the place as text"></textarea>
<form method="dialog" class="buttons"><button type="button" id="copy">Copy</button><button>Close</button>
<span id="copied" role="status"></span></form></dialog>
<template id="life">{life_svg(moves(world))}</template>
<script type="application/json" id="data">{told}</script>
<script>{"".join(asset(name) for name in SCRIPTS)}</script>
</body>
</html>
"""
