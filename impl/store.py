"""What a worker needs of a store: records, the protocol of calls, and checks that stores share."""

import enum
from collections.abc import Iterable
from typing import Protocol

from attrs import field, frozen
from attrs.validators import instance_of

from peeklock.impl.errors import PermanentError

LONGEST_MS = 10**15
"""No delay or lock may be longer (30,000 years), so that no store's integers overflow."""


@frozen
class WorkItem:
    """One piece of work: which instance asked for it, the handler's name, and its input."""

    id: str = field(validator=instance_of(str))
    instance: str = field(validator=instance_of(str))
    name: str = field(validator=instance_of(str))
    payload: str = field(default="", validator=instance_of(str))


@frozen
class Delivery:
    """One successful fetch of an item, named by a lock token that is never used again.

    `attempt_count` includes this delivery. `locked_until_ms` is the store's own view of the lock's
    end; at that very millisecond the lock has expired.
    """

    item: WorkItem
    token: str
    attempt_count: int
    locked_until_ms: int


class CompletionKind(enum.Enum):
    """What became of an item."""

    SUCCESS = "success"
    APPLICATION_ERROR = "application error"
    POISON = "poison"


@frozen
class Completion:
    """What an ack puts on the orchestrator's queue for the item `item_id`."""

    kind: CompletionKind = field(validator=instance_of(CompletionKind))
    item_id: str = field(validator=instance_of(str))
    payload: str = field(default="", validator=instance_of(str))


@frozen
class Row:
    """A queued item as the store keeps it; `token` outlives the lock until the next fetch or abandon."""

    item: WorkItem
    visible_at_ms: int
    attempt_count: int
    token: str | None
    locked_until_ms: int | None


class Store(Protocol):
    """The worker queue and the orchestrator queue, in one place.

    Every call is atomic: it takes effect wholly or not at all. A call that is refused raises
    PermanentError and changes nothing. RetryableError means that the call may be repeated, and says
    nothing about whether it took effect. Durations are integers of milliseconds; one that is
    negative, or a lock shorter than 1 ms, is malformed: PermanentError.
    """

    def enqueue(self, item: WorkItem, delay_ms: int = 0) -> None:
        """Queue the item, fetchable from now + delay_ms, with attempt count 0.

        Refused for an id that is queued or has a completion, so that no item completes twice.
        """
        ...

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        """Lock the oldest visible item that is unlocked or whose lock has expired; None if none is."""
        ...

    def renew(self, token: str, extend_for_ms: int) -> None:
        """Let the lock end at now + extend_for_ms. Refused unless the token is current and unexpired."""
        ...

    def ack(self, token: str, completion: Completion | None) -> None:
        """Remove the item and enqueue the completion, if there is one: both or neither.

        Refused unless the token is current and unexpired, and the completion belongs to the item.
        So a repeated ack is refused when an earlier one took effect.
        """
        ...

    def abandon(self, token: str, delay_ms: int = 0, ignore_attempt: bool = False) -> None:
        """Give the item back, fetchable from now + delay_ms.

        Works with a current token whose lock has expired. With `ignore_attempt` this delivery is
        taken off the attempt count, which never falls below 0.
        """
        ...

    def cancel(self, item_ids: Iterable[str]) -> tuple[str, ...]:
        """Remove these items without completions, locked or not; return the ids that had a row."""
        ...

    def rows(self) -> tuple[Row, ...]:
        """All queued items, oldest first. For inspection; changes nothing."""
        ...

    def completions(self) -> tuple[Completion, ...]:
        """All completions, oldest first. For inspection; changes nothing."""
        ...


def check_ms(operation: str, name: str, value_ms: int, least_ms: int) -> None:
    """PermanentError unless value_ms is an integer from least_ms to LONGEST_MS."""
    whole = isinstance(value_ms, int) and not isinstance(value_ms, bool)
    if not whole or not least_ms <= value_ms <= LONGEST_MS:
        raise PermanentError(
            operation, f"{name} must be an integer from {least_ms} to {LONGEST_MS}, not {value_ms!r}"
        )


def check_belongs(item_id: str, completion: Completion | None) -> None:
    """PermanentError when the completion is for another item than the one to ack."""
    if completion is not None and completion.item_id != item_id:
        raise PermanentError(
            "ack", f"the completion is for item {completion.item_id!r}, the token is for {item_id!r}"
        )


def unique_ids(item_ids: Iterable[str]) -> tuple[str, ...]:
    """The ids without repetitions, in the order given. A single string is not a list of ids."""
    if isinstance(item_ids, str):
        raise PermanentError("cancel", f"a list of ids is needed, not the string {item_ids!r}")
    return tuple(dict.fromkeys(item_ids))
