"""How the SQLite store opens a file: whose file it is, and what a new one gets.

A file belongs to this store when its `application_id` and `user_version` are the two numbers below
and its tables are there. A file without any content is new and gets the schema. Everything else is
somebody else's or damaged, and is left exactly as it is.
"""

import sqlite3

from peeklock.impl.errors import PermanentError

APPLICATION_ID = 0x7065656B
"""The letters "peek", at the place in the file's header that SQLite keeps for this purpose."""

USER_VERSION = 1
"""The version of the schema below."""

SCHEMA = (
    # The worker queue. The lowest seq is the oldest item. A token stays after its lock has expired,
    # until the next fetch or abandon: abandon still works with it.
    """
    CREATE TABLE work (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        instance TEXT NOT NULL,
        name TEXT NOT NULL,
        payload TEXT NOT NULL,
        visible_at_ms INTEGER NOT NULL,
        attempt_count INTEGER NOT NULL CHECK (attempt_count >= 0),
        token TEXT UNIQUE,
        locked_until_ms INTEGER,
        CHECK ((token IS NULL) = (locked_until_ms IS NULL))
    )
    """,
    # The orchestrator's queue. That an item completes once is also the database's rule.
    """
    CREATE TABLE completions (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        item_id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL CHECK (kind IN ('success', 'application error', 'poison')),
        payload TEXT NOT NULL
    )
    """,
    # One row. Every token is the incarnation and a number that only grows.
    """
    CREATE TABLE tokens (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        incarnation TEXT NOT NULL,
        last INTEGER NOT NULL
    )
    """,
)

TABLES = {"work", "completions", "tokens"}


def prepare(connection: sqlite3.Connection, path: str, incarnation: str) -> None:
    """Create the schema in an empty database; check that any other is ours.

    PermanentError naming `path` when it is not; sqlite3.Error as SQLite raises it.
    """
    if not _is_empty(connection):
        _check_ours(connection, path)
        return
    # Before the first transaction, because the journal mode cannot change inside one.
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been faster while this one waited for the write lock.
        if _is_empty(connection):
            for statement in SCHEMA:
                connection.execute(statement)
            connection.execute("INSERT INTO tokens VALUES (1, ?, 0)", (incarnation,))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {USER_VERSION}")
        else:
            _check_ours(connection, path)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _names(connection: sqlite3.Connection) -> set[str]:
    return {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master").fetchall()}


def _is_empty(connection: sqlite3.Connection) -> bool:
    marks = _pragma(connection, "application_id"), _pragma(connection, "user_version")
    return marks == (0, 0) and not _names(connection)


def _check_ours(connection: sqlite3.Connection, path: str) -> None:
    application_id = _pragma(connection, "application_id")
    if application_id != APPLICATION_ID:
        raise PermanentError(
            "open", f"{path} is a SQLite database of another program (application_id {application_id})"
        )
    version = _pragma(connection, "user_version")
    if version != USER_VERSION:
        raise PermanentError("open", f"{path} has schema version {version}, this store needs {USER_VERSION}")
    missing = TABLES - _names(connection)
    if missing:
        raise PermanentError("open", f"{path} is damaged: no table {', '.join(sorted(missing))}")
