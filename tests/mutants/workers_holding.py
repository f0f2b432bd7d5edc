"""Faulty workers that hold a lock, a handler or themselves otherwise than they should."""

from __future__ import annotations

from attrs import evolve
from mutant import done_by
from twin_worker import HardenedTwin, OneAttempt, Stopped, TwinWorker

from peeklock.harness.worker import schedule
from peeklock.harness.worker.host import Completion, HostDelivery
from peeklock.spec.law.policy import RETRY

_GH = "https://github.com/"
AT_MOST_ONE = evolve(RETRY, name="one attempt", max_attempts=1)


class NeverRenews(TwinWorker):
    """A handler that needs longer than the lock is run without a renewal."""

    def renews(self) -> bool:
        self.renew_ms = None
        return True


class NeverRenewsOneAttempt(NeverRenews, OneAttempt):
    """Without a renewal the next worker gets the item, calls it poison and settles it, while its handler runs."""


class RenewsOnce(TwinWorker):
    """The lock is renewed once, and never again."""

    def renewed(self, answer: str) -> bool:
        goes_well = super().renewed(answer)
        self.renew_ms = None
        return goes_well


class RenewsLate(TwinWorker):
    """A renewal comes when the lock is about to end, and not with the buffer before it."""

    RENEWED_EVERY_MS = 29_900


class IgnoresRenewalErrors(TwinWorker):
    """After a renewal failed the handler runs to its end as if nothing were, and its result is acked."""

    def renewed(self, answer: str) -> bool:
        super().renewed(answer)
        return True


class IgnoresALostLock(TwinWorker):
    """Told that the lock is lost, the worker lets the handler go on."""

    def renewed(self, answer: str) -> bool:
        return super().renewed(answer) or answer == "permanent"


class AcksWhatWasStopped(TwinWorker):
    """The handler is told to stop and ends with a result all the same, which is acked."""

    def stopped(self, done: Completion) -> Completion | None:
        return done


class GivesBackAfterRenewalError(TwinWorker):
    """After a renewal failed the item is given back, without a cancellation ack."""

    def cancelled(self) -> None:
        self.abandon()


class CancelsWithoutReason(TwinWorker):
    """An item is settled without a completion although no renewal failed."""

    def settle(self, done: Completion) -> None:
        self.ack(None)


class AcksBeforeTheEnd(TwinWorker):
    """A result is acked while the handler runs."""

    def handle(self) -> Completion | None:
        self.host.start_handler(self.token)
        return Completion("result", "already")


class GivesBackWhileItRuns(TwinWorker):
    """An item is given back while its handler runs."""

    def handle(self) -> Completion | None:
        self.host.start_handler(self.token)
        self.abandon()
        return None


class RenewsAfterGivingUp(TwinWorker):
    """The lock of an item that is being given back is renewed."""

    def abandon(self, delay_ms: int | None = None) -> None:
        self.renew()
        super().abandon(delay_ms)


class ShortLock(TwinWorker):
    """A fetch asks for a shorter lock than the policy has, and renewals for the same."""

    LOCK_MS = 20_000


class BeginsLate(TwinWorker):
    """A delivery lies half a second before its handler is started."""

    def handle(self) -> Completion | None:
        self.pause(self.host.now_ms + 500)
        return super().handle()


class RunsAMissingHandler(TwinWorker):
    """A handler is started that is not registered."""

    def missing(self, delivery: HostDelivery) -> None:
        self.host.start_handler(self.token)


class AbortsWithoutGrace(TwinWorker):
    """A handler is aborted at the first renewal error, and never told to stop."""

    def stop_handler(self) -> Completion | None:
        self.host.abort_handler(self.token)
        return None


class AbortsEarly(TwinWorker):
    """A handler that was told to stop is aborted when half its grace is over."""

    GRACE_MS = 5_000


class AbortsLate(TwinWorker):
    """A handler that was told to stop has twice its grace."""

    GRACE_MS = 20_000


class FetchesAfterShutdown(TwinWorker):
    """A worker that shuts down fetches once more, and the item is locked with nobody at work on it."""

    def goes_on(self) -> bool:
        return True


class RenewsAfterShutdown(TwinWorker):
    """A worker that shuts down goes on renewing, and prolongs the lock of what it will drop."""

    def stops(self) -> None:
        super().stops()
        self.renew()


class IgnoresShutdown(TwinWorker):
    """A worker goes on after its grace."""

    SHUTDOWN_GRACE_MS = 61_000


class RetriesProlongTheGrace(TwinWorker):
    """While an ack is repeated, the grace begins anew with each attempt."""

    def attempt(self, done: Completion, n: int) -> str:
        if self.stop_ms is not None:
            self.stop_ms = self.host.now_ms + self.SHUTDOWN_GRACE_MS
        return super().attempt(done, n)


class DropsItsWork(TwinWorker):
    """At a shutdown the work in hand is dropped at once."""

    def stops(self) -> None:
        raise Stopped


class GivesBackAtShutdown(TwinWorker):
    """At a shutdown the item is given back while its handler runs."""

    def stops(self) -> None:
        super().stops()
        self.abandon(0)


class ReturnsEarly(TwinWorker):
    """A worker ends after its first delivery, and nobody asked it to."""

    def work(self, delivery: HostDelivery) -> None:
        super().work(delivery)
        raise Stopped


class NeverRests(TwinWorker):
    """A worker with nothing to do asks again and again without a pause."""

    POLL_MS = 0


class PollsTooRarely(TwinWorker):
    """A worker with nothing to do asks once in a minute."""

    POLL_MS = 60_000


class FailedFetchEndsFetching(TwinWorker):
    """After a fetch failed the worker asks no more."""

    def fetched(self) -> HostDelivery | None:
        found = super().fetched()
        if found is None:
            self.pause(self.host.now_ms + 10**9)
        return found


class HoldsASecondItem(TwinWorker):
    """A worker fetches a second item while it has one in hand."""

    def settle(self, done: Completion) -> None:
        self.fetched()
        super().settle(done)


class TakesOneRenewalErrorAsVerdict(HardenedTwin):
    """A heartbeat fails once for a reason that has nothing to do with the lock, and the work is given up."""

    def renewed(self, answer: str) -> bool:
        return super().renewed("permanent" if answer == "retryable" else answer)


class RenewsNoMore(HardenedTwin):
    """A renewal that failed is not tried again while the lock lasts."""

    RENEWED_AGAIN_MS = 40_000


class StopsBeforeTheLocksEnd(HardenedTwin):
    """The handler is told to stop although the lock lasts."""

    def renewed(self, answer: str) -> bool:
        return super().renewed(answer) and answer == "ok"


class RunsOnAfterTheLocksEnd(HardenedTwin):
    """Renewals have failed until the lock is over, and the handler runs on."""

    def renewed(self, answer: str) -> bool:
        super().renewed(answer)
        return answer != "permanent"


MUTANTS = (
    done_by(
        "hold-longer-than-lock-no-renewal", NeverRenews, _GH + "celery/celery/issues/5935", schedule.RENEWS
    ),
    done_by(
        "poison-kills-a-running-item",
        NeverRenewsOneAttempt,
        _GH + "laravel/framework/issues/48539",
        schedule.RENEWS,
        policy=AT_MOST_ONE,
    ),
    done_by(
        "renewed-once-only", RenewsOnce, _GH + "googleapis/google-cloud-ruby/issues/4103", schedule.RENEWS
    ),
    done_by("renewed-late", RenewsLate, None, schedule.RENEWS),
    done_by(
        "one-failed-renew-ends-renewal",
        IgnoresRenewalErrors,
        _GH + "linagora/cozy-stack/pull/4911",
        schedule.SIGNALS,
    ),
    done_by(
        "lock-lost-handler-runs-on", IgnoresALostLock, _GH + "Azure/go-shuttle/pull/140", schedule.SIGNALS
    ),
    done_by("lock-lost-result-acked", AcksWhatWasStopped, None, "C5"),
    done_by(
        "live-worker-refused-heartbeat",
        TakesOneRenewalErrorAsVerdict,
        _GH + "hatchet-dev/hatchet/pull/4784",
        schedule.LOCK_OVER,
        policy="hardened",
    ),
    done_by("given-back-after-renewal-error", GivesBackAfterRenewalError, None, "S10"),
    done_by("cancelled-without-a-reason", CancelsWithoutReason, None, "C5"),
    done_by("ack-before-the-handler-ends", AcksBeforeTheEnd, None, "C5"),
    done_by("given-back-while-the-handler-runs", GivesBackWhileItRuns, None, "S10"),
    done_by("renewal-after-giving-back", RenewsAfterGivingUp, None, "C5"),
    done_by("short-lock", ShortLock, None, schedule.LOCK_LENGTH),
    done_by("begins-late", BeginsLate, None, schedule.BEGINS),
    done_by("missing-handler-run", RunsAMissingHandler, None, schedule.KNOWS),
    done_by("abort-without-grace", AbortsWithoutGrace, None, schedule.SIGNALS),
    done_by("abort-early", AbortsEarly, None, schedule.GRACE),
    done_by("abort-late", AbortsLate, None, schedule.GRACE),
    done_by(
        "return-on-shutdown-then-refetched",
        FetchesAfterShutdown,
        _GH + "celery/kombu/pull/2049",
        "C5",
    ),
    done_by("renewal-after-shutdown", RenewsAfterShutdown, None, "C5"),
    done_by("shutdown-ignored", IgnoresShutdown, None, schedule.DRAINS),
    done_by("retries-prolong-the-grace", RetriesProlongTheGrace, None, schedule.DRAINS),
    done_by("work-dropped-at-shutdown", DropsItsWork, None, schedule.DROPS),
    done_by("given-back-at-shutdown", GivesBackAtShutdown, None, "S10"),
    done_by("returns-unasked", ReturnsEarly, None, schedule.STAYS),
    done_by("never-rests", NeverRests, None, schedule.RESTS),
    done_by("polls-too-rarely", PollsTooRarely, None, schedule.FETCHES),
    done_by("failed-fetch-ends-fetching", FailedFetchEndsFetching, None, schedule.FETCHES),
    done_by("second-item-in-hand", HoldsASecondItem, None, "C5"),
    done_by("renewal-not-tried-again", RenewsNoMore, None, schedule.RENEWS_AGAIN, policy="hardened"),
    done_by(
        "stops-before-the-lock-ends", StopsBeforeTheLocksEnd, None, schedule.LOCK_OVER, policy="hardened"
    ),
    done_by(
        "runs-on-after-the-lock-ends", RunsOnAfterTheLocksEnd, None, schedule.LOCK_OVER, policy="hardened"
    ),
)
