"""What the tests of refinement share: a quiet worker."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Thousands of runs full of faults would bury a failure under the worker's warnings about them."""
    logger = logging.getLogger("peeklock.impl")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)
