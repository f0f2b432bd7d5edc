"""What every export shares: names that other languages take, what each promise asks of each action, safe writing."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from attrs import frozen

from peeklock.model.search.world import World
from peeklock.spec.law.faults import KNOWN_FAULTS
from peeklock.spec.notation.actions import Action
from peeklock.spec.notation.terms import TRUE, Assignment, Sort, Term, Variable, arguments, substitute
from peeklock.spec.promises.promise import Part, Possibility, Promise


@frozen(eq=False)
class Demand:
    """One part of a promise, or a possibility denied, under the name that it has in an export."""

    name: str
    """S12_1 is the first part of S12; a possibility keeps its id."""
    owner: str
    text: str
    part: Part
    sought: bool = False
    """A possibility: its truth is the finding."""

    def of_state(self, world: World) -> Term | None:
        """What must be true of every state; None for a part about steps."""
        if self.part.state is None:
            return None
        return self._kept(substitute(self.part.state, world.variant.settings))

    def of_step(self, world: World, action: Action) -> Term | None:
        """What must be true of a state in which the action can be taken; None where the part does not speak of it."""
        term = world.variant.obligation(self.part, action)
        kept = None if term is None else self._kept(term)
        return None if kept is TRUE else kept

    def _kept(self, term: Term) -> Term:
        return ~term if self.sought else term


def demands_of(promises: Iterable[Promise], possibilities: Iterable[Possibility] = ()) -> tuple[Demand, ...]:
    """Every part of the promises, and every possibility as something that shall not be."""
    found = [
        Demand(f"{promise.id}_{number}", promise.id, part.text, part)
        for promise in promises
        for number, part in enumerate(promise.parts, 1)
    ]
    found += [Demand(p.id, p.id, p.text, p.part, sought=True) for p in possibilities]
    return tuple(found)


def words_of(action: Action) -> list[str]:
    """The words of an action's name, in lower case."""
    return re.findall(r"[a-z0-9]+", action.name.lower())


def member(sort: Sort, name: str) -> str:
    """A member of an enumeration, in capitals: its own name under its enumeration's, as several have a NONE."""
    return f"{re.sub(r'(?<=[a-z])(?=[A-Z])', '_', sort.name)}_{name}".upper()


def highest(variable: Variable, world: World) -> int:
    """The greatest number that a variable can hold in this world."""
    if variable.sort.members:
        return len(variable.sort.members) - 1
    if variable.sort.is_index:
        return world.items
    policy = world.variant.policy
    return 1 if variable.sort.name == "Bool" else max(world.deliveries, policy.ack_attempts) + 1


def reads(term: Term) -> Iterator[Variable]:
    """The variables that a term reads."""
    if term.op == "read":
        variable = term.args[0]
        assert isinstance(variable, Variable)
        yield variable
    for inner in arguments(term):
        yield from reads(inner)


def in_order(effects: Iterable[Assignment]) -> list[Assignment]:
    """The assignments, which happen at once, in an order in which one after the other does the same.

    What reads a variable comes before what writes it; ``ValueError`` where there is no such order.
    """
    left, done = list(effects), []
    while left:
        for effect in left:
            others = [e for e in left if e is not effect]
            if not any(effect.variable in set(reads(e.value)) for e in others):
                break
        else:
            raise ValueError(f"these assignments need each other's old values: {left}")
        left.remove(effect)
        done.append(effect)
    return done


def about(world: World) -> list[str]:
    """What was exported, in lines."""
    policy, faults = world.variant.policy, world.variant.faults
    on = [f.name for f in KNOWN_FAULTS if f.name in faults]
    name = re.sub(r"[^\w.-]+", " ", policy.name)  # a file's own words must not end a comment
    return [
        "How a worker settles the items that it took from a store under a lock, when calls to the store can fail.",
        f"Policy {name}; {world}.",
        f"Fault classes that are on: {', '.join(on) or 'none'}.",
    ]


def write_whole(texts: Mapping[Path, str]) -> None:
    """Write files, or leave what was there: each text goes to a file beside its own, and then they take their places.

    What exists and is no file, such as a pipe, is written to as it is.
    """
    beside: dict[Path, Path] = {}
    try:
        for path, text in texts.items():
            if path.exists() and not path.is_file() and not path.is_dir():
                path.write_text(text, encoding="utf-8")
                continue
            target = path.resolve()
            handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            beside[target] = Path(name)
            with open(handle, "w", encoding="utf-8") as file:
                file.write(text)
                os.fchmod(file.fileno(), _mode(target))
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        for target, temporary in beside.items():
            os.replace(temporary, target)
    finally:
        for temporary in beside.values():
            temporary.unlink(missing_ok=True)


def _mode(target: Path) -> int:
    """The permissions that a file has, or would have if it were opened for writing."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
