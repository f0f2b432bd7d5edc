"""A store's adapter, called with care: what it answers must be of the right kind and come in time."""

from __future__ import annotations

import ctypes
import inspect
import signal
import sysconfig
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from attrs import frozen

from peeklock.harness.adapter.interface import Delivery, PermanentError, RetryableError
from peeklock.harness.adapter.program import BrokenProgram
from peeklock.spec.notation.actions import Answer
from peeklock.spec.variants.capabilities import Capabilities, CompletionWrite


class AdapterError(ValueError):
    """The adapter, and not the store's conduct, is wrong: what, where, and the remedy, in one line."""


class Overdue(AdapterError):
    """A call did not return in time."""


Errors: TypeAlias = type[Exception] | Sequence[type[Exception]]
"""Exceptions of an adapter's own: one kind or several."""
HERE = Path(__file__).parents[1]
INSTALLED = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))
"""Where code stands that its author did not write for the check."""

_PARAMETERS = {
    "enqueue": ("item", "delay_ms"),
    "fetch": ("lock_timeout_ms",),
    "renew": ("token", "extend_for_ms"),
    "ack": ("token", "completion"),
    "abandon": ("token", "delay_ms", "ignore_attempt"),
    "cancel": ("items",),
    "completions": (),
    "advance": ("ms",),
    "fail_next": ("call", "after_effect"),
}
_NEEDED_BY: dict[str, Callable[[Capabilities], bool]] = {
    "renew": lambda c: c.renew,
    "abandon": lambda c: c.abandon,
    "cancel": lambda c: c.cancel,
    "completions": lambda c: c.completion is not CompletionWrite.NONE,
    "advance": lambda c: c.virtual_clock,
    "fail_next": lambda c: c.fault_injection,
}
_NOT_THE_ADAPTERS = (KeyboardInterrupt, BrokenProgram)
"""What passes through a call, whoever was called."""
_SAY_NOTHING = ("enqueue", "renew", "ack", "abandon")
"""The methods that return nothing: one that says by its value that it did not do it would be taken for done."""
_DECLARES = {
    "completions": "completion=CompletionWrite.NONE",
    "advance": "virtual_clock=False",
    "fail_next": "fault_injection=False",
}


def check_adapter(adapter: object, capabilities: Capabilities) -> None:
    """``AdapterError`` where a method is missing that the capabilities need, or cannot be called as it will be."""
    check_capabilities(capabilities)
    kind = type(adapter).__name__
    for name, parameters in _PARAMETERS.items():
        if name in _NEEDED_BY and not _NEEDED_BY[name](capabilities):
            continue
        signature = f"{name}({', '.join(parameters)})"
        method = getattr(adapter, name, None)
        if not callable(method):
            instead = f", or declare {_DECLARES.get(name, f'{name}=False')}" if name in _NEEDED_BY else ""
            raise AdapterError(f"{kind} has no method {name}; give it {signature}{instead}")
        check_callable(f"{kind}.{name}", method, name, parameters)


def check_capabilities(capabilities: object) -> None:
    """``AdapterError`` for what is no ``Capabilities``."""
    if not isinstance(capabilities, Capabilities):
        raise AdapterError(
            f"capabilities is {capabilities!r}; it should be a Capabilities, such as Capabilities(cancel=False)"
        )


def errors_of(name: str, given: Errors) -> tuple[type[Exception], ...]:
    """What was given by this name, as a tuple; ``AdapterError`` where it is no exception, or one is none."""
    kinds = (given,) if isinstance(given, type) or not isinstance(given, Iterable) else tuple(given)
    if isinstance(given, str) or not all(isinstance(k, type) and issubclass(k, Exception) for k in kinds):
        raise AdapterError(
            f"{name} is {given!r}; it should be a class of exceptions, or several: {name}=(ValueError, KeyError)"
        )
    return kinds


def made_by(make_store: Callable[[], Any], watchdog: Watchdog | Unwatched) -> Any:
    """The adapter that this function makes; ``AdapterError`` where it makes none."""
    remedy = "it should be a function that returns the adapter of a fresh, empty store"
    if not callable(make_store):
        raise AdapterError(f"make_store is {_a(type(make_store).__name__)}; {remedy}")
    try:
        made = watchdog.run("make_store", make_store)
    except AdapterError:
        raise
    except (Exception, SystemExit) as error:
        raise AdapterError(f"make_store raised {said(error)}; {remedy}") from error
    if made is None:
        raise AdapterError(f"make_store returned None; {remedy}")
    _must_be_awaited_by_none("make_store", made)
    return made


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "AEIOUaeiou" else f"a {kind}"


def _must_be_awaited_by_none(what: str, value: object) -> None:
    """``AdapterError`` for what somebody would have to await."""
    if inspect.iscoroutine(value):
        value.close()  # else Python warns of it as well
        raise AdapterError(
            f"{what} returned a coroutine; it should be a plain function that runs it to its end"
        )


def check_callable(
    what: str, function: Callable[..., object], name: str, parameters: tuple[str, ...]
) -> None:
    """``AdapterError`` where the function cannot be called with these parameters."""
    try:
        inspect.signature(function).bind(*parameters)
    except TypeError as error:
        raise AdapterError(f"{what} cannot be called as {name}({', '.join(parameters)}): {error}") from None
    except ValueError:
        pass  # a function without a signature that Python knows: it will be seen when it is called


class Watchdog:
    """Sees to it that a call ends: past its limit it is interrupted where it stands, in its own thread."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._due_s: float | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._caller = threading.get_ident()
        self._fired = False

    def __enter__(self) -> Watchdog:
        self._thread = threading.Thread(target=self._watch, name="peeklock watchdog", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def run(self, what: str, call: Callable[..., Any], *args: object) -> Any:
        """Make the call; ``Overdue`` where it does not return in time."""
        try:
            self._due_s = time.monotonic() + self.limit_s
            try:
                return call(*args)
            finally:
                with self._lock:
                    self._due_s = None
                if self._fired:
                    raise _Interrupt
        except (KeyboardInterrupt, _Interrupt):
            if not self._fired:
                raise
            self._fired = False
            raise Overdue(
                f"{what} did not return within {self.limit_s:g} s; let it answer, or raise RetryableError "
                "when the store is busy"
            ) from None

    def _watch(self) -> None:
        while not self._over.wait(min(self.limit_s / 10, 0.5)):
            with self._lock:
                if self._due_s is not None and time.monotonic() > self._due_s and not self._fired:
                    self._fired = True
                    self._interrupt()

    def _interrupt(self) -> None:
        main = self._caller == threading.main_thread().ident
        if main and hasattr(signal, "pthread_kill") and callable(signal.getsignal(signal.SIGINT)):
            signal.pthread_kill(self._caller, signal.SIGINT)  # it ends a wait as well
        else:
            raise_in(self._caller, _Interrupt)


def raise_in(thread: int, error: type[BaseException]) -> None:
    """Raise this in another thread, named by its ident, as soon as it runs Python code."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


class Unwatched:
    """Makes calls of which somebody else sees to it that they end."""

    def run(self, what: str, call: Callable[..., Any], *args: object) -> Any:
        """Make the call."""
        _ = what
        return call(*args)


class _Interrupt(BaseException):
    """Raised in the thread of a call that takes too long."""


@frozen
class Told:
    """What a call answered."""

    answer: Answer
    value: Any = None


@frozen
class Guarded:
    """Makes the calls of an adapter, and checks the kind of what it answers.

    ``AdapterError`` for an answer or an exception of a kind that the adapter's interface does not have.
    """

    adapter: Any
    capabilities: Capabilities
    watchdog: Watchdog | Unwatched
    retryable: tuple[type[BaseException], ...] = ()
    permanent: tuple[type[BaseException], ...] = ()

    @property
    def _retryable(self) -> tuple[type[BaseException], ...]:
        return (RetryableError, *self.retryable)

    @property
    def _permanent(self) -> tuple[type[BaseException], ...]:
        return (PermanentError, *self.permanent)

    def call(self, where: str, name: str, *args: object) -> Told:
        """One call; the place is for what is said if it goes wrong."""
        what = f"{where}: {type(self.adapter).__name__}.{name}"
        try:
            value = self.watchdog.run(what, getattr(self.adapter, name), *args)
        except AdapterError:
            raise
        except self._retryable:
            return Told(Answer.RETRYABLE)
        except self._permanent as error:
            if name not in ("enqueue", "fetch"):
                return Told(Answer.PERMANENT)
            if not self.capabilities.error_classes:
                return Told(Answer.RETRYABLE)
            raise AdapterError(
                f"{what} raised {said(error)}; it may answer, or raise RetryableError"
            ) from error
        except _NOT_THE_ADAPTERS:
            raise
        except BaseException as error:
            named = f", or name {type(error).__name__} in retryable=… or permanent=…"
            which = "RetryableError" if name in ("enqueue", "fetch") else "RetryableError or PermanentError"
            also = "; is the store fresh and empty?" if name == "enqueue" else ""
            raise AdapterError(
                f"{what} raised {said(error)}; it should raise {which}"
                f"{named if isinstance(error, Exception) else ''}{also}"
            ) from error
        return Told(Answer.OK, self._checked(what, name, value))

    def plain(self, where: str, name: str, *args: object) -> Any:
        """A call that has no way to fail: ``advance``, ``fail_next``, ``completions``, ``close``."""
        what = f"{where}: {type(self.adapter).__name__}.{name}"
        try:
            return self._checked(what, name, self.watchdog.run(what, getattr(self.adapter, name), *args))
        except AdapterError:
            raise
        except _NOT_THE_ADAPTERS:
            raise
        except BaseException as error:
            raise AdapterError(f"{what} raised {said(error)}; it should not fail") from error

    def _checked(self, what: str, name: str, value: Any) -> Any:
        _must_be_awaited_by_none(what, value)
        if name == "fetch":
            return None if value is None else self._delivery(what, value)
        if name == "cancel":
            if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str):
                ids = tuple(value)
                if all(isinstance(i, str) for i in ids):
                    return ids
            raise AdapterError(
                f"{what} returned {value!r}; it should return the ids that had a row, as texts"
            )
        if name == "completions":
            pairs = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
            for pair in pairs:
                two = isinstance(pair, tuple | list) and len(pair) == 2
                if not two or not all(isinstance(p, str) for p in pair):
                    raise AdapterError(
                        f"{what} returned {pair!r}; it should return pairs of texts (item, completion)"
                    )
            return [tuple(pair) for pair in pairs]
        if name in _SAY_NOTHING and value is not None:
            ends = "RetryableError" if name == "enqueue" else "RetryableError or PermanentError"
            raise AdapterError(
                f"{what} returned {value!r}; it should return None where it is done, or raise {ends}"
            )
        return None

    def _delivery(self, what: str, value: Any) -> Delivery:
        if not isinstance(value, Delivery):
            raise AdapterError(
                f"{what} returned {value!r}; it should return a peeklock.harness.adapter.interface.Delivery, or None"
            )
        for name in ("item", "token"):
            text = getattr(value, name)
            if not isinstance(text, str) or not text:
                raise AdapterError(
                    f"{what} returned a Delivery whose {name} is {text!r}; it should be a text that is not empty"
                )
        count = value.attempt_count
        if self.capabilities.attempt_counts and (not isinstance(count, int) or isinstance(count, bool)):
            raise AdapterError(
                f"{what} returned a Delivery whose attempt_count is {count!r}; it should be a whole number, "
                "or declare attempt_counts=False"
            )
        return value


def said(error: BaseException) -> str:
    """An exception that a function of the adapter's or the worker's author raised, and in which line of theirs."""
    plain = (
        error.args[0] if isinstance(error, KeyError) and len(error.args) == 1 else error
    )  # it quotes itself
    told = " ".join(str(plain).split())
    name = f"{type(error).__name__}({told[:120]!r})" if told else type(error).__name__
    frames = [(Path(f.filename), f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    outside = [(path, line) for path, line in frames if path.is_absolute() and HERE not in path.parents]
    theirs = [(path, line) for path, line in outside if not any(map(path.is_relative_to, INSTALLED))]
    if not outside:
        return name
    path, line = (theirs or outside)[-1]
    return f"{name} in {path.name}:{line}"
