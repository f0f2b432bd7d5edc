"""Faulty workers that ack or give back otherwise than their policy says."""

from __future__ import annotations

from mutant import done_by
from twin_worker import AcksOnce, HardenedTwin, TwinWorker

from peeklock.harness.adapter.interface import RetryableError
from peeklock.harness.worker import schedule
from peeklock.harness.worker.host import Completion, Host, HostDelivery

_GH = "https://github.com/"


class AbandonsAfterRetryable(AcksOnce):
    """One retryable error, and the item is given back, so that its handler runs again."""


class RetriesPermanentForEver(TwinWorker):
    """A permanent error is answered by the same ack again, without end."""

    def refused(self, done: Completion, n: int) -> None:
        self.count("uncertain" if n else "infrastructure error")
        while self.ack(done) != "ok":
            self.pause(self.host.now_ms + 100)


class RetriesPermanent(TwinWorker):
    """A permanent error is taken for a retryable one."""

    def attempt(self, done: Completion, n: int) -> str:
        answer = super().attempt(done, n)
        return "retryable" if answer == "permanent" else answer


class DropsAfterExhaustion(TwinWorker):
    """After the last attempt the result is thrown away, and the item is not given back."""

    def gives_up(self) -> None:
        self.count("infrastructure error")


class AbandonsWhenUncertain(TwinWorker):
    """The ack may have committed and its response been lost; told permanent, the worker abandons."""

    def uncertain(self) -> None:
        super().uncertain()
        self.abandon()


class GivesUpEarly(TwinWorker):
    """The item is given back after two retryable errors."""

    WAITS_MS = TwinWorker.WAITS_MS[:1]


class SixAttempts(TwinWorker):
    """After five retryable errors there is a sixth attempt."""

    def attempt(self, done: Completion, n: int) -> str:
        answer = super().attempt(done, n)
        if n == len(self.WAITS_MS) and answer == "retryable":
            self.count("infrastructure error")
            return self.ack(done)
        return answer


class DoesNotWait(TwinWorker):
    """The attempts follow each other at once."""

    WAITS_MS = (0, 0, 0, 0)


class WaitsTooLong(TwinWorker):
    """Between attempts the worker waits for five seconds."""

    WAITS_MS = (5_000,) * 4


class AcksLate(TwinWorker):
    """The first ack is sent half a second after the handler has ended."""

    def settle(self, done: Completion) -> None:
        self.pause(self.host.now_ms + 500)
        super().settle(done)


class AcksEarlierToken(TwinWorker):
    """An ack carries the token of an earlier delivery."""

    earlier = ""

    def work(self, delivery: HostDelivery) -> None:
        super().work(delivery)
        self.earlier = delivery.token

    def attempt(self, done: Completion, n: int) -> str:
        return self.tries(lambda: self.host.ack(self.earlier or self.token, done))


class RepeatsWithEarlierToken(AcksEarlierToken):
    """An ack is repeated with the token of an earlier delivery."""

    def attempt(self, done: Completion, n: int) -> str:
        return super().attempt(done, n) if n else self.ack(done)


class ChangesTheCompletion(TwinWorker):
    """The ack is repeated with an application error, where the handler had a result."""

    def attempt(self, done: Completion, n: int) -> str:
        return self.ack(Completion("application error", "gave up") if n else done)


class ReportsResultAsError(TwinWorker):
    """A result is reported as an application error."""

    def attempt(self, done: Completion, n: int) -> str:
        return self.ack(Completion("application error", done.text))


class ChangesTheText(TwinWorker):
    """The ack is repeated with the same kind of completion, and another text in it."""

    def attempt(self, done: Completion, n: int) -> str:
        return self.ack(Completion(done.kind, f"{done.text} again") if n else done)


class AbandonsAfterSuccess(TwinWorker):
    """The item is given back after its ack was accepted."""

    def accepted(self, done: Completion) -> None:
        super().accepted(done)
        self.abandon()


class RunsHandlerAgain(TwinWorker):
    """After a retryable error the handler is run again, where only the ack is to be repeated."""

    def attempt(self, done: Completion, n: int) -> str:
        if n:
            self.host.start_handler(self.token)
        return super().attempt(done, n)


class NamesNoDelay(TwinWorker):
    """An item is given back without a delay, so that it comes back at once."""

    def abandon(self, delay_ms: int | None = None) -> None:
        super().abandon(0)


class AbandonsUncounted(TwinWorker):
    """An item is given back uncounted, so that it is never poison."""

    def abandon(self, delay_ms: int | None = None) -> None:
        named_ms = self.ABANDON_DELAY_MS if delay_ms is None else delay_ms
        self.tries(lambda: self.host.abandon(self.token, named_ms, ignore_attempt=True))


class AcksMissing(TwinWorker):
    """An item that no handler is registered for is acked without a completion."""

    def missing(self, delivery: HostDelivery) -> None:
        self.says_missing()
        self.ack(None)


class RunsPoison(TwinWorker):
    """The attempt count is over its maximum, and the handler runs all the same."""

    def is_poison(self, delivery: HostDelivery) -> bool:
        return False


class PoisonTooSoon(TwinWorker):
    """An item is called poison at its last allowed attempt."""

    MAX_ATTEMPTS = TwinWorker.MAX_ATTEMPTS - 1


class PoisonTooLate(TwinWorker):
    """An item is called poison one delivery later than the policy says."""

    MAX_ATTEMPTS = TwinWorker.MAX_ATTEMPTS + 1


class AbandonsPoison(TwinWorker):
    """A poison item whose ack failed is given back."""

    def poison(self) -> None:
        answer = self.ack(Completion("poison", "delivered too often"))
        self.count("poison")
        if answer != "ok":
            self.abandon()


class RepeatsCancellationAck(TwinWorker):
    """A cancellation ack that failed is sent again."""

    def cancelled(self) -> None:
        if not any(self.ack(None) == "ok" for _ in range(3)):
            self.abandon()


class ForgetsAfterCancellationAck(TwinWorker):
    """A cancellation ack that failed is the last that is done about the item."""

    def cancelled(self) -> None:
        self.ack(None)


class CancelsLate(TwinWorker):
    """The cancellation ack is sent half a second after the handler is over."""

    def cancelled(self) -> None:
        self.pause(self.host.now_ms + 500)
        super().cancelled()


class SecondAttemptUnderBefore(AcksOnce):
    """A worker that says it acks once tries again."""

    WAITS_MS = TwinWorker.WAITS_MS[:1]


class CancellationAckUnderHardened(HardenedTwin):
    """A permanent renewal error is answered by a cancellation ack, which can destroy the item."""

    def cancelled(self) -> None:
        if self.lost == "permanent":
            self.ack(None)


class AcksOnANewChannel(TwinWorker):
    """Tokens are numbered by channel; after a failed fetch on a new channel the number means another item."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.tags: list[str] = []

    def fetched(self) -> HostDelivery | None:
        try:
            delivery = self.host.fetch(self.LOCK_MS)
        except RetryableError:
            self.tags = []
            return None
        if delivery is not None:
            self.tags.append(delivery.token)
        return delivery

    def attempt(self, done: Completion, n: int) -> str:
        return self.tries(lambda: self.host.ack(self.tags[0], done))


MUTANTS = (
    done_by(
        "retryable-ack-then-abandon", AbandonsAfterRetryable, _GH + "microsoft/duroxide/issues/41", "S10"
    ),
    done_by(
        "permanent-settle-retried-forever",
        RetriesPermanentForEver,
        _GH + "cjbottaro/faktory_worker_ex/issues/37",
        "C5",
    ),
    done_by("permanent-retried", RetriesPermanent, None, schedule.COUNTS),
    done_by("ack-budget-spent-orphan", DropsAfterExhaustion, _GH + "oban-bg/oban/issues/865", "C5"),
    done_by(
        "abandon-after-unknown-complete",
        AbandonsWhenUncertain,
        _GH + "Azure/azure-sdk-for-js/issues/8605",
        "S7",
    ),
    done_by("gives-up-early", GivesUpEarly, None, "S10"),
    done_by("sixth-attempt", SixAttempts, None, "S9"),
    done_by("attempts-without-waits", DoesNotWait, None, schedule.WAITS),
    done_by("attempts-with-long-waits", WaitsTooLong, None, schedule.WAITS),
    done_by("acks-late", AcksLate, None, schedule.ACKS),
    done_by("ack-on-a-new-channel", AcksOnANewChannel, _GH + "EasyNetQ/EasyNetQ/issues/1329", "S9"),
    done_by("ack-with-an-earlier-token", AcksEarlierToken, None, "S9"),
    done_by("repeat-with-another-token", RepeatsWithEarlierToken, None, "S9"),
    done_by("repeat-with-another-completion", ChangesTheCompletion, None, "S9"),
    done_by("another-completion-than-the-handlers", ReportsResultAsError, None, "S9"),
    done_by("repeat-with-another-text", ChangesTheText, None, schedule.SAME),
    done_by("abandon-after-success", AbandonsAfterSuccess, None, "S10"),
    done_by("handler-runs-again-in-one-delivery", RunsHandlerAgain, None, "C5"),
    done_by("abandon-without-delay", NamesNoDelay, None, schedule.DELAYS),
    done_by("abandon-ignores-attempt", AbandonsUncounted, None, "C5"),
    done_by("missing-handler-acked", AcksMissing, None, "C5"),
    done_by("poison-handler-run", RunsPoison, None, "C3"),
    done_by("poison-too-soon", PoisonTooSoon, None, "C5"),
    done_by("poison-too-late", PoisonTooLate, None, "C3"),
    done_by("poison-abandoned", AbandonsPoison, None, "S10"),
    done_by("cancellation-ack-repeated", RepeatsCancellationAck, None, "S9"),
    done_by("cancellation-ack-failed-orphan", ForgetsAfterCancellationAck, None, schedule.GIVES_BACK),
    done_by("cancellation-ack-late", CancelsLate, None, schedule.CANCELS),
    done_by("second-attempt-under-before", SecondAttemptUnderBefore, None, schedule.COUNTS, policy="before"),
    done_by("cancellation-ack-under-hardened", CancellationAckUnderHardened, None, "C5", policy="hardened"),
)
