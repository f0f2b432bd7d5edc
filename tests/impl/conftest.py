"""What the tests of the implementation share: a virtual clock, and a store of each kind."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from peeklock.impl import MemoryStore, SqliteStore, Store, VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, clock: VirtualClock, tmp_path: Path) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore(clock, incarnation="t")
        return
    sqlite = SqliteStore(tmp_path / "queue.db", clock, incarnation="t", durable=False)
    yield sqlite
    sqlite.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a SQLite store may be made."""
    return tmp_path / "queue.db"


@pytest.fixture
def sqlite(path: Path, clock: VirtualClock) -> Iterator[SqliteStore]:
    """A SQLite store at `path` that does not wait for a write lock."""
    with closing(SqliteStore(path, clock, busy_timeout_ms=0, incarnation="t", durable=False)) as store:
        yield store
