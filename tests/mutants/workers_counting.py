"""Faulty workers that count another verdict than the answer allows, or none."""

from __future__ import annotations

from mutant import done_by
from twin_worker import HardenedTwin, TwinWorker

from peeklock.harness.worker import schedule
from peeklock.harness.worker.host import Completion, Counted

_GH = "https://github.com/"


class CountsUnknownAsSuccess(TwinWorker):
    """An outcome that nobody saw is counted as a success."""

    def uncertain(self) -> None:
        self.count("success")


class CountsUncertainAsFailure(TwinWorker):
    """An uncertain outcome is counted as an infrastructure error."""

    def uncertain(self) -> None:
        self.count("infrastructure error")


class CountsBoth(TwinWorker):
    """An uncertain outcome is also counted as an infrastructure error."""

    def uncertain(self) -> None:
        super().uncertain()
        self.count("infrastructure error")


class CountsUncertainTwice(TwinWorker):
    """An uncertain outcome is counted twice."""

    def uncertain(self) -> None:
        super().uncertain()
        super().uncertain()


class UncertainAtOnce(TwinWorker):
    """A permanent error at the first attempt, which can hide nothing, is called uncertain."""

    def refused(self, done: Completion, n: int) -> None:
        self.uncertain()


class ExhaustionIsUncertain(TwinWorker):
    """Five retryable errors are called uncertain."""

    def exhausted(self) -> None:
        self.uncertain()


class CountsSuccessTwice(TwinWorker):
    """A success is counted twice."""

    def accepted(self, done: Completion) -> None:
        super().accepted(done)
        super().accepted(done)


class CountsErrorAsSuccess(TwinWorker):
    """An application error is counted as a success."""

    def accepted(self, done: Completion) -> None:
        self.count("success")


class CountsNothing(TwinWorker):
    """What became of a delivery is never counted."""

    def count(self, metric: Counted) -> None:
        """Nobody is told."""


class CountsLate(TwinWorker):
    """A verdict is counted half a second after it was known."""

    def count(self, metric: Counted) -> None:
        self.pause(self.host.now_ms + 500)
        super().count(metric)


class SixWaits(TwinWorker):
    """A policy of six attempts where five are said."""

    WAITS_MS = (*TwinWorker.WAITS_MS, 1_600)


class CountsPoisonTwice(TwinWorker):
    """Poison is counted when it is found, and when its ack is answered."""

    def poison(self) -> None:
        super().poison()
        self.count("poison")


class CountsPoisonUnheard(HardenedTwin):
    """A poison failure is counted before anybody has accepted it."""

    def poison(self) -> None:
        TwinWorker.poison(self)


class ExhaustionUndecided(HardenedTwin):
    """Five retryable errors are counted as a failure, whatever abandon then answers."""

    def exhausted(self) -> None:
        self.gives_up()


MUTANTS = (
    done_by("settle-timeout-flips", CountsUnknownAsSuccess, _GH + "Azure/azure-sdk-for-js/pull/2829", "C7"),
    done_by("uncertain-counted-as-failure", CountsUncertainAsFailure, None, "S7"),
    done_by("uncertain-and-failure", CountsBoth, None, "S7"),
    done_by("uncertain-counted-twice", CountsUncertainTwice, None, "S7"),
    done_by("uncertain-at-the-first-answer", UncertainAtOnce, None, "S8"),
    done_by("exhaustion-called-uncertain", ExhaustionIsUncertain, None, "C7"),
    done_by("count-doubled", CountsSuccessTwice, None, "C7"),
    done_by("error-counted-as-success", CountsErrorAsSuccess, None, "C7"),
    done_by("count-missing", CountsNothing, None, schedule.COUNTS),
    done_by("count-late", CountsLate, None, schedule.COUNTS),
    done_by("exhaustion-not-seen", SixWaits, None, schedule.COUNTS),
    done_by("poison-counted-twice", CountsPoisonTwice, None, "S14"),
    done_by("poison-counted-unheard", CountsPoisonUnheard, None, "C7", policy="hardened"),
    done_by("exhaustion-undecided", ExhaustionUndecided, None, "C7", policy="hardened"),
)
