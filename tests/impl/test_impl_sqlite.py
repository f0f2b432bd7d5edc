"""The SQLite store's own duties: whose file it is, one transaction per call, which errors are retryable."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from impl_scenes import ITEM, PAID
from peeklock.impl import (
    Completion,
    CompletionKind,
    PermanentError,
    RetryableError,
    SqliteStore,
    StoreError,
    VirtualClock,
    WorkItem,
)
from peeklock.impl.sqlite_schema import APPLICATION_ID, USER_VERSION, prepare


def raw(path: Path | str, timeout: float = 0) -> sqlite3.Connection:
    """A connection of somebody else, in autocommit mode."""
    return sqlite3.connect(path, timeout=timeout, isolation_level=None, uri=str(path).startswith("file:"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue.db"


@pytest.fixture
def sqlite(path: Path, clock: VirtualClock) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path, clock, busy_timeout_ms=0, incarnation="t")) as store:
        yield store


# whose file it is


def test_a_new_file_gets_the_schema_its_marks_and_wal_mode(sqlite: SqliteStore, path: Path) -> None:
    with closing(raw(path)) as db:
        assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert db.execute("PRAGMA user_version").fetchone() == (USER_VERSION,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


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
    with closing(SqliteStore(path, VirtualClock())) as store:
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
    with closing(SqliteStore(path, clock)) as store:
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


# one transaction per call


CALLS: list[Callable[[SqliteStore], object]] = [
    lambda store: store.enqueue(WorkItem("i9", "order-9", "charge")),
    lambda store: store.fetch(1_000),
    lambda store: store.renew("t-1", 5_000),
    lambda store: store.ack("t-1", PAID),
    lambda store: store.abandon("t-1"),
    lambda store: store.cancel(["i1"]),
]
NAMES = ["enqueue", "fetch", "renew", "ack", "abandon", "cancel"]


@pytest.fixture
def filled(sqlite: SqliteStore) -> SqliteStore:
    """One item locked under t-1, one free."""
    sqlite.enqueue(ITEM)
    sqlite.enqueue(WorkItem("i2", "order-2", "charge"))
    sqlite.fetch(1_000)
    return sqlite


@pytest.mark.parametrize(("call", "name"), list(zip(CALLS, NAMES, strict=True)), ids=NAMES)
def test_a_held_write_lock_makes_every_call_retryable_and_a_repeat_succeeds(
    filled: SqliteStore, path: Path, call: Callable[[SqliteStore], object], name: str
) -> None:
    before = filled.rows()
    with closing(raw(path)) as other:
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(RetryableError, match=rf"^{name}: .*{path.name}: database is locked"):
            call(filled)
        assert filled.rows() == before  # reading needs no write lock

    call(filled)
    assert (filled.rows(), filled.completions()) != (before, ())


@pytest.mark.parametrize("call", CALLS, ids=NAMES)
def test_the_time_is_read_once_and_only_with_the_write_lock_in_hand(
    filled: SqliteStore, path: Path, clock: VirtualClock, call: Callable[[SqliteStore], object]
) -> None:
    answers = []

    class Watching(VirtualClock):
        def now_ms(self) -> int:
            with closing(raw(path)) as other:
                try:
                    other.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    answers.append(str(error))
            return 0

    filled._clock = Watching()
    call(filled)

    assert answers == ["database is locked"]


@pytest.mark.parametrize("call", CALLS, ids=NAMES)
def test_a_call_whose_body_fails_leaves_no_transaction_open(
    filled: SqliteStore, path: Path, call: Callable[[SqliteStore], object]
) -> None:
    before = filled.rows()

    class Broken(VirtualClock):
        def now_ms(self) -> int:
            raise ZeroDivisionError

    filled._clock = Broken()
    with pytest.raises(ZeroDivisionError):
        call(filled)

    with closing(raw(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    assert filled.rows() == before


def test_an_ack_that_cannot_enqueue_its_completion_keeps_the_row(filled: SqliteStore, path: Path) -> None:
    before = filled.rows()
    with closing(raw(path)) as other:
        other.execute("CREATE TRIGGER stop BEFORE INSERT ON completions BEGIN SELECT RAISE(ABORT, 'no'); END")

        with pytest.raises(PermanentError, match=rf"^ack: .*{path.name}: no"):
            filled.ack("t-1", PAID)
        assert filled.rows() == before
        other.execute("DROP TRIGGER stop")

    filled.ack("t-1", PAID)
    assert filled.completions() == (PAID,)


def test_text_that_sqlite_cannot_keep_is_a_permanent_error(filled: SqliteStore) -> None:
    before = filled.rows()

    with pytest.raises(PermanentError, match=r"ack: .*surrogates not allowed"):
        filled.ack("t-1", Completion(CompletionKind.SUCCESS, "i1", "\ud800"))
    with pytest.raises(PermanentError, match=r"enqueue: .*surrogates not allowed"):
        filled.enqueue(WorkItem("i\ud800", "order", "charge"))

    assert filled.rows() == before


class Failing:
    """A connection on which one statement fails, with an error of SQLite's."""

    def __init__(self, connection: sqlite3.Connection, statement: str, error: sqlite3.Error) -> None:
        self._connection = connection
        self._statement = statement
        self._error: sqlite3.Error | None = error
        self.executed: list[str] = []

    def execute(self, statement: str, *args: object) -> sqlite3.Cursor:
        self.executed.append(statement)
        if self._error is not None and statement.startswith(self._statement):
            error, self._error = self._error, None
            raise error
        return self._connection.execute(statement, *args)  # type: ignore[arg-type]

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def close(self) -> None:
        self._connection.close()


def failing(store: SqliteStore, statement: str, code: int, text: str = "injected") -> Failing:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    connection = Failing(store._connection, statement, error)
    store._connection = connection  # type: ignore[assignment]
    return connection


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_BUSY, RetryableError),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, RetryableError),
        (sqlite3.SQLITE_LOCKED, RetryableError),
        (sqlite3.SQLITE_LOCKED_SHAREDCACHE, RetryableError),
        (sqlite3.SQLITE_IOERR, RetryableError),
        (sqlite3.SQLITE_IOERR_FSYNC, RetryableError),
        (sqlite3.SQLITE_ERROR, PermanentError),
        (sqlite3.SQLITE_CORRUPT, PermanentError),
        (sqlite3.SQLITE_FULL, PermanentError),
        (sqlite3.SQLITE_READONLY, PermanentError),
        (sqlite3.SQLITE_CONSTRAINT, PermanentError),
    ],
)
@pytest.mark.parametrize("statement", ["BEGIN", "DELETE", "INSERT"])
def test_an_error_in_a_transaction_is_rolled_back_and_is_retryable_by_its_code(
    filled: SqliteStore, path: Path, statement: str, code: int, kind: type[StoreError]
) -> None:
    before = filled.rows()
    failing(filled, statement, code)

    with pytest.raises(kind, match=rf"^ack: .*{path.name}: injected"):
        filled.ack("t-1", PAID)

    assert not filled._connection.in_transaction
    assert filled.rows() == before
    filled.ack("t-1", PAID)
    assert filled.completions() == (PAID,)


@pytest.mark.parametrize("code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR])
def test_an_error_while_committing_is_rolled_back_and_retryable_whatever_it_is(
    filled: SqliteStore, path: Path, code: int
) -> None:
    before = filled.rows()
    failing(filled, "COMMIT", code)

    with pytest.raises(RetryableError, match=rf"^ack: .*{path.name}: commit failed: injected"):
        filled.ack("t-1", PAID)

    assert not filled._connection.in_transaction
    assert filled.rows() == before
    filled.ack("t-1", PAID)
    assert filled.completions() == (PAID,)


def test_a_rollback_that_failed_is_made_good_by_the_next_call(filled: SqliteStore) -> None:
    connection = failing(filled, "ROLLBACK", sqlite3.SQLITE_IOERR)
    with pytest.raises(PermanentError):
        filled.ack("t-9", PAID)
    assert connection.in_transaction

    filled.ack("t-1", PAID)

    assert connection.executed[-6:-4] == ["ROLLBACK", "BEGIN IMMEDIATE"]
    assert filled.completions() == (PAID,)


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


# a shared cache in memory, where a wait for a table lock would be a deadlock


URI = "file:peeklock-test?mode=memory&cache=shared"


def test_two_connections_that_collide_on_upgrading_a_read_lock_get_a_retryable_error_at_once(
    clock: VirtualClock,
) -> None:
    said = []

    class Colliding(VirtualClock):
        """While the store holds the write lock, the other one tries to get it as well."""

        def now_ms(self) -> int:
            if reader.in_transaction:
                with pytest.raises(sqlite3.OperationalError) as refused:
                    reader.execute("UPDATE work SET payload = 'theirs'")
                said.append(str(refused.value))
            return 0

    with closing(SqliteStore(URI, clock, incarnation="t")) as store, closing(raw(URI)) as reader:
        store.enqueue(ITEM)
        store.fetch(1_000)
        store._clock = Colliding()
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM work").fetchall()  # a read lock, until the transaction ends

        for _ in range(2):
            with pytest.raises(RetryableError, match=r"^ack: file:peeklock-test.*: database table is locked"):
                store.ack("t-1", PAID)
            assert not store._connection.in_transaction

        reader.execute("ROLLBACK")
        store.ack("t-1", PAID)

        assert said == ["database table is locked"] * 2
        assert store.completions() == (PAID,)
        assert store.rows() == ()


def test_a_write_lock_in_a_shared_cache_is_retryable_for_writers_and_readers(clock: VirtualClock) -> None:
    with closing(SqliteStore(URI, clock)) as store, closing(raw(URI)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE work SET payload = 'theirs'")

        with pytest.raises(RetryableError, match=r"^enqueue: .*locked"):
            store.enqueue(ITEM)
        with pytest.raises(RetryableError, match=r"^read: .*locked"):
            store.rows()

        writer.execute("ROLLBACK")
        store.enqueue(ITEM)
