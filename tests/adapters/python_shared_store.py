"""A peek-lock store in a SQLite file that several of these programs can have open; standard library only.

FAULT in the environment plants a mistake: "check-then-claim" looks before it locks, "dies" ends in an ack.
"""

import contextlib
import os
import sqlite3
import sys
import tempfile

import python_store
from python_store import Permanent

FAULT = os.environ.get("FAULT", "")
TABLES = """
    CREATE TABLE IF NOT EXISTS work (
        item TEXT PRIMARY KEY, visible INT, attempts INT DEFAULT 0, token TEXT, locked INT DEFAULT 0
    );
    CREATE TABLE IF NOT EXISTS done (item TEXT, completion TEXT);
    CREATE TABLE IF NOT EXISTS tokens (number INTEGER PRIMARY KEY AUTOINCREMENT);
"""


class Store:
    """Rows in the order of their age; each call is a transaction that has the lock before it looks at anything."""

    def __init__(self, place=None):
        place = place or tempfile.mkdtemp()
        self.now, self.failing = 0, {}
        self.db = sqlite3.connect(os.path.join(place, "store.db"), timeout=60, isolation_level=None)
        self.db.execute("PRAGMA synchronous = OFF")
        self.db.executescript(TABLES)

    @contextlib.contextmanager
    def transaction(self):
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def enqueue(self, item, delay_ms):
        self.db.execute("INSERT INTO work (item, visible) VALUES (?, ?)", (item, self.now + delay_ms))

    def fetch(self, lock_timeout_ms):
        if FAULT == "check-then-claim":
            item = self.oldest()
            with self.transaction():
                return self.claim(item, lock_timeout_ms)
        with self.transaction():
            return self.claim(self.oldest(), lock_timeout_ms)

    def oldest(self):
        free = "SELECT item FROM work WHERE visible <= ?1 AND locked <= ?1 ORDER BY rowid LIMIT 1"
        return self.db.execute(free, (self.now,)).fetchone()

    def claim(self, item, lock_timeout_ms):
        if item is None:
            return None
        token = f"t{self.db.execute('INSERT INTO tokens DEFAULT VALUES').lastrowid}"
        lock = (
            "UPDATE work SET token = ?, locked = ?, attempts = attempts + 1 WHERE item = ? RETURNING attempts"
        )
        found = self.db.execute(lock, (token, self.now + lock_timeout_ms, *item)).fetchone()
        return found and {"item": item[0], "token": token, "attempt_count": found[0]}

    def find(self, token, unexpired):
        after = self.now if unexpired else -1
        found = self.db.execute(
            "SELECT item FROM work WHERE token = ? AND locked > ?", (token, after)
        ).fetchone()
        if found is None:
            raise Permanent(f"token {token} is not current, or its lock has expired")
        return found[0]

    def renew(self, token, extend_for_ms):
        with self.transaction():
            item = self.find(token, True)
            self.db.execute("UPDATE work SET locked = ? WHERE item = ?", (self.now + extend_for_ms, item))

    def ack(self, token, completion):
        with self.transaction():
            item = self.find(token, True)
            if FAULT == "dies":
                sys.exit(3)
            self.db.execute("DELETE FROM work WHERE item = ?", (item,))
            if completion is not None:
                self.db.execute("INSERT INTO done VALUES (?, ?)", (item, completion))

    def abandon(self, token, delay_ms, ignore_attempt):
        with self.transaction():
            item = self.find(token, False)
            back = "UPDATE work SET token = NULL, locked = 0, visible = ?, attempts = attempts - ? WHERE item = ?"
            self.db.execute(back, (self.now + delay_ms, int(ignore_attempt), item))

    def cancel(self, items):
        with self.transaction():
            return [i for i in items if self.db.execute("DELETE FROM work WHERE item = ?", (i,)).rowcount]

    def completions(self):
        rows = self.db.execute("SELECT item, completion FROM done ORDER BY rowid")
        return [{"item": item, "completion": completion} for item, completion in rows]

    def advance(self, ms):
        self.now += ms

    def close(self):
        self.db.close()


if __name__ == "__main__":
    python_store.main(Store, {"name": "python_shared_store", "shared_place": True})
