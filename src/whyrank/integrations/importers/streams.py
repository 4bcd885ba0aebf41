"""Foreign files, read piece by piece: lines, arrays of JSON, archives, and copies of databases."""

from __future__ import annotations

import codecs
import json
import re
import shutil
import sqlite3
import tempfile
import zipfile
import zlib
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

MOST_CHARACTERS = 64 * 1024 * 1024  # of one record: longer ones are no memory, and would be read into memory whole
MOST_OF_A_FILE = 512 * 1024 * 1024  # characters of a file that is one record, such as a chat with its embeddings
_PIECE = 1024 * 1024  # bytes read at once
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"\s*")


class Unreadable(Exception):
    """Raised where the rest of a foreign file cannot be read; what came before is whole."""


class _Reader:
    """Reads JSON values from a stream, one after the other."""

    def __init__(self, stream: IO[bytes], most: int = MOST_CHARACTERS) -> None:
        self._stream = stream
        self._most = most
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._has_ended = False

    def peek(self) -> str:
        """Return the next character that is no space, or nothing at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read():
                return ""

    def skip(self, wanted: str) -> bool:
        """Step over a character if it is the next; return whether it was."""
        is_next = self.peek() == wanted
        self._at += is_next
        return is_next

    def value(self) -> Any:
        """Return the next value."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if not self._read():
                    reason = "it ends in the middle of a record" if self._is_cut(error) else f"it is not JSON: {error}"
                    raise Unreadable(reason) from error
                continue
            if end < len(self._text) or not self._read():
                self._at = end
                return value

    def _is_cut(self, error: Exception) -> bool:
        """Return whether a value was cut off by the end of the file."""
        return isinstance(error, json.JSONDecodeError) and (
            error.pos >= len(self._text.rstrip()) or error.msg.startswith("Unterminated")
        )

    def _read(self) -> bool:
        """Read on; each time as much as is waiting, so that a long value is not parsed over and over."""
        if self._has_ended:
            return False
        waiting = len(self._text) - self._at
        if waiting > self._most:
            raise Unreadable(f"a record is longer than {self._most:,} characters")
        try:
            data = self._stream.read(max(_PIECE, waiting))
            text = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            raise Unreadable("it is not UTF-8") from error
        except (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
            raise Unreadable(f"it cannot be read: {error}") from error
        self._has_ended = not data
        self._text, self._at = self._text[self._at :] + text, 0
        return bool(data)


def elements(stream: IO[bytes], keys: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the elements of an array, or of those under `keys` of an object, with the key; other values whole.

    The elements of an array at the top have the key "".
    """
    reader = _Reader(stream)
    first = reader.peek()
    if first == "[":
        yield from _array(reader, "")
    elif first == "{":
        yield from _object(reader, keys)
    else:
        raise Unreadable("it holds neither a list nor an object of JSON" if first else "it is empty")
    if reader.peek():
        raise Unreadable("more follows after the end of its JSON")


def _object(reader: _Reader, keys: Collection[str]) -> Iterator[tuple[str, Any]]:
    reader.skip("{")
    while not reader.skip("}"):
        key = reader.value()
        if not isinstance(key, str) or not reader.skip(":"):
            raise Unreadable("it is not JSON: a key is missing")
        if key in keys and reader.peek() == "[":
            yield from _array(reader, key)
        else:
            yield key, reader.value()
        if not reader.skip(",") and reader.peek() != "}":
            raise Unreadable(_broken(reader))


def _array(reader: _Reader, key: str) -> Iterator[tuple[str, Any]]:
    reader.skip("[")
    while not reader.skip("]"):
        yield key, reader.value()
        if not reader.skip(",") and reader.peek() != "]":
            raise Unreadable(_broken(reader))


def _broken(reader: _Reader) -> str:
    return "it is not JSON: a comma is missing" if reader.peek() else "it ends in the middle of its list"


def first_value(file: Path) -> Any:
    """Return the first JSON value of a file: all of it, or the first line of a log."""
    with file.open("rb") as stream:
        return _Reader(stream, MOST_OF_A_FILE).value()


def check_file(file: Path, what: str) -> None:
    """Refuse a path that is not there or no regular file."""
    if not file.exists():
        raise ConfigError(f"there is no file {file}", f"name {what}")
    if not file.is_file():
        raise ConfigError(f"{file} is {'a folder' if file.is_dir() else 'no regular file'}", f"name {what}")


def parts(path: Path, stem: str, what: str) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the JSON files of an export by name: of an archive, of a folder, or the file itself.

    Members of an archive are read from it and never unpacked; links in a folder are not followed.
    """
    if path.is_dir():
        files = sorted(one for one in path.glob(f"{stem}*.json") if one.is_file() and not one.is_symlink())
        if not files:
            raise ConfigError(f"there is no {stem}.json in {path}", f"name {what}")
        for file in files:
            with file.open("rb") as stream:
                yield file.name, stream
        return
    check_file(path, what)
    if not zipfile.is_zipfile(path):
        with path.open("rb") as stream:
            yield path.name, stream
        return
    with _archive(path) as archive:
        wanted = re.compile(rf"(?:.*/)?{stem}[^/]*\.json")
        names = sorted(one for one in archive.namelist() if wanted.fullmatch(one))
        if not names:
            raise ConfigError(f"there is no {stem}.json in {path}", f"name {what}")
        for name in names:
            try:
                member = archive.open(name)
            except (RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
                raise ConfigError(
                    f"{name} in {path} cannot be read: {error}", "unpack it, and name the file"
                ) from error
            with member:
                yield name, member


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise ConfigError(f"{path} is damaged: {error}", "export it again") from error


def others(path: Path, stem: str) -> list[str]:
    """Return the names of the other JSON files of an export, which are not read."""
    if path.is_dir():
        names = [one.name for one in path.glob("*.json")]
    elif path.is_file() and zipfile.is_zipfile(path):
        with _archive(path) as archive:
            names = [one for one in archive.namelist() if one.endswith(".json")]
    else:
        names = []
    return sorted(one for one in names if not one.rpartition("/")[2].startswith(stem))


_COPY_ATTEMPTS = 5
_BESIDE = ("", "-wal")  # changes that are not in the database yet


@contextmanager
def database(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a private copy of a database of another program, which may be in use and is never touched."""
    check_file(file, "an SQLite database")
    with tempfile.TemporaryDirectory(prefix="whyrank-import-") as folder:
        copy = Path(folder) / "copy.db"
        _copy(file, copy)
        with closing(sqlite3.connect(copy, check_same_thread=False)) as connection:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda data: data.decode("utf-8", errors="replace")
            try:
                [[found]] = connection.execute("PRAGMA quick_check(1)").fetchall()
            except sqlite3.DatabaseError as error:
                raise ConfigError(f"{file} is no SQLite database: {error}", "check the file") from error
            if found != "ok":
                raise ConfigError(f"{file} is damaged: {found}", "repair it with the program that wrote it")
            yield connection


def _copy(file: Path, copy: Path) -> None:
    for _ in range(_COPY_ATTEMPTS):
        before = _state(file)
        for end in _BESIDE:
            beside = file.with_name(file.name + end)
            if beside.is_file():
                shutil.copyfile(beside, copy.with_name(copy.name + end))
            else:
                copy.with_name(copy.name + end).unlink(missing_ok=True)
        if _state(file) == before:
            return
    raise ConfigError(f"{file} is being written to", "stop the program that writes it, or try again in a moment")


def _state(file: Path) -> list[tuple[int, int] | None]:
    stats = [one.stat() if one.is_file() else None for one in (file.with_name(file.name + end) for end in _BESIDE)]
    return [None if stat is None else (stat.st_size, stat.st_mtime_ns) for stat in stats]


def columns(connection: sqlite3.Connection, table: str) -> list[str]:
    """Return the columns of a table; none if there is no such table."""
    return [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
