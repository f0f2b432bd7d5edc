"""The SQLite store and its file: whose it is, what a new one gets, which are refused."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from impl_scenes import ITEM, PAID, raw

from peeklock.impl import (
    PermanentError,
    RetryableError,
    SqliteStore,
    VirtualClock,
    WorkItem,
)
from peeklock.impl.stores.sqlite_schema import USER_VERSION, prepare


def test_a_new_file_gets_the_schema_its_marks_and_wal_mode(sqlite: SqliteStore, path: Path) -> None:
    with closing(raw(path)) as db:
        assert db.execute("PRAGMA application_id").fetchone() == (0x7065656B,)  # "peek"
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE work SET attempt_count = -1",
        "UPDATE work SET token = 'x' WHERE id = 'i1'",
        "UPDATE work SET locked_until_ms = 5 WHERE id = 'i1'",
        "UPDATE work SET token = 'x', locked_until_ms = 5",
        "UPDATE work SET id = 'i1'",
        "INSERT INTO completions (item_id, kind, payload) VALUES ('i3', 'nonsense', '')",
        "INSERT INTO completions (item_id, kind, payload) VALUES ('i3', 'success', ''), ('i3', 'poison', '')",
        "INSERT INTO tokens VALUES (2, 'other', 0)",
    ],
)
def test_the_schema_itself_refuses_what_no_call_may_do(
    sqlite: SqliteStore, path: Path, statement: str
) -> None:
    sqlite.enqueue(ITEM)
    sqlite.enqueue(WorkItem("i2", "order-2", "charge"))

    with closing(raw(path)) as db, pytest.raises(sqlite3.IntegrityError):
        db.execute(statement)


def test_an_empty_file_is_new(path: Path, clock: VirtualClock) -> None:
    path.touch()

    with closing(SqliteStore(path, clock)) as store:
        store.enqueue(ITEM)


def test_what_is_in_a_file_is_still_there_when_it_is_opened_again(path: Path, clock: VirtualClock) -> None:
    with closing(SqliteStore(path, clock, incarnation="t")) as store:
        store.enqueue(ITEM)
        store.enqueue(WorkItem("i2", "order-2", "charge"))
        store.fetch(1_000)
        store.ack("t-1", PAID)
        store.fetch(1_000)
        before = store.rows(), store.completions()

    with closing(SqliteStore(path, clock, incarnation="other")) as store:
        assert (store.rows(), store.completions()) == before
        store.renew("t-2", 5_000)
        store.abandon("t-2")
        delivery = store.fetch(1_000)
        assert delivery is not None
        assert (delivery.token, delivery.attempt_count) == ("t-3", 2)


def test_a_queue_can_be_opened_while_another_holds_its_write_lock(sqlite: SqliteStore, path: Path) -> None:
    sqlite.enqueue(ITEM)
    with closing(raw(path)) as other:
        other.execute("BEGIN IMMEDIATE")

        with closing(SqliteStore(path, VirtualClock(), busy_timeout_ms=0)) as store:
            assert store.rows() == sqlite.rows()


def test_two_new_databases_give_different_tokens(tmp_path: Path, clock: VirtualClock) -> None:
    tokens = set()
    for name in ("one.db", "two.db"):
        with closing(SqliteStore(tmp_path / name, clock)) as store:
            store.enqueue(ITEM)
            delivery = store.fetch(1)
            assert delivery is not None
            tokens.add(delivery.token)

    assert len(tokens) == 2


def not_a_database(path: Path) -> None:
    path.write_bytes(b"This is a text file, and longer than the header of a database. " * 40)


def short_garbage(path: Path) -> None:
    path.write_bytes(b"garbage")


def damaged_header(path: Path) -> None:
    _our_own(path)
    path.write_bytes(b"\0" * 64 + path.read_bytes()[64:])


def foreign_with_tables(path: Path) -> None:
    with closing(raw(path)) as db:
        db.execute("CREATE TABLE work (theirs TEXT)")


def foreign_with_a_mark(path: Path) -> None:
    with closing(raw(path)) as db:
        db.execute("PRAGMA application_id = 7")


def foreign_with_a_version(path: Path) -> None:
    with closing(raw(path)) as db:
        db.execute("PRAGMA user_version = 1")


def later_version(path: Path) -> None:
    _our_own(path)
    with closing(raw(path)) as db:
        db.execute(f"PRAGMA user_version = {USER_VERSION + 1}")


def table_lost(path: Path) -> None:
    _our_own(path)
    with closing(raw(path)) as db:
        db.execute("DROP TABLE tokens")


def directory(path: Path) -> None:
    path.mkdir()


def _our_own(path: Path) -> None:
    with closing(SqliteStore(path, VirtualClock(), durable=False)) as store:
        store.enqueue(ITEM)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (not_a_database, "file is not a database"),
        (short_garbage, "file is not a database"),
        (damaged_header, "file is not a database"),
        (foreign_with_tables, r"another program \(application_id 0\)"),
        (foreign_with_a_mark, r"another program \(application_id 7\)"),
        (foreign_with_a_version, r"another program \(application_id 0\)"),
        (later_version, "has schema version 2, this store needs 1"),
        (table_lost, "is damaged: no table tokens"),
        (directory, "unable to open database file"),
    ],
)
def test_a_foreign_or_damaged_file_is_refused_by_name_and_left_as_it_is(
    path: Path, clock: VirtualClock, make: Callable[[Path], None], reason: str
) -> None:
    make(path)
    before = path.read_bytes() if path.is_file() else None

    with pytest.raises(PermanentError, match=f"^open: .*{path.name}.*{reason}"):
        SqliteStore(path, clock)

    if before is not None:
        assert path.read_bytes() == before
    assert not Path(f"{path}-wal").exists()


def test_a_file_in_no_folder_is_refused_by_name(tmp_path: Path, clock: VirtualClock) -> None:
    with pytest.raises(PermanentError, match=r"^open: .*none/queue\.db: unable to open"):
        SqliteStore(tmp_path / "none" / "queue.db", clock)


def test_damage_that_shows_later_is_permanent_and_names_the_file(path: Path, clock: VirtualClock) -> None:
    with closing(SqliteStore(path, clock, durable=False)) as store:
        for n in range(200):
            store.enqueue(WorkItem(f"i{n}", "order", "charge", "x" * 200))
    content = bytearray(path.read_bytes())
    content[3 * 4096 :] = b"\xff" * (len(content) - 3 * 4096)
    path.write_bytes(content)

    with closing(SqliteStore(path, clock)) as store:
        with pytest.raises(PermanentError, match=rf"^read: .*{path.name}: database disk image is malformed"):
            store.rows()
        with pytest.raises(PermanentError, match=rf"^ack: .*{path.name}: database disk image is malformed"):
            store.ack("t-1", None)


def test_a_busy_new_file_is_retryable(path: Path, clock: VirtualClock) -> None:
    with closing(raw(path)) as db:
        db.execute("BEGIN EXCLUSIVE")

        with pytest.raises(RetryableError, match=rf"^open: .*{path.name}: database is locked"):
            SqliteStore(path, clock, busy_timeout_ms=0)

    SqliteStore(path, clock, busy_timeout_ms=0).close()


@pytest.mark.parametrize("busy_timeout_ms", [-1, 0.5])
def test_a_malformed_busy_timeout_is_refused(path: Path, clock: VirtualClock, busy_timeout_ms: int) -> None:
    with pytest.raises(PermanentError, match="open: busy_timeout_ms must be an integer"):
        SqliteStore(path, clock, busy_timeout_ms=busy_timeout_ms)

    assert not path.exists()


def test_a_closed_store_refuses_every_call(sqlite: SqliteStore) -> None:
    sqlite.close()

    with pytest.raises(PermanentError, match=r"^fetch: .*closed database"):
        sqlite.fetch(1_000)
    with pytest.raises(PermanentError, match=r"^read: .*closed database"):
        sqlite.rows()


def test_the_busy_timeout_is_what_the_caller_asked_for(path: Path, clock: VirtualClock) -> None:
    with closing(SqliteStore(path, clock, busy_timeout_ms=1_234)) as store:
        assert store._connection.execute("PRAGMA busy_timeout").fetchone() == (1_234,)
    with closing(SqliteStore(path, clock)) as store:
        assert store._connection.execute("PRAGMA busy_timeout").fetchone() == (5_000,)


class Racing:
    """A connection that lets something happen just before it gets the write lock."""

    def __init__(self, connection: sqlite3.Connection, before_begin: Callable[[], None]) -> None:
        self._connection = connection
        self._before_begin = before_begin

    def execute(self, statement: str, *args: object) -> sqlite3.Cursor:
        if statement == "BEGIN IMMEDIATE":
            self._before_begin()
        return self._connection.execute(statement, *args)  # type: ignore[arg-type]

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction


def test_commits_wait_for_the_disk_unless_the_caller_gives_that_up(path: Path, clock: VirtualClock) -> None:
    with closing(SqliteStore(path, clock)) as store:
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    with closing(SqliteStore(path, clock, durable=False)) as store:
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (0,)


def test_a_process_that_created_the_schema_meanwhile_is_no_error(path: Path, clock: VirtualClock) -> None:
    with closing(raw(path)) as slower:
        racing = Racing(slower, lambda: _our_own(path))

        prepare(racing, str(path), "slower")  # type: ignore[arg-type]

        assert not slower.in_transaction
    with closing(SqliteStore(path, clock)) as store:
        assert [row.item for row in store.rows()] == [ITEM]


def test_a_foreign_schema_that_appeared_meanwhile_is_refused(path: Path) -> None:
    with closing(raw(path)) as slower:
        racing = Racing(slower, lambda: foreign_with_tables(path))

        with pytest.raises(PermanentError, match="of another program"):
            prepare(racing, str(path), "slower")  # type: ignore[arg-type]

        assert not slower.in_transaction
        assert slower.execute("SELECT name FROM sqlite_master").fetchall() == [("work",)]
