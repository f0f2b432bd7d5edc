"""Findings: tables of the documentation that are read off a check or off the judgement of a recorded run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from attrs import evolve

from peeklock.cli.check.proving import proofs_for
from peeklock.cli.docs.reference import changed, code, table
from peeklock.harness.trace.file import read
from peeklock.harness.trace.judge import Judgement, judge
from peeklock.model.search.verdicts import Check, Judged, Verdict, check
from peeklock.model.search.world import World
from peeklock.proofs import Verdict as Proof
from peeklock.spec.compose import PROMISES
from peeklock.spec.law.policy import BEFORE, POLICIES, RETRY, Policy
from peeklock.spec.promises.promise import Promise
from peeklock.spec.variants.policy_file import find_variant, read_variant
from peeklock.spec.variants.variant import Variant

SMALL_MAX_ATTEMPTS = 2
"""The worlds' own max_attempts, as the command's default."""
POLICY_FILES = "docs/policies"
RUNS = "tests/data/duroxide"


@cache
def _checked(name: str, items: int, *also: str) -> Check:
    variant = find_variant(name)
    policy = evolve(variant.policy, max_attempts=SMALL_MAX_ATTEMPTS)
    variant = evolve(variant, policy=policy, faults=variant.faults | set(also))
    return check(World(variant, items=items), with_causes=False)


def _word(judged: Judged) -> str:
    return f"**{judged.verdict.value}**" if judged.verdict is Verdict.FAILS else judged.verdict.value


def _promise_table() -> str:
    checks = [_checked(name, 2) for name in POLICIES]
    return table(
        ("", "promise", *(code(n) for n in POLICIES)),
        (
            (judged.promise.id, judged.promise.text, *(_word(c.promises[place]) for c in checks))
            for place, judged in enumerate(checks[0].promises)
            if judged.promise.id.startswith("S")
        ),
    )


def _size_of_search() -> str:
    checks = [_checked(name, 2) for name in POLICIES]
    world = checks[0].world
    sizes = ", ".join(
        f"{c.statistics.distinct:,} under {code(n)}" for n, c in zip(POLICIES, checks, strict=True)
    )
    return (
        f"{world.workers} workers, {world.items} items, at most {world.deliveries} deliveries of each, every fault "
        f"class on that the protocol claims to stand, and every state visited: {sizes}."
    )


def _broken(result: Check) -> set[str]:
    return {j.promise.id for j in result.promises if j.verdict is Verdict.FAILS}


def in_order(ids: set[str]) -> str:
    """Promise ids as a list, S before C."""
    return ", ".join(sorted(ids, key=lambda x: (x[0] != "S", int(x[1:])))) or "-"


def policy_files() -> list[str]:
    """The policy files of the documentation."""
    return sorted(str(p) for p in Path(POLICY_FILES).glob("*.toml"))


def _what_if() -> str:
    rows = []
    for path in policy_files():
        variant = read_variant(Path(path))
        base = POLICIES[variant.policy.stands_for]
        broken, before = _broken(_checked(path, 1)), _broken(_checked(base.name, 1))
        fields = "<br>".join(code(f"{name} = {value}") for name, value in changed(variant, base))
        exit_code = "0" if _checked(path, 1).as_stated else "1"
        link = f"[{Path(path).stem}](#{Path(path).stem}) ([file]({Path(path).relative_to('docs')}))"
        rows.append(
            (link, code(base.name), fields, in_order(broken - before), in_order(before - broken), exit_code)
        )
    return table(("policy", "base", "changes", "breaks", "mends", "exit code"), rows)


@cache
def _judged(path: str, policy: Policy) -> Judgement:
    return judge(*read(Path(path)), policy)


def _run_cell(path: str, policy: Policy) -> str:
    found = _judged(path, policy)
    if found.violation is not None:
        return f"**violates** at observation {found.observations}"
    return "conforms" + (f", yet {in_order(set(found.broken))} is broken" if found.broken else "")


def _runs() -> str:
    paths = sorted(str(p) for p in Path(RUNS).glob("*.jsonl"))
    return table(
        ("run", code(BEFORE.name), code(RETRY.name)),
        ((f"[{Path(p).name}](../{p})", _run_cell(p, BEFORE), _run_cell(p, RETRY)) for p in paths),
    )


def _dishonest() -> str:
    rows = []
    for name in POLICIES:
        honest, dishonest = _broken(_checked(name, 1)), _broken(_checked(name, 1, "dishonest-permanent"))
        rows.append((code(name), in_order(honest), in_order(dishonest), in_order(dishonest - honest)))
    return table(("policy", "broken by default", "broken with it", "of which new"), rows)


def _proved() -> str:
    every = {name: proofs_for(World(Variant(policy)), PROMISES) for name, policy in POLICIES.items()}

    def cell(policy: str, promise: Promise) -> str:
        proofs = every[policy]
        if policy in promise.silent_in:
            return "-"
        if proofs.verdict(promise) is Proof.PROVED:
            return "proved"
        limited = proofs.assuming_less(promise)
        return f"only without {'; or without '.join(limited)}" if limited else proofs.verdict(promise).value

    alike: dict[tuple[str, ...], list[str]] = {}
    for promise in PROMISES:
        alike.setdefault(tuple(cell(name, promise) for name in POLICIES), []).append(promise.id)
    return table(
        ("promises", *map(code, POLICIES)), ((", ".join(ids), *cells) for cells, ids in alike.items())
    )


FINDINGS: dict[str, Callable[[], str]] = {
    "promise table": _promise_table,
    "size of the search": _size_of_search,
    "proved": _proved,
    "what if": _what_if,
    "runs": _runs,
    "dishonest permanent errors": _dishonest,
}
