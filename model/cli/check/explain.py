"""``peeklock explain``: the shortest trace that breaks a promise, in lanes."""

from __future__ import annotations

import argparse
import json
from typing import Any

from peeklock.cli.shared.errors import UsageError
from peeklock.cli.shared.options import add_world_options, limits_of, variants_of, world_of
from peeklock.cli.shared.progress import Progress
from peeklock.cli.shared.show import add_tale_options, console, say, show_tale, told
from peeklock.harness.story.story import ARROW, Tale, tale_of_steps
from peeklock.model.explore.walks import position
from peeklock.model.review.policy_notes import about_needless
from peeklock.model.search.engine import INTERRUPTED
from peeklock.model.search.other_answers import alternatives
from peeklock.model.search.verdicts import BrokenPart, Check, Judged, Verdict, check
from peeklock.spec.compose import PROMISES
from peeklock.spec.reading.narrative import Line
from peeklock.spec.reading.wording import many


def add_parser(commands: Any, summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "explain",
        help=summary,
        description="Tell the shortest run that breaks a promise: who did what, what the store answered, what was "
        "true.",
        epilog="example: peeklock explain S12 --policy retry --html s12.html",
    )
    parser.add_argument("promise", metavar="PROMISE", help="S1 … S14, C1 … C7")
    parser.add_argument("--policy", default="retry", metavar="NAME|FILE.toml", help="default: retry")
    add_tale_options(parser)
    add_world_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Explain one promise. 0 when its verdict is as stated, 1 when not."""
    known = {p.id: p for p in PROMISES}
    options.promise = options.promise.upper() if options.promise.upper() in known else options.promise
    if options.promise not in known:
        raise UsageError(f"unknown promise {options.promise!r}; allowed: {', '.join(known)}")
    (variant,) = variants_of([options.policy], any_store=True)
    world = world_of(options, variant)
    with Progress(f"{variant.policy.name}, {world}") as progress:
        result = check(
            world,
            (known[options.promise],),
            (),
            limits=limits_of(options),
            report=progress.report,
            with_causes=True,
        )
    (judged,) = result.promises
    if judged.verdict is Verdict.FAILS:
        show_tale(options, tale_of(judged, result), as_data(judged, result))
    else:
        say_verdict(options, judged, result)
    if result.stopped == INTERRUPTED:
        return 130
    return 0 if judged.as_stated and not result.stopped else 1


def say_verdict(options: argparse.Namespace, judged: Judged, result: Check) -> None:
    """That there is no trace, and why."""
    needed = result.world.variant.policy.max_attempts + 2
    word = {
        Verdict.NOT_SHOWN: f"cannot break in a world this small; use --deliveries {needed} or more",
        Verdict.HOLDS: "holds in every state and step of this world: there is no trace to show",
        Verdict.SILENT: "says nothing here: none of the steps that it is about can happen",
        Verdict.UNKNOWN: f"unknown: the search ended at {result.stopped}",
    }[judged.verdict]
    if options.json:
        print(json.dumps(as_data(judged, result), indent=2, ensure_ascii=False))
        return
    out = console()
    say(out, f"[bold]{judged.promise.id}[/bold]  {judged.promise.text}")
    say(out, f"policy {result.world.variant.policy.name}; {result.world}")
    say(out, f"{judged.promise.id} {word}.")


def tale_of(judged: Judged, result: Check) -> Tale:
    """The trace that breaks a promise, and what it shows."""
    first = judged.broken[0]
    lines = told(first.trace)
    found = [
        f'{judged.promise.id} is broken at step {len(lines)}, where this is false: "{first.part.text}".',
        *(
            f'False too, after {many(len(other.trace.steps), "step")}: "{other.part.text}".'
            for other in judged.broken[1:]
        ),
    ]
    kept = [f"{x.does} {ARROW} {x.answer}" if x.answer else x.does for x in kept_instead(first, result)]
    return tale_of_steps(
        lines,
        title=f"{result.world.variant.policy.name} breaks {judged.promise.id}",
        broken_at=len(lines) - 1,
        setting=f"policy {result.world.variant.policy.name}; {result.world}",
        promises=(judged.promise.id,),
        found=found,
        allowed=kept,
        allowed_heading="Another answer would have kept it:",
        notes=(
            causes_in_words(judged),
            *(
                f"{text[0].upper()}{text[1:]}."
                for text in about_needless(judged.promise.id, lines, judged.causes)
            ),
        ),
    )


def kept_instead(broken: BrokenPart, result: Check, most: int = 4) -> list[Line]:
    """Steps that were possible instead of the last one and keep the part, by the same hand first."""
    return alternatives(result.world, broken)[:most]


def causes_in_words(judged: Judged) -> str:
    """The smallest sets of fault classes that break the promise, as a sentence."""
    if not judged.causes:
        return "The smallest set of fault classes that breaks it was not looked for."
    sets = [" and ".join(sorted(c)) if c else "no fault at all" for c in judged.causes]
    begins = (
        "The smallest sets of fault classes that break it: "
        if len(sets) > 1
        else "What it takes to break it: "
    )
    return begins + "; or ".join(sets) + "."


def as_data(judged: Judged, result: Check) -> dict[str, Any]:
    """The verdict and its trace for machines."""
    return {
        "promise": judged.promise.id,
        "text": judged.promise.text,
        "policy": result.world.variant.policy.name,
        "verdict": judged.verdict.value,
        "stated": judged.stated.value,
        "as_stated": judged.as_stated,
        "causes": [sorted(c) for c in judged.causes],
        "broken": [
            {
                "part": b.part.text,
                "position": position(result.world, b.trace.steps),
                "steps": [
                    {
                        "who": x.who,
                        "does": x.does,
                        "answer": x.answer,
                        "truth": list(x.truth),
                        "belief": list(x.belief),
                        "faults": list(x.faults),
                    }
                    for x in told(b.trace)
                ],
            }
            for b in judged.broken
        ],
    }
