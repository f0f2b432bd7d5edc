"""A store of Python in a process of its own: its adapter as a program on the wire, at a place that others share."""

from __future__ import annotations

import base64
import importlib
import json
import pickle
import sys
from collections.abc import Callable
from typing import Any

from attrs import frozen

from peeklock.harness.adapter.wrapping import AdapterError, Guarded, Unwatched, check_adapter
from peeklock.harness.wire.format import VERSION
from peeklock.spec.notation.actions import Answer
from peeklock.spec.variants.capabilities import Capabilities


@frozen
class Served:
    """What a process is told to serve."""

    open_store: Callable[[str], Any]
    """Makes an adapter of the store at a place."""
    capabilities: Capabilities
    retryable: tuple[type[Exception], ...] = ()
    permanent: tuple[type[Exception], ...] = ()


def command_of(served: Served) -> list[str]:
    """The program that serves it; ``AdapterError`` for a function that another process cannot be told of."""
    name = f"{served.open_store.__module__}.{served.open_store.__qualname__}"
    try:
        packed = pickle.dumps((sys.path, pickle.dumps(served)))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AdapterError(
            f"another process cannot be told of {name}: {error}; allowed: functions and classes at the top of a "
            "module that can be imported"
        ) from None
    return [
        sys.executable,
        "-m",
        "peeklock.harness.wire.serving",
        name,
        base64.b64encode(packed).decode("ascii"),
    ]


def serve(packed: str) -> None:
    """Answer the requests on standard input until it ends."""
    sys.path[:], inner = pickle.loads(base64.b64decode(packed))
    served: Served = pickle.loads(inner)
    store: Guarded | None = None
    try:
        sys.stdin.readline()
        _say({"peeklock": VERSION, "name": "a process", "shared_place": True})
        for line in sys.stdin:
            request = json.loads(line)
            number, name = request.pop("id"), request.pop("call")
            if name == "new":
                adapter = served.open_store(request["place"])
                check_adapter(adapter, served.capabilities)
                store = Guarded(adapter, served.capabilities, Unwatched(), served.retryable, served.permanent)
                _say({"id": number, "ok": None})
            else:
                assert store is not None
                _say({"id": number, **_answer(store, f"request {number}", name, request)})
    except AdapterError as error:
        sys.exit(str(error))


def _answer(store: Guarded, where: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name == "close":
        close = getattr(store.adapter, "close", None)
        if close is not None:
            close()
        return {"ok": None}
    values = tuple(arguments.values())
    if name == "advance":
        store.plain(where, name, *values)
        return {"ok": None}
    if name == "completions":
        return {"ok": [{"item": i, "completion": c} for i, c in store.plain(where, name)]}
    told = store.call(where, name, *values)
    return _said(name, told.answer, told.value)


def _said(name: str, answer: Answer, value: Any) -> dict[str, Any]:
    if answer is not Answer.OK:
        return {"error": "retryable" if answer is Answer.RETRYABLE else "permanent"}
    if name == "cancel":
        return {"ok": list(value)}
    if value is None:
        return {"ok": None}
    return {"ok": {"item": value.item, "token": value.token, "attempt_count": value.attempt_count}}


def _say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    # Under its own name, so that what was packed is unpacked as the same records.
    importlib.import_module("peeklock.harness.wire.serving").serve(sys.argv[2])
