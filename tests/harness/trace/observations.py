"""Lines of a trace file that are each one thing that was seen: a call, an event, a verdict, a look at completions.

A committed effect whose answer nobody saw has ``"effect": true`` and no ``answer``; a failure that was logged has an
``answer`` and no ``effect``.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from peeklock.harness.monitor.observation import Observation
from peeklock.harness.monitor.world import STARTS_TIMER
from peeklock.harness.trace.line import Enqueued, Line, Times, quoted
from peeklock.spec.law.state import Result
from peeklock.spec.notation.actions import Answer, Call, Event, Metric

COMPLETIONS = {
    "result": (Result.SUCCESS,),
    "application error": (Result.APPLICATION_ERROR,),
    "poison": (Result.POISON,),
    "failure": (Result.APPLICATION_ERROR, Result.POISON),
}
OF_DELIVERIES = ("item", "token", "attempt")
"""What a fetch returned, or would have, had its response not been lost."""
_TEXTS = ("worker", "item", "token")
_OF_CALLS = ("answer", "effect", "attempt", "t_ms", "until_ms", "lasts_ms")
OF_WORKERS = ("call", "event", "counts", *_TEXTS, *_OF_CALLS, "completion")
OF_STORE = ("call", *_TEXTS, *_OF_CALLS, "payload", "unasked")
OF_LOOKS = ("completions", "t_ms")


@frozen
class Look:
    """The completions that a store had, as (item, text), oldest first."""

    completions: tuple[tuple[str, str], ...]


def seen_of_workers(lines: Iterator[Line], times: Times) -> Iterator[Observation]:
    """What was seen of workers and their store; ``TraceError`` for a line that is wrong."""
    holders: dict[str, str] = {}
    enqueued = Enqueued()
    for line in lines:
        line.known(OF_WORKERS)
        seen = _seen(line, times, enqueued)
        if seen.call is not Call.FETCH and seen.answer is Answer.NOTHING:
            raise line.wrong("answer is 'nothing'; allowed: for a fetch", "answer")
        fetches = seen.call is Call.FETCH
        if fetches and seen.item is None and _may_have_taken(seen):
            raise line.wrong(
                "a fetch that may have taken an item needs it; allowed: item, or answer nothing or an error, "
                "or effect false",
                "call",
            )
        # Workers are interchangeable: where none is named, each delivery has one of its own.
        if seen.worker is None and seen.token is not None:
            seen = evolve(seen, worker=holders.setdefault(seen.token, f"of {seen.token}"))
        elif seen.worker is None and fetches and seen.item is not None:
            seen = evolve(seen, worker=f"of line {line.number}")
        yield seen


def seen_of_store(lines: Iterator[Line], times: Times) -> Iterator[Observation | Look]:
    """What was seen of a store alone; ``TraceError`` for a line that is wrong."""
    clients, enqueued = _Clients(), Enqueued()
    seen_before = False
    for line in lines:
        if "completions" in line.data:
            line.known(OF_LOOKS)
            if not seen_before:
                raise line.wrong("a look at completions before anything was seen; allowed: after a call")
            yield _look(line, times)
            continue
        line.known(OF_STORE)
        seen_before = True
        seen = _seen(line, times, enqueued)
        if seen.answer is Answer.NOTHING and seen.call not in (Call.FETCH, Call.CANCEL):
            raise line.wrong("answer is 'nothing'; allowed: for a fetch or a cancel", "answer")
        unasked = bool(line.typed("unasked", bool))
        if unasked and seen.answer is not Answer.RETRYABLE:
            raise line.wrong("unasked is true; allowed: for a retryable error", "unasked")
        seen = evolve(seen, payload=line.typed("payload", str), unasked=unasked)
        if seen.call is Call.ACK:
            seen = evolve(seen, completions=COMPLETIONS["result"])  # to a store they are all the same
        yield clients.named(seen)


def _look(line: Line, times: Times) -> Look:
    times.of(line)
    for pair in line.typed("completions", list):
        if type(pair) is not list or [type(text) for text in pair] != [str, str]:
            raise line.wrong(
                "completions has something else; allowed: pairs of an item and a text", "completions"
            )
    return Look(tuple((item, text) for item, text in line.data["completions"]))


class _Clients:
    """Who made a call, by the client that each delivery has for itself: it keeps its token for ever."""

    def __init__(self) -> None:
        self._of_token: dict[str, str] = {}
        self._used: set[str] = set()

    def named(self, seen: Observation) -> Observation:
        """The call, made by the client that has the delivery."""
        if seen.call is not Call.FETCH:
            return evolve(
                seen, worker=None if seen.token is None else self._of_token.get(seen.token, seen.worker)
            )
        name = seen.worker
        if name is None or name in self._used:
            name = f"of {seen.token}" if seen.token is not None else f"client {len(self._used) + 1}"
        if seen.token is not None:
            self._of_token.setdefault(seen.token, name)
        if seen.token is not None or seen.answer is not Answer.NOTHING:
            self._used.add(name)
        return evolve(seen, worker=name)


def _seen(line: Line, times: Times, enqueued: Enqueued) -> Observation:
    call, event, counts = (
        line.one_of("call", Call),
        line.one_of("event", Event),
        line.one_of("counts", Metric),
    )
    if sum(x is not None for x in (call, event, counts)) != 1:
        raise line.wrong("allowed: exactly one of call, event, counts")
    worker, item, token = (line.typed(name, str) for name in _TEXTS)
    if counts is not None and worker is None and token is None:
        raise line.wrong("a counted verdict needs the worker that counted it, or the token", "counts")
    if call in (Call.ENQUEUE, Call.CANCEL) and item is None:
        raise line.wrong(f"{call.value} needs an item" if call else "")
    if call is Call.ENQUEUE and item is not None:
        enqueued.refuse(line, item, "item")
        enqueued.add(line, item)
    if (event is not None or call not in (None, Call.ENQUEUE, Call.CANCEL, Call.FETCH)) and not (
        worker or item or token
    ):
        raise line.wrong("allowed: with a token, a worker or an item, to say whose it is")
    answer, effect = line.one_of("answer", Answer), line.typed("effect", bool)
    if (answer is Answer.OK and effect is False) or (answer is Answer.NOTHING and effect):
        raise line.wrong(f"effect is {quoted(effect)}, which contradicts the answer", "effect")
    attempt = line.typed("attempt", int)
    if call is Call.FETCH:
        effect = _took(line, answer, effect)
    elif attempt is not None:
        raise line.wrong("attempt is of a fetch; allowed here: leave it out", "attempt")
    completion = line.typed("completion", str)
    if completion is not None and completion not in COMPLETIONS:
        raise line.wrong(
            f"completion is {quoted(completion)}; allowed: {', '.join(COMPLETIONS)}", "completion"
        )
    at_ms, lasts_ms = times.of(line), line.at_least("lasts_ms", 0)
    until_ms = line.typed("until_ms", int)
    if until_ms is not None and (at_ms is None or until_ms < at_ms):
        raise line.wrong(f"until_ms is {until_ms}; allowed: with t_ms, and not before it", "until_ms")
    if times.clock and lasts_ms is None and call in STARTS_TIMER and answer is not Answer.NOTHING:
        raise line.wrong("with a clock recorded, this call needs lasts_ms", "call")
    if at_ms is not None and times.slack_ms:
        at_ms, until_ms = at_ms - times.slack_ms, (until_ms or at_ms) + times.slack_ms
    return Observation(
        call=call,
        event=event,
        counts=counts,
        worker=worker,
        item=item,
        token=token,
        answer=answer,
        effect=effect,
        attempt=attempt,
        completions=COMPLETIONS.get(completion or "", ()),
        at_ms=at_ms,
        until_ms=until_ms,
        lasts_ms=lasts_ms,
        place=line.place,
    )


def _may_have_taken(seen: Observation) -> bool:
    """May the fetch have taken an item, and not as one whose response was lost does?"""
    return bool(seen.effect) or (seen.effect is None and seen.answer in (None, Answer.OK))


def _took(line: Line, answer: Answer | None, effect: bool | None) -> bool | None:
    """Did the fetch take something? What it returned says so, though nobody saw its answer."""
    returned = [name for name in OF_DELIVERIES if line.data.get(name) is not None]
    if not returned:
        return effect
    if answer is Answer.NOTHING or effect is False:
        against = "answer" if answer is Answer.NOTHING else "effect"
        raise line.wrong(
            f"{against} says that nothing was taken, and {returned[0]} what was; allowed: one of the two",
            against,
        )
    return True
