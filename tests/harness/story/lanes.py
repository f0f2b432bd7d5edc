"""A tale for a terminal or a log: one lane for each worker, one for the store, and what is true in it.

Colour is the only difference between a terminal and a file. Where lanes do not fit side by side, the steps stand one
below the other.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from attrs import frozen

from peeklock.harness.story.story import ARROW, BEFORE, ORCHESTRATOR, TIME, Tale, TaleStep

NARROWEST_LANE = 17
"""With fewer columns for each lane, the steps stand one below the other."""
_GAP = "  "
_BOLD, _DIM, _RED, _YELLOW, _GREEN = "1", "2", "1;31", "33", "32"


@frozen
class Piece:
    """Some words of one style; the style is that of the terminal's escape codes, or empty."""

    text: str
    style: str = ""


def as_text(tale: Tale, width: int = 100, colour: bool = False) -> str:
    """The whole tale, as lines of at most so many columns; ``colour`` adds escape codes, and nothing else."""
    lines = [*_heading(tale, width), "", *_steps(tale, width), *_ending(tale, width)]
    if tale.names:
        lines += [
            "",
            *(line for new, old in tale.names for line in _filled(Piece(f"{new} is {old}", _DIM), width)),
        ]
    return "\n".join(_drawn(line, colour) for line in lines)


def steps_as_text(tale: Tale, width: int = 100, colour: bool = False) -> str:
    """The steps alone."""
    return "\n".join(_drawn(line, colour) for line in _steps(tale, width))


def _drawn(line: Sequence[Piece] | str, colour: bool) -> str:
    if isinstance(line, str):
        return line
    told = list(line)
    while told and not told[-1].text.strip():
        told.pop()
    if told:
        told[-1] = Piece(told[-1].text.rstrip(), told[-1].style)
    return "".join(
        f"\x1b[{p.style}m{p.text}\x1b[0m" if colour and p.style and p.text else p.text for p in told
    )


# The heading and the ending


def _heading(tale: Tale, width: int) -> Iterator[Sequence[Piece]]:
    yield from _filled(Piece(tale.title, _BOLD), width)
    for pid, sentence in tale.promises:
        yield from _filled(Piece(sentence), width, (Piece(f"  {pid:4}", _BOLD),))
    if tale.setting:
        yield from _filled(Piece(tale.setting, _DIM), width)


def _ending(tale: Tale, width: int) -> Iterator[Sequence[Piece] | str]:
    if tale.found:
        yield ""
    for number, sentence in enumerate(tale.found):
        yield from _filled(
            Piece(sentence, _RED if number == 0 else ""), width, (Piece("✗ " if number == 0 else "  ", _RED),)
        )
    if tale.allowed:
        yield from _filled(Piece(tale.allowed_heading), width, (Piece("  "),))
        for text in tale.allowed:
            yield from _filled(Piece(text, _GREEN), width, (Piece("    "),))
    for number, state in enumerate(tale.before):
        word = BEFORE if number == 0 else "or:"
        yield from _filled(Piece(word), width, (Piece("  "),))
        for sentence in state:
            yield from _filled(Piece(sentence), width, (Piece("    "),))
    if tale.more_before:
        yield from _filled(Piece(f"or one of {tale.more_before} more"), width, (Piece("  "),))
    for note in tale.notes:
        yield from _filled(Piece(note), width)


# The steps


def _steps(tale: Tale, width: int) -> Iterator[Sequence[Piece]]:
    rows = [_cells(step, tale) for step in tale.steps]
    headings = [
        Piece(name, _BOLD)
        for name in ("", *(["   ms"] if tale.has_times else []), *tale.lanes, "store", "truth")
    ]
    widths = _widths(headings, rows, width)
    if min(widths) < 0:
        for step in tale.steps:
            yield from _stacked(step, width)
        return
    yield from _row([[h] for h in headings], widths)
    yield [Piece("─" * (sum(widths) + len(_GAP) * (len(widths) - 1)), _DIM)]
    for cells in rows:
        yield from _row(cells, widths)


def _answer(step: TaleStep) -> str:
    return f"{ARROW} {step.answered}" if step.answer else step.answered


def _number(step: TaleStep) -> Piece:
    if step.number is None:
        return Piece("   ")
    return Piece(f"{'✗' if step.mark else ' '}{step.number:2}", _RED if step.mark else "")


def _cells(step: TaleStep, tale: Tale) -> list[list[Piece]]:
    """What stands in each column of a step, one piece below the other."""
    lanes: dict[str, list[Piece]] = {name: [] for name in (*tale.lanes, "store", "truth")}
    if step.who in lanes:
        lanes[step.who] = [Piece(step.does), *(Piece(f"it {text}", _DIM) for text in step.belief)]
    elif step.who == TIME and step.number is None:
        lanes["store"] = [Piece(step.does, _DIM)]
    else:
        lanes["store"] = [Piece(f"{step.who}: {step.does}" if step.who else step.does)]
    if step.answered:
        lanes["store"].append(Piece(_answer(step), _RED if step.mark and not step.truth else ""))
    lanes["store"] += [Piece(f"! {name}", _YELLOW) for name in step.faults]
    lanes["truth"] = [Piece(f"{text};") for text in step.truth_told[:-1]] + [
        Piece(text) for text in step.truth_told[-1:]
    ]
    if step.mark:
        lanes["truth"].append(Piece(f"✗ {step.mark}", _RED))
    times = [[Piece("" if step.at_ms is None else f"{step.at_ms:5}", _DIM)]] if tale.has_times else []
    return [[_number(step)], *times, *lanes.values()]


def _widths(headings: list[Piece], rows: list[list[list[Piece]]], width: int) -> list[int]:
    """How wide each column is; the lanes share what there is, none wider than it needs. -1 where they do not fit."""
    needed = [
        max((cells_of(p.text) for p in [h, *(p for row in rows for p in row[k])]), default=0)
        for k, h in enumerate(headings)
    ]
    fixed = [k for k, h in enumerate(headings) if h.text in ("", "   ms")]
    free = [k for k in range(len(headings)) if k not in fixed]
    left = width - len(_GAP) * (len(headings) - 1) - sum(needed[k] for k in fixed)
    for place, k in enumerate(sorted(free, key=lambda k: needed[k])):
        share = left // (len(free) - place)
        if needed[k] > share:
            needed[k] = share if share >= NARROWEST_LANE else -1
        left -= needed[k]
    return needed


def _row(cells: Sequence[Sequence[Piece]], widths: Sequence[int]) -> Iterator[Sequence[Piece]]:
    columns = [[line for p in cell for line in _wrapped(p, w)] for cell, w in zip(cells, widths, strict=True)]
    for k in range(max(1, *(len(c) for c in columns))):
        line: list[Piece] = []
        for column, w in zip(columns, widths, strict=True):
            piece = column[k] if k < len(column) else Piece("")
            line += [piece, Piece(" " * (w - cells_of(piece.text)) + _GAP)]
        yield line


def _stacked(step: TaleStep, width: int) -> Iterator[Sequence[Piece]]:
    at = f"{step.at_ms} ms  " if step.at_ms is not None else ""
    head = f"{step.who}: {step.does}" if step.who else step.does
    yield from _filled(
        Piece(head, _BOLD if step.who not in ("", TIME, ORCHESTRATOR) else ""),
        width,
        (_number(step), Piece(f"  {at}", _DIM)),
    )
    told = [("store", Piece(_answer(step)))] if step.answered else []
    told += [("fault", Piece(name, _YELLOW)) for name in step.faults]
    told += [("truth", Piece(text)) for text in step.truth_told]
    told += [("worker", Piece(f"it {text}", _DIM)) for text in step.belief]
    told += [("✗", Piece(step.mark, _RED))] if step.mark else []
    for name, piece in told:
        yield from _filled(piece, width, (Piece(f"     {name:7}", _DIM),))


# Words in columns


def cells_of(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def _filled(piece: Piece, width: int, before: tuple[Piece, ...] = ()) -> Iterator[Sequence[Piece]]:
    """A text in as many lines as it takes, all of them behind what stands before the first."""
    indent = sum(cells_of(p.text) for p in before)
    for number, line in enumerate(_wrapped(piece, max(width - indent, NARROWEST_LANE))):
        yield [*(before if number == 0 else [Piece(" " * indent)]), line]


def _wrapped(piece: Piece, width: int) -> list[Piece]:
    """The piece in lines of at most so many columns, broken between words where that can be."""
    if cells_of(piece.text) <= width:
        return [piece]
    lines, line = [], ""
    for word in piece.text.split(" "):
        longer = f"{line} {word}" if line else word
        if cells_of(longer) <= width:
            line = longer
            continue
        if line:
            lines.append(line)
        while cells_of(word) > width:
            place = next(k for k in range(len(word), 0, -1) if cells_of(word[:k]) <= width)
            lines.append(word[:place])
            word = word[place:]
        line = word
    return [Piece(text, piece.style) for text in (*lines, line)]
