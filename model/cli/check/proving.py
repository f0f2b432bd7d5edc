"""What the proofs add to a check: which verdicts hold in every world, and under which assumptions the others do."""

from __future__ import annotations

from attrs import frozen

from peeklock.model.search.verdicts import Check, Verdict
from peeklock.model.search.world import World
from peeklock.proofs import ProofReport, prove, prove_as_stated
from peeklock.proofs import Verdict as Proof
from peeklock.spec.law.faults import FAULTS
from peeklock.spec.law.policy import POLICIES
from peeklock.spec.promises.promise import Promise
from peeklock.spec.variants.deviations import NO_DEVIATIONS

ALL = frozenset(f.name for f in FAULTS)


@frozen
class Proofs:
    """The proofs about one policy: with the fault classes of the check, and with fewer where it is stated to fail."""

    main: ProofReport
    limited: tuple[ProofReport, ...] = ()

    def verdict(self, promise: Promise) -> Proof:
        """What was proved with all the fault classes of the check."""
        return self.main.verdict(promise)

    def assuming_less(self, promise: Promise) -> tuple[str, ...]:
        """Each way to say what has to be off for a promise that fails to be proved."""
        return tuple(
            " and ".join(sorted(self.main.faults - report.faults))
            for report in self.limited
            if any(p is promise for p in report.asked) and report.verdict(promise) is Proof.PROVED
        )

    def gaps(self, result: Check) -> tuple[str, ...]:
        """For promises that the search found to hold and the induction did not: where the induction ends."""
        holds = {j.promise.id for j in result.promises if j.verdict is Verdict.HOLDS}
        unproved = [p.id for p in self.main.asked if p.id in holds and self.verdict(p) is not Proof.PROVED]
        if not unproved:
            return ()
        rows = [row for row in self.main.rows if row.promise is None or row.promise in unproved]
        doubts = [doubt for row in rows for doubt in row.doubts]
        if doubts:
            return (f"{', '.join(unproved)}: it holds in this world, but Z3 did not decide: {doubts[0]}",)
        ends = [
            f"'{row.text}' does not follow after the step '{row.broken_by[0]}'"
            for row in rows
            if row.verdict is Proof.REFUTED and row.broken_by
        ]
        return (
            f"{', '.join(unproved)}: it holds in this world, but the induction ends where "
            + "; ".join(ends[:3]),
        )

    @property
    def queries(self) -> int:
        """Questions asked of Z3 in all."""
        return sum(r.queries for r in (self.main, *self.limited))

    @property
    def seconds(self) -> float:
        """The time that it took in all."""
        return sum(r.seconds for r in (self.main, *self.limited))

    def missing(self) -> tuple[str, ...]:
        """The promises of a named policy whose proof is not the stated one. Other policies are stated nothing of."""
        if self.main.policy.name not in POLICIES:
            return ()
        return tuple(line.split()[0] for r in (self.main, *self.limited) for line in r.unexpected())


def proofs_for(world: World, promises: tuple[Promise, ...]) -> Proofs:
    """Prove the promises for any number of workers, items, tokens and any ``max_attempts``."""
    policy, faults = world.variant.policy, world.variant.faults
    if world.variant.store != NO_DEVIATIONS:
        return Proofs(prove(policy, faults, promises, actions=world.actions_of_protocol))
    if faults == ALL:
        first, *limited = prove_as_stated(policy, promises)
        return Proofs(first, tuple(limited))
    return Proofs(prove(policy, faults, promises))
