"""A program that is a worker: it asks, and the host of the run answers.

A run begins with ``{"run": n}`` and ends with the program's ``{"done": n}``: because the worker has shut down, or
because the answer to a request was a stop, which is what a crash looks like from inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

from attrs import asdict, frozen

from peeklock.harness.adapter.interface import PermanentError, RetryableError
from peeklock.harness.wire.format import DEFAULT_TIMEOUT_S, Conversation, Line, told
from peeklock.harness.worker.host import Completion, Counted, Crashed, Host, Kind

REPORTS = ("handlers", "counts")
STOPPED = 'this worker is dead: forget everything, answer {"done": %d}, and begin the next run from nothing'


class WorkerProgram(Conversation):
    """A worker in another process, for many runs; ``run_worker`` is what ``check_worker`` takes."""

    def __init__(
        self, command: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S, directory: str | None = None
    ) -> None:
        super().__init__(command, "worker", timeout_s, directory)
        announced = self.announced
        self.reports: tuple[str, ...] = REPORTS
        """What the worker tells of itself: of its handlers, and of what it counts."""
        if "reports" in announced.data:
            self.reports = tuple(announced.typed("reports", list))
        for name in self.reports:
            if name not in REPORTS:
                announced.wrong(f"reports names {told(name)}; allowed: {', '.join(REPORTS)}")

    def run_worker(self, host: Host) -> None:
        """Run one worker until it says that it is done."""
        self.runs += 1
        run, requests = self.runs, 0
        message: dict[str, Any] = {"run": run, "now_ms": host.now_ms}
        while True:
            place = f"run {run}, request {requests + 1}"
            line = self.ask(message, place)
            if "done" in line.data:
                return self._done(line, run)
            requests += 1
            self.requests += 1
            line.answers(requests)
            request = _request(line)
            try:
                message = _answer(requests, request, host)
            except (Crashed, Exception) as error:
                # What the worker has done wrong, or what has befallen it, is for the caller; the program goes on.
                reason = "crash" if isinstance(error, Crashed) else f"fault: {error}"
                stop = {"id": requests, "stop": reason, "message": STOPPED % run}
                self._done(self.ask(stop, f"{place}, {line.data['call']}: stopped"), run)
                raise

    def _done(self, line: Line, run: int) -> None:
        line.known(("done",))
        if line.typed("done", int) != run:
            line.wrong(f'done is {line.data["done"]}; allowed: {{"done": {run}}}')


@frozen
class _Request:
    make: Callable[[Host, Line], Any]
    fields: tuple[str, ...]


def _ms(line: Line, name: str) -> int:
    value: int = line.typed(name, int)
    if value < 0:
        line.wrong(f"{name} is {value}; allowed: 0 or more")
    return value


def _token(line: Line) -> str:
    token: str = line.typed("token", str)
    return token


def _one_of(line: Line, name: str, allowed: tuple[str, ...]) -> Any:
    if line.typed(name, str) not in allowed:
        line.wrong(f"{name} is {told(line.data[name])}; allowed: {', '.join(allowed)}")
    return line.data[name]


def _completion(line: Line) -> Completion | None:
    if "completion" in line.data and line.data["completion"] is None:
        return None
    line.typed("completion", dict)
    found = line.inside("completion", ("kind", "text"))
    text = found.typed("text", str) if "text" in found.data else ""
    return Completion(_one_of(found, "kind", get_args(Kind)), text)


def _abandon(host: Host, line: Line) -> None:
    ignore = line.typed("ignore_attempt", bool) if "ignore_attempt" in line.data else False
    host.abandon(_token(line), _ms(line, "delay_ms"), ignore)


def _fetch(host: Host, line: Line) -> dict[str, Any] | None:
    found = host.fetch(_ms(line, "lock_timeout_ms"))
    return None if found is None else asdict(found)


def _wait(host: Host, line: Line) -> dict[str, Any]:
    woken = host.wait(_ms(line, "until_ms"))
    return {"handler": woken.handler, "text": woken.text, "shutdown": woken.shutdown}


_REQUESTS = {
    "fetch": _Request(_fetch, ("lock_timeout_ms",)),
    "renew": _Request(lambda h, x: h.renew(_token(x), _ms(x, "extend_for_ms")), ("token", "extend_for_ms")),
    "ack": _Request(lambda h, x: h.ack(_token(x), _completion(x)), ("token", "completion")),
    "abandon": _Request(_abandon, ("token", "delay_ms", "ignore_attempt")),
    "start_handler": _Request(lambda h, x: h.start_handler(_token(x)), ("token",)),
    "no_handler": _Request(lambda h, x: h.no_handler(_token(x)), ("token",)),
    "cancel_handler": _Request(lambda h, x: h.cancel_handler(_token(x)), ("token",)),
    "abort_handler": _Request(lambda h, x: h.abort_handler(_token(x)), ("token",)),
    "wait": _Request(_wait, ("until_ms",)),
    "count": _Request(lambda h, x: h.count(_one_of(x, "metric", get_args(Counted))), ("metric",)),
}


def _request(line: Line) -> tuple[_Request, Line]:
    name = line.data.get("call")
    if not isinstance(name, str) or name not in _REQUESTS:
        line.wrong(f"call is {told(name)}; allowed: {', '.join(_REQUESTS)}")
    line.place = f"{line.place}, {name}"
    request = _REQUESTS[name]
    line.known(("id", "call", *request.fields))
    return request, line


def _answer(number: int, request: tuple[_Request, Line], host: Host) -> dict[str, Any]:
    made, line = request
    answer: dict[str, Any] = {"id": number}
    try:
        answer["ok"] = made.make(host, line)
    except (RetryableError, PermanentError) as error:
        answer["error"] = "retryable" if isinstance(error, RetryableError) else "permanent"
        answer["message"] = str(error)
    return {**answer, "now_ms": host.now_ms}
