"""Remarks: what a newcomer has to know to read a verdict about a policy rightly."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from peeklock.model.review.timing import Timing
from peeklock.spec.promises.history import PROMISED_ATTEMPTS
from peeklock.spec.reading.narrative import Line


def about_five(ack_attempts: int, broken: Collection[str]) -> Iterator[str]:
    """Why promises about five attempts fail under a policy with another number."""
    ids = [p for p in ("S9", "S10", "S11") if p in broken]
    if ack_attempts == PROMISED_ATTEMPTS or not ids:
        return
    how = "more" if ack_attempts > PROMISED_ATTEMPTS else "fewer"
    yield (
        f"{_joined(ids)} {'speak' if len(ids) > 1 else 'speaks'} of five attempts by definition: the five is the "
        f"promise's own number and not the policy's, so ack_attempts = {ack_attempts} breaks "
        f"{'them' if len(ids) > 1 else 'it'} whatever else it does. "
        + (
            f"That says that others may rely on five, not that {how} attempts harm an item"
            if how == "more"
            else "Giving up earlier gives items back, and runs handlers again, that more patience would have settled"
        )
    )


def about_time(times: Timing) -> Iterator[str]:
    """What the policy's times come to, and where they do not fit each other."""
    attempts, within = len(times.begins_ms), times.attempts_in_grace
    begins = ", ".join(f"{b:,}" for b in times.begins_ms)
    if attempts > 1:
        yield (
            f"the waits of an ack sequence sum to {times.waits_ms:,} ms; its attempts begin at {begins} ms, if calls "
            "take no time"
        )
    grace = f"{times.shutdown_grace_ms:,} ms"
    if within == attempts:
        yield f"a shutdown grace of {grace} lets {'every' if attempts > 1 else 'the only'} attempt begin"
    else:
        yield (
            f"within a shutdown grace of {grace} only {within} of {attempts} attempts can begin; the sequence is then "
            "cut off, and an item that no attempt settled comes back when its lock expires. "
            f"It takes a grace of more than {times.grace_for_all_ms:,} ms to let every attempt begin"
        )
    left = f"{times.lock_left_ms:,} ms"
    if times.lock_can_expire_in_grace:
        yield (
            f"a shutdown ends the renewing, and a lock may have only {left} left then: it can expire within the grace, "
            "and a later attempt is refused although nothing failed"
        )
    else:
        lasts = (
            "it lasts exactly as long as the grace, with nothing to spare"
            if times.lock_left_ms == times.shutdown_grace_ms
            else "it outlasts the grace"
        )
        yield (
            f"a shutdown ends the renewing, and a lock that was renewed in time has at least {left} left then: {lasts}"
        )


def about_needless(promise: str, run: Iterable[Line], causes: Iterable[Collection[str]]) -> Iterator[str]:
    """Which faults a shortest run meets that it does not take to break the promise."""
    met = {fault for line in run for fault in line.faults}
    needless = sorted((sorted(met.difference(c)) for c in causes if met.issuperset(c)), key=len)
    if needless and needless[0]:
        yield (
            f"this run also meets {_joined(needless[0])}, which {'is' if len(needless[0]) == 1 else 'are'} not needed "
            f"to break {promise}: with less it takes more steps"
        )


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
