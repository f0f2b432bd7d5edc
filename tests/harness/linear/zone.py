"""Zones: what is known of moments that nobody saw, as bounds on their differences.

A zone is a conjunction of ``u - v <= n`` over whole numbers, closed under addition, so that it is empty exactly where
a moment is below itself. Moments that bound each other only by way of fixed times are kept apart, in blocks: most are.
A moment that is not mentioned may be at any time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeAlias

Moment: TypeAlias = int
"""A number for a name."""
Bound: TypeAlias = float
"""A whole number, or infinity."""
ANY = math.inf


class Block:
    """Some moments and the bounds on their differences; the first row and column are the fixed time 0."""

    __slots__ = ("bounds", "moments", "place")

    def __init__(self, moments: tuple[Moment, ...], bounds: tuple[tuple[Bound, ...], ...]) -> None:
        self.moments, self.bounds = moments, bounds
        self.place = {moment: k for k, moment in enumerate(moments, 1)}


Zone: TypeAlias = Mapping[Moment, Block]
"""Each moment with the block that it is in."""


def earliest(zone: Zone, moment: Moment) -> Bound:
    """The least that the moment can be."""
    block = zone.get(moment)
    return -ANY if block is None else -block.bounds[0][block.place[moment]]


def latest(zone: Zone, moment: Moment) -> Bound:
    """The most that the moment can be."""
    block = zone.get(moment)
    return ANY if block is None else block.bounds[block.place[moment]][0]


def latest_or(zone: Zone, moment: Moment) -> Bound:
    """The most that the moment can be; of one of which nothing is known, minus infinity: it is long over."""
    block = zone.get(moment)
    return -ANY if block is None else block.bounds[block.place[moment]][0]


def covers(wide: Zone, narrow: Zone) -> bool:
    """Does the first zone hold every point of the second?"""
    seen: set[int] = set()
    for block in wide.values():
        if id(block) in seen:
            continue
        seen.add(id(block))
        moments = block.moments
        if all(narrow.get(m) is block for m in moments):
            continue
        inner = [narrow.get(m) for m in moments]
        at = [0 if b is None else b.place[m] for b, m in zip(inner, moments, strict=True)]
        tops = [ANY if b is None else b.bounds[k][0] for b, k in zip(inner, at, strict=True)]
        bottoms = [ANY if b is None else b.bounds[0][k] for b, k in zip(inner, at, strict=True)]
        bounds = block.bounds
        for i, (one, k) in enumerate(zip(inner, at, strict=True)):
            row = bounds[i + 1]
            if tops[i] > row[0] or bottoms[i] > bounds[0][i + 1]:
                return False
            for j, (other, n) in enumerate(zip(inner, at, strict=True)):
                if i != j and row[j + 1] != ANY:
                    between = one.bounds[k][n] if one is other and one is not None else tops[i] + bottoms[j]
                    if between > row[j + 1]:
                        return False
    return True


def united(one: Zone, other: Zone, exactly: bool = True) -> Zone | None:
    """The zone that holds the points of both and, if that is asked for, no others; None where no zone does."""
    moments: dict[Moment, None] = {}
    for zone, beside in ((one, other), (other, one)):
        for moment, block in zone.items():
            if beside.get(moment) is not block:
                moments.update(dict.fromkeys(block.moments))
    drafts = Draft(one), Draft(other)
    for draft in drafts:
        for moment in moments:
            draft.take(moment)
    a, b = (draft.matrix(moments) for draft in drafts)
    size = range(len(a))
    hull = [[max(a[i][j], b[i][j]) for j in size] for i in size]
    for i in size:
        for j in size:
            if exactly and a[i][j] < hull[i][j] and not _is_in(hull, j, i, -a[i][j] - 1, b):
                return None
    shared = {m: block for m, block in one.items() if m not in moments}
    draft = Draft(shared)
    draft.set(moments, hull)
    return draft.done({}, ())


def _is_in(hull: list[list[Bound]], i: int, j: int, n: Bound, wide: list[list[Bound]]) -> bool:
    """Is the part of the zone where ``i - j <= n`` inside the other one?"""
    if n + hull[j][i] < 0:
        return True
    from_j = hull[j]
    for row, most in zip(hull, wide, strict=True):
        by = row[i] + n
        for k, m in enumerate(most):
            if m < row[k] and m < by + from_j[k]:
                return False
    return True


class Draft:
    """A zone that is being changed; only the blocks of the moments that were asked for are taken out of it."""

    __slots__ = ("_rows", "place", "zone")

    def __init__(self, zone: Zone) -> None:
        self.zone = zone
        self.place: dict[Moment, int] = {}
        self._rows: list[list[Bound]] = [[0]]

    def copy(self) -> Draft:
        """The same once more, to be changed in another way."""
        other = Draft(self.zone)
        other.place = dict(self.place)
        other._rows = [list(row) for row in self._rows]
        return other

    def add(self, moment: Moment, least: Bound, most: Bound) -> None:
        """A moment that is in no zone yet."""
        rows = self._rows
        for row in rows:
            row.append(row[0] - least)
        new = [most + n for n in rows[0]]
        new[-1] = 0
        rows.append(new)
        self.place[moment] = len(rows) - 1

    def take(self, moment: Moment) -> None:
        """Take the block of this moment out of the zone; a moment of which nothing is known may be any."""
        if moment in self.place:
            return
        block = self.zone.get(moment)
        if block is None:
            self.add(moment, -ANY, ANY)
            return
        rows, size = self._rows, len(self._rows)
        tops, bottoms = [row[0] for row in rows], list(rows[0])
        for row, top in zip(rows, tops, strict=True):
            row.extend(top + n for n in block.bounds[0][1:])
        for inner in block.bounds[1:]:
            rows.append([inner[0] + n for n in bottoms] + list(inner[1:]))
        for k, m in enumerate(block.moments):
            self.place[m] = size + k

    def earliest(self, moment: Moment) -> Bound:
        """The least that the moment can be, with all that was added."""
        at = self.place.get(moment)
        return earliest(self.zone, moment) if at is None else -self._rows[0][at]

    def latest(self, moment: Moment) -> Bound:
        """The most that the moment can be, with all that was added."""
        at = self.place.get(moment)
        return latest(self.zone, moment) if at is None else self._rows[at][0]

    def at_most(self, one: Moment, other: Moment, n: Bound) -> bool:
        """Add that ``one - other <= n``; False, and the draft is of no more use, where that cannot be."""
        self.take(one)
        self.take(other)
        rows = self._rows
        i, j = self.place[one], self.place[other]
        if n >= rows[i][j]:
            return True
        if n + rows[j][i] < 0:
            return False
        to_j = rows[j]
        for row in rows:
            if row[i] != ANY:
                by = row[i] + n
                for k, m in enumerate(to_j):
                    if by + m < row[k]:
                        row[k] = by + m
        return True

    def matrix(self, moments: Iterable[Moment]) -> list[list[Bound]]:
        """The bounds of these moments, which were taken, in this order; first the fixed time 0."""
        at = [0, *(self.place[m] for m in moments)]
        return [[self._rows[i][j] for j in at] for i in at]

    def set(self, moments: Iterable[Moment], rows: list[list[Bound]]) -> None:
        """Set all bounds of these moments, in this order; first the fixed time 0."""
        self.place = {m: k for k, m in enumerate(moments, 1)}
        self._rows = rows

    def done(
        self, set_to: Mapping[Moment, tuple[Moment, int]], drop: Iterable[Moment]
    ) -> dict[Moment, Block]:
        """The zone after moments were set to others, so much later; those to be dropped are forgotten."""
        gone = {*drop, *set_to}
        for moment in gone:
            if moment in self.zone:
                self.take(moment)
        names = [(m, k, 0) for m, k in self.place.items() if m not in gone]
        names += [(m, self.place[base], by) for m, (base, by) in set_to.items()]
        zone = {m: b for m, b in self.zone.items() if m not in self.place and m not in gone}
        rows = self._rows
        left = list(range(len(names)))
        while left:
            group, todo = [], [left.pop(0)]
            while todo:
                at = todo.pop()
                group.append(at)
                _, k, _ = names[at]
                apart = []
                for other in left:
                    _, n, _ = names[other]
                    if rows[k][n] < rows[k][0] + rows[0][n] or rows[n][k] < rows[n][0] + rows[0][k]:
                        todo.append(other)
                    else:
                        apart.append(other)
                left = apart
            self._keep(zone, [names[at] for at in sorted(group)])
        return zone

    def _keep(self, zone: dict[Moment, Block], names: list[tuple[Moment, int, int]]) -> None:
        rows = self._rows
        if len(names) == 1 and rows[names[0][1]][0] == ANY and rows[0][names[0][1]] == ANY:
            return
        names.sort()
        ends = [(0, 0), *((k, by) for _, k, by in names)]
        bounds = tuple(
            tuple(0 if a == b else rows[k][n] + by - less for b, (n, less) in enumerate(ends))
            for a, (k, by) in enumerate(ends)
        )
        block = Block(tuple(m for m, _, _ in names), bounds)
        for m, _, _ in names:
            zone[m] = block
