"""One run of a worker by a script."""

from __future__ import annotations

from collections import Counter

from attrs import frozen

from peeklock.harness.host import Crashed, RunWorker
from peeklock.harness.observation import Observation
from peeklock.harness.scene import Finding, Scene, Setup
from peeklock.harness.script import Script
from peeklock.harness.stage import Stage


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


def _live(run_worker: RunWorker, stage: Stage) -> None:
    try:
        run_worker(stage)
    except Crashed:
        if not stage.dead:
            raise RuntimeError("the worker raised Crashed by itself") from None
        return
    except (Exception, SystemExit) as error:
        if not stage.dead:
            stage.raised(error)
        return
    stage.returned()
