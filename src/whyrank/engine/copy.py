"""Copies of a store into another, in whatever database: memories, history, keys, files, notes and vectors."""

from __future__ import annotations

import json
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..config import load as settings
from ..errors import Conflict, SpaceMismatch, StoreError
from ..evaluation.pins import pins_in, take_pins
from ..formatting import counted
from ..ingest.extraction.ledger import names_of
from ..protocols import Changes
from ..search.confidence import notes_within
from ..types.memory import Notice, Scope
from .arguments import scopes_of
from .engine import check_store, open_store
from .open import count_memories
from .spaces import NOTE as SPACES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..ingest.embedding import Progress
    from ..protocols import FileRecord
    from ..storage.store import IndexedStore
    from ..storage.transfer import Digests, Mode, StoredPart, Taken, Unlike
    from ..types.memory import MemoryId
    from .arguments import Scopes

UNFINISHED = "copy"  # the note of a store that is being filled, with the source
FINISHED = "copied from"  # the note of a finished copy, with the source
PER_TRANSACTION = 2_000  # memories: a second at most, even over a network
_POSTINGS = "postings"  # the only keyword index of PostgreSQL
_SHOWN = 5  # ids and differences in an error
_BESIDE = ("", "-wal", "-shm", ".lock", ".ballast")  # suffixes of the files that opening a new store makes


@dataclass(frozen=True, slots=True)
class Copied:
    """Outcome of a copy; the contents of both stores were compared, by counts and hashes."""

    source: str
    destination: str
    memories: int = 0  # stored by this run
    replaced: int = 0  # of those, the ones an interrupted run had stored and the source has changed since
    unchanged: int = 0
    removed: int = 0
    unlike: tuple[Unlike, ...] = ()  # the destination holds them with other content, which stays
    history: int = 0
    keys: int = 0
    files: int = 0
    notes: int = 0
    pins: int = 0
    vectors: Mapping[str, int] = field(default_factory=dict)  # by space
    scopes: int = 0
    notices: tuple[Notice, ...] = ()

    @property
    def has_changed(self) -> bool:
        """Return whether anything was written into the destination."""
        told = (self.memories, self.removed, self.keys, self.files, self.notes, self.pins, *self.vectors.values())
        return any(told)


def copy_store(
    source: str | Path | settings.StoreUrl,
    destination: str | Path | settings.StoreUrl,
    *,
    scope: Scopes = None,
    merge: bool = False,
    workspace: str | Path | None = None,
    progress: Progress | None = None,
    per_transaction: int = PER_TRANSACTION,
) -> Copied:
    """Copy a store, or some scopes of it, into another: a file or a schema in PostgreSQL; nothing is embedded again.

    An interrupted copy continues when called again, and a finished one gets what is new in the source. Any other
    destination with memories is refused unless `merge` is given; memories that it holds with other content stay, and
    are reported. The source is only read.
    """
    here, there = _config(source, workspace), _config(destination, workspace)
    _check(here, there)
    scopes = frozenset(scopes_of(scope)) or None
    with _removed_if_empty(there.store), _opened(here) as original, _opened(there) as copy:
        _check_spaces(original, copy)
        tick: Progress = progress or (lambda done, total, label: None)
        done = Copier(original, copy, scopes, merge, tick, per_transaction).run()
    pins = [pin for pin in pins_in(here.pins) if scopes is None or {*pin.scopes} <= {*map(str, scopes)}]
    added = 0 if here.pins == there.pins or not pins else take_pins(there.pins, pins)
    return replace(done, pins=added)


def _config(store: str | Path | settings.StoreUrl, workspace: str | Path | None) -> settings.Config:
    given = {"store": settings.store_setting(store)}
    return settings.load(given, workspace=Path(workspace) if workspace is not None else None)


def _check(here: settings.Config, there: settings.Config) -> None:
    """Refuse, before anything is made, a source that is not there and a destination that is the source."""
    source, destination = here.store, there.store
    if isinstance(source, Path):
        check_store(source)
        if not source.exists():
            raise StoreError(f"there is no store at {source}", "name the store to copy from")
        is_same = isinstance(destination, Path) and destination.exists() and source.samefile(destination)
    else:
        from ..storage.store import PostgresStore

        if not PostgresStore.exists(source.url):
            raise StoreError(f"there is no store at {source}", "check the schema in the address (?schema=NAME)")
        is_same = not isinstance(destination, Path) and PostgresStore.is_same(source.url, destination.url)
    if is_same:
        raise Conflict(f"{source} and {destination} are the same store", "name another destination")


@contextmanager
def _opened(config: settings.Config) -> Iterator[IndexedStore]:
    keyword = config["keyword"] if isinstance(config.store, Path) else _POSTINGS
    store = open_store(config.store, keyword, config["cache.megabytes"], config["ballast.megabytes"])
    with closing(store):
        yield store


@contextmanager
def _removed_if_empty(destination: Path | settings.StoreUrl) -> Iterator[None]:
    """Remove the file that a failed copy has made, unless it holds memories: then the next run continues."""
    is_new = isinstance(destination, Path) and not destination.exists()
    try:
        yield
    except BaseException:
        if isinstance(destination, Path) and is_new and count_memories(destination) == 0:
            for suffix in _BESIDE:
                destination.with_name(destination.name + suffix).unlink(missing_ok=True)
        raise


def _check_spaces(source: IndexedStore, destination: IndexedStore) -> None:
    """Refuse stores in which the vectors of one space have different dimensions."""
    for space in source.spaces():
        sizes = source.dimensions(space), destination.dimensions(space)
        if None not in sizes and sizes[0] != sizes[1]:
            raise SpaceMismatch(
                f"the vectors of {space} have {sizes[0]} dimensions in the source, {sizes[1]} in the destination",
                "drop the space in one of them (`whyrank model drop`), or name another destination; nothing was copied",
            )


class CopyCounts(NamedTuple):
    """Sums over the parts of a copy."""

    memories: int = 0
    replaced: int = 0
    unchanged: int = 0
    history: int = 0
    keys: int = 0


class Copier:
    """One copy from a store into another."""

    def __init__(
        self,
        source: IndexedStore,
        destination: IndexedStore,
        scopes: frozenset[Scope] | None,
        merge: bool,
        tick: Progress,
        per_transaction: int,
    ) -> None:
        from ..storage.transfer import Digests

        self._source, self._destination = source, destination
        self._only, self._tick, self._most = scopes, tick, per_transaction
        self._made = Digests
        self._mode: Mode = self._chosen(merge)
        self._counts = CopyCounts()
        self._vectors: dict[str, int] = {}
        self._written: set[MemoryId] = set()
        self._unlike: dict[MemoryId, Unlike] = {}
        self._unlike_files: set[tuple[Scope, str]] = set()
        self._notices: list[Notice] = []
        self._removed = self._damaged = 0

    def _chosen(self, merge: bool) -> Mode:
        """Return the mode: an empty store, or one whose copy was interrupted, becomes a mirror."""
        held = self._destination.ids()
        if not held:
            return "mirror"
        if merge:
            return "merge"
        foreign = sorted({*held} - {*self._source.ids()})
        if foreign:
            named = ", ".join(foreign[:_SHOWN]) + (", …" if len(foreign) > _SHOWN else "")
            what = counted(len(foreign), "memory", "memories")
            raise Conflict(
                f"the destination holds {what} that the source does not hold ({named})",
                "name an empty destination, or pass --merge (`merge=True`) to keep both; nothing was copied",
            )
        mark = self._destination.note(UNFINISHED)
        if mark == self._mark:
            return "mirror"
        source = self._source.location
        if source not in (self._destination.note(FINISHED), json.loads(mark)["source"] if mark else None):
            raise Conflict(
                f"the destination holds {counted(len(held), 'memory', 'memories')}, and is no copy of {source}",
                "name an empty destination, or pass --merge (`merge=True`) to add what it lacks; nothing was copied",
            )
        return "add"

    @property
    def _mark(self) -> str:
        """Return the note of the destination while it is filled: from where, and with which scopes."""
        scopes = None if self._only is None else sorted(map(str, self._only))
        return json.dumps({"source": self._source.location, "scopes": scopes})

    def run(self) -> Copied:
        """Copy all parts, then the files and notes; read the copy and compare it with the source."""
        if self._mode == "mirror" and self._destination.note(UNFINISHED) != self._mark:
            self._destination.put_note(UNFINISHED, self._mark)
        scopes = self._scopes()
        digests, generations = self._pass(scopes)
        with self._source.view() as snapshot:
            if generations - {snapshot.generation}:
                scopes = self._scopes()
                digests = self._again(scopes)
            files = self._copy_files(digests)
            notes = self._copy_notes()
            self._copy_failures()
            if self._written:
                self._destination.settle(sorted(scopes))
            self._verify(digests, scopes)
        self._finish()
        self._remark()
        return Copied(
            self._source.location, self._destination.location, *self._counts[:3], self._removed,
            (*self._unlike.values(),), *self._counts[3:], files, notes, 0, self._vectors, len(scopes),
            (*self._notices,),
        )  # fmt: skip

    def _finish(self) -> None:
        """Record in the destination that it is a copy, and of which source, so that another run may add to it."""
        is_copy, source = self._mode != "merge", self._source.location
        notes = {FINISHED: source} if is_copy and self._destination.note(FINISHED) != source else {}
        gone = [UNFINISHED] if self._destination.note(UNFINISHED) is not None else []
        if notes or gone:
            self._destination.write(Changes(notes=notes, drop_notes=gone))

    def _scopes(self) -> frozenset[Scope]:
        """Return the scopes to copy; those asked for must hold something."""
        known = self._source.scopes()
        missing = sorted(map(str, (self._only or known) - known))
        if missing:
            raise StoreError(
                f"the source holds no memory of {', '.join(missing[:_SHOWN])}", "`whyrank status` lists its scopes"
            )
        return known if self._only is None else self._only

    # -- memories --------------------------------------------------------------------------------------------

    def _pass(self, scopes: frozenset[Scope], *, is_last: bool = False) -> tuple[Digests, set[int]]:
        """Copy all parts; return the digests of the source, and the generations that were read."""
        digests, generations = self._made(), set[int]()
        total, done = len(self._source.ids(scopes)), 0
        for part in self._source.parts(scopes, self._most):
            for some, mode in self._by_mode(part, is_last):
                self._count(some, self._destination.take_over(some, mode))
            digests.add(part, self._is_meant)
            generations.add(part.generation)
            self._damaged += part.damaged
            done += len(part.memories)
            self._tick(done, max(done, total), "")
        return digests, generations

    def _by_mode(self, part: StoredPart, is_last: bool) -> Sequence[tuple[StoredPart, Mode]]:
        """Split a part for the last pass: memories that this run has stored follow the source."""
        if self._mode == "mirror" or not is_last:
            return [(part, self._mode)]
        mine = part.only(lambda one: one.id in self._written)
        others = part.only(lambda one: one.id not in self._written)
        return [(mine, "mirror"), (others, self._mode)]

    def _count(self, part: StoredPart, taken: Taken) -> None:
        new = {*taken.new} - self._written
        self._written |= new
        memories, replaced, unchanged, history, keys = self._counts
        self._counts = CopyCounts(
            memories + len(new), replaced + len({*taken.replaced} & new), unchanged + taken.same,
            history + taken.history, keys + taken.keys,
        )  # fmt: skip
        for space, count in taken.vectors.items():
            self._vectors[space] = self._vectors.get(space, 0) + count
        unlike = {one.id: one for one in taken.unlike}
        self._unlike |= unlike
        self._unlike_files |= {
            (Scope.parse(one.scope), one.path) for one in part.memories if one.id in unlike and one.path
        }

    def _again(self, scopes: frozenset[Scope]) -> Digests:
        """Copy the changes that the source had during the copy, in one snapshot of it."""
        unchanged = self._counts.unchanged
        self._notices.append(Notice("source-changed", "the source changed during the copy; its changes were copied"))
        self._damaged = 0
        digests, _ = self._pass(scopes, is_last=True)
        self._counts = self._counts._replace(unchanged=unchanged)
        gone = sorted(self._written - {*self._source.ids()})
        if gone:
            self._destination.drop_copied(gone)
            self._written -= {*gone}
            self._removed += len(gone)
        return digests

    def _is_meant(self, identity: MemoryId) -> bool:
        """Return whether the copy of a memory must equal it in every respect."""
        return self._mode == "mirror" or identity in self._written

    # -- files and notes -------------------------------------------------------------------------------------

    def _of_scopes(self, files: Mapping[tuple[Scope, str], FileRecord]) -> dict[tuple[Scope, str], FileRecord]:
        return {key: file for key, file in files.items() if self._only is None or key[0] in self._only}

    def _copy_files(self, digests: Digests) -> int:
        """Copy the manifest; a file whose chunks are not all there is left for the next ingest."""
        wanted, known = self._of_scopes(self._source.files()), self._of_scopes(self._destination.files())
        is_mirror = self._mode == "mirror"
        missing = [
            file
            for key, file in wanted.items()
            if key not in self._unlike_files and (key not in known or (is_mirror and known[key] != file))
        ]
        gone = [*known.keys() - wanted.keys()] if is_mirror else []
        if missing or gone:
            self._destination.write(Changes(files=missing, forget_files=gone))
        for (scope, _), file in wanted.items() if is_mirror else ():
            digests.put(str(scope), "files", tuple(file))
        return len(missing)

    def _copy_notes(self) -> int:
        """Copy the notes: calibrations, roles of the spaces, records of extraction."""
        wanted, known = self._notes_of(self._source), self._notes_of(self._destination)
        is_mirror = self._mode == "mirror"
        new = {name: text for name, text in wanted.items() if name not in known or (is_mirror and known[name] != text)}
        gone = sorted(known.keys() - wanted.keys()) if is_mirror else []
        if new or gone:
            self._destination.write(Changes(notes=new, drop_notes=gone))
        if not is_mirror and wanted.get(SPACES) != known.get(SPACES, wanted.get(SPACES)):
            told = (
                "the destination keeps its own embedding model; `whyrank embed` there gives the copied memories vectors"
            )
            self._notices.append(Notice("spaces-differ", told))
        return len(new)

    def _notes_of(self, store: IndexedStore) -> dict[str, str]:
        notes = {name: text for name, text in store.notes().items() if name not in (UNFINISHED, FINISHED)}
        if self._only is None:
            return notes
        named = {SPACES, *notes_within(store, self._only)}
        for scope in self._only:
            named |= {*names_of(store, scope)}
        return {name: text for name, text in notes.items() if name in named}

    def _copy_failures(self) -> None:
        """Copy the reasons why texts have no vector yet, so that the copy tries them no sooner."""
        for space in self._source.spaces():
            known = {one.hash for one in self._destination.failures(space)}
            failures = {one.hash: one for one in self._source.failures(space, self._only) if one.hash not in known}
            if failures:
                self._destination.write(Changes(space=space, failures=failures))

    # -- verification ----------------------------------------------------------------------------------------

    def _verify(self, digests: Digests, scopes: frozenset[Scope]) -> None:
        """Read the copy and compare counts and hashes with those of the source, scope by scope."""
        is_mirror = self._mode == "mirror"
        if not (is_mirror or self._written):
            return
        found, done = self._made(), 0
        there = scopes if self._only else self._destination.scopes()
        total = len(self._destination.ids(there))
        for part in self._destination.parts(there, self._most):
            found.add(part, self._is_meant)
            done += len(part.memories)
            self._tick(done, max(done, total), "verifying")
        if is_mirror:
            for (scope, _), file in self._of_scopes(self._destination.files()).items():
                found.put(str(scope), "files", tuple(file))
        differences = digests.differences(found)
        if is_mirror and self._notes_of(self._source) != self._notes_of(self._destination):
            differences.append("the notes differ")
        if differences:
            more = f"; and {len(differences) - _SHOWN:,} more" if len(differences) > _SHOWN else ""
            raise StoreError(
                f"the copy differs from its source: {'; '.join(differences[:_SHOWN])}{more}",
                "make sure that nothing else writes into the destination, and copy again",
            )

    def _remark(self) -> None:
        """Add notices on what the copy lacks."""
        if self._damaged:
            lost = counted(self._damaged, "damaged vector was", "damaged vectors were")
            self._notices.append(
                Notice("vectors-damaged", f"{lost} not copied; `whyrank embed` in the copy creates them again")
            )
        with self._source.view() as here, self._destination.view() as there:
            if here.keyword.name != there.keyword.name:
                told = f"the source has the keyword index {here.keyword.name}, the copy {there.keyword.name}"
                self._notices.append(Notice("keyword-differs", f"{told}: keyword scores differ"))
