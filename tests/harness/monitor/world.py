"""What a run that was seen may be in: a state of the specification, and what was learnt and is still due."""

from __future__ import annotations

from attrs import evolve, frozen

from peeklock.harness.monitor.observation import Observation
from peeklock.spec.law.state import Result, working_on
from peeklock.spec.notation.actions import ABANDONS, Answer, Call, Event, Metric, Timer
from peeklock.spec.reading.evaluate import PLACE, State


@frozen
class Scope:
    """What of a run is recorded. What is not may happen unseen."""

    clock: bool = False
    """Every observation has the time of the store's one clock: timers run out exactly when they are due."""
    counts: bool = False
    """Verdicts that workers count are recorded."""
    handlers: bool = True
    """The beginning and the end of handlers are recorded."""
    answers: bool = True
    """Every answer that is an error is recorded."""
    stops: bool = False
    """The end of a cancelled handler, crashes and shutdowns are recorded."""


CALLS_AND_HANDLERS = Scope()
STARTS_TIMER = (Call.ENQUEUE, Call.FETCH, Call.RENEW, *ABANDONS)
"""The calls of which a monitor with a clock must know how long what they start lasts."""


@frozen(cache_hash=True)
class Core:
    """A world without its times. Workers, items and tokens are numbers: what can follow does not depend on names."""

    state: State = ((), ())
    tokens: frozenset[tuple[int, int, int]] = frozenset()
    """What each token seen is: (its number, item, which of the item's tokens)."""
    owed: frozenset[tuple[int, Call, Answer]] = frozenset()
    """Answers that a worker has had and that were not seen yet."""
    said: frozenset[tuple[int, Metric]] = frozenset()
    """Verdicts that a worker has counted and that were not seen yet."""
    broken: frozenset[str] = frozenset()
    """The promises that were broken on the way here."""


@frozen
class Deadline:
    """When a timer of an item runs out: not before ``earliest_ms``, and not after ``latest_ms``."""

    item: int
    timer: Timer
    earliest_ms: int
    latest_ms: int


@frozen
class World:
    """One state that explains what was seen."""

    core: Core = Core()
    deadlines: tuple[Deadline, ...] = ()
    """When each item's timer runs out; only where a clock is watched."""

    @property
    def state(self) -> State:
        """The state of the specification."""
        return self.core.state


@frozen(cache_hash=True)
class Sight:
    """What was seen, with numbers for names."""

    call: Call | None
    event: Event | None
    counts: Metric | None
    worker: int | None
    item: int | None
    token: int | None
    answer: Answer | None
    effect: bool | None
    attempt: int | None
    completions: tuple[Result, ...]
    names_token: bool
    """A token was seen, known or not."""


@frozen
class Follows:
    """A world that can follow, and what it means for the times."""

    core: Core
    timer: Timer | None = None
    prolongs: bool = False
    item: int = 0
    action: str = ""


class Violation(Exception):
    """Something was seen that no state of the specification explains."""

    def __init__(
        self,
        seen: Observation,
        before: tuple[World, ...],
        allowed: tuple[str, ...],
        reason: str,
        promises: tuple[str, ...] = (),
        told: tuple[tuple[str, ...], ...] = (),
        older: str | None = None,
    ) -> None:
        super().__init__(f"{seen.place + ': ' if seen.place else ''}{seen}: {reason}")
        self.seen, self.before, self.allowed, self.reason = seen, before, allowed, reason
        self.promises = promises
        """The promises that it breaks in every state that the run could be in, the most telling first."""
        self.told = told
        """The states before it, in words; a few of them."""
        self.older = older
        """The item that should have been handed out before the one that was, where that is what is wrong."""


def with_room(core: Core, workers: tuple[tuple[int, ...], ...], items: tuple[tuple[int, ...], ...]) -> Core:
    """The world with more workers and items in it."""
    return evolve(core, state=(core.state[0] + workers, core.state[1] + items))


def without(core: Core, worker: int) -> Core:
    """The world without a worker that has nothing in hand; those after it move up."""
    workers = core.state[0][:worker] + core.state[0][worker + 1 :]
    owed = frozenset((w - (w > worker), c, a) for w, c, a in core.owed)
    said = frozenset((w - (w > worker), m) for w, m in core.said if w != worker)
    return Core((workers, core.state[1]), core.tokens, owed, said, core.broken)


HELD = PLACE[working_on]
