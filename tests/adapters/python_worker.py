"""The twin worker of the tests behind the wire format: a host whose every method is one line and its answer.

FAULT in the environment is the name of a faulty worker.
"""

import contextlib
import json
import os
import sys

from registry import WORKERS
from twin_worker import TwinWorker, runs

from peeklock.harness.adapter.interface import PermanentError, RetryableError
from peeklock.harness.worker.host import Crashed, HostDelivery, Woken

ERRORS = {"retryable": RetryableError, "permanent": PermanentError}
ANNOUNCED = {"peeklock": 1, "name": "python_worker", **json.loads(os.environ.get("ANNOUNCES", "{}"))}
"""ANNOUNCES in the environment changes what the program says of itself."""
WORKER = next((m.make for m in WORKERS if m.slug == os.environ.get("FAULT")), TwinWorker)
CHANGES = json.loads(os.environ.get("CHANGES", "{}"))
"""What else to say in each request, to be wrong in it."""


def say(message):
    print(json.dumps(message), flush=True)


class WireHost:
    """The host at the other end of the wire."""

    def __init__(self, now_ms):
        self.now_ms, self.requests = now_ms, 0

    def ask(self, call, **arguments):
        self.requests += 1
        say({"id": self.requests, "call": call, **arguments, **CHANGES})
        answer = json.loads(sys.stdin.readline())
        if "stop" in answer:
            raise Crashed(answer["stop"])
        self.now_ms = answer["now_ms"]
        if "error" in answer:
            raise ERRORS[answer["error"]](answer["message"])
        return answer["ok"]

    def fetch(self, lock_timeout_ms):
        found = self.ask("fetch", lock_timeout_ms=lock_timeout_ms)
        return found and HostDelivery(**found)

    def renew(self, token, extend_for_ms):
        self.ask("renew", token=token, extend_for_ms=extend_for_ms)

    def ack(self, token, completion):
        carried = completion and {"kind": completion.kind, "text": completion.text}
        self.ask("ack", token=token, completion=carried)

    def abandon(self, token, delay_ms, ignore_attempt=False):
        self.ask("abandon", token=token, delay_ms=delay_ms, ignore_attempt=ignore_attempt)

    def start_handler(self, token):
        self.ask("start_handler", token=token)

    def no_handler(self, token):
        self.ask("no_handler", token=token)

    def cancel_handler(self, token):
        self.ask("cancel_handler", token=token)

    def abort_handler(self, token):
        self.ask("abort_handler", token=token)

    def wait(self, until_ms):
        woken = self.ask("wait", until_ms=until_ms)
        return Woken(self.now_ms, woken["handler"], woken["text"], woken["shutdown"])

    def count(self, metric):
        self.ask("count", metric=metric)


def main():
    json.loads(sys.stdin.readline())
    say(ANNOUNCED)
    for line in sys.stdin:
        begun = json.loads(line)
        with contextlib.suppress(Crashed):
            runs(WORKER)(WireHost(begun["now_ms"]))
        say({"done": begun["run"]})


if __name__ == "__main__":
    main()
