"""Ingest: look at the files, plan what changes, then apply it file by file, each wholly old or wholly new."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path
from typing import Literal, NamedTuple

from ..analysis.documents import embedded_text
from ..columns import MemoryId
from ..errors import IngestError
from ..places import name_in, seen_from
from ..ports import Changes, Embedder, FileRecord, Store
from ..types import Memory, Scope
from .ahead import MEMORIES_PER_BATCH, embedded_ahead, to_the_first_failure
from .chunks import CUT_VERSION, ChunkSize
from .entries import READER_VERSION, content_hash, entries_for
from .files import memories_in
from .filling import Clock, Desk, Progress
from .walk import Content, Found, Skipped, read, walk

Action = Literal["new", "changed", "renamed", "touched", "deleted"]

_NANOSECONDS = 1e9
_FILES_PLANNED_TOGETHER, _BYTES_PLANNED_TOGETHER = 64, 1_000_000
# What is left for the last batch at least: fewer go with those before, or they would be a segment only to be merged.
_LEFT_FOR_THE_LAST = MEMORIES_PER_BATCH // 2
_WAITING = "failed, the words can be searched meanwhile: {}"
_PASSED_OVER = "it is there, but folders pass it over now, so what was read of it goes; name it to have it read"


@dataclass(frozen=True)
class Settings:
    """How files are read."""

    workspace: Path
    language: str
    size: ChunkSize
    max_bytes: int


class FilePlan(NamedTuple):
    """What will happen to one file."""

    path: str
    action: Action
    record: FileRecord | None = None
    memories: tuple[Memory, ...] = ()
    remove: tuple[MemoryId, ...] = ()
    renamed_from: str = ""
    moved: Mapping[MemoryId, MemoryId] = {}


@dataclass
class Report:
    """What an ingest did, or would do."""

    dry_run: bool = False
    files: dict[Action, int] = field(default_factory=dict)
    unchanged: int = 0
    chunks: int = 0
    removed: int = 0
    embedded: int = 0
    without_vector: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    plans: list[tuple[str, Action]] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)  # what a file was called before, by what it is called

    @property
    def failed(self) -> list[Skipped]:
        """Return what should have been readable and was not."""
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
        # What was asked for by name and not read is a failure; what lies in a folder is passed over.
        named = {str(root) for root in roots}
        report.skipped = [item._replace(failed=item.failed or item.path in named) for item in report.skipped]
        return report

    def embed_missing(self, report: Report) -> None:
        """Give vectors to the memories that still have none, for instance because the embedder was down."""
        if self.embedder is None:
            return
        desk = Desk(self.store, self.embedder, self.clock)
        if mended := self.store.drop_damaged_vectors(desk.space):
            report.remarks.append(("vectors", f"{mended} failed their checksum and were made anew"))
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
        raise IngestError(f"{path} does not exist", self._what_next(path, scope))

    def _what_next(self, path: Path, scope: Scope) -> str:
        """Say how to get rid of what was read of a path that is gone; it stays unless asked for: it may come back."""
        gone = [self._name(seen_from(self.settings.workspace, path))]
        if not any(_is_below_any(self._proper(known), gone) for known in self.store.manifest(scope)):
            return "check the path"
        return (
            "what was read of it is still there; it goes when a folder it lay in is ingested, or forget it by its ids"
        )

    def _find(self, roots: Sequence[Path], report: Report) -> dict[str, Found]:
        """Return the files there are by the names they are known by."""
        found: dict[str, Found] = {}
        for item in chain.from_iterable(map(walk, roots)):
            if isinstance(item, Skipped):
                report.skipped.append(item)
            else:
                found.setdefault(self._name(item.path), item)
        return found

    def _name(self, path: str | Path) -> str:
        """Return the path a file is known by: below the workspace relative to it, elsewhere absolute."""
        return name_in(self.settings.workspace, path)

    def _deleted(
        self,
        roots: Sequence[Path],
        scope: Scope,
        present: Collection[str],
        manifest: dict[str, FileRecord],
        failed: Sequence[Skipped],
    ) -> dict[str, FilePlan]:
        """Return plans for files that are gone; what cannot be read now keeps what was read of it before."""
        asked = [self._name(root) for root in roots]
        unreadable = [self._name(skipped.path) for skipped in failed]
        gone = (path for path in manifest if path not in present and _is_below_any(self._proper(path), asked))
        return {path: self._deletion(manifest[path]) for path in gone if not _is_below_any(path, unreadable)}

    def _proper(self, stored: str) -> str:
        """Return what a file is to be called; one of the workspace may be known by its whole path."""
        return self._name(stored) if stored.startswith("/") else stored

    def _deletion(self, record: FileRecord) -> FilePlan:
        chunks = self.store.chunks_of(record.scope, record.path)
        return FilePlan(record.path, "deleted", record, remove=tuple(chunks))

    def _plans(
        self,
        found: Mapping[str, Found],
        scope: Scope,
        manifest: dict[str, FileRecord],
        deleted: dict[str, FilePlan],
        report: Report,
    ) -> Iterator[FilePlan]:
        by_hash = {_bytes_told(manifest[path]): path for path in deleted}
        planned = (self._planned(part, scope, manifest, report) for part in _parts(found.items()))
        for name, plan in chain.from_iterable(planned):
            if isinstance(plan, Skipped):
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
                moved = _moved(self.store.chunks_of(scope, old), plan.memories)
                plan = FilePlan(plan.path, "renamed", plan.record, plan.memories, before.remove, old, moved)
            yield plan
        yield from deleted.values()

    def _planned(
        self, files: Sequence[tuple[str, Found]], scope: Scope, manifest: dict[str, FileRecord], report: Report
    ) -> Iterator[tuple[str, FilePlan | Skipped | None]]:
        """Read some files, then plan one after the other: the code of each step stays in the processor's caches."""
        contents = [
            None if self._is_unchanged(file, manifest.get(name)) else read(file, self.settings.max_bytes)
            for name, file in files
        ]
        for (name, file), content in zip(files, contents, strict=True):
            if isinstance(content, Content):
                yield name, self._plan(name, file, content, scope, manifest.get(name), report)
            else:
                yield name, content

    def _is_unchanged(self, file: Found, known: FileRecord | None) -> bool:
        return (
            known is not None
            and known.content_hash.startswith(self._cut)
            and (known.size, known.mtime_ns) == (file.size, file.mtime_ns)
        )

    def _plan(
        self, name: str, file: Found, content: Content, scope: Scope, known: FileRecord | None, report: Report
    ) -> FilePlan:
        record = FileRecord(name, scope, file.size, file.mtime_ns, self._fingerprint(content.data))
        if known and known.content_hash == record.content_hash:
            return FilePlan(name, "touched", record)
        parsed = memories_in(content.text, name, scope, file.mtime_ns / _NANOSECONDS, self.settings.size)
        replaced = "bytes that are no UTF-8 were replaced" if content.replaced else ""
        report.remarks += [(name, remark) for remark in (*parsed.remarks, content.remark, replaced) if remark]
        remove = tuple(self.store.chunks_of(scope, name)) if known else ()
        return FilePlan(name, "changed" if known else "new", record, parsed.memories, remove)

    def _fingerprint(self, data: bytes) -> str:
        """Return the hash of how a file is cut and of its bytes."""
        return self._cut + hashlib.blake2b(data, digest_size=16).hexdigest()

    @cached_property
    def _cut(self) -> str:
        """Name the settings that shape chunks and tokens; files cut otherwise are read again."""
        size = self.settings.size
        return f"v{READER_VERSION}.{CUT_VERSION}-{size.tokens}-{size.overlap}-{self.settings.language}:"

    # -- applying --------------------------------------------------------------------------------------------

    def _apply(self, plans: Iterable[FilePlan], total: int, report: Report) -> None:
        """Write the plans batch by batch; what is new in the next is embedded meanwhile."""
        desk = Desk(self.store, self.embedder, self.clock) if self.embedder is not None else None
        with closing(embedded_ahead(desk, self._batches(plans, total, report))) as batches:
            for changes in batches:
                self._write(changes, desk, report)

    def _batches(self, plans: Iterable[FilePlan], total: int, report: Report) -> Iterator[Changes]:
        """Yield what plans come to; where one fails, those before it are written before anybody hears of it."""
        batch, chunks = list[FilePlan](), 0
        failures: list[Exception] = []
        for plan in to_the_first_failure(self._counted(plans, total, report), failures):
            if report.dry_run:
                continue
            batch.append(plan)
            chunks += len(plan.memories)
            while chunks >= MEMORIES_PER_BATCH + _LEFT_FOR_THE_LAST:
                full, batch = _first_batch(batch)
                chunks = sum(len(plan.memories) for plan in batch)
                yield self._changes(full)
        if batch:
            yield self._changes(batch)
        for error in failures:
            raise error

    def _counted(self, plans: Iterable[FilePlan], total: int, report: Report) -> Iterator[FilePlan]:
        """Count plans, and say how far they have come."""
        for done, plan in enumerate(plans, 1):
            report.count(plan)
            self.progress(done + report.unchanged + len(report.skipped), max(total, done), plan.path)
            yield plan

    def _changes(self, plans: Sequence[FilePlan]) -> Changes:
        """Analyse what plans hold, and return what they come to, for one transaction."""
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
        """Embed what is new and has no vector yet, then write all these files in one transaction."""
        if desk is None:
            self.store.write(changes)
            return
        done = desk.store_with_vectors(changes)
        report.embedded += len(done.vectors)
        if done.error:
            report.remarks.append(("embedding", _WAITING.format(done.error)))


def _first_batch(plans: Sequence[FilePlan]) -> tuple[Sequence[FilePlan], list[FilePlan]]:
    """Return the first plans that are enough for a batch, and the others."""
    counts = accumulate(len(plan.memories) for plan in plans)
    place = next(place for place, count in enumerate(counts, 1) if count >= MEMORIES_PER_BATCH)
    return plans[:place], [*plans[place:]]


def _bytes_told(record: FileRecord) -> str:
    """Return the fingerprint of a file's bytes, however it was cut."""
    return record.content_hash.rpartition(":")[2]


def _parts(files: Iterable[tuple[str, Found]]) -> Iterator[list[tuple[str, Found]]]:
    """Yield files a few at a time, and no more bytes at once than must be."""
    part: list[tuple[str, Found]] = []
    room = _BYTES_PLANNED_TOGETHER
    for name, file in files:
        part.append((name, file))
        room -= file.size
        if len(part) == _FILES_PLANNED_TOGETHER or room <= 0:
            yield part
            part, room = [], _BYTES_PLANNED_TOGETHER
    yield part


def _moved(before: Mapping[MemoryId, str], memories: Sequence[Memory]) -> dict[MemoryId, MemoryId]:
    """Say which chunk of a renamed file is which: those that embed the same text."""
    by_hash = {embed_hash: identity for identity, embed_hash in before.items()}
    hashed = ((content_hash(embedded_text(memory)), memory.id) for memory in memories)
    return {by_hash[embed_hash]: identity for embed_hash, identity in hashed if embed_hash in by_hash}


def _is_below_any(path: str, roots: Sequence[str]) -> bool:
    # The workspace itself is "."; files outside it are known by absolute paths and are not below it.
    return any(
        root == path or path.startswith(root.rstrip("/") + "/") or (root == "." and not path.startswith("/"))
        for root in roots
    )
