"""Test vectors of a store: the covering runs as JSON, with what a store that keeps its contract answers.

A file holds the vectors of one call. What is written depends on the specification and the capabilities only, and is
the same to the byte from run to run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

from attrs import asdict, evolve, field, fields, frozen

from peeklock.model.vectors.cover import REAL, VIRTUAL, Run, Times, covering_runs, graphs_of, reachable
from peeklock.model.vectors.kinds import CALLS, ERROR, Kind, kinds
from peeklock.spec.law.state import completions
from peeklock.spec.notation.actions import ABANDONS, ACKS, Call
from peeklock.spec.reading.evaluate import PLACE
from peeklock.spec.reading.timed_store import STRANGER, Fault, Moment, Outcome, Step, nothing, timed_store
from peeklock.spec.variants.capabilities import STANDARD, Capabilities, CompletionWrite

VERSION = 1
NEVER_ISSUED = "never-issued"
"""Stands for a token that no store has given out."""
NEVER_ENQUEUED = "never-enqueued"
"""Stands for an item that no store has."""
ITEMS = ("i1", "i10")
"""The items' names. One begins with the other, which has led a store astray."""
DRAIN_LOCK_MS = 1_000_000_000
"""The locks of the fetches that show what is left; they outlast the vector."""

Json: TypeAlias = dict[str, Any]
_FREE = ("attempt_counts", "virtual_clock", "fault_injection")
"""Capabilities on which no answer depends that every replay could not leave out."""


@frozen
class Timed:
    """A step that is a call, and when it is made, in milliseconds since the beginning."""

    at_ms: int
    step: Step


@frozen
class Vector:
    """One test vector of a store."""

    name: str
    call: Call
    """The call for which it was made."""
    steps: tuple[Json, ...]
    drain: tuple[Json, ...]
    """Calls that show what is left."""
    at_the_end: Json
    """What is in the store after the steps, before the drain."""
    needs: Json
    """The capabilities without which a store may answer otherwise."""
    shown: frozenset[Kind] = field(repr=False)


@frozen
class Vectors:
    """All vectors for a store with these capabilities, and all that can be shown of such a store."""

    capabilities: Capabilities
    vectors: tuple[Vector, ...]
    kinds: tuple[Kind, ...]

    @property
    def shown(self) -> tuple[Kind, ...]:
        """The kinds that the vectors show."""
        everything = frozenset[Kind]().union(*(vector.shown for vector in self.vectors))
        return tuple(kind for kind in self.kinds if kind in everything)

    @property
    def missed(self) -> tuple[Kind, ...]:
        """The kinds that no vector shows."""
        return tuple(kind for kind in self.kinds if kind not in self.shown)

    @property
    def texts(self) -> dict[str, str]:
        """The files, by name."""
        found = {}
        for call in CALLS:
            of_call = [v for v in self.vectors if v.call is call]
            if of_call:
                found[file_name(call)] = _text(self.capabilities, call, of_call)
        return found


@cache
def vectors_of(capabilities: Capabilities = STANDARD) -> Vectors:
    """The vectors for a store with these capabilities."""
    graphs = graphs_of(capabilities)
    times = VIRTUAL if capabilities.virtual_clock else REAL
    found = tuple(reachable(graphs))
    place = {kind: k for k, kind in enumerate(found)}
    runs = sorted(covering_runs(graphs), key=lambda run: place[run.made_for])
    return Vectors(capabilities, tuple(_vector(run, capabilities, times) for run in runs), found)


def file_name(call: Call) -> str:
    """The file that holds the vectors of a call."""
    return f"store-{call.name.lower().replace('_', '-')}.json"


def _vector(run: Run, capabilities: Capabilities, times: Times) -> Vector:
    items = len(run.path[0].source.items)
    telling = _Telling(capabilities, items)
    now_ms = 0
    timed = []
    for edge in run.path:
        if edge.step.call is None:
            now_ms += edge.step.ms
        else:
            timed.append(Timed(now_ms, edge.step))
    steps = telling.told(timed)
    assert steps is not None, run.made_for
    at_the_end = telling.contents()
    draining = tuple(telling.draining(times))
    drain = telling.told(draining)
    assert drain is not None, run.made_for
    needs = {
        name: getattr(value, "value", value)
        for name, value, other in _alternatives(capabilities)
        if _retold(other, items, timed, draining) != (steps, _seen_by(other, at_the_end), drain)
    }
    if capabilities.virtual_clock and any(entry["at_ms"] for entry in (*steps, *drain)):
        needs["virtual_clock"] = True
    return Vector(
        str(run.made_for), run.made_for.call, tuple(steps), tuple(drain), at_the_end, needs, run.shown
    )


def _alternatives(capabilities: Capabilities) -> Iterator[tuple[str, Any, Capabilities]]:
    """Each capability, its value, and the store that differs in it alone."""
    for one in fields(Capabilities):
        if one.name in _FREE:
            continue
        value = getattr(capabilities, one.name)
        kind = Capabilities.named(one.name)
        choices: tuple[Any, ...] = (False, True) if kind is bool else tuple(kind.__members__.values())  # type: ignore[attr-defined]
        others = [v for v in choices if v is not value]
        for other in others:
            changed: dict[str, Any] = {one.name: other}
            yield one.name, value, evolve(capabilities, **changed)


def _retold(
    capabilities: Capabilities, items: int, timed: Sequence[Timed], draining: Sequence[Timed]
) -> tuple[list[Json] | None, Json, list[Json] | None]:
    """The same calls made of another store; None where what it answers is open, or it has no such call."""
    telling = _Telling(capabilities, items)
    steps = telling.told(timed)
    return steps, telling.contents(), telling.told(draining)


def _seen_by(other: Capabilities, at_the_end: Json) -> Json:
    """What is left, as far as such a store has it."""
    without = {"completions"} if other.completion is CompletionWrite.NONE else set()
    return {name: part for name, part in at_the_end.items() if name not in without}


class _Telling:
    """Makes calls of the specification's store, and writes them down with their answers."""

    def __init__(self, capabilities: Capabilities, items: int) -> None:
        self.capabilities, self._store = capabilities, timed_store(capabilities)
        self.moment, self.now_ms = nothing(items), 0
        self._names: dict[tuple[int, int], str] = {}
        self._done: list[tuple[str, str]] = []

    def told(self, timed: Sequence[Timed]) -> list[Json] | None:
        """The calls as JSON; None where one of them cannot be made or has no certain answer."""
        found = []
        for one in timed:
            told = self._step(one)
            if told is None:
                return None
            found.append(told)
        return found

    def _step(self, one: Timed) -> Json | None:
        step, has = one.step, self.capabilities
        self._wait_until(one.at_ms)
        if step.call not in has.calls or not self._has_delay(step):
            return None
        outcome = self._store.certain(self.moment, step)
        if outcome is None:
            return None
        before, self.moment = self.moment, outcome.after
        told: Json = {"at_ms": one.at_ms, "call": _method(step.call), "with": self._arguments(step)}
        if step.fault is not Fault.NONE:
            told["fault"] = step.fault.value
        told["answer"] = outcome.answers[0].value if len(outcome.answers) == 1 else ERROR
        gives = self._gives(step, outcome)
        if gives is not None:
            told["gives"] = gives
        self._complete(before, step)
        shown = kinds(before, step, outcome)
        told["state"] = shown[0].state
        return told

    def _has_delay(self, step: Step) -> bool:
        has = self.capabilities
        lacking = () if has.abandon_delay else ABANDONS
        if not has.enqueue_delay:
            lacking = (*lacking, Call.ENQUEUE)
        return not step.ms or step.call not in lacking

    def _wait_until(self, at_ms: int) -> None:
        wait = Step(ms=at_ms - self.now_ms)
        for outcome in self._store.outcomes(self.moment, wait) if wait.ms else ():
            self.moment = outcome.after
        self.now_ms = at_ms

    def _arguments(self, step: Step) -> Json:
        items = [_item(i) for i in step.items] or [NEVER_ENQUEUED]
        match step.call:
            case Call.ENQUEUE:
                return {"item": items[0], "delay_ms": step.ms}
            case Call.FETCH:
                return {"lock_timeout_ms": step.ms}
            case Call.CANCEL:
                return {"items": items}
        token = self._name(step)
        if step.call is Call.RENEW:
            return {"token": token, "extend_for_ms": step.ms}
        if step.call in ACKS:
            return {"token": token, "completion": f"result of {token}" if step.call is Call.ACK else None}
        ignores = step.call is Call.ABANDON_IGNORING_ATTEMPT
        return {"token": token, "delay_ms": step.ms, "ignore_attempt": ignores}

    def _name(self, step: Step) -> str:
        assert step.token is not None
        return NEVER_ISSUED if step.token == STRANGER else self._names.get(step.token, "unknown")

    def _gives(self, step: Step, outcome: Outcome) -> Json | None:
        """What a call returns besides its answer."""
        if step.call is Call.CANCEL:
            return {"removed": [_item(i) for i in outcome.removed]}
        if step.call is not Call.FETCH or outcome.item is None or step.fault is not Fault.NONE:
            return None
        token = next(t for t in outcome.after.tokens if t not in self._names)
        self._names[token] = f"t{len(self._names) + 1}"
        gives: Json = {"item": _item(outcome.item), "token": self._names[token]}
        if self.capabilities.attempt_counts:
            gives["attempt_count"] = outcome.after.attempt_count(outcome.item)
        return gives

    def _complete(self, before: Moment, step: Step) -> None:
        if step.token is not None and step.token != STRANGER:
            i, place = step.token[0], PLACE[completions]
            if self.moment.items[i][place] > before.items[i][place]:
                self._done.append((_item(i), f"result of {self._name(step)}"))

    def contents(self) -> Json:
        """What is in the store now."""
        queued = []
        for i in self._queued():
            left_ms = self.moment.left_ms[i]
            row: Json = {"item": _item(i)}
            if self.capabilities.attempt_counts:
                row["attempt_count"] = self.moment.attempt_count(i)
            if left_ms is not None:
                # What could be fetched already could be so at some earlier time, which is nobody's concern.
                row["fetchable_at_ms"] = self.now_ms + max(left_ms, 0)
            queued.append(row)
        contents: Json = {"queued": queued}
        if self.capabilities.completion is not CompletionWrite.NONE:
            contents["completions"] = [{"item": i, "completion": c} for i, c in self._done]
        return contents

    def _queued(self) -> list[int]:
        return [i for i in range(len(self.moment.items)) if self.moment.is_queued(i)]

    def draining(self, times: Times) -> Iterator[Timed]:
        """Calls that show of every row how long it is hidden, and then take it."""
        fetch = Step(Call.FETCH, DRAIN_LOCK_MS)
        moment, now_ms = self.moment, self.now_ms
        hidden = set(self._queued())
        while True:
            certain = self._store.certain(moment, fetch)
            if certain is None:  # a store without order, in which several could be fetched
                if Call.CANCEL in self.capabilities.calls:
                    yield Timed(now_ms, Step(Call.CANCEL, items=tuple(self._queued())))
                return
            left_ms = min((n for i in hidden if (n := moment.left_ms[i]) is not None and n > 0), default=None)
            if certain.item is not None:
                yield Timed(now_ms, fetch)
                moment = certain.after
                hidden.remove(certain.item)
            elif left_ms is None:
                yield Timed(now_ms, fetch)
                return
            else:
                if times.exact and left_ms > 1:
                    yield Timed(now_ms + left_ms - 1, fetch)
                wait_ms = left_ms + times.slack_ms
                now_ms += wait_ms
                (later,) = self._store.outcomes(moment, Step(ms=wait_ms))
                moment = later.after


def _item(i: int) -> str:
    return ITEMS[i]


def _method(call: Call | None) -> str:
    """The method of a store that makes the call."""
    assert call is not None
    return "ack" if call in ACKS else "abandon" if call in ABANDONS else call.value


def _text(capabilities: Capabilities, call: Call, vectors: list[Vector]) -> str:
    """A file: one line for each call, so that a change is seen where it is."""
    declared = asdict(capabilities, value_serializer=lambda _, __, value: getattr(value, "value", value))
    lines = [
        "{",
        f'  "peeklock_vectors": {VERSION},',
        '  "kind": "store",',
        f'  "call": {json.dumps(call.value)},',
        f'  "capabilities": {json.dumps(declared)},',
        '  "vectors": [',
    ]
    for k, vector in enumerate(vectors, 1):
        lines += [
            "    {",
            f'      "name": {json.dumps(vector.name)},',
            f'      "needs": {json.dumps(vector.needs)},',
            *_listed("steps", vector.steps),
            *_listed("drain", vector.drain),
            f'      "at_the_end": {json.dumps(vector.at_the_end)}',
            "    }" + ("," if k < len(vectors) else ""),
        ]
    return "\n".join([*lines, "  ]", "}", ""])


def _listed(name: str, entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not entries:
        yield f'      "{name}": [],'
        return
    yield f'      "{name}": ['
    for k, entry in enumerate(entries, 1):
        yield f"        {json.dumps(entry)}" + ("," if k < len(entries) else "")
    yield "      ],"
