"""A store that fails on purpose: by script or by chance, before or after the call took effect."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar

from attrs import field, frozen
from attrs.validators import instance_of

from peeklock.impl.errors import PermanentError, RetryableError, StoreError
from peeklock.impl.store import Completion, Delivery, Row, Store, WorkItem

T = TypeVar("T")


@frozen
class Fault:
    """What a call answers instead of its own answer, and whether it is made all the same."""

    retryable: bool = field(validator=instance_of(bool))
    after_effect: bool = field(validator=instance_of(bool))


RETRYABLE = Fault(retryable=True, after_effect=False)
"""Nothing took effect, and the call may be repeated."""

RESPONSE_LOST = Fault(retryable=True, after_effect=True)
"""The call was made; the caller cannot tell this from RETRYABLE."""

PERMANENT = Fault(retryable=False, after_effect=False)
"""A spurious refusal of a call that could have succeeded."""

DISHONEST = Fault(retryable=False, after_effect=True)
"""A refusal of a call that took effect: no store may do this."""

Script: TypeAlias = Mapping[str, Sequence[Fault | None]]
"""By operation, the faults of its first, second, … call. None, and the end of the list: no fault."""

AnswerKind: TypeAlias = Literal["ok", "retryable", "permanent"]


@frozen
class Recorded:
    """A call that was made of a FaultyStore, and what really became of it.

    `took_effect` is true when the store beneath answered ok, whatever the caller was told.
    """

    operation: str
    args: tuple[object, ...]
    answer: AnswerKind
    took_effect: bool


class FaultyStore:
    """Passes calls on to a store, except where the script or chance wants a fault, and records them.

    The script goes first. Where it names no fault, each call fails with probability `chance`, by one
    of `kinds`; `seed` decides which. `rows` and `completions` neither fail nor are recorded.
    """

    def __init__(
        self,
        store: Store,
        script: Script | None = None,
        *,
        chance: float = 0.0,
        seed: int = 0,
        kinds: Sequence[Fault] = (RETRYABLE, RESPONSE_LOST),
    ) -> None:
        self.recorded: list[Recorded] = []
        self._store = store
        self._left = {operation: list(faults) for operation, faults in (script or {}).items()}
        self._chance = chance
        self._random = random.Random(seed)
        self._kinds = tuple(kinds)

    def enqueue(self, item: WorkItem, delay_ms: int = 0) -> None:
        """See Store.enqueue."""
        self._call("enqueue", (item, delay_ms), lambda: self._store.enqueue(item, delay_ms))

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        """See Store.fetch."""
        return self._call("fetch", (lock_timeout_ms,), lambda: self._store.fetch(lock_timeout_ms))

    def renew(self, token: str, extend_for_ms: int) -> None:
        """See Store.renew."""
        self._call("renew", (token, extend_for_ms), lambda: self._store.renew(token, extend_for_ms))

    def ack(self, token: str, completion: Completion | None) -> None:
        """See Store.ack."""
        self._call("ack", (token, completion), lambda: self._store.ack(token, completion))

    def abandon(self, token: str, delay_ms: int = 0, ignore_attempt: bool = False) -> None:
        """See Store.abandon."""
        self._call(
            "abandon",
            (token, delay_ms, ignore_attempt),
            lambda: self._store.abandon(token, delay_ms, ignore_attempt),
        )

    def cancel(self, item_ids: Iterable[str]) -> tuple[str, ...]:
        """See Store.cancel."""
        ids = tuple(item_ids)
        return self._call("cancel", (ids,), lambda: self._store.cancel(ids))

    def rows(self) -> tuple[Row, ...]:
        """See Store.rows."""
        return self._store.rows()

    def completions(self) -> tuple[Completion, ...]:
        """See Store.completions."""
        return self._store.completions()

    def _call(self, operation: str, args: tuple[object, ...], made: Callable[[], T]) -> T:
        fault = self._next_fault(operation)
        took_effect = False
        try:
            if fault is None:
                result = made()
                self._record(operation, args, "ok", True)
                return result
            took_effect = fault.after_effect and _succeeds(made)
            raise _error(operation, fault)
        except StoreError as error:
            self._record(operation, args, "retryable" if error.retryable else "permanent", took_effect)
            raise

    def _record(
        self, operation: str, args: tuple[object, ...], answer: AnswerKind, took_effect: bool
    ) -> None:
        self.recorded.append(Recorded(operation, args, answer, took_effect))

    def _next_fault(self, operation: str) -> Fault | None:
        left = self._left.get(operation)
        scripted = left.pop(0) if left else None
        if scripted is not None:
            return scripted
        return self._random.choice(self._kinds) if self._random.random() < self._chance else None


def _succeeds(made: Callable[[], object]) -> bool:
    try:
        made()
    except StoreError:
        return False  # the lost response was a refusal
    return True


def _error(operation: str, fault: Fault) -> StoreError:
    if fault.retryable:
        return RetryableError(operation, "injected: busy, or the response was lost")
    return PermanentError(operation, "injected: refused")
