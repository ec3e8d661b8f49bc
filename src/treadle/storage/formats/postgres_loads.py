"""Which loads a database has taken: a row each in the table `treadle_loads`, written in the transaction that
brought the rows. So a run that goes on after a kill knows whether that transaction counted.

The table is in the schema of the table that is filled. A row is of use as long as the run may go on by its
checkpoint. The run removes it when it is over; one that is left, by a run with which nobody goes on, may be
removed by anybody.
"""

from __future__ import annotations

from treadle.db import Database, shown_url
from treadle.errors import ArtifactError
from treadle.storage.dataset import OutputSpec
from treadle.storage.formats.format import Load
from treadle.storage.formats.postgres_sql import identifier

_NAME = "treadle_loads"


class Loads:
    """The loads of one output into `table`. Every method raises DatabaseError when the server refuses."""

    def __init__(self, database: Database, spec: OutputSpec, table: str) -> None:
        self._database = database
        self._spec = spec
        self._table = table
        schema, dot, _ = table.rpartition(".")
        self._name = f"{schema}{dot}{_NAME}"
        self._sql = identifier(self._name)

    def make(self) -> None:
        """Make the table of loads, unless it is there."""
        with self._database.transaction():
            # Two who make it at once would both find nothing, and one of them would fail.
            self._database.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (_NAME,))
            if self._database.execute("SELECT to_regclass(%s) IS NULL", (self._sql,)) == [(True,)]:
                self._database.execute(
                    f"CREATE TABLE {self._sql} (token text PRIMARY KEY, target text NOT NULL, "
                    "content text NOT NULL, loaded_at timestamptz NOT NULL DEFAULT now())"
                )

    def has(self, token: str) -> bool:
        """Whether a load of that token counts."""
        return bool(self._rows(token))

    def stands(self, load: Load) -> bool:
        """Whether this very load counts already; one of other rows is in its place only with `overwrite`.

        Raises ArtifactError: other rows of the same run are there, and cannot be told from those of others.
        """
        found = self._rows(load.token)
        if not found or (found[0][0] != load.content and self._spec.mode == "overwrite"):
            return False
        if found[0][0] == load.content:
            return True
        where = f"token = '{load.token}'"
        raise ArtifactError(
            f"{shown_url(self._spec.path)}: {self._table}: this run loaded its rows at {found[0][1]} and was "
            "cut then; its inputs have changed since: expected the same rows again, got others; take those "
            f"rows out, then also the row of {self._name} where {where}, and run again"
        )

    def note(self, load: Load) -> None:
        """Say that the load counts, if the transaction that this is part of does."""
        self._database.execute(
            f"INSERT INTO {self._sql} (token, target, content) VALUES (%s, %s, %s) "  # noqa: S608 - quoted
            "ON CONFLICT (token) DO UPDATE SET content = excluded.content, loaded_at = excluded.loaded_at",
            (load.token, self._table, load.content),
        )

    def forget(self, token: str) -> None:
        """The run is over: nobody will ask for it again."""
        self._database.execute(f"DELETE FROM {self._sql} WHERE token = %s", (token,))  # noqa: S608 - quoted

    def _rows(self, token: str) -> list[tuple[str, object]]:
        asked = f"SELECT content, loaded_at FROM {self._sql} WHERE token = %s"  # noqa: S608 - quoted
        return [(str(content), at) for content, at in self._database.execute(asked, (token,))]
