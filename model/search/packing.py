"""Packing: a state as columns of 64-bit words of record numbers, and one 64-bit key that stands for it exactly.

Where a state fits into one word, the word is its key. Where it takes several, each pair of words is folded into one:
words are numbered as they are met, and the two numbers make a new word. Nothing is hashed away, and a state takes
8 bytes however large the world is.
"""

from __future__ import annotations

from itertools import pairwise
from threading import Lock

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from peeklock.model.search.records import Items, Workers
from peeklock.spec.reading.evaluate import Record, State

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]
Columns = list[Words]
WORD = 64
WORKER_BITS, ITEM_BITS = 11, 9
"""Room for the numbers of records at first; a search that needs more begins again with more."""


class TooManyRecords(Exception):
    """The records of a worker or an item no longer fit into their share of a word."""


@frozen
class Forms:
    """How the records met so far stand for each other, as arrays by record number."""

    renamings: dict[tuple[int, ...], Ints]
    """For every other order of the items, what each worker's record then becomes; empty when symmetry is off."""
    hands: Ints
    """The item that a worker has in hand, counted from 1."""
    left: Ints | None
    """What is left of an item that no worker has in hand; None when nothing is cleared."""


@frozen
class Place:
    """Where a record number stands: in which word, how far from its low end, and how wide."""

    word: int
    shift: int
    bits: int


class Numbers:
    """Words, numbered in the order in which they were met."""

    def __init__(self) -> None:
        self._sorted = np.zeros(0, np.uint64)
        self._number = np.zeros(0, np.uint64)
        self._words = np.zeros(0, np.uint64)

    @property
    def nbytes(self) -> int:
        """The memory that the numbering takes."""
        return self._sorted.nbytes * 3

    def of(self, words: Words) -> Words:
        """The number of each word; a word not met before gets the next one."""
        missing = words if not len(self._sorted) else words[self._sorted[self._at(words)] != words]
        if len(missing):
            fresh = np.unique(missing)
            numbers = np.arange(len(self._words), len(self._words) + len(fresh), dtype=np.uint64)
            places = np.searchsorted(self._sorted, fresh)
            self._sorted = np.insert(self._sorted, places, fresh)
            self._number = np.insert(self._number, places, numbers)
            self._words = np.concatenate([self._words, fresh])
        return self._number[self._at(words)]

    @property
    def words_in_order(self) -> Words:
        """The words in the order of their numbers."""
        return self._words

    def resume(self, words: Words) -> None:
        """Take over words that were numbered in this order."""
        order = np.argsort(words)
        self._words, self._sorted, self._number = words, words[order], order.astype(np.uint64)

    def _at(self, words: Words) -> Ints:
        place = np.searchsorted(self._sorted, words)
        place[place == len(self._sorted)] = 0
        return place

    def words(self, numbers: Words) -> Words:
        """The words that these numbers were given to."""
        return self._words[numbers.astype(np.int64)]


class Packing:
    """Where each record number stands: items first, in the high bits, so that states sort by items."""

    def __init__(
        self,
        workers: int,
        items: int,
        symmetric: bool,
        extra_bits: int = 0,
        kept: frozenset[int] | None = None,
    ) -> None:
        self.workers, self.items, self.symmetric = Workers(items), Items(kept), symmetric
        self.counts = (workers, items)
        self.worker_bits, self.item_bits = WORKER_BITS + extra_bits, ITEM_BITS + extra_bits
        word, free, places = 0, WORD, []
        for bits in [self.item_bits] * items + [self.worker_bits] * workers:
            if bits > free:
                word, free = word + 1, WORD
            free -= bits
            places.append(Place(word, free, bits))
        # The last item stands highest: an order of items that sorts them falling is the smallest.
        self.item_places, self.worker_places = places[:items][::-1], places[items:]
        self.words = word + 1
        self._folding = Lock()
        self._folds = [(Numbers(), Numbers()) for _ in range(self.words - 1)]

    def folded_words(self) -> list[Words]:
        """The words that were numbered in folding, in the order of their numbers."""
        return [numbers.words_in_order for fold in self._folds for numbers in fold]

    def resume(self, workers: list[Record], items: list[Record], folds: list[Words]) -> None:
        """Take over records and folded words with the numbers that they had in another packing."""
        self.workers.resume(workers)
        self.items.resume(items)
        for numbers, words in zip((n for fold in self._folds for n in fold), folds, strict=True):
            numbers.resume(words)

    @property
    def nbytes(self) -> int:
        """The memory that folding takes."""
        return sum(a.nbytes + b.nbytes for a, b in self._folds)

    def check(self) -> None:
        """``TooManyRecords`` when a number has outgrown its share."""
        if len(self.workers) >> self.worker_bits or len(self.items) >> self.item_bits:
            raise TooManyRecords

    # Records in columns

    def worker(self, columns: Columns, w: int) -> Ints:
        """The record number of one worker in every state."""
        return _part(columns, self.worker_places[w])

    def item(self, columns: Columns, i: int) -> Ints:
        """The record number of one item in every state."""
        return _part(columns, self.item_places[i])

    @staticmethod
    def put(columns: Columns, place: Place, records: Ints) -> None:
        """Write a record number into every state."""
        kept = ~(((1 << place.bits) - 1) << place.shift) & (2**WORD - 1)
        columns[place.word] &= np.uint64(kept)
        columns[place.word] |= records.astype(np.uint64) << np.uint64(place.shift)

    def _packed(self, workers: list[Ints], items: list[Ints]) -> Columns:
        columns = [np.zeros(len(workers[0]), np.uint64) for _ in range(self.words)]
        for part, place in zip((*workers, *items), (*self.worker_places, *self.item_places), strict=True):
            columns[place.word] |= part.astype(np.uint64) << np.uint64(place.shift)
        return columns

    # Columns and keys

    def keys(self, columns: Columns) -> Words:
        """One key for each state, as it is."""
        key = columns[0]
        if not self._folds:
            return key
        with self._folding:
            return self._folded(key, columns[1:])

    def _folded(self, key: Words, others: Columns) -> Words:
        for (high, low), column in zip(self._folds, others, strict=True):
            key = high.of(key) << np.uint64(32) | low.of(column)
        return key

    def columns(self, keys: Words) -> Columns:
        """The states that these keys stand for."""
        found: Columns = []
        for high, low in reversed(self._folds):
            found.insert(0, low.words(keys & np.uint64(0xFFFFFFFF)))
            keys = high.words(keys >> np.uint64(32))
        return [keys, *found]

    def key(self, state: State) -> int:
        """The key of one state as it is."""
        return int(self.keys(self._of_states([state]))[0])

    def canonical_keys(self, states: list[State]) -> Words:
        """The keys that stand for states and for what they are when workers or items are renamed."""
        columns = self._of_states(states)
        return self.keys(self.canonical(columns, self.forms()))

    def _of_states(self, states: list[State]) -> Columns:
        workers = [
            np.array([self.workers.of(s[0][w]) for s in states], np.int64) for w in range(self.counts[0])
        ]
        items = [np.array([self.items.of(s[1][i]) for s in states], np.int64) for i in range(self.counts[1])]
        return self._packed(workers, items)

    def state(self, key: int) -> State:
        """The state of one key."""
        columns = self.columns(np.array([key], np.uint64))
        return (
            tuple(self.workers.records[int(self.worker(columns, w)[0])] for w in range(self.counts[0])),
            tuple(self.items.records[int(self.item(columns, i)[0])] for i in range(self.counts[1])),
        )

    # Symmetry

    def forms(self) -> Forms:
        """How the records met so far stand for each other."""
        orders = self.workers.renamings if self.symmetric else ()
        return Forms(
            {p: self.workers.renaming(p) for p in orders},
            self.workers.hands(),
            None if self.items.kept is None else self.items.left(),
        )

    def canonical(self, columns: Columns, forms: Forms) -> Columns:
        """For every state the one that stands for it: items that are over cleared, the smallest of its renamings."""
        if not self.symmetric and forms.left is None:
            return columns
        workers = [self.worker(columns, w) for w in range(self.counts[0])]
        items = [self.item(columns, i) for i in range(self.counts[1])]
        if forms.left is not None:
            hands = [forms.hands[w] for w in workers]
            for i, item in enumerate(items):
                held = hands[0] == i + 1
                for hand in hands[1:]:
                    held |= hand == i + 1
                items[i] = np.where(held, item, forms.left[item])
        if not self.symmetric:
            return self._packed(workers, items)
        best = self._packed(_sorted(workers), items)
        for p, renaming in forms.renamings.items():
            moved = [items[p.index(i)] for i in range(self.counts[1])]
            falling = np.ones(len(columns[0]), bool)
            for high, low in pairwise(moved[::-1]):
                falling &= high <= low  # only an order that sorts the items can be the smallest
            rows = np.flatnonzero(falling)
            if len(rows):
                renamed = _sorted([renaming[w[rows]] for w in workers])
                _keep_smaller(best, rows, self._packed(renamed, [m[rows] for m in moved]))
        return best


def _part(columns: Columns, place: Place) -> Ints:
    mask = np.uint64((1 << place.bits) - 1)
    return (columns[place.word] >> np.uint64(place.shift) & mask).astype(np.int64)


def _keep_smaller(best: Columns, rows: Ints, others: Columns) -> None:
    """Where a row of others comes before the one of best, put it in its place."""
    smaller, same = np.zeros(len(rows), bool), np.ones(len(rows), bool)
    for mine, other in zip(best, others, strict=True):
        smaller |= same & (other < mine[rows])
        same &= other == mine[rows]
    for mine, other in zip(best, others, strict=True):
        mine[rows[smaller]] = other[smaller]


def _sorted(parts: list[Ints]) -> list[Ints]:
    """Each place's smallest first, across the arrays: an exchange sort, for few arrays."""
    parts = list(parts)
    for end in range(len(parts) - 1, 0, -1):
        for k in range(end):
            parts[k], parts[k + 1] = np.minimum(parts[k], parts[k + 1]), np.maximum(parts[k], parts[k + 1])
    return parts
