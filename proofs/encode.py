"""Terms as Z3 formulas, and the only place that talks to Z3.

Workers and items are uninterpreted sorts, so there are any number of them; an enumeration is a sort of
that many values; a natural number is an integer that is not negative; a variable is a function. A term
must be ground, see :mod:`~peeklock.proofs.quantifiers`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any, TypeAlias

import z3  # type: ignore[import-untyped]  # ships no types
from attrs import field, frozen

from peeklock.proofs.quantifiers import Untreatable
from peeklock.spec.notation.terms import BOOL, ITEM, NAT, NO_ITEM, WORKER, Sort, Term, Variable, arguments

Formula: TypeAlias = Any
"""A Z3 expression."""


class Encoder:
    """Translates ground terms, each of them once."""

    def __init__(self) -> None:
        self.context = z3.Context()
        self._sorts: dict[Sort, Any] = {
            BOOL: z3.BoolSort(self.context),
            NAT: z3.IntSort(self.context),
            WORKER: z3.DeclareSort("Worker", self.context),
            ITEM: z3.DeclareSort("Item", self.context),
        }
        self._members: dict[enum.Enum, Formula] = {}
        self._functions: dict[Variable, Any] = {}
        self._formulas: dict[int, Formula] = {}
        self._naturals: dict[int, frozenset[Term]] = {}
        self.nothing = z3.Const("nothing", self._sorts[ITEM])

    def sort(self, sort: Sort) -> Any:
        """The Z3 sort."""
        if sort not in self._sorts:
            names = [f"{sort.name}.{m.name}" for m in sort.members]
            self._sorts[sort], values = z3.EnumSort(sort.name, names, ctx=self.context)
            self._members.update(zip(sort.members, values, strict=True))
        return self._sorts[sort]

    def member(self, sort: Sort, value: enum.Enum) -> Formula:
        """The Z3 value of a member of an enumeration."""
        self.sort(sort)
        return self._members[value]

    def formula(self, term: Term) -> Formula:
        """The term as a Z3 expression."""
        found = self._formulas.get(term.serial)
        if found is None:
            found = self._formulas[term.serial] = self._translated(term)
        return found

    def naturals(self, term: Term) -> frozenset[Term]:
        """The natural numbers that the term reads: Z3 must be told that they are not negative."""
        found = self._naturals.get(term.serial)
        if found is None:
            found = frozenset().union(*map(self.naturals, arguments(term)))
            if term.sort == NAT and term.op in ("read", "setting", "param"):
                found |= {term}
            self._naturals[term.serial] = found
        return found

    def _translated(self, term: Term) -> Formula:
        a = [self.formula(t) for t in arguments(term)]
        plain = term.args[0] if term.args and not isinstance(term.args[0], Term) else None
        match term.op:
            case "const":
                return self._constant(term.sort, plain)
            case "nothing":
                return self.nothing
            case "param" | "setting":
                return z3.Const(str(plain), self.sort(term.sort))
            case "read":
                assert isinstance(plain, Variable)
                return self._function(plain)(a[0])
            case "not":
                return z3.Not(a[0])
            case "and":
                return z3.And(a)
            case "or":
                return z3.Or(a)
            case "eq":
                return a[0] == a[1]
            case "lt" if arguments(term)[0].sort == NAT:
                return a[0] < a[1]
            case "add":
                return a[0] + term.args[1]
            case "sub":
                return z3.If(a[0] >= term.args[1], a[0] - term.args[1], z3.IntVal(0, self.context))
            case "ite":
                return z3.If(a[0], a[1], a[2])
            case _:
                raise Untreatable(f"no formula for {term.op!r} of {term.sort.name}: {term}")

    def _constant(self, sort: Sort, value: object) -> Formula:
        if isinstance(value, bool):
            return z3.BoolVal(value, self.context)
        if isinstance(value, enum.Enum):
            return self.member(sort, value)
        return z3.IntVal(value, self.context)

    def _function(self, variable: Variable) -> Any:
        if variable not in self._functions:
            sorts = self.sort(variable.index), self.sort(variable.sort)
            self._functions[variable] = z3.Function(variable.name, *sorts)
        return self._functions[variable]


class Outcome(enum.Enum):
    """What Z3 found."""

    IMPOSSIBLE = "no state satisfies it"
    POSSIBLE = "a state satisfies it"
    UNDECIDED = "it gave up"


@frozen(eq=False)
class Answered:
    """Z3's answer: the hypotheses that made it impossible, or a model."""

    outcome: Outcome
    used: frozenset[str] = frozenset()
    model: Model | None = None
    reason: str = ""


@frozen(eq=False)
class Model:
    """A state that Z3 found."""

    encoder: Encoder
    model: Any

    def value(self, term: Term) -> Any:
        """The value of a ground term; of a worker or an item, its name: the same one has the same name."""
        found = self.model.eval(self.encoder.formula(term), model_completion=True)
        if term.sort == BOOL:
            return bool(z3.is_true(found))
        if term.sort == NAT:
            return int(found.as_long())
        if term.sort.members:
            return next(m for m in term.sort.members if self.encoder.member(term.sort, m).eq(found))
        return str(found)

    def is_nothing(self, item: Term) -> bool:
        """Is this item term no item at all?"""
        return bool(self.value(item) == self.value(NO_ITEM))


@frozen(eq=False)
class Asker:
    """Asks Z3 about one set of named workers and items, under hypotheses that are switched on by name."""

    encoder: Encoder
    names: tuple[Term, ...]
    limit: int
    solver: Any = field(init=False)
    switches: dict[str, Formula] = field(factory=dict, init=False)
    _known: list[set[Term]] = field(factory=lambda: [set()], init=False)

    def __attrs_post_init__(self) -> None:
        solver = z3.Solver(ctx=self.encoder.context)
        solver.set("rlimit", self.limit)
        solver.set("ctrl_c", False)  # Z3 would take an interrupt for itself and say that it does not know
        object.__setattr__(self, "solver", solver)
        for name in self.names:
            if name.sort == ITEM:
                solver.add(self.encoder.formula(name) != self.encoder.nothing)

    def suppose(self, name: str, term: Term) -> None:
        """A hypothesis, in force in those questions that name it."""
        switch = self.switches.setdefault(name, z3.Bool(f"hypothesis {name}", self.encoder.context))
        self._tell_naturals(term)
        self.solver.add(z3.Implies(switch, self.encoder.formula(term)))

    def given(self, term: Term) -> None:
        """A fact, in force until the level that is open is closed."""
        self._tell_naturals(term)
        self.solver.add(self.encoder.formula(term))

    def open(self) -> None:
        """Open a level of facts."""
        self.solver.push()
        self._known.append(set())

    def close(self) -> None:
        """Close a level of facts."""
        self.solver.pop()
        self._known.pop()

    def ask(self, hypotheses: Iterable[str]) -> Answered:
        """Is there a state in which these hypotheses and all facts hold?"""
        switches = {self.switches[h].get_id(): h for h in hypotheses if h in self.switches}
        try:
            verdict = self.solver.check(*(self.switches[h] for h in switches.values()))
        except z3.Z3Exception as error:
            return Answered(Outcome.UNDECIDED, reason=str(error))
        if verdict == z3.unsat:
            core = self.solver.unsat_core()
            return Answered(Outcome.IMPOSSIBLE, frozenset(switches[s.get_id()] for s in core))
        if verdict == z3.sat:
            return Answered(Outcome.POSSIBLE, model=Model(self.encoder, self.solver.model()))
        return Answered(Outcome.UNDECIDED, reason=self.solver.reason_unknown())

    def _tell_naturals(self, term: Term) -> None:
        for natural in self.encoder.naturals(term):
            if not any(natural in level for level in self._known):
                self._known[-1].add(natural)
                self.solver.add(self.encoder.formula(natural) >= 0)
