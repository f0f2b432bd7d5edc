"""Policies: how a worker settles, as data, so that a reviewer can try a change."""

from __future__ import annotations

import enum

from attrs import asdict, evolve, field, frozen

from peeklock.spec.notation.terms import BOOL, NAT, Term, enumeration, setting


class AfterRefusal(enum.Enum):
    """What follows a permanent error in the ack sequence."""

    ABANDON = "abandon"
    UNCERTAIN = "uncertain"


class AfterExhaustion(enum.Enum):
    """What follows the last retryable error of the ack sequence."""

    ABANDON = "abandon"
    ABANDON_DECIDES = "abandon-decides"
    LEAVE = "leave"


class AfterUncertain(enum.Enum):
    """What the worker does with a delivery once it has called it uncertain."""

    LEAVE = "leave"
    ABANDON = "abandon"


class AfterRetryableRenewal(enum.Enum):
    """What a retryable renewal error means while the handler runs."""

    CANCEL = "cancel"
    ABANDON = "abandon"
    RETRY = "retry"


class AfterPermanentRenewal(enum.Enum):
    """What a permanent renewal error means while the handler runs."""

    CANCEL = "cancel"
    ABANDON = "abandon"


class AfterCancellationAck(enum.Enum):
    """What follows a cancellation ack that failed."""

    ABANDON = "abandon"
    LEAVE = "leave"


class PoisonAck(enum.Enum):
    """How the ack of a poison item is sent."""

    ONCE = "once"
    RETRIED = "retried"


class PolicyError(ValueError):
    """A policy that cannot be: an unknown field, a value that is not allowed, or waits that do not fit the attempts."""


@frozen
class Policy:
    """How a worker settles. Absent fields of a policy file come from the policy named as its ``base``."""

    name: str
    max_attempts: int = 10
    ack_attempts: int = 5
    ack_waits_ms: tuple[int, ...] = (100, 200, 400, 800)
    after_first_permanent: AfterRefusal = AfterRefusal.ABANDON
    after_later_permanent: AfterRefusal = AfterRefusal.UNCERTAIN
    after_exhaustion: AfterExhaustion = AfterExhaustion.ABANDON
    after_uncertain: AfterUncertain = AfterUncertain.LEAVE
    after_retryable_renewal: AfterRetryableRenewal = AfterRetryableRenewal.CANCEL
    after_permanent_renewal: AfterPermanentRenewal = AfterPermanentRenewal.CANCEL
    after_cancellation_ack: AfterCancellationAck = AfterCancellationAck.ABANDON
    poison_ack: PoisonAck = PoisonAck.ONCE
    abandon_ignores_attempt: bool = False
    lock_timeout_ms: int = 30_000
    renewal_buffer_ms: int = 5_000
    cancellation_grace_ms: int = 10_000
    shutdown_grace_ms: int = 1_000
    abandon_delay_ms: int = 100
    missing_handler_backoff_ms: int = 1_000
    missing_handler_backoff_cap_ms: int = 60_000
    stands_for: str = field(default="")
    """The named policy whose stated verdicts this one is held against."""
    source: str = field(default="")
    """The file that it was read from, if it was."""
    given: tuple[str, ...] = ()
    """The fields that the file sets."""

    def __attrs_post_init__(self) -> None:
        where = self.source or f"policy {self.name}"
        if self.ack_attempts < 1:
            raise PolicyError(f"{where}: ack_attempts is {self.ack_attempts}; allowed: 1 or more")
        if self.max_attempts < 1:
            raise PolicyError(f"{where}: max_attempts is {self.max_attempts}; allowed: 1 or more")
        if len(self.ack_waits_ms) != self.ack_attempts - 1:
            raise PolicyError(
                f"{where}: ack_waits_ms has {len(self.ack_waits_ms)} waits for ack_attempts = "
                f"{self.ack_attempts}; allowed: one before each attempt but the first, so {self.ack_attempts - 1}"
            )
        for name, value in asdict(self).items():
            if name.endswith("_ms") and min((value,) if isinstance(value, int) else value, default=0) < 0:
                raise PolicyError(f"{where}: {name} is {value}; allowed: 0 or more milliseconds")


RETRY = Policy("retry", stands_for="retry")
BEFORE = evolve(RETRY, name="before", stands_for="before", ack_attempts=1, ack_waits_ms=())
HARDENED = evolve(
    RETRY,
    name="hardened",
    stands_for="hardened",
    after_retryable_renewal=AfterRetryableRenewal.RETRY,
    after_permanent_renewal=AfterPermanentRenewal.ABANDON,
    after_exhaustion=AfterExhaustion.ABANDON_DECIDES,
    poison_ack=PoisonAck.RETRIED,
)
POLICIES = {p.name: p for p in (BEFORE, RETRY, HARDENED)}

CHOICES: dict[str, type[enum.Enum]] = {
    "after_first_permanent": AfterRefusal,
    "after_later_permanent": AfterRefusal,
    "after_exhaustion": AfterExhaustion,
    "after_uncertain": AfterUncertain,
    "after_retryable_renewal": AfterRetryableRenewal,
    "after_permanent_renewal": AfterPermanentRenewal,
    "after_cancellation_ack": AfterCancellationAck,
    "poison_ack": PoisonAck,
}
COUNTS = ("max_attempts", "ack_attempts")
SWITCHES = ("abandon_ignores_attempt",)
"""The fields that guards read: choices, counts and switches. The rest are times."""


class _Rule:
    """The fields of a policy, each as a term."""

    def __getattr__(self, name: str) -> Term:
        if name in CHOICES:
            return setting(f"policy {name}", enumeration(CHOICES[name]))
        if name in COUNTS:
            return setting(f"policy {name}", NAT)
        if name in SWITCHES:
            return setting(f"policy {name}", BOOL)
        raise AttributeError(name)


rule = _Rule()
"""The fields of the policy as terms; the protocol's guards read them, and a check replaces them by their values."""


def settings_of(policy: Policy) -> dict[Term, int | enum.Enum]:
    """The values of the policy's terms."""
    return {getattr(rule, name): getattr(policy, name) for name in (*CHOICES, *COUNTS, *SWITCHES)}
