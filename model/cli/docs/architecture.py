"""The picture of the packages and a line about each, read from the imports and docstrings of this checkout."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

import networkx as nx

from peeklock.cli.docs.reference import code, table

ROOMS = {
    "spec": "spec",
    "model": "model",
    "cli": "model/cli",
    "proofs": "proofs",
    "impl": "impl",
    "harness": "tests/harness",
}


def _modules() -> dict[str, tuple[str, Path]]:
    """The package and the file of each module. A module that lies in a room counts with that room."""
    found = {}
    for room, folder in ROOMS.items():
        for path in sorted(Path(folder).rglob("*.py")):
            inner = path.relative_to(folder).parts
            if room == "model" and inner[0] == "cli":
                continue
            parts = (room, *(p for p in path.relative_to(folder).with_suffix("").parts if p != "__init__"))
            alone = (room, path.stem) == ("spec", "compose")
            found[".".join(("peeklock", *parts))] = (
                "/".join((room, *inner[:-1], *(["compose"] * alone))),
                path,
            )
    return found


def _edges() -> nx.DiGraph[str]:
    """Which package imports which; ``impl``, which stands apart, is left out."""
    modules = _modules()
    graph: nx.DiGraph[str] = nx.DiGraph()
    for package, path in modules.values():
        if package.split("/")[0] == "impl":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and path.name != "__init__.py":
                for name in (f"{node.module}.{alias.name}" for alias in node.names):
                    other = modules.get(name, modules.get(node.module, (package, path)))[0]
                    if other != package:
                        graph.add_edge(package, other)
    return graph


def _picture() -> str:
    """A Mermaid flow chart: an arrow to what is imported; arrows that follow from others are left out."""
    reduced = nx.transitive_reduction(_edges())
    lines = ["```mermaid", "flowchart TD"]
    for room in ROOMS:
        inside = sorted(n for n in reduced if n.split("/")[0] == room and reduced.degree(n))
        if inside:
            lines.append(f"  subgraph {room}")
            lines += [f"    {n.replace('/', '_')}[{n.partition('/')[2] or n}]" for n in inside]
            lines.append("  end")
    lines += [f"  {a.replace('/', '_')} --> {b.replace('/', '_')}" for a, b in sorted(reduced.edges)]
    return "\n".join([*lines, "```"])


def _packages() -> str:
    """One line for each package, from its docstring."""
    rows = []
    for package, path in _modules().values():
        if path.name == "__init__.py":
            said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            rows.append((code(package), said.splitlines()[0].replace("``", "`")))
    return table(("package", "holds"), rows)


ARCHITECTURE: Mapping[str, Callable[[], str]] = {"packages": _packages, "picture of the packages": _picture}
