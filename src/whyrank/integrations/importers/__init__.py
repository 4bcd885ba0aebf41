"""Importers: memories of other systems, brought into a store. The table names them all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ...engine.arguments import scope_of
from ...errors import ConfigError
from ...types.memory import GLOBAL
from .records import Findings, KnownVectors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...engine.engine import Engine
    from ...engine.export import Item, SkippedRecord
    from ...ingest.embedding import Progress
    from ...ingest.pipeline import Report
    from ...types.memory import Scope
    from .records import MappedSetting, Remark


class ReadsRecords(Protocol):
    """An importer of records: facts and turns, each with its place."""

    def __call__(self, path: Path, scope: Scope, findings: Findings) -> Iterator[Item]:
        """Yield the records of a path; `scope` is for those that name no owner."""


class FindsFiles(Protocol):
    """An importer of files, which are ingested."""

    def __call__(self, path: Path, findings: Findings) -> Sequence[Path]:
        """Return the files and folders to ingest."""


class Format(NamedTuple):
    """One system: what its path is, and the module with `records` or `files`."""

    expects: str
    module: str
    has_files: bool = False


FORMATS: Mapping[str, Format] = {
    "openclaw": Format("a workspace, or the folder with openclaw.json", "openclaw", has_files=True),
    "clawhub": Format("a skill, or a folder of skills", "clawhub", has_files=True),
    "openvault": Format("a chat file of SillyTavern, or its chat metadata as JSON", "openvault"),
    "hybrid-mem": Format("facts.db, or the folder with it and lancedb/", "hybrid_mem"),
    "mcp-memory": Format("the JSONL file of the knowledge graph server", "mcp_memory"),
    "mem0": Format("a JSON export: a list of memories", "mem0"),
    "claude": Format("the export of claude.ai: the zip, or conversations.json", "claude"),
    "chatgpt": Format("the export of ChatGPT: the zip, or conversations.json", "chatgpt"),
    "jsonl": Format("JSON lines, one memory each", "jsonl"),
}


@dataclass
class ImportReport:
    """Outcome of an import from another system, or the predicted outcome of a dry run."""

    system: str
    dry_run: bool = False
    new: int = 0
    unchanged: int = 0
    skipped: list[SkippedRecord] = field(default_factory=list)  # readable, and not stored
    bad: list[SkippedRecord] = field(default_factory=list)  # not readable
    unknown: Mapping[str, int] = field(default_factory=dict)  # fields that are not read, and how many records have them
    settings: list[MappedSetting] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    vectors: KnownVectors = field(default_factory=KnownVectors)
    files: Report | None = None  # of the ingest, where files were ingested

    @property
    def is_whole(self) -> bool:
        """Return whether everything could be read."""
        return not self.bad and not (self.files is not None and self.files.failed)


def format_named(name: str) -> Format:
    """Return a format by its name; an unknown name is an error that suggests the nearest one."""
    if name not in FORMATS:
        close = get_close_matches(name, FORMATS, n=1)
        others = f"the formats are whyrank, {', '.join(FORMATS)}"
        raise ConfigError(f"there is no format {name!r} to import", f"did you mean {close[0]!r}?" if close else others)
    return FORMATS[name]


def import_into(
    engine: Engine,
    system: str,
    path: str | Path,
    *,
    scope: str | Scope = GLOBAL,
    dry_run: bool = False,
    base: str | Path | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Import the memories of another system into the store of an engine.

    `scope` owns what names no owner itself. What the store holds is not changed, and a second import stores nothing
    new; an interrupted one continues when called again. `base` is the folder that paths are stored relative to.
    """
    from ...engine.export import SkippedRecord

    importer, owner, place = format_named(system), scope_of(scope), Path(path)
    findings = Findings(KnownVectors(engine.models.space, engine.models.dimension()))
    report = ImportReport(system, dry_run, settings=findings.settings, vectors=findings.vectors)
    report.remarks = findings.remarks
    module = import_module(f".{importer.module}", __name__)
    with findings.stack, engine.models.taking(findings.vectors.find):
        if importer.has_files:
            files: FindsFiles = module.files
            if paths := files(place, findings):
                report.files = engine.ingest(*paths, scope=owner, dry_run=dry_run, base=base, progress=progress)
        else:
            records: ReadsRecords = module.records
            items = records(place, owner, findings)
            done = engine.facts.import_records(items, dry_run=dry_run, progress=progress)
            report.new, report.unchanged = done.new, done.unchanged
            report.skipped, report.bad = list(done.skipped), list(done.bad)
    report.skipped += [SkippedRecord(where, "", reason) for where, reason in findings.left_out]
    report.bad += [SkippedRecord(where, "", reason) for where, reason in findings.unread]
    report.unknown = dict(Counter(findings.unknown).most_common())
    return report
