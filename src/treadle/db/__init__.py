"""Databases: connections, statements, COPY, transactions. Transport only: SQL is written above."""

from treadle.db.database import Column, Database
from treadle.db.url import shown_url

__all__ = ["Column", "Database", "shown_url"]
