"""``peeklock explore`` in a terminal: one line is read, one thing is done. It is the same from a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import evolve
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from peeklock.cli.explore.load import Run, is_trace, recorded, walks_in
from peeklock.cli.explore.page import as_page
from peeklock.cli.explore.text import Walk, beliefs, history, step_text, summary, truths
from peeklock.cli.shared.errors import UsageError
from peeklock.cli.shared.options import promises_of
from peeklock.cli.shared.show import tell_steps
from peeklock.harness.story.story import Tale, TaleStep, tale_of_steps
from peeklock.model.explore.walks import MOST_SEARCHED, Move, PositionError
from peeklock.model.export.common import write_whole
from peeklock.spec.compose import PROMISES
from peeklock.spec.reading.wording import many

LATEST = 3
"""So many of the latest steps are shown in lanes at each place."""
HELP = """\
  NUMBER    take that step
  (nothing) one step forward, where a run goes on
  b, f      one step back, one forward
  r, e      to the start, to the end of the walk or run
  h         how it came to this: the whole walk in lanes
  p         the promises: which are broken, which a next step could break
  n ID      the nearest way to break that promise from here, to be followed
  s         the place as text, to paste into a review
  g PLACE   go to a position, as a link or a summary has it
  m [N]     the runs that can be followed; follow the one with this number
  l FILE    follow a recorded run, or a walk that explore or explain --json wrote
  w FILE    write the page for a browser
  ?         this list
  q         quit"""


class Terminal:
    """A conversation about where a walk stands."""

    def __init__(self, walk: Walk, runs: Sequence[Run], out: Console) -> None:
        self._walk, self._runs, self._out = walk, list(runs), out
        self._commands: dict[str, Callable[[str], None]] = {
            "b": lambda _: self._go(self._walk.at - 1),
            "f": lambda _: self._go(self._walk.at + 1),
            "": lambda _: self._go(self._walk.at + 1),
            "r": lambda _: self._go(0),
            "e": lambda _: self._go(len(self._walk.path)),
            "h": lambda _: self._tell(0),
            "p": lambda _: self._promises(),
            "s": lambda _: self._say(summary(self._walk).rstrip()),
            "n": self._nearest,
            "g": self._go_to,
            "m": self._run,
            "l": self._load,
            "w": self._write,
            "?": lambda _: self._say(HELP),
        }

    def talk(self, notes: Sequence[str]) -> None:
        """Read lines until there are no more, or one says to quit."""
        world = self._walk.explorer.world
        self._say(f"[bold]policy {world.variant.policy.name}[/bold]; {world}", markup=True)
        for note in notes:
            self._say(note)
        self._show()
        interactive = sys.stdin.isatty()
        while True:
            try:
                line = input("> " if interactive else "").strip()
            except EOFError:
                return
            if not interactive:
                self._say(f"> {line}".rstrip())
            if line == "q":
                return
            try:
                self._do(line)
            except UsageError as error:
                self._say(str(error))

    def _do(self, line: str) -> None:
        if line.isdecimal():
            moves = self._walk.moves
            if not 1 <= int(line) <= len(moves):
                raise UsageError(f"there is no step {line} here; allowed: 1 to {len(moves)}")
            self._walk.take(moves[int(line) - 1])
            self._show()
            return
        name, _, rest = line.partition(" ")
        if name not in self._commands:
            raise UsageError(
                f"unknown: {line[:40]!r}; allowed: a number, b, f, r, e, h, p, n, s, g, m, l, w, ?, q"
            )
        self._commands[name](rest.strip())

    def _say(self, text: str, markup: bool = False) -> None:
        self._out.print(text, markup=markup, soft_wrap=True)

    # Where the walk stands

    def _show(self) -> None:
        self._say("")
        if self._walk.note and self._walk.at in (0, self._walk.followed):
            self._say(f"{self._walk.note}\n")
        if self._walk.at:
            self._tell(max(self._walk.at - LATEST, 0))
            self._say("")
        self._out.print(self._believed_and_true())
        for line in history(self._walk):
            colour = "red" if "✗" in line else "yellow" if "≠" in line else "default"
            self._say(f"  [{colour}]{escape(line)}[/]", markup=True)
        for move in self._walk.taken[-1:]:
            for b in move.breaks:
                self._say(
                    f'[bold red]✗ this step breaks {b.promise.id}[/]: "{escape(b.part.text)}" is false.', True
                )
        self._choices()

    def _believed_and_true(self) -> Table:
        """What the workers believe and what is true, side by side."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for heading in ("", "believed", "", "true"):
            table.add_column(heading)
        for belief in beliefs(self._walk):
            mark = "[yellow]≠[/]" if belief.differs else "[green]=[/]" if belief.true else ""
            table.add_row("", escape(belief.believed), mark, escape(belief.true))
        for truth in truths(self._walk):
            table.add_row("", "", "", escape(truth))
        return table

    def _choices(self) -> None:
        walk, who = self._walk, ""
        moves, length = walk.moves, len(walk.path)
        of = f" of {length}" if length > walk.at else ""
        self._say(f"\n[bold]step {walk.at}{of}. What can happen next:[/]", markup=True)
        following = walk.path[walk.at].taken if walk.at < length else None
        for number, move in enumerate(moves, 1):
            if move.line.who != who:
                who = move.line.who
                self._say(f"  [bold]{who}[/]", markup=True)
            self._say(self._choice(number, move, follows=move.taken == following), markup=True)
        if not moves:
            self._say("  nothing any more")

    def _choice(self, number: int, move: Move, follows: bool) -> str:
        told, _, fault = step_text(move).removeprefix(f"{move.line.who}: ").partition(" ! ")
        words = [f"  {'▸' if follows else ' '}{number:3}  {escape(told)}"]
        if fault:
            words.append(f"  [yellow]! {escape(fault)}[/]")
        if move.breaks:
            words.append(f"  [bold red]✗ breaks {', '.join(b.promise.id for b in move.breaks)}[/]")
        return "".join(words)

    def _tell(self, first: int) -> None:
        if not self._walk.at:
            self._say("nothing has happened yet")
            return
        tell_steps(self._out, tale_of(self._walk, first))

    def _promises(self) -> None:
        broken = dict(reversed(self._walk.broken))
        near: dict[str, list[str]] = {}
        for number, move in enumerate(self._walk.moves, 1):
            for b in move.breaks:
                near.setdefault(b.promise.id, []).append(str(number))
        for promise in PROMISES:
            mark, says = " ", ""
            if promise.id in broken:
                mark, says = "✗", f" (broken at step {broken[promise.id]})"
            elif promise.id in near:
                mark, says = "!", f" (step {' or '.join(near[promise.id])} would break it)"
            self._say(f"{mark} {promise.id:4} {promise.text}{says}")

    # Going elsewhere

    def _go(self, place: int) -> None:
        if not 0 <= place <= len(self._walk.path):
            raise UsageError(
                "this is the start" if place < 0 else "nothing follows yet: choose a step by its number"
            )
        self._walk.go(place)
        self._show()

    def _go_to(self, text: str) -> None:
        try:
            note = self._walk.follow(text.rpartition("#")[2])
        except PositionError as error:
            raise UsageError(str(error)) from None
        if note:
            self._say(note)
        self._show()

    def _nearest(self, pid: str) -> None:
        promises, walk = promises_of(pid), self._walk
        if len(promises) != 1:
            raise UsageError("n takes one promise")
        (promise,) = promises
        way = walk.explorer.way_to_break(walk.state, promise)
        if way is None:
            raise UsageError(f"nothing breaks {promise.id} within {MOST_SEARCHED} states from here")
        walk.lead(way)
        self._say(f"{promise.id} can be broken in {many(len(way), 'step')} from here.")
        self._choices()

    def _run(self, number: str) -> None:
        if not self._runs:
            self._say("no runs were loaded; l FILE loads one")
            return
        if not number:
            for k, run in enumerate(self._runs, 1):
                self._say(f"{k:3}  {run.title}")
            return
        if not number.isdecimal() or not 1 <= int(number) <= len(self._runs):
            raise UsageError(f"there is no run {number[:20]!r}; allowed: 1 to {len(self._runs)}")
        self._follow(self._runs[int(number) - 1])

    def _load(self, name: str) -> None:
        if not name:
            raise UsageError("l needs a FILE")
        path, world = Path(name), self._walk.explorer.world
        runs = (recorded(path, world.variant.policy).run(world),) if is_trace(path) else walks_in(path)
        self._runs += runs
        self._follow(runs[0])

    def _follow(self, run: Run) -> None:
        if note := self._walk.follow(run.position, run.note):
            self._say(note)
        self._walk.go(0)
        self._show()

    def _write(self, name: str) -> None:
        if not name:
            raise UsageError("w needs a FILE")
        here = Run("this walk", self._walk.position)
        try:
            write_whole({Path(name): as_page(self._walk.explorer, [here, *self._runs])})
        except OSError as error:
            raise UsageError(f"cannot write {name}: {error.strerror}") from None
        self._say(f"wrote {name}")


def tale_of(walk: Walk, first: int = 0) -> Tale:
    """The walk as it is told in lanes, from this step on (from 0)."""

    def marked(step: TaleStep, move: Move) -> TaleStep:
        ids = ", ".join(b.promise.id for b in move.breaks)
        return evolve(step, mark=f"this step breaks {ids}") if ids else step

    tale = tale_of_steps([m.line for m in walk.taken], title="")
    steps = [marked(step, move) for step, move in zip(tale.steps, walk.taken, strict=True)]
    return evolve(tale, steps=tuple(steps[first:]))
