"""The harness: hold what a real store or worker was seen to do against the specification.

What a test of a store or a worker needs can be imported from here. It is loaded when it is first asked for, so that
the pytest plugin, which is in this package, costs nothing where it is not used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peeklock.harness.adapter import Delivery, PermanentError, RetryableError, StoreAdapter
    from peeklock.harness.concurrent import check_store_by_processes, check_store_concurrently
    from peeklock.harness.host import Completion, Crashed, Host
    from peeklock.harness.recorder import recording
    from peeklock.harness.report import ContractViolation, Inconclusive, Report
    from peeklock.harness.schedule import Tolerances
    from peeklock.harness.stores import check_store
    from peeklock.harness.workers import check_worker, replay_worker
    from peeklock.harness.wrapping import AdapterError
    from peeklock.spec.capabilities import (
        Capabilities,
        CompletionWrite,
        Expired,
        Order,
        Renewal,
        UnknownToken,
    )

_MODULES = (
    "peeklock.harness.adapter",
    "peeklock.spec.capabilities",
    "peeklock.harness.host",
    "peeklock.harness.report",
    "peeklock.harness.wrapping",
    "peeklock.harness.recorder",
    "peeklock.harness.schedule",
    "peeklock.harness.stores",
    "peeklock.harness.workers",
    "peeklock.harness.concurrent",
)
"""Where it is, the quickest to load first."""

__all__ = [
    "AdapterError",
    "Capabilities",
    "Completion",
    "CompletionWrite",
    "ContractViolation",
    "Crashed",
    "Delivery",
    "Expired",
    "Host",
    "Inconclusive",
    "Order",
    "PermanentError",
    "Renewal",
    "Report",
    "RetryableError",
    "StoreAdapter",
    "Tolerances",
    "UnknownToken",
    "check_store",
    "check_store_by_processes",
    "check_store_concurrently",
    "check_worker",
    "recording",
    "replay_worker",
]

if not TYPE_CHECKING:  # else a name that is not here would be of any type

    def __getattr__(name: str) -> object:
        if name in __all__:
            for module in map(import_module, _MODULES):
                if hasattr(module, name):
                    return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
