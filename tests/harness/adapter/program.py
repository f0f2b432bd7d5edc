"""A program in any language as a child process: lines go in, lines come out, and nothing of it is left running.

Whatever the program does wrong ends in one ``BrokenProgram``, within the time limit: it hangs, it dies, it prints
without an end. The program leads a process group of its own, so that what it has started ends with it.
"""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

LONGEST_LINE = 1 << 20
"""Bytes, beyond which a line is given up."""
MOST_WORDS = 64 << 10
"""How many bytes of the program's stderr are kept."""
LAST_LINES = 10
LONGEST_WORD = 160
MOST_QUOTED = 80
GRACE_S = 2.0
"""How long a program may take to end when its input ends, and again when it is asked to."""
_CHUNK = 1 << 16


class BrokenProgram(BaseException):
    """The program did not keep to the wire format: what, at which message, and the remedy, in one line.

    No ``Exception``: it says nothing about the contract, so no search may catch it and try the run again.
    """

    def __init__(self, what: str, last_words: Sequence[str] = ()) -> None:
        super().__init__(what)
        self.what, self.last_words = what, tuple(last_words)

    def __str__(self) -> str:
        if not self.last_words:
            return self.what
        return "\n".join([self.what, "  its last words on stderr:", *(f"  | {w}" for w in self.last_words)])


class Child:
    """A running program. ``timeout_s`` is what one message may take, there and back. For one thread at a time.

    It is started in ``directory``, or where this process is.
    """

    def __init__(self, command: Sequence[str], timeout_s: float, directory: str | None = None) -> None:
        self.command, self.timeout_s = tuple(command), timeout_s
        self.name = plain(shlex.join(self.command), MOST_QUOTED)
        try:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                cwd=directory,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise BrokenProgram(f"{self.name}: cannot be started: {reason}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._input, False)
        os.set_blocking(self._output, False)
        self._buffer = bytearray()
        self._ended = False
        self._stopped = False
        self._words, self._words_lock = bytearray(), threading.Lock()
        self._listener = threading.Thread(target=self._listen, name=f"stderr of {self.name}", daemon=True)
        self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The number of the process, which is that of its group as well."""
        return self._process.pid

    def send(self, line: str, place: str) -> None:
        """Write one line; ``place`` says in messages which one it is."""
        self._read(0)
        if self._buffer:
            raise self.broken(
                place,
                f"before it, the program printed a line that nobody had asked for: {self._start_of_buffer()}; "
                "allowed: one line for each message, and everything else on stderr",
            )
        data = memoryview(line.encode("utf-8") + b"\n")
        until = time.monotonic() + self.timeout_s
        with selectors.DefaultSelector() as ready:
            ready.register(self._input, selectors.EVENT_WRITE)
            while data:
                if not ready.select(max(0.0, until - time.monotonic())):
                    raise self.broken(
                        place,
                        f"the program did not read it within {self.timeout_s:g} s; it must read to the end",
                    )
                try:
                    data = data[os.write(self._input, data) :]
                except BlockingIOError:
                    continue
                except OSError:
                    raise self.broken(place, f"{self._end()} before it had read it") from None

    def receive(self, place: str) -> str:
        """The next line, without its end."""
        until = time.monotonic() + self.timeout_s
        while True:
            end = self._buffer.find(b"\n", 0, LONGEST_LINE + 1)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                return self._text(line, place)
            if len(self._buffer) > LONGEST_LINE:
                raise self.broken(
                    place,
                    f"{LONGEST_LINE >> 10} KiB without a line's end; allowed: one message on one line, ended by \\n",
                )
            if self._ended:
                rest = f", after half a line: {self._start_of_buffer()}" if self._buffer else ""
                raise self.broken(place, f"{self._end()} instead of answering{rest}")
            if not self._read(max(0.0, until - time.monotonic())) and time.monotonic() >= until:
                half = f"; there is half a line: {self._start_of_buffer()}" if self._buffer else ""
                raise self.broken(
                    place,
                    f"no line within {self.timeout_s:g} s{half}; end each with \\n, flush it, or allow it more time",
                )

    def _text(self, line: bytes, place: str) -> str:
        try:
            return line.decode("utf-8").removesuffix("\r")
        except UnicodeDecodeError:
            raise self.broken(
                place, f"a line that is not UTF-8: {_safe(line)}; allowed: JSON on stdout"
            ) from None

    def broken(self, place: str, what: str) -> BrokenProgram:
        """End the program, and say what is wrong with it."""
        self.stop(GRACE_S if self._ended else 0.0)
        return BrokenProgram(f"{self.name}: {place}: {what}", self.last_words())

    def last_words(self) -> tuple[str, ...]:
        """The last lines that it wrote to stderr, with nothing in them that steers a terminal."""
        with self._words_lock:
            lines = self._words.decode("utf-8", "replace").splitlines()
        return tuple(plain(line.rstrip()) for line in lines if line.strip())[-LAST_LINES:]

    def finish(self) -> None:
        """Let it end by itself, since its input is over; what does not end in time is ended."""
        self.stop(GRACE_S)

    def stop(self, grace_s: float = 0.0) -> None:
        """End the program and whatever it has started. The second time nothing happens."""
        if self._stopped:
            return
        self._stopped = True
        process = self._process
        assert process.stdin is not None
        try:
            process.stdin.close()
            if grace_s:
                _waits(process, grace_s)
            if process.poll() is None:
                self._signal(signal.SIGTERM)
                _waits(process, GRACE_S)
        finally:
            # Also where the wait was interrupted, and where the program has ended and left others behind.
            self._signal(signal.SIGKILL)
            process.wait()
            self._listener.join(1.0)
            assert process.stdout is not None
            process.stdout.close()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return  # nobody of the group is left (some systems say so by the second of these)

    def _read(self, seconds: float) -> bool:
        """Take in what the program printed; wait so long for it. False when nothing came."""
        with selectors.DefaultSelector() as ready:
            ready.register(self._output, selectors.EVENT_READ)
            if self._ended or not ready.select(seconds):
                return False
        try:
            data = os.read(self._output, _CHUNK)
        except BlockingIOError:
            return False
        self._ended = not data
        self._buffer += data
        return True

    def _end(self) -> str:
        """How the program has ended, if it has."""
        _waits(self._process, GRACE_S)
        code = self._process.poll()
        if code is None:
            return "the program closed its end"
        if code >= 0:
            return f"the program ended with exit code {code}"
        names = {s.value: s.name for s in signal.Signals}
        return f"the program was ended by {names.get(-code, f'signal {-code}')}"

    def _start_of_buffer(self) -> str:
        return _safe(bytes(self._buffer).split(b"\n", 1)[0])

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            while data := stream.read(_CHUNK):
                with self._words_lock:
                    self._words += data
                    del self._words[:-MOST_WORDS]


def _waits(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def plain(text: str, most: int = LONGEST_WORD) -> str:
    """A text from outside as it may be printed: nothing that steers a terminal, and not too long."""
    text = text.expandtabs(4)
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= most else text[: most - 1] + "…"


def _safe(line: bytes) -> str:
    return plain(line[:200].decode("utf-8", "replace"), MOST_QUOTED)
