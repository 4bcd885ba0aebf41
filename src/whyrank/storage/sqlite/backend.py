"""The SQLite file beneath the index: schema, ballast, purge, and what `status` shows of it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from glob import escape
from typing import TYPE_CHECKING, TypeVar

from ...errors import StoreError, StoreFull
from ..backend import Description
from . import purge
from .database import LIBRARY, Database, tighten, translated
from .disk import BALLAST_MEGABYTES, MEGABYTE, Ballast, free_bytes
from .indexes import prepare_index
from .schema import prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ...types.memory import Notice
    from ..backend import Channel, Scrub
    from .database import Connection

Done = TypeVar("Done")
STORE_FOLDER = ".whyrank"  # of a workspace, made by us
_BALLAST_SECONDS = 60.0  # between two checks of its size
_STEPS_PER_LOOK = 20_000  # of SQLite's virtual machine between two checks of the deadline, a millisecond or less


class SqliteBackend:
    """One SQLite file, with a ballast beside it that lets deletes through on a full disk."""

    def __init__(self, path: Path, ballast_megabytes: int = BALLAST_MEGABYTES) -> None:
        self.database = Database(path)
        self.location = str(path)
        self.read_only = self.database.read_only
        self.reading = self.searching = self.database.reading
        self.writing = self.database.writing
        self.connection = self.database.connection
        self.channel: Channel | None = None  # a file tells nobody that it has changed
        self.close = self.database.close
        self._ballast = Ballast(self.database.file, ballast_megabytes * MEGABYTE)
        self._ballast_kept = 0.0  # time of its last check

    @property
    def is_current(self) -> bool:
        """Return whether the file that was opened is still the one under its name."""
        return self.database.is_current

    def prepare(self, keyword: str) -> None:
        """Migrate the file to the newest schema, with the keyword index of this name, and make it private."""
        path = self.database.path
        if self.read_only and not path.exists():
            raise StoreError(f"{path} does not exist and cannot be created", "check the permissions of the folder")
        with translated(path):
            prepare(self.database)
            prepare_index(self.database, keyword)
        if not self.read_only:
            self._tighten()

    def _tighten(self) -> None:
        """Restrict files that an earlier whyrank has made world-readable to their owner."""
        file = self.database.file
        beside = file.parent.glob(f"{escape(file.name)}[-.]*")
        for one in (file, *(other for other in beside if other.suffix != ".pins")):
            tighten(one, 0o600)
        if file.parent.name == STORE_FOLDER:
            tighten(file.parent, 0o700)

    @contextmanager
    def aborting(self, connection: Connection, moment: float) -> Iterator[None]:
        """Abort statements inside the block after a deadline."""
        connection.set_progress_handler(lambda: time.monotonic() >= moment, _STEPS_PER_LOOK)
        try:
            with translated(self.database.path):
                yield
        finally:
            connection.set_progress_handler(None, 0)

    def attempt(self, work: Callable[[], Done], *, frees: bool = False) -> Done:
        """Run an operation; one that frees space (opening, deleting) has the ballast released on a full disk."""
        try:
            return work()
        except StoreFull:
            if not (frees and self._ballast.release()):
                raise
            self._ballast_kept = 0.0  # it is made again soon
            return work()

    def notices(self, connection: Connection) -> tuple[Notice, ...]:
        """Return nothing: a file has no replicas."""
        return ()

    def keep(self) -> None:
        """Check the size of the ballast, at most once a minute."""
        now = time.monotonic()
        if now > self._ballast_kept + _BALLAST_SECONDS and not self.read_only:
            self._ballast_kept = now
            self._ballast.keep()

    def purge(self, scrub: Scrub) -> tuple[str, ...]:
        """Erase all bytes of deleted memories from the file and its log; return messages on what may remain."""
        return purge.purge(self.database, scrub)

    def describe(self) -> Description:
        """Return the schema, the sizes of file, free space and ballast, and the library that reads the file."""
        with self.reading() as (connection, *_):
            schema, pages, size = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("user_version", "page_count", "page_size")
            )
        return Description(schema, LIBRARY, pages * size, free_bytes(self.database.file), self._ballast.size)
