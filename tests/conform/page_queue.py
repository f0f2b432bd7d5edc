"""A queue in SQLite with functions of its own, such as the page about stores has an adapter for."""

from __future__ import annotations

import itertools
import sqlite3

SCHEMA = """
CREATE TABLE jobs (id TEXT, visible INT, tries INT DEFAULT 0, token TEXT, until INT);
CREATE TABLE results (id TEXT, result TEXT);
"""


class Queue:
    """Keeps the contract."""

    is_held = "token = :token AND until > :now"

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.row_factory = sqlite3.Row
        self.db.executescript(SCHEMA)
        self.now, self.numbers = 0, itertools.count(1)

    def advance(self, ms: int) -> None:
        self.now += ms

    def _changes(self, sql: str, **values: object) -> bool:
        return self.db.execute(sql, {"now": self.now, **values}).rowcount > 0

    def push(self, job: str, delay: int) -> None:
        self._changes("INSERT INTO jobs (id, visible) VALUES (:id, :now + :delay)", id=job, delay=delay)

    def claim(self, timeout: int) -> sqlite3.Row | None:
        rows = self.db.execute(
            "UPDATE jobs SET token = :token, until = :until, tries = tries + 1 WHERE rowid = (SELECT rowid FROM jobs"
            " WHERE visible <= :now AND (token IS NULL OR until <= :now) ORDER BY rowid LIMIT 1) RETURNING *",
            {"token": f"lease-{next(self.numbers)}", "now": self.now, "until": self.now + timeout},
        ).fetchall()
        return rows[0] if rows else None

    def extend(self, token: str, ms: int) -> bool:
        return self._changes(f"UPDATE jobs SET until = :now + :ms WHERE {Queue.is_held}", token=token, ms=ms)

    def finish(self, token: str, result: str | None) -> bool:
        self.db.execute("BEGIN")
        if result is not None:
            self._changes(
                f"INSERT INTO results SELECT id, :result FROM jobs WHERE {self.is_held}",
                token=token,
                result=result,
            )
        done = self._changes(f"DELETE FROM jobs WHERE {self.is_held}", token=token)
        self.db.execute("COMMIT")
        return done

    def release(self, token: str, delay: int, fewer: int) -> bool:
        return self._changes(
            "UPDATE jobs SET token = NULL, visible = :now + :delay, tries = tries - :fewer WHERE token = :token",
            token=token,
            delay=delay,
            fewer=fewer,
        )

    def drop(self, job: str) -> bool:
        return self._changes("DELETE FROM jobs WHERE id = :id", id=job)

    def results(self) -> list[tuple[str, str]]:
        return [tuple(row) for row in self.db.execute("SELECT id, result FROM results ORDER BY rowid")]


class ForgetfulQueue(Queue):
    """Its acks do not look at the lock's end."""

    is_held = "token = :token"
