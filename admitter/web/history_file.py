"""The file of a history: what a restarted page begins with. SQLite, since it survives what files go through.

One process has it open at a time. A file that is damaged, or is another program's, is put aside: the page
goes on without it, and begins a new one.
"""

import sqlite3
import zlib
from array import array
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from admitter.web.admissions import Changes, Ending, Eviction, Span
from admitter.web.samples import Key, Row
from admitter.web.use_over_time import Usage

APPLICATION: Final = 0x41_64_6D_48
"""In the header of each file, so that no other program's file is taken for a history."""
VERSION: Final = 2
"""Of version 1 admissions have no earlier use: it is read, and is of this version from then on."""
MOST_PAGES: Final = 65_536
"""Of 4 KiB each; a day of 1,000 queues and 20,000 Workloads takes a tenth of it."""
MOST_ASIDE: Final = 3
"""So many files are put aside beside it; then it is not written any more, since nothing is deleted."""
_BEGIN: Final = f"""
CREATE TABLE layouts (id INTEGER PRIMARY KEY, keys BLOB NOT NULL);
CREATE TABLE samples (step REAL NOT NULL, time REAL NOT NULL, layout INTEGER NOT NULL, amounts BLOB NOT NULL);
CREATE UNIQUE INDEX samples_by_time ON samples (step, time);
CREATE TABLE spans (uid TEXT, admitted REAL, ended REAL, body BLOB NOT NULL, PRIMARY KEY (uid, admitted));
CREATE INDEX spans_by_end ON spans (ended);
CREATE TABLE evictions (uid TEXT, time REAL, body BLOB NOT NULL, PRIMARY KEY (uid, time));
CREATE INDEX evictions_by_time ON evictions (time);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
"""


class InUseError(Exception):
    """Another process has the file open."""


class UnusableError(Exception):
    """There can be no file: the message says why."""


class _DamagedError(Exception):
    """The file is not what this version writes."""


@dataclass(slots=True)
class Saved:
    """What a file has."""

    rows: list[Row] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    aside: str = ""  # what was put aside, and why, in words; empty if nothing was


class HistoryFile:
    """An open file, which no other process has. Not thread-safe."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._layouts: dict[tuple[Key, ...], int] = {}
        self._next = 1

    @classmethod
    def open(cls, path: Path) -> tuple["HistoryFile", Saved]:
        """Open a file and read it; one that can't be read is put aside, and a new one is begun.

        Raises:
            InUseError: another process has it open.
            UnusableError: it can be neither read nor begun.
        """
        try:
            return cls._opened(path)
        except _DamagedError as error:
            kept = _put_aside(path, error)
            try:
                file, found = cls._opened(path)
            except _DamagedError as again:
                raise UnusableError(str(again)) from again
            found.aside = f"it is kept as {kept.name}, and a new one is begun: {error}"
            return file, found

    @classmethod
    def _opened(cls, path: Path) -> tuple["HistoryFile", Saved]:
        connection = None
        try:
            connection = sqlite3.connect(path, timeout=0.0, isolation_level=None, check_same_thread=False)
            file = cls(connection)
            file._begin()
            return file, file._read()
        except (sqlite3.OperationalError, _DamagedError, sqlite3.DatabaseError) as error:
            if connection is not None:
                connection.close()
            raise _meant(error) from error

    def _begin(self) -> None:
        """Take the file for this process alone, and make its tables if it is new."""
        run = self._connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")
        run("PRAGMA journal_size_limit = 4194304")
        run(f"PRAGMA max_page_count = {MOST_PAGES}")
        run("BEGIN EXCLUSIVE")
        (tables,) = run("SELECT count(*) FROM sqlite_master").fetchone()
        (mark,) = self._pragma("application_id")
        if not tables and not mark:
            run("ROLLBACK")
            self._connection.executescript("BEGIN;" + _BEGIN + "COMMIT;")
            return
        run("ROLLBACK")
        if mark != APPLICATION:
            raise _DamagedError("it is the file of another program")
        (version,) = self._pragma("user_version")
        if not 1 <= version <= VERSION:
            raise _DamagedError(f"another version of Admitter has written it ({version})")
        (state,) = self._pragma("quick_check(1)")
        if state != "ok":
            raise _DamagedError(f"it is damaged: {state}")
        if version != VERSION:
            run(f"PRAGMA user_version = {VERSION}")

    def _pragma(self, name: str) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self._connection.execute(f"PRAGMA {name}").fetchone()
        return found

    def _read(self) -> Saved:
        run = self._connection.execute
        try:
            layouts = {
                number: tuple((str(q), str(f), str(r)) for q, f, r in orjson.loads(keys))
                for number, keys in run("SELECT id, keys FROM layouts")
            }
            rows = [
                _row(step, time, layouts[layout], amounts)
                for step, time, layout, amounts in run(
                    "SELECT step, time, layout, amounts FROM samples ORDER BY time"
                )
            ]
            spans = [_span(body) for (body,) in run("SELECT body FROM spans")]
            evictions = [Eviction(*orjson.loads(body)) for (body,) in run("SELECT body FROM evictions")]
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise _DamagedError(f"it is damaged: {error}") from error
        self._layouts = {keys: number for number, keys in layouts.items()}
        self._next = max(layouts, default=0) + 1
        return Saved(rows, spans, evictions)

    def replace(self, rows: Iterable[Row], spans: Iterable[Span], evictions: Iterable[Eviction]) -> None:
        """Write all that is known, in place of what the file has.

        Raises:
            UnusableError: it can't be written; it has what it had before.
        """
        all_of = ("DELETE FROM samples", "DELETE FROM spans", "DELETE FROM evictions")
        self._transaction(rows, spans, evictions, [(statement, ()) for statement in all_of])

    def save(
        self,
        rows: Iterable[Row],
        new: Changes,
        kept: dict[float, tuple[float, float]],
        oldest: float,
    ) -> None:
        """Write what is new. `kept`: the first and last time of the samples that stay, by step.

        What was before `oldest` goes, and what was dropped.

        Raises:
            UnusableError: it can't be written; it has what it had before.
        """
        old: list[tuple[str, tuple[object, ...]]] = [
            ("DELETE FROM spans WHERE ended < ?", (oldest,)),
            ("DELETE FROM evictions WHERE time < ?", (oldest,)),
            *(("DELETE FROM spans WHERE uid = ? AND admitted = ?", key) for key in new.spans_gone),
            *(("DELETE FROM evictions WHERE uid = ? AND time = ?", key) for key in new.evictions_gone),
        ]
        for step, (first, last) in kept.items():
            old.append(("DELETE FROM samples WHERE step = ? AND (time < ? OR time > ?)", (step, first, last)))
        self._transaction(rows, new.spans, new.evictions, old)

    def _transaction(
        self,
        rows: Iterable[Row],
        spans: Iterable[Span],
        evictions: Iterable[Eviction],
        first: Iterable[tuple[str, tuple[object, ...]]],
    ) -> None:
        run, many = self._connection.execute, self._connection.executemany
        try:
            run("BEGIN IMMEDIATE")
            for statement, values in first:
                run(statement, values)
            for row in rows:
                made = (row.step, row.time, self._layout(row), zlib.compress(row.values.tobytes(), 1))
                run("INSERT OR REPLACE INTO samples VALUES (?, ?, ?, ?)", made)
            many(
                "INSERT OR REPLACE INTO spans VALUES (?, ?, ?, ?)",
                ((each.uid, each.admitted, each.ended, orjson.dumps(astuple(each))) for each in spans),
            )
            many(
                "INSERT OR REPLACE INTO evictions VALUES (?, ?, ?)",
                ((each.uid, each.time, orjson.dumps(astuple(each))) for each in evictions),
            )
            run("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                run("ROLLBACK")
            raise UnusableError(f"it can't be written: {error}") from error

    def _layout(self, row: Row) -> int:
        """The number of a row's keys, which the file has or gets; those of no row go."""
        number = self._layouts.get(row.keys)
        if number is None:
            number, self._next = self._next, self._next + 1
            run = self._connection.execute
            run("DELETE FROM layouts WHERE id NOT IN (SELECT layout FROM samples)")
            run("INSERT INTO layouts VALUES (?, ?)", (number, orjson.dumps(row.keys)))
            left = {each for (each,) in run("SELECT id FROM layouts")}
            self._layouts = {keys: each for keys, each in self._layouts.items() if each in left}
            self._layouts[row.keys] = number
        return number

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()


def _row(step: float, time: float, keys: tuple[Key, ...], amounts: bytes) -> Row:
    values = array("d")
    values.frombytes(zlib.decompress(amounts))
    if len(values) != len(keys):
        raise ValueError("a sample has more or fewer numbers than keys")
    return Row(float(time), float(step), keys, values)


def _span(body: bytes) -> Span:
    fields = orjson.loads(body)
    names = list(Span.__dataclass_fields__)
    given = dict(zip(names, fields, strict=False))  # version 1 has no earlier use
    given["flavors"] = tuple(given["flavors"])
    given["usage"] = _usage(given["usage"])
    given["earlier"] = tuple((float(end), _usage(usage)) for end, usage in given.get("earlier", ()))
    given["how"] = Ending(given["how"])
    return Span(**given)


def _usage(listed: Iterable[tuple[Any, Any, Any]]) -> Usage:
    return tuple((str(flavor), str(resource), float(amount)) for flavor, resource, amount in listed)


def _meant(error: Exception) -> Exception:
    """What an error of SQLite means for the page."""
    if isinstance(error, _DamagedError):
        return error
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return InUseError("another process has it open")
    if code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
        return _DamagedError(f"it is damaged, or another program's: {error}")
    if isinstance(error, sqlite3.OperationalError) and code == sqlite3.SQLITE_ERROR:
        return _DamagedError(f"it is damaged: {error}")  # such as a table that is not there
    return UnusableError(f"it can't be used: {error}")


def _put_aside(path: Path, why: Exception) -> Path:
    """Give a file, and what SQLite has beside it, another name; nothing is deleted or written over."""
    for number in range(1, MOST_ASIDE + 1):
        kept = path.with_name(f"{path.name}.aside-{number}")
        if not kept.exists():
            try:
                path.rename(kept)
                for end in ("-wal", "-shm", "-journal"):
                    beside = path.with_name(path.name + end)
                    if beside.exists():
                        beside.rename(kept.with_name(kept.name + end))
            except OSError as error:
                raise UnusableError(f"{why}; and it can't be renamed: {error}") from error
            return kept
    raise UnusableError(f"{why}; {MOST_ASIDE} such files are kept beside it already: remove them")
