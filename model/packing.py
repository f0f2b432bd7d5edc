"""Packing: a state as one 64-bit word of record numbers, and the one word that stands for all its renamings."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
from numpy.typing import NDArray

from peeklock.model.records import Items, Workers
from peeklock.spec.evaluate import State

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]
WORD = 64


class TooManyRecords(Exception):
    """The records of a worker or an item no longer fit into their share of a word."""


class Packing:
    """Where each record number stands in a word: items first, so that words sort by items."""

    def __init__(self, workers: int, items: int, symmetric: bool) -> None:
        self.workers, self.items, self.symmetric = Workers(items), Items(), symmetric
        self.counts = (workers, items)
        self.item_bits = max((WORD - 3 * workers) // (workers + items), 1)
        self.worker_bits = (WORD - items * self.item_bits) // workers
        self.worker_shifts = [w * self.worker_bits for w in range(workers)]
        self.item_shifts = [workers * self.worker_bits + i * self.item_bits for i in range(items)]

    def check(self) -> None:
        """``TooManyRecords`` when a number has outgrown its share."""
        if len(self.workers) >> self.worker_bits or len(self.items) >> self.item_bits:
            raise TooManyRecords

    def worker(self, words: Words, w: int) -> Ints:
        """The record number of one worker in every word."""
        return self._part(words, self.worker_shifts[w], self.worker_bits)

    def item(self, words: Words, i: int) -> Ints:
        """The record number of one item in every word."""
        return self._part(words, self.item_shifts[i], self.item_bits)

    @staticmethod
    def _part(words: Words, shift: int, bits: int) -> Ints:
        return (words >> np.uint64(shift) & np.uint64((1 << bits) - 1)).astype(np.int64)

    def word(self, state: State) -> int:
        """The word of one state as it is."""
        w = sum(self.workers.of(r) << s for r, s in zip(state[0], self.worker_shifts, strict=True))
        return w | sum(self.items.of(r) << s for r, s in zip(state[1], self.item_shifts, strict=True))

    def state(self, word: int) -> State:
        """The state of one word."""
        one = np.array([word], np.uint64)
        return (
            tuple(self.workers.records[int(self.worker(one, w)[0])] for w in range(self.counts[0])),
            tuple(self.items.records[int(self.item(one, i)[0])] for i in range(self.counts[1])),
        )

    def canonical_word(self, state: State) -> int:
        """The word that stands for the state and for what it is when workers or items are renamed."""
        word = np.array([self.word(state)], np.uint64)
        return int(self.canonical(word)[0])

    def canonical(self, words: Words) -> Words:
        """For every word the smallest of its renamings; the words themselves when symmetry is off."""
        if not self.symmetric:
            return words
        workers = [self.worker(words, w) for w in range(self.counts[0])]
        items = [self.item(words, i) for i in range(self.counts[1])]
        best = self._packed(_sorted(workers), items)
        for p in permutations(range(self.counts[1])):
            if p == tuple(range(self.counts[1])):
                continue
            # Items are the high bits, so only an order that sorts them can be the smallest.
            moved = [items[p.index(i)] for i in range(self.counts[1])]
            falling = np.ones(len(words), bool)
            for high, low in pairwise(moved[::-1]):
                falling &= high <= low
            rows = np.flatnonzero(falling)
            if len(rows):
                renaming = self.workers.renaming(p)
                renamed = _sorted([renaming[w[rows]] for w in workers])
                best[rows] = np.minimum(best[rows], self._packed(renamed, [m[rows] for m in moved]))
        return best

    def _packed(self, workers: list[Ints], items: list[Ints]) -> Words:
        word = np.zeros(len(workers[0]), np.uint64)
        for part, shift in zip((*workers, *items), (*self.worker_shifts, *self.item_shifts), strict=True):
            word |= part.astype(np.uint64) << np.uint64(shift)
        return word


def _sorted(parts: list[Ints]) -> list[Ints]:
    """Each place's smallest first, across the arrays: an exchange sort, for few arrays."""
    parts = list(parts)
    for end in range(len(parts) - 1, 0, -1):
        for k in range(end):
            parts[k], parts[k + 1] = np.minimum(parts[k], parts[k + 1]), np.maximum(parts[k], parts[k + 1])
    return parts
