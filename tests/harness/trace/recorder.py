"""Recording a store: what its adapter is asked, and what it answers, as a trace file for ``peeklock trace``."""

from __future__ import annotations

import errno
import io
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from peeklock.harness.adapter.interface import Delivery, PermanentError, RetryableError
from peeklock.harness.adapter.wrapping import Errors, check_adapter, errors_of
from peeklock.harness.linear.item_model import StoreAnswer, StoreCall
from peeklock.harness.trace.calls import begin_line, end_line
from peeklock.harness.trace.file import header_line
from peeklock.spec.notation.actions import ABANDONS, Answer, Call
from peeklock.spec.variants.capabilities import STANDARD, Capabilities

REAL_SLACK_MS = 1
"""Two clocks that both cut off fractions may disagree by so much, in milliseconds."""


@contextmanager
def recording(
    store: Any,
    path: str | Path,
    *,
    capabilities: Capabilities = STANDARD,
    retryable: Errors = (),
    permanent: Errors = (),
    source: str = "",
) -> Iterator[Recorded]:
    """Record what is done with an adapter, from any number of threads, into a file that is written anew.

    The store has to be empty at the beginning, and to be used through what this gives only, which has all that the
    adapter has. A line is written whole when a call begins, and one when it ends, so a run that is broken off can be
    judged as far as it came. ``retryable`` and ``permanent`` are exceptions of the store's own that count as such;
    after any other nobody knows whether the call took effect. Every exception goes on to the caller.

    ``AdapterError`` where the adapter lacks a method that the capabilities need, ``OSError`` where the file cannot be
    written.
    """
    check_adapter(store, capabilities)
    errors: dict[Answer, tuple[type[Exception], ...]] = {
        Answer.RETRYABLE: (RetryableError, *errors_of("retryable", retryable)),
        Answer.PERMANENT: (PermanentError, *errors_of("permanent", permanent)),
    }
    with _Lines(Path(path)) as lines:
        slack_ms = 0 if capabilities.virtual_clock else REAL_SLACK_MS
        lines.write(header_line(capabilities, source or type(store).__name__, slack_ms))
        yield Recorded(store, lines, errors, capabilities.virtual_clock)


class _Lines:
    """A file that grows by whole lines. What comes after its end is not written."""

    def __init__(self, path: Path) -> None:
        self._file: io.FileIO | None = io.FileIO(path, "w")

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        file, self._file = self._file, None
        assert file is not None
        file.close()

    def write(self, line: str) -> None:
        """One line; ``OSError`` where there is no room for the whole of it."""
        if self._file is None:
            return
        data = f"{line}\n".encode()
        if self._file.write(data) != len(
            data
        ):  # one call to the system, which is cut short only by a full disk
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Recorded:
    """An adapter that is recorded: each method does and answers what the adapter's own does."""

    def __init__(
        self,
        store: Any,
        lines: _Lines,
        errors: dict[Answer, tuple[type[Exception], ...]],
        virtual: bool,
    ) -> None:
        self._store, self._lines, self._errors, self._virtual = store, lines, errors, virtual
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._virtual_ms, self._began_ns = 0, time.monotonic_ns()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def enqueue(self, item: str, delay_ms: int) -> None:
        """As of ``StoreAdapter``; so all that follow."""
        self._made(Call.ENQUEUE, self._store.enqueue, item, delay_ms, items=(item,), lasts_ms=delay_ms)

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        """Is recorded with the item, the token and the attempt count that it returns."""
        found: Delivery | None = self._made(
            Call.FETCH, self._store.fetch, lock_timeout_ms, lasts_ms=lock_timeout_ms
        )
        return found

    def renew(self, token: str, extend_for_ms: int) -> None:
        """Is recorded with its length."""
        self._made(Call.RENEW, self._store.renew, token, extend_for_ms, token=token, lasts_ms=extend_for_ms)

    def ack(self, token: str, completion: str | None) -> None:
        """Is recorded as a cancellation ack where it carries no completion."""
        call = Call.CANCELLATION_ACK if completion is None else Call.ACK
        self._made(call, self._store.ack, token, completion, token=token)

    def abandon(self, token: str, delay_ms: int, ignore_attempt: bool) -> None:
        """Is recorded with its delay."""
        call = ABANDONS[bool(ignore_attempt)]
        self._made(call, self._store.abandon, token, delay_ms, ignore_attempt, token=token, lasts_ms=delay_ms)

    def cancel(self, items: Sequence[str]) -> Sequence[str]:
        """Is recorded with the ids that had a row."""
        removed: Sequence[str] = self._made(Call.CANCEL, self._store.cancel, items, items=tuple(items))
        return removed

    def advance(self, ms: int) -> None:
        """No call begins or ends meanwhile, so that each has the time before or the time after."""
        with self._lock:
            self._store.advance(ms)
            self._virtual_ms += ms

    def _now_ms(self) -> int:
        return self._virtual_ms if self._virtual else (time.monotonic_ns() - self._began_ns) // 1_000_000

    def _made(self, call: Call, method: Callable[..., Any], *args: object, **of: Any) -> Any:
        with self._lock:
            number = next(self._numbers)
            made = StoreCall(call, self._now_ms(), caller=threading.current_thread().name, **of)
            self._lines.write(begin_line(number, made))
        told = None
        try:
            value = method(*args)
            told = _answer(call, value)
            return value
        except self._errors[Answer.RETRYABLE]:
            told = StoreAnswer(Answer.RETRYABLE)
            raise
        except self._errors[Answer.PERMANENT]:
            if call not in (Call.ENQUEUE, Call.FETCH):  # these have nothing to refuse
                told = StoreAnswer(Answer.PERMANENT)
            raise
        finally:
            with self._lock:
                self._lines.write(end_line(number, made, told, self._now_ms()))


def _answer(call: Call, value: Any) -> StoreAnswer:
    if call is Call.FETCH:
        if value is None:
            return StoreAnswer(Answer.NOTHING)
        return StoreAnswer(Answer.OK, items=(value.item,), token=value.token, attempt=value.attempt_count)
    return StoreAnswer(Answer.OK, items=tuple(value) if call is Call.CANCEL else ())
