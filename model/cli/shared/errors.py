"""Bad input, said in one line."""

from __future__ import annotations


class UsageError(Exception):
    """What is wrong, where, and what is allowed, in one line. The command ends with exit code 2."""


def chosen_names(text: str, known: tuple[str, ...], what: str) -> tuple[str, ...]:
    """The names in a comma-separated list; ``UsageError`` for one that is not known."""
    names = tuple(n.strip() for n in text.split(",") if n.strip())
    if not names:
        raise UsageError(f"no {what} given; allowed: {', '.join(known)}")
    for name in names:
        if name not in known:
            raise UsageError(f"unknown {what} {name!r}; allowed: {', '.join(known)}")
    return names
