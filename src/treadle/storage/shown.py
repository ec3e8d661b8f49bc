"""Paths and URLs as people and records may see them: without passwords."""

from treadle.db import shown_url

__all__ = ["shown_url"]
