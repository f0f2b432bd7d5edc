"""A worker in plain loops, as somebody might write it who has read the protocol, with switches for its mistakes."""

from __future__ import annotations

from collections.abc import Callable

from peeklock.harness.adapter import PermanentError, RetryableError
from peeklock.harness.host import Completion, Counted, Ended, Host, HostDelivery, RunWorker

LOCK_MS, RENEWED_EVERY_MS = 30_000, 25_000
WAITS_MS = (100, 200, 400, 800)
MAX_ATTEMPTS = 10
GRACE_MS, SHUTDOWN_GRACE_MS = 10_000, 1_000
POLL_MS, ABANDON_DELAY_MS = 1_000, 100


class Stopped(Exception):
    """The shutdown grace is over."""


def plain_worker(fault: str = "") -> RunWorker:
    """A function for ``check_worker``: the plain worker, with one mistake or none."""

    def run(host: Host) -> None:
        PlainWorker(host, fault).run()

    return run


class PlainWorker:
    """One worker, from its birth to its shutdown."""

    def __init__(self, host: Host, fault: str) -> None:
        self.host, self.fault = host, fault
        self.stop_ms: int | None = None
        self.renew_ms: int | None = None
        self.renewed = 0
        self.earlier = ""

    def run(self) -> None:
        while self.stop_ms is None or self.fault == "fetches after shutdown":
            try:
                delivery = self.host.fetch(20_000 if self.fault == "asks for a short lock" else LOCK_MS)
            except RetryableError:
                delivery = None
            if delivery is None:
                self.rest()
                continue
            try:
                self.work(delivery)
            except Stopped:
                if self.fault != "ignores a shutdown":
                    return
                self.host.wait(self.host.now_ms + 60_000)
            if self.fault == "returns early":
                return

    def rest(self) -> None:
        """There was nothing to do."""
        pauses_ms = {"polls too rarely": 60_000, "never rests": 0}
        self.pause(self.host.now_ms + pauses_ms.get(self.fault, POLL_MS))

    def work(self, delivery: HostDelivery) -> None:
        self.renew_ms, self.renewed = self.host.now_ms + RENEWED_EVERY_MS, 0
        token = delivery.token
        if delivery.attempt_count > MAX_ATTEMPTS and self.fault != "runs the handler of poison":
            self.tries(lambda: self.host.ack(token, Completion("poison", "delivered too often")))
            self.count("poison")
        elif not delivery.has_handler and self.fault != "runs a missing handler":
            self.is_missing(token)
            self.abandon(token, min(60_000, 1_000 * 2 ** (delivery.attempt_count - 1)))
        else:
            self.dawdle("begins late")
            done = self.handle(token)
            self.dawdle("acks late" if done is not None else "cancels late")
            if done is not None:
                self.settle(token, done)
            elif self.fault == "retries the cancellation ack":
                for _ in range(3):
                    if self.tries(lambda: self.host.ack(token, None)) == "ok":
                        return
                self.abandon(token)
            elif self.tries(lambda: self.host.ack(token, None)) != "ok":
                self.abandon(token)
        self.earlier = token

    def is_missing(self, token: str) -> None:
        self.host.no_handler(token)

    def dawdle(self, fault: str) -> None:
        if self.fault == fault:
            self.host.wait(self.host.now_ms + 500)

    def count(self, metric: Counted) -> None:
        self.dawdle("counts late")
        if self.fault != "counts nothing":
            self.host.count(metric)

    def handle(self, token: str) -> Completion | None:
        """Run the handler; what to ack, or None where the lock is in doubt."""
        self.host.start_handler(token)
        while True:
            if not self.renews(token) and self.fault != "ignores a failed renewal":
                self.cancel(token)
                return None
            kind, text = self.pause(self.renew_ms)
            if self.stop_ms is not None and self.fault == "renews after shutdown":
                self.tries(lambda: self.host.renew(token, LOCK_MS))
            if self.stop_ms is not None and self.fault == "drops its work":
                raise Stopped
            if kind is not None:
                return Completion(kind, text)

    def cancel(self, token: str) -> None:
        until_ms = self.host.now_ms + {"aborts early": 5_000, "aborts late": 20_000}.get(self.fault, GRACE_MS)
        if self.fault != "aborts without grace":
            self.host.cancel_handler(token)
            while self.host.now_ms < until_ms:
                kind, _ = self.pause(until_ms)
                if kind is not None:
                    return
        self.host.abort_handler(token)

    def renews(self, token: str) -> bool:
        """Renew if it is time to; False when that failed, now."""
        if self.renew_ms is None or self.host.now_ms < self.renew_ms or self.stop_ms is not None:
            return True
        if self.fault == "never renews" or (self.fault == "renews once" and self.renewed):
            self.renew_ms = None
            return True
        answer = self.tries(lambda: self.host.renew(token, LOCK_MS))
        self.renewed += 1
        self.renew_ms = self.host.now_ms + RENEWED_EVERY_MS if answer == "ok" else None
        return answer == "ok"

    def settle(self, token: str, done: Completion) -> None:
        ends = WAITS_MS[:1] if self.fault == "gives up early" else WAITS_MS
        for n in range(len(ends) + 1):
            carried = self.carried(done, n)
            answer = self.tries(lambda c=carried: self.host.ack(self.acked(token), c))  # type: ignore[misc]
            if answer == "ok":
                self.count("success" if done.kind == "result" else "application error")
                return
            if answer == "permanent" and n > 0 and self.fault != "retries a permanent error":
                self.count("infrastructure error" if self.fault == "counts an error" else "uncertain")
                if self.fault == "counts both":
                    self.count("infrastructure error")
                if self.fault == "abandons when uncertain":
                    self.abandon(token)
                return
            if answer == "permanent" and self.fault != "retries a permanent error":
                break
            if self.fault == "abandons after a retryable error":
                break
            if n < len(ends):
                waits_ms = {"does not wait": 0, "waits too long": 5_000}
                self.wait_and_renew(token, waits_ms.get(self.fault, ends[n]))
        self.count("infrastructure error")
        if self.fault != "does not abandon":
            self.abandon(token)

    def carried(self, done: Completion, n: int) -> Completion:
        if n and self.fault == "changes the completion":
            return Completion("application error", "gave up")
        if n and self.fault == "changes the text":
            return Completion(done.kind, done.text + " again")
        return done

    def acked(self, token: str) -> str:
        return self.earlier or token if self.fault == "acks an earlier token" else token

    def wait_and_renew(self, token: str, wait_ms: int) -> None:
        until_ms = self.host.now_ms + wait_ms
        while True:
            self.renews(token)
            if self.host.now_ms >= until_ms:
                return
            self.pause(until_ms if self.renew_ms is None else min(until_ms, self.renew_ms))

    def abandon(self, token: str, delay_ms: int = ABANDON_DELAY_MS) -> None:
        named_ms = 0 if self.fault == "names no delay" else delay_ms
        self.tries(lambda: self.host.abandon(token, named_ms))

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
        far_ms = 10**12 if until_ms is None else until_ms
        woken = self.host.wait(far_ms if self.stop_ms is None else min(far_ms, self.stop_ms))
        if woken.shutdown and self.stop_ms is None:
            self.stop_ms = woken.now_ms + SHUTDOWN_GRACE_MS
            self.renew_ms = None
        return woken.handler, woken.text

    def is_over(self) -> bool:
        return self.stop_ms is not None and self.host.now_ms >= self.stop_ms
