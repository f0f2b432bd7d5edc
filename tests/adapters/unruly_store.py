"""The store of ``python_store``, in a program that misbehaves: CONDUCT says how, AT at which message.

AT is the number of the message that it answers, from 1; 0 is the handshake.
"""

import json
import os
import signal
import subprocess
import sys
import time

import python_store

HANGS_S = 120
"""Longer than any test waits; and where the tests themselves are killed, nothing stays for long."""
CONDUCT, AT = os.environ["CONDUCT"], int(os.environ.get("AT", "3"))


def say(message):
    if message.get("id", 0) == AT:
        misbehave(message)
    else:
        put(json.dumps(message) + "\n")


def put(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def complain():
    for number in range(40):
        print(f"word {number}", file=sys.stderr)
    print("\x1b[31mthe database\x07 is gone", file=sys.stderr, flush=True)


def misbehave(message):
    changes = json.loads(os.environ.get("CHANGES", "{}"))
    if CONDUCT == "hang":
        complain()
        time.sleep(HANGS_S)
    elif CONDUCT == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", IGNORING])
        with open(os.environ["PIDS"], "w") as file:
            file.write(f"{os.getpid()} {child.pid}")
        time.sleep(HANGS_S)
    elif CONDUCT == "die":
        complain()
        sys.exit(3)
    elif CONDUCT == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif CONDUCT == "half":
        put(json.dumps(message)[:9])
        sys.exit(0)
    elif CONDUCT == "trickle":
        for letter in json.dumps(message):
            put(letter)
            time.sleep(0.2)
    elif CONDUCT == "raw":
        sys.stdout.buffer.write(json.loads(os.environ["RAW"]).encode("latin-1"))
        sys.stdout.flush()
        time.sleep(HANGS_S)
    elif CONDUCT == "endless":
        while True:
            put("x" * 65_536)
    elif CONDUCT == "twice":
        put((json.dumps(message) + "\n") * 2)
    elif CONDUCT == "slow":
        time.sleep(0.3)
        put(json.dumps(message) + "\n")
    elif CONDUCT == "change":
        changed = {name: value for name, value in {**message, **changes}.items() if value != "(nothing)"}
        put(json.dumps(changed) + "\n")
    else:
        raise ValueError(CONDUCT)


# It outlives its parent unless it is killed; the test kills it, and this bounds it if the test is killed itself.
IGNORING = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(120)"

if __name__ == "__main__":
    python_store.say = say
    python_store.main()
