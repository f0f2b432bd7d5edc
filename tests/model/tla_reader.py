"""A TLA+ module read by another's grammar and then walked through, as far as an export uses the language.

The grammar is tree-sitter's for TLA+. What is read is evaluated as strictly as TLC does it: a name must be defined,
values of different kinds are not compared, and an action must say of every variable once what becomes of it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import TypeAlias

import tree_sitter
import tree_sitter_tlaplus
from attrs import frozen

Env: TypeAlias = "dict[str, object]"
Evaluate: TypeAlias = Callable[[Env], object]
State: TypeAlias = tuple[object, ...]


class NotTla(Exception):
    """What is wrong with a module."""


@frozen
class ModelValue:
    """A value that is equal to itself only."""

    name: str


@frozen
class Function:
    """A function, as its pairs in the order of its domain."""

    pairs: tuple[tuple[object, object], ...]

    def at(self, argument: object) -> object:
        for key, value in self.pairs:
            if key == argument:
                return value
        raise NotTla(f"{argument} is not in the domain of {self}")


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise NotTla(f"{value!r} is no truth value")
    return value


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise NotTla(f"{value!r} is no number")
    return value


def _same(a: object, b: object) -> bool:
    if type(a) is not type(b) and not isinstance(a, ModelValue) and not isinstance(b, ModelValue):
        raise NotTla(f"{a!r} and {b!r} cannot be compared")
    return a == b


INFIX: dict[str, Callable[[Callable[[], object], Callable[[], object]], object]] = {
    "land": lambda a, b: _bool(a()) and _bool(b()),
    "lor": lambda a, b: _bool(a()) or _bool(b()),
    "implies": lambda a, b: not _bool(a()) or _bool(b()),
    "iff": lambda a, b: _bool(a()) == _bool(b()),
    "eq": lambda a, b: _same(a(), b()),
    "neq": lambda a, b: not _same(a(), b()),
    "lt": lambda a, b: _number(a()) < _number(b()),
    "gt": lambda a, b: _number(a()) > _number(b()),
    "geq": lambda a, b: _number(a()) >= _number(b()),
    "plus": lambda a, b: _number(a()) + _number(b()),
    "minus": lambda a, b: _number(a()) - _number(b()),
    "dots_2": lambda a, b: frozenset(range(_number(a()), _number(b()) + 1)),
    "cup": lambda a, b: _set(a()) | _set(b()),
}


def _set(value: object) -> frozenset[object]:
    if not isinstance(value, frozenset):
        raise NotTla(f"{value!r} is no set")
    return value


class Configuration:
    """What a configuration says: the values of constants, and the names of invariants."""

    def __init__(self, text: str) -> None:
        self.constants: dict[str, object] = {}
        self.denied = re.findall(r"^\\\* INVARIANT (\w+)$", text, re.M)
        text = re.sub(r"\\\*.*", "", text)
        for name, value in re.findall(r"^ +(\w+) = (.+)$", text, re.M):
            if value.startswith("{"):
                self.constants[name] = frozenset(map(self._value, value[1:-1].split(", ")))
            else:
                self.constants[name] = self._value(value)
        self.invariants = re.findall(r"^ +(\w+)$", text.split("INVARIANTS")[1], re.M)

    @staticmethod
    def _value(text: str) -> object:
        return int(text) if text.isdigit() else ModelValue(text)


class Module:
    """A module with its constants set."""

    def __init__(self, text: str, constants: dict[str, object]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the grammar hands itself over as a number
            parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_tlaplus.language()))
        self._text = text.encode()
        root = parser.parse(self._text).root_node
        if root.has_error:
            raise NotTla("the grammar does not accept it")
        self.variables: list[str] = []
        self._declared: list[str] = []
        self._parameters: dict[str, list[str]] = {}
        self._bodies: dict[str, tree_sitter.Node] = {}
        self._compiled: dict[int, Evaluate] = {}
        self._constants = constants
        for node in root.named_children[0].named_children:
            self._declare(node)
        if set(self._declared) != set(constants):
            raise NotTla(f"constants declared: {self._declared}, given: {list(constants)}")
        for name in self._bodies:
            self._check_names(self._bodies[name], set(self._parameters[name]))

    def _declare(self, node: tree_sitter.Node) -> None:
        names = [self._said(n) for n in node.named_children if n.type == "identifier"]
        if node.type == "constant_declaration":
            self._declared += names
        elif node.type == "variable_declaration":
            self.variables += names
        elif node.type == "operator_definition":
            name, *parameters = names
            if name in self._bodies or name in self.variables or name in self._declared:
                raise NotTla(f"{name} is defined twice")
            self._parameters[name] = parameters
            self._bodies[name] = self._field(node, "definition")

    def _said(self, node: tree_sitter.Node) -> str:
        return self._text[node.start_byte : node.end_byte].decode()

    @staticmethod
    def _field(node: tree_sitter.Node, name: str) -> tree_sitter.Node:
        found = node.child_by_field_name(name)
        assert found is not None, f"{node.type} has no {name}"
        return found

    @staticmethod
    def _inside(node: tree_sitter.Node) -> list[tree_sitter.Node]:
        """The named children that mean something: no comments, brackets, bullets."""
        noise = ("comment", "langle_bracket", "rangle_bracket", "bullet_conj", "bullet_disj", "all_map_to")
        return [n for n in node.named_children if n.type not in (*noise, "maps_to", "set_in")]

    def _check_names(self, node: tree_sitter.Node, bound: set[str]) -> None:
        """Every name is defined, also in what is never evaluated; no quantifier takes a name that is in use."""
        known = {*self.variables, *self._declared, *self._bodies, "Permutations"}
        if node.type == "identifier_ref" and self._said(node) not in known | bound:
            raise NotTla(f"{self._said(node)} is not defined")
        for child in node.named_children:
            if child.type == "quantifier_bound":
                names = {self._said(n) for n in child.named_children if n.type == "identifier"}
                if names & (known | bound):
                    raise NotTla(f"{names} hide what is defined")
                bound = bound | names
        for child in node.named_children:
            self._check_names(child, bound)

    def initial(self) -> State:
        """The only initial state."""
        primed: dict[str, object] = {}
        for item in self._inside(self._bodies["Init"]):
            (equation,) = self._inside(item)
            primed[self._said(self._field(equation, "lhs"))] = self._of(self._field(equation, "rhs"))({})
        return tuple(primed[v] for v in self.variables)

    def successors(self, state: State) -> list[State]:
        """What each way to take a step leads to, one for each way."""
        env: Env = dict(zip(self.variables, state, strict=True))
        found = []
        for primed in self._steps(self._bodies["Next"], env, {}):
            if set(primed) != set(self.variables):
                raise NotTla(f"nothing is said of {set(self.variables) - set(primed)} after a step")
            found.append(tuple(primed[v] for v in self.variables))
        return found

    def holds(self, name: str, state: State) -> bool:
        """Is this invariant true in a state?"""
        return _bool(self._of(self._bodies[name])(dict(zip(self.variables, state, strict=True))))

    def _steps(self, node: tree_sitter.Node, env: Env, primed: Env) -> Iterator[Env]:
        """Every assignment to the primed variables that makes the formula true."""
        match node.type:
            case "disj_list" | "disj_item":
                for part in self._inside(node):
                    yield from self._steps(part, env, primed)
            case "conj_list":
                yield from self._all(self._inside(node), env, primed)
            case "conj_item":
                yield from self._steps(self._inside(node)[0], env, primed)
            case "bounded_quantification":
                for more in self._choices(node, env):
                    yield from self._steps(self._field(node, "expression"), {**env, **more}, primed)
            case "bound_op" if self._is_action(self._said(self._field(node, "name"))):
                inner = self._bodies[self._said(self._field(node, "name"))]
                yield from self._steps(inner, {**env, **self._arguments(node, env)}, primed)
            case "bound_prefix_op" if self._field(node, "symbol").type == "unchanged":
                names = [self._said(n) for n in self._inside(self._field(node, "rhs"))]
                yield self._with(primed, {n: env[n] for n in names}, names)
            case "bound_infix_op" if self._field(node, "lhs").type == "bound_postfix_op":
                name = self._said(self._field(node, "lhs")).removesuffix("'")
                yield self._with(primed, {name: self._of(self._field(node, "rhs"))(env)}, [name])
            case _:
                if _bool(self._of(node)(env)):
                    yield primed

    def _is_action(self, name: str) -> bool:
        said = self._said(self._bodies[name])
        return "'" in said or "UNCHANGED" in said

    def _all(self, parts: list[tree_sitter.Node], env: Env, primed: Env) -> Iterator[Env]:
        if not parts:
            yield primed
            return
        for so_far in self._steps(parts[0], env, primed):
            yield from self._all(parts[1:], env, so_far)

    @staticmethod
    def _with(primed: Env, more: Env, names: list[str]) -> Env:
        twice = set(names) & set(primed)
        if twice or len(set(names)) != len(names):
            raise NotTla(f"{twice or names} said twice in one action")
        return {**primed, **more}

    def _choices(self, node: tree_sitter.Node, env: Env) -> Iterator[Env]:
        bounds = [n for n in node.named_children if n.type == "quantifier_bound"]
        names = [self._said(n) for b in bounds for n in b.named_children if n.type == "identifier"]
        sets = [_set(self._of(self._field(b, "set"))(env)) for b in bounds]
        for values in product(*(sorted(s, key=repr) for s in sets)):
            yield dict(zip(names, values, strict=True))

    def _arguments(self, node: tree_sitter.Node, env: Env) -> Env:
        name, *arguments = self._inside(node)
        names = self._parameters[self._said(name)]
        if len(names) != len(arguments):
            raise NotTla(f"{self._said(node)}: {len(names)} arguments are wanted")
        return {n: self._of(a)(env) for n, a in zip(names, arguments, strict=True)}

    def _of(self, node: tree_sitter.Node) -> Evaluate:
        """The node as a function of what its names stand for."""
        found = self._compiled.get(node.id)
        if found is None:
            found = self._compiled[node.id] = self._compile(node)
        return found

    def _compile(self, node: tree_sitter.Node) -> Evaluate:
        inside = [] if node.type in ("bounded_quantification", "except", "bound_op") else self._inside(node)
        match node.type:
            case "parentheses" | "conj_item" | "disj_item":
                return self._of(inside[0])
            case "conj_list":
                parts = [self._of(n) for n in inside]
                return lambda env: all(_bool(p(env)) for p in parts)
            case "disj_list":
                parts = [self._of(n) for n in inside]
                return lambda env: any(_bool(p(env)) for p in parts)
            case "identifier_ref":
                return self._name(self._said(node))
            case "nat_number" | "string" | "boolean":
                value = self._literal(node)
                return lambda env: value
            case "boolean_set":
                return lambda env: frozenset({True, False})
            case "finite_set_literal":
                parts = [self._of(n) for n in inside]
                return lambda env: frozenset(p(env) for p in parts)
            case "function_evaluation":
                function, argument = map(self._of, inside)
                return lambda env: self._function(function(env)).at(argument(env))
            case "function_literal":
                return self._function_literal(inside)
            case "if_then_else":
                test, then, otherwise = map(self._of, inside)
                return lambda env: then(env) if _bool(test(env)) else otherwise(env)
            case "bound_op":
                body = self._of(self._bodies[self._said(self._field(node, "name"))])
                return lambda env: body({**env, **self._arguments(node, env)})
            case "bound_prefix_op" if self._field(node, "symbol").type == "lnot":
                inner = self._of(self._field(node, "rhs"))
                return lambda env: not _bool(inner(env))
            case "bound_infix_op":
                return self._infix(node)
            case "bounded_quantification":
                body = self._of(self._field(node, "expression"))
                join = all if self._field(node, "quantifier").type == "forall" else any
                return lambda env: join(_bool(body({**env, **m})) for m in self._choices(node, env))
            case "except":
                return self._except(node)
            case _:
                raise NotTla(f"{node.type} is not expected: {self._said(node)}")

    def _literal(self, node: tree_sitter.Node) -> object:
        said = self._said(node)
        if node.type == "boolean":
            return said == "TRUE"
        return said[1:-1] if node.type == "string" else int(said)

    def _name(self, name: str) -> Evaluate:
        if name in self._constants:
            return lambda env: self._constants[name]
        if name in self._bodies:
            return self._of(self._bodies[name])
        return lambda env: env[name]

    @staticmethod
    def _function(value: object) -> Function:
        if not isinstance(value, Function):
            raise NotTla(f"{value!r} is no function")
        return value

    def _function_literal(self, inside: list[tree_sitter.Node]) -> Evaluate:
        bound, body = inside
        (name,) = (self._said(n) for n in bound.named_children if n.type == "identifier")
        domain, value = self._of(self._field(bound, "set")), self._of(body)
        return lambda env: Function(
            tuple((x, value({**env, name: x})) for x in sorted(_set(domain(env)), key=repr))
        )

    def _infix(self, node: tree_sitter.Node) -> Evaluate:
        symbol, right = self._field(node, "symbol").type, self._field(node, "rhs")
        left = self._of(self._field(node, "lhs"))
        if symbol == "in" and right.type == "set_of_functions":
            domain, values = map(self._of, self._inside(right))
            return lambda env: self._is_from_to(self._function(left(env)), domain(env), values(env))
        value = self._of(right)
        return lambda env: INFIX[symbol](lambda: left(env), lambda: value(env))

    @staticmethod
    def _is_from_to(function: Function, domain: object, values: object) -> bool:
        kinds = {(type(v), v) for v in _set(values)}
        keys = frozenset(k for k, _ in function.pairs)
        return keys == domain and all((type(v), v) in kinds for _, v in function.pairs)

    def _except(self, node: tree_sitter.Node) -> Evaluate:
        old = self._of(self._field(node, "expr_to_update"))
        updates = []
        for update in (n for n in node.named_children if n.type == "except_update"):
            (specifier,) = (n for n in update.named_children if n.type == "except_update_specifier")
            (where,) = self._inside(specifier)
            updates.append((self._of(self._inside(where)[0]), self._of(self._field(update, "new_val"))))

        def change(env: Env) -> Function:
            function = self._function(old(env))
            for where, value in updates:
                key = where(env)
                function.at(key)
                function = Function(tuple((k, value(env) if k == key else v) for k, v in function.pairs))
            return function

        return change
