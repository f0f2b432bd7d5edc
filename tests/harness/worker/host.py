"""What the harness is to a worker: the store that it calls, the clock that it waits on, and the handlers it runs.

The adopter writes one function, ``run_worker(host)``, that runs ONE worker: it fetches, settles, and fetches again,
until a wait tells it of a shutdown; then it finishes what it has in hand within its grace, and returns. Everything
that it does, it does by calling the host: nothing here sleeps, and time passes only in ``wait`` and in slow calls.
Texts and integers only go in and out, one answer for each request; so the same can be said in JSON lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from attrs import frozen

Kind: TypeAlias = Literal["result", "application error", "poison"]
Ended: TypeAlias = Literal["result", "application error"]
Counted: TypeAlias = Literal["success", "application error", "infrastructure error", "poison", "uncertain"]


@frozen
class HostDelivery:
    """One item that a fetch returned."""

    item: str
    token: str
    attempt_count: int
    """How often the item was fetched, this time included."""
    has_handler: bool = True
    """Is a handler registered for this item?"""


@frozen
class Completion:
    """What an ack puts on the orchestrator's queue."""

    kind: Kind
    text: str = ""
    """For a result and an application error exactly what ``Woken.text`` said; free for a poison failure."""


@frozen
class Woken:
    """Why a wait is over."""

    now_ms: int
    handler: Ended | None = None
    """How the handler has ended; None while it runs, or where none does. It is told once."""
    text: str = ""
    """What the handler returned, or the text of its error."""
    shutdown: bool = False
    """A shutdown was asked, now or in an earlier wait: fetch nothing more, renew nothing more, be done in the grace."""


class Crashed(BaseException):
    """Raised out of any call: the worker is dead. Let it pass; what it did not write down is forgotten.

    It is no ``Exception``, so that ``except Exception`` lets it pass. The harness then runs a worker anew, or is done.
    """


class Host(Protocol):
    """The store, the clock and the handlers of one worker. Times are integer milliseconds.

    The four calls of the store raise ``adapter.RetryableError`` or ``adapter.PermanentError``, and nothing else but
    ``Crashed``; fetch raises no ``PermanentError``.
    """

    @property
    def now_ms(self) -> int:
        """The time; it passes in ``wait`` and in slow calls only."""
        ...

    def fetch(self, lock_timeout_ms: int) -> HostDelivery | None:
        """Ask the store for an item, locked until now + lock_timeout_ms; None when there is none."""
        ...

    def renew(self, token: str, extend_for_ms: int) -> None:
        """Let the lock end at now + extend_for_ms."""
        ...

    def ack(self, token: str, completion: Completion | None) -> None:
        """Remove the item and enqueue the completion. None is the cancellation ack."""
        ...

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool = False) -> None:
        """Give the item back, fetchable from now + delay_ms."""
        ...

    def start_handler(self, token: str) -> None:
        """Let the handler of the delivery begin. A wait tells when it has ended."""
        ...

    def no_handler(self, token: str) -> None:
        """Say that no handler is registered for the delivery."""
        ...

    def cancel_handler(self, token: str) -> None:
        """Tell the handler to stop. It may still end in any way, or not at all."""
        ...

    def abort_handler(self, token: str) -> None:
        """Stop the handler where it stands."""
        ...

    def wait(self, until_ms: int) -> Woken:
        """Let time pass until then, until the handler ends or until a shutdown is first told, whichever is first.

        Return at once where the handler has ended and that was not told yet, or ``until_ms`` is not after now.
        """
        ...

    def count(self, metric: Counted) -> None:
        """Say which verdict the worker counts, before its next call of any other kind."""
        ...


RunWorker: TypeAlias = Callable[[Host], None]
"""Runs one worker until it is shut down."""
