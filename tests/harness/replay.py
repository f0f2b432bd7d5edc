"""Comparing two runs of the same program: did the store answer the same?"""

from __future__ import annotations

from collections.abc import Iterable

from peeklock.harness.observation import Observation


def went_the_same_way(one: Iterable[Observation], other: Iterable[Observation]) -> bool:
    """Was the same seen in both, but for the texts of tokens and what the clock said?"""
    return list(map(_plain, one)) == list(map(_plain, other))


def _plain(seen: Observation) -> tuple[object, ...]:
    return (seen.call, seen.worker, seen.item, seen.answer, seen.effect, seen.attempt)
