"""Test files are imported by path; this lets them import the helpers that lie beside them."""

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Thousands of runs full of faults would bury a failure under the worker's warnings about them."""
    logger = logging.getLogger("peeklock.impl")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)
