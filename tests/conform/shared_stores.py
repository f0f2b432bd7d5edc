"""Stores at a place that several processes share; each process finds them here by their names."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from reference import ReferenceAdapter

import peeklock.impl as impl


def sqlite_store_at(place: str) -> ReferenceAdapter:
    """The reference store in a file, on a clock of its own."""
    clock = impl.VirtualClock()
    return ReferenceAdapter(impl.SqliteStore(_file(place), clock, durable=False), clock)


def sqlite_store_in_real_time_at(place: str) -> ReferenceAdapter:
    """The reference store in a file, on the system's clock."""
    clock = impl.RealClock()
    return ReferenceAdapter(impl.SqliteStore(_file(place), clock, durable=False), clock)


class ChecksThenClaims(impl.SqliteStore):
    """A fetch reads which item is free, and claims it in a second transaction."""

    def fetch(self, lock_timeout_ms: int) -> impl.Delivery | None:
        now_ms = self._clock.now_ms()
        free = [r for r in self.rows() if r.visible_at_ms <= now_ms and (r.locked_until_ms or 0) <= now_ms]
        if not free:
            return None
        row = free[0]

        def claim(db: sqlite3.Connection, now_ms: int) -> impl.Delivery:
            db.execute("UPDATE tokens SET last = last + 1")
            (number,) = db.execute("SELECT last FROM tokens").fetchone()
            until_ms = now_ms + lock_timeout_ms
            db.execute(
                "UPDATE work SET token = ?, locked_until_ms = ?, attempt_count = ? WHERE id = ?",
                (f"t{number}", until_ms, row.attempt_count + 1, row.item.id),
            )
            return impl.Delivery(row.item, f"t{number}", row.attempt_count + 1, until_ms)

        return self._transaction("fetch", claim)


def checks_then_claims_at(place: str) -> ReferenceAdapter:
    """The same, but a fetch is two transactions."""
    clock = impl.VirtualClock()
    return ReferenceAdapter(ChecksThenClaims(_file(place), clock, durable=False), clock)


class Dies(ReferenceAdapter):
    """Its process dies."""

    def ack(self, token: str, completion: str | None) -> None:
        raise KeyError("who died")


class Hangs(ReferenceAdapter):
    """It does not answer."""

    def ack(self, token: str, completion: str | None) -> None:
        time.sleep(60)


def dies_in_an_ack_at(place: str) -> ReferenceAdapter:
    """The reference store, whose adapter has a fault."""
    clock = impl.VirtualClock()
    return Dies(impl.SqliteStore(_file(place), clock, durable=False), clock)


def hangs_in_an_ack_at(place: str) -> ReferenceAdapter:
    """The reference store, whose adapter waits for ever."""
    clock = impl.VirtualClock()
    return Hangs(impl.SqliteStore(_file(place), clock, durable=False), clock)


def cannot_be_opened(place: str) -> ReferenceAdapter:
    """A store of which nothing is there."""
    raise FileNotFoundError(f"no store at {Path(place).name[:8]}")


def _file(place: str) -> Path:
    return Path(place) / "store.db"
