"""What would have been right instead of a step: told in the kind of what was wrong, a call, a count or an event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from peeklock.harness.monitor.engine import COUNTS
from peeklock.harness.monitor.observation import Observation, shown
from peeklock.harness.story.story import ARROW
from peeklock.spec.notation.actions import Answer, Call, Event

_NOT_ITS_OWN = (Event.CRASH.value, Event.SHUTDOWN.value, Event.GRACE_ENDS.value)
"""What may happen to a worker at any time, and is none of its choices."""


def instead(seen: Observation, allowed: Sequence[str], handed_out: Sequence[str]) -> Iterator[str]:
    """Of the call that was made its answers, for a wrong count the counts; where there are none, what else.

    ``allowed`` is what a monitor says could have been seen; ``handed_out`` the answers that a fetch could have had.
    """
    calls: dict[str, list[str]] = {}
    other, counts = [], []
    for text in allowed:
        call, arrow, answer = text.partition(" -> ")
        if arrow:
            calls.setdefault(call, []).append(answer)
        elif text.startswith(COUNTS):
            counts.append(text)
        elif text not in _NOT_ITS_OWN:
            other.append(shown(text))
    if counts and (seen.counts is not None or not calls):
        yield _any_of(counts)
        return
    made = "" if seen.call is None else seen.call.value
    named = {call: answers for call, answers in calls.items() if call.split(" ")[0] == made}
    if named:
        for call, answers in named.items():
            yield from _answers(seen, call, answers, handed_out)
        return
    if not calls:
        yield from other
        return
    yield f"{'no count, but ' * (seen.counts is not None)}{'another' if made else 'a'} call: {_any_of(list(calls))}"
    if other or counts:
        yield f"or without a call: {'; '.join((*counts, *other))}"


def _answers(seen: Observation, call: str, answers: list[str], handed_out: Sequence[str]) -> Iterator[str]:
    if seen.call is Call.FETCH and Answer.OK.value in answers:
        answers = [*handed_out, *(a for a in answers if a != Answer.OK.value)]
    others = [a for a in answers if a != Answer.RETRYABLE.value]
    if others:
        yield f"{call} {ARROW} {_any_of(others)}"
    if len(others) < len(answers):
        yield f"{call} {ARROW} {Answer.RETRYABLE.value}, if it fails"


def _any_of(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
