"""Tables: what each pair of a worker's and an item's record can do next, worked out when the pair is first met.

An entry of a table holds the distinct successors of a pair, how many enabled actions lead on from it, and what
the step promises say of them. Expanding a state is then a look-up for each worker and item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from peeklock.model.search.local import LOCAL, localized
from peeklock.model.search.records import Items, Workers, has_in_hand, is_gone
from peeklock.model.search.world import World
from peeklock.spec.notation.terms import FALSE, Term, both
from peeklock.spec.promises.promise import Part
from peeklock.spec.reading.evaluate import Record, record_source

Ints = NDArray[np.int64]


@frozen
class Watch:
    """A part of a promise to be kept, or of a possibility to be found, by its place in the list of watches."""

    part: Part
    wanted: bool
    """True where the part's truth is the finding (a possibility), False where its falsehood is (a promise)."""


@frozen(eq=False)
class Rule:
    """An action made ready for tabulating: what is local to a pair of records, and what asks about whole states."""

    place: int
    touches: tuple[bool, bool]
    guard: str
    worker: str
    item: str
    findings: str
    quiet: str
    wide_guards: tuple[Term, ...] = ()
    wide_findings: tuple[tuple[int, Term], ...] = ()
    wide_quiet: Term | None = None

    @property
    def is_wide(self) -> bool:
        """Does it need more than one worker's and one item's record?"""
        return bool(self.wide_guards or self.wide_findings)


def rules_of(world: World, watches: tuple[Watch, ...]) -> list[Rule]:
    """The world's actions as rules."""
    return [_rule(world, watches, place) for place in range(len(world.actions))]


def _rule(world: World, watches: tuple[Watch, ...], place: int) -> Rule:
    action = world.actions[place]
    guards = [(g, localized(g, action.params)) for g in action.guards]
    findings, wide_findings = ["0"], []
    for bit, watch in enumerate(watches):
        term = world.variant.obligation(watch.part, action)
        if term is None:
            continue
        sought = term if watch.wanted else ~term
        near = localized(sought, action.params)
        if near is None:
            wide_findings.append((bit, sought))
        elif near is not FALSE:
            findings.append(f"({1 << bit} if {LOCAL.of(near)} else 0)")
    quiet = localized(world.quiet_guards[place], action.params)
    return Rule(
        place=place,
        touches=(action.worker is not None, action.item is not None),
        guard=LOCAL.of(both(*(near for _, near in guards if near is not None))),
        worker=record_source(LOCAL, action.effects, action.worker, "s") or "s",
        item=record_source(LOCAL, action.effects, action.item, "u") or "u",
        findings=" | ".join(findings),
        quiet="False" if quiet is None else LOCAL.of(quiet),
        wide_guards=tuple(g for g, near in guards if near is None),
        wide_findings=tuple(wide_findings),
        # A step that changes nothing does not keep a state from being stuck.
        wide_quiet=world.quiet_guards[place] if quiet is None and action.effects else None,
    )


Found: TypeAlias = tuple[int, Record, Record, bool, int]
"""An enabled rule's place, the two records after it, whether no fault is needed, and its findings as bits."""


def _compiled(rules: Iterable[Rule]) -> Callable[[Record, Record, int, list[Found]], None]:
    lines = ["def step(s, u, i, out):"]
    for rule in rules:
        entry = f"({rule.place}, {rule.worker}, {rule.item}, {rule.quiet}, {rule.findings})"
        lines += [f"    if {rule.guard}:", f"        out.append({entry})"]
    scope: dict[str, Callable[[Record, Record, int, list[Found]], None]] = {}
    exec("\n".join(lines), scope)
    return scope["step"]


class Growing:
    """An array that grows at its end."""

    def __init__(self) -> None:
        self._room = np.zeros(1024, np.int64)
        self._size = 0

    def extend(self, values: list[int]) -> None:
        """Add values at the end."""
        while self._size + len(values) > len(self._room):
            self._room = np.concatenate([self._room, np.zeros_like(self._room)])
        self._room[self._size : self._size + len(values)] = values
        self._size += len(values)

    @property
    def array(self) -> Ints:
        """What has been added so far."""
        return self._room[: self._size]


class Table:
    """What one worker and one item can do, for every pair of their records that was met.

    ``uses`` says whether the rules are about a worker, an item or both; the other record is then taken as number 0.
    """

    def __init__(self, rules: list[Rule], workers: Workers, items: Items, item: int) -> None:
        self.rules = rules
        self.uses = rules[0].touches
        self.item = item
        self._workers, self._items = workers, items
        self._step = _compiled(rules)
        self._pair_of = np.full((64, 64), -1, np.int64)
        self._starts, self._sizes, self._enabled, self._live = Growing(), Growing(), Growing(), Growing()
        self._to_worker, self._to_item = Growing(), Growing()
        self._enabled_pairs: dict[int, list[int]] = {r.place: [] for r in rules}
        """For each rule the pairs in which it is enabled."""
        self._pairs_met = 0
        self._met = np.zeros(0, np.int64)
        self.touches_what_is_over = False
        """Something can happen to an item that is gone and in no worker's hand: it must not be cleared."""
        self.findings: list[tuple[int, int, int]] = []
        """(bit, worker record, item record) of the pairs first met since this list was last emptied."""

    def pairs(self, s: Ints, u: Ints) -> Ints:
        """The number of each pair of records; pairs not met before are worked out first."""
        s = s if self.uses[0] else np.zeros_like(u)
        u = u if self.uses[1] else np.zeros_like(s)
        self._make_room()
        found = self._pair_of[s, u]
        missing = found < 0
        if missing.any():
            for key in np.unique(s[missing] << 32 | u[missing]).tolist():
                self._work_out(key >> 32, key & 0xFFFFFFFF)
            found = self._pair_of[s, u]
        return found

    def _make_room(self) -> None:
        rows, columns = self._pair_of.shape
        grown_rows, grown_columns = rows, columns
        while grown_rows < len(self._workers):
            grown_rows *= 2
        while grown_columns < len(self._items):
            grown_columns *= 2
        if (rows, columns) != (grown_rows, grown_columns):
            grown = np.full((grown_rows, grown_columns), -1, np.int64)
            grown[:rows, :columns] = self._pair_of
            self._pair_of = grown

    def _work_out(self, s: int, u: int) -> None:
        out: list[Found] = []
        worker, item = self._workers.records[s], self._items.records[u]
        self._step(worker, item, self.item, out)
        if out and self.uses[1] and is_gone(item) and not (self.uses[0] and has_in_hand(worker, self.item)):
            self.touches_what_is_over = True
        targets: dict[tuple[int, int], None] = {}
        live, findings = False, 0
        for _, next_worker, next_item, quiet, found in out:
            target = (self._workers.of(next_worker), self._items.of(next_item))
            findings |= found
            if target != (s, u):
                targets[target] = None
                live |= bool(quiet)
        self._pair_of[s, u] = self._pairs_met
        self._starts.extend([len(self._to_worker.array)])
        self._sizes.extend([len(targets)])
        self._enabled.extend([len(out)])
        self._live.extend([live])
        self._to_worker.extend([t[0] for t in targets])
        self._to_item.extend([t[1] for t in targets])
        for found_rule in out:
            self._enabled_pairs[found_rule[0]].append(self._pairs_met)
        self._pairs_met += 1
        for bit in range(findings.bit_length()):
            if findings >> bit & 1:
                self.findings.append((bit, s, u))

    def successors(self, pairs: Ints) -> tuple[Ints, Ints, Ints]:
        """For every successor of each pair: the place of the pair in ``pairs``, and the two records after it."""
        sizes = self._sizes.array[pairs]
        origin = np.repeat(np.arange(len(pairs)), sizes)
        first = np.repeat(self._starts.array[pairs] - np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes)
        entry = first + np.arange(len(origin))
        return origin, self._to_worker.array[entry], self._to_item.array[entry]

    def count(self, pairs: Ints) -> int:
        """Remember how often each pair was met; the number of enabled actions."""
        met = np.bincount(pairs, minlength=self._pairs_met)
        met[: len(self._met)] += self._met
        self._met = met
        return int(self._enabled.array[pairs].sum())

    def fired(self) -> dict[int, int]:
        """For each rule (its place among the actions), how often it was enabled in what was counted."""
        return {
            place: int(self._met[[p for p in pairs if p < len(self._met)]].sum())
            for place, pairs in self._enabled_pairs.items()
        }

    def live(self, pairs: Ints) -> NDArray[np.bool_]:
        """Where something can change without a further fault."""
        found: NDArray[np.bool_] = self._live.array[pairs] != 0
        return found
