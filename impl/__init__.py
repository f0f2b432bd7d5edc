"""The reference implementation: stores, a sans-IO worker, a virtual clock, and fault injection."""

import logging

from peeklock.impl.clock import Clock, RealClock, VirtualClock
from peeklock.impl.context import Verdict
from peeklock.impl.driver import Cancelled, Driver, Handler
from peeklock.impl.effects import (
    Abandon,
    AbortHandler,
    Ack,
    Answer,
    Call,
    Effect,
    Fetch,
    Ok,
    Outcome,
    Refused,
    Renew,
    Reply,
    StartHandler,
    StepHandler,
    Steps,
    Wait,
    perform,
)
from peeklock.impl.errors import PermanentError, RetryableError, StoreError
from peeklock.impl.events import (
    Called,
    Counted,
    Dropped,
    Event,
    HandlerAborted,
    HandlerCancelled,
    HandlerEnded,
    HandlerStarted,
    Observer,
    ShutdownRequested,
)
from peeklock.impl.metrics import Metrics
from peeklock.impl.policy import BEFORE, HARDENED, RETRY, Policy
from peeklock.impl.store import Completion, CompletionKind, Delivery, Row, Store, WorkItem
from peeklock.impl.stores.faults import Fault, FaultyStore, Recorded
from peeklock.impl.stores.memory import MemoryStore
from peeklock.impl.stores.sqlite import SqliteStore
from peeklock.impl.tracing import Tracer
from peeklock.impl.worker import Worker

# What is logged goes where the program says, and nowhere if it says nothing.
logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "BEFORE",
    "HARDENED",
    "RETRY",
    "Abandon",
    "AbortHandler",
    "Ack",
    "Answer",
    "Call",
    "Called",
    "Cancelled",
    "Clock",
    "Completion",
    "CompletionKind",
    "Counted",
    "Delivery",
    "Driver",
    "Dropped",
    "Effect",
    "Event",
    "Fault",
    "FaultyStore",
    "Fetch",
    "Handler",
    "HandlerAborted",
    "HandlerCancelled",
    "HandlerEnded",
    "HandlerStarted",
    "MemoryStore",
    "Metrics",
    "Observer",
    "Ok",
    "Outcome",
    "PermanentError",
    "Policy",
    "RealClock",
    "Recorded",
    "Refused",
    "Renew",
    "Reply",
    "RetryableError",
    "Row",
    "ShutdownRequested",
    "SqliteStore",
    "StartHandler",
    "StepHandler",
    "Steps",
    "Store",
    "StoreError",
    "Tracer",
    "Verdict",
    "VirtualClock",
    "Wait",
    "WorkItem",
    "Worker",
    "perform",
]
