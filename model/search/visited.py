"""The visited set: sorted runs of words, merged as they grow, so that a run is twice as long as the next at least."""

from __future__ import annotations

import numpy as np

from peeklock.model.search.packing import Words


class Visited:
    """A set of words that only grows; 8 bytes a word."""

    def __init__(self) -> None:
        self._runs: list[Words] = []

    @property
    def nbytes(self) -> int:
        """The memory that the words take."""
        return sum(r.nbytes for r in self._runs)

    def add(self, words: Words) -> None:
        """Add words, sorted and none of them a member."""
        run = words
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = np.concatenate([self._runs.pop(), run])
            run.sort(kind="stable")  # two sorted runs: a merge
        self._runs.append(run)

    def new_among(self, words: Words) -> Words:
        """The members of a sorted array that are not in the set."""
        for run in self._runs:
            if len(words) == 0:
                break
            place = np.searchsorted(run, words)
            place[place == len(run)] = 0
            words = words[run[place] != words]
        return words
