"""The harness: hold what a real store or worker was seen to do against the specification.

What a test of a store or a worker needs can be imported from here. It is loaded when it is first asked for, so that
the pytest plugin, which is in this package, costs nothing where it is not used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peeklock.harness.adapter.interface import Delivery, PermanentError, RetryableError, StoreAdapter
    from peeklock.harness.adapter.wrapping import AdapterError
    from peeklock.harness.concurrent.check import check_store_by_processes, check_store_concurrently
    from peeklock.harness.failure.report import ContractViolation, Inconclusive, Report
    from peeklock.harness.store.check import check_store
    from peeklock.harness.trace.recorder import recording
    from peeklock.harness.worker.check import check_worker, replay_worker
    from peeklock.harness.worker.host import Completion, Crashed, Host
    from peeklock.harness.worker.schedule import Tolerances
    from peeklock.spec.variants.capabilities import (
        Capabilities,
        CompletionWrite,
        Expired,
        Order,
        Renewal,
        UnknownToken,
    )

_MODULES = (
    "peeklock.harness.adapter.interface",
    "peeklock.spec.variants.capabilities",
    "peeklock.harness.worker.host",
    "peeklock.harness.failure.report",
    "peeklock.harness.adapter.wrapping",
    "peeklock.harness.trace.recorder",
    "peeklock.harness.worker.schedule",
    "peeklock.harness.store.check",
    "peeklock.harness.worker.check",
    "peeklock.harness.concurrent.check",
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
