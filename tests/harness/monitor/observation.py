"""What can be seen of a run: one call with its answer, one committed effect, or one event."""

from __future__ import annotations

import enum

from attrs import frozen

from peeklock.spec.law.state import Result
from peeklock.spec.notation.actions import Answer, Call, Event, Metric


class Moment(enum.Enum):
    """How much of a call was seen."""

    WHOLE = "whole"
    BEGINS = "begins"
    """Its answer is seen later."""
    LOST = "begins, and nobody knows how it ends"
    ENDS = "ends"


@frozen
class Observation:
    """One thing that was seen. What is None was not seen, and every possibility is kept.

    A call is named by ``call``; ``answer`` is what the caller was told, ``effect`` whether it changed the store.
    Anything else that happened is named by ``event``, a verdict that a worker counted by ``counts``.
    """

    call: Call | None = None
    event: Event | None = None
    counts: Metric | None = None
    worker: str | None = None
    item: str | None = None
    token: str | None = None
    """The token that the call presents, or that a fetch returned."""
    answer: Answer | None = None
    effect: bool | None = None
    attempt: int | None = None
    """The attempt count that a fetch returned."""
    completions: tuple[Result, ...] = ()
    """What the completion of an ack may be; empty where that was not seen."""
    at_ms: int | None = None
    """When it happened, by the store's clock; with ``until_ms``, not before this."""
    until_ms: int | None = None
    """Not after this; None where ``at_ms`` is exact."""
    lasts_ms: int | None = None
    """The lock timeout of a fetch, the extension of a renewal, or the delay of an enqueue or an abandon."""
    place: str = ""
    """Where it was seen: a file's line, or a step's number."""
    payload: str | None = None
    """The text of the completion that an ack carried, where only the store is watched."""
    unasked: bool = False
    """A retryable error although nothing was made to fail, of a store that is not said to be busy."""
    moment: Moment = Moment.WHOLE

    def __str__(self) -> str:
        who = f"worker {shown(self.worker)}: " if self.worker else ""
        about = shown(self.token or self.item or "")
        if self.counts is not None:
            return f"{who}counts {self.counts.value}"
        if self.event is not None:
            return f"{who}{self.event.value}" + (f" ({about})" if about else "")
        assert self.call is not None
        answer = "" if self.answer is None else f" -> {self.answer.value}"
        effect = {None: "", True: ", which took effect", False: ", without effect"}[self.effect]
        if self.answer is Answer.OK:
            effect = ""
        return f"{who}{self.call.value} {about}{answer}{effect}".replace("  ", " ")


MOST_SHOWN = 60


def shown(text: str) -> str:
    """A name from outside as it may be printed: nothing that steers a terminal, and not too long."""
    plain = text if text.isprintable() else ascii(text)[1:-1]
    return plain if len(plain) <= MOST_SHOWN else plain[: MOST_SHOWN - 1] + "…"
