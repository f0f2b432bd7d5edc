"""A tale as Markdown, for a pull request, and as a Mermaid sequence diagram, which GitHub draws."""

from __future__ import annotations

import re

from peeklock.harness.story.story import ARROW, BEFORE, ORCHESTRATOR, TIME, Tale, TaleStep

_MARKUP = re.compile(r"([\\`*_{}\[\]<#|!~$&@]|^\s*>)", re.MULTILINE)
_STORE = "store"


def as_markdown(tale: Tale) -> str:
    """The tale as a table with what is wrong, and the sequence diagram behind it."""
    lines = [f"### {plain(tale.title)}", ""]
    lines += [f"- **{pid}**: {plain(sentence)}" for pid, sentence in tale.promises]
    lines += [""] if tale.promises else []
    lines += [plain(tale.setting), ""] if tale.setting else []
    lines += [steps_as_markdown(tale), ""]
    lines += [f"{'**✗** ' if k == 0 else ''}{plain(text)}  " for k, text in enumerate(tale.found)]
    if tale.allowed:
        lines += ["", plain(tale.allowed_heading), "", *(f"- {plain(text)}" for text in tale.allowed)]
    for number, state in enumerate(tale.before):
        lines += ["", BEFORE if number == 0 else "or:", "", *(f"- {plain(s)}" for s in state)]
    if tale.more_before:
        lines += ["", f"or one of {tale.more_before} more"]
    if tale.notes:
        lines += ["", *(f"{plain(note)}  " for note in tale.notes)]
    if tale.names:
        lines += ["", *(f"- {plain(new)} is {plain(old)}" for new, old in tale.names)]
    return "\n".join([*lines, "", "```mermaid", as_mermaid(tale), "```", ""])


def plain(text: str) -> str:
    """The text as it is, whatever Markdown, HTML or a mention would make of it."""
    return _MARKUP.sub(r"\\\1", text).replace("\n", " ")


def steps_as_markdown(tale: Tale) -> str:
    """The steps alone, as a table."""
    columns = [
        "",
        *(["ms"] if tale.has_times else []),
        "who",
        "does",
        "is told",
        "truth in the store",
        "the worker",
    ]
    lines = [f"| {' | '.join(columns)} |", "| ---: |" + " --- |" * (len(columns) - 1)]
    return "\n".join([*lines, *(_table_row(step, tale.has_times) for step in tale.steps)])


def _table_row(step: TaleStep, has_times: bool) -> str:
    number = "" if step.number is None else str(step.number)
    truth = [plain(text) for text in step.truth_told] + ([f"**✗ {plain(step.mark)}**"] if step.mark else [])
    told = [plain(step.answered)] if step.answered else []
    cells = [
        f"**✗ {number}**" if step.mark else number,
        *([str(step.at_ms) if step.at_ms is not None else ""] if has_times else []),
        plain(step.who),
        plain(step.does),
        "<br>".join([*told, *(f"**{plain(name)}**" for name in step.faults)]),
        "<br>".join(truth),
        "; ".join(plain(text) for text in step.belief),
    ]
    return f"| {' | '.join(cells)} |"


def as_mermaid(tale: Tale) -> str:
    """The tale as a ``sequenceDiagram``."""
    lines = ["sequenceDiagram"]
    names = {name: f"w{k}" for k, name in enumerate(tale.lanes)}
    if any(step.who == ORCHESTRATOR for step in tale.steps):
        names = {ORCHESTRATOR: "o", **names}
    lines += [f"    participant {short} as {_quoted(name)}" for name, short in names.items()]
    lines.append(f"    participant {_STORE}")
    for step in tale.steps:
        lines += [f"    {line}" for line in _messages(step, names)]
    return "\n".join(lines)


def _messages(step: TaleStep, names: dict[str, str]) -> list[str]:
    number = "" if step.number is None else f"{step.number} "
    lines = []
    who = names.get(step.who)
    if who is None:
        head = step.does if step.who in ("", TIME) else f"{step.who}: {step.does}"
        lines.append(f"Note over {_STORE}: {_quoted(number + head)}")
    elif step.is_call:
        lines.append(f"{who}->>{_STORE}: {_quoted(number + step.does)}")
        told = ", ! ".join([*([step.answered] if step.answered else []), *step.faults])
        if told:
            lost = "--x" if "lost" in step.note else "-->>"
            lines.append(f"{_STORE}{lost}{who}: {_quoted(told)}")
    else:
        lines.append(f"Note over {who}: {_quoted(number + step.does)}")
    lines += [f"Note over {_STORE}: {_quoted(text)}" for text in step.truth]
    if step.mark:
        lines.append(f"Note over {who or _STORE}: {_quoted(f'✗ {step.mark}')}")
    return lines


def _quoted(text: str) -> str:
    """The text with entity codes for what Mermaid would take as its own."""
    told = "".join(f"#{ord(c)};" if c in '#;<>{}"\\&%`$*_' else c for c in text)
    return told.replace("\n", " ").strip() or ARROW
