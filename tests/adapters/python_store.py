"""A small peek-lock store on a clock of its own that speaks the wire format; standard library only.

FAULT in the environment plants a mistake, which the check finds.
"""

import json
import os
import sys

FAULT = os.environ.get("FAULT", "")
ANNOUNCED = {"name": "python_store", "capabilities": {"fault_injection": True}}


class Permanent(Exception):
    pass


class Retryable(Exception):
    pass


class Store:
    """Rows in the order of their age; a token stays with its row until the next fetch or abandon."""

    tokens = fetches = 0

    def __init__(self):
        self.now, self.rows, self.done, self.failing = 0, {}, [], {}

    def enqueue(self, item, delay_ms):
        self.rows[item] = {"visible": self.now + delay_ms, "attempts": 0, "token": None, "locked": None}

    def fetch(self, lock_timeout_ms):
        Store.fetches += 1
        if FAULT == "is-moody" and Store.fetches % 3 == 0:
            return None
        for item, row in self.rows.items():
            locked = row["locked"] is not None and row["locked"] > self.now and FAULT != "locks-nothing"
            if row["visible"] <= self.now and not locked:
                Store.tokens += 1
                row.update(token=f"t{Store.tokens}", locked=self.now + lock_timeout_ms)
                row["attempts"] += 1
                return {"item": item, "token": row["token"], "attempt_count": row["attempts"]}
        return None

    def find(self, token, unexpired):
        for item, row in self.rows.items():
            if row["token"] == token and (not unexpired or row["locked"] > self.now):
                return item, row
        raise Permanent(f"token {token} is not current, or its lock has expired")

    def renew(self, token, extend_for_ms):
        self.find(token, True)[1]["locked"] = self.now + extend_for_ms

    def ack(self, token, completion):
        item, _ = self.find(token, FAULT != "stale-ack")
        del self.rows[item]
        if completion is not None:
            self.done.append({"item": item, "completion": completion})

    def abandon(self, token, delay_ms, ignore_attempt):
        _, row = self.find(token, False)
        row.update(visible=self.now + delay_ms, token=None, locked=None)
        row["attempts"] -= 1 if ignore_attempt else 0

    def cancel(self, items):
        return [item for item in items if self.rows.pop(item, None) is not None]

    def completions(self):
        return self.done

    def advance(self, ms):
        self.now += ms

    def fail_next(self, which, after_effect):
        self.failing[which] = after_effect

    def close(self):
        self.rows.clear()


def call(store, name, arguments):
    """Make one call, with the fault that was asked for."""
    after_effect = store.failing.pop(name, None)
    if after_effect is False:
        raise Retryable("failed before it took effect")
    result = getattr(store, name)(**arguments)
    if after_effect:
        raise Retryable("its response is lost")
    return result


def answer_to(store, number, name, arguments):
    try:
        return {"id": number, "ok": call(store, name, arguments)}
    except Permanent as error:
        return {"id": number, "error": "permanent", "message": str(error)}
    except Retryable as error:
        return {"id": number, "error": "retryable", "message": str(error)}


def say(message):
    print(json.dumps(message), flush=True)


def main(new_store: type = Store, announced=ANNOUNCED):
    shaken = json.loads(sys.stdin.readline())
    assert shaken == {"peeklock": 1, "role": "store"}, shaken
    say({"peeklock": 1, **announced})
    store = None
    for line in sys.stdin:
        request = json.loads(line)
        number, name = request.pop("id"), request.pop("call")
        if name == "new":
            store = new_store(**request)
            say({"id": number, "ok": None})
        else:
            say(answer_to(store, number, name, request))


if __name__ == "__main__":
    main()
