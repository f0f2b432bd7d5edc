"""The tale of a recorded run that violates: its end, up to what nothing explains. The file is read once more."""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from peeklock.harness.linear.history import Invoke, Operation, Outcome, Return
from peeklock.harness.linear.item_model import ItemModel, ItemWorld
from peeklock.harness.linear.store_history import Part, StoreHistory, seen_of
from peeklock.harness.monitor.observation import Moment, Observation, shown
from peeklock.harness.monitor.standing import Standing, Until
from peeklock.harness.monitor.world import Violation
from peeklock.harness.run.store_judge import StoreJudge
from peeklock.harness.story.story import Tale
from peeklock.harness.story.story_of_run import tell
from peeklock.harness.trace.file import Header, Kind, read
from peeklock.harness.trace.judge import Judgement, monitor_of
from peeklock.harness.trace.observations import Look
from peeklock.spec.law.policy import Policy
from peeklock.spec.variants.capabilities import Capabilities

NOT_KEPT = "✗ the store does not keep its contract"
MOST_HELD = 2_000
"""Observations before a violation that are held in memory, to tell those of them that have to do with it."""
MOST_MOMENTS = 40
"""Beginnings and ends of calls that are told of a run under concurrent calls."""


def tale_of_trace(path: Path, found: Judgement, policy: Policy) -> Tale:
    """The run that was judged, told. ``TraceError`` as ``read``, where the file is no longer what it was."""
    assert found.violation is not None
    header, entries = read(path)
    setting = found.violation.seen.place + (f"; run: {shown(header.source)}" if header.source else "")
    return _TALES[header.kind](header, entries, found, policy, setting)


def _workers(header: Header, entries: Iterator[Any], found: Judgement, policy: Policy, setting: str) -> Tale:
    monitor, earlier = monitor_of(header, policy), max(found.observations - MOST_HELD, 0)
    for seen in itertools.islice(entries, earlier):
        monitor.observe(seen)
    return tell(
        itertools.islice(entries, found.observations - earlier),
        lambda: monitor,
        earlier=earlier,
        title=f"✗ violates policy {policy.name} at observation {found.observations}",
        setting=setting,
    )


def _store(header: Header, entries: Iterator[Any], found: Judgement, _: Policy, setting: str) -> Tale:
    assert found.violation is not None
    seen: list[Observation] = []
    looks = {}
    for entry in itertools.islice(entries, found.observations):
        if isinstance(entry, Look):
            looks[len(seen)] = entry.completions
        else:
            seen.append(entry)
    ends = len(seen), found.violation
    return _told(seen, lambda: StoreJudge(header.store, looks, ends, header.scope), found.violation, setting)


def _calls(header: Header, entries: Iterator[Any], found: Judgement, _: Policy, setting: str) -> Tale:
    assert found.violation is not None
    return tale_of_calls(entries, header.store, found.violation, clock=header.scope.clock, setting=setting)


def tale_of_calls(
    events: Iterable[Invoke | Return],
    capabilities: Capabilities,
    violation: Violation,
    *,
    clock: bool = True,
    title: str = NOT_KEPT,
    setting: str = "",
    notes: Sequence[str] = (),
) -> Tale:
    """The calls of a history that have to do with its violation, as they begin and end."""
    watched = _Watched(violation)
    history = StoreHistory(capabilities, clock, watched)
    with contextlib.suppress(Violation):
        for event in events:
            history.add(event)
        history.end()
    moments = list(watched.moments(clock)) or [_Moment(evolve(violation.seen, until_ms=None))]
    return _told(
        [m.seen for m in moments],
        lambda: _Playback(history.model, violation, moments),
        violation,
        setting,
        title=title,
        earlier=watched.earlier,
        notes=notes,
    )


def _told(
    seen: list[Observation],
    make: Callable[[], Any],
    violation: Violation,
    setting: str,
    *,
    title: str = NOT_KEPT,
    earlier: int = 0,
    notes: Sequence[str] = (),
) -> Tale:
    return tell(
        seen,
        make,
        title=title,
        notes=notes,
        promises=violation.promises,
        reason=violation.reason,
        allowed=violation.allowed,
        setting=setting,
        earlier=earlier,
    )


_TALES: dict[Kind, Callable[[Header, Iterator[Any], Judgement, Policy, str], Tale]] = {
    Kind.WORKERS: _workers,
    Kind.STORE: _store,
    Kind.CALLS: _calls,
}


@frozen
class _Place:
    """Where an item may stand, and the texts of its tokens, by their numbers."""

    worlds: tuple[ItemWorld, ...]
    tokens: Mapping[int, str]


@frozen
class _Mark:
    """An operation begins or has ended, and where the items may stand then."""

    begins: bool
    operation: Operation
    item: str
    places: Mapping[str, _Place]


@frozen
class _Moment:
    """A call begins or ends, or both with nothing told between."""

    seen: Observation
    places: Mapping[str, _Place] = {}


class _Watched:
    """Keeps what happens to the items that the violation is about: the latest beginnings and ends of their calls.

    What a call says of an item only by the way, such as a fetch that found nothing, is left out, but for one that is
    the violation.
    """

    def __init__(self, violation: Violation) -> None:
        self._wrong = violation.seen.place
        self._items = {violation.seen.item, violation.older} - {None}
        self._latest: deque[_Mark] = deque(maxlen=MOST_MOMENTS)
        self._places: dict[str, _Place] = {}
        self._count = 0

    @property
    def earlier(self) -> int:
        """How many beginnings and ends came before those that were kept."""
        return self._count - len(self._latest)

    def __call__(self, begins: bool, operation: Operation, part: Part) -> None:
        """Keep it, if it is to be told."""
        by_the_way = part.operation.what.sight.item != 0
        if part.item not in self._items or (by_the_way and seen_of(operation, None).place != self._wrong):
            return
        names = {number: text for text, number in part.life.tokens.items()}
        self._places[part.item] = _Place(tuple(part.life.search.possible()), names)
        if self._latest and (self._latest[-1].begins, self._latest[-1].operation) == (begins, operation):
            self._latest.append(evolve(self._latest.pop(), places=dict(self._places)))
            return
        self._count += 1
        self._latest.append(_Mark(begins, operation, part.item, dict(self._places)))

    def moments(self, clock: bool) -> Iterator[_Moment]:
        """What was kept; a beginning and an end that follow each other are one."""
        marks = list(self._latest)
        while marks:
            mark = marks.pop(0)
            moment = Moment.BEGINS if mark.begins else Moment.ENDS
            if mark.begins and marks and marks[0].operation == mark.operation:
                mark, moment = marks.pop(0), Moment.WHOLE
            elif mark.operation.outcome is Outcome.INFO:
                moment = Moment.LOST
            yield _Moment(_seen(mark, moment, clock), mark.places)


def _seen(mark: _Mark, moment: Moment, clock: bool) -> Observation:
    seen = evolve(seen_of(mark.operation, mark.item), moment=moment)
    if not clock:
        seen = evolve(seen, at_ms=None, until_ms=None, lasts_ms=None)
    if moment is Moment.ENDS:
        return evolve(seen, at_ms=seen.until_ms, until_ms=None)
    if moment is Moment.WHOLE:
        return seen
    return evolve(seen, token=mark.operation.what.token, answer=None, attempt=None, until_ms=None)


class _Playback:
    """Used like a monitor: it stands where the moments say, and at the last of them it raises the violation."""

    def __init__(self, model: ItemModel, violation: Violation, moments: Sequence[_Moment]) -> None:
        self._model, self._violation, self._coming = model, violation, deque(moments)
        self._places: Mapping[str, _Place] = {}
        self._now_ms, self._until_ms = 0, 0

    def observe(self, seen: Observation) -> None:
        """The next moment; ``Violation`` at the last."""
        moment = self._coming.popleft()
        assert seen == moment.seen
        if not self._coming:
            raise self._violation
        self._places = moment.places

    def pass_time(self, now_ms: int, until_ms: int | None = None) -> None:
        """Let the timers that are due run out."""
        self._now_ms, self._until_ms = now_ms, now_ms if until_ms is None else until_ms

    def standings(self) -> Iterator[Standing]:
        """Where the items may stand."""
        ways = [
            [
                (item, place.tokens, world)
                for lazy in place.worlds
                for world in self._model.ticked(lazy, self._now_ms, self._until_ms)
            ]
            for item, place in self._places.items()
        ]
        for chosen in itertools.product(*ways) if ways else ():
            yield Standing(
                {item: world.core.state[1][0] for item, _, world in chosen},
                {},
                {(item, k): names[n] for item, names, world in chosen for n, _, k in world.core.tokens},
                {
                    item: Until(world.timer, world.earliest_ms, world.latest_ms)
                    for item, _, world in chosen
                    if world.timer is not None
                },
            )
