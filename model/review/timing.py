"""Timing: what a policy's waits, grace and lock come to. All times are whole milliseconds; calls take none."""

from __future__ import annotations

from itertools import accumulate

from attrs import frozen

SHORT_LOCK_MS = 15_000
"""Below this a lock is renewed at half its time, in whole seconds, and not a buffer before its end."""
TIMES = ("ack_waits_ms", "shutdown_grace_ms", "lock_timeout_ms", "renewal_buffer_ms")
"""The fields of a policy that its timing is made of, in the order in which :func:`timing` takes them."""


@frozen
class Timing:
    """A policy's times. An ack sequence begins at 0 ms."""

    begins_ms: tuple[int, ...]
    """When each attempt begins, if every one before it was answered at once."""
    shutdown_grace_ms: int
    lock_timeout_ms: int
    renewal_interval_ms: int

    @property
    def waits_ms(self) -> int:
        """The waits of the longest sequence, in all."""
        return self.begins_ms[-1]

    @property
    def attempts_in_grace(self) -> int:
        """How many attempts begin before the shutdown grace is over, when the sequence begins with it."""
        return sum(begin < self.shutdown_grace_ms for begin in self.begins_ms)

    @property
    def grace_for_all_ms(self) -> int:
        """A shutdown grace that is longer than this lets every attempt begin."""
        return self.begins_ms[-1]

    @property
    def lock_left_ms(self) -> int:
        """What a lock has left at least when a shutdown ends the renewing."""
        return max(self.lock_timeout_ms - self.renewal_interval_ms, 0)

    @property
    def lock_can_expire_in_grace(self) -> bool:
        """Can a lock run out within the grace, although it was renewed in time until then?"""
        return self.shutdown_grace_ms > self.lock_left_ms


def timing(
    ack_waits_ms: tuple[int, ...], shutdown_grace_ms: int, lock_timeout_ms: int, renewal_buffer_ms: int
) -> Timing:
    """The timing of a policy with these fields."""
    if lock_timeout_ms >= SHORT_LOCK_MS:
        interval = lock_timeout_ms - renewal_buffer_ms
    else:
        interval = -(-lock_timeout_ms // 2_000) * 1_000
    return Timing(
        tuple(accumulate(ack_waits_ms, initial=0)), shutdown_grace_ms, lock_timeout_ms, max(interval, 1_000)
    )
