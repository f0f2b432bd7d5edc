"""What an observer of a worker is told, as it happens. Times are the worker's clock's."""

from collections.abc import Callable
from typing import TypeAlias

from attrs import frozen

from peeklock.impl.effects import Answer, Call
from peeklock.impl.store import Delivery


@frozen
class Called:
    """A store call was made at `asked_ms` and answered at `at_ms`."""

    worker: str
    at_ms: int
    asked_ms: int
    call: Call
    answer: Answer


@frozen
class HandlerStarted:
    """The handler was started for this delivery."""

    worker: str
    at_ms: int
    delivery: Delivery


@frozen
class HandlerCancelled:
    """The handler was signalled to stop; what it returns from now on is dropped."""

    worker: str
    at_ms: int
    token: str


@frozen
class HandlerEnded:
    """The handler ended by itself, with a result or (`failed`) an application error."""

    worker: str
    at_ms: int
    token: str
    payload: str
    failed: bool


@frozen
class HandlerAborted:
    """The handler was stopped where it stood."""

    worker: str
    at_ms: int
    token: str


@frozen
class Counted:
    """The metric `name` went up by one, for the delivery `token`."""

    worker: str
    at_ms: int
    token: str
    name: str


@frozen
class ShutdownRequested:
    """No new fetches from now on; work in hand is dropped at `drop_at_ms`."""

    worker: str
    at_ms: int
    drop_at_ms: int


@frozen
class Dropped:
    """The worker leaves this delivery to its lock without a verdict: it makes no further call with it.

    The shutdown grace was over, the lock ran out while its renewals failed, or the policy says so.
    """

    worker: str
    at_ms: int
    token: str


Event: TypeAlias = (
    Called
    | HandlerStarted
    | HandlerCancelled
    | HandlerEnded
    | HandlerAborted
    | Counted
    | ShutdownRequested
    | Dropped
)
Observer: TypeAlias = Callable[[Event], None]
