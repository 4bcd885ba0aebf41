"""The log of recalls: a bounded file of JSON lines beside the store, which a failure never breaks."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from ..config.load import Config

RECALLS_SUFFIX = ".recalls"  # JSON lines; not .jsonl, because conversation logs have that suffix and are ingested
MOST_BYTES = 1024 * 1024  # about 1,500 recalls; half of it is dropped when it is full
MOST_SESSION = 200  # characters of the name of a session
_MOST_LINE = 64 * 1024  # bytes: a longer line is none of ours
# A link, or a pipe, in the place of the log came with somebody else's workspace.
_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class Citation(NamedTuple):
    """A memory that was given to an agent: its id, its place, and how sure it is that it is relevant."""

    id: str
    citation: str  # path#L5-L7, or the id of a fact
    confidence: float
    score: float
    digest: str  # of the text that was given, so that a changed one is given again


class OmittedMemory(NamedTuple):
    """A memory that matched and was not given, with the reason."""

    id: str
    citation: str
    reason: str


class RecallEntry(NamedTuple):
    """One line of the log; without a question it is the start of a session anew, or a failure of a hook."""

    id: str = ""
    time: float = 0.0
    session: str = ""
    scopes: tuple[str, ...] = ()
    host: str = ""
    query: str = ""
    verdict: str = ""
    reason: str = ""  # why nothing was given
    budget: int = 0
    tokens: int = 0
    milliseconds: float = 0.0
    given: tuple[Citation, ...] = ()
    left_out: tuple[OmittedMemory, ...] = ()
    is_reset: bool = False


def log_file(config: Config) -> Path:
    """Return the log of a store: beside it, or in the user's cache where there is no such folder."""
    beside = config.store_file.with_suffix(RECALLS_SUFFIX)
    return beside if beside.parent.is_dir() else config.cache / "hooks.recalls"


class RecallLog:
    """The recalls of one store, the latest last; writing never fails, and never follows a link."""

    def __init__(self, file: Path, *, keeps: bool = True) -> None:
        self.file = file
        self._keeps = keeps
        self._unwritten: list[RecallEntry] = []  # so that a session without a file repeats nothing either

    def add(self, entry: RecallEntry) -> None:
        """Append one entry; where that is not possible, it is kept as long as this process lives."""
        if not self._keeps or not _appended(self.file, _line(entry)):
            self._unwritten = [*self._unwritten[-99:], entry]

    def entries(self, holding: str = "") -> Iterator[RecallEntry]:
        """Yield the entries, oldest first; those whose line holds a text, if one is given."""
        for line in _lines(self.file):
            if holding in line and (entry := _entry(line)) is not None:
                yield entry
        yield from self._unwritten

    def shown(self, session: str, scopes: Sequence[str]) -> set[tuple[str, str]]:
        """Return the memories, with the digests of their texts, that a session with these scopes was given."""
        given: set[tuple[str, str]] = set()
        for entry in self.entries(json.dumps(session)) if session else ():
            if entry.session != session:
                continue
            if entry.is_reset:
                given.clear()
            elif entry.scopes == tuple(scopes):  # what one caller was given tells another nothing
                given |= {(one.id, one.digest) for one in entry.given}
        return given

    def erase(self, scope: str) -> bool:
        """Take out the recalls that saw a scope, and return whether the log no longer holds any."""
        return self._keep(lambda entry: not _sees(entry.scopes, scope))

    def erase_memories(self, ids: Collection[str]) -> bool:
        """Take out the recalls that named some memories, and return whether the log no longer holds any."""
        gone = {*ids}

        def is_kept(entry: RecallEntry) -> bool:
            return gone.isdisjoint([*(one.id for one in entry.given), *(one.id for one in entry.left_out)])

        return self._keep(is_kept)

    def _keep(self, is_kept: Callable[[RecallEntry], bool]) -> bool:
        self._unwritten = [*filter(is_kept, self._unwritten)]
        held = _lines(self.file)
        kept = [line for line in held if (entry := _entry(line)) is None or is_kept(entry)]
        return len(kept) == len(held) or _rewritten(self.file, kept)


def _sees(scopes: Sequence[str], scope: str) -> bool:
    """Return whether a recall of these scopes, patterns among them, saw a scope; every one sees what is global."""
    below = [one[:-1] for one in scopes if one.endswith("/*")]
    return scope == "global" or scope in scopes or f"{scope}/".startswith(tuple(below))


def _line(entry: RecallEntry) -> str:
    data = {name: value for name, value in entry._asdict().items() if value not in ("", 0, 0.0, (), False)}
    for name in ("given", "left_out"):
        if name in data:
            data[name] = [one._asdict() for one in data[name]]
    return json.dumps(data)  # in ASCII, so that no text of a user ends a line


def _entry(line: str) -> RecallEntry | None:
    """Read a line; one that was cut by a crash, or written by another version, is no entry."""
    try:
        data: dict[str, Any] = json.loads(line)
        given = tuple(Citation(**one) for one in data.pop("given", ()))
        left_out = tuple(OmittedMemory(**one) for one in data.pop("left_out", ()))
        scopes = tuple(data.pop("scopes", ()))
        return RecallEntry(**data, scopes=scopes, given=given, left_out=left_out)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _lines(file: Path) -> list[str]:
    try:
        number = os.open(file, os.O_RDONLY | _SAFELY)
        with os.fdopen(number, "rb") as opened:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                return []
            held = opened.read(2 * MOST_BYTES)
    except (OSError, ValueError):
        return []
    return [line for line in held.decode("ascii", "replace").splitlines() if len(line) < _MOST_LINE]


def _appended(file: Path, line: str) -> bool:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _SAFELY, 0o600)
        try:
            about = os.fstat(number)
            if not stat.S_ISREG(about.st_mode):
                return False
            os.write(number, f"{line}\n".encode("ascii"))  # one call: lines of two processes do not mix
        finally:
            os.close(number)
    except (OSError, ValueError):
        return False
    if about.st_size > MOST_BYTES:
        lines = _lines(file)
        _rewritten(file, lines[len(lines) // 2 :])
    return True


def _rewritten(file: Path, lines: Sequence[str]) -> bool:
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        number = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFELY, 0o600)
        with os.fdopen(number, "wb") as out:
            out.write("".join(f"{line}\n" for line in lines).encode("ascii", "replace"))
        os.replace(fresh, file)
    except (OSError, ValueError):
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        return False
    return True
