"""A tale as one page for a browser: it needs no network and no other file, and works from ``file://``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from peeklock.harness.story.page_assets import SCRIPT, STYLE
from peeklock.harness.story.story import BEFORE, TIME, Tale, TaleStep

CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""Nothing is loaded, whatever is in the tale."""


def as_html(tale: Tale, attachments: Mapping[str, str] | None = None) -> str:
    """The page; ``attachments`` are whole texts by their names, such as a program that repeats the run."""
    promises = "".join(
        f"<li><b>{escape(pid)}</b><span>{escape(text)}</span></li>" for pid, text in tale.promises
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in tale.notes)
    names = "".join(f"<dt>{escape(new)}</dt><dd>{escape(old)}</dd>" for new, old in tale.names)
    parts = (
        f"<h1>{escape(tale.title)}</h1>",
        f'<ul class="promises">{promises}</ul>' if promises else "",
        f'<p class="setting">{escape(tale.setting)}</p>' if tale.setting else "",
        _finding(tale),
        _table(tale),
        f'<div class="notes">{notes}</div>' if notes else "",
        f'<dl class="names">{names}</dl>' if names else "",
        *(
            f"<details><summary>{escape(name)}</summary><pre>{escape(text)}</pre></details>"
            for name, text in (attachments or {}).items()
        ),
    )
    body = "\n".join(part for part in parts if part)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">
<title>{escape(tale.title)}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
{body}
</main>
<div id="now" hidden><p aria-live="polite"></p>
<span class="keys"><kbd>j</kbd> <kbd>k</kbd> next and previous step</span></div>
<script>{SCRIPT}</script>
</body>
</html>
"""


def _finding(tale: Tale) -> str:
    if not tale.found:
        return ""
    allowed = ""
    if tale.allowed:
        allowed = f'<div class="allowed"><h2>{escape(tale.allowed_heading)}</h2><ul>{_listed(tale.allowed)}</ul></div>'
    states = "<p>or</p>".join(f"<ul>{_listed(state)}</ul>" for state in tale.before)
    if states:
        states += f"<p>or one of {tale.more_before} more</p>" if tale.more_before else ""
        states = f'<div class="states"><h2>{BEFORE}</h2>{states}</div>'
    what = "".join(f"<p>{escape(text)}</p>" for text in tale.found)
    return f'<section class="finding"><div class="what">{what}</div>{allowed}{states}</section>'


def _listed(texts: Iterable[str]) -> str:
    return "".join(f"<li>{escape(text)}</li>" for text in texts)


def _table(tale: Tale) -> str:
    lanes = (*tale.lanes, "store", "truth")
    heads = [
        '<th scope="col"></th>',
        *(['<th scope="col" class="ms">ms</th>'] if tale.has_times else []),
        *(f'<th scope="col" class="lane">{escape(lane)}</th>' for lane in lanes),
    ]
    rows = "\n".join(_row(step, tale) for step in tale.steps)
    return f"<table>\n<thead><tr>{''.join(heads)}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"


def _row(step: TaleStep, tale: Tale) -> str:
    lanes = dict.fromkeys(tale.lanes, "")
    belief = "".join(f'<p class="belief">it {escape(text)}</p>' for text in step.belief)
    store = ""
    if step.who in lanes:
        lanes[step.who] = f"<p>{escape(step.does)}</p>{belief}"
    elif step.number is None and step.who in ("", TIME):
        store = f"<p>{escape(step.does)}</p>"
    else:
        store = f"<p>{escape(step.who)}: {escape(step.does)}</p>"
    if step.answer:
        note = f' <span class="note">({escape(step.note)})</span>' if step.note else ""
        store += f'<p class="answer">{escape(step.answer)}{note}</p>'
    elif step.note:
        store += f'<p class="note">{escape(step.note)}</p>'
    store += "".join(f'<p><span class="fault">{escape(name)}</span></p>' for name in step.faults)
    truth = "".join(f"<p>{escape(text)}</p>" for text in step.truth_told)
    truth += f'<p class="mark">✗ {escape(step.mark)}</p>' if step.mark else ""
    kind = "wrong" if step.mark else "between" if step.number is None else "step"
    number = "" if step.number is None else f"{'✗ ' if step.mark else ''}{step.number}"
    cells = [
        f'<td class="number">{number}</td>',
        *([f'<td class="ms">{"" if step.at_ms is None else step.at_ms}</td>'] if tale.has_times else []),
        *(f'<td class="lane does" data-lane="{escape(name)}">{cell}</td>' for name, cell in lanes.items()),
        f'<td class="lane store" data-lane="store">{store}</td>',
        f'<td class="lane truth" data-lane="truth">{truth}</td>',
    ]
    said = "; ".join([f"{'' if step.number is None else f'{step.number}. '}{step.sentence}", *step.truth])
    return f'<tr class="{kind}" tabindex="-1" data-sentence="{escape(said)}">{"".join(cells)}</tr>'
