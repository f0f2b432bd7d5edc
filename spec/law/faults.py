"""The fault classes: what may go wrong, each to be switched on or off in a check."""

from __future__ import annotations

from attrs import frozen

from peeklock.spec.notation.terms import BOOL, Term, setting


@frozen
class FaultClass:
    """A kind of fault. A verdict holds under the classes that were switched on."""

    name: str
    sentence: str


FAULTS = (
    FaultClass("ack-retryable", "an ack answers a retryable error and has no effect"),
    FaultClass("ack-permanent", "an ack that could have succeeded answers a permanent error (spurious)"),
    FaultClass(
        "response-lost",
        "an ack takes effect and answers a retryable error; so does a renewal or an abandon "
        "where its own class of faults is on too",
    ),
    FaultClass("renewal-retryable", "a renewal answers a retryable error"),
    FaultClass(
        "renewal-permanent", "a renewal that could have succeeded answers a permanent error (spurious)"
    ),
    FaultClass("abandon-fails", "an abandon answers an error, retryable or permanent, and has no effect"),
    FaultClass("fetch-lost", "a fetch fails, before or after it took effect; then nobody knows the token"),
    FaultClass(
        "expiry", "a lock runs out although its worker renews it; a lock that nobody renews always may"
    ),
    FaultClass("crash", "a worker crashes and forgets everything; the row stays locked"),
    FaultClass("shutdown", "a runtime shuts down; its grace can cut off work in hand"),
    FaultClass("cancel", "the orchestrator deletes a row, queued or locked"),
)
"""The classes that a check switches on by default: all that the protocol claims to stand."""

DISHONEST = FaultClass(
    "dishonest-permanent",
    "an ack takes effect and answers a permanent error: outside what the protocol claims to stand",
)
KNOWN_FAULTS = (*FAULTS, DISHONEST)


def fault(name: str) -> Term:
    """True where the class is switched on; ``KeyError`` for a class that does not exist."""
    if name not in {f.name for f in KNOWN_FAULTS}:
        raise KeyError(name)
    return setting(f"fault {name}", BOOL)


FIFO = setting("fifo", BOOL)
"""The store hands out the oldest item first. Off in a check: any order then covers this one."""
