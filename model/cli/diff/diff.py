"""``peeklock diff``: what can now happen that could not before, between two policies or two revisions."""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from typing import Any

from attrs import evolve

from peeklock.cli.diff.asked import Asked, asked
from peeklock.cli.diff.show import (
    Compared,
    Every,
    markdown,
    markdown_of_every,
    show,
    show_every,
    worlds,
)
from peeklock.cli.diff.words import Chapter, Part, chapters, letters, remarks, runs, summary
from peeklock.cli.shared.options import add_world_options
from peeklock.cli.shared.show import console
from peeklock.model.review.diff import Difference
from peeklock.model.review.sides import Found
from peeklock.model.search.engine import INTERRUPTED
from peeklock.spec.reading.narrative import Line


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "diff",
        help=summary,
        description="Compare two policies, or two git revisions of the specification: promises, behaviours of a "
        "delivery gained and lost, each with a shortest run, and numbers. Exit code 0 when NEW breaks no promise that "
        "OLD keeps, 1 when it does. Two bare revisions are compared in every policy that either has, and the exit code "
        "is that of the worst; a bare revision beside anything else means its policy retry.",
        epilog="example: peeklock diff before retry; or for two revisions: peeklock diff HEAD~1 HEAD --items 1",
    )
    forms = "before, retry, hardened, a policy file, or a git revision: REV, REV:NAME, REV:FILE.toml"
    parser.add_argument("old", metavar="OLD", help=forms)
    parser.add_argument("new", metavar="NEW", help="the same")
    parser.add_argument("--runs", action="store_true", help="tell the run of every behaviour, too")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="for a pull request")
    form.add_argument("--json", action="store_true", help="for machines")
    add_world_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare. 0 when the new side breaks no promise that the old one keeps, 1 when it does or a search was stopped."""
    old, new = asked(options.old), asked(options.new)
    if old.is_bare and new.is_bare:
        return _every(old, new, options)
    old, new = (a.of("retry") if a.is_bare else a for a in (old, new))
    compared = _compared(old, new, options)
    if options.json:
        _print_json(_data(compared))
    elif options.markdown:
        print(markdown(compared))
    else:
        show(console(), compared, options.runs)
    return int(compared.difference.is_for_the_worse)


def _every(old: Asked, new: Asked, options: argparse.Namespace) -> int:
    """Compare every policy of two revisions. The exit code is the worst of them all."""
    olds, news = old.policies(), new.policies()
    policies: list[tuple[str, Compared | str]] = []
    for name in dict.fromkeys((*olds, *news)):
        if name in olds and name in news:
            policies.append((name, _compared(old.of(name), new.of(name), options)))
        else:
            policies.append((name, old.heading if name in olds else new.heading))
    every = Every(_heading(old, new), tuple(policies))
    if options.json:
        data = [
            {
                "policy": name,
                "only": c if isinstance(c, str) else None,
                "differs": isinstance(c, str) or not c.difference.is_empty,
                "comparison": None if isinstance(c, str) else _data(c),
            }
            for name, c in policies
        ]
        _print_json({"title": every.heading, "summary": [t for t, _ in every.summary()], "policies": data})
    elif options.markdown:
        print(markdown_of_every(every))
    else:
        show_every(console(), every, options.runs)
    return int(any(c.difference.is_for_the_worse for c in every.told))


def _heading(old: Asked, new: Asked) -> str:
    return f"{old.heading} -> {new.heading}"


def _compared(old: Asked, new: Asked, options: argparse.Namespace) -> Compared:
    """Search both sides and compare them; ``UsageError`` when one cannot be searched."""
    if old.title == new.title:
        old, new = (evolve(a, title=a.text) for a in (old, new))
    with ExitStack() as stack:
        sides = []
        for a in (old, new):
            sides.append(a.side(a.title, options, stack))
            if sides[-1].account.stopped == INTERRUPTED:
                raise KeyboardInterrupt
        difference = Difference(*(s.account for s in sides))
        return Compared(_heading(old, new), difference, chapters(difference, *sides))


def _print_json(data: dict[str, Any]) -> None:
    print(json.dumps(data, indent=2, ensure_ascii=False))


def _data(compared: Compared) -> dict[str, Any]:
    d = compared.difference
    return {
        "title": compared.heading,
        "old": d.old.title,
        "new": d.new.title,
        "worlds": worlds(d),
        "summary": [text for text, _ in summary(d)],
        "remarks": remarks(d),
        "broken": [p.id for p in d.findings],
        "fields": [{"field": n, "old": a, "new": b} for n, a, b in d.fields],
        "steps": dict(zip(("gone", "new", "changed"), map(list, d.steps), strict=True)),
        "promises": [
            {
                "promise": p.id,
                "text": p.text,
                "change": p.change.value,
                "old": _found(p.old),
                "new": _found(p.new),
            }
            for p in d.promises
        ],
        "runs": [
            {
                "side": r.title,
                "breaks": [{"promise": pid, "false": text} for pid, text in r.false],
                "needless": list(r.needless),
                "steps": _steps(r.run),
            }
            for r in runs(d)
        ],
        "possibilities": [{"id": k, "text": t, "old": a, "new": b} for k, t, a, b in d.possibilities],
        "new_refines_old": d.gained is None,
        "old_refines_new": d.lost is None,
        "shortest_lost": None if d.lost is None else letters(d.lost),
        "shortest_gained": None if d.gained is None else letters(d.gained),
        "behaviours": [_chapter(c) for c in compared.chapters],
        "numbers": {
            name: {
                "acks": calls.acks,
                "calls": calls.calls,
                "waits_ms": time.waits_ms,
                "attempts_begin_ms": list(time.begins_ms),
                "attempts_in_shutdown_grace": time.attempts_in_grace,
                "behaviour_states": len(account.automaton.minimal()),
                "distinct": account.distinct,
                "generated": account.generated,
                "depth": account.depth,
            }
            for name, account, calls, time in zip(
                ("old", "new"), (d.old, d.new), d.calls, d.timings, strict=True
            )
        },
        "stopped": d.stopped,
    }


def _found(found: Found | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "verdict": found.verdict,
        "causes": [list(c) for c in found.causes],
        "false": found.false,
        "steps": _steps(found.lines),
    }


def _chapter(chapter: Chapter) -> dict[str, Any]:
    group, p = chapter.group, chapter.group.parting
    return {
        "worker": p.phase,
        "after": p.trouble,
        "poison": p.is_poison,
        "does": p.does,
        "answers": sorted(group.answers),
        "attempts": sorted(group.attempts),
        "old": [{"counts": r.counts, "then": r.phase, "stops_renewing": r.stops_renewing} for r in p.old],
        "new": [{"counts": r.counts, "then": r.phase, "stops_renewing": r.stops_renewing} for r in p.new],
        "lost": _part(chapter.lost),
        "gained": _part(chapter.gained),
    }


def _part(part: Part) -> dict[str, Any]:
    return {
        "sequences": part.sequences,
        "endings": [
            {
                "last": s.ending.last,
                "answers": list(s.ending.answers),
                "counts": list(s.ending.counts),
                "acks": list(s.ending.acks),
                "word": letters(s.ending.word),
                "run": _steps(s.run),
            }
            for s in part.shown
        ],
        "endings_told_before": part.before,
        "cut_short": part.cut_short,
    }


def _steps(lines: tuple[Line, ...]) -> list[dict[str, Any]]:
    return [
        {
            "who": x.who,
            "does": x.does,
            "answer": x.answer,
            "truth": list(x.truth),
            "belief": list(x.belief),
            "faults": list(x.faults),
        }
        for x in lines
    ]
