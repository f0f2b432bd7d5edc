"""The house is kept: imports point one way, files are short, and nothing is left lying about."""

from __future__ import annotations

import ast
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parent.parent
ROOMS = {
    "spec": ROOT / "spec",
    "model": ROOT / "model",
    "cli": ROOT / "model" / "cli",
    "impl": ROOT / "impl",
    "proofs": ROOT / "proofs",
    "harness": ROOT / "tests" / "harness",
}
MAY_IMPORT = {
    "spec": set[str](),
    "model": {"spec"},
    "impl": set[str](),
    "proofs": {"spec"},
    "harness": {"spec"},
    "cli": {"spec", "model", "proofs", "harness"},
}
"""The command line is the one room that may import nearly every other; nobody imports it."""
OUTSIDE = {
    "spec": {"attrs"},
    "model": {"attrs", "numpy", "networkx"},
    "impl": {"attrs"},
    "proofs": {"attrs", "z3"},
    "harness": {"attrs", "hypothesis"},
    "cli": {"attrs", "hypothesis", "rich"},
}
LONGEST_FILE = 420
"""Lines, beyond which a file has to be split by idea."""


def files(room: str) -> list[Path]:
    return sorted(p for p in ROOMS[room].glob("*.py"))


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module or "")
            found |= {f"{node.module}.{a.name}" for a in node.names}
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_one_way(room: str) -> None:
    for path in files(room):
        ours = {name.split(".")[1] for name in imports(path) if name.startswith("peeklock.")}
        assert ours - {room} <= MAY_IMPORT[room], path


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_uses_only_the_packages_that_it_is_known_for(room: str) -> None:
    import sys

    for path in files(room):
        outside = (
            {name.split(".")[0] for name in imports(path)} - set(sys.stdlib_module_names) - {"peeklock", ""}
        )
        plugin = {"pytest"} if path == ROOMS["harness"] / "plugin.py" else set()
        assert outside <= OUTSIDE[room] | plugin, path


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_has_an_import_cycle(room: str) -> None:
    graph = nx.DiGraph()
    for path in files(room):
        prefix = f"peeklock.{room}."
        for name in imports(path):
            target = name.removeprefix(prefix).split(".")[0]
            if name.startswith(prefix) and (ROOMS[room] / f"{target}.py").exists():
                graph.add_edge(path.stem, target)
    assert list(nx.simple_cycles(graph)) == []


def test_no_file_has_to_be_scrolled_for_long() -> None:
    too_long = {
        str(p.relative_to(ROOT)): n
        for p in ROOT.rglob("*.py")
        if not any(part.startswith(".") or part in ("build", "dist") for part in p.relative_to(ROOT).parts)
        and (n := len(p.read_text(encoding="utf-8").splitlines())) > LONGEST_FILE
    }
    assert too_long == {}


def test_only_tests_introduce_the_implementation_to_the_harness() -> None:
    for room in ("harness", "cli", "model", "proofs", "spec"):
        for path in files(room):
            assert not any(name.startswith("peeklock.impl") for name in imports(path)), path
