"""Measures `peeklock trace`: events a second and the most memory, on runs of the reference protocol's shape.

Run it by hand: python tests/bench/bench_traces.py [--events N] [--kind KIND]
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from histories import history

from peeklock.harness.linear.history import Invoke
from peeklock.harness.linear.item_model import StoreCall
from peeklock.harness.trace.calls import begin_line, end_line
from peeklock.harness.trace.file import header_line
from peeklock.spec.variants.capabilities import STANDARD

WORKERS = 8


def workers(events: int, clock: bool) -> Iterator[str]:
    """Workers in turn, each with an item of its own, every third ack repeated once."""
    records = ["handlers", "answers", "stops", *(["clock"] if clock else [])]
    yield json.dumps({"peeklock_trace": 1, "records": records, "source": "made for measuring"})
    made, number, now_ms = 0, 0, 0
    while made < events:
        steps = [list(_life(number + k, f"w{k}")) for k in range(WORKERS)]
        number += WORKERS
        for turn in range(max(map(len, steps))):
            for life in steps:
                if turn < len(life) and made < events:
                    made, now_ms = made + 1, now_ms + 1
                    yield json.dumps({**life[turn], "t_ms": now_ms})


def _life(number: int, worker: str) -> Iterator[dict[str, object]]:
    item, token = f"i{number}", f"t{number}"
    of = {"worker": worker, "token": token}
    yield {"call": "enqueue", "item": item, "answer": "ok", "lasts_ms": 0}
    yield {"call": "fetch", **of, "item": item, "attempt": 1, "answer": "ok", "lasts_ms": 30_000}
    yield {"event": "the handler starts", **of}
    yield {"call": "renew", **of, "answer": "ok", "lasts_ms": 30_000}
    yield {"event": "the handler ends with a result", **of}
    if number % 3 == 0:
        yield {"call": "ack", **of, "answer": "retryable error"}
    yield {"call": "ack", **of, "answer": "ok"}


def concurrent(events: int) -> Iterator[str]:
    """A store alone: calls of all workers overlap, a third of the fetches find nothing, and tokens are outlived."""
    yield header_line(STANDARD, "made for measuring")
    numbers = itertools.count(1)
    begun: dict[object, tuple[int, StoreCall]] = {}
    for event in history(events // 2, WORKERS):
        if isinstance(event, Invoke):
            begun[event.key] = number, made = next(numbers), event.what
            yield begin_line(number, made)
        else:
            number, made = begun.pop(event.key)
            yield end_line(number, made, event.result, event.result.until_ms)


def untimed(events: int) -> Iterator[str]:
    """Workers without a clock."""
    return workers(events, clock=False)


def timed(events: int) -> Iterator[str]:
    """Workers with a clock."""
    return workers(events, clock=True)


KINDS: dict[str, Callable[[int], Iterator[str]]] = {
    "workers": untimed,
    "workers with a clock": timed,
    "concurrent calls": concurrent,
}


def write(kind: str, events: int, path: Path) -> None:
    """Write a run of so many events."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in KINDS[kind](events))


def measure(events: int, kind: str, folder: Path) -> dict[str, float]:
    """Judge a run of so many events in a process of its own."""
    path, said = folder / "run.jsonl", folder / "said.json"
    # Written by another process: a child's most memory is at least that of the process that began it.
    writer = multiprocessing.get_context("spawn").Process(target=write, args=(kind, events, path))
    writer.start()
    writer.join()
    command = [sys.executable, "-m", "peeklock.cli.main", "trace", str(path), "--json"]
    with said.open("w") as output:
        process = subprocess.Popen(command, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, said.read_text()
    assert json.loads(said.read_text())["observations"] == events
    seconds = usage.ru_utime + usage.ru_stime
    return {"seconds": seconds, "a second": events / seconds, "MiB": usage.ru_maxrss / 1024}


def main() -> None:
    """Print what was measured: the processor's time, which other processes do not prolong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--kind", choices=KINDS, action="append")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kind or KINDS:
            for size in (options.events // 10, options.events):
                found = measure(size, kind, Path(folder))
                print(
                    f"{kind}: {size:>9,} events in {found['seconds']:6.1f} s, "
                    f"{found['a second']:>8,.0f} a second, {found['MiB']:.0f} MiB at most",
                    flush=True,
                )


if __name__ == "__main__":
    main()
