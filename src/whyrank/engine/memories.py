"""Read, count, forget and export memories."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from ..analysis.normalize import clean
from ..errors import ConfigError, NotFound, StoreError
from ..formatting import counted, which
from ..protocols import UNREADABLE, Changes, Recall, SortingKey
from ..search.confidence import notes_about
from ..search.explain import OF_A_SCOPE
from ..search.searcher import altered_notices
from ..types.memory import GLOBAL, REFRESHED, Former, Memory, MemoryId, Notice, Order, Scope, expiry, visible
from ..types.query import Where
from .arguments import (
    MAX_LISTED,
    ListFilters,
    Scopes,
    check_order,
    check_page,
    filters_of,
    identity_of,
    scope_of,
    scopes_of,
)
from .maintenance import Rereading

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, MutableSequence, Sequence

    from ..ingest.embedding import Progress
    from ..storage.sqlite.backups import Backup


_MEMORIES_PER_TRANSACTION = 256  # so that a reader or another writer never waits long
_RECORDS_AT_ONCE = 500


class Forgotten(NamedTuple):
    """Number of forgotten memories, and after a purge the places that may still hold traces of them."""

    memories: int
    remains: tuple[str, ...] = ()


class Living(Rereading):
    """Reading, expiry and deletion of memories."""

    def get(self, identity: MemoryId, *, scope: Scopes = None) -> Memory:
        """Return one memory; one outside the visible scopes counts as missing."""
        return self._all_of([identity], scope)[0]

    def _all_of(self, identities: Sequence[MemoryId], scope: Scopes) -> list[Memory]:
        wanted = [identity_of(identity) for identity in identities]
        wanted = list(dict.fromkeys(wanted))
        found = self._store.get(wanted, visible(scopes_of(scope)))
        for identity in wanted:
            if identity not in found:
                raise NotFound(
                    f"there is no memory {identity!r}", f"`whyrank list` shows the ids there are; {OF_A_SCOPE}"
                )
        return [found[identity] for identity in wanted]

    def saying(self, text: str, *, scope: Scopes = None) -> Memory | None:
        """Return the fact with the same text in these scopes alone, in their order; a living one is preferred."""
        now = self._clock()
        wanted, owners = clean(text).text, scopes_of(scope) or [GLOBAL]
        found = [one for owner in owners for one in self._store.with_text(wanted, owner)]
        return max(found, key=lambda one: Where(frozenset({one.scope}), now=now).allows(one), default=None)

    def meant(self, identity: MemoryId, *, scope: Scopes = None) -> str | None:
        """Return the visible path or id nearest to one that does not exist, if one is near."""
        from ..search.explain import meant

        where = Where(visible(scopes_of(scope)), include_superseded=True, include_expired=True, now=self._clock())
        return meant(self._store, where, identity_of(identity))

    def list(
        self,
        *,
        limit: int = 50,
        offset: int = 0,
        sort: Order = "place",
        after: SortingKey | None = None,
        **filters: Any,
    ) -> list[Memory]:
        """Return memories by file and line, or the latest, most important or most recalled first.

        With `after`, the `sorting_key` of a memory in that order, the list continues behind it.
        """
        check_page(limit, offset)
        check_order(sort)
        where = filters_of(ListFilters, filters).where(self._clock())
        return self._store.browse(where, min(limit, MAX_LISTED), min(offset, MAX_LISTED), sort, after)

    def unlisted(self, shown: Iterable[Memory] = (), **filters: Any) -> tuple[Notice, ...]:
        """Return notices on what a list by these filters cannot show: facts in rows damaged before indexing.

        Also on memories left out because the tags of the filter were damaged; and on those of `shown` that could not be
        read whole.
        """
        where = filters_of(ListFilters, filters).where(self._clock())
        asked_nothing = self._store.keyword((), where, 1)
        lost = tuple(notice for notice in asked_nothing.notices if notice.code == UNREADABLE)
        listed = [*shown]
        read = self._store.fetch([memory.id for memory in listed], where.scopes)
        gone = {memory.id for memory in listed} - read.memories.keys()
        damaged = len(read.mended) + len(gone)
        shown_in_part = (_shown_in_part(damaged),) if damaged else ()
        return (*lost, *shown_in_part, *altered_notices(len(read.altered)))

    def text_notices(self, shown: Iterable[Memory], *, scope: Scopes = None) -> tuple[Notice, ...]:
        """Return notices on memories whose texts are not as they were stored."""
        read = self._store.fetch([memory.id for memory in shown], visible(scopes_of(scope)))
        return tuple(altered_notices(len(read.altered)))

    def history(self, identity: MemoryId, *, scope: Scopes = None) -> Sequence[Former]:
        """Return the former states of a memory, one for each change, the latest last."""
        memory = self.get(identity, scope=scope)
        return self._store.history([memory.id], visible(scopes_of(scope))).get(memory.id, [])

    def replaced(self, identity: MemoryId, *, scope: Scopes = None) -> Sequence[Memory]:
        """Return the chain of memories that a memory superseded, the latest first."""
        chain: list[Memory] = []
        sought = self.get(identity, scope=scope).supersedes
        while sought is not None and sought not in {memory.id for memory in chain}:
            found = self._store.get([sought], visible(scopes_of(scope))).get(sought)
            if found is None:
                break
            chain.append(found)
            sought = found.supersedes
        return chain

    def recalled(self, *identities: MemoryId, scope: Scopes = None) -> int:
        """Count a recall of memories, all or none; extend the expiry of those whose decay class allows it."""
        now = self._clock()
        memories = self._all_of(identities, scope)
        self._store.write(Changes(recalled=[Recall(one.id, now, _put_off(one, now)) for one in memories]))
        return len(memories)

    def forget(self, *identities: MemoryId, scope: Scopes = None, purge: bool = False) -> Forgotten:
        """Delete memories by their exact ids, all or none; with `purge` no byte of them stays."""
        from ..ingest.extraction.ledger import without_traces

        memories = self._all_of(identities, scope)
        notes = without_traces(self._store, memories) if purge else {}
        done = self._removed(
            len(memories), Changes(remove=[memory.id for memory in memories], notes=notes, purge=purge)
        )
        return done._replace(remains=(*done.remains, *_in_files(memories)))

    def forget_scope(self, scope: str | Scope, *, purge: bool = False) -> Forgotten:
        """Delete all of one scope in one transaction; with `purge` no byte of it stays."""
        from ..ingest.extraction.ledger import names_of

        owner = scope_of(scope)
        held = self._store.status("", frozenset({owner})).memories  # what waits to be indexed among them
        notes = [*notes_about(self._store, owner), *names_of(self._store, owner)]
        done = self._removed(held, Changes(clear=[owner], drop_notes=notes, purge=purge))
        return done._replace(remains=(*done.remains, *self._named_still(owner))) if purge else done

    def _named_still(self, owner: Scope) -> Iterator[str]:
        """Yield the places that still hold the name of a scope after its content was deleted."""
        if owner != GLOBAL:
            yield f"the store still lists {owner} among the scopes it has known, by its name alone"
        if self._config.pins.is_file() and str(owner) in self._config.pins.read_text(
            encoding="utf-8", errors="replace"
        ):
            yield f"{self._config.pins} holds pins of {owner}: `whyrank pin --remove` takes them out"

    def _removed(self, count: int, changes: Changes) -> Forgotten:
        self._store.write(changes)
        return Forgotten(count, self._store.purge() if changes.purge else ())

    def prune(
        self,
        *,
        scope: Scopes = None,
        every_scope: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Sequence[Memory]:
        """Delete and return the expired memories that the scope sees, or those of every scope."""
        now = self._clock()
        scopes = self._every_scope() if every_scope else None
        where = Where(
            visible(scopes_of(scope)) if scopes is None else scopes,
            include_superseded=True, only_expired=True, now=now,
        )  # fmt: skip
        past = self._store.browse(where, MAX_LISTED)
        expired = [one for one in past if one.expires is not None and one.expires <= now]  # others just hold no more
        for start in range(0, 0 if dry_run else len(expired), _MEMORIES_PER_TRANSACTION):
            part = expired[start : start + _MEMORIES_PER_TRANSACTION]
            self._store.write(Changes(prune={memory.id: now for memory in part}))
            if progress is not None:
                progress(start + len(part), len(expired), "")
        return expired

    def export(
        self,
        out: str | Path | TextIO,
        *,
        scope: str | Scope = GLOBAL,
        every_scope: bool = False,
        progress: Progress | None = None,
        notices: MutableSequence[Notice] | None = None,
    ) -> int:
        """Export one scope, or every scope, as JSON lines to a file (atomically) or a stream.

        Return the number of memories. Damaged memories are written as far as they can be read, and reported in
        `notices`.
        """
        from .export import write_lines, written_whole

        said: MutableSequence[Notice] = [] if notices is None else notices
        # Closed before the store is, also where the reader of a stream has gone.
        owners = sorted(self._every_scope()) if every_scope else [scope_of(scope)]
        tick: Progress = progress or (lambda done, total, label: None)
        with closing(self._everything(owners, every_scope, tick, said)) as records:
            if not isinstance(out, str | Path):
                return write_lines(out, records)
            self._refuse_own(Path(out))
            with written_whole(Path(out)) as file:
                return write_lines(file, records)

    def backup(self, path: str | Path, *, progress: Progress | None = None) -> Backup:
        """Copy a snapshot of the whole store into one file, which is verified before it is put in place.

        Others read and write meanwhile. An earlier backup is replaced; any other file is not.
        """
        from ..storage.sqlite.backups import write_backup

        if not self._config.store.is_file():
            raise StoreError("only a store in a file can be backed up", "open the store by its path")
        self._refuse_own(Path(path))
        return write_backup(self._config.store, Path(path), progress or (lambda *_: None))

    def _refuse_own(self, file: Path) -> None:
        """Refuse to overwrite a file of the store with an export or a backup of it."""
        store = self._config.store
        own = {store.with_name(store.name + end) for end in ("", "-wal", "-shm", ".lock")} | {self._config.pins}
        if file.absolute().resolve() in {path.resolve() for path in own}:
            raise ConfigError(f"{file} belongs to the store itself", "name another file")

    def _everything(
        self, owners: Sequence[Scope], is_all: bool, progress: Progress, notices: MutableSequence[Notice]
    ) -> Generator[dict[str, Any]]:
        """Yield all records of some scopes in one snapshot, and the pins of these scopes alone."""
        from .export import pin_record

        with self._store.reading():
            for owner in owners:
                yield from self._records(owner, progress, notices)
        try:
            pins = self._pinboard().pins(None)
        except ConfigError as error:
            notices.append(Notice("pins-unreadable", f"pins are not in the export: {error.message}; {error.hint}"))
            return
        for pin in pins:
            of = pin.scopes or (str(GLOBAL),)
            if is_all or of == (str(owners[0]),):
                yield pin_record(pin, " ".join(of))

    def _records(self, owner: Scope, progress: Progress, notices: MutableSequence[Notice]) -> Generator[dict[str, Any]]:
        from .export import Record, as_record

        only = frozenset({owner})
        where = Where(only, include_superseded=True, include_expired=True, now=self._clock())
        with self._store.reading():
            total, done, damaged, lost = self._store.statistics((), only).total, 0, 0, list[Former]()
            files, keys = self._store.manifest(owner), dict[MemoryId, dict[str, str]]()
            for key, written in self._store.keys(owner).items():
                keys.setdefault(written.memory, {})[key] = written.content
            altered = 0
            for part in _portions(self._store.each(where)):
                told = self._store.history([memory.id for memory in part], only)
                for memory in part:
                    is_of_file = memory.kind == "chunk" and memory.source is not None
                    file = files.get(memory.source.path) if memory.source is not None and is_of_file else None
                    past = told.get(memory.id, ())
                    yield as_record(Record(memory, past, keys.get(memory.id, {}), file))
                lost += (former for formers in told.values() for former in formers if not former.was)
                read = self._store.fetch([memory.id for memory in part], only)
                done, damaged, altered = done + len(part), damaged + len(read.mended), altered + len(read.altered)
                progress(done, max(total, done), "")  # what waits to be indexed is in no statistics
        if damaged:
            notices.append(_shown_in_part(damaged))
        notices.extend((*altered_notices(altered), *lost_past(lost)))


def _shown_in_part(count: int) -> Notice:
    """Return the notice on the number of damaged memories in a list or an export."""
    they = f"{counted(count, 'memory', 'memories')} of these {which(count, 'was', 'were')} damaged"
    told = f"{they}, and {which(count, 'is', 'are')} here as far as {which(count, 'it', 'they')} can be read"
    return Notice(UNREADABLE, f"{told}; `whyrank doctor` names what is damaged, and `--repair` mends it")


def lost_past(history: Iterable[Former]) -> tuple[Notice, ...]:
    """Return a notice on the number of changes whose former values are lost."""
    lost = sum(not former.was for former in history)
    if not lost:
        return ()
    told = f"what stood there before {counted(lost, 'change')} was damaged and cannot be read"
    return (Notice(UNREADABLE, f"{told}; a backup made before may hold it (`whyrank doctor` counts what is lost)"),)


def _put_off(memory: Memory, now: float) -> float | None:
    """Return the new expiry of a recalled memory; None if it was given, is over, or is not renewed by use."""
    is_over = memory.expires is not None and memory.expires <= now
    if memory.decay not in REFRESHED or memory.expires_given or is_over:
        return None
    return expiry(memory.decay, now)


def _portions(memories: Iterator[Memory]) -> Iterator[Sequence[Memory]]:
    part: list[Memory] = []
    for memory in memories:
        part.append(memory)
        if len(part) == _RECORDS_AT_ONCE:
            yield part
            part = []
    if part:
        yield part


def _in_files(memories: Iterable[Memory]) -> Iterator[str]:
    """Yield the files that still hold forgotten memories."""
    sources = (memory.source for memory in memories if memory.kind == "chunk")
    for path in dict.fromkeys(source.path for source in sources if source is not None and source.path):
        yield f"{path} still holds it: take it out there, or it is back when the file has changed and is read again"
