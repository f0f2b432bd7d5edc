"""Linearizability: can every operation be given one moment between its beginning and its end?

The search is just in time: it keeps every configuration that explains the history so far, a state and the open
operations that have taken effect already, and lets an operation take effect only when an end demands it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from attrs import frozen

from peeklock.harness.linear.history import Begins, Invoke, Operation, Outcome, Return, joined

S = TypeVar("S", bound=Hashable)
S_contra = TypeVar("S_contra", bound=Hashable, contravariant=True)


class Model(Protocol[S]):
    """What operations do, one at a time. States are hashable."""

    @property
    def initial(self) -> S:
        """The state before anything happened."""
        ...

    def step(self, state: S, operation: Operation) -> Iterable[S]:
        """The states that can follow when the operation happens here with its result; none where it cannot."""
        ...


class Tells(Protocol[S_contra]):
    """A model that can say more, so that less has to be tried and remembered. Each of the two may be missing."""

    def spent(self, state: S_contra, operation: Operation) -> bool:
        """Whether, from this state on, the operation can never change anything any more."""
        ...

    def reads(self, operation: Operation) -> bool:
        """Whether the operation, with its result, changes no state: then the first moment that allows it will do."""
        ...


@frozen
class Configuration(Generic[S]):
    """One way to explain the history so far."""

    state: S
    done: frozenset[int] = frozenset()
    """The numbers of the open operations that have taken effect."""


class NotLinearizable(Exception):
    """No order of the operations explains the history."""

    def __init__(
        self,
        operation: Operation,
        before: tuple[Configuration[Hashable], ...],
        others: tuple[Operation, ...],
    ) -> None:
        beside = ", ".join(str(o) for o in others) or "nothing"
        super().__init__(
            f"{operation}: no moment between its beginning and its end explains it; open beside it: {beside}"
        )
        self.operation = operation
        self.before = before
        """The configurations before it ended, and those that others of the open operations lead to."""
        self.others = others
        """The other operations that were open when it ended."""


class Search(Generic[S]):
    """The configurations of one history. Operations are known by their numbers."""

    def __init__(self, model: Model[S]) -> None:
        self.model = model
        self.configurations: dict[Configuration[S], None] = {Configuration(model.initial): None}
        self.open: dict[int, Operation] = {}
        self._reading: dict[int, Operation] = {}
        """Those of the open ones that only read."""
        self._at_once: set[int] = set()
        """Those that were read when they began, so that nothing depends on them any more."""
        self._spent = getattr(model, "spent", None)
        self._reads = getattr(model, "reads", None)

    def invoke(self, operation: Operation) -> None:
        """The operation begins. One of unknown outcome is never completed."""
        reads = operation.outcome is Outcome.OK and self._reads is not None and self._reads(operation)
        if reads and all(c.state in self.model.step(c.state, operation) for c in self.configurations):
            self._at_once.add(operation.number)
            return
        self.open[operation.number] = operation
        if operation.outcome is Outcome.INFO:
            self._forget_spent()
        elif reads:
            self._reading[operation.number] = operation
            self.configurations = {self._read(c.state, c.done): None for c in self.configurations}

    def complete(self, operation: Operation) -> None:
        """The operation ends; ``NotLinearizable`` when it cannot have taken effect by now, and nothing changes."""
        number = operation.number
        if number in self._at_once:
            self._at_once.remove(number)
            return
        kept: dict[Configuration[S], None] = {}
        todo = list(self.configurations)
        seen = dict.fromkeys(todo)
        while todo:
            here = todo.pop()
            if number in here.done:
                kept[Configuration(here.state, here.done - {number})] = None
                continue
            for after in self._next(here):
                if after not in seen:
                    seen[after] = None
                    todo.append(after)
        if not kept:
            others = tuple(o for o in self.open.values() if o.number != number)
            raise NotLinearizable(operation, tuple(seen), others)  # type: ignore[arg-type]
        del self.open[number]
        self._reading.pop(number, None)
        self.configurations = kept
        self._forget_spent()

    def possible(self) -> dict[S, None]:
        """The states that there may be now: of the open operations, any may have taken effect."""
        found = dict.fromkeys(self.configurations)
        todo = list(found)
        while todo:
            here = todo.pop()
            for after in self._next(here):
                if after not in found:
                    found[after] = None
                    todo.append(after)
        return dict.fromkeys(c.state for c in found)

    def _next(self, here: Configuration[S]) -> Iterator[Configuration[S]]:
        """What follows when one of the open operations takes effect."""
        for other in self.open.values():
            if other.number in here.done:
                continue
            for state in self.model.step(here.state, other):
                if (
                    other.outcome is not Outcome.INFO or state != here.state
                ):  # else it is as if it had not happened yet
                    yield self._read(state, here.done | {other.number})

    def _read(self, state: S, done: frozenset[int]) -> Configuration[S]:
        """The configuration after all has been read that can be: to read later is never better."""
        for number, operation in self._reading.items():
            if number not in done and state in self.model.step(state, operation):
                done |= {number}
        return Configuration(state, done)

    def _forget_spent(self) -> None:
        for operation in [o for o in self.open.values() if o.outcome is Outcome.INFO]:
            number = operation.number
            if all(
                number in c.done or (self._spent is not None and self._spent(c.state, operation))
                for c in self.configurations
            ):
                del self.open[number]
                self.configurations = {
                    Configuration(c.state, c.done - {number}): None for c in self.configurations
                }


def check(
    history: Iterable[Invoke | Return],
    model: Model[S],
    partition: Callable[[Operation], Iterable[Hashable]] | None = None,
) -> NotLinearizable | None:
    """Whether the history is linearizable: None, or the first operation that nothing explains.

    ``partition`` names the parts that an operation concerns, each of which is judged for itself, by the same model.
    """
    searches: dict[Hashable, Search[S]] = {}
    for event in joined(history):
        operation = event.operation
        for part in (None,) if partition is None else partition(operation):
            if part not in searches:
                searches[part] = Search(model)
            if isinstance(event, Begins):
                searches[part].invoke(operation)
                continue
            try:
                searches[part].complete(operation)
            except NotLinearizable as found:
                return found
    return None
