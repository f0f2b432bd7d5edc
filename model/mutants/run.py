"""``python -m peeklock.model.mutants.run``: change the protocol in every small way, and see which check notices.

A check that nothing can make fail proves nothing. Exit code 0 when every mutant is noticed or is allowed for a
reason, and every promise notices some mutant; 1 when not.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attrs import frozen

from peeklock.model.mutants.excused import REASONS, Reason, reason_for
from peeklock.model.mutants.judge import STUCK, Fate, Judgement, explored, judge
from peeklock.model.mutants.mistakes import MISTAKES
from peeklock.model.mutants.mutate import Kind, Mutant, mutants_of_history, mutants_of_pieces
from peeklock.model.mutants.worlds import ARENAS, OWNERS
from peeklock.model.search.traces import shortest, shortest_to_stuck
from peeklock.spec.compose import PROMISES
from peeklock.spec.reading.narrative import line

NOTICED = (Fate.PROMISE, Fate.POSSIBILITY, Fate.STUCK, Fate.MENDED, Fate.NEVER_FIRES)
EXPECTED = {m.name: m.noticed_by for m in MISTAKES}


@frozen
class Verdict:
    """A mutant with what became of it."""

    mutant: Mutant
    judgement: Judgement

    @property
    def reason(self) -> Reason | None:
        """Why it may stay unnoticed."""
        return reason_for(self.judgement)

    @property
    def survives(self) -> bool:
        """Is it unnoticed without a reason, or is a mistake not noticed by the check that should?"""
        if self.mutant.kind is Kind.MISTAKE:
            return self.judgement.noticed_by(EXPECTED[self.mutant.name]) is None
        return self.judgement.fate not in NOTICED and self.reason is None


def all_mutants() -> tuple[Mutant, ...]:
    """Every mutant, in the order of the specification."""
    return (*mutants_of_pieces(), *mutants_of_history(), *(m.mutant for m in MISTAKES))


_AT_WORK: list[Mutant] = []


def _judged(place: int) -> Judgement:
    mutant = _AT_WORK[place]
    return judge(mutant, EXPECTED.get(mutant.name))


def run(
    mutants: Iterable[Mutant], everywhere: bool = False, processes: int | None = None
) -> Iterator[Verdict]:
    """Judge the mutants on all cores; in order. Terms are shared by the processes as they were before the fork."""
    _AT_WORK[:] = mutants
    for arena in ARENAS:
        arena.ready()
    with multiprocessing.get_context("fork").Pool(processes or os.cpu_count()) as pool:
        for mutant, judgement in zip(
            _AT_WORK, pool.imap(_judged, range(len(_AT_WORK)), chunksize=4), strict=True
        ):
            yield Verdict(mutant, judgement)


def _with_progress(verdicts: Iterable[Verdict], many: int) -> Iterator[Verdict]:
    shown = sys.stderr.isatty()
    for number, verdict in enumerate(verdicts, 1):
        if shown:
            sys.stderr.write(f"\r\x1b[2K{number} of {many} mutants: {verdict.mutant.name[:80]}")
            sys.stderr.flush()
        yield verdict
    if shown:
        sys.stderr.write("\r\x1b[2K")


def idle_promises(verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    """The promises that noticed no mutant."""
    kills = {name for v in verdicts for name in v.judgement.kills}
    return tuple(p.id for p in PROMISES if p.id not in kills)


def stale_reasons(verdicts: Iterable[Verdict]) -> tuple[Reason, ...]:
    """The reasons that no unnoticed mutant has."""
    used = [v.reason for v in verdicts]
    return tuple(r for r in REASONS if not any(r is u for u in used))


# The report


_COLUMNS: tuple[tuple[str, Callable[[Verdict], bool]], ...] = (
    ("mutants", lambda v: True),
    ("promise", lambda v: v.judgement.fate is Fate.PROMISE),
    ("possibility", lambda v: v.judgement.fate is Fate.POSSIBILITY),
    ("stuck", lambda v: v.judgement.fate is Fate.STUCK),
    ("mended", lambda v: v.judgement.fate is Fate.MENDED),
    ("never fires", lambda v: v.judgement.fate is Fate.NEVER_FIRES),
    ("equivalent", lambda v: v.judgement.fate is Fate.EQUIVALENT),
    ("fewer steps", lambda v: v.judgement.fate is Fate.FEWER and not v.survives),
    ("explained", lambda v: v.judgement.fate is Fate.UNNOTICED and not v.survives),
    ("survive", lambda v: v.survives),
)


def _rows(verdicts: list[Verdict]) -> Iterator[tuple[str, list[int]]]:
    for kind in Kind:
        own = [v for v in verdicts if v.mutant.kind is kind]
        if own:
            yield kind.value, [sum(map(counts, own)) for _, counts in _COLUMNS]
    yield "all", [sum(map(counts, verdicts)) for _, counts in _COLUMNS]


def _print_summary(verdicts: list[Verdict]) -> None:
    print(" ".join(f"{name:>11}" for name, _ in _COLUMNS))
    for name, numbers in _rows(verdicts):
        print(" ".join(f"{n:>11}" for n in numbers), "", name)
    print()
    print(
        "promise: a promise that holds for the protocol is broken. possibility: what should happen no longer can."
    )
    print(
        "mended: a promise that is stated to fail holds. never fires: an action can no longer be taken (weaker)."
    )
    print(
        "equivalent: same states and same steps in every world. fewer steps: none that the protocol does not take."
    )


def _print_mistakes(verdicts: list[Verdict]) -> None:
    mistakes = [v for v in verdicts if v.mutant.kind is Kind.MISTAKE]
    if not mistakes:
        return
    print("\nmistakes that people make, the check that notices each, and after how many steps:")
    for v in mistakes:
        expected = EXPECTED[v.mutant.name]
        found = v.judgement.noticed_by(expected)
        steps = None
        if found is not None:
            steps = found.stuck if expected == STUCK else dict(found.broken).get(expected)
        told = f"{steps:>3} steps" if steps is not None else " " * 9
        where = "not noticed by it" if found is None else f"under {found.arena}"
        print(f"  {expected:<5} {told}  {v.mutant.name}; {where}")


def _print_reasons(verdicts: list[Verdict]) -> None:
    for reason in REASONS:
        own = [v for v in verdicts if v.reason is reason]
        if own:
            print(f"\n{reason.fate.value}: {reason.text} ({len(own)}):")
            for v in own:
                print(f"  {v.mutant.name}")


def _print_matrix(verdicts: list[Verdict]) -> None:
    print(
        "\nhow many mutants each promise notices, and how many it alone, in the first world where one is noticed:"
    )
    noticed = Counter(name for v in verdicts for name in v.judgement.kills)
    alone = Counter(name for v in verdicts if len(v.judgement.kills) == 1 for name in v.judgement.kills)
    for p in PROMISES:
        print(f"  {p.id:<4} {noticed[p.id]:>5} {alone[p.id]:>5}  {p.text}")


def _explain(name: str) -> int:
    found = [m for m in all_mutants() if name in m.name]
    exact = [m for m in found if m.name == name] or found
    if len(exact) != 1:
        print(
            f"{len(found)} mutants have {name!r} in their name" + "".join(f"\n  {m.name}" for m in found[:20])
        )
        return 2
    (mutant,) = exact
    expected = EXPECTED.get(mutant.name)
    judgement = judge(mutant, expected)
    print(f"{mutant.name}: {judgement.fate.value}")
    best = judgement.noticed_by(expected) if expected else None
    best = best or (judgement.best if judgement.findings else None)
    if best is None or not (best.broken or best.stuck is not None):
        for f in judgement.findings:
            print(f"  under {f.arena}: {', '.join((*f.gone, *f.mended, *f.never_fires)) or f.fate.value}")
        reason = reason_for(judgement)
        print(f"  {reason.text}" if reason is not None else "")
        return 0
    search, _ = explored(next(a for a in ARENAS if a.name == best.arena), mutant.make())
    if best.broken:
        promise = expected if expected in dict(best.broken) else best.broken[0][0]
        bit = min((b for b in search.found if OWNERS[b].id == promise), key=lambda b: search.found[b])
        trace = shortest(search, bit)
        print(f"{promise} is broken under {best.arena}; this is false: {search.watches[bit].part.text}")
    else:
        trace = shortest_to_stuck(search)
        print(f"stuck under {best.arena}: nothing can change any more without a further fault")
    for k, step in enumerate(trace.steps):
        told = line(step.action, trace.states[k], trace.states[k + 1], step.worker, step.item)
        does = told.does + (f" -> {told.answer}" if told.answer else "")
        seen = "; ".join((*told.truth, *told.belief))
        print(f"  {k + 1:>2} {told.who}: {does}" + (f" | {seen}" if seen else ""))
    return 0


def _data(verdicts: list[Verdict], idle: tuple[str, ...]) -> dict[str, Any]:
    return {
        "mutants": [
            {
                "name": v.mutant.name,
                "kind": v.mutant.kind.name.lower(),
                "fate": v.judgement.fate.name.lower(),
                "promises": sorted(v.judgement.kills),
                "reason": None if v.reason is None else v.reason.text,
                "survives": v.survives,
            }
            for v in verdicts
        ],
        "promises that notice nothing": idle,
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the mutants and report."""
    parser = argparse.ArgumentParser(prog="python -m peeklock.model.mutants.run", description=__doc__)
    parser.add_argument("--only", metavar="TEXT", help="only mutants whose name contains the text")
    parser.add_argument("--explain", metavar="NAME", help="the shortest trace that shows one mutant")
    parser.add_argument(
        "--matrix", action="store_true", help="how many mutants each promise notices, and how many it alone"
    )
    parser.add_argument("--json", action="store_true", help="for machines")
    options = parser.parse_args(arguments)
    if options.explain:
        return _explain(options.explain)
    chosen = [m for m in all_mutants() if options.only is None or options.only in m.name]
    verdicts = list(_with_progress(run(chosen), len(chosen)))
    survivors = [v for v in verdicts if v.survives]
    complete = options.only is None
    idle = idle_promises(verdicts) if complete else ()
    stale = stale_reasons(verdicts) if complete else ()
    if options.json:
        print(json.dumps(_data(verdicts, idle), indent=2, ensure_ascii=False))
        return 1 if survivors or idle or stale or not verdicts else 0
    _print_summary(verdicts)
    _print_mistakes(verdicts)
    _print_reasons(verdicts)
    if options.matrix:
        _print_matrix(verdicts)
    for v in survivors:
        print(f"\nsurvives ({v.judgement.fate.value}): {v.mutant.name}")
    for name in idle:
        print(f"\n{name} notices no mutant")
    for reason in stale:
        print(f"\na reason that no mutant needs any more: {reason.text} ({reason.pattern})")
    if not verdicts:
        print("no mutant has that in its name")
    return 1 if survivors or idle or stale or not verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
