"""Terms: the small expression tree in which the protocol and its promises are written.

A term is data. It can be compiled to a search kernel, turned into a formula, evaluated on one state, printed or
mutated, and every reader sees the same thing. A term has no truth value of its own: ``if``, ``and``, ``or`` and
``not`` on a term raise ``TypeError`` instead of silently dropping a condition; write ``&``, ``|`` and ``~``.

Terms are interned: two terms with the same structure are one object, so ``is`` compares them and common
subterms are shared by every reader.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Mapping
from typing import TypeAlias

from attrs import field, frozen


@frozen
class Sort:
    """What a term may be: a truth value, a natural number, a member of an enumeration, a worker or an item."""

    name: str
    members: tuple[enum.Enum, ...] = field(default=(), repr=False)

    @property
    def is_index(self) -> bool:
        """Is this the sort of workers or of items, which a world has some number of?"""
        return self in (WORKER, ITEM)


BOOL = Sort("Bool")
NAT = Sort("Nat")
WORKER = Sort("Worker")
ITEM = Sort("Item")


def enumeration(members: type[enum.Enum]) -> Sort:
    """The sort of an enumeration."""
    return Sort(members.__name__, tuple(members))


Value: TypeAlias = "bool | int | enum.Enum"
Operand: TypeAlias = "Term | bool | int | enum.Enum"


@frozen(eq=False)
class Variable:
    """A state variable: one value for each worker or each item."""

    name: str
    index: Sort
    sort: Sort
    initial: Operand
    meaning: str

    def __getitem__(self, index: Term) -> Term:
        """This variable's value for one worker or item."""
        if index.sort != self.index:
            raise TypeError(f"{self.name} is indexed by {self.index.name}, not by {index.sort.name}")
        return _make("read", self.sort, self, index)

    def __repr__(self) -> str:
        return self.name


class Term:
    """One node of an expression: an operator, its arguments and its sort. Build terms with operators only."""

    __slots__ = ("args", "op", "serial", "sort")
    op: str
    sort: Sort
    args: tuple[object, ...]
    serial: int

    def __bool__(self) -> bool:
        raise TypeError(f"a term has no truth value; use & | ~ instead of and, or, not, if: {self}")

    __hash__ = object.__hash__

    def __eq__(self, other: Operand) -> Term:  # type: ignore[override]  # a term, not a verdict
        return equal(self, other)

    def __ne__(self, other: Operand) -> Term:  # type: ignore[override]  # a term, not a verdict
        return negate(equal(self, other))

    def __lt__(self, other: Operand) -> Term:
        return less(self, other)

    def __gt__(self, other: Operand) -> Term:
        return less(other, self)

    def __le__(self, other: Operand) -> Term:
        return negate(less(other, self))

    def __ge__(self, other: Operand) -> Term:
        return negate(less(self, other))

    def __add__(self, other: int) -> Term:
        return _make("add", NAT, self, other)

    def __sub__(self, other: int) -> Term:
        """Truncated at 0, as counts are."""
        return _make("sub", NAT, self, other)

    def __and__(self, other: Operand) -> Term:
        return both(self, other)

    def __or__(self, other: Operand) -> Term:
        return either(self, other)

    def __invert__(self) -> Term:
        return negate(self)

    def becomes(self, value: Operand) -> Assignment:
        """The assignment of a value to the variable that this term reads."""
        if self.op != "read":
            raise TypeError(f"only a variable can be assigned, not {self}")
        return Assignment(self, constant(value, self.sort))

    def __repr__(self) -> str:
        return show(self)


_interned: dict[tuple[object, ...], Term] = {}
_serials = itertools.count()


def _make(op: str, sort: Sort, *args: object) -> Term:
    key = (op, sort, *(id(a) if isinstance(a, Term | Variable) else (type(a), a) for a in args))
    found = _interned.get(key)
    if found is None:
        found = Term.__new__(Term)
        found.op, found.sort, found.args, found.serial = op, sort, args, next(_serials)
        _interned[key] = found
    return found


def constant(value: Operand, sort: Sort) -> Term:
    """A value as a term of the sort that is wanted; ``TypeError`` when it is of another sort."""
    if isinstance(value, Term):
        if value.sort != sort:
            raise TypeError(f"{value} is of sort {value.sort.name}, not {sort.name}")
        return value
    if isinstance(value, bool):
        fits = sort == BOOL
    elif isinstance(value, enum.Enum):
        fits = value in sort.members
    else:
        fits = sort == NAT and value >= 0
    if not fits:
        raise TypeError(f"{value!r} is not a value of sort {sort.name}")
    return _make("const", sort, value)


TRUE = constant(True, BOOL)
FALSE = constant(False, BOOL)
NO_ITEM = _make("nothing", ITEM)
"""The item of a worker that has none in hand."""


def element(sort: Sort, number: int) -> Term:
    """One particular worker or item of a finite world, numbered from 0."""
    return _make("element", sort, number)


def parameter(name: str, sort: Sort) -> Term:
    """A free name: a parameter of an action or the bound name of a quantifier."""
    return _make("param", sort, name)


def setting(name: str, sort: Sort) -> Term:
    """A value fixed before a check begins: a field of the policy, a switch of a fault class, a size of the world."""
    return _make("setting", sort, name)


def negate(a: Operand) -> Term:
    """Not a."""
    a = constant(a, BOOL)
    if a is TRUE:
        return FALSE
    if a is FALSE:
        return TRUE
    if a.op == "not":
        inner = a.args[0]
        assert isinstance(inner, Term)
        return inner
    return _make("not", BOOL, a)


def _junction(op: str, unit: Term, zero: Term, terms: tuple[Operand, ...]) -> Term:
    parts: list[Term] = []
    for operand in terms:
        term = constant(operand, BOOL)
        for part in arguments(term) if term.op == op else (term,):
            if part is zero:
                return zero
            if part is not unit and not any(part is p for p in parts):
                parts.append(part)
    if any(negate(p) is q for p in parts for q in parts):
        return zero
    if not parts:
        return unit
    return parts[0] if len(parts) == 1 else _make(op, BOOL, *parts)


def both(*terms: Operand) -> Term:
    """All of the terms; true when there are none."""
    return _junction("and", TRUE, FALSE, terms)


def either(*terms: Operand) -> Term:
    """At least one of the terms; false when there are none."""
    return _junction("or", FALSE, TRUE, terms)


def implies(a: Operand, b: Operand) -> Term:
    """If a, then b."""
    return either(negate(a), b)


def equal(a: Operand, b: Operand) -> Term:
    """a and b are the same value."""
    sort = a.sort if isinstance(a, Term) else b.sort if isinstance(b, Term) else BOOL
    a, b = constant(a, sort), constant(b, sort)
    if a is b:
        return TRUE
    if {a.op, b.op} <= {"const", "nothing", "element"}:
        return FALSE
    if sort == BOOL and b.op == "const":
        return a if b is TRUE else negate(a)
    if sort == BOOL and a.op == "const":
        return b if a is TRUE else negate(b)
    return _make("eq", BOOL, *sorted((a, b), key=_reading_order))


def _reading_order(term: Term) -> tuple[bool, bool, str, int]:
    """Variables first, by name, and constants last: equations read the same however they were written."""
    return term.op != "read", term.op == "const", repr(term.args[0]) if term.op == "read" else "", term.serial


def less(a: Operand, b: Operand) -> Term:
    """a < b, for natural numbers; for items, the order in which they were enqueued."""
    sort = ITEM if isinstance(a, Term) and a.sort == ITEM else NAT
    a, b = constant(a, sort), constant(b, sort)
    if a.op == b.op and a.op in ("const", "element"):
        x, y = a.args[0], b.args[0]
        assert isinstance(x, int)
        assert isinstance(y, int)
        return TRUE if x < y else FALSE
    if a.op == "add" and b.op == "const":
        n, m = a.args[1], b.args[0]
        assert isinstance(n, int)
        assert isinstance(m, int)
        if m <= n:
            return FALSE  # a natural number plus n is never less than n
    return FALSE if a is b else _make("lt", BOOL, a, b)


def choose(condition: Operand, then: Operand, otherwise: Operand) -> Term:
    """``then`` where the condition is true, else ``otherwise``."""
    condition = constant(condition, BOOL)
    sort = then.sort if isinstance(then, Term) else otherwise.sort if isinstance(otherwise, Term) else BOOL
    then, otherwise = constant(then, sort), constant(otherwise, sort)
    if condition is TRUE or then is otherwise:
        return then
    if condition is FALSE:
        return otherwise
    if sort == BOOL:
        return either(both(condition, then), both(negate(condition), otherwise))
    return _make("ite", sort, condition, then, otherwise)


_fresh = itertools.count(1)


def _quantify(op: str, sort: Sort, body: Callable[[Term], Operand]) -> Term:
    bound = parameter(f"{sort.name.lower()}_{next(_fresh)}", sort)  # a fresh name: capture is impossible
    inside = constant(body(bound), BOOL)
    return inside if inside.op == "const" else _make(op, BOOL, bound, inside)


def every(sort: Sort, body: Callable[[Term], Operand]) -> Term:
    """The body holds for every worker or item."""
    return _quantify("forall", sort, body)


def some(sort: Sort, body: Callable[[Term], Operand]) -> Term:
    """The body holds for at least one worker or item."""
    return _quantify("exists", sort, body)


def after(term: Term) -> Term:
    """The value that the term has once the step is taken; only in promises about steps."""
    return _make("after", term.sort, term)


def before(term: Term) -> Term:
    """Inside ``after``: the value that the term had before the step."""
    return _make("before", term.sort, term)


@frozen(eq=False)
class Assignment:
    """What a step writes: one variable at one worker or item. What is not assigned stays as it was."""

    target: Term
    value: Term

    @property
    def variable(self) -> Variable:
        """The variable that is written."""
        found = self.target.args[0]
        assert isinstance(found, Variable)
        return found

    @property
    def index(self) -> Term:
        """The worker or item for which it is written."""
        return arguments(self.target)[0]

    def __repr__(self) -> str:
        return f"{self.target} := {self.value}"


def arguments(term: Term) -> tuple[Term, ...]:
    """The terms directly inside this one."""
    return tuple(a for a in term.args if isinstance(a, Term))


def rebuild(term: Term, change: Callable[[Term], Term | None], memo: dict[int, Term] | None = None) -> Term:
    """The term with every subterm for which ``change`` gives another replaced by it, simplified again."""
    memo = {} if memo is None else memo
    known = memo.get(term.serial)
    if known is not None:
        return known
    result = change(term)
    if result is None:
        old = arguments(term)
        new = tuple(rebuild(a, change, memo) for a in old)
        result = term if all(a is b for a, b in zip(old, new, strict=True)) else _with_arguments(term, new)
    memo[term.serial] = result
    return result


def _with_arguments(term: Term, new: tuple[Term, ...]) -> Term:
    builders: dict[str, Callable[..., Term]] = {
        "not": negate, "and": both, "or": either, "eq": equal, "lt": less, "ite": choose,
        "after": after, "before": before,
    }  # fmt: skip
    if term.op in builders:
        return builders[term.op](*new)
    if term.op in ("forall", "exists") and new[1].op == "const":
        return new[1]
    rest = iter(new)
    return _make(term.op, term.sort, *(next(rest) if isinstance(a, Term) else a for a in term.args))


def substitute(term: Term, values: Mapping[Term, Operand]) -> Term:
    """The term with parameters or settings replaced by values or by other terms."""
    return Substitution(values)(term)


class Substitution:
    """A replacement of parameters or settings that is made in many terms, and remembers what it has done."""

    def __init__(self, values: Mapping[Term, Operand]) -> None:
        self._by_serial = {t.serial: constant(v, t.sort) for t, v in values.items()}
        self._memo: dict[int, Term] = {}

    def __call__(self, term: Term) -> Term:
        """The term with the replacements made."""
        return rebuild(term, lambda t: self._by_serial.get(t.serial), self._memo)


_WORDS = {"and": " & ", "or": " | ", "eq": " = ", "lt": " < "}


def show(term: Term) -> str:
    """The term as text, for reports."""
    a = term.args
    match term.op:
        case "const":
            return a[0].name if isinstance(a[0], enum.Enum) else str(a[0]).lower()
        case "nothing":
            return "none"
        case "param" | "setting":
            return str(a[0])
        case "element":
            return f"{term.sort.name.lower()} {a[0]}"
        case "read":
            return f"{a[0]}[{a[1]}]"
        case "not":
            inner = arguments(term)[0]
            if inner.op == "eq":
                return f"{inner.args[0]} != {inner.args[1]}"
            return f"{inner.args[1]} <= {inner.args[0]}" if inner.op == "lt" else f"not {_wrapped(inner)}"
        case "add" | "sub":
            return f"{a[0]} {'+' if term.op == 'add' else '-'} {a[1]}"
        case "ite":
            return f"({a[1]} if {a[0]} else {a[2]})"
        case "forall" | "exists":
            return f"{'every' if term.op == 'forall' else 'some'} {a[0]}: {_wrapped(arguments(term)[1])}"
        case "after" | "before":
            return f"{term.op}({a[0]})"
        case _:
            return _WORDS[term.op].join(_wrapped(t) for t in arguments(term))


def _wrapped(term: Term) -> str:
    return f"({term})" if term.op in ("and", "or", "forall", "exists") else str(term)
