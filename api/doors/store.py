"""Keep what outlives the process: schedulers by name and answers of solves, in SQLite or PostgreSQL."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.errors import extra
from gangplan.instances.intake import io_error

_LOCK = 0x67616E67
"""Number of the advisory lock that whoever serves a database holds."""


class Postgres:
    """A connection that is opened anew once it is lost.

    Args:
        url: ``postgresql://user:password@host/database``, or whatever libpq takes.

    Raises:
        InstanceError: if psycopg is absent, or the database cannot be had.
    """

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise InstanceError("state", f"PostgreSQL needs psycopg: {extra('postgres')}") from None
        self._url, self._psycopg = url, psycopg
        try:
            self._connect()
        except psycopg.Error as error:
            words = str(error).strip().partition("\n")[0]
            raise InstanceError("state", f"PostgreSQL cannot be had: {words}") from None

    def _connect(self) -> None:
        self._db = self._psycopg.connect(self._url, autocommit=True, connect_timeout=10)
        row = self._db.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchone()
        if not (row and row[0]):
            self._db.close()
            raise InstanceError("state", "the database is in use by another gangplan serve")

    def execute(self, statement: str, values: Sequence[Any]) -> Any:
        """Run a statement of SQLite's form, once more if the connection turns out to be lost.

        Raises:
            sqlite3.Error: if it cannot be done, as SQLite says it.
        """
        text = statement.replace("?", "%s")
        try:
            try:
                cursor = self._db.execute(text, values or None)
            except self._psycopg.OperationalError:
                if not self._db.closed:
                    raise
                self._connect()
                cursor = self._db.execute(text, values or None)
        except (self._psycopg.Error, InstanceError) as error:
            raise sqlite3.OperationalError(str(error)) from None
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """Let go of the database."""
        self._db.close()


_TABLES = """
CREATE TABLE IF NOT EXISTS sessions (name TEXT PRIMARY KEY, request TEXT NOT NULL, created DOUBLE PRECISION NOT NULL);
CREATE TABLE IF NOT EXISTS solves (
    id TEXT PRIMARY KEY, state TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, finished DOUBLE PRECISION, answer TEXT
);
"""
LOST = '{"error":{"field":"service","problem":"ended before this solve did"}}'
"""Answer of a solve that a crash ended."""


class Store:
    """Keep rows in ``state.sqlite`` (WAL) of a folder, or in a database, and logs of schedulers in the folder.

    Args:
        folder: of one process.
        url: of a database, ``postgresql://...``, of one process too; "" for none.
        sync: whether a row is on disk before a call returns; PostgreSQL has settings of its own.

    Raises:
        InstanceError: if the folder or database cannot be written, or is another process's.
    """

    def __init__(self, folder: Path, url: str = "", *, sync: bool = False) -> None:
        self.folder, self._lock = folder, threading.Lock()
        field = "logs" if url else "state"  # whose folder it is
        try:
            (folder / "logs").mkdir(mode=0o700, parents=True, exist_ok=True)
            self._held = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._db: Postgres | sqlite3.Connection
            if url:
                self._db = Postgres(url)
            else:
                self._db = sqlite3.connect(folder / "state.sqlite", check_same_thread=False, isolation_level=None)
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute(f"PRAGMA synchronous={'FULL' if sync else 'NORMAL'}")
            for statement in filter(str.strip, _TABLES.split(";")):
                self._db.execute(statement, ())
        except BlockingIOError:
            raise InstanceError(field, "is in use by another gangplan serve", str(folder)) from None
        except OSError as error:
            raise InstanceError(field, io_error(error), str(folder)) from None
        except sqlite3.Error as error:
            raise InstanceError("state", io_error(error), None if url else str(folder)) from None
        ended = "UPDATE solves SET state = 'failed', finished = ?, answer = ? WHERE finished IS NULL"
        self._do(ended, time.time(), LOST)

    def _do(self, statement: str, *values: Any) -> Sequence[Any]:
        with self._lock:
            return list(self._db.execute(statement, values))

    def answers(self) -> bool:
        """Return whether the folder or the database can be read."""
        try:
            self._do("SELECT name FROM sessions LIMIT 1")
        except sqlite3.Error:
            return False
        return True

    def close(self) -> None:
        """Let go of the folder."""
        with self._lock:
            self._db.close()
            os.close(self._held)

    def log(self, name: str) -> Path:
        """Return the log of a session."""
        return self.folder / "logs" / f"{name}.jsonl"

    def sessions(self) -> list[str]:
        """Return the names of the sessions, by when they were made."""
        return [name for (name,) in self._do("SELECT name FROM sessions ORDER BY created, name")]

    def session(self, name: str) -> str | None:
        """Return what a session was made of."""
        rows = self._do("SELECT request FROM sessions WHERE name = ?", name)
        return rows[0][0] if rows else None

    def enter(self, name: str, request: str) -> None:
        """Enter a session, or another request of one that is there."""
        words = "INSERT INTO sessions VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET request = excluded.request"
        self._do(words, name, request, time.time())

    def remove(self, name: str) -> None:
        """Forget a session; its log is kept under another name."""
        self._do("DELETE FROM sessions WHERE name = ?", name)
        if (log := self.log(name)).exists():
            log.rename(log.with_suffix(f".{time.time_ns()}.closed"))

    def accept(self, name: str, kept: int) -> None:
        """Enter a solve, and forget the oldest that are over."""
        self._do("INSERT INTO solves VALUES (?, 'queued', ?, NULL, NULL)", name, time.time())
        self._do(
            "DELETE FROM solves WHERE finished IS NOT NULL AND id NOT IN (SELECT id FROM solves ORDER BY created DESC "
            "LIMIT ?)", kept,
        )  # fmt: skip

    def finish(self, name: str, state: str, answer: str) -> None:
        """Enter how a solve ended."""
        self._do("UPDATE solves SET state = ?, finished = ?, answer = ? WHERE id = ?", state, time.time(), answer, name)

    def solve(self, name: str) -> tuple[str, str] | None:
        """Return the state of a solve that is over, and its answer."""
        rows = self._do("SELECT state, answer FROM solves WHERE id = ?", name)
        return (rows[0][0], rows[0][1] or "{}") if rows else None
