"""The words of a comparison: partings, reactions, endings and numbers as sentences, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from attrs import frozen

from peeklock.model.review.behaviours import Letter
from peeklock.model.review.diff import Change, Difference, Witness
from peeklock.model.review.divergences import CUT_SHORT, Branch, Ending, Group, Reaction
from peeklock.model.review.policy_notes import about_five, about_needless, about_time
from peeklock.model.review.sides import Found, Side, Word
from peeklock.model.search.verdicts import Verdict
from peeklock.spec.law.state import Phase
from peeklock.spec.notation.actions import ABANDONS, ACKS, Call
from peeklock.spec.reading.narrative import Line
from peeklock.spec.reading.wording import many

SETTLING = {c.value for c in (*ACKS, *ABANDONS)}


@frozen
class Shown:
    """An ending that is told, with a run of it."""

    ending: Ending
    run: tuple[Line, ...]


@frozen
class Part:
    """What one side alone can come to after a parting: the endings that are told, and how many were told before."""

    sequences: int
    shown: tuple[Shown, ...]
    before: int
    cut_short: bool


@frozen
class Chapter:
    """One parting, told."""

    group: Group
    lost: Part
    gained: Part


def chapters(difference: Difference, old: Side, new: Side) -> list[Chapter]:
    """Every parting with its endings; an ending that is like one told before is counted, and not told again."""
    told: tuple[set[tuple[Any, ...]], set[tuple[Any, ...]]] = (set(), set())
    chosen = [
        (group, _chosen(group, group.lost, told[0]), _chosen(group, group.gained, told[1]))
        for group in difference.groups
    ]
    lost = iter(old.runs(tuple(e.word for _, (es, _), _ in chosen for e in es)))
    gained = iter(new.runs(tuple(e.word for _, _, (es, _) in chosen for e in es)))
    return [
        Chapter(group, _part(group.lost, *mine, lost), _part(group.gained, *theirs, gained))
        for group, mine, theirs in chosen
    ]


def _chosen(group: Group, branch: Branch, told: set[tuple[Any, ...]]) -> tuple[tuple[Ending, ...], int]:
    decided = [e for e in branch.endings if e.last != CUT_SHORT]
    fresh = []
    for ending in decided:
        key = (ending.last, ending.answers, ending.counts, group.parting.is_poison)
        if key not in told:
            fresh.append(ending)
            told.add(key)
    if not fresh:  # tell at least one
        fresh = (decided or list(branch.endings))[:1]
    return tuple(fresh), max(len(decided) - len(fresh), 0)


def _part(branch: Branch, endings: tuple[Ending, ...], before: int, runs: Iterator[tuple[Line, ...]]) -> Part:
    shown = tuple(Shown(e, next(runs)) for e in endings)
    return Part(branch.sequences, shown, before, any(e.last == CUT_SHORT for e in branch.endings))


def joined(words: Iterable[str], last: str = "and") -> str:
    """A list in words."""
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def heading(group: Group) -> str:
    """Where the two part: what the worker saw, and what it was at."""
    p = group.parting
    what = p.does
    if p.does == Call.ACK.value:
        what += f" ({_attempts(group.attempts)})"
    if group.answers:
        what += f" -> {joined(sorted(group.answers), 'or')}"
    at = f"while the worker {p.phase}"
    if p.is_poison:
        at += " with a poison failure"
    elif p.phase == Phase.ACKING.value and p.does != Call.ACK.value:
        at += f", before {_attempts(group.attempts)}"
    return f"{what}, {at}" + (f", after {p.trouble}" if p.trouble else "")


def _attempts(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    if low == high:
        return f"attempt {low}"
    return f"attempts {low} to {high}" if len(numbers) == high - low + 1 else f"attempts {_listed(numbers)}"


def _listed(numbers: Iterable[int]) -> str:
    return joined(map(str, sorted(numbers)))


def reaction(group: Group, reactions: tuple[Reaction, ...]) -> str:
    """What one side makes of what it saw."""
    if not reactions:
        return "cannot happen"
    return " or ".join(_reaction(group.parting.does, r) for r in reactions)


def _reaction(does: str, r: Reaction) -> str:
    if r.stops_renewing:
        then = "stops renewing"
    elif not r.stays:
        then = r.phase
    else:
        then = "sends the same ack again" if does == Call.ACK.value else "goes on, and keeps renewing"
    return f"counts {r.counts}; {then}" if r.counts else then


def ending_in_words(ending: Ending) -> str:
    """How a delivery ends, and what was counted."""
    last = f"{ending.last} -> {joined(ending.answers, 'or')}" if ending.answers else ending.last
    low, high = ending.acks
    acks = f"{low} to {high} acks" if low != high else many(high, "ack")
    after = f", after {acks}" if high else ""
    return f"{last}{after}; counts {' and '.join(ending.counts) or 'nothing'}"


def word_in_words(word: Word) -> str:
    """A behaviour in one line, with repeated letters told once."""
    told = []
    for letter, repeated in groupby(word):
        times = len(list(repeated))
        told.append(str(letter) + (f" ({times} times)" if times > 1 else ""))
    return "; ".join(told)


def takes(run: tuple[Line, ...]) -> str:
    """The faults of a run, and what is true in the store at its end."""
    faults = sorted({f for line in run for f in line.faults})
    truth = next((line.truth for line in reversed(run) if line.truth), ())
    return f"it takes {joined(faults) if faults else 'no fault'}; in the store at the end: {'; '.join(truth)}"


def value_in_words(value: Any) -> str:
    """A field's value."""
    if value is None:
        return "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ", ".join(f"{k} = {value_in_words(v)}" for k, v in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)


def verdict_in_words(found: Found | None) -> str:
    """A verdict, with the smallest sets of fault classes that break the promise."""
    if found is None:
        return "no such promise"
    if found.verdict == Verdict.FAILS.value and found.causes:
        return f"fails ({'; or '.join(' and '.join(c) or 'no fault' for c in found.causes)})"
    return "says nothing" if found.verdict == Verdict.SILENT.value else found.verdict


def summary(d: Difference) -> list[tuple[str, bool]]:
    """What it comes to, each sentence with whether it is for the worse."""
    old, new = d.old.title, d.new.title
    told: list[tuple[str, bool]] = []
    if d.stopped:
        told.append((f"unfinished: a search ended at {d.stopped}, so some verdicts are unknown", True))
    broken = _ids(d, Change.BROKEN)
    if broken:
        told.append((f"{new} breaks {joined(broken)}, which {old} keeps", True))
    worse = _ids(d, Change.WORSE)
    if worse:
        them = "it" if len(worse) == 1 else "them"
        told.append((f"{new} breaks {joined(worse)} under faults under which {old} keeps {them}", True))
    if d.newly_stuck:
        told.append((f"under {new} a run can get stuck: nothing can change any more", True))
    if not told:
        told.append((f"{new} breaks no promise that {old} keeps", False))
    fails = {p.id for p in d.changed if p.new is not None and p.new.verdict == Verdict.FAILS.value}
    told += [(text, False) for text in about_five(d.new.policy["ack_attempts"], fails)]
    sentences = (
        (Change.MENDED, f"{new} keeps {{ids}}, which {old} breaks"),
        (Change.BETTER, f"it takes more to break {{ids}} under {new} than under {old}"),
        (
            Change.SPEAKS,
            f"under {old} nothing could happen that {{ids}} {{are}} about; under {new} it can, and is as promised",
        ),
        (Change.SILENT, f"under {new} nothing can happen any more that {{ids}} {{are}} about"),
        (Change.ADDED, f"{{ids}} {{are}} promised by {new} only"),
        (Change.REMOVED, f"{{ids}} {{are}} promised by {old} only"),
    )
    for change, text in sentences:
        if ids := _ids(d, change):
            told.append((text.format(ids=joined(ids), are="is" if len(ids) == 1 else "are"), False))
    same = [
        p.id
        for p in d.promises
        if p.change is Change.NONE and p.new is not None and p.new.verdict == Verdict.FAILS.value
    ]
    if same:
        told.append((f"both break {joined(same)}, by the same faults", False))
    told.append((refinement(d), False))
    return told


def _ids(d: Difference, change: Change) -> list[str]:
    return [p.id for p in d.promises if p.change is change]


def refinement(d: Difference) -> str:
    """Which side's behaviours are all behaviours of the other."""
    old, new = d.old.title, d.new.title
    if d.lost is None and d.gained is None:
        return f"behaviours: a delivery can look exactly the same under {old} and {new}"
    if d.gained is None:
        return f"behaviours: {new} refines {old}: all that it does {old} does too, and not the reverse"
    if d.lost is None:
        return f"behaviours: {old} refines {new}: nothing that it does is lost, and something is gained"
    return f"behaviours: {new} gains some and loses some: neither does only what the other does"


def numbers(d: Difference) -> list[tuple[str, str, str]]:
    """Numbers of both sides: what they count, the old, the new."""
    (calls, calls_), (time, time_) = d.calls, d.timings
    rows: list[tuple[str, Any, Any]] = [
        ("acks of one sequence, at most", calls.acks, calls_.acks),
        ("calls that settle one delivery, at most", calls.calls, calls_.calls),
        ("time in waits, at most", f"{time.waits_ms:,} ms", f"{time_.waits_ms:,} ms"),
        (
            "attempts that begin within the shutdown grace",
            f"{time.attempts_in_grace} of {len(time.begins_ms)}",
            f"{time_.attempts_in_grace} of {len(time_.begins_ms)}",
        ),
        ("states of a delivery's behaviours", len(d.old.automaton.minimal()), len(d.new.automaton.minimal())),
        ("distinct states", d.old.distinct, d.new.distinct),
        ("steps", d.old.generated, d.new.generated),
        ("depth", d.old.depth, d.new.depth),
    ]
    return [(what, value_in_words(a), value_in_words(b)) for what, a, b in rows]


def remarks(d: Difference) -> list[str]:
    """What has to be known of the new side's times."""
    return list(about_time(d.timings[1])) if d.timings[0] != d.timings[1] else []


@frozen
class Broken:
    """A shortest run to show, the side that takes it, and what is false at its end, by promise."""

    title: str
    run: tuple[Line, ...]
    false: tuple[tuple[str, str], ...]
    needless: tuple[str, ...]
    """What it meets that is not needed, as sentences."""

    @property
    def ids(self) -> str:
        """The promises that it breaks."""
        return joined(pid for pid, _ in self.false)


def runs(d: Difference) -> list[Broken]:
    """The run of each changed promise, each run once."""
    found: dict[tuple[bool, tuple[Line, ...]], list[tuple[str, Witness]]] = {}
    for p in d.changed:
        if (w := p.witness) is not None:
            found.setdefault((w.is_new, w.lines), []).append((p.id, w))
    return [
        Broken(
            (d.new if is_new else d.old).title,
            run,
            tuple((pid, w.false) for pid, w in about),
            tuple(text for pid, w in about for text in about_needless(pid, run, w.causes)),
        )
        for (is_new, run), about in found.items()
    ]


def letters(word: Iterable[Letter]) -> list[dict[str, str]]:
    """A word for machines."""
    return [{"does": a.does, "answer": a.answer, "counts": a.counts} for a in word]
