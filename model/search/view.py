"""A view: many states at once, as columns of the variables of their workers and items."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from peeklock.model.search.local import COLUMNS
from peeklock.model.search.packing import Ints, Packing, Words
from peeklock.spec.notation.terms import Term

Mask = NDArray[np.bool_]
Question: TypeAlias = "Callable[..., Mask | bool]"
"""A grounded term, to be asked of every state of a view."""


class View:
    """Many states, seen as columns: one array for each variable of each worker and item."""

    def __init__(self, packing: Packing, keys: Words) -> None:
        self.keys = keys
        self.columns = packing.columns(keys)
        self._packing = packing
        self._workers = [packing.worker(self.columns, w) for w in range(packing.counts[0])]
        self._items = [packing.item(self.columns, i) for i in range(packing.counts[1])]

    def worker(self, w: int) -> Ints:
        """The record number of a worker in every state."""
        return self._workers[w]

    def item(self, i: int) -> Ints:
        """The record number of an item in every state."""
        return self._items[i]

    def worker_column(self, w: int, place: int) -> NDArray[np.uint8]:
        """A variable of a worker in every state."""
        return self._packing.workers.column(place)[self._workers[w]]

    def item_column(self, i: int, place: int) -> NDArray[np.uint8]:
        """A variable of an item in every state."""
        return self._packing.items.column(place)[self._items[i]]

    def where(self, ask: Question) -> Mask:
        """The answer for every state to a question that ``column_question`` made."""
        answer = ask(self.worker_column, self.item_column, np.maximum, np.where)
        return np.broadcast_to(np.asarray(answer, bool), self.keys.shape)


def column_question(term: Term) -> Question:
    """A grounded term as a question to ask of a view."""
    question: Question = eval(f"lambda W, I, maximum, where: {COLUMNS.of(term)}")
    return question
