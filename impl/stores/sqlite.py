"""A store in a SQLite file that several processes may share.

Every call is one transaction that begins with `BEGIN IMMEDIATE`, so it has the write lock before it
looks at anything; the time is read after that, because waiting for the lock can outlast a lease. A
call that fails is rolled back as a whole, and repeating it is a whole new transaction.
"""

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from peeklock.impl.clock import Clock
from peeklock.impl.errors import PermanentError, RetryableError, StoreError
from peeklock.impl.store import (
    Completion,
    CompletionKind,
    Delivery,
    Row,
    WorkItem,
    check_belongs,
    check_ms,
    unique_ids,
)
from peeklock.impl.stores.sqlite_schema import prepare

T = TypeVar("T")

RETRYABLE_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR}


class SqliteStore:
    """Both queues in one SQLite database (see sqlite_schema), in WAL mode.

    `path` is a file, created when absent or empty, or a `file:` URI such as
    `file:name?mode=memory&cache=shared`. All processes on a file must pass clocks that agree, for
    lock times are kept as absolute milliseconds. `busy_timeout_ms` is how long a call may wait for
    another's write lock before it fails with RetryableError. `incarnation` begins every token of a
    database that this call creates; by default it is random. With `durable` false, commits do not
    wait for the disk: a loss of power may damage the file, the end of a process loses nothing. For
    one thread.

    The constructor raises PermanentError naming the path for a file that is foreign, damaged or
    cannot be opened, and RetryableError when it is busy.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        clock: Clock,
        *,
        busy_timeout_ms: int = 5_000,
        incarnation: str | None = None,
        durable: bool = True,
    ) -> None:
        check_ms("open", "busy_timeout_ms", busy_timeout_ms, 0)
        self._path = os.fspath(path)
        self._clock = clock
        try:
            self._connection = sqlite3.connect(
                self._path,
                timeout=busy_timeout_ms / 1000,
                isolation_level=None,  # transactions are begun and ended here, not by the module
                uri=self._path.startswith("file:"),
            )
        except sqlite3.Error as error:
            raise self._translated("open", error) from error
        try:
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
            prepare(self._connection, self._path, incarnation or secrets.token_hex(8))
        except BaseException as error:
            self._connection.close()
            if isinstance(error, sqlite3.Error):
                raise self._translated("open", error) from error
            raise

    def close(self) -> None:
        """Close the connection; every later call is refused."""
        self._connection.close()

    def enqueue(self, item: WorkItem, delay_ms: int = 0) -> None:
        """See Store.enqueue."""
        check_ms("enqueue", "delay_ms", delay_ms, 0)

        def body(db: sqlite3.Connection, now_ms: int) -> None:
            known = db.execute(
                "SELECT 1 FROM work WHERE id = ?1 UNION ALL SELECT 1 FROM completions WHERE item_id = ?1",
                (item.id,),
            )
            if known.fetchone() is not None:
                raise PermanentError("enqueue", f"item {item.id!r} is already queued or completed")
            db.execute(
                "INSERT INTO work (id, instance, name, payload, visible_at_ms, attempt_count)"
                " VALUES (?, ?, ?, ?, ?, 0)",
                (item.id, item.instance, item.name, item.payload, now_ms + delay_ms),
            )

        self._transaction("enqueue", body)

    def fetch(self, lock_timeout_ms: int) -> Delivery | None:
        """See Store.fetch."""
        check_ms("fetch", "lock_timeout_ms", lock_timeout_ms, 1)

        def body(db: sqlite3.Connection, now_ms: int) -> Delivery | None:
            row = db.execute(
                "SELECT id, instance, name, payload, attempt_count FROM work"
                " WHERE visible_at_ms <= ?1 AND (locked_until_ms IS NULL OR locked_until_ms <= ?1)"
                " ORDER BY seq LIMIT 1",
                (now_ms,),
            ).fetchone()
            if row is None:
                return None
            db.execute("UPDATE tokens SET last = last + 1")
            incarnation, number = db.execute("SELECT incarnation, last FROM tokens").fetchone()
            item = WorkItem(*row[:4])
            delivery = Delivery(item, f"{incarnation}-{number}", row[4] + 1, now_ms + lock_timeout_ms)
            db.execute(
                "UPDATE work SET token = ?, locked_until_ms = ?, attempt_count = ? WHERE id = ?",
                (delivery.token, delivery.locked_until_ms, delivery.attempt_count, item.id),
            )
            return delivery

        return self._transaction("fetch", body)

    def renew(self, token: str, extend_for_ms: int) -> None:
        """See Store.renew."""
        check_ms("renew", "extend_for_ms", extend_for_ms, 1)

        def body(db: sqlite3.Connection, now_ms: int) -> None:
            item_id = _locked_item(db, "renew", token, now_ms)
            db.execute("UPDATE work SET locked_until_ms = ? WHERE id = ?", (now_ms + extend_for_ms, item_id))

        self._transaction("renew", body)

    def ack(self, token: str, completion: Completion | None) -> None:
        """See Store.ack."""

        def body(db: sqlite3.Connection, now_ms: int) -> None:
            item_id = _locked_item(db, "ack", token, now_ms)
            check_belongs(item_id, completion)
            db.execute("DELETE FROM work WHERE id = ?", (item_id,))
            if completion is not None:
                db.execute(
                    "INSERT INTO completions (item_id, kind, payload) VALUES (?, ?, ?)",
                    (item_id, completion.kind.value, completion.payload),
                )

        self._transaction("ack", body)

    def abandon(self, token: str, delay_ms: int = 0, ignore_attempt: bool = False) -> None:
        """See Store.abandon."""
        check_ms("abandon", "delay_ms", delay_ms, 0)

        def body(db: sqlite3.Connection, now_ms: int) -> None:
            given_back = db.execute(
                "UPDATE work SET token = NULL, locked_until_ms = NULL, visible_at_ms = ?,"
                " attempt_count = max(0, attempt_count - ?) WHERE token = ?",
                (now_ms + delay_ms, int(ignore_attempt), token),
            )
            if given_back.rowcount == 0:
                raise PermanentError("abandon", f"token {token!r} is not current")

        self._transaction("abandon", body)

    def cancel(self, item_ids: Iterable[str]) -> tuple[str, ...]:
        """See Store.cancel."""
        wanted = unique_ids(item_ids)

        def body(db: sqlite3.Connection, now_ms: int) -> tuple[str, ...]:
            return tuple(
                item_id
                for item_id in wanted
                if db.execute("DELETE FROM work WHERE id = ?", (item_id,)).rowcount > 0
            )

        return self._transaction("cancel", body)

    def rows(self) -> tuple[Row, ...]:
        """See Store.rows."""
        found = self._read(
            "SELECT id, instance, name, payload, visible_at_ms, attempt_count, token, locked_until_ms"
            " FROM work ORDER BY seq"
        )
        return tuple(Row(WorkItem(*row[:4]), *row[4:]) for row in found)

    def completions(self) -> tuple[Completion, ...]:
        """See Store.completions."""
        found = self._read("SELECT kind, item_id, payload FROM completions ORDER BY seq")
        return tuple(Completion(CompletionKind(kind), *rest) for kind, *rest in found)

    def _transaction(self, operation: str, body: Callable[[sqlite3.Connection, int], T]) -> T:
        try:
            self._rollback()  # makes good a rollback that failed in an earlier call
            self._connection.execute("BEGIN IMMEDIATE")
            result = body(self._connection, self._clock.now_ms())
        except (sqlite3.Error, UnicodeError, OverflowError) as error:
            self._rollback()
            raise self._translated(operation, error) from error
        except BaseException:
            self._rollback()
            raise
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._rollback()
            raise RetryableError(operation, f"{self._path}: commit failed: {error}") from error
        return result

    def _rollback(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _read(self, query: str) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(query).fetchall()
        except sqlite3.Error as error:
            raise self._translated("read", error) from error

    def _translated(self, operation: str, error: Exception) -> StoreError:
        # The low byte is the kind of error; the rest of the code only refines it.
        code = getattr(error, "sqlite_errorcode", None)
        message = f"{self._path}: {error}"
        if code is not None and code & 0xFF in RETRYABLE_CODES:
            return RetryableError(operation, message)
        return PermanentError(operation, message)


def _locked_item(db: sqlite3.Connection, operation: str, token: str, now_ms: int) -> str:
    """The id of the item that this token locks; PermanentError when it is not current or has expired."""
    row = db.execute("SELECT id, locked_until_ms FROM work WHERE token = ?", (token,)).fetchone()
    if row is None:
        raise PermanentError(operation, f"token {token!r} is not current")
    if row[1] <= now_ms:
        raise PermanentError(operation, f"the lock of token {token!r} has expired")
    return str(row[0])
