"""The house is kept: imports point one way, between rooms and between packages, and files and packages are small."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
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
    "cli": {"attrs", "hypothesis", "networkx", "rich"},
}
LONGEST_FILE = 420
"""Lines, beyond which a file has to be split by idea."""
FULLEST_PACKAGE = 15
"""Files, beyond which a package has to be split."""


def files(room: str) -> list[Path]:
    """The modules of a room; the command line lies within the search, but is a room of its own."""
    inner = {folder for name, folder in ROOMS.items() if name != room and folder.is_relative_to(ROOMS[room])}
    return sorted(p for p in ROOMS[room].rglob("*.py") if not inner & set(p.parents))


def module(room: str, path: Path) -> str:
    parts = path.relative_to(ROOMS[room]).with_suffix("").parts
    return ".".join(("peeklock", room, *(p for p in parts if p != "__init__")))


MODULES = {module(room, path): path for room in ROOMS for path in files(room)}


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


def edges() -> Iterator[tuple[str, str]]:
    """Each import of one of our modules by another; the face of a room, which loads lazily, is left out."""
    for name, path in MODULES.items():
        if path != ROOMS["harness"] / "__init__.py":
            named = imports(path)
            # `from peeklock.impl import metrics` names the package, too, and means the module.
            inside = {other.rpartition(".")[0] for other in named & MODULES.keys()}
            yield from ((name, other) for other in named & MODULES.keys() - {name} - inside)


def package(name: str) -> str:
    return name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_one_way(room: str) -> None:
    for path in files(room):
        ours = {name.split(".")[1] for name in imports(path) if name.startswith("peeklock.")}
        assert ours - {room} <= MAY_IMPORT[room], path


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_uses_only_the_packages_that_it_is_known_for(room: str) -> None:
    for path in files(room):
        outside = (
            {name.split(".")[0] for name in imports(path)} - set(sys.stdlib_module_names) - {"peeklock", ""}
        )
        plugin = {"pytest"} if path == ROOMS["harness"] / "plugin.py" else set()
        assert outside <= OUTSIDE[room] | plugin, path


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = nx.DiGraph(edges())
    assert graph.number_of_edges() > 500
    assert [c for c in nx.strongly_connected_components(graph) if len(c) > 1] == []


def room_of_packages(name: str) -> str:
    """The package of a module; a module that lies in the room itself, as spec/compose.py does, counts by itself."""
    return name if package(name).count(".") == 1 else package(name)


def test_packages_have_an_order_too() -> None:
    graph = nx.DiGraph(
        (room_of_packages(a), room_of_packages(b))
        for a, b in edges()
        if room_of_packages(a) != room_of_packages(b)
    )
    assert graph.number_of_edges() > 60
    assert [c for c in nx.strongly_connected_components(graph) if len(c) > 1] == []


def test_no_package_holds_more_than_one_can_keep_in_mind() -> None:
    sizes: dict[str, int] = {}
    for name, path in MODULES.items():
        if path.name != "__init__.py":
            sizes[package(name)] = sizes.get(package(name), 0) + 1
    assert {name: size for name, size in sizes.items() if size > FULLEST_PACKAGE} == {}


def test_every_package_is_packaged() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert sorted(declared["packages"]) == sorted({package(name) for name in MODULES})


def test_every_module_that_a_docstring_names_exists() -> None:
    missing = {
        f"{name}: {named}"
        for name, path in MODULES.items()
        for named in re.findall(r":mod:`~?(peeklock[\w.]*)`", path.read_text(encoding="utf-8"))
        if named not in MODULES
    }
    assert missing == set()


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
