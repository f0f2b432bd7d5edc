"""Which steps a worker of a policy never takes, and why: so that what was not seen can be told from what cannot be."""

from __future__ import annotations

from peeklock.spec.law.policy import AfterPermanentRenewal, AfterRefusal, AfterRetryableRenewal, Policy
from peeklock.spec.notation.actions import Action, Call


def why_never(policy: Policy, action: Action) -> str | None:
    """Why no worker of the policy takes this step; None where one can."""
    reaction = action.pieces[-1]
    first = policy.after_first_permanent is AfterRefusal.UNCERTAIN
    later = policy.after_later_permanent is AfterRefusal.UNCERTAIN
    once = policy.ack_attempts == 1
    if action.label.call is Call.CANCELLATION_ACK and not _cancels(policy):
        return "by this policy no renewal error is followed by a cancellation ack"
    if reaction == "refusal_is_a_failure" and first and (later or once):
        return "by this policy every permanent error of a sequence is uncertain"
    if reaction.startswith("refusal_is_uncertain") and not first and (once or not later):
        return "by this policy no permanent error of a sequence is uncertain"
    if reaction.endswith("ends_renewing") and not sum(policy.ack_waits_ms):
        return "by this policy no time passes in an ack sequence"
    return None


def _cancels(policy: Policy) -> bool:
    return (
        policy.after_retryable_renewal is AfterRetryableRenewal.CANCEL
        or policy.after_permanent_renewal is AfterPermanentRenewal.CANCEL
    )
