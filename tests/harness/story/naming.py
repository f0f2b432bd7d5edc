"""Short names for a run, and where items and workers stand, in sentences that use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from attrs import evolve

from peeklock.harness.monitor.observation import Observation, shown
from peeklock.harness.monitor.standing import Standing, Until
from peeklock.harness.run.steps import NEVER_ISSUED
from peeklock.spec.law.state import Row, attempt_count, completions, current, draining, row
from peeklock.spec.notation.actions import Timer
from peeklock.spec.reading.evaluate import INITIAL_WORKER, PLACE
from peeklock.spec.reading.narrative import describe_worker, get, row_in_words
from peeklock.spec.reading.wording import worker_name

LONGEST_TOKEN, LONGEST_NAME = 4, 16
"""What is longer gets a short name, and all others of its kind with it."""
A_DATE_MS = 1_000_000_000
"""A run whose first time is later than this was timed from some date, and not from its beginning."""


class Names:
    """The names of one run: short, the same throughout, and with nothing in them that steers a terminal."""

    def __init__(self, seen: Sequence[Observation]) -> None:
        tokens = [s.token for s in seen if s.token not in (None, NEVER_ISSUED)]
        self._tokens = _short(tokens, LONGEST_TOKEN, lambda n: f"t{n + 1}")
        self._items = _short((s.item for s in seen), LONGEST_NAME, lambda n: f"i{n + 1}")
        holders = {f"of {t}": f"of {short}" for t, short in self._tokens.items()}
        workers = _short((s.worker for s in seen if s.worker not in holders), LONGEST_NAME, worker_name)
        self._workers = {**workers, **holders}
        first_ms = next((s.at_ms for s in seen if s.at_ms is not None), 0)
        self._zero_ms = first_ms if first_ms >= A_DATE_MS else 0
        long = [(new, old) for names in (workers, self._items, self._tokens) for old, new in names.items()]
        self.legend = tuple((new, shown(old)) for new, old in long if new != old)
        """The short names that stand for long ones."""
        if self._zero_ms:
            self.legend = (*self.legend, ("0 ms", f"{self._zero_ms} ms on the clock of the run"))

    def item(self, name: str) -> str:
        """An item's name."""
        return self._items.get(name, shown(name))

    def token(self, text: str) -> str:
        """A token's name."""
        return self._tokens.get(text, shown(text))

    def worker(self, name: str) -> str:
        """A worker, with the word before its name."""
        return f"worker {self._workers.get(name, shown(name))}"

    def at(self, ms: int) -> int:
        """A time of the run, in milliseconds since its beginning where it was timed from some date."""
        return ms - self._zero_ms

    def item_in_words(self, standing: Standing, name: str) -> str:
        """Where an item stands, as a sentence."""
        record, short, until = standing.items[name], self.item(name), standing.until.get(name)
        where, done = get(record, row), record[PLACE[completions]]
        assert isinstance(where, Row)
        text = standing.tokens.get((name, record[PLACE[current]]))
        told = row_in_words(short, where, "a token that nobody saw" if text is None else self.token(text))
        if until is not None and where is (Row.LOCKED if until.timer is Timer.LOCK else Row.DELAYED):
            told += f" until {self._span(until)}"
        if done == 1:
            return f"{told}, its completion is enqueued"
        if done:
            return f"{told}, {done} completions of it are enqueued"
        return f"{told}, nothing is enqueued" if where is Row.ACKED else told

    def _span(self, until: Until) -> str:
        first, last = self.at(until.earliest_ms), self.at(until.latest_ms)
        return f"{first} ms" if first == last else f"some time from {first} to {last} ms"

    def state_in_words(self, standing: Standing, items: Iterable[str]) -> tuple[str, ...]:
        """One state: these items, and every worker that has something in hand."""
        told = []
        for name in items:
            count = standing.items[name][PLACE[attempt_count]]
            told.append(self.item_in_words(standing, name) + (f", attempt count {count}" if count else ""))
        for name, record in standing.workers.items():
            if record != INITIAL_WORKER:
                told.append(f"{self.worker(name)} {describe_worker(record)}")
        return tuple(told)


def without_doubtful_shutdowns(standings: Iterable[Standing]) -> tuple[Standing, ...]:
    """The states, where a worker shuts down only if it does in all of them: that it may is not worth a word."""
    found = tuple(standings)
    place = PLACE[draining]
    sure = {
        name
        for standing in found
        for name in standing.workers
        if all(s.workers[name][place] for s in found if name in s.workers)
    }
    return tuple(
        evolve(
            standing,
            workers={
                name: record if name in sure else (*record[:place], 0, *record[place + 1 :])
                for name, record in standing.workers.items()
            },
        )
        for standing in found
    )


def _short(names: Iterable[str | None], longest: int, name: Callable[[int], str]) -> dict[str, str]:
    found = [n for n in dict.fromkeys(names) if n is not None]
    if all(len(n) <= longest and n.isprintable() and n for n in found):
        return {n: n for n in found}
    return {n: name(place) for place, n in enumerate(found)}
