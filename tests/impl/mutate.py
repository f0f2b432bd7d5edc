"""Do the tests notice when the implementation is changed?  `python tests/impl/mutate.py [--help]`

Makes one small change at a time to a copy of impl/ (drop a statement, negate a condition, change a
comparison or an operator, a number one off, swap `and` and `or`, and the like in SQL), and runs the
tests of tests/impl/ on the copy until one fails. A change that no test notices is a survivor: a test
is missing, or the change makes no difference, which mutate_equivalent.py then says and explains.

One process at a time, in a temporary directory. Exit 0 when all survivors are explained, 1 when not.
"""

import argparse
import ast
import contextlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

# Loaded once here, and then there in every forked process that runs the tests.
import pytest
from attrs import frozen
from mutate_equivalent import EQUIVALENT

HERE = Path(__file__).parent
IMPL = HERE.parent.parent / "impl"
LEFT_ALONE = {"__init__.py", "demo.py", "events.py", "tracing.py"}
"""Names, an example, records without behaviour, and what tests/refinement/ reads its runs from."""

SLOW = "test_impl_processes.py"
CPU_S = 6
"""Processor time for one run of the tests, which takes one or two seconds: what takes more, loops.
Processor time, because on a busy machine the tests take longer and are right all the same."""

HANG_S = 120.0
"""Real time, for what waits for ever."""

MEMORY = 2 * 1024**3
"""In bytes, against a change that makes something grow without end."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
SQL = [
    ("<=", "<"),
    (" AND ", " OR "),
    (" OR ", " AND "),
    ("+ 1", "+ 2"),
    ("attempt_count - ?", "attempt_count + ?"),
    ("max(0, ", "max(-9, "),
    (" ORDER BY seq", " ORDER BY seq DESC"),
    (" IMMEDIATE", ""),
    (" UNIQUE", ""),
    ("CHECK (", "CHECK (1 OR "),
    ("NULL)", "NULL OR 1)"),
    (", 0)", ", 1)"),
]


@frozen
class Mutant:
    """The module `file` with one change, and where and what that is."""

    file: str
    place: str
    change: str
    source: str

    @property
    def name(self) -> str:
        """What mutate_equivalent.py calls it: independent of line numbers."""
        return f"{self.file} {self.place}: {self.change}"


def mutants(path: Path) -> Iterator[Mutant]:
    """Every change of this module, each made in the tree, written out and taken back."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    seen: Counter[tuple[str, str]] = Counter()
    for place, node in _places(tree, "module"):
        for change, undo in _changes(node):
            source = ast.unparse(tree)
            undo()
            if source != ast.unparse(tree):
                seen[place, change] += 1
                again = f" ({seen[place, change]})" if seen[place, change] > 1 else ""
                yield Mutant(str(path.relative_to(IMPL)), place, change + again, source)


def _places(node: ast.AST, place: str) -> Iterator[tuple[str, ast.AST]]:
    """All nodes that are code, with the names of the functions and classes around them."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        place = node.name if place == "module" else f"{place}.{node.name}"
    yield place, node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_text_or_log(child):
                yield from _places(child, place)


def _is_text_or_log(node: ast.AST) -> bool:
    if not isinstance(node, ast.Expr):
        return False
    if isinstance(node.value, ast.Constant):
        return True
    return isinstance(node.value, ast.Call) and ast.unparse(node.value.func).startswith("log.")


Undo = Callable[[], None]


def _changes(node: ast.AST) -> Iterator[tuple[str, Undo]]:
    """Make each change of this one node in turn; the caller undoes it before the next."""
    yield from _drop_statements(node)
    yield from _negate(node)
    match node:
        case ast.Compare(ops=ops):
            for index, operator in enumerate(ops):
                before = ast.unparse(node)
                undo = _replace(ops, index, COMPARISONS[type(operator)]())
                yield f"`{before}` -> `{ast.unparse(node)}`", undo
        case ast.BoolOp(op=operator):
            yield _assign(node, "op", ast.Or() if isinstance(operator, ast.And) else ast.And())
        case ast.BinOp(op=ast.Add() | ast.Sub() as operator):
            yield _assign(node, "op", ast.Sub() if isinstance(operator, ast.Add) else ast.Add())
        case ast.Call(func=ast.Name(id="min" | "max" as name)):
            yield _assign(node, "func", ast.Name("max" if name == "min" else "min"))
        case ast.Constant(value=bool(flag)):
            yield _assign(node, "value", not flag)
        case ast.Constant(value=int(number)):
            yield _assign(node, "value", number + 1)
        case ast.Constant(value=str(text)) if text.isprintable() or "CREATE TABLE" in text:
            for old, new in SQL:
                if old in text and any(
                    word in text for word in ("SELECT", "UPDATE", "INSERT", "CREATE", "BEGIN")
                ):
                    yield _assign(node, "value", text.replace(old, new, 1), f"{old!r} -> {new!r} in SQL")


def _drop_statements(node: ast.AST) -> Iterator[tuple[str, Undo]]:
    for field in ("body", "orelse", "finalbody"):
        statements: object = getattr(node, field, None)
        if not isinstance(statements, list):
            continue  # the body of a lambda
        for index, statement in enumerate(statements):
            kinds = ast.Expr | ast.Assign | ast.AugAssign | ast.Raise | ast.Return | ast.Continue
            if isinstance(statement, kinds) and not _is_text_or_log(statement):
                dropped = ast.unparse(statement).partition("\n")[0]
                yield f"drop `{dropped}`", _replace(statements, index, ast.Pass())


def _negate(node: ast.AST) -> Iterator[tuple[str, Undo]]:
    field = "guard" if isinstance(node, ast.match_case) else "test"
    test = getattr(node, field, None)
    if test is not None:
        yield _assign(node, field, ast.UnaryOp(ast.Not(), test), f"negate `{ast.unparse(test)}`")
    filters = node.ifs if isinstance(node, ast.comprehension) else []
    for index, test in enumerate(filters):
        yield f"negate `{ast.unparse(test)}`", _replace(filters, index, ast.UnaryOp(ast.Not(), test))


def _replace(among: list[Any], index: int, value: ast.AST) -> Undo:
    was = among[index]
    among[index] = value
    return lambda: among.__setitem__(index, was)


def _assign(node: ast.AST, field: str, value: object, change: str | None = None) -> tuple[str, Undo]:
    before, was = ast.unparse(node) if change is None else "", getattr(node, field)
    setattr(node, field, value)
    return change or f"`{before}` -> `{ast.unparse(node)}`", lambda: setattr(node, field, was)


class Workshop:
    """A temporary copy of impl/ and tests/impl/ in which one module at a time is changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._impl = folder / "peeklock" / "impl"
        shutil.copytree(IMPL, self._impl, ignore=shutil.ignore_patterns("__pycache__"))
        self._tests = folder / "tests"
        shutil.copytree(HERE, self._tests, ignore=shutil.ignore_patterns("__pycache__", "mutate*"))
        self._fast = sorted(str(path) for path in self._tests.glob("test_*.py") if path.name != SLOW)

    def notices(self, mutant: Mutant) -> bool:
        """Whether a test fails, hangs or breaks on this mutant."""
        module = self._impl / mutant.file
        original = module.read_text(encoding="utf-8")
        module.write_text(mutant.source, encoding="utf-8")
        try:
            return not (self._passes(self._fast) and self._passes([str(self._tests / SLOW)]))
        finally:
            module.write_text(original, encoding="utf-8")

    def passes(self) -> bool:
        """Whether all tests pass on the copy as it is."""
        return self._passes(self._fast) and self._passes([str(self._tests / SLOW)])

    def _passes(self, tests: Sequence[str]) -> bool:
        pid = os.fork()
        if pid == 0:
            self._run_and_exit(tests)
        deadline = time.monotonic() + HANG_S
        while time.monotonic() < deadline:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return status == 0
            time.sleep(0.005)
        os.killpg(pid, signal.SIGKILL)  # with the processes that the tests started
        os.waitpid(pid, 0)
        return False

    def _run_and_exit(self, tests: Sequence[str]) -> None:
        code = 1
        try:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
            os.chdir(self._folder)
            quiet = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(quiet, stream)
            sys.dont_write_bytecode = True
            sys.path.insert(0, str(self._folder))
            options = [
                "-x",
                "-q",
                "-c",
                os.devnull,
                "--rootdir",
                str(self._folder),
                "-p",
                "no:cacheprovider",
                "--assert=plain",
            ]
            base = self._folder / "tmp"
            result = pytest.main([*options, "--import-mode=importlib", f"--basetemp={base}", *tests])
            changed = Path(sys.modules["peeklock.impl"].__file__ or "")
            # A run on another copy than the changed one would say nothing.
            code = 0 if result == 0 and changed.parent == self._impl else 1
        finally:
            os._exit(code)


def main(arguments: Sequence[str]) -> int:
    """Run the mutants and print the score; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="modules of impl/, such as lease.py; without any: all")
    parser.add_argument("--seconds", type=float, default=900, help="when to stop (default: 900)")
    parser.add_argument("--seed", type=int, default=1, help="the order in which they are run")
    chosen = parser.parse_args(arguments)
    known = sorted(str(p.relative_to(IMPL)) for p in IMPL.rglob("*.py") if p.name not in LEFT_ALONE)
    if not set(chosen.files) <= set(known):
        parser.error(
            f"no such module: {', '.join(set(chosen.files) - set(known))}; known: {', '.join(known)}"
        )

    found = [mutant for name in chosen.files or known for mutant in mutants(IMPL / name)]
    random.Random(chosen.seed).shuffle(found)  # a run that is cut short has seen something of everything
    explained = [mutant for mutant in found if mutant.name in EQUIVALENT]
    deadline = time.monotonic() + chosen.seconds
    # SQLite waits for the disk at every commit; in memory, the tests take half the time.
    memory = next((path for path in ("/dev/shm",) if os.access(path, os.W_OK)), None)
    with tempfile.TemporaryDirectory(prefix="peeklock-mutants-", dir=memory) as folder:
        workshop = Workshop(Path(folder))
        if not workshop.passes():
            print("the tests fail on the unchanged implementation", file=sys.stderr)
            return 1
        survivors: list[Mutant] = []
        ran = 0
        for mutant in found:
            if mutant in explained or time.monotonic() > deadline:
                continue
            ran += 1
            if ran % 50 == 0:
                print(f"{ran} of {len(found) - len(explained)} run", file=sys.stderr, flush=True)
            if not workshop.notices(mutant):
                survivors.append(mutant)
                print(f"survivor: {mutant.name}", flush=True)
    left = len(found) - len(explained) - ran
    print(f"{len(found)} mutants: {ran - len(survivors)} noticed, {len(survivors)} survived,", end=" ")
    print(f"{len(explained)} make no difference, {left} not run")
    stale = set(EQUIVALENT) - {mutant.name for mutant in found} if not chosen.files else set()
    for name in sorted(stale):
        print(f"explained, but there is no such mutant: {name}")
    return 1 if survivors or stale else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main(sys.argv[1:]))
    sys.exit(130)
