"""Comparing two runs of the same program: did the store answer the same?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from peeklock.harness.monitor.observation import Observation


def parted_at(one: Sequence[Observation], other: Sequence[Observation]) -> int | None:
    """The place of the first observation that differs, but for the texts of tokens and what the clock said.

    None where all are the same.
    """
    pairs = zip_longest(map(_plain, one), map(_plain, other))
    return next((n for n, (a, b) in enumerate(pairs) if a != b), None)


def _plain(seen: Observation) -> tuple[object, ...]:
    return (seen.call, seen.worker, seen.item, seen.answer, seen.effect, seen.attempt)
