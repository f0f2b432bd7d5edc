"""A headless Chromium, driven through a pipe: it opens a file, is asked what it shows, and is sent keys."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
_WITH_PIPES = """
import fcntl, os, sys
for fd, wanted in [(fcntl.fcntl(int(sys.argv[k]), fcntl.F_DUPFD, 10), k + 2) for k in (1, 2)]:
    os.dup2(fd, wanted)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads its pipe as 3 and writes to 4."""


class Browser:
    """One tab. ``with Browser(page, width, height, dark) as tab``."""

    def __init__(self, page: Path, width: int, height: int, dark: bool = False) -> None:
        program = next((found for name in NAMES if (found := shutil.which(name))), None)
        assert program, f"none of {', '.join(NAMES)} is on this machine: apt-get install chromium"
        self._home = tempfile.TemporaryDirectory(prefix="peeklock-browser-", ignore_cleanup_errors=True)
        to_child, self._to = os.pipe()
        self._from, from_child = os.pipe()
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", _WITH_PIPES, str(to_child), str(from_child)),
                *(program, *_QUIET, f"--user-data-dir={self._home.name}"),
            ],
            pass_fds=(to_child, from_child),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_child)
        os.close(from_child)
        self._number, self._rest, self._events = 0, b"", [dict[str, Any]()]
        self._session: str | None = None
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        for domain in ("Page", "Network", "Log", "Runtime"):
            self._ask(f"{domain}.enable")
        self._ask("Page.navigate", url=page.resolve().as_uri())
        while not any(e.get("method") == "Page.loadEventFired" for e in self._events):
            self._events.append(self._read())

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._home.cleanup()

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives."""
        found = self._ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until a JavaScript expression is true, as when the browser goes back by itself; five seconds at most."""
        until = time.monotonic() + 5
        while not self.value(expression):
            assert time.monotonic() < until, f"never came true: {expression}"

    def press(self, key: str) -> None:
        """One key, down and up."""
        for kind in ("keyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key=key)

    def picture(self, path: Path) -> None:
        """What is to be seen, as a PNG file."""
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"]))

    def requested(self) -> list[str]:
        """The addresses that the page asked for."""
        return [
            e["params"]["request"]["url"]
            for e in self._events
            if e.get("method") == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Errors and refusals that the browser noted."""
        noted = [e for e in self._events if e.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown")]
        return [json.dumps(e["params"]) for e in noted]

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self._events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._from, 1 << 16)
            assert more, "the browser has gone away"
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message
