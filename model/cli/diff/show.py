"""How a comparison looks: on a terminal, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from peeklock.cli.diff.words import (
    Chapter,
    Part,
    ending_in_words,
    heading,
    numbers,
    reaction,
    remarks,
    runs,
    summary,
    takes,
    value_in_words,
    verdict_in_words,
    word_in_words,
)
from peeklock.cli.docs.reference import table
from peeklock.cli.shared.show import say, tell_run
from peeklock.harness.story.lanes_markdown import plain, steps_as_markdown
from peeklock.harness.story.story import tale_of_steps
from peeklock.model.review.diff import FINDINGS, Change, Difference
from peeklock.spec.law.faults import FAULTS
from peeklock.spec.reading.narrative import Line
from peeklock.spec.reading.wording import many

LEGEND = (
    "A behaviour is what the worker sees and does from the fetch of a delivery to its last step about it. All of them "
    "are compared, as automata. Told are the ways to end, each with a shortest behaviour; sequences are counted "
    "without renewals that stop nobody, shutdowns and crashes; a result stands for an application error, too."
)

MOST_STEPS = 8
"""So many changed steps of the protocol are named; ``--json`` names all."""

MOST_OPEN = 2
"""Of more chapters a reader sees the headings first, and opens those that matter."""


@frozen
class Compared:
    """Two sides compared, and what there is to tell of them."""

    heading: str
    difference: Difference
    chapters: list[Chapter]


@frozen
class Every:
    """Every policy of two revisions compared."""

    heading: str
    policies: tuple[tuple[str, Compared | str], ...]
    """Each with its comparison, or with the title of the only side that has it."""

    @property
    def told(self) -> list[Compared]:
        """The comparisons in which there is a difference."""
        return [c for _, c in self.policies if isinstance(c, Compared) and not c.difference.is_empty]

    def summary(self) -> list[tuple[str, bool]]:
        """What each comes to, with whether it is for the worse."""
        return [(f"{name}: {text}", is_bad) for name, c in self.policies for text, is_bad in (_outcome(c),)]


def _outcome(compared: Compared | str) -> tuple[str, bool]:
    if isinstance(compared, str):
        return f"only {compared} has it, so there is nothing to compare it with", False
    if compared.difference.is_empty:
        return f"no difference in {'; '.join(worlds(compared.difference))}", False
    told = summary(compared.difference)
    bad = [text for text, is_bad in told if is_bad]
    return "; ".join(bad) or f"{told[0][0]}; what differs is told below", bool(bad)


def _faults(faults: tuple[str, ...]) -> str:
    usual = {f.name for f in FAULTS}
    off, more = sorted(usual - set(faults)), sorted(set(faults) - usual)
    told = "all fault classes on" if not off else f"fault classes off: {', '.join(off)}"
    return told + (f"; on besides: {', '.join(more)}" if more else "")


def worlds(d: Difference) -> list[str]:
    """In which worlds, and with which faults, verdicts were looked for."""
    told = [(s.title, f"{s.world}; {_faults(s.faults)}") for s in (d.old, d.new)]
    if told[0][1] == told[1][1]:
        return [told[0][1]]
    return [f"{name}: {what}" for name, what in told]


def changed_steps(d: Difference) -> list[str]:
    """What differs in the protocol itself."""
    told = []
    for word, names in zip(("gone", "new", "changed"), d.steps, strict=True):
        more = f"; and {len(names) - MOST_STEPS} more" if len(names) > MOST_STEPS else ""
        if names:
            told.append(f"{word}: {'; '.join(names[:MOST_STEPS])}{more}")
    return told


# On a terminal


def show_every(out: Console, every: Every, with_runs: bool) -> None:
    """What every policy comes to, and then each comparison in which there is a difference."""
    _show_summary(out, f"{every.heading}, every policy", every.summary())
    for compared in every.told:
        out.print()
        show(out, compared, with_runs)


def _show_summary(out: Console, heading_: str, told: list[tuple[str, bool]]) -> None:
    say(out, f"[bold]{escape(heading_)}[/bold]: what can now happen that could not, and what no longer can")
    out.print()
    for text, is_bad in told:
        say(out, f"[bold red]✗[/bold red] {escape(text)}" if is_bad else f"- {escape(text)}")


def show(out: Console, compared: Compared, with_runs: bool) -> None:
    """The comparison on a terminal or in a pipe."""
    d = compared.difference
    _show_summary(out, compared.heading, summary(d))
    _show_changes(out, d)
    _show_promises(out, d)
    _show_behaviours(out, d, compared.chapters, with_runs)
    out.print()
    grid = _grid("", d.old.title, d.new.title)
    for row in numbers(d):
        grid.add_row(*map(escape, row))
    out.print(grid)
    for text in remarks(d):
        say(out, f"note: {escape(text)}.")


def _show_changes(out: Console, d: Difference) -> None:
    for heading_, lines in (
        (
            "the policies differ in",
            [f"{n}: {value_in_words(a)} -> {value_in_words(b)}" for n, a, b in d.fields],
        ),
        ("the protocols differ in steps that are", changed_steps(d)),
    ):
        if lines:
            out.print()
            say(out, heading_)
            for text in lines:
                say(out, f"  {escape(text)}")


def _show_promises(out: Console, d: Difference) -> None:
    out.print()
    for text in worlds(d):
        say(out, escape(text))
    if not d.changed:
        say(out, "every promise has the verdict that it had")
    else:
        grid = _grid("", "promise", d.old.title, d.new.title, "")
        for p in d.changed:
            style = "bold red" if p.change in FINDINGS else ""
            words = (p.text, verdict_in_words(p.old), verdict_in_words(p.new), p.change.value)
            grid.add_row(p.id, *map(escape, words), style=style)
        out.print(grid)
    for pid, text, before, now in d.possibilities:
        say(out, f"  {pid} {escape(text)}: {_happens(before)} -> {_happens(now)}")
    for broken in runs(d):
        out.print()
        for pid, text in broken.false:
            steps = f"after {many(len(broken.run), 'step')} this is false"
            say(out, f"[bold]{pid}[/bold] under {escape(broken.title)}: {steps}: {escape(text)}")
        tell_run(out, list(broken.run), len(broken.run) - 1)
        for text in broken.needless:
            say(out, f"note: {text}.")


def _happens(found: bool | None) -> str:
    return {True: "happens", False: "cannot", None: "unknown"}[found]


def _show_behaviours(out: Console, d: Difference, chapters: list[Chapter], with_runs: bool) -> None:
    out.print()
    if not chapters:
        say(out, "no behaviour of a delivery is gained or lost")
        return
    say(out, LEGEND)
    for number, chapter in enumerate(chapters, 1):
        out.print()
        say(out, f"[bold]{number}. {escape(heading(chapter.group))}[/bold]")
        for name, reactions in _reactions(d, chapter):
            say(out, f"     {escape(name)}: {escape(reactions)}")
        for sign, part in (("-", chapter.lost), ("+", chapter.gained)):
            for text, run in _lines(part, sign):
                say(out, f"   {escape(text)}")
                if run and with_runs:
                    tell_run(out, list(run), None)
    for sign, word, name in (("-", d.lost, d.old.title), ("+", d.gained, d.new.title)):
        if word is not None:
            out.print()
            say(out, f"{sign} the shortest that only {escape(name)} does: {escape(word_in_words(word))}")


def _reactions(d: Difference, chapter: Chapter) -> Iterator[tuple[str, str]]:
    p = chapter.group.parting
    yield d.old.title, reaction(chapter.group, p.old)
    yield d.new.title, reaction(chapter.group, p.new)


def _lines(part: Part, sign: str) -> Iterator[tuple[str, tuple[Line, ...]]]:
    word = "lost" if sign == "-" else "gained"
    if part.shown:
        found = f"{many(part.sequences, 'sequence')} {word}"
        before = f", ending also in {part.before} of the ways told before" if part.before else ""
        yield f"{sign} {found}{before}", ()
    for shown in part.shown:
        yield f"  {sign} {ending_in_words(shown.ending)}", ()
        yield f"      {word_in_words(shown.ending.word)}", ()
        yield f"      {takes(shown.run)}", shown.run


def _grid(*headings: str) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for text in headings:
        grid.add_column(escape(text), overflow="fold")
    return grid


# As Markdown


def markdown_of_every(every: Every) -> str:
    """What every policy comes to, and each comparison in which there is a difference, for a pull request."""
    head = "\n".join(_summary(f"{every.heading}, every policy", every.summary()))
    return "\n".join((head, *map(markdown, every.told)))


def markdown(compared: Compared) -> str:
    """The comparison for a pull request."""
    return "\n".join(_markdown(compared))


def _summary(heading_: str, told: list[tuple[str, bool]]) -> Iterator[str]:
    yield from (f"### peeklock: {plain(heading_)}", "")
    for text, is_bad in told:
        yield f"- {'**✗** ' if is_bad else ''}{plain(text)}"
    yield ""


def _markdown(compared: Compared) -> Iterator[str]:
    d = compared.difference
    yield from _summary(compared.heading, summary(d))
    if d.fields:
        rows = ((f"`{n}`", plain(value_in_words(a)), plain(value_in_words(b))) for n, a, b in d.fields)
        yield from (table(("field", plain(d.old.title), plain(d.new.title)), rows), "")
    yield from (f"- steps that are {plain(text)}" for text in changed_steps(d))
    yield from ("#### Promises", "", *(plain(w) for w in worlds(d)), "")
    if d.changed:
        yield table(
            ("", "promise", plain(d.old.title), plain(d.new.title), ""),
            (
                (
                    p.id,
                    plain(p.text),
                    plain(verdict_in_words(p.old)),
                    plain(verdict_in_words(p.new)),
                    _change(p.change),
                )
                for p in d.changed
            ),
        )
    else:
        yield "Every promise has the verdict that it had."
    yield ""
    for pid, text, before, now in d.possibilities:
        yield f"- {pid} {plain(text)}: {_happens(before)} -> {_happens(now)}"
    yield ""
    for broken in runs(d):
        it = "it" if len(broken.false) == 1 else "them"
        about = f"{broken.ids} under {plain(broken.title)}: the shortest run that breaks {it}"
        false = (f"At its end this is false: {plain(text)} ({pid})." for pid, text in broken.false)
        needless = (f"Note: {plain(text)}." for text in broken.needless)
        yield from _details(f"{about}, {many(len(broken.run), 'step')}", *false, _run(broken.run), *needless)
    yield from ("#### Behaviours of one delivery", "", *_behaviours(d, compared.chapters))
    yield from ("#### Numbers", "", table(("", plain(d.old.title), plain(d.new.title)), numbers(d)), "")
    for text in remarks(d):
        yield f"> {plain(text)}."
        yield ">"


def _change(change: Change) -> str:
    return f"**{change.value}**" if change in FINDINGS else change.value


def _behaviours(d: Difference, chapters: list[Chapter]) -> Iterator[str]:
    if not chapters:
        yield from ("No behaviour of a delivery is gained or lost.", "")
        return
    yield from (LEGEND, "")
    for number, chapter in enumerate(chapters, 1):
        yield from (f"**{number}. {plain(heading(chapter.group))}**", "")
        for name, reactions in _reactions(d, chapter):
            yield f"- {plain(name)}: {plain(reactions)}"
        yield ""
        told = [
            (part, list(_lines(part, sign))) for sign, part in (("-", chapter.lost), ("+", chapter.gained))
        ]
        counts = "; ".join(lines[0][0][2:] for part, lines in told if part.shown)
        blocks = (
            "\n".join(("```diff", *(text for text, _ in lines), "```")) for part, lines in told if part.shown
        )
        yield from _details(counts, *blocks, is_open=len(chapters) <= MOST_OPEN)
    for word, name in ((d.lost, d.old.title), (d.gained, d.new.title)):
        if word is not None:
            yield f"- the shortest that only {plain(name)} does: {plain(word_in_words(word))}"
    yield ""


def _run(lines: tuple[Line, ...]) -> str:
    return steps_as_markdown(tale_of_steps(lines, title="", broken_at=len(lines) - 1))


def _details(about: str, *body: str, is_open: bool = False) -> Iterable[str]:
    return (
        "<details open>" if is_open else "<details>",
        f"<summary>{about}</summary>",
        "",
        "\n\n".join(body),
        "",
        "</details>",
        "",
    )
