"""The store of sweeps: a directory of files named by their content, and an index that can be rebuilt from them.

    STORE/store.json             the format of the store
    STORE/shards/HASH.parquet    results: a row for each run, each table a list of rows in it
    STORE/plans/HASH.parquet     a plan: a row for each run of a sweep, with the parameters of the point
    STORE/damaged/               files whose content does not match their name
    STORE/index.sqlite           the shard of each run

A run is in one shard, even with several writers: adding runs is a transaction of the index, which allows one writer at
a time, first indexes files that other writers have left, and then adds new runs. A file gets its name only when it is
complete and on the disk. So a killed writer leaves either nothing or a shard that the next writer indexes.
"""

import json
import signal
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import file_digest, sha256
from io import BytesIO
from pathlib import Path
from typing import Self

import polars as pl

from vcpulab._files import atomic
from vcpulab.errors import RequestError
from vcpulab.sweeps.work import FORMAT, KEYS, TABLES, engine

_MARK = "store.json"
_INDEX = "index.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS files (name TEXT PRIMARY KEY, engine TEXT, size INTEGER, changed INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, file TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS runs_by_file ON runs (file);
"""
_WAIT_S = 60
"""Maximum time that a writer waits for another writer."""
_AGAIN_S = 0.01
"""Interval of new attempts where SQLite itself does not wait."""


class Store:
    """Runs on disk. Several processes of one machine may use it at once."""

    def __init__(self, folder: Path, index: sqlite3.Connection) -> None:
        """Use `open`."""
        self.folder = folder
        self.notes: list[str] = []
        """Notes for the user about damaged and foreign files."""
        self._index = index

    @classmethod
    def open(cls, folder: Path, *, create: bool = False) -> Self:
        """The store in a directory.

        Args:
            folder: the directory.
            create: make a new store if the directory has none.

        Raises:
            RequestError: the directory holds no store, or a store of another format.
            OSError: a file cannot be read or written.
        """
        _check(folder, create=create)
        store = cls(folder, _connect(folder, create=create))
        store.refresh()
        return store

    def close(self) -> None:
        """Closes the index."""
        self._index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- reading ----

    def done(self, runs: Iterable[str]) -> set[str]:
        """The runs, of those given, that the store has."""
        listed = json.dumps(list(runs))
        return {run for (run,) in self._index.execute(f"SELECT run FROM runs WHERE run IN ({_LISTED})", (listed,))}

    def shards(self, runs: Iterable[str] | None = None) -> list[Path]:
        """The files of these runs, or of all runs of this engine."""
        if runs is None:
            query = "SELECT name FROM files WHERE engine = ? AND name IN (SELECT file FROM runs) ORDER BY name"
            rows = self._index.execute(query, (engine(),))
        else:
            query = f"SELECT DISTINCT file FROM runs WHERE run IN ({_LISTED}) ORDER BY file"
            rows = self._index.execute(query, (json.dumps(list(runs)),))
        return [self.folder / name for (name,) in rows]

    def plans(self) -> list[tuple[str, int, Path]]:
        """The plans: the name of the sweep, the version of the plan, and its file; sorted by name and version."""
        rows = self._index.execute("SELECT name FROM files WHERE name LIKE 'plans/%'")
        files = [self.folder / name for (name,) in rows]
        described = [(_metadata(file), file) for file in files]
        return sorted(
            (metadata["sweep"], int(metadata["version"]), file)
            for metadata, file in described
            if metadata.get("format") == FORMAT
        )

    def count(self) -> int:
        """Number of runs of this engine."""
        query = "SELECT count(*) FROM runs JOIN files ON name = file WHERE engine = ?"
        return int(self._index.execute(query, (engine(),)).fetchone()[0])

    def foreign(self) -> dict[str, int]:
        """Number of runs of each other engine: they are kept, and not used."""
        query = "SELECT engine, count(*) FROM runs JOIN files ON name = file WHERE engine != ? GROUP BY engine"
        return dict(self._index.execute(query, (engine(),)).fetchall())

    def refresh(self) -> None:
        """Indexes new files in the directory, and removes missing files from the index."""
        with self._writing():
            pass

    def verify(self, files: Iterable[Path] | None = None) -> int:
        """Reads some files, or all, and moves files whose content does not match their name to `damaged`.

        Returns:
            The number of moved files; the store no longer has their runs.
        """
        listed = [*self._files()] if files is None else list(files)
        bad = [file for file in listed if not _is_whole(file)]
        if bad:
            with self._writing():
                for file in bad:
                    self._set_aside(file)
        return len(bad)

    # ---- adding ----

    def add(self, frame: pl.DataFrame) -> None:
        """Stores runs (rows as in `work.Measured`); runs that the store has already are not changed.

        Raises:
            OSError: the runs cannot be written; none of them is stored.
        """
        with self._writing():
            fresh = frame.filter(~pl.col("run_id").is_in(self.done(frame["run_id"])))
            if fresh.height:
                self._take_in(self._write("shards", fresh, {"engine": engine()}))

    def add_plan(self, sweep: str, frame: pl.DataFrame) -> None:
        """Stores the plan of a sweep. Its earlier plans are kept: they have the parameters of runs.

        Raises:
            OSError: the plan cannot be written.
        """
        with self._writing():
            before = [(version, file) for name, version, file in self.plans() if name == sweep]
            version, newest = before[-1] if before else (0, None)
            if newest is None or not (_is_whole(newest) and pl.read_parquet(newest).equals(frame)):
                self._take_in(self._write("plans", frame, {"sweep": sweep, "version": str(version + 1)}))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction of a single writer, with an index of all files."""
        with _uninterrupted():
            try:
                self._index.execute("BEGIN IMMEDIATE")
                try:
                    self._catch_up()
                    yield
                    self._index.execute("COMMIT")
                except BaseException:
                    if self._index.in_transaction:
                        self._index.execute("ROLLBACK")
                    raise
            except sqlite3.OperationalError as error:
                raise OSError(f"{self.folder / _INDEX}: {error}") from None

    def _catch_up(self) -> None:
        indexed = {name: (size, changed) for name, size, changed in self._index.execute(_KNOWN)}
        for file in self._files():
            name, state = self._name(file), file.stat()
            if indexed.pop(name, None) == (state.st_size, state.st_mtime_ns):
                continue
            if not _is_whole(file):
                self._set_aside(file)
            elif file.parent.name == "shards" and _metadata(file).get("format") == FORMAT and not _has_tables(file):
                self._set_aside(file, "its columns are not those of runs")
            else:
                self._forget(file)
                self._take_in(file)
        for name in indexed:
            self._forget(self.folder / name)
        for kind in _KINDS:
            for left in (self.folder / kind).glob(".*"):
                left.unlink(missing_ok=True)  # of a writer that was killed: no other one is here now

    def _take_in(self, file: Path) -> None:
        """Adds an undamaged file to the index."""
        metadata = _metadata(file)
        made_by = metadata.get("engine")
        if metadata.get("format") != FORMAT:
            self._note(f"{file}: of another format (`{metadata.get('format')}`): kept, not used")
            made_by = None
        elif file.parent.name == "shards":
            runs = pl.read_parquet(file, columns=["run_id"])["run_id"]
            twice = self.done(runs)
            if twice:
                # A file from elsewhere may have runs that the store has already.
                rest = pl.read_parquet(file).filter(~pl.col("run_id").is_in(twice))
                replaced = self._write("shards", rest, {"engine": str(made_by)}) if rest.height else None
                file.unlink()
                if replaced is None:
                    return
                file, runs = replaced, rest["run_id"]
            name = self._name(file)
            self._index.executemany("INSERT INTO runs VALUES (?, ?)", ((run, name) for run in runs))
        state = file.stat()
        row = (self._name(file), made_by, state.st_size, state.st_mtime_ns)
        self._index.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", row)

    def _write(self, kind: str, frame: pl.DataFrame, metadata: dict[str, str]) -> Path:
        """A new file, named by its content, written atomically."""
        buffer = BytesIO()
        frame.write_parquet(buffer, metadata={"format": FORMAT, **metadata})
        file = self.folder / kind / f"{sha256(buffer.getbuffer()).hexdigest()}.parquet"
        atomic.write(file, buffer.getvalue())
        return file

    def _set_aside(self, file: Path, reason: str = "its content is not what its name says") -> None:
        damaged = self.folder / "damaged"
        damaged.mkdir(exist_ok=True)
        runs = self._index.execute("SELECT count(*) FROM runs WHERE file = ?", (self._name(file),)).fetchone()[0]
        self._forget(file)
        if file.exists():
            file.replace(damaged / file.name)
        lost = f"; its {runs} runs will be done again" if runs else ""
        self._note(f"{file}: damaged ({reason}): moved to {damaged}{lost}")

    def _forget(self, file: Path) -> None:
        self._index.execute("DELETE FROM runs WHERE file = ?", (self._name(file),))
        self._index.execute("DELETE FROM files WHERE name = ?", (self._name(file),))

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _name(self, file: Path) -> str:
        return file.relative_to(self.folder).as_posix()

    def _files(self) -> Iterator[Path]:
        for kind in _KINDS:
            yield from sorted((self.folder / kind).glob("[!.]*.parquet"))


_KINDS = ("shards", "plans")
_LISTED = "SELECT value FROM json_each(?)"
_KNOWN = "SELECT name, size, changed FROM files"


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delays Ctrl-C until the end of a transaction."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed:
            signal.raise_signal(signal.SIGINT)


def _metadata(file: Path) -> dict[str, str]:
    """The metadata of a Parquet file; empty: it is not a file of a store."""
    try:
        return pl.read_parquet_metadata(file)
    except (pl.exceptions.PolarsError, OSError):
        return {}


def _has_tables(file: Path) -> bool:
    """Whether a file has the columns of runs, and each table as a list of rows."""
    try:
        schema = pl.read_parquet_schema(file)
    except (pl.exceptions.PolarsError, OSError):
        return False
    nested = [schema.get(name) for name in TABLES]
    lists = all(isinstance(kind, pl.List) and isinstance(kind.inner, pl.Struct) for kind in nested)
    return lists and all(schema.get(name) == kind for name, kind in KEYS.items())


def _is_whole(file: Path) -> bool:
    """Whether the content of a file matches its name."""
    try:
        with file.open("rb") as content:
            return file_digest(content, "sha256").hexdigest() == file.stem
    except FileNotFoundError:
        return False


def _check(folder: Path, *, create: bool) -> None:
    """Makes sure that a directory is a store.

    Raises:
        RequestError: the directory is something else.
    """
    mark = folder / _MARK
    if folder.exists() and not folder.is_dir():
        raise RequestError(f"{folder}: not a directory")
    if not mark.exists():
        if not create:
            raise RequestError(f"{folder}: no store of sweeps is there", hint="vcpulab sweep makes one")
        held = folder.exists() and any(not entry.name.startswith(".") for entry in folder.iterdir())
        # Another process may be making the store: it writes the mark first.
        if held and not mark.exists():
            raise RequestError(f"{folder}: holds other files than a store of sweeps", hint="a new directory")
        folder.mkdir(parents=True, exist_ok=True)
        atomic.write(mark, json.dumps({"format": FORMAT}).encode() + b"\n")
    try:
        content = json.loads(mark.read_bytes())
        written = content["format"]
    except (ValueError, KeyError, TypeError):
        raise RequestError(f"{mark}: damaged\n  hint: its content is {json.dumps({'format': FORMAT})}") from None
    if written != FORMAT:
        raise RequestError(f"{folder}: written by another version, format `{written}`; allowed: `{FORMAT}`")
    for kind in _KINDS:
        (folder / kind).mkdir(exist_ok=True)


def _connect(folder: Path, *, create: bool) -> sqlite3.Connection:
    """The index; a damaged index is rebuilt, and readers of a read-only store use one in memory."""
    file = folder / _INDEX
    try:
        return _opened(file)
    except sqlite3.OperationalError as error:
        if create:
            raise OSError(f"{file}: {error}") from None
        return _opened(":memory:")
    except sqlite3.DatabaseError:
        # Everything in the index is in the files, too.
        for left in (file, file.with_name(f"{_INDEX}-wal"), file.with_name(f"{_INDEX}-shm")):
            left.unlink(missing_ok=True)
        return _opened(file)


def _opened(file: Path | str) -> sqlite3.Connection:
    index = sqlite3.connect(file, timeout=_WAIT_S, isolation_level=None)
    try:
        _write_ahead(index)
        # A power failure may lose the index, which is rebuilt from the files.
        index.execute("PRAGMA synchronous = NORMAL")
        index.executescript(_SCHEMA)
        # A test whether the index can be written.
        index.execute("BEGIN IMMEDIATE")
        index.execute("ROLLBACK")
        (state,) = index.execute("PRAGMA quick_check(1)").fetchone()
        if state != "ok":
            raise sqlite3.DatabaseError(state)  # noqa: TRY301 - as SQLite itself would
    except BaseException:
        index.close()
        raise
    return index


def _write_ahead(index: sqlite3.Connection) -> None:
    """Allows reading during writes. SQLite itself does not wait for another process that opens a new index."""
    until = time.monotonic() + _WAIT_S
    while True:
        try:
            index.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(_AGAIN_S)
        else:
            return
