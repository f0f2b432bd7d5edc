"""Measures `peeklock trace`: events a second and the most memory, on runs of the reference protocol's shape.

Run it by hand: python tests/bench/bench_traces.py [--events N]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

WORKERS = 8


def lines(events: int, clock: bool) -> Iterator[dict[str, object]]:
    """A run of so many events: workers in turn, each with an item of its own, every third ack repeated once."""
    records = ["handlers", "answers", "stops", *(["clock"] if clock else [])]
    yield {"peeklock_trace": 1, "records": records, "source": "made for measuring"}
    made, number, now_ms = 0, 0, 0
    while made < events:
        steps = [list(_life(number + k, f"w{k}")) for k in range(WORKERS)]
        number += WORKERS
        for turn in range(max(map(len, steps))):
            for life in steps:
                if turn < len(life) and made < events:
                    made, now_ms = made + 1, now_ms + 1
                    yield {**life[turn], "t_ms": now_ms}


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


def measure(events: int, clock: bool, folder: Path) -> dict[str, float]:
    """Judge a run of so many events in a process of its own."""
    path = folder / "run.jsonl"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines(events, clock))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "peeklock.cli.main", "trace", str(path), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["observations"] == events
    return {
        "events": events,
        "seconds": seconds,
        "a second": events / seconds,
        "MiB": max(before.ru_maxrss, after.ru_maxrss) / 1024,
    }


def main() -> None:
    """Print what was measured."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--events", type=int, default=1_000_000)
    events = options.parse_args().events
    with tempfile.TemporaryDirectory() as folder:
        for clock in (False, True):
            for size in (events // 10, events):
                found = measure(size, clock, Path(folder))
                print(
                    f"{'with' if clock else 'without'} a clock: {size:>9,} events in {found['seconds']:6.1f} s, "
                    f"{found['a second']:>8,.0f} a second, {found['MiB']:.0f} MiB at most",
                    flush=True,
                )


if __name__ == "__main__":
    main()
