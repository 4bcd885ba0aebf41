"""Check and repair a store: its file, its terms, its vectors; notices on what is stale or damaged."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ..analysis.document import READER_VERSION
from ..analysis.names import probe_for
from ..protocols import ALTERED, LEASE_SECONDS, UNREADABLE
from ..types.memory import Notice, Scope
from ..types.query import Where

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..config.load import StoreUrl
    from ..ingest.embedding import Progress
    from ..protocols import Store
    from ..storage.sqlite.check import Checkup, Compared, Finding
    from .models import Models
    from .spaces import IndexWriter
    from .worker import Worker


LOSSES = frozenset({UNREADABLE, ALTERED})  # what no repair can make anew
_MEND = "they are reindexed, some with each write, all of them by `whyrank doctor --repair`"


class Maintenance:
    """Integrity check and repair of a store, and reindexing of memories that an earlier analyzer read."""

    def __init__(
        self,
        store: Store,
        file: Path | StoreUrl,
        writer: IndexWriter,
        models: Models,
        clock: Callable[[], float],
        make_worker: Callable[[float], Worker],
    ) -> None:
        self._store = store
        self._file = file
        self._writer = writer
        self._models = models
        self._clock = clock
        self._make_worker = make_worker
        self._met: tuple[Notice, ...] = ()

    @property
    def is_current(self) -> bool:
        """Check that the opened store is still the file under its name; if not, every call is refused."""
        return self._store.is_current

    def stale_count(self, scopes: frozenset[Scope] | None = None) -> int:
        """Count the memories of some scopes, or of all, that an earlier analyzer indexed."""
        readers = self._store.readers(self._store.scopes() if scopes is None else scopes)
        return sum(count for reader, count in readers.items() if reader < READER_VERSION)

    def stale_notices(self, scopes: frozenset[Scope] | None = None) -> tuple[Notice, ...]:
        """Return notices on memories, of some or all scopes, that another analyzer version indexed."""
        return stale_notices(self._store.readers(self._store.scopes() if scopes is None else scopes))

    def reindex(self, progress: Progress | None = None) -> int:
        """Reindex all memories that an earlier analyzer indexed; return their number.

        An interrupted run continues when called again.
        """
        return self._writer.reindex(progress)

    def worker(self, *, lease_seconds: float = LEASE_SECONDS) -> Worker:
        """Return a worker of the store, which embeds, prunes, merges and reindexes; any number of them share it.

        After `lease_seconds` others embed the texts that a worker took and did not finish.
        """
        return self._make_worker(lease_seconds)

    def record_damage(self, met: Sequence[Notice]) -> None:
        """Record damage found by a search, until a repair or until a search finds other damage."""
        self._met = tuple(met)

    def damage_notices(self) -> tuple[Notice, ...]:
        """Return notices of known damage without a full check: rows set aside, and damage of the last search."""
        where = Where(self._store.scopes(), now=self._clock())
        aside = self._store.named(probe_for("?"), where, 1).notices
        return tuple(one for one in dict.fromkeys((*aside, *self._met)) if one.code in LOSSES)

    def discard_damaged(self) -> tuple[str, ...]:
        """Delete the memories that were set aside because they cannot be read; return their ids."""
        from ..storage.sqlite.repair import discard_damaged

        file = self._file
        return discard_damaged(file) if isinstance(file, Path) and file.is_file() else ()

    def check(self, *, repair: bool = False, deep: bool = False, progress: Progress | None = None) -> Checkup:
        """Check the file, terms and vectors of the store; with `repair`, repair them.

        Derived data is rebuilt. Damaged memories are reported, never dropped silently; where the file had to be
        rewritten, the old file is kept beside the new one. A `deep` check derives everything again and compares it with
        the stored data.
        """
        from ..storage.sqlite.check import Checkup

        if not isinstance(self._file, Path):
            return self._check_server(self._file.url, repair, deep, progress)
        findings, kept, compared = looked_at(self._file, repair, progress, deep=deep)
        self._met = () if repair else self._met
        inside = self.check_derived(repair, progress) if is_usable(findings) else Checkup()
        room = room_for(self._file)
        return inside._replace(findings=findings, kept=kept, compared=compared, free_bytes=room)

    def _check_server(self, url: str, repair: bool, deep: bool, progress: Progress | None) -> Checkup:
        """Check a store on a server; a repair works in place, and what it cannot make anew is left as it is."""
        from ..storage.postgres.backend import PostgresBackend
        from ..storage.postgres.check import check_server, compare_server, repair_differing, repair_server
        from ..storage.sqlite.reanalysis import compare_snapshot
        from ..storage.sqlite.repair import repair_in_place

        tick = progress or (lambda *_: None)
        with closing(PostgresBackend(url)) as backend:
            findings = check_server(backend.database, tick)
            if repair:
                repair_server(backend.database, findings, repair_in_place)
                self._met = ()
            inside = self.check_derived(repair, progress)
            differing, compared = compare_server(backend.database, tick, compare_snapshot) if deep else ([], None)
            findings += differing
            if differing and repair:
                repair_differing(backend.database, differing)
                again = self.check_derived(repair, progress)
                inside = again._replace(
                    read_anew=again.read_anew + inside.read_anew, embedded=again.embedded + inside.embedded
                )
            if repair:
                left = check_server(backend.database, tick)
                left += compare_server(backend.database, tick, compare_snapshot)[0] if differing else []
                still = {finding.code if finding.code != "server" else finding.message for finding in left}
                findings = [
                    one._replace(mended=(one.code if one.code != "server" else one.message) not in still)
                    for one in findings
                ]
        return inside._replace(findings=tuple(findings), compared=compared)

    def check_derived(self, repair: bool, progress: Progress | None) -> Checkup:
        """Check for terms and vectors that an earlier version made; with `repair`, make them again."""
        from ..storage.sqlite.check import Checkup

        read = self.reindex(progress) if repair else 0
        embedded = self._models.reembed(progress) + self._models.embed(progress).embedded if repair else 0
        return Checkup(
            looked_inside=True,
            old_words=self.stale_count(),
            waiting=self._models.backlog().waiting,
            read_anew=read,
            embedded=embedded,
            has_earlier_vectors=self._models.has_earlier_vectors(),
        )


def looked_at(
    store: Path | StoreUrl, repair: bool, progress: Progress | None, *, deep: bool = False
) -> tuple[tuple[Finding, ...], str, Compared | None]:
    """Return the findings on the file of a store, the path of the kept old file, and the deep comparison.

    The path is empty unless the file was rewritten. A file that is not there has no findings.
    """
    from ..storage.sqlite.check import check_disk, check_store
    from ..storage.sqlite.repair import DeepCheck, repair_store

    if not isinstance(store, Path) or not store.is_file():
        return (), "", None
    tick = progress or (lambda *_: None)
    findings, kept = repair_store(store, tick) if repair else (check_store(store, tick), "")
    if not deep or not is_usable(findings):
        return (*findings, *check_disk(store)), kept, None
    from ..storage.sqlite.reanalysis import compare

    differing, compared = compare(store, tick)
    if differing and repair:
        differing, again = repair_store(store, tick, DeepCheck(differing, lambda path, tick: compare(path, tick)[0]))
        kept = again or kept
    return (*findings, *differing, *check_disk(store)), kept, compared


def room_for(store: Path) -> int | None:
    """Return how many bytes are left on the disk of a store; None for one that is in no file."""
    from ..storage.sqlite.disk import free_bytes

    return free_bytes(store) if store.is_file() else None


def is_usable(findings: Sequence[Finding]) -> bool:
    """Check that a store may be opened and written to: writing over damaged pages may damage more."""
    return not any(
        finding.code in ("schema", "pages", "hopeless", "unusable") and not finding.mended for finding in findings
    )


def stale_notices(readers: Mapping[int, int]) -> tuple[Notice, ...]:
    """Return notices on memories that another analyzer version indexed, from their counts by version."""
    old = sum(count for reader, count in readers.items() if reader < READER_VERSION)
    newer = sum(count for reader, count in readers.items() if reader > READER_VERSION)
    return (*([_old(old)] if old else []), *([_newer(newer)] if newer else []))


def _old(count: int) -> Notice:
    message = (
        f"{count} of these memories were indexed by an earlier whyrank, so joined words, acronyms, symbols "
        f"and languages may be missed in them; {_MEND}"
    )
    return Notice("old-words", message)


def _newer(count: int) -> Notice:
    message = (
        f"{count} of these memories were indexed by a later whyrank than this one, which may miss some of "
        f"their words; upgrade whyrank here"
    )
    return Notice("newer-words", message)
