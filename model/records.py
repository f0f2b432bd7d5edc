"""Records: every state that one worker or one item has been seen in, numbered, so that a state is a few numbers."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from peeklock.spec.evaluate import INITIAL_ITEM, INITIAL_WORKER, PLACE, Record
from peeklock.spec.state import working_on

_HAND = PLACE[working_on]


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

    def column(self, place: int) -> NDArray[np.uint8]:
        """One variable's value in every record."""
        return np.fromiter((r[place] for r in self.records), np.uint8, len(self.records))

    def __len__(self) -> int:
        return len(self.records)


class Items(Numbering):
    """The records of items."""

    def __init__(self) -> None:
        super().__init__(INITIAL_ITEM)


class Workers(Numbering):
    """The records of workers, closed under renaming of the items."""

    def __init__(self, items: int) -> None:
        self.renamings = [p for p in permutations(range(items)) if p != tuple(range(items))]
        super().__init__(INITIAL_WORKER)

    def of(self, record: Record) -> int:
        """The number of a record; meeting it also meets what it is when the items are renamed."""
        found = self.number.get(record)
        if found is None:
            found = super().of(record)
            for renaming in self.renamings if record[_HAND] else ():
                super().of(renamed(record, renaming))
        return found

    def renaming(self, p: tuple[int, ...]) -> NDArray[np.int64]:
        """For every record its number when item k is called p[k]."""
        return np.fromiter((self.number[renamed(r, p)] for r in self.records), np.int64, len(self.records))


def renamed(record: Record, p: tuple[int, ...]) -> Record:
    """A worker's record when item k is called p[k]."""
    hand = record[_HAND]
    return record if hand == 0 else (*record[:_HAND], p[hand - 1] + 1, *record[_HAND + 1 :])
