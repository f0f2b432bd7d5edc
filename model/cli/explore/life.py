"""The life of a delivery as a drawing: the states that the specification names, and the moves that were found.

States that are as many moves away from the beginning stand below each other. A move to the next column is a line; one
within a column is an arrow, or an arc on its right where it passes others; one that leads back is an arc below.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TypeAlias

from peeklock.model.explore.lives import Moves
from peeklock.spec.law.life import Life

WIDTH, ROW, BOX, TALL = 392, 48, 80, 26
FIRST, COLUMN = 78, 198

Place: TypeAlias = tuple[float, float]


def life_svg(moves: Moves) -> str:
    """The drawing. A state is a group with ``data-life``, a move one with ``data-move`` (``FROM-TO``)."""
    columns = _columns(moves)
    places = {
        life: (FIRST + COLUMN * column, ROW * (row + 0.5) + ROW * (_tallest(columns) - len(lives)) / 2)
        for column, lives in enumerate(columns)
        for row, life in enumerate(lives)
    }
    height = ROW * _tallest(columns) + 2
    drawn = [_move(start, end, causes, places) for (start, end), causes in moves.items()]
    drawn += [_state(life, *place) for life, place in places.items()]
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg">'
        f"<title></title>{''.join(drawn)}</svg>"
    )


def _columns(moves: Moves) -> list[list[Life]]:
    """The states by how many moves away from the beginning they are."""
    columns: list[list[Life]] = []
    placed: set[Life] = set()
    ends = {end for start, end in moves if start is None}
    while ends:
        columns.append([life for life in Life if life in ends])
        placed |= ends
        ends = {end for start, end in moves if start in ends} - placed
    return columns


def _tallest(columns: list[list[Life]]) -> int:
    return max(map(len, columns), default=1)


def _state(life: Life, x: float, y: float) -> str:
    return (
        f'<g data-life="{life.name}"><rect x="{x - BOX / 2:g}" y="{y - TALL / 2:g}" width="{BOX}" height="{TALL}" '
        f'rx="6"/><text x="{x:g}" y="{y + 4:g}" text-anchor="middle">{life.name.lower()}</text></g>'
    )


def _move(start: Life | None, end: Life, causes: tuple[str, ...], places: Mapping[Life, Place]) -> str:
    x, y = places[end]
    left, right = x - BOX / 2, x + BOX / 2
    if start is None:
        return _group(
            start, end, f"M2 {y:g} H{left:g}", _head(left, y, 1, 0), _beside(causes, left - 9, y, "end")
        )
    from_x, from_y = places[start]
    out = from_x + BOX / 2
    if from_x < x:
        line = f"M{out:g} {from_y:g} C{out + 20:g} {from_y:g} {out + 2:g} {y:g} {out + 24:g} {y:g} H{left:g}"
        return _group(start, end, line, _head(left, y, 1, 0), _beside(causes, left - 9, y, "end"))
    if from_x > x:
        below = max(y, from_y) + ROW / 2
        line = f"M{from_x:g} {from_y + TALL / 2:g} Q{(from_x + x) / 2:g} {below + 9:g} {x:g} {y + TALL / 2:g}"
        text = _beside(causes, (from_x + x) / 2, below, "middle")
        return _group(start, end, line, _head(x, y + TALL / 2, 0, -1), text)
    down = 1 if y > from_y else -1
    if abs(y - from_y) <= ROW:
        beside, stop = x + 20 * down, y - down * TALL / 2
        line = f"M{beside:g} {from_y + down * TALL / 2:g} V{stop:g}"
        text = _beside(causes, beside + 6 * down, (y + from_y) / 2 + 8, "start" if down > 0 else "end")
        return _group(start, end, line, _head(beside, stop, 0, down), text)
    bulge = right + 24 * abs(y - from_y) / ROW
    line = f"M{right:g} {from_y:g} C{bulge:g} {from_y:g} {bulge:g} {y:g} {right:g} {y:g}"
    text = _beside(causes, right + (bulge - right) * 0.75 + 4, (from_y + y) / 2 + 8, "start")
    return _group(start, end, line, _head(right, y, -1, 0), text)


def _beside(causes: tuple[str, ...], x: float, y: float, anchor: str) -> str:
    """What makes a move: the first cause above this height, the others below it."""
    return "".join(
        f'<text class="cause" x="{x:g}" y="{y - 5 if k == 0 else y + 2 + 11 * k:g}" text-anchor="{anchor}">'
        f"{escape(cause)}</text>"
        for k, cause in enumerate(causes)
    )


def _head(x: float, y: float, right: int, down: int) -> str:
    """The head of an arrow that ends here, and points to the right or to the left, or down or up."""
    if down:
        return f"M{x:g} {y:g} l-4 {-8 * down} h8 z"
    return f"M{x:g} {y:g} l{-8 * right} -4 v8 z"


def _group(start: Life | None, end: Life, line: str, head: str, text: str) -> str:
    move = f"{'' if start is None else start.name}-{end.name}"
    return f'<g data-move="{move}"><path d="{line}"/><path class="head" d="{head}"/>{text}</g>'
