"""The options that the checks share: which values they may have."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import hypothesis

from peeklock.harness.adapter.wrapping import AdapterError

MOST_AT_ONCE = 64
"""So many threads or processes may use one store in a check."""


def check_options(**given: object) -> None:
    """``AdapterError`` for an option of a check that has a value which it cannot have; None leaves one out."""
    for name, value in given.items():
        is_allowed, allowed = _ALLOWED[name]
        if value is not None and not is_allowed(value):
            raise AdapterError(f"{name} is {value!r}; allowed: {allowed}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_whole(value) or isinstance(value, float)


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike) and "\0" not in os.fspath(value)


_Rule = tuple[Callable[[Any], bool], str]
_LIMIT: _Rule = (lambda s: _is_number(s) and 0 < s < math.inf, "seconds, more than 0")
_BUDGET: _Rule = (lambda s: _is_number(s) and s >= 0, "seconds, 0 or more")
_AT_ONCE: _Rule = (lambda n: _is_whole(n) and 2 <= n <= MOST_AT_ONCE, f"2 to {MOST_AT_ONCE}")
_ALLOWED: dict[str, _Rule] = {
    "settings": (lambda s: isinstance(s, hypothesis.settings), "hypothesis.settings(...)"),
    "seed": (_is_whole, "a whole number"),
    "call_limit_s": _LIMIT,
    "run_limit_s": _LIMIT,
    "budget_s": _BUDGET,
    "seconds": _BUDGET,
    "rounds": (lambda n: _is_whole(n) and n > 0, "a whole number, 1 or more"),
    "threads": _AT_ONCE,
    "processes": _AT_ONCE,
    "name": (lambda n: isinstance(n, str), "a text"),
    "artifacts": (_is_path, "the path of a folder"),
}
