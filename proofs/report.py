"""Proofs as a report: what is proved, what is not and why, and under which assumptions."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from itertools import product

from attrs import frozen

from peeklock.proofs.counterexample import Counterexample
from peeklock.proofs.encode import Outcome
from peeklock.proofs.inductive import LIMIT, AnyMaximum, Claim, Finding, Induction
from peeklock.proofs.lemmas import LEMMAS, Lemma
from peeklock.spec.compose import ACTIONS, PROMISES
from peeklock.spec.law.faults import DISHONEST, FAULTS
from peeklock.spec.law.policy import Policy
from peeklock.spec.notation.actions import Action
from peeklock.spec.promises.promise import Promise, always

ALL_FAULTS = frozenset(f.name for f in FAULTS)


class Verdict(enum.Enum):
    """What became of a claim or a promise."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


@frozen
class Row:
    """What was found about one lemma or one part of a promise."""

    name: str
    promise: str | None
    """The promise that it is a part of; None for a lemma."""
    text: str
    verdict: Verdict
    queries: int
    """Questions that Z3 was asked."""
    trivial: int
    """Steps that keep the claim without a question."""
    seconds: float
    rests_on: tuple[str, ...]
    """The lemmas and other parts that the proof supposes."""
    broken_by: tuple[str, ...] = ()
    """The steps from which the claim does not follow."""
    counterexample: Counterexample | None = None
    doubts: tuple[str, ...] = ()


@frozen
class ProofReport:
    """All rows about one policy and one choice of fault classes."""

    policy: Policy
    faults: frozenset[str]
    rows: tuple[Row, ...]
    asked: tuple[Promise, ...]
    impossible: tuple[str, ...]
    """Actions that the lemmas show to be unable to happen; looked for when all promises were asked for."""
    silent: frozenset[str]
    """Promises about steps that are all unable to happen; looked for when all promises were asked for."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the verdicts assume, by name; see assumptions.md."""
        missing = [f.name for f in FAULTS if f.name not in self.faults]
        honest = () if DISHONEST.name in self.faults else ("honest-permanent",)
        return ("atomic-calls", "time-abstracted", *honest, *(f"without {name}" for name in missing))

    def row(self, name: str) -> Row:
        """The row of a lemma or a part; ``KeyError`` when there is none."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    def parts(self, promise: Promise) -> tuple[Row, ...]:
        """The rows of a promise's parts."""
        return tuple(r for r in self.rows if r.promise == promise.id)

    def verdict(self, promise: Promise) -> Verdict:
        """Proved when all parts are: each rests on claims that are proved too. Refuted when one part is."""
        verdicts = [r.verdict for r in self.parts(promise)]
        if len(verdicts) != len(promise.parts) or Verdict.UNKNOWN in verdicts:
            return Verdict.REFUTED if Verdict.REFUTED in verdicts else Verdict.UNKNOWN
        return Verdict.REFUTED if Verdict.REFUTED in verdicts else Verdict.PROVED

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict on each promise that was asked for."""
        return {p.id: self.verdict(p) for p in self.asked}

    def unexpected(self) -> Iterator[str]:
        """The promises whose verdict is not the one that the spec states."""
        for promise in self.asked:
            stated = (
                Verdict.REFUTED if promise.is_stated_to_fail(self.policy, self.faults) else Verdict.PROVED
            )
            if self.verdict(promise) is not stated:
                yield f"{promise.id} is {self.verdict(promise).value}, not {stated.value}"

    @property
    def ok(self) -> bool:
        """Is every verdict the one that the spec states? One that is unknown never is."""
        return not any(True for _ in self.unexpected())

    @property
    def queries(self) -> int:
        """Questions that Z3 was asked in all."""
        return sum(r.queries for r in self.rows)

    @property
    def seconds(self) -> float:
        """The time that it took in all."""
        return sum(r.seconds for r in self.rows)

    def lines(self) -> Iterator[str]:
        """The report as text."""
        yield f"policy {self.policy.name}; {', '.join(self.assumptions)}"
        yield "any number of workers, items and tokens; any max_attempts"
        yield f"{self.queries} questions, {self.seconds:.1f} s"
        for promise in self.asked:
            verdict = "-" if promise.id in self.silent else self.verdict(promise).value
            yield f"{promise.id:>4}  {verdict:8}  {promise.text}"
        for row in self.rows:
            if row.verdict is Verdict.PROVED:
                continue
            yield f"{row.name}: {row.verdict.value}: {row.text}"
            yield from (f"  {line}" for line in (row.counterexample.lines() if row.counterexample else ()))
            yield from (f"  {doubt}" for doubt in row.doubts)

    def __str__(self) -> str:
        return "\n".join(self.lines())


def claims(lemmas: Iterable[Lemma], promises: Iterable[Promise]) -> tuple[Claim, ...]:
    """Lemmas and promises as claims; the parts of a promise are numbered from 1."""
    of_lemmas = [Claim(lemma.name, lemma.name, always(lemma.name, lemma.state)) for lemma in lemmas]
    of_promises = [
        Claim(f"{p.id}.{k}", part.text, part, p.id)
        for p in promises
        for k, part in enumerate(p.parts, start=1)
    ]
    return (*of_lemmas, *of_promises)


def induct(
    policy: Policy,
    faults: frozenset[str] = ALL_FAULTS,
    promises: tuple[Promise, ...] = PROMISES,
    *,
    actions: Iterable[Action] = ACTIONS,
    lemmas: tuple[Lemma, ...] = LEMMAS,
    limit: int = LIMIT,
) -> Induction:
    """The induction that settles these promises and what they rest on, which may be other promises."""
    ids = {p.id for p in promises}
    known = (*promises, *(p for p in PROMISES if p.id not in ids))
    induction = Induction(AnyMaximum(policy, faults), actions, claims(lemmas, known), limit)
    induction.settle(c.name for c in claims((), promises))
    return induction


def prove(
    policy: Policy,
    faults: frozenset[str] = ALL_FAULTS,
    promises: tuple[Promise, ...] | None = None,
    *,
    actions: Iterable[Action] = ACTIONS,
    lemmas: tuple[Lemma, ...] = LEMMAS,
    limit: int = LIMIT,
) -> ProofReport:
    """Prove promises for any number of workers, items, tokens and any ``max_attempts``.

    With ``promises`` None, all of them and all lemmas; otherwise those, and what they rest on. A claim that
    is not proved is no longer supposed, so the others are judged without it. ``actions`` may be a changed
    protocol.
    """
    asked = PROMISES if promises is None else promises
    induction = induct(policy, faults, asked, actions=actions, lemmas=lemmas, limit=limit)
    if promises is None:
        induction.settle(lemma.name for lemma in lemmas)
    order = {name: k for k, name in enumerate(induction.claims)}
    found = sorted(induction.findings.values(), key=lambda f: order[f.claim.name])
    impossible = _impossible(induction) if promises is None else ()
    is_whole = not any(finding.doubts for finding in found)
    rows = tuple(_row(finding, is_whole) for finding in found)
    return ProofReport(policy, faults, rows, asked, impossible, _silent(induction, asked, impossible))


def _impossible(induction: Induction) -> tuple[str, ...]:
    return tuple(a.name for a in induction.actions if induction.possible(a) is Outcome.IMPOSSIBLE)


def _silent(induction: Induction, promises: Iterable[Promise], impossible: tuple[str, ...]) -> frozenset[str]:
    labels = [a.label for a in induction.actions if a.name not in impossible]
    return frozenset(p.id for p in promises if p.about is not None and not any(map(p.about, labels)))


def _row(finding: Finding, is_whole: bool) -> Row:
    """What was found about one claim. Where another is in doubt, what does not follow might follow with it."""
    if finding.broken_by:
        verdict = Verdict.REFUTED if is_whole else Verdict.UNKNOWN
    else:
        verdict = Verdict.UNKNOWN if finding.doubts else Verdict.PROVED
    return Row(
        finding.claim.name,
        finding.claim.promise,
        finding.claim.text,
        verdict,
        len(finding.answers),
        finding.kept,
        finding.seconds,
        tuple(sorted(finding.used)),
        tuple(finding.broken_by),
        finding.counterexample,
        tuple(finding.doubts),
    )


def widest_faults(
    promise: Promise, policy: Policy, faults: frozenset[str] = ALL_FAULTS
) -> tuple[frozenset[str], ...]:
    """The largest choices of fault classes under which the promise is not stated to fail."""
    causes = [c for c in promise.broken_by.get(policy.stands_for, ()) if c <= faults]
    choices = {faults - frozenset(off) for off in product(*causes)}
    return tuple(sorted((c for c in choices if not any(c < d for d in choices)), key=sorted))


def prove_as_stated(policy: Policy, promises: tuple[Promise, ...] | None = None) -> tuple[ProofReport, ...]:
    """Everything that the spec states about a policy.

    First with all fault classes; then, for promises that are stated to fail, with each largest choice of
    fault classes under which they are not.
    """
    first = prove(policy, ALL_FAULTS, promises)
    limited: dict[frozenset[str], list[Promise]] = {}
    for promise in first.asked:
        for faults in widest_faults(promise, policy):
            if faults != ALL_FAULTS:
                limited.setdefault(faults, []).append(promise)
    return (first, *(prove(policy, faults, tuple(some)) for faults, some in limited.items()))
