"""Records: every state that one worker or one item has been seen in, numbered, so that a state is a few numbers."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from peeklock.spec.law.state import Row, row, working_on
from peeklock.spec.reading.evaluate import INITIAL_ITEM, INITIAL_WORKER, PLACE, Record, encoded

_HAND, _ROW = PLACE[working_on], PLACE[row]
MOST_RENAMED = 5
"""With more items, all their orders would take longer than they save: then only workers are renamed."""
_GONE = (encoded(Row.ACKED), encoded(Row.CANCELLED))


class Numbering:
    """Records of one kind in the order in which they were met."""

    def __init__(self, first: Record) -> None:
        self.records: list[Record] = []
        self.number: dict[Record, int] = {}
        self.of(first)

    def of(self, record: Record) -> int:
        """The number of a record, met before or not."""
        found = self.number.get(record)
        if found is None:
            found = self.number[record] = len(self.records)
            self.records.append(record)
        return found

    def resume(self, records: list[Record]) -> None:
        """Take over records with the numbers that they had elsewhere."""
        self.records = list(records)
        self.number = {record: k for k, record in enumerate(self.records)}

    def column(self, place: int) -> NDArray[np.uint8]:
        """One variable's value in every record."""
        return np.fromiter((r[place] for r in self.records), np.uint8, len(self.records))

    def __len__(self) -> int:
        return len(self.records)


def is_gone(item: Record) -> bool:
    """The item's row is deleted."""
    return item[_ROW] in _GONE


def has_in_hand(worker: Record, item: int) -> bool:
    """The worker has this item in hand."""
    return worker[_HAND] == item + 1


class Items(Numbering):
    """The records of items, with what is left of each when its row is gone and no worker has it in hand.

    Nothing can happen to such an item any more, so only what is said of whole states still matters: the variables
    at the places that are ``kept``. With ``kept`` None nothing is cleared.
    """

    def __init__(self, kept: frozenset[int] | None) -> None:
        self.kept = kept
        super().__init__(INITIAL_ITEM)

    def of(self, record: Record) -> int:
        """The number of a record; meeting it also meets what is left of it."""
        found = super().of(record)
        if found == len(self.records) - 1:
            super().of(self._left_of(record))
        return found

    def left(self) -> NDArray[np.int64]:
        """For every record the number of what is left of it when no worker has the item in hand."""
        return np.fromiter((self.number[self._left_of(r)] for r in self.records), np.int64, len(self.records))

    def _left_of(self, record: Record) -> Record:
        if self.kept is None or not is_gone(record):
            return record
        return tuple(v if k in self.kept else 0 for k, v in enumerate(record))


class Workers(Numbering):
    """The records of workers, closed under renaming of the items."""

    def __init__(self, items: int) -> None:
        orders = permutations(range(items)) if items <= MOST_RENAMED else ()
        self.renamings = [p for p in orders if p != tuple(range(items))]
        super().__init__(INITIAL_WORKER)

    def of(self, record: Record) -> int:
        """The number of a record; meeting it also meets what it is when the items are renamed."""
        found = self.number.get(record)
        if found is None:
            found = super().of(record)
            for renaming in self.renamings if record[_HAND] else ():
                super().of(renamed(record, renaming))
        return found

    def hands(self) -> NDArray[np.int64]:
        """For every record the item in hand, counted from 1; 0 for none."""
        return self.column(_HAND).astype(np.int64)

    def renaming(self, p: tuple[int, ...]) -> NDArray[np.int64]:
        """For every record its number when item k is called p[k]."""
        return np.fromiter((self.number[renamed(r, p)] for r in self.records), np.int64, len(self.records))


def renamed(record: Record, p: tuple[int, ...]) -> Record:
    """A worker's record when item k is called p[k]."""
    hand = record[_HAND]
    return record if hand == 0 else (*record[:_HAND], p[hand - 1] + 1, *record[_HAND + 1 :])
