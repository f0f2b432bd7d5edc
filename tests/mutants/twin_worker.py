"""The correct workers of which every faulty worker here is a small change, written in plain loops on the host."""

from __future__ import annotations

from collections.abc import Callable

from peeklock.harness.adapter.interface import PermanentError, RetryableError
from peeklock.harness.worker.host import Completion, Counted, Ended, Host, HostDelivery, RunWorker

FAR_MS = 10**12


class Stopped(Exception):
    """The shutdown grace is over."""


class TwinWorker:
    """Keeps the policy ``retry``. What a faulty worker overrides is one of the numbers or the small methods."""

    LOCK_MS, RENEWED_EVERY_MS = 30_000, 25_000
    WAITS_MS: tuple[int, ...] = (100, 200, 400, 800)
    MAX_ATTEMPTS = 10
    GRACE_MS, SHUTDOWN_GRACE_MS = 10_000, 1_000
    POLL_MS, ABANDON_DELAY_MS = 1_000, 100

    def __init__(self, host: Host) -> None:
        self.host = host
        self.token = ""
        self.stop_ms: int | None = None
        """The end of the shutdown grace."""
        self.renew_ms: int | None = None
        """The next renewal; None where there is none."""

    def run(self) -> None:
        """From its birth to its shutdown."""
        while self.goes_on():
            delivery = self.fetched()
            if delivery is None:
                self.pause(self.host.now_ms + self.POLL_MS)
                continue
            self.token, self.renew_ms = delivery.token, self.host.now_ms + self.RENEWED_EVERY_MS
            try:
                self.work(delivery)
            except Stopped:
                return

    def goes_on(self) -> bool:
        """May it fetch?"""
        return self.stop_ms is None

    def fetched(self) -> HostDelivery | None:
        """An item, or None where there is none or the fetch failed."""
        try:
            return self.host.fetch(self.LOCK_MS)
        except RetryableError:
            return None

    def work(self, delivery: HostDelivery) -> None:
        """Deal with one delivery."""
        if self.is_poison(delivery):
            self.poison()
        elif not delivery.has_handler:
            self.missing(delivery)
        else:
            done = self.handle()
            if done is None:
                self.cancelled()
            else:
                self.settle(done)

    def is_poison(self, delivery: HostDelivery) -> bool:
        """Was it delivered too often?"""
        return delivery.attempt_count > self.MAX_ATTEMPTS

    def poison(self) -> None:
        """One ack, whatever its answer."""
        self.ack(Completion("poison", "delivered too often"))
        self.count("poison")

    def missing(self, delivery: HostDelivery) -> None:
        """No handler is registered."""
        self.says_missing()
        self.abandon(min(60_000, 1_000 * 2 ** (delivery.attempt_count - 1)))

    def says_missing(self) -> None:
        """Tell the host."""
        self.host.no_handler(self.token)

    # The handler

    def handle(self) -> Completion | None:
        """Run the handler; what to ack, or None where the lock is in doubt."""
        self.host.start_handler(self.token)
        while self.renews():
            kind, text = self.pause(self.renew_ms)
            if kind is not None:
                return Completion(kind, text)
        return self.stop_handler()

    def stop_handler(self) -> Completion | None:
        """Tell the handler to stop, and stop it when its grace is over; its result is dropped."""
        until_ms = self.host.now_ms + self.GRACE_MS
        self.host.cancel_handler(self.token)
        while self.host.now_ms < until_ms:
            kind, text = self.pause(until_ms)
            if kind is not None:
                return self.stopped(Completion(kind, text))
        self.host.abort_handler(self.token)
        return None

    def stopped(self, done: Completion) -> Completion | None:
        """The handler has ended in its grace, in this way; what to ack of it."""
        return None

    def renews(self) -> bool:
        """Renew if it is time to; False when the lock is in doubt."""
        if self.renew_ms is None or self.host.now_ms < self.renew_ms:
            return True
        return self.renewed(self.renew())

    def renew(self) -> str:
        """One renewal."""
        return self.tries(lambda: self.host.renew(self.token, self.LOCK_MS))

    def renewed(self, answer: str) -> bool:
        """What a renewal's answer means: False when the lock is in doubt."""
        self.renew_ms = self.host.now_ms + self.RENEWED_EVERY_MS if answer == "ok" else None
        return answer == "ok"

    def cancelled(self) -> None:
        """The handler was told to stop, and is over."""
        if self.ack(None) != "ok":
            self.abandon()

    # The ack sequence

    def settle(self, done: Completion) -> None:
        """Ack until there is an answer that ends it."""
        for n, wait_ms in enumerate((*self.WAITS_MS, None)):
            answer = self.attempt(done, n)
            if answer == "ok":
                return self.accepted(done)
            if answer == "permanent":
                return self.refused(done, n)
            if wait_ms is not None:
                self.wait_and_renew(wait_ms)
        return self.exhausted()

    def attempt(self, done: Completion, n: int) -> str:
        """The ack, after n others."""
        return self.ack(done)

    def accepted(self, done: Completion) -> None:
        """The store has answered ok."""
        self.count("success" if done.kind == "result" else "application error")

    def refused(self, done: Completion, n: int) -> None:
        """The store has answered a permanent error, after n retryable ones."""
        if n:
            self.uncertain()
        else:
            self.gives_up()

    def uncertain(self) -> None:
        """An earlier attempt may have committed."""
        self.count("uncertain")

    def exhausted(self) -> None:
        """Every attempt was answered by a retryable error."""
        self.gives_up()

    def gives_up(self) -> None:
        """A confirmed failure."""
        self.count("infrastructure error")
        self.abandon()

    def wait_and_renew(self, wait_ms: int) -> None:
        """Wait, and renew meanwhile."""
        until_ms = self.host.now_ms + wait_ms
        while True:
            self.renews()
            if self.host.now_ms >= until_ms:
                return
            self.pause(until_ms if self.renew_ms is None else min(until_ms, self.renew_ms))

    # Its calls

    def count(self, metric: Counted) -> None:
        """Say which verdict it counts."""
        self.host.count(metric)

    def ack(self, completion: Completion | None) -> str:
        """One ack; None is the cancellation ack."""
        return self.tries(lambda: self.host.ack(self.token, completion))

    def abandon(self, delay_ms: int | None = None) -> None:
        """Give the item back, whatever the answer."""
        named_ms = self.ABANDON_DELAY_MS if delay_ms is None else delay_ms
        self.tries(lambda: self.host.abandon(self.token, named_ms))

    def tries(self, call: Callable[[], None]) -> str:
        """Make one call; what came of it."""
        if self.is_over():
            raise Stopped
        try:
            call()
        except RetryableError:
            return "retryable"
        except PermanentError:
            return "permanent"
        return "ok"

    def pause(self, until_ms: int | None) -> tuple[Ended | None, str]:
        """Wait until then, or until something happens; how the handler ended, if it did."""
        if self.is_over():
            raise Stopped
        far_ms = FAR_MS if until_ms is None else until_ms
        woken = self.host.wait(far_ms if self.stop_ms is None else min(far_ms, self.stop_ms))
        if woken.shutdown and self.stop_ms is None:
            self.stops()
        return woken.handler, woken.text

    def stops(self) -> None:
        """A shutdown begins."""
        self.stop_ms, self.renew_ms = self.host.now_ms + self.SHUTDOWN_GRACE_MS, None

    def is_over(self) -> bool:
        """Is the shutdown grace over?"""
        return self.stop_ms is not None and self.host.now_ms >= self.stop_ms


class AcksOnce(TwinWorker):
    """Keeps the policy ``before``."""

    WAITS_MS = ()


class OneAttempt(TwinWorker):
    """Keeps a policy under which an item is poison at its second delivery."""

    MAX_ATTEMPTS = 1


class HardenedTwin(TwinWorker):
    """Keeps the policy ``hardened``."""

    RENEWED_AGAIN_MS = 1_000

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.held_ms = 0
        """The end of its lock by its own time."""
        self.lost = ""
        """How the last renewal failed that put the lock in doubt."""

    def work(self, delivery: HostDelivery) -> None:
        self.held_ms = self.host.now_ms + self.LOCK_MS
        super().work(delivery)

    def renew(self) -> str:
        asked_ms = self.host.now_ms
        answer = super().renew()
        if answer == "ok":
            self.held_ms = asked_ms + self.LOCK_MS
        return answer

    def renewed(self, answer: str) -> bool:
        """A retryable error is no verdict until the lock is over by its own time."""
        if answer != "retryable":
            self.lost = answer
            return super().renewed(answer)
        self.lost = "over"
        if self.host.now_ms >= self.held_ms:
            self.renew_ms = None
            return False
        self.renew_ms = min(self.held_ms, self.host.now_ms + self.RENEWED_AGAIN_MS)
        return True

    def cancelled(self) -> None:
        if self.lost == "permanent":
            self.abandon()

    def exhausted(self) -> None:
        """Abandon's own answer decides."""
        answer = self.tries(lambda: self.host.abandon(self.token, self.ABANDON_DELAY_MS))
        self.count("infrastructure error" if answer == "ok" else "uncertain")

    def poison(self) -> None:
        self.settle(Completion("poison", "delivered too often"))

    def accepted(self, done: Completion) -> None:
        if done.kind == "poison":
            self.count("poison")
        else:
            super().accepted(done)


def runs(worker: type[TwinWorker]) -> RunWorker:
    """A function for ``check_worker`` that runs a worker of this class."""

    def run(host: Host) -> None:
        worker(host).run()

    return run
