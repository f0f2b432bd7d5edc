"""One run of a worker by a script."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue

from attrs import frozen

from peeklock.harness.adapter.wrapping import AdapterError, raise_in
from peeklock.harness.monitor.observation import Observation
from peeklock.harness.store.check import subject_of
from peeklock.harness.worker.host import Crashed, RunWorker
from peeklock.harness.worker.script import Script
from peeklock.harness.worker.watch import MOST_SWALLOWED
from peeklock.harness.worker.worker_host import Stage
from peeklock.harness.worker.worker_world import Finding, Scene, Setup

LOOK_UP_S = 0.02
"""How often who waits for a worker looks up, so that it can be interrupted in any thread."""
INTERRUPTS = 25
"""How often a worker that is left behind is told to end."""


@frozen
class Played:
    """What came of one run."""

    finding: Finding | None
    seen: tuple[Observation, ...]
    taken: Counter[str]
    """How often the worker took each action of the specification."""
    has_fetched: bool
    broken: tuple[str, ...]
    """The promises that the run broke although the policy's rules explain it."""


def play(run_worker: RunWorker, script: Script, setup: Setup) -> Played:
    """Run workers, one after another, until the script is over and every item settled, or something is found."""
    scene = Scene(script, setup)
    taken: Counter[str] = Counter()
    born = 0
    while not scene.finished and scene.finding is None:
        born += 1
        stage = Stage(scene, str(born))
        try:
            _live(run_worker, stage)
        except Crashed:
            if not stage.dead:
                raise
        taken.update(stage.belief.taken)
    broken = scene.monitor.broken() if scene.finding is None else ()
    return Played(scene.finding, tuple(scene.seen), taken, scene.fetches_made > 0, broken)


class _Swallowed(BaseException):
    """What came of a worker that cannot be ended."""


def _live(run_worker: RunWorker, stage: Stage) -> None:
    error = _ended(run_worker, stage)
    if isinstance(error, _Swallowed):
        raise AdapterError(
            f"{subject_of(run_worker)}: the worker swallowed Crashed, {MOST_SWALLOWED} times; let it pass: "
            "except Exception, in place of a bare except or except BaseException"
        )
    if isinstance(error, Crashed):
        if not stage.dead:
            raise RuntimeError("the worker raised Crashed by itself") from None
    elif not isinstance(error, Exception | SystemExit | None):
        raise error
    elif not stage.dead:
        if error is None:
            stage.returned()
        else:
            stage.raised(error)


def _ended(run_worker: RunWorker, stage: Stage) -> BaseException | None:
    """Run a worker to its end; what it raised.

    It has a thread of its own: one that swallows whatever is raised in it cannot be ended, but it can be left behind.
    """
    ends: SimpleQueue[BaseException | None] = SimpleQueue()

    def run() -> None:
        try:
            run_worker(stage)
        except BaseException as error:  # handed to the thread that waits for it
            ends.put(error)
        else:
            ends.put(None)

    stage.when_swallowed = lambda: ends.put(_Swallowed())
    thread = threading.Thread(
        target=copy_context().run, args=(run,), name=f"worker {stage.name}", daemon=True
    )
    thread.start()
    try:
        while True:
            with suppress(Empty):
                return ends.get(timeout=LOOK_UP_S)
    except BaseException:
        stage.leave()
        _interrupt(thread)
        raise


def _interrupt(thread: threading.Thread) -> None:
    """End a thread that calls its host no more, if it lets itself be ended."""
    for _ in range(INTERRUPTS):
        if thread.ident is not None and thread.is_alive():
            raise_in(thread.ident, SystemExit)
            thread.join(LOOK_UP_S)
