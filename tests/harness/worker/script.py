"""What happens to a worker under check: a script, as data, that depends on the model only and can be played again.

The faults of a delivery are written at the delivery, in the order in which the worker meets it; when the script is
over, nothing goes wrong any more. So the same script means the same run for the same worker.
"""

from __future__ import annotations

import enum
import json
from typing import Any, Literal, TypeAlias

from attrs import Attribute, fields, frozen, has

from peeklock.spec.reading import timed_store

Answers: TypeAlias = Literal["none", "retryable", "response lost", "permanent"]
Rival: TypeAlias = Literal["none", "completes", "crashes"]


@frozen
class Fault:
    """How one call goes wrong."""

    kind: Answers = "none"
    """A retryable error before any effect, one after the effect, or a spurious permanent error."""
    takes_ms: int = 0
    """How long the call takes; what it does it does at the end."""

    @property
    def ways(self) -> tuple[timed_store.Fault, ...]:
        """How the store fails, the first that can happen: where nothing takes effect, no response of it is lost."""
        kinds = timed_store.Fault
        return {
            "none": (kinds.NONE,),
            "retryable": (kinds.BEFORE_EFFECT,),
            "response lost": (kinds.AFTER_EFFECT, kinds.BEFORE_EFFECT),
            "permanent": (kinds.SPURIOUS, kinds.NONE),
        }[self.kind]


OK = Fault()
RETRYABLE = Fault("retryable")
RESPONSE_LOST = Fault("response lost")
PERMANENT = Fault("permanent")


@frozen
class DeliveryPlan:
    """What happens to one delivery that the worker gets. Times count from the fetch, where nothing else is said."""

    has_handler: bool = True
    takes_ms: int = 0
    """How long the handler runs."""
    fails: bool = False
    """The handler ends with an application error."""
    stops_ms: int | None = 0
    """How long the handler goes on once it was told to stop; None where only an abort ends it."""
    acks: tuple[Fault, ...] = ()
    """What happens to the first, second, … completion ack."""
    renewals: tuple[Fault, ...] = ()
    cancellation_ack: Fault = OK
    abandon: Fault = OK
    cancelled_ms: int | None = None
    """When the orchestrator deletes the item."""
    shutdown_ms: int | None = None
    """When the worker is asked to shut down; it is told in its next wait."""
    crash_at: int | None = None
    """The worker dies in this call, the fetch's successor being number 1; counts are not numbered."""
    rival: Rival = "none"
    """What another worker does with the item when this delivery's lock has expired."""


@frozen
class ItemPlan:
    """One work item, enqueued at the beginning."""

    delay_ms: int = 0
    left: int | None = None
    """It was delivered so often that only so many deliveries are left before it is poison; None for a new one."""


@frozen
class Script:
    """A whole run."""

    items: tuple[ItemPlan, ...] = (ItemPlan(),)
    deliveries: tuple[DeliveryPlan, ...] = ()
    fetches: tuple[Fault, ...] = ()
    """What happens to the first, second, … fetch that would find something."""


def as_source(value: Any, indent: str = "") -> str:
    """A script, or another record, as a Python expression, with what has its default left out."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}({as_source(value.value)})"
    if isinstance(value, tuple):
        opens, closes = "(", ")"
        inner = [as_source(v, indent + "    ") for v in value]
        line = f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
    elif has(type(value)):
        opens, closes = f"{type(value).__name__}(", ")"
        given = [(f.name, getattr(value, f.name)) for f in fields(type(value)) if _is_given(value, f)]
        inner = [f"{name}={as_source(v, indent + '    ')}" for name, v in given]
        line = f"{opens}{', '.join(inner)})"
    else:
        return json.dumps(value) if isinstance(value, str) else repr(value)
    if len(indent) + len(line) <= MOST_COLUMNS and "\n" not in line:
        return line
    return f"{opens}\n" + "".join(f"{indent}    {v},\n" for v in inner) + indent + closes


def _is_given(value: Any, one: Attribute[Any]) -> bool:
    return bool(getattr(value, one.name) != one.default)


MOST_COLUMNS = 90
