"""What a test of an adopter imports from ``peeklock.harness``: it is there, and not loaded before it is asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from peeklock import harness

SOURCE = Path(__file__).parent.parent / "harness" / "__init__.py"


def typed() -> dict[str, str]:
    """The names that a type checker sees, and the module of each."""
    (block,) = [
        node
        for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    ]
    return {
        alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_each_name_is_what_a_type_checker_takes_it_for() -> None:
    assert sorted(typed()) == sorted(harness.__all__)
    for name, module in typed().items():
        assert getattr(harness, name) is getattr(import_module(module), name), name


def test_a_name_is_no_module_of_the_package_which_would_hide_it() -> None:
    assert not {path.stem for path in SOURCE.parent.glob("*.py")} & set(harness.__all__)


def test_a_name_that_is_not_there_is_told_as_of_any_module() -> None:
    with pytest.raises(ImportError, match="cannot import name 'chek_store'"):
        exec("from peeklock.harness import chek_store")


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    loads = "import sys, peeklock.harness.plugin; print('hypothesis' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
