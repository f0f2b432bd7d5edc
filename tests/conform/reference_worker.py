"""The reference worker on the harness's host: each effect that it asks for is one request of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import peeklock.impl as impl
from peeklock.harness.adapter.interface import PermanentError, RetryableError
from peeklock.harness.worker.host import Completion, Counted, Host, HostDelivery, Kind, RunWorker, Woken
from peeklock.impl import metrics

METRICS: dict[str, Counted] = {
    metrics.SUCCESS: "success",
    metrics.APPLICATION_ERROR: "application error",
    metrics.INFRASTRUCTURE_ERROR: "infrastructure error",
    metrics.POISON: "poison",
    metrics.UNCERTAIN: "uncertain",
}
KINDS: dict[impl.CompletionKind, Kind] = {
    impl.CompletionKind.SUCCESS: "result",
    impl.CompletionKind.APPLICATION_ERROR: "application error",
    impl.CompletionKind.POISON: "poison",
}
POLL_MS = 1_000


def run_reference(policy: impl.Policy) -> RunWorker:
    """A function for ``check_worker``: the reference worker under this policy."""

    def run(host: Host) -> None:
        _Adapted(host, policy).run()

    return run


class _Adapted:
    """Carries out a worker's effects on a host."""

    def __init__(self, host: Host, policy: impl.Policy) -> None:
        self.host = host
        self.delivery: HostDelivery | None = None
        self.signalled = False
        handlers: dict[str, impl.Handler] = {"known": lambda item: ""}
        self.worker = impl.Worker(self, handlers, policy=policy, observer=self.told)

    def now_ms(self) -> int:
        return self.host.now_ms

    def wait_ms(self, n: int) -> None:
        raise NotImplementedError("the worker waits by its effects only")

    def run(self) -> None:
        while self.worker.drop_at_ms is None:
            if self.cycle() in (impl.Verdict.IDLE, impl.Verdict.FETCH_FAILED):
                self.wait(self.host.now_ms + POLL_MS)

    def cycle(self) -> impl.Verdict:
        steps = self.worker.cycle()
        reply: impl.Reply = None
        while True:
            try:
                effect = steps.send(reply)
            except StopIteration as stop:
                verdict: impl.Verdict = stop.value
                return verdict
            reply = self.carry_out(effect)

    def carry_out(self, effect: impl.Effect) -> impl.Reply:
        match effect:
            case impl.Fetch(ms):
                return self.asked(lambda: self.fetched(ms))
            case impl.Renew(token, ms):
                return self.asked(lambda: self.host.renew(token, ms))
            case impl.Ack(token, None):
                return self.asked(lambda: self.host.ack(token, None))
            case impl.Ack(token, impl.Completion(kind, _, payload)):
                return self.asked(lambda: self.host.ack(token, Completion(KINDS[kind], payload)))
            case impl.Abandon(token, delay_ms, ignore_attempt):
                return self.asked(lambda: self.host.abandon(token, delay_ms, ignore_attempt))
            case impl.Wait(until_ms):
                self.wait(until_ms)
            case impl.StartHandler(delivery):
                self.signalled = False
                self.host.start_handler(delivery.token)
            case impl.StepHandler(token, until_ms, cancelled):
                if cancelled and not self.signalled:
                    self.signalled = True
                    self.host.cancel_handler(token)
                woken = self.wait(until_ms)
                if woken.handler is not None:
                    return impl.Outcome(woken.text, woken.handler == "application error")
            case impl.AbortHandler(token):
                self.host.abort_handler(token)
        return None

    def asked(self, call: Callable[[], Any]) -> impl.Answer:
        try:
            return impl.Ok(call())
        except RetryableError as error:
            return impl.Refused(impl.RetryableError("call", str(error)))
        except PermanentError as error:
            return impl.Refused(impl.PermanentError("call", str(error)))

    def fetched(self, ms: int) -> impl.Delivery | None:
        found = self.host.fetch(ms)
        if found is None:
            return None
        item = impl.WorkItem(found.item, "instance", "known" if found.has_handler else "unknown")
        if not found.has_handler and found.attempt_count <= self.worker.policy.max_attempts:
            self.host.no_handler(found.token)
        return impl.Delivery(item, found.token, found.attempt_count, self.host.now_ms + ms)

    def wait(self, until_ms: int) -> Woken:
        woken = self.host.wait(until_ms)
        if woken.shutdown:
            self.worker.request_shutdown()
        return woken

    def told(self, event: impl.Event) -> None:
        if isinstance(event, impl.Counted):
            self.host.count(METRICS[event.name])
