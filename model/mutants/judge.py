"""Judging a mutant: in which world it differs from the protocol, and which check notices that."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from attrs import field, frozen

from peeklock.model.mutants.mutate import ORIGINAL, Mutant
from peeklock.model.mutants.worlds import ARENAS, OWNERS, WATCHES, Arena, changed_in
from peeklock.model.search.engine import Search, Statistics, Stopped
from peeklock.spec.notation.actions import Action
from peeklock.spec.promises.promise import Possibility, Promise

TIMES_AS_MANY_STATES = 10
TIMES_AS_DEEP = 3
"""A mutant may count for ever; it is left alone when it has grown so far beyond the protocol."""


STUCK = "stuck"


class Fate(enum.Enum):
    """What notices a mutant, the strongest evidence first."""

    PROMISE = "a promise that holds is broken"
    POSSIBILITY = "something can no longer happen"
    STUCK = "a run can get stuck"
    MENDED = "a promise that is stated to fail no longer does"
    NEVER_FIRES = "an action can no longer be taken"
    UNNOTICED = "other states or steps, and no check notices"
    FEWER = "fewer steps than before, and none that is new"
    EQUIVALENT = "same states and same steps"


@frozen
class Findings:
    """What a check of a mutant says in one world that it does not say of the protocol there."""

    arena: str
    broken: tuple[tuple[str, int], ...] = ()
    """The promises that are broken, each with the length of the shortest trace that shows it."""
    gone: tuple[str, ...] = ()
    stuck: int | None = None
    mended: tuple[str, ...] = ()
    never_fires: tuple[str, ...] = ()
    stopped: bool = False
    adds: bool = True
    """Does the mutant take steps there that the protocol does not?"""

    @property
    def fate(self) -> Fate:
        """The strongest evidence."""
        for fate, evidence in (
            (Fate.PROMISE, self.broken),
            (Fate.POSSIBILITY, self.gone),
            (Fate.STUCK, self.stuck is not None),
            (Fate.MENDED, self.mended),
            (Fate.NEVER_FIRES, self.never_fires),
            (Fate.UNNOTICED, self.adds),
        ):
            if evidence:
                return fate
        return Fate.FEWER

    def notices(self, check: str) -> bool:
        """Does this check of the world notice the mutant?"""
        return check in self.gone or any(check == name for name, _ in self.broken) or self._is_stuck(check)

    def _is_stuck(self, check: str) -> bool:
        return check == STUCK and self.stuck is not None


@frozen
class Judgement:
    """A mutant, and what was found in the worlds in which it differs."""

    name: str
    findings: tuple[Findings, ...] = field(default=())

    @property
    def fate(self) -> Fate:
        """What notices it."""
        fates = {f.fate for f in self.findings}
        return next((fate for fate in Fate if fate in fates), Fate.EQUIVALENT)

    @property
    def best(self) -> Findings:
        """The findings of the world that shows it best."""
        return next(f for f in self.findings if f.fate is self.fate)

    def noticed_by(self, check: str) -> Findings | None:
        """The findings of the first world in which this check notices it."""
        return next((f for f in self.findings if f.notices(check)), None)

    @property
    def kills(self) -> frozenset[str]:
        """All promises that were found to notice it."""
        return frozenset(name for f in self.findings for name, _ in f.broken)


class _Grown(Exception):
    """The mutant has grown far beyond the protocol."""


def explored(arena: Arena, actions: tuple[Action, ...]) -> tuple[Search, bool]:
    """The search of a world under other actions, and whether it was given up."""
    search = Search(arena.mutated(actions), tuple(WATCHES))
    own = arena.search.statistics

    def heed(statistics: Statistics, left: int) -> None:
        grown = statistics.distinct > TIMES_AS_MANY_STATES * own.distinct
        if grown or statistics.depth > TIMES_AS_DEEP * own.depth:
            raise _Grown

    try:
        search.run(report=heed)
    except (_Grown, Stopped):
        return search, True
    return search, False


def tried(arena: Arena, actions: tuple[Action, ...], changed: tuple[Action, ...]) -> Findings:
    """What a check says of a mutant's actions in one world, and not of the protocol."""
    search, stopped = explored(arena, actions)
    broken: dict[str, int] = {}
    for bit, level in search.found.items():
        owner = OWNERS[bit]
        if isinstance(owner, Promise) and owner.id not in arena.broken:
            length = level + (search.watches[bit].part.state is None)
            broken[owner.id] = min(length, broken.get(owner.id, length))
    findings = Findings(
        arena.name, tuple(sorted(broken.items(), key=lambda b: (b[1], b[0]))), stopped=stopped
    )
    if stopped or broken:
        return findings
    own = arena.search
    failing = {OWNERS[bit].id for bit in search.found if isinstance(OWNERS[bit], Promise)}
    return Findings(
        arena.name,
        gone=tuple(
            OWNERS[b].id for b in own.found if b not in search.found and isinstance(OWNERS[b], Possibility)
        ),
        stuck=search.stuck if own.stuck is None else None,
        mended=tuple(sorted(arena.broken - failing)),
        never_fires=_silenced(own.statistics.fired, search.statistics.fired),
        adds=arena.adds(changed),
    )


def _silenced(own: dict[str, int], now: dict[str, int]) -> tuple[str, ...]:
    return tuple(name for name, times in own.items() if times and not now.get(name))


def judge(mutant: Mutant, until: str | None = None, arenas: Iterable[Arena] = ARENAS) -> Judgement:
    """Try the mutant in every world in which it differs, until a promise notices it (or until the named check does).

    ``until`` is the id of a promise or a possibility, or ``STUCK``.
    """
    actions = mutant.make()
    changed, gone = changed_in(actions)
    before = [a for a in ORIGINAL if any(a.name == b.name for b in changed)]
    found: list[Findings] = []
    for arena in arenas:
        if arena.concerns((*changed, *before, *gone)) and arena.differs(changed, gone, actions):
            found.append(tried(arena, actions, changed))
            if found[-1].notices(until) if until else found[-1].broken:
                break
    return Judgement(mutant.name, tuple(found))
