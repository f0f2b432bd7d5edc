"""The bounded world as a TLA+ module for TLC, and the configuration that goes with it.

A part of a promise that speaks of steps becomes an invariant: where a step that it speaks of can be taken, the state
is such that the step keeps it. An action property would not see the steps that change nothing, and some parts are
about those (no later call presents that token).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator

from peeklock.model.export.common import Demand, about, demands_of, highest, words_of
from peeklock.model.search.world import World
from peeklock.spec.compose import POSSIBILITIES, PROMISES
from peeklock.spec.law.state import BELIEF, HISTORY, STORE, VARIABLES, issued
from peeklock.spec.notation.actions import Action
from peeklock.spec.notation.terms import (
    BOOL,
    ITEM,
    NAT,
    Sort,
    Term,
    Variable,
    arguments,
    parameter,
    substitute,
)
from peeklock.spec.promises.promise import Possibility, Promise
from peeklock.spec.reading.evaluate import Code

MODULE = "Peeklock"

HOW = f"""\
Check it with TLC:    java -jar tla2tools.jar -config {MODULE}.cfg {MODULE}.tla

Every promise is an invariant; S12_1 is the first part of S12. Where a promise speaks of steps, the invariant says:
wherever such a step can be taken, the state is one in which it keeps the promise. An action property would not see
the steps that change nothing. Never_R1 denies that something can happen that must be able to: TLC has to find it
violated. TLC's distinct states are those of `peeklock check --no-symmetry --no-clearing` (SYMMETRY in the
configuration is optional), and it generates one state for each step, and the initial one.
"""

_SETS = {"Worker": "Workers", "Item": "Items"}


class _Source(Code):
    """Terms as TLA+ expressions, members of enumerations as strings."""

    def of(self, term: Term) -> str:
        """The source of one expression."""
        a = arguments(term)
        match term.op:
            case "const":
                value = term.args[0]
                return f'"{value.name}"' if isinstance(value, enum.Enum) else str(value).upper()
            case "nothing":
                return "NoItem"
            case "param":
                return str(term.args[0])
            case "not" if a[0].op in ("eq", "lt"):
                left, right = arguments(a[0])
                sign = ">=" if a[0].op == "lt" else "#"
                return f"({self.of(left)} {sign} {self.of(right)})"
            case "eq":
                return f"({self.of(a[0])} {'<=>' if a[0].sort == BOOL else '='} {self.of(a[1])})"
            case "sub":
                inner, n = self.of(a[0]), term.args[1]
                return f"(IF {inner} > {n} THEN {inner} - {n} ELSE 0)"
            case "ite":
                return f"(IF {self.of(a[0])} THEN {self.of(a[1])} ELSE {self.of(a[2])})"
            case "forall" | "exists":
                bound, body = a
                name = _bound(bound.sort, _nested(body, bound.sort))
                body = substitute(body, {bound: parameter(name, bound.sort)})
                sign = "\\A" if term.op == "forall" else "\\E"
                return f"({sign} {name} \\in {_SETS[bound.sort.name]}: {self.of(body)})"
            case _:
                return super().of(term)


def _bound(sort: Sort, depth: int) -> str:
    """The name of a quantifier's variable: one that no quantifier inside has."""
    return ("j" if sort == ITEM else "v") + (str(depth) if depth else "")


def _nested(term: Term, sort: Sort) -> int:
    """How many quantifiers over a sort stand inside each other."""
    inside = max((_nested(t, sort) for t in arguments(term)), default=0)
    return inside + (term.op in ("forall", "exists") and arguments(term)[0].sort == sort)


_SOURCE = _Source(
    lambda variable, index: f"{variable.name}[{index.args[0]}]",
    {},
    both=" /\\ ",
    either=" \\/ ",
    negation="~",
)


def tla(
    world: World,
    promises: tuple[Promise, ...] = PROMISES,
    possibilities: tuple[Possibility, ...] = POSSIBILITIES,
) -> str:
    """The TLA+ module of a world, with these promises as invariants."""
    demands = demands_of(promises, possibilities)
    fifo = world.variant.fifo
    lines = [
        f"---------------------------- MODULE {MODULE} ----------------------------",
        *_comment(*about(world), "", *HOW.splitlines()),
        f"EXTENDS Naturals{'' if fifo else ', TLC'}",
        "",
        "CONSTANTS",
        f"    Workers,       \\* a set of {world.workers} in the configuration",
        f"    Items,         \\* a set of {world.items}"
        + (", numbered as they are enqueued" if fifo else ""),
        "    NoItem,        \\* what a worker has in hand that has nothing in hand",
        "    MaxDeliveries  \\* at most so many deliveries of each item",
        "",
        *_declarations(),
        *_enumerations(),
        *_type_ok(world),
        *_initially(),
    ]
    for action in world.actions:
        lines += _action(world, action)
    lines += [
        "Next ==",
        *_over_parameters(world.actions, "\\/", "\\E", lambda a: _call(_name(a), a)),
        "",
        "Spec == Init /\\ [][Next]_vars",
        "",
    ]
    if not fifo:
        lines += ["Symmetry == Permutations(Workers) \\cup Permutations(Items)", ""]
    for demand in demands:
        lines += _invariant(world, demand)
    lines += ["=" * 77, ""]
    return "\n".join(lines)


def configuration(
    world: World,
    promises: tuple[Promise, ...] = PROMISES,
    possibilities: tuple[Possibility, ...] = POSSIBILITIES,
) -> str:
    """The configuration with which TLC checks the module."""
    fifo = world.variant.fifo
    workers = ", ".join(f"w{n}" for n in range(1, world.workers + 1))
    items = ", ".join(f"{'' if fifo else 'i'}{n}" for n in range(1, world.items + 1))
    lines = [
        *(f"\\* {line}" for line in about(world)),
        "SPECIFICATION Spec",
        "CONSTANTS",
        f"    Workers = {{{workers}}}",
        f"    Items = {{{items}}}",
        f"    NoItem = {0 if fifo else 'NoItem'}",
        f"    MaxDeliveries = {world.deliveries}",
    ]
    if not fifo:
        lines += ["\\* Fewer states, the same verdicts:", "\\* SYMMETRY Symmetry"]
    lines += ["CHECK_DEADLOCK FALSE", "INVARIANTS", "    TypeOK"]
    demands = demands_of(promises, possibilities)
    lines += [f"    {_invariant_name(d)}" for d in demands if not d.sought]
    if possibilities:
        lines.append("\\* What must be able to happen, denied: each must be found violated, one at a time.")
        lines += [f"\\* INVARIANT {_invariant_name(d)}" for d in demands if d.sought]
    return "\n".join([*lines, ""])


def _comment(*lines: str) -> list[str]:
    return ["(*", *(f"  {line}".rstrip() for line in lines), "*)"]


def _declarations() -> Iterator[str]:
    groups = (
        ("The store: its worker queue and its orchestrator queue.", STORE),
        ("A worker: what it believes about the delivery in its hand.", BELIEF),
        ("History: written by every step, read by promises only.", HISTORY),
    )
    yield "VARIABLES"
    for title, variables in groups:
        yield f"    \\* {title}"
        for v in variables:
            comma = "" if v is VARIABLES[-1] else ","
            yield f"    {v.name + comma:16} \\* {v.meaning}"
    yield ""
    yield f"vars == <<{', '.join(v.name for v in VARIABLES)}>>"
    yield ""


def _enumerations() -> Iterator[str]:
    sorts: dict[str, Sort] = {v.sort.name: v.sort for v in VARIABLES if v.sort.members}
    for sort in sorts.values():
        yield f"{sort.name} == {{"
        last = sort.members[-1]
        for value in sort.members:
            text = f'"{value.name}"' + ("" if value is last else ",")
            yield f"    {text:28} \\* {value.value}"
        yield "}"
        yield ""


def _range(variable: Variable, world: World) -> str:
    if variable.sort.members:
        return variable.sort.name
    if variable.sort == ITEM:
        return "Items \\cup {NoItem}"
    return f"0..{highest(variable, world)}" if variable.sort == NAT else "BOOLEAN"


def _type_ok(world: World) -> Iterator[str]:
    yield "TypeOK =="
    for v in VARIABLES:
        yield f"    /\\ {v.name} \\in [{_SETS[v.index.name]} -> {_range(v, world)}]"
    yield ""


def _initially() -> Iterator[str]:
    yield "\\* Nothing is enqueued, and every worker is idle."
    yield "Init =="
    for v in VARIABLES:
        bound = "i" if v.index == ITEM else "w"
        value = v.initial
        if isinstance(value, enum.Enum):
            start = f'"{value.name}"'
        else:
            start = _SOURCE.of(value) if isinstance(value, Term) else str(value).upper()
        yield f"    /\\ {v.name} = [{bound} \\in {_SETS[v.index.name]} |-> {start}]"
    yield ""


def _name(action: Action) -> str:
    return "".join(word.capitalize() for word in words_of(action))


def _call(name: str, action: Action) -> str:
    return f"{name}({', '.join(map(str, action.params))})" if action.params else name


def _guard_source(world: World, action: Action, guard: Term) -> str:
    if action.item is not None and guard is (issued[action.item] < world.deliveries):
        return f"issued[{action.item}] < MaxDeliveries"
    return _SOURCE.of(guard)


def _action(world: World, action: Action) -> Iterator[str]:
    """An action: when it can be taken, and what it changes."""
    name = _name(action)
    yield f"\\* {action.label}. {action.sentence}"
    yield f"{_call('Can' + name, action)} =="
    for guard in action.guards:
        yield f"    /\\ {_guard_source(world, action, guard)}"
    if not action.guards:
        yield "    TRUE"
    yield ""
    yield f"{_call(name, action)} =="
    yield f"    /\\ {_call('Can' + name, action)}"
    written = {v: [e for e in action.effects if e.variable is v] for v in VARIABLES}
    for v, effects in written.items():
        if effects:
            changes = ", ".join(f"![{_SOURCE.of(e.index)}] = {_SOURCE.of(e.value)}" for e in effects)
            yield f"    /\\ {v.name}' = [{v.name} EXCEPT {changes}]"
    same = [v.name for v, effects in written.items() if not effects]
    if same:
        yield f"    /\\ UNCHANGED <<{', '.join(same)}>>"
    yield ""


def _over_parameters(
    actions: Iterable[Action], sign: str, quantifier: str, say: Callable[[Action], str]
) -> Iterator[str]:
    """What is said of each action, under one quantifier for all that have the same parameters."""
    groups: dict[tuple[str, ...], list[Action]] = {}
    for action in actions:
        bounds = tuple(f"{p} \\in {_SETS[p.sort.name]}" for p in action.params)
        groups.setdefault(bounds, []).append(action)
    for bounds, members in groups.items():
        if bounds:
            yield f"    {sign} {quantifier} {', '.join(bounds)}:"
        indent = "        " if bounds else "    "
        for action in members:
            yield f"{indent}{sign} {say(action)}"


def _invariant_name(demand: Demand) -> str:
    return f"Never_{demand.name}" if demand.sought else demand.name


def _invariant(world: World, demand: Demand) -> Iterator[str]:
    yield f"\\* {demand.text}"
    name = _invariant_name(demand)
    state = demand.of_state(world)
    if state is not None:
        yield f"{name} == {_SOURCE.of(state)}"
    else:
        asked = {a: t for a in world.actions if (t := demand.of_step(world, a)) is not None}
        yield f"{name} ==" + ("" if asked else " TRUE")
        yield from _over_parameters(
            asked, "/\\", "\\A", lambda a: f"({_call('Can' + _name(a), a)} => {_SOURCE.of(asked[a])})"
        )
    yield ""
