"""A worker that runs its handlers by itself, and says nothing of them: what is seen of it is its calls."""

from __future__ import annotations

from twin_worker import TwinWorker

from peeklock.harness.worker.host import Completion

HANDLER_MS = 60_000


class QuietWorker(TwinWorker):
    """Keeps the policy ``retry``; for ``check_worker(…, handlers=False)``."""

    def handle(self) -> Completion | None:
        until_ms = self.host.now_ms + HANDLER_MS
        while self.host.now_ms < until_ms:
            if not self.renews():
                return None
            self.pause(until_ms if self.renew_ms is None else min(until_ms, self.renew_ms))
        return Completion("result", self.token)

    def says_missing(self) -> None:
        """Nobody is told."""
