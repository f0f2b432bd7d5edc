"""A tale: a run as it is told, whether a search found it or a real system was seen to take it.

There is one kind of tale and one set of renderers for it: :mod:`~peeklock.harness.story.lanes` for a terminal,
:mod:`~peeklock.harness.story.lanes_markdown` for a pull request, :mod:`~peeklock.harness.story.page` for a browser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from attrs import evolve, field, frozen

from peeklock.spec.compose import PROMISES
from peeklock.spec.notation.actions import Answer
from peeklock.spec.reading.narrative import Line

TIME, ORCHESTRATOR = "time", "orchestrator"
"""Who does what no worker does."""
ARROW = "→"
BEFORE = "What was true then, by all that was seen before:"
_THIRD_PERSON = {
    "enqueue": "enqueues",
    "fetch": "fetches",
    "renew": "renews",
    "ack": "acks",
    "abandon": "abandons",
    "cancel": "cancels",
}
_SENTENCES = {promise.id: promise.text for promise in PROMISES}


@frozen
class TaleStep:
    """One step of a run, told."""

    number: int | None
    """None for what happens between the steps: time that passes, and steps that are left out."""
    who: str
    does: str
    answer: str = ""
    """What the store answered; empty where nothing was asked, or nobody saw the answer."""
    note: str = ""
    """What is behind the answer: whether the call took effect."""
    truth: tuple[str, ...] = ()
    """What changed in the store, as sentences."""
    belief: tuple[str, ...] = ()
    """What the worker makes of it."""
    faults: tuple[str, ...] = ()
    """The fault classes that the step needs."""
    at_ms: int | None = None
    possible: int = 1
    """How many states of what the step is about explain all that was seen so far."""
    mark: str = ""
    """Why the eye should stop here; empty for most steps."""

    @property
    def is_call(self) -> bool:
        """Is it a call to the store, as opposed to an event?"""
        return self.does.split(" ")[0] in _THIRD_PERSON

    @property
    def answered(self) -> str:
        """The answer with what is behind it; empty where there is neither."""
        if not self.answer:
            return self.note
        return f"{self.answer} ({self.note})" if self.note else self.answer

    @property
    def truth_told(self) -> tuple[str, ...]:
        """What changed in the store; where nothing did and more than one state is possible, that."""
        if self.truth or self.possible == 1:
            return self.truth
        return (f"still one of {self.possible}",)

    @property
    def sentence(self) -> str:
        """Who did what and what was answered, as one sentence without its full stop."""
        if not self.who:
            return self.does
        told = f"{self.who}: {self.does}"
        if self.is_call:
            verb, _, rest = self.does.partition(" ")
            told = f"{self.who} {_THIRD_PERSON[verb]} {rest}".rstrip()
        if not self.answer:
            return f"{told} ({self.note})" if self.note else told
        return f"{told}; the store answers: {self.answered}"


MOST_ALIKE = 5
"""So often a block of steps is told one by one; an ack sequence has five attempts."""
_LONGEST_BLOCK = 6
_NUMBER = re.compile(r"\d+")


def folded(steps: Iterable[TaleStep]) -> tuple[TaleStep, ...]:
    """The steps, each block that is repeated more than ``MOST_ALIKE`` times told in one.

    Blocks are alike when they differ in numbers only, which grow evenly from each to the next.
    """
    left, told = list(steps), []
    while left:
        length, times = max(
            ((n, _times(left, n)) for n in range(1, _LONGEST_BLOCK + 1)),
            key=lambda found: (found[1] > MOST_ALIKE, found[0] * found[1], -found[0]),
        )
        many = length * times if times > MOST_ALIKE else 1
        told.append(left[0] if many == 1 else _in_one(left[:many], length, times))
        left = left[many:]
    return tuple(told)


def _texts(step: TaleStep) -> tuple[str, ...]:
    return (step.who, step.does, step.answer, step.note, step.mark, *step.truth, *step.belief, *step.faults)


def _times(steps: Sequence[TaleStep], length: int) -> int:
    """How often in a row the first so many steps are taken."""
    blocks = (steps[k : k + length] for k in range(0, len(steps), length))
    first = list(next(blocks))
    shape, numbers, growth, times = _shape(first), _numbers(first), None, 1
    for block in blocks:
        if len(block) < length or _shape(block) != shape:
            break
        now = _numbers(block)
        grown = [b - a for a, b in zip(numbers, now, strict=True)]
        if growth not in (None, grown):
            break
        numbers, growth, times = now, grown, times + 1
    return times


def _shape(block: Iterable[TaleStep]) -> list[object]:
    return [(s.number is None, s.possible, *(_NUMBER.sub("#", text) for text in _texts(s))) for s in block]


def _numbers(block: Iterable[TaleStep]) -> list[int]:
    return [int(number) for s in block for text in _texts(s) for number in _NUMBER.findall(text)]


def _in_one(steps: Sequence[TaleStep], length: int, times: int) -> TaleStep:
    """All these steps as one, which has no number."""
    ends = list(zip(steps[:length], steps[-length:], strict=True))
    numbers = [s.number for s in steps if s.number is not None]
    told = [(_from_to(a.who, b.who), _from_to(_in_short(a), _in_short(b))) for a, b in ends]
    does = f"{times} times" + (f", steps {numbers[0]} to {numbers[-1]}" if numbers else "")
    last = evolve(steps[-1], number=None, answer="", note="", at_ms=steps[0].at_ms)
    if length == 1:
        return evolve(last, who=told[0][0], does=f"{does}: {told[0][1]}")
    parts = []
    for who, group in groupby(told, key=lambda one: one[0]):
        words = ", ".join(text for _, text in group)
        parts.append(words if who == TIME else f"{who}: {words}")
    faults = tuple(dict.fromkeys(name for s in steps[:length] for name in s.faults))
    return evolve(last, who="", does=f"{does}: {'; '.join(parts)}", belief=(), faults=faults)


def _in_short(step: TaleStep) -> str:
    if step.who == TIME and step.number is None:
        return "; ".join(step.truth)
    behind = f" ({step.note})" if step.note else ""
    return f"{step.does} {ARROW} {step.answered}" if step.answer else f"{step.does}{behind}"


def _from_to(first: str, last: str) -> str:
    """A text that stands for several, which differ in numbers: each word that does is told as from … to …."""
    words = zip(first.split(" "), last.split(" "), strict=True)
    return " ".join(a if a == b else f"{a.rstrip(',;')} to {b}" for a, b in words)


@frozen
class Tale:
    """A run, told: its steps in lanes, what is wrong with it, and what would have been right."""

    title: str
    steps: tuple[TaleStep, ...] = field(converter=folded)
    """Those that repeat are told in one."""
    setting: str = ""
    """Where it happened: a policy and a world, or what was recorded."""
    promises: tuple[tuple[str, str], ...] = ()
    """The promises that it breaks, as (id, sentence), the most telling first."""
    found: tuple[str, ...] = ()
    """What is wrong, in sentences."""
    allowed: tuple[str, ...] = ()
    """What would have been right instead of the last step."""
    before: tuple[tuple[str, ...], ...] = ()
    """The states that the run could have been in before the last step, in words; a few of them."""
    more_before: int = 0
    """How many more there are."""
    names: tuple[tuple[str, str], ...] = ()
    """Short names that stand for long ones."""
    notes: tuple[str, ...] = ()
    """What else there is to say."""
    allowed_heading: str = "Right would have been:"

    @property
    def lanes(self) -> tuple[str, ...]:
        """Who has a lane of their own, by name; worker 2 comes before worker 10."""
        return tuple(sorted({s.who for s in self.steps} - {"", TIME, ORCHESTRATOR}, key=_by_name))

    @property
    def marked(self) -> TaleStep | None:
        """The step at which it goes wrong."""
        return next((s for s in self.steps if s.mark), None)

    @property
    def has_times(self) -> bool:
        """Is it known when the steps happened?"""
        return any(s.at_ms is not None for s in self.steps)


def _by_name(who: str) -> list[tuple[int, str]]:
    return [(int(part) if part.isdecimal() else 0, part) for part in re.split(r"(\d+)", who)]


def sentences_of(promises: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Promises as (id, sentence)."""
    return tuple((pid, _SENTENCES[pid]) for pid in promises)


_NOTES = {
    "ack-permanent": "refused wrongly",
    "renewal-permanent": "refused wrongly",
    "dishonest-permanent": "a lie: it took effect",
}


def tale_of_steps(
    lines: Sequence[Line],
    *,
    title: str,
    broken_at: int | None = None,
    setting: str = "",
    promises: Iterable[str] = (),
    found: Iterable[str] = (),
    allowed: Iterable[str] = (),
    allowed_heading: str = "Right would have been:",
    notes: Iterable[str] = (),
) -> Tale:
    """The tale of a run of the model. ``broken_at`` is the place of the step that is wrong, from 0."""
    steps = [
        TaleStep(
            number,
            line.who,
            line.does,
            line.answer,
            note_on(line.answer, line.faults, bool(line.truth)),
            line.truth,
            line.belief,
            line.faults,
        )
        for number, line in enumerate(lines, 1)
    ]
    if broken_at is not None:
        steps[broken_at] = evolve(steps[broken_at], mark="this step breaks it")
    return Tale(
        title,
        tuple(steps),
        setting,
        sentences_of(promises),
        tuple(found),
        tuple(allowed),
        notes=tuple(notes),
        allowed_heading=allowed_heading,
    )


def note_on(answer: str, faults: Sequence[str], took_effect: bool) -> str:
    """What is behind an answer that is due to these fault classes; empty where there is nothing to say."""
    if "response-lost" in faults:
        return "the response was lost: it took effect"
    for name, note in _NOTES.items():
        if name in faults:
            return note
    if answer == Answer.RETRYABLE.value and faults:
        return "it took effect" if took_effect else "it had no effect"
    return ""
