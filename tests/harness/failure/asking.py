"""What a program needs that makes the calls of a failed run again: the answers in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import frozen

from peeklock.spec.notation.actions import Answer


@frozen
class Said:
    """What a call answered, in words; and, of a fetch, the token."""

    words: str
    token: str = ""


@frozen
class Asking:
    """Makes calls of an adapter; an error is an answer as well."""

    retryable: tuple[str, ...] = ()
    """The names of exceptions that count as a ``RetryableError``."""
    permanent: tuple[str, ...] = ()
    """The names of those that count as a ``PermanentError``."""

    attempt_counts: bool = True
    """A fetch says the attempt count."""

    def __call__(self, store: Any, call: str, *args: object) -> Said:
        """Make a call of the adapter. An exception of another kind is raised as it is."""
        try:
            value = getattr(store, call)(*args)
        except Exception as error:
            names = {kind.__name__ for kind in type(error).__mro__}
            if names & {"RetryableError", *self.retryable}:
                return Said(Answer.RETRYABLE.value)
            if names & {"PermanentError", *self.permanent}:
                return Said(Answer.PERMANENT.value)
            raise
        if call == "cancel":
            return Said(cancelled(value))
        if call != "fetch":
            return Said(Answer.OK.value)
        if value is None:
            return Said(Answer.NOTHING.value)
        return Said(delivered(value.item, value.attempt_count if self.attempt_counts else None), value.token)


ask = Asking()


def delivered(item: str, attempt: int | None) -> str:
    """What a fetch returned, in words."""
    return item if attempt is None else f"{item}, attempt {attempt}"


def cancelled(removed: Iterable[str]) -> str:
    """Which of the items that were to be cancelled had a row."""
    return ", ".join(sorted(removed)) or "none had a row"
