"""One transaction per call of the SQLite store, and which of its errors are retryable."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from impl_scenes import ITEM, PAID, raw

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
    answers: list[str] = []

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


# a shared cache in memory, where a wait for a table lock would be a deadlock


URI = "file:peeklock-test?mode=memory&cache=shared"


def test_two_connections_that_collide_on_upgrading_a_read_lock_get_a_retryable_error_at_once(
    clock: VirtualClock,
) -> None:
    said: list[str] = []

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
