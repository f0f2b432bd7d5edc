"""Test files are imported by path; this lets them import helpers: those beside them and those of conform/."""

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "conform")]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Thousands of runs full of faults would bury a failure under the worker's warnings about them."""
    logger = logging.getLogger("peeklock.impl")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)
