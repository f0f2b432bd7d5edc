"""A worker that runs its handlers by itself, and says nothing of them: what is seen of it is its calls."""

from __future__ import annotations

from plain_worker import ABANDON_DELAY_MS, LOCK_MS, PlainWorker

from peeklock.harness.host import Completion, Host, RunWorker

HANDLER_MS = 60_000


def quiet_worker(fault: str = "") -> RunWorker:
    """A function for ``check_worker(…, handlers=False)``."""

    def run(host: Host) -> None:
        _Quiet(host, fault).run()

    return run


class _Quiet(PlainWorker):
    def handle(self, token: str) -> Completion | None:
        until_ms = self.host.now_ms + HANDLER_MS
        while self.host.now_ms < until_ms:
            if not self.renews(token):
                return None
            self.pause(until_ms if self.renew_ms is None else min(until_ms, self.renew_ms))
            if self.fault == "renews after shutdown" and self.stop_ms is not None:
                self.tries(lambda: self.host.renew(token, LOCK_MS))
        return Completion("result", token)

    def settle(self, token: str, done: Completion) -> None:
        if self.fault == "abandons at once":
            self.abandon(token, ABANDON_DELAY_MS)
        else:
            super().settle(token, done)

    def is_missing(self, token: str) -> None:
        """Nobody is told."""
