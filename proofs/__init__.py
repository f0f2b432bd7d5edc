"""The proofs: promises by induction, for any number of workers, items, tokens and attempts.

In reading order: :mod:`~peeklock.proofs.lemmas` (what is known of every reachable state),
:mod:`~peeklock.proofs.inductive` (what is asked), :mod:`~peeklock.proofs.quantifiers` and
:mod:`~peeklock.proofs.encode` (how it is put to Z3), :mod:`~peeklock.proofs.counterexample` and
:mod:`~peeklock.proofs.report` (what comes back). What a proof here means is told in ``assumptions.md``.
"""

from peeklock.proofs.counterexample import Counterexample
from peeklock.proofs.lemmas import LEMMAS, Lemma
from peeklock.proofs.report import (
    ALL_FAULTS,
    ProofReport,
    Row,
    Verdict,
    prove,
    prove_as_stated,
    widest_faults,
)

__all__ = [
    "ALL_FAULTS",
    "LEMMAS",
    "Counterexample",
    "Lemma",
    "ProofReport",
    "Row",
    "Verdict",
    "prove",
    "prove_as_stated",
    "widest_faults",
]
