"""Retelling: what was seen of a real system, told with what is true in the store so far as it is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from attrs import evolve, frozen

from peeklock.harness.monitor.monitor import NOT_HERE, NOT_LIKE_THIS
from peeklock.harness.monitor.observation import Moment, Observation
from peeklock.harness.monitor.standing import Standing
from peeklock.harness.monitor.world import Violation
from peeklock.harness.run.steps import NEVER_ISSUED
from peeklock.harness.story.expected import instead
from peeklock.harness.story.naming import Names, without_doubtful_shutdowns
from peeklock.harness.story.story import ORCHESTRATOR, TIME, Tale, TaleStep, sentences_of
from peeklock.spec.law.state import Result, Row, attempt_count, row
from peeklock.spec.notation.actions import ABANDONS, Answer, Call
from peeklock.spec.reading.evaluate import INITIAL_WORKER, PLACE
from peeklock.spec.reading.narrative import describe_worker, get
from peeklock.spec.reading.wording import many

MOST_STEPS = 40
"""Of a longer run, only those steps are told that have to do with what is wrong."""
MOST_STATES = 3
MOST_ITEMS = 4
"""With more items, the states before are told of the item that it is about only."""
_RESULTS = {
    (): "",
    (Result.NONE,): "",
    (Result.SUCCESS,): " with a result",
    (Result.APPLICATION_ERROR,): " with an application error",
    (Result.POISON,): " with a poison failure",
}


class Watching(Protocol):
    """A monitor, or what is used like one."""

    def observe(self, seen: Observation) -> None:
        """Take in one observation; ``Violation`` when no state explains it."""
        ...

    def pass_time(self, now_ms: int, until_ms: int | None = None) -> None:
        """Let the timers that are due run out."""
        ...

    def standings(self) -> Iterable[Standing]:
        """The states that explain the run so far."""
        ...


def tell(
    observations: Iterable[Observation],
    make_monitor: Callable[[], Watching],
    *,
    title: str = "a run that was seen",
    setting: str = "",
    reason: str = "",
    allowed: Sequence[str] = (),
    promises: Sequence[str] = (),
    then: Sequence[TaleStep] = (),
    notes: Sequence[str] = (),
    earlier: int = 0,
) -> Tale:
    """The tale of a run that was seen, by a fresh monitor that takes it all in again.

    It goes wrong at the first observation that no state explains; what came after that is told as it was seen.
    ``reason``, ``allowed`` and ``promises`` say what is wrong where something else than the monitor found it, or knows
    better: with the last observation, or with the last step that came ``then``, such as that nothing more came. So
    many ``earlier`` observations the monitor has taken in before.
    """
    seen = tuple(observations)
    if not seen:
        raise ValueError("nothing was seen, so there is nothing to tell")
    telling = _Telling(make_monitor(), seen, earlier)
    violation = telling.whole()
    if violation is None:
        telling.afterwards(then)
    steps, last, place = telling.steps, telling.last, telling.place
    mark, wrong = telling.wrong(last, reason or ("" if violation is None else violation.reason))
    steps[place] = evolve(steps[place], mark=mark)
    states = telling.states(last) if mark else ()
    return Tale(
        title,
        steps,
        setting,
        sentences_of(promises or (() if violation is None else violation.promises)),
        (f"Step {steps[place].number}: {steps[place].sentence}.", wrong) if mark else (),
        telling.instead(last, allowed or (() if violation is None else violation.allowed)),
        states[:MOST_STATES],
        len(states[MOST_STATES:]),
        telling.names.legend,
        tuple(notes),
    )


@frozen
class _Known:
    """The ways in which each item and each worker may stand, by what is known."""

    items: Mapping[str, tuple[str, ...]]
    counts: Mapping[str, tuple[int, ...]]
    workers: Mapping[str, tuple[str, ...]]


class _Telling:
    def __init__(self, monitor: Watching, seen: tuple[Observation, ...], earlier: int) -> None:
        self._monitor, self._seen, self._earlier = monitor, seen, earlier
        self._items = {s.token: s.item for s in seen if s.token is not None and s.item is not None}
        self._kept = self._chosen()
        self.names = Names([s for n, s in enumerate(seen, earlier + 1) if n in self._kept])
        self.steps: list[TaleStep] = []
        self._begun: dict[str, int] = {}
        """The steps at which calls began that have not ended, by the place of their ends."""
        self._moved = False
        """Did the latest step change what is known of the store?"""
        self.last = seen[-1]
        """The observation that is wrong, if one is."""
        self.place = 0
        """The place of the step that is wrong, if one is."""
        self._stood: tuple[Standing, ...] = ()
        """The states before what is wrong."""

    def whole(self) -> Violation | None:
        """Tell every step; of those after the first that no state explains only what was seen."""
        left_out, found = self._earlier, None
        for number, seen in enumerate(self._seen, self._earlier + 1):
            if found is not None:
                self.steps.append(self._told(number, seen))
                continue
            self.last = seen
            if number in self._kept:
                if left_out:
                    are = "is" if left_out == 1 else "are"
                    self.steps.append(TaleStep(None, "", f"({many(left_out, 'step')} {are} left out)"))
                found, left_out = self._step(number, seen), 0
            else:
                found, left_out = self._observed(seen), left_out + 1
        return found

    def afterwards(self, steps: Iterable[TaleStep]) -> None:
        """Tell what came after all that was seen."""
        for number, step in enumerate(steps, self._earlier + len(self._seen) + 1):
            self.steps.append(evolve(step, number=number))
            self.place, self._moved, self._stood = len(self.steps) - 1, True, self._standings()

    def _chosen(self) -> frozenset[int]:
        """The numbers of the steps that are told: all, or of many the latest about the same item or worker."""
        numbered = list(enumerate(self._seen, self._earlier + 1))
        item, worker = self._item_of(self._seen[-1]), self._seen[-1].worker
        if len(numbered) > MOST_STEPS and item is not None:
            numbered = [
                (n, s)
                for n, s in numbered
                if self._item_of(s) == item or (worker is not None and s.worker == worker)
            ]
        kept = {n for n, _ in numbered[-MOST_STEPS:]}
        # To say of one step that it is left out takes the room of the step.
        return frozenset(kept | {n + 1 for n in (self._earlier, *kept) if n + 2 in kept})

    def _item_of(self, seen: Observation) -> str | None:
        return seen.item if seen.item is not None or seen.token is None else self._items.get(seen.token)

    # One step

    def _observed(self, seen: Observation) -> Violation | None:
        try:
            self._monitor.observe(seen)
        except Violation as violation:
            return violation
        return None

    def _step(self, number: int, seen: Observation) -> Violation | None:
        before = self._known()
        at_ms = None if seen.at_ms is None else self.names.at(seen.at_ms)
        if seen.at_ms is not None:
            self._monitor.pass_time(seen.at_ms, seen.until_ms)
            now = self._known()
            passed = tuple(self._truth(before, now))
            if passed:
                self.steps.append(TaleStep(None, TIME, "time passes", truth=passed, at_ms=at_ms))
            before = now
        self._stood = self._standings()
        violation = self._observed(seen)
        if violation is not None:
            self._stood = self._standings()
        after = self._known()
        if seen.call is Call.FETCH:  # the answer says the count
            before = evolve(before, counts=after.counts)
        if seen.moment is Moment.BEGINS:
            self._begun[seen.place] = number
        item, self._moved = self._item_of(seen), before.items != after.items
        ways = after.items.get(item, ()) if item is not None else ()
        told = self._told(number, seen)
        if violation is None:
            truth, belief = tuple(self._truth(before, after)), self._belief(before, after, seen.worker)
            told = evolve(told, truth=truth, belief=belief, possible=max(len(ways), 1))
        self.place = len(self.steps)
        self.steps.append(told)
        return violation

    def _told(self, number: int, seen: Observation) -> TaleStep:
        """What was seen, and no more."""
        at_ms = None if seen.at_ms is None else self.names.at(seen.at_ms)
        return TaleStep(
            number, self._who(seen), self._does(seen), self._answer(seen), self._note(seen), at_ms=at_ms
        )

    def _standings(self) -> tuple[Standing, ...]:
        return without_doubtful_shutdowns(self._monitor.standings())

    def _known(self) -> _Known:
        items: dict[str, dict[str, None]] = {}
        counts: dict[str, dict[int, None]] = {}
        workers: dict[str, dict[str, None]] = {}
        for standing in self._standings():
            for name, record in standing.items.items():
                items.setdefault(name, {})[self.names.item_in_words(standing, name)] = None
                counts.setdefault(name, {})[record[PLACE[attempt_count]]] = None
            for name, record in standing.workers.items():
                workers.setdefault(name, {})[describe_worker(record)] = None
        return _Known(
            {name: tuple(ways) for name, ways in items.items()},
            {name: tuple(sorted(ways)) for name, ways in counts.items()},
            {name: tuple(ways) for name, ways in workers.items()},
        )

    def _truth(self, before: _Known, after: _Known) -> Iterator[str]:
        for name, ways in after.items.items():
            was = before.items.get(name, ())
            if set(ways) != set(was):
                yield _either(ways, was)
            counts = after.counts[name]
            if counts != before.counts.get(name, (0,)):
                yield f"{self.names.item(name)}'s attempt count is {' or '.join(map(str, counts))}"

    def _belief(self, before: _Known, after: _Known, worker: str | None) -> tuple[str, ...]:
        if worker is None or worker not in after.workers:
            return ()
        ways = after.workers[worker]
        was = before.workers.get(worker, (describe_worker(INITIAL_WORKER),))
        return () if set(ways) == set(was) else (_either(ways, was),)

    # What was seen, in words

    def _who(self, seen: Observation) -> str:
        if seen.token == NEVER_ISSUED:
            return "a stranger"
        if seen.worker is not None:
            return self.names.worker(seen.worker)
        if seen.call in (Call.ENQUEUE, Call.CANCEL):
            return ORCHESTRATOR
        return TIME if seen.event is not None else "somebody"

    def _about(self, seen: Observation) -> str:
        item = self._item_of(seen)
        name = "" if item is None else self.names.item(item)
        if seen.token is None:
            return name
        if seen.token == NEVER_ISSUED:
            return "under a token that was never issued"
        token = self.names.token(seen.token)
        return f"{name} under {token}" if name else f"under {token}"

    def _does(self, seen: Observation) -> str:
        if seen.counts is not None:
            return f"counts {seen.counts.value}"
        if seen.event is not None:
            return seen.event.value
        more = " …" if seen.moment in (Moment.BEGINS, Moment.LOST) else ""
        return f"{self._asks(seen)}{more}"

    def _asks(self, seen: Observation) -> str:
        about, lasts = self._about(seen), seen.lasts_ms
        match seen.call:
            case Call.FETCH:
                return "fetch" if lasts is None else f"fetch with a lock of {lasts} ms"
            case Call.RENEW:
                return f"renew {about}" + ("" if lasts is None else f" for {lasts} ms")
            case Call.ACK:
                return f"ack {about}{_RESULTS.get(seen.completions, ' with a failure')}"
            case Call.CANCELLATION_ACK:
                return f"ack {about} with no completion"
            case Call.ENQUEUE:
                return f"enqueue {about}{_delay(lasts)}"
            case Call.CANCEL:
                return f"cancel {about}"
        assert seen.call in ABANDONS
        ignoring = ", ignoring the attempt" if seen.call is Call.ABANDON_IGNORING_ATTEMPT else ""
        return f"abandon {about}{_delay(lasts)}{ignoring}"

    def _answer(self, seen: Observation) -> str:
        if seen.call is Call.ENQUEUE and seen.answer is Answer.OK:
            return ""
        if seen.call is Call.CANCEL and seen.answer is Answer.NOTHING:
            return "it had no row"
        if seen.call is Call.FETCH and seen.answer is Answer.OK and seen.item is not None:
            return self._handed_out(seen)
        return "" if seen.answer is None else seen.answer.value

    def _handed_out(self, seen: Observation) -> str:
        assert seen.item is not None
        token = "" if seen.token is None else f" under {self.names.token(seen.token)}"
        count = "" if seen.attempt is None else f", attempt count {seen.attempt}"
        return f"{self.names.item(seen.item)}{token}{count}"

    def _note(self, seen: Observation) -> str:
        if seen.moment in (Moment.BEGINS, Moment.LOST):
            return "" if seen.moment is Moment.BEGINS else "nobody knows how it ended"
        begun = f"begun at step {self._begun[seen.place]}" if seen.place in self._begun else ""
        return "; ".join(text for text in (begun, self._behind(seen)) if text)

    def _behind(self, seen: Observation) -> str:
        if seen.answer is Answer.RETRYABLE:
            took = {True: "the response was lost: it took effect", False: "it had no effect"}
            return took.get(seen.effect, "whether it took effect is not known")  # type: ignore[arg-type]
        if seen.answer is Answer.PERMANENT:
            return "yet it took effect" if seen.effect else ""
        if seen.answer is None and seen.effect is not None and seen.call is not Call.ENQUEUE:
            if seen.call is Call.FETCH and seen.item is not None:
                return f"it took effect: {self._handed_out(seen)}"
            return "it took effect" if seen.effect else "it had no effect"
        return ""

    # What would have been right, and where things stood

    def instead(self, seen: Observation, allowed: Sequence[str]) -> tuple[str, ...]:
        """What would have been right."""
        return tuple(instead(seen, allowed, tuple(self._could_be_handed_out(seen))))

    def _could_be_handed_out(self, seen: Observation) -> Iterator[str]:
        """The items that a fetch could return, as its answer would be told."""
        found: dict[str, None] = {}
        used = sum(s.token == seen.token for s in self._seen if s.call is Call.FETCH) > 1
        token = " under a fresh token" if used and seen.token is not None else ""
        for standing in self._stood:
            for name, record in standing.items.items():
                if get(record, row) not in (Row.READY, Row.EXPIRED):
                    continue
                if name == seen.item and found:
                    continue  # it could be handed out but for those that are older
                told = "" if seen.attempt is None else f", attempt count {record[PLACE[attempt_count]] + 1}"
                found[f"{self.names.item(name)}{token}{told}"] = None
        yield from found

    def wrong(self, seen: Observation, reason: str) -> tuple[str, str]:
        """What is wrong with the last step: in a few words, and as a sentence; nothing where nothing is."""
        if not reason:
            return "", ""
        where = self._where(seen)
        because = f": {where}." if where else "."
        word = {NOT_LIKE_THIS: "wrong answer", NOT_HERE: "not allowed here"}.get(reason, reason.rstrip("."))
        names = {self.names.item(name) for name in self._items.values()}
        first = word.split(" ", 1)[0]
        is_name = first in names or "_" in first
        return word, (word if is_name else word[0].upper() + word[1:]) + because

    def _where(self, seen: Observation) -> str:
        """Where the item stood that the step is about; nothing where that is not known, or does not tell."""
        item = self._item_of(seen)
        if (
            item is None
            or self._moved
            or (seen.call is Call.FETCH and any(True for _ in self._could_be_handed_out(seen)))
        ):
            return ""
        ways = self._known().items.get(item, ())
        return ways[0] if len(ways) == 1 else ""

    def states(self, seen: Observation) -> tuple[tuple[str, ...], ...]:
        """The states that explain all but what is wrong."""
        item = self._item_of(seen)
        told: dict[tuple[str, ...], None] = {}
        for standing in self._stood:
            names = list(standing.items)
            if item in names and len(names) > MOST_ITEMS:
                names = [n for n in names if n == item]
            told[self.names.state_in_words(standing, names)] = None
        return tuple(sorted(filter(None, told)))


def _delay(lasts_ms: int | None) -> str:
    return f" with a delay of {lasts_ms} ms" if lasts_ms else ""


def _either(ways: Sequence[str], was: Sequence[str], most: int = 3) -> str:
    """The ways in which something may stand, those first in which it stood before."""
    told = sorted(ways, key=lambda way: (way not in was, way))
    more = [f"{len(told) - most} more"] if len(told) > most else []
    return ", or ".join([*told[:most], *more])
