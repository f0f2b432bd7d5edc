"""What a worker asks for, and what it may be told.

A worker does nothing itself: it yields one of these effects and is sent the answer.

| effect | answer |
|---|---|
| `Fetch`, `Renew`, `Ack`, `Abandon` | `Ok` or `Refused` |
| `StepHandler` | an `Outcome` when the handler has ended, else `None` |
| `Wait`, `StartHandler`, `AbortHandler` | `None` |

`Wait` and `StepHandler` may be answered early, for example when a shutdown was requested: the
worker looks at its clock after every answer.
"""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

from attrs import frozen

from peeklock.impl.errors import StoreError
from peeklock.impl.store import Completion, Delivery, Store


@frozen
class Fetch:
    """Call store.fetch."""

    lock_timeout_ms: int


@frozen
class Renew:
    """Call store.renew."""

    token: str
    extend_for_ms: int


@frozen
class Ack:
    """Call store.ack; without a completion it is a cancellation ack."""

    token: str
    completion: Completion | None


@frozen
class Abandon:
    """Call store.abandon."""

    token: str
    delay_ms: int
    ignore_attempt: bool


@frozen
class Wait:
    """Let time pass until `until_ms` on the worker's clock."""

    until_ms: int


@frozen
class StartHandler:
    """Make the handler of this delivery ready; it runs in the steps that follow."""

    delivery: Delivery


@frozen
class StepHandler:
    """Let the handler run until it ends, but come back by `until_ms` if that can be arranged.

    `cancelled` says that it should stop: signal it, once.
    """

    token: str
    until_ms: int
    cancelled: bool


@frozen
class AbortHandler:
    """Stop the handler where it stands. It gets no further step."""

    token: str


@frozen
class Ok:
    """The call took effect; `value` is what fetch returned, None for the other calls."""

    value: Delivery | None = None


@frozen
class Refused:
    """The call raised this error."""

    error: StoreError


@frozen
class Outcome:
    """How the handler ended: a result, or an application error with its text."""

    payload: str
    failed: bool = False


Call: TypeAlias = Fetch | Renew | Ack | Abandon
Answer: TypeAlias = Ok | Refused
Effect: TypeAlias = Call | Wait | StartHandler | StepHandler | AbortHandler
Reply: TypeAlias = Answer | Outcome | None

T = TypeVar("T")
Steps: TypeAlias = Generator[Effect, Reply, T]
"""A part of a worker: yields effects, is sent their answers, returns a T."""


def perform(store: Store, call: Call) -> Answer:
    """Make the call and turn what it returns, or the StoreError that it raises, into an answer."""
    try:
        match call:
            case Fetch(lock_timeout_ms):
                return Ok(store.fetch(lock_timeout_ms))
            case Renew(token, extend_for_ms):
                store.renew(token, extend_for_ms)
            case Ack(token, completion):
                store.ack(token, completion)
            case Abandon(token, delay_ms, ignore_attempt):
                store.abandon(token, delay_ms, ignore_attempt)
    except StoreError as error:
        return Refused(error)
    return Ok()
