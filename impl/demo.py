"""Two deliveries to watch: `python -m peeklock.impl.demo [retried | uncertain]`.

`retried`: the ack fails twice, retryably, and then commits. `uncertain`: the ack commits but its
response is lost, so the next attempt is refused. Without an argument, both. The store is a SQLite
file in a temporary directory, and time is virtual, so the output is always the same.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from peeklock.impl.clock import VirtualClock
from peeklock.impl.effects import Abandon, Ack, Call, Fetch, Ok, Renew
from peeklock.impl.errors import StoreError
from peeklock.impl.events import Called, Counted, Event, HandlerEnded, HandlerStarted
from peeklock.impl.faults import RESPONSE_LOST, RETRYABLE, FaultyStore, Script
from peeklock.impl.sqlite_store import SqliteStore
from peeklock.impl.store import WorkItem
from peeklock.impl.worker import Worker

SCRIPTS: dict[str, Script] = {
    "retried": {"ack": [RETRYABLE, RETRYABLE]},
    "uncertain": {"ack": [RESPONSE_LOST]},
}
USAGE = f"usage: python -m peeklock.impl.demo [{' | '.join(SCRIPTS)}]"


def main(arguments: Sequence[str]) -> int:
    """Run the demo named by the arguments, or all; return the exit code, 2 for a bad argument."""
    if len(arguments) > 1 or not set(arguments) <= set(SCRIPTS):
        print(f"{USAGE} (got: {' '.join(map(repr, arguments))})", file=sys.stderr)
        return 2
    try:
        for name in arguments or SCRIPTS:
            play(name)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has gone: nothing is left to be said, at the end neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def play(name: str) -> None:
    """Run one worker over one item with the faults of this name, and print what happens."""
    print(f"{name}:")
    clock = VirtualClock()
    runs: list[WorkItem] = []

    def charge(item: WorkItem) -> str:
        runs.append(item)
        return f"charged {item.payload}"

    with (
        tempfile.TemporaryDirectory(prefix="peeklock-") as folder,
        closing(SqliteStore(Path(folder) / "queue.db", clock, incarnation="lock")) as store,
    ):
        store.enqueue(WorkItem("item-1", "order-7", "charge", "42 EUR"))
        faulty = FaultyStore(store, SCRIPTS[name])
        worker = Worker(clock, {"charge": charge}, observer=_print_event)
        verdict = worker.run_once(faulty)
        abandons = sum(call.operation == "abandon" for call in faulty.recorded)
        print(f"  verdict: {verdict.value}")
        print(
            f"  handler runs: {len(runs)}, abandons: {abandons},"
            f" rows left: {len(store.rows())}, completions: {len(store.completions())}"
        )


def _print_event(event: Event) -> None:
    match event:
        case Called(call=call, answer=answer):
            said = "ok" if isinstance(answer, Ok) else _error(answer.error)
            if isinstance(answer, Ok) and answer.value is not None:
                said = f"{answer.value.item.id} under {answer.value.token}"
            line = f"{_call(call)} -> {said}"
        case HandlerStarted(delivery=delivery):
            line = f"handler starts on {delivery.item.id}, attempt {delivery.attempt_count}"
        case HandlerEnded(payload=payload):
            line = f"handler ends: {payload}"
        case Counted(name=name):
            line = f"counted {name}"
        case _:
            line = type(event).__name__
    print(f"  {event.at_ms:>4} ms  {line}")


def _error(error: StoreError) -> str:
    return f"{'retryable' if error.retryable else 'permanent'} error: {error.message}"


def _call(call: Call) -> str:
    match call:
        case Fetch():
            return "fetch"
        case Renew(token):
            return f"renew {token}"
        case Ack(token):
            return f"ack {token}"
        case Abandon(token, delay_ms):
            return f"abandon {token} for {delay_ms} ms"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
