"""Ingest: read files ahead, plan the changes, apply them file by file."""

from __future__ import annotations

import hashlib
import os
import time
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain, islice
from threading import Thread
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from ..analysis.document import READER_VERSION, entries_for, id_for, occurrences
from ..errors import IngestError
from ..protocols import Changes, Embedder, FileRecord, Store
from .documents import CUT_VERSION, ChunkSize, memories_in
from .embedding import Clock, Desk, EmbeddedTexts, Progress
from .walk import Content, FileEntry, SkippedPath, name_in, read, seen_from, walk

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ..types.memory import Memory, MemoryId, Scope

Item = TypeVar("Item")
_LOOK_SECONDS = 0.2  # a signal that comes at the moment a wait begins is seen when it ends
# Size of a batch, and so of a transaction, when there are more to come. Ids and hashes fall anywhere in
# their indexes, whose pages every transaction writes anew; one of so many takes less than a tenth of a second.
MEMORIES_PER_BATCH = 512


class _Begun(NamedTuple):
    changes: Changes
    texts: Mapping[str, str]
    given: Future[EmbeddedTexts]

    def answer(self) -> EmbeddedTexts:
        """Wait for the output of the embedder, interruptibly."""
        while True:
            with suppress(TimeoutError):
                return self.given.result(_LOOK_SECONDS)


class _Ahead:
    """Embedding ahead of the writes, by one thread at a time."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._last: _Begun | None = None
        self._is_over = False  # it has failed once

    def begin(self, changes: Changes) -> _Begun:
        """Let the texts be embedded that have no vector, unless those before them have the same."""
        under_way: Mapping[str, str] = {}
        if self._last is not None:
            under_way = self._last.texts
            self._is_over = self._is_over or self._last.answer().error is not None
        lack = self._desk.lack(changes)
        asked = {} if self._is_over or self._desk.put_off(lack.failures) else lack.texts
        texts = {text_hash: text for text_hash, text in asked.items() if text_hash not in under_way}
        self._last = _Begun(changes, texts, _asked(self._desk.embedder, texts))
        return self._last

    def settled(self, begun: _Begun) -> Changes:
        """Return changes with the vectors made for them."""
        done = self._desk.looked_into(begun.texts, begun.answer())
        return replace(begun.changes, space=self._desk.space, vectors=done.vectors, failures=done.failures)


def _asked(embedder: Embedder, texts: Mapping[str, str]) -> Future[EmbeddedTexts]:
    """Embed in a daemon thread, which an interrupt does not wait for: a provider may be slow."""
    given: Future[EmbeddedTexts] = Future()

    def ask() -> None:
        try:
            parts = [([*texts], embedder.documents([*texts.values()]))] if texts else []
        except Exception as error:  # it is handled before the batch is written
            given.set_result(EmbeddedTexts((), error))
        except BaseException as error:
            given.set_exception(error)
        else:
            given.set_result(EmbeddedTexts(parts))

    Thread(target=ask, name="whyrank-embedding", daemon=True).start()
    return given


def embedded_ahead(desk: Desk | None, batches: Iterable[Changes]) -> Generator[Changes, None, None]:
    """Yield batches in order, with the vectors of their texts; a small single one is left to the writer.

    If a further batch cannot be made, those that were made come first, and then the error.
    """
    if desk is not None and desk.defers:
        desk = None
    failures: list[Exception] = []
    waiting = to_the_first_failure(batches, failures)
    begun = [*islice(waiting, 1)]
    is_large = any(len(changes.put) >= MEMORIES_PER_BATCH for changes in begun)
    if desk is not None and not is_large:  # as one that will be alone
        begun += islice(waiting, 1)
    if desk is not None and (is_large or len(begun) > 1):
        yield from _with_vectors(_Ahead(desk), chain(begun, waiting))
    else:
        yield from chain(begun, waiting)
    for error in failures:
        raise error


def to_the_first_failure(items: Iterable[Item], failures: list[Exception]) -> Iterator[Item]:
    """Yield items until one raises; the error goes to `failures`, to be raised after the others."""
    try:
        yield from items
    except Exception as error:
        failures.append(error)


def _with_vectors(ahead: _Ahead, batches: Iterable[Changes]) -> Iterator[Changes]:
    before: _Begun | None = None
    for changes in batches:
        begun = ahead.begin(changes)  # when those before are embedded: one batch at a time
        if before is not None:
            yield ahead.settled(before)
        before = begun
    assert before is not None
    yield ahead.settled(before)


Action = Literal["new", "changed", "renamed", "touched", "deleted"]

_NANOSECONDS = 1e9
_FILES_PLANNED_TOGETHER, _BYTES_PLANNED_TOGETHER = 64, 1_000_000
# Minimum size of the last batch: fewer go with those before, or they would be a segment only to be merged.
_LEFT_FOR_THE_LAST = MEMORIES_PER_BATCH // 2
_WAITING = "failed; the words can be searched meanwhile: {}"
_PASSED_OVER = "the file exists, but its folder now skips it, so its memories are removed; name the file to ingest it"


@dataclass(frozen=True)
class Settings:
    """Settings of reading files."""

    workspace: Path
    language: str
    size: ChunkSize
    max_bytes: int
    defers: bool = False  # workers embed


class FilePlan(NamedTuple):
    """Planned change of one file."""

    path: str
    action: Action
    record: FileRecord | None = None
    memories: tuple[Memory, ...] = ()
    remove: tuple[MemoryId, ...] = ()
    renamed_from: str = ""
    moved: Mapping[MemoryId, MemoryId] = {}


@dataclass
class Report:
    """Report of an ingest, or of a dry run."""

    dry_run: bool = False
    files: dict[Action, int] = field(default_factory=dict)
    unchanged: int = 0
    chunks: int = 0
    removed: int = 0
    embedded: int = 0
    without_vector: int = 0
    skipped: list[SkippedPath] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    plans: list[tuple[str, Action]] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)  # old paths of renamed files, by the new ones

    @property
    def failed(self) -> list[SkippedPath]:
        """Return the files that should have been readable and were not."""
        return [skipped for skipped in self.skipped if skipped.failed]

    def count(self, plan: FilePlan) -> None:
        """Add one file's plan to the figures."""
        self.files[plan.action] = self.files.get(plan.action, 0) + 1
        self.plans.append((plan.path, plan.action))
        if plan.renamed_from:
            self.renamed[plan.path] = plan.renamed_from
        self.chunks += len(plan.memories)
        if plan.remove:
            self.removed += len(set(plan.remove) - {memory.id for memory in plan.memories})


@dataclass(frozen=True)
class Ingestor:
    """Keeps a scope of the store in step with files."""

    store: Store
    embedder: Embedder | None
    settings: Settings
    progress: Progress = lambda done, total, label: None
    clock: Clock = time.time

    def ingest(self, paths: Sequence[Path], scope: Scope, *, dry_run: bool = False) -> Report:
        """Bring the store up to date with the files at or below these paths."""
        roots = [seen_from(self.settings.workspace, self._existing(path, scope)) for path in paths]
        report = Report(dry_run=dry_run)
        found = self._find(roots, report)
        if report.failed and not found:
            first = report.failed[0]
            raise IngestError(f"{first.path}: {first.reason}", "check the path and its permissions")
        manifest = self.store.manifest(scope)
        deleted = self._deleted(roots, scope, found, manifest, report.failed)
        report.remarks += ((path, _PASSED_OVER) for path in deleted if os.path.isfile(self.settings.workspace / path))
        plans = self._plans(found, scope, manifest, deleted, report)
        self._apply(plans, len(found) + len(deleted), report)
        if not dry_run:
            self.embed_missing(report)
        report.remarks = list(dict.fromkeys(report.remarks))
        # A named file that was not read is a failure; one inside a folder is skipped.
        named = {str(root) for root in roots}
        report.skipped = [item._replace(failed=item.failed or item.path in named) for item in report.skipped]
        return report

    def embed_missing(self, report: Report) -> None:
        """Give vectors to the memories that still have none, for instance because the embedder was down."""
        if self.embedder is None:
            return
        desk = Desk(self.store, self.embedder, self.clock, defers=self.settings.defers)
        if mended := self.store.drop_damaged_vectors(desk.space):
            report.remarks.append(("vectors", f"{mended} failed their checksum and were rebuilt"))
        done = desk.fill()
        report.embedded += done.embedded
        report.without_vector = done.without_vector
        if done.error:
            report.remarks.append(("embedding", _WAITING.format(done.error)))

    # -- planning --------------------------------------------------------------------------------------------

    def _existing(self, path: Path, scope: Scope) -> Path:
        try:
            if path.exists() or path.is_symlink():
                return path
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or error
            raise IngestError(f"{str(path)[:80]} cannot be read: {said}") from error
        # The memories of a path that is gone stay, as it may come back.
        gone = [self._name(seen_from(self.settings.workspace, path))]
        is_known = any(_is_below_any(self._proper(known), gone) for known in self.store.manifest(scope))
        kept = (
            "its memories are still stored; they are removed when a folder it was in is ingested, or forget them "
            "by their ids"
        )
        raise IngestError(f"{path} does not exist", kept if is_known else "check the path")

    def _find(self, roots: Sequence[Path], report: Report) -> dict[str, FileEntry]:
        """Return the files there are by the names they are known by."""
        found: dict[str, FileEntry] = {}
        for item in chain.from_iterable(map(walk, roots)):
            if isinstance(item, SkippedPath):
                report.skipped.append(item)
            else:
                found.setdefault(self._name(item.path), item)
        return found

    def _name(self, path: str | Path) -> str:
        """Return the stored path of a file: below the workspace relative to it, elsewhere absolute."""
        return name_in(self.settings.workspace, path)

    def _deleted(
        self,
        roots: Sequence[Path],
        scope: Scope,
        present: Collection[str],
        manifest: dict[str, FileRecord],
        failed: Sequence[SkippedPath],
    ) -> dict[str, FilePlan]:
        """Return plans for deleted files; memories of unreadable files are kept."""
        asked = [self._name(root) for root in roots]
        unreadable = [self._name(skipped.path) for skipped in failed]
        gone = (path for path in manifest if path not in present and _is_below_any(self._proper(path), asked))
        return {path: self._deletion(manifest[path]) for path in gone if not _is_below_any(path, unreadable)}

    def _proper(self, stored: str) -> str:
        """Return the proper stored path of a file; one in the workspace may be stored by its absolute path."""
        return self._name(stored) if stored.startswith("/") else stored

    def _deletion(self, record: FileRecord) -> FilePlan:
        return FilePlan(record.path, "deleted", record, remove=tuple(self.store.chunks_of(record.scope, record.path)))

    def _plans(
        self,
        found: Mapping[str, FileEntry],
        scope: Scope,
        manifest: dict[str, FileRecord],
        deleted: dict[str, FilePlan],
        report: Report,
    ) -> Iterator[FilePlan]:
        by_hash = {_bytes_told(manifest[path]): path for path in deleted}
        planned = (self._planned(part, scope, manifest, report) for part in _parts(found.items()))
        for name, plan in chain.from_iterable(planned):
            if isinstance(plan, SkippedPath):
                report.skipped.append(plan)
                known = manifest.get(name)
                if known and not plan.failed:
                    yield self._deletion(known)  # it has become something we do not read
                continue
            if plan is None:
                report.unchanged += 1
                continue
            old = by_hash.get(_bytes_told(plan.record)) if plan.record else None
            if plan.action == "new" and old is not None and old in deleted:
                before = deleted.pop(old)
                moved = _moved(self.store.chunks_of(scope, old), old, plan.memories)
                plan = FilePlan(plan.path, "renamed", plan.record, plan.memories, before.remove, old, moved)
            yield plan
        yield from deleted.values()

    def _planned(
        self, files: Sequence[tuple[str, FileEntry]], scope: Scope, manifest: dict[str, FileRecord], report: Report
    ) -> Iterator[tuple[str, FilePlan | SkippedPath | None]]:
        """Read some files, then plan one after the other: the code of each step stays in the CPU caches."""
        contents = [
            None if self._is_unchanged(file, manifest.get(name)) else read(file, self.settings.max_bytes)
            for name, file in files
        ]
        for (name, file), content in zip(files, contents, strict=True):
            if isinstance(content, Content):
                yield name, self._plan(name, file, content, scope, manifest.get(name), report)
            else:
                yield name, content

    def _is_unchanged(self, file: FileEntry, known: FileRecord | None) -> bool:
        return (
            known is not None
            and known.content_hash.startswith(self._cut)
            and (known.size, known.mtime_ns) == (file.size, file.mtime_ns)
        )

    def _plan(
        self, name: str, file: FileEntry, content: Content, scope: Scope, known: FileRecord | None, report: Report
    ) -> FilePlan:
        fingerprint = self._cut + hashlib.blake2b(content.data, digest_size=16).hexdigest()
        record = FileRecord(name, scope, file.size, file.mtime_ns, fingerprint)
        if known and known.content_hash == record.content_hash:
            return FilePlan(name, "touched", record)
        parsed = memories_in(content.text, name, scope, file.mtime_ns / _NANOSECONDS, self.settings.size)
        replaced = "bytes that are not UTF-8 were replaced" if content.replaced else ""
        report.remarks += [(name, remark) for remark in (*parsed.remarks, content.remark, replaced) if remark]
        remove = tuple(self.store.chunks_of(scope, name)) if known else ()
        return FilePlan(name, "changed" if known else "new", record, parsed.memories, remove)

    @cached_property
    def _cut(self) -> str:
        """Return a tag of the settings that shape chunks and tokens; files with another tag are read again."""
        size = self.settings.size
        return f"v{READER_VERSION}.{CUT_VERSION}-{size.tokens}-{size.overlap}-{self.settings.language}:"

    # -- applying --------------------------------------------------------------------------------------------

    def _apply(self, plans: Iterable[FilePlan], total: int, report: Report) -> None:
        """Write the plans batch by batch; the new texts of the next are embedded meanwhile."""
        desk = None
        if self.embedder is not None:
            desk = Desk(self.store, self.embedder, self.clock, defers=self.settings.defers)
        with closing(embedded_ahead(desk, self._batches(plans, total, report))) as batches:
            for changes in batches:
                self._write(changes, desk, report)

    def _batches(self, plans: Iterable[FilePlan], total: int, report: Report) -> Iterator[Changes]:
        """Yield the changes of plans; if one fails, those before it are written before the error is raised."""
        batch, chunks = list[FilePlan](), 0
        failures: list[Exception] = []
        for plan in to_the_first_failure(self._counted(plans, total, report), failures):
            if report.dry_run:
                continue
            batch.append(plan)
            chunks += len(plan.memories)
            while chunks >= MEMORIES_PER_BATCH + _LEFT_FOR_THE_LAST:
                counts = accumulate(len(plan.memories) for plan in batch)
                enough = next(place for place, count in enumerate(counts, 1) if count >= MEMORIES_PER_BATCH)
                full, batch = batch[:enough], batch[enough:]
                chunks = sum(len(plan.memories) for plan in batch)
                yield self._changes(full)
        if batch:
            yield self._changes(batch)
        for error in failures:
            raise error

    def _counted(self, plans: Iterable[FilePlan], total: int, report: Report) -> Iterator[FilePlan]:
        """Count plans in the report, and report progress."""
        for done, plan in enumerate(plans, 1):
            report.count(plan)
            self.progress(done + report.unchanged + len(report.skipped), max(total, done), plan.path)
            yield plan

    def _changes(self, plans: Sequence[FilePlan]) -> Changes:
        """Analyse the memories of plans, and return their changes for one transaction."""
        gone = [(plan.record.scope, plan.path) for plan in plans if plan.action == "deleted" and plan.record]
        gone += [(plan.record.scope, plan.renamed_from) for plan in plans if plan.renamed_from and plan.record]
        records = [plan.record for plan in plans if plan.action != "deleted" and plan.record]
        touched = {plan.path for plan in plans if plan.action == "touched"}
        return Changes(
            put=entries_for([memory for plan in plans for memory in plan.memories], self.settings.language),
            replace_files=[*gone, *((r.scope, r.path) for r in records if r.path not in touched)],
            files=records,
            forget_files=gone,
            renamed={old: new for plan in plans for old, new in plan.moved.items()},
        )

    def _write(self, changes: Changes, desk: Desk | None, report: Report) -> None:
        """Embed new texts without a vector, then write all these files in one transaction."""
        if desk is None:
            self.store.write(changes)
            return
        done = desk.store_with_vectors(changes)
        report.embedded += len(done.vectors)
        if done.error:
            report.remarks.append(("embedding", _WAITING.format(done.error)))


def _bytes_told(record: FileRecord) -> str:
    """Return the fingerprint of a file's bytes, however it was cut."""
    return record.content_hash.rpartition(":")[2]


def _parts(files: Iterable[tuple[str, FileEntry]]) -> Iterator[list[tuple[str, FileEntry]]]:
    """Yield files a few at a time, and no more bytes at once than must be."""
    part: list[tuple[str, FileEntry]] = []
    room = _BYTES_PLANNED_TOGETHER
    for name, file in files:
        part.append((name, file))
        room -= file.size
        if len(part) == _FILES_PLANNED_TOGETHER or room <= 0:
            yield part
            part, room = [], _BYTES_PLANNED_TOGETHER
    yield part


def _moved(before: Collection[MemoryId], path: str, memories: Sequence[Memory]) -> dict[MemoryId, MemoryId]:
    """Map the old ids of a renamed file's chunks to new ones: same text at the path before."""
    numbered = occurrences(memory.text for memory in memories)
    old = ((id_for(memory.scope, path, *one), memory.id) for memory, one in zip(memories, numbered, strict=True))
    return {identity: new for identity, new in old if identity in before}


def _is_below_any(path: str, roots: Sequence[str]) -> bool:
    # The workspace itself is "."; files outside it are known by absolute paths and are not below it.
    return any(
        root == path or path.startswith(root.rstrip("/") + "/") or (root == "." and not path.startswith("/"))
        for root in roots
    )
