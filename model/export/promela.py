"""The bounded world as a Promela model for Spin: one process, one option for each action and choice of its parameters.

Each step is one ``d_step``, so that Spin stores one state for each state of the protocol and nothing in between.
A promise is an assertion: one about steps stands before the assignments of each step that it speaks of, as what it
asks of the state before; one about states stands in an option of its own that changes nothing. Neither adds a state.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from itertools import product

from peeklock.model.export.common import Demand, about, demands_of, highest, in_order, member, words_of
from peeklock.model.search.local import grounded
from peeklock.model.search.world import World
from peeklock.spec.compose import POSSIBILITIES, PROMISES
from peeklock.spec.law.state import BELIEF, HISTORY, STORE
from peeklock.spec.notation.actions import Action
from peeklock.spec.notation.terms import BOOL, Sort, Term, Variable, arguments
from peeklock.spec.promises.promise import Possibility, Promise
from peeklock.spec.reading.evaluate import Code

HOW = """\
Count the states and the steps, no promise checked:

    spin -a -o2 -DNONE FILE && gcc -O2 -DSAFETY -DNOREDUCE -o pan pan.c && ./pan -m100000

Check every promise, and say each that is broken (S12_1 is the first part of S12):

    spin -a -o2 FILE && gcc -O2 -DSAFETY -DNOREDUCE -o pan pan.c && ./pan -m100000 -c0

Check one promise (-DONLY -DS12 -DS13: two), and tell a shortest run that breaks it:

    spin -a -o2 -DONLY -DS12 -DBFS FILE && gcc -O2 -DSAFETY -DNOREDUCE -DBFS -o pan pan.c && ./pan
    spin -t -DONLY -DS12 -DBFS FILE

-DPOSSIBILITIES for spin also denies what must be able to happen (R1, R2, ...; of one that says what can follow, only
the first half): each has to be found broken.

Why these options. -o2: or Spin drops what is written and never read, as the history is where no promise reads it, and
stores fewer states. -DNOREDUCE: no step is left out as unimportant. -DSAFETY: nothing here needs cycles. -m: how deep
the search may go; it is not complete if Spin says "max search depth too small". -DCOLLAPSE does not pay: a state is
some 50 bytes.

Then "states, stored" are the distinct states of `peeklock check --no-symmetry --no-clearing`, and "transitions" its
steps plus 1 for the initial state, and, where promises are checked, plus 1 for each state: one option changes nothing
and looks.
"""


class _Source(Code):
    """Terms as Promela expressions, members of enumerations by name."""

    def of(self, term: Term) -> str:
        """The source of one expression."""
        a = arguments(term)
        match term.op:
            case "const":
                value = term.args[0]
                if isinstance(value, enum.Enum):
                    return member(term.sort, value.name)
                return str(value).lower()
            case "nothing":
                return "NO_ITEM"
            case "eq" if {t.op for t in a} <= {"param", "element"}:
                return f"({a[0].args[0]} == {a[1].args[0]})"
            case "not" if a[0].op == "eq":
                left, right = arguments(a[0])
                return f"({self.of(left)} != {self.of(right)})"
            case "not" if a[0].op == "lt":
                left, right = arguments(a[0])
                return f"({self.of(left)} >= {self.of(right)})"
            case "sub":
                inner, n = self.of(a[0]), term.args[1]
                return f"({inner} > {n} -> {inner} - {n} : 0)"
            case "ite":
                return f"({self.of(a[0])} -> {self.of(a[1])} : {self.of(a[2])})"
            case _:
                return super().of(term)


def _place(variable: Variable, index: Term) -> str:
    return f"{variable.name}[{index.args[0]}]"


_SOURCE = _Source(_place, {}, both=" && ", either=" || ", negation="!")


def promela(
    world: World,
    promises: tuple[Promise, ...] = PROMISES,
    possibilities: tuple[Possibility, ...] = POSSIBILITIES,
) -> str:
    """The Promela model of a world, with these promises to check."""
    demands = demands_of(promises, possibilities)
    lines = [
        *_comment(*about(world), "", *HOW.splitlines()),
        "",
        *_constants(world),
        "",
        *_variables(world),
        "",
        *_switches(demands),
    ]
    for action in world.actions:
        lines += ["", *_step(world, action, demands)]
    lines += ["", "active proctype peeklock()", "{", "end:", "\tdo"]
    for action in world.actions:
        for chosen in _choices(world, action):
            lines.append(f"\t:: {_name(action)}({', '.join(map(str, chosen))})")
    lines += [*_states(world, demands), "\tod", "}", ""]
    return "\n".join(lines)


def _comment(*lines: str) -> list[str]:
    if len(lines) == 1:
        return [f"/* {lines[0]} */"]
    return ["/*", *(f" * {line}".rstrip() for line in lines), " */"]


def _name(action: Action) -> str:
    return "_".join(words_of(action))


def _choices(world: World, action: Action) -> Iterator[tuple[int, ...]]:
    sizes = {"Worker": world.workers, "Item": world.items}
    return product(*(range(sizes[p.sort.name]) for p in action.params))


def _constants(world: World) -> Iterator[str]:
    yield f"#define WORKERS {world.workers}"
    yield f"#define ITEMS {world.items}"
    yield "#define NO_ITEM 0  /* in working_on: item i is i + 1 */"
    sorts: dict[str, Sort] = {v.sort.name: v.sort for v in STORE + BELIEF + HISTORY if v.sort.members}
    for sort in sorts.values():
        yield ""
        for number, value in enumerate(sort.members):
            yield f"#define {member(sort, value.name):28} {number:2}  /* {value.value} */"


def _variables(world: World) -> Iterator[str]:
    groups = (
        ("The store: its worker queue and its orchestrator queue.", STORE),
        ("A worker: what it believes about the delivery in its hand.", BELIEF),
        ("History: written by every step, read by promises only.", HISTORY),
    )
    for title, variables in groups:
        yield f"/* {title} */"
        for v in variables:
            kind = "bool" if v.sort == BOOL else "byte" if highest(v, world) < 256 else "int"
            size = "WORKERS" if v.index.name == "Worker" else "ITEMS"
            initial = v.initial
            if isinstance(initial, enum.Enum):
                start = member(v.sort, initial.name)
            else:
                start = _SOURCE.of(initial) if isinstance(initial, Term) else str(initial).lower()
            yield f"{kind} {v.name}[{size}] = {start};  /* {v.meaning} */"


def _switches(demands: tuple[Demand, ...]) -> Iterator[str]:
    """A macro for each part, empty when it is not checked. The name comes first in what Spin says is violated."""
    if not demands:
        return
    yield "/* The promises. A name is a constant 0 that Spin shows in what it says; with -DBFS there can be none. */"
    yield "#ifdef BFS"
    yield "#define NAME(name)"
    yield "#define PART(name, kept) assert(kept)"
    yield "#else"
    yield "#define NAME(name) hidden byte name;"
    yield "#define PART(name, kept) assert(name || (kept))"
    yield "#endif"
    for owner in dict.fromkeys(d.owner for d in demands):
        parts = [d for d in demands if d.owner == owner]
        yield ""
        when = "defined(POSSIBILITIES)" if parts[0].sought else "!defined(ONLY)"
        yield f"#if !defined(NONE) && ({when} || defined({owner}))"
        for d in parts:
            yield f"NAME({d.name})  /* {d.text} */"
            yield f"#define {d.name}(kept) PART({d.name}, kept)"
        yield "#else"
        for d in parts:
            yield f"#define {d.name}(kept) skip"
        yield "#endif"


def _asserted(world: World, term: Term) -> str:
    return _SOURCE.of(grounded(term, world.workers, world.items))


def _step(world: World, action: Action, demands: tuple[Demand, ...]) -> Iterator[str]:
    """An action as an inline: guards, then what is asked of the state before, then the assignments."""
    yield from _comment(f"{action.label}. {action.sentence}")
    yield f"inline {_name(action)}({', '.join(str(p) for p in action.params)})"
    yield "{"
    yield "\td_step {"
    guards = [_asserted(world, g) for g in action.guards] or ["true"]
    yield "\t\t" + " &&\n\t\t".join(guards) + " ->"
    for d in demands:
        term = d.of_step(world, action)
        if term is not None:
            yield f"\t\t{d.name}({_asserted(world, term)});"
    for effect in in_order(action.effects):
        yield f"\t\t{_SOURCE.of(effect.target)} = {_asserted(world, effect.value)};"
    yield f"\t\t{_printed(action)}"
    yield "\t}"
    yield "}"


def _printed(action: Action) -> str:
    """What ``spin -t`` says of the step when it replays a run."""
    holes = "".join(f", {p.sort.name.lower()} %d" for p in action.params)
    names = "".join(f", {p}" for p in action.params)
    return f'printf("{action.label}: {"; ".join(action.pieces)}{holes}\\n"{names})'.replace("_", " ")


def _states(world: World, demands: tuple[Demand, ...]) -> Iterator[str]:
    """The option that changes nothing and looks at every state."""
    found = [(d, term) for d in demands if (term := d.of_state(world)) is not None]
    if not found:
        return
    yield "#ifndef NONE"
    yield "\t:: d_step { true ->"
    for d, term in found:
        yield f"\t\t{d.name}({_asserted(world, term)});"
    yield "\t\tskip }"
    yield "#endif"
