"""A PostgreSQL database with the few methods that `Store` needs of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.errors import extra

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
