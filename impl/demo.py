"""Two deliveries to watch: `python -m peeklock.impl.demo [retried | uncertain] [--trace FILE]`.

`retried`: the ack fails twice, retryably, and then commits. `uncertain`: the ack commits but its
response is lost, so the next attempt is refused. Without an argument, both. The store is a SQLite
file in a temporary directory, and time is virtual, so the output is always the same. With `--trace`,
one of them is written to a file as well, for `peeklock trace`.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TextIO

from peeklock.impl.clock import VirtualClock
from peeklock.impl.effects import Abandon, Ack, Call, Fetch, Ok, Renew
from peeklock.impl.errors import StoreError
from peeklock.impl.events import Called, Counted, Event, HandlerEnded, HandlerStarted
from peeklock.impl.store import WorkItem
from peeklock.impl.stores.faults import RESPONSE_LOST, RETRYABLE, FaultyStore, Script
from peeklock.impl.stores.sqlite import SqliteStore
from peeklock.impl.tracing import Tracer
from peeklock.impl.worker import Worker

SCRIPTS: dict[str, Script] = {
    "retried": {"ack": [RETRYABLE, RETRYABLE]},
    "uncertain": {"ack": [RESPONSE_LOST]},
}
USAGE = f"usage: python -m peeklock.impl.demo [{' | '.join(SCRIPTS)}] [--trace FILE, of one of them]"


def main(arguments: Sequence[str]) -> int:
    """Run the demo named by the arguments, or all; return the exit code, 2 for a bad argument."""
    match list(arguments):
        case []:
            names, path = list(SCRIPTS), os.devnull
        case [name] if name in SCRIPTS:
            names, path = [name], os.devnull
        case [name, "--trace", path] if name in SCRIPTS:
            names = [name]
        case _:
            print(f"{USAGE} (got: {' '.join(map(repr, arguments))})", file=sys.stderr)
            return 2
    try:
        with open(path, "w", encoding="utf-8") as trace:
            for name in names:
                play(name, trace)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has gone: nothing is left to be said, at the end neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"{path}: cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def play(name: str, trace: TextIO) -> None:
    """Run one worker over one item with the faults of this name, and print what happens, and trace it."""
    print(f"{name}:")
    clock = VirtualClock()
    tracer = Tracer(lambda line: print(line, file=trace), handlers=("charge",))
    tracer.begin(source=f"the demo of the reference implementation: {name}")
    runs: list[WorkItem] = []

    def observe(event: Event) -> None:
        _print_event(event)
        tracer(event)

    def charge(item: WorkItem) -> str:
        runs.append(item)
        return f"charged {item.payload}"

    with (
        tempfile.TemporaryDirectory(prefix="peeklock-") as folder,
        closing(SqliteStore(Path(folder) / "queue.db", clock, incarnation="lock")) as store,
    ):
        store.enqueue(WorkItem("item-1", "order-7", "charge", "42 EUR"))
        tracer.enqueued("item-1", clock.now_ms())
        faulty = FaultyStore(store, SCRIPTS[name])
        worker = Worker(clock, {"charge": charge}, observer=observe)
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
