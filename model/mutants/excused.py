"""Reasons: why a mutant that no check notices may stay unnoticed.

A reason is for mutants whose name it matches. Three kinds need one: those with the same states and steps (the
reason says what else implies the condition), those that only take steps away (no promise can break: every run is a
run of the protocol), and those of the history. A reason that fits no such mutant any more is stale, and reported.
"""

from __future__ import annotations

import re

from attrs import frozen

from peeklock.model.mutants.judge import Fate, Judgement


@frozen
class Reason:
    """Why the mutants with one of these fates whose name the pattern matches are allowed."""

    fate: Fate
    pattern: str
    text: str

    def fits(self, judgement: Judgement) -> bool:
        """Is this the reason? What a changed part stands in is not looked at."""
        change = judgement.name.split("] in [")[0]
        return judgement.fate is self.fate and re.search(self.pattern, change) is not None


_GIVEN_BACK = r"(abandoned|abandon refused|refused wrongly \(abandon\))"

REASONS = (
    Reason(
        Fate.EQUIVALENT,
        rf"^{_GIVEN_BACK}.*: \[row\[i\] = (DELAYED|READY)[^&]*\] taken as",
        "the token that is asked for is the row's own, and only a locked or expired row has one",
    ),
    Reason(
        Fate.EQUIVALENT,
        r"^refused wrongly",
        "where the condition does not hold, the refusal is a right one: the same step by another name",
    ),
    Reason(
        Fate.EQUIVALENT,
        r"policy poison_ack|result\[w\] = POISON",
        "poison that is sent once has no sequence, or a sequence that always retries poison knows no exception: "
        "the other half of the condition decides alone under every policy that gets there",
    ),
    Reason(
        Fate.EQUIVALENT,
        r"^gives up and lets abandon decide: without last",
        "five errors came before, so the one before the last was remembered as retryable too",
    ),
    Reason(
        Fate.EQUIVALENT,
        r"without (renewing|result|attempts|last|trouble)\[w\] := ",
        "what is set back has that value already in every state in which the step can be taken",
    ),
    Reason(
        Fate.EQUIVALENT,
        r"attempts\[w\] = [01]\] (taken as true|instead of)",
        "the two halves of the condition overlap, or differ by what the other half says anyhow",
    ),
    Reason(
        Fate.EQUIVALENT,
        r"^(poison is counted whatever the answer|gives up and leaves it): .*phase\[w\] = ACKING",
        "only a worker that is in its ack sequence calls ack with what else is asked for",
    ),
    Reason(
        Fate.EQUIVALENT,
        r"(accepted abandon is a failure|refused abandon is uncertain): without \[policy after_exhaustion",
        "the phase is reached under that policy only",
    ),
    Reason(
        Fate.EQUIVALENT,
        r"^stopped handler is (cancelled|left|abandoned): (\[trouble|without \[(phase|policy))",
        "the trouble that is remembered says it already: it is reached in that phase, and under that policy, only",
    ),
    Reason(
        Fate.EQUIVALENT,
        r"^lock expires: \[(current|token)",
        "a token that was superseded is renewed by nobody: its lock could only run out because nobody renewed it",
    ),
    Reason(
        Fate.EQUIVALENT,
        r"^cancellation ack -> permanent error: excused is not recorded",
        "a cancellation ack follows a renewal error, which is an excuse already",
    ),
    Reason(
        Fate.FEWER,
        r"^(fetched|fetched response lost|abandoned|abandoned uncounted)( response lost)?: ",
        "a store that does not serve a row any more that it could serve: nothing is said of how soon it must",
    ),
    Reason(
        Fate.FEWER,
        r"^refused wrongly .*: with the opposite",
        "a spurious refusal is never made: a promise cannot tell, and no possibility asks that each fault is seen",
    ),
    Reason(
        Fate.FEWER,
        r"^(refused|refused wrongly \(abandon\)|abandon refused|cancelled|lock expires): \[",
        "the environment does less harm than it might; each of its harms is still done in another state",
    ),
    Reason(
        Fate.FEWER,
        r"^(keeps renewing|renews again|refused renewal ends renewing): ",
        "a worker that renews less often, or does not hear an answer to it: its lock may run out, as it may anyhow",
    ),
    Reason(
        Fate.FEWER,
        r"policy poison_ack = ONCE\] taken as true",
        "an answer to a retried poison ack is no longer taken in; other answers still end its sequence",
    ),
    Reason(
        Fate.UNNOTICED,
        r"^cancellation ack -> .*: acked_by is not recorded",
        "it is read where a verdict about the same delivery is held against the truth; after a cancellation ack the "
        "worker has no verdict",
    ),
    Reason(
        Fate.UNNOTICED,
        r"^(the worker crashes|the shutdown grace is over): excused is not recorded",
        "work that was dropped comes back when its lock has expired, which is an excuse already",
    ),
)


def reason_for(judgement: Judgement) -> Reason | None:
    """The first reason that fits."""
    return next((r for r in REASONS if r.fits(judgement)), None)
