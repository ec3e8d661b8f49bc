"""The tables of a ledger in SQLite, and every statement on them.

Where a statement takes many places, they come as one JSON array: one text to prepare for any number.
Of builds, heads and bodies are read as bytes, so that damage is found by the checksum and not by a decoder.

Attempts have no index: each would cost every commit two pages more, and whoever asks for attempts, which is a
person or the beginning of a run, can wait until a table has been read.
"""

from __future__ import annotations

FORMAT = 1

# ruff: noqa: S608 - these texts are put together from constants

TABLES = f"""
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS builds(
    place TEXT NOT NULL, number INTEGER NOT NULL, withdrawn INTEGER NOT NULL,
    head TEXT NOT NULL, head_sum INTEGER NOT NULL, body_sum INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY(place, number));
CREATE TABLE IF NOT EXISTS leases(
    place TEXT PRIMARY KEY, token TEXT NOT NULL, owner TEXT NOT NULL, ttl REAL NOT NULL, beat INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempts(
    id INTEGER PRIMARY KEY, run TEXT NOT NULL, step_id TEXT NOT NULL, name TEXT NOT NULL, place TEXT NOT NULL,
    attempt INTEGER NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, started TEXT NOT NULL,
    seconds REAL NOT NULL);
CREATE TABLE IF NOT EXISTS runs(
    run TEXT PRIMARY KEY, started TEXT NOT NULL, ended TEXT NOT NULL, host TEXT NOT NULL,
    command TEXT NOT NULL, counts TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS runs_by_start ON runs(started);
INSERT OR IGNORE INTO meta VALUES('format', '{FORMAT}');
"""

FORMAT_OF_FILE = "SELECT value FROM meta WHERE key = 'format'"
HAS_TABLES = "SELECT count(*) FROM sqlite_schema WHERE name = 'runs_by_start'"

# A number that was forgotten keeps its row, emptied, so that it is never given out again.
STANDING, WITHDRAWN, FORGOTTEN = 0, 1, 2

_HEADS = "SELECT place, max(number), withdrawn, CAST(head AS BLOB), head_sum FROM builds"
LATEST = f"{_HEADS} WHERE place IN (SELECT value FROM json_each(?)) GROUP BY place"
PLACES = f"{_HEADS} WHERE place > ? GROUP BY place ORDER BY place LIMIT ?"
BODY = "SELECT CAST(body AS BLOB), body_sum FROM builds WHERE place = ? AND number = ? AND withdrawn < 2"
BUILDS = """SELECT number, withdrawn, CAST(head AS BLOB), head_sum, CAST(body AS BLOB), body_sum
    FROM builds WHERE place = ? ORDER BY number"""
NEWEST = "SELECT coalesce(max(number), 0) FROM builds WHERE place = ?"
INSERT_BUILD = "INSERT INTO builds VALUES(?, ?, 0, ?, ?, ?, ?)"
WITHDRAW = """UPDATE builds SET withdrawn = 1
    WHERE place = ?1 AND number = (SELECT max(number) FROM builds WHERE place = ?1) AND withdrawn = 0"""
WITHDRAW_FORMER = """UPDATE builds SET withdrawn = 1 WHERE place = ?1 AND number < ?2 AND withdrawn = 0
    AND EXISTS (SELECT 1 FROM leases WHERE place = ?1 AND token = ?3)"""
FORGET = """UPDATE builds SET withdrawn = 2, head = '', head_sum = 0, body_sum = 0, body = ''
    WHERE place = ? AND number IN (SELECT value FROM json_each(?))"""

CLAIM = """INSERT INTO leases VALUES(?1, ?2, ?3, ?4, 0) ON CONFLICT DO NOTHING
    RETURNING (SELECT coalesce(max(number), 0) FROM builds WHERE place = ?1)"""
LEASE = "SELECT token, owner, ttl, beat FROM leases WHERE place = ?"
TAKE_OVER = """UPDATE leases SET token = ?2, owner = ?3, ttl = ?4, beat = 0
    WHERE place = ?1 AND token = ?5 AND beat = ?6
    RETURNING (SELECT coalesce(max(number), 0) FROM builds WHERE place = ?1)"""
BEAT = "UPDATE leases SET beat = beat + 1 WHERE place = ? AND token = ?"
END_LEASE = "DELETE FROM leases WHERE place = ? AND token = ?"
LEASES = "SELECT place, owner FROM leases ORDER BY place"
OWNERS = "SELECT place, owner FROM leases WHERE place IN (SELECT value FROM json_each(?))"

_ATTEMPT = "run, step_id, name, place, attempt, outcome, reason, started, seconds"
INSERT_ATTEMPT = f"INSERT INTO attempts({_ATTEMPT}) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)"
ATTEMPTS = f"""SELECT {_ATTEMPT} FROM attempts
    WHERE (?1 IS NULL OR run = ?1) ORDER BY id DESC LIMIT ?2"""
ATTEMPTS_AT = f"""SELECT {_ATTEMPT} FROM attempts
    WHERE place = ?3 AND (?1 IS NULL OR run = ?1) ORDER BY id DESC LIMIT ?2"""
LAST_ATTEMPTS = f"""SELECT {_ATTEMPT} FROM attempts WHERE id IN
    (SELECT max(id) FROM attempts WHERE place IN (SELECT value FROM json_each(?)) GROUP BY place)"""
PLACES_OF = "SELECT DISTINCT place FROM attempts WHERE substr(step_id, 1, length(?1)) = ?1 ORDER BY place"
SECONDS = """SELECT name, seconds FROM attempts WHERE id IN (
    SELECT max(id) FROM attempts WHERE id > (SELECT max(id) FROM attempts) - 100000 AND outcome = 'done'
    AND name IN (SELECT value FROM json_each(?)) GROUP BY name)"""

INSERT_RUN = "INSERT OR REPLACE INTO runs VALUES(?, ?, ?, ?, ?, ?)"
RUNS = "SELECT run, started, ended, host, command, counts FROM runs ORDER BY started DESC, run DESC LIMIT ?"
