"""openclaw-hybrid-memory: the facts of its SQLite database, and the vectors of its LanceDB table."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ...analysis.normalize import clean
from ...engine.export import Item, Record
from ...errors import ConfigError
from ...formatting import counted
from ...types.memory import LIFETIMES
from . import streams
from .records import (
    Numbering,
    category_of,
    fact,
    filled,
    importance_of,
    moment_of,
    names_in,
    owner_of,
    read_item,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ...types.memory import MemoryId, Scope
    from .records import Findings

DATABASE = "facts.db"
LANCE = "lancedb"
_TABLE = "memories"
_LANCE_ROWS = 1_024  # read at once
_IN_METADATA = ("why", "value", "source", "confidence", "tier")
_READ = frozenset({
    "id", "text", "category", "importance", "entity", "key", "created_at", "source_date", "tags", "decay_class",
    "expires_at", "summary", "recall_count", "last_accessed", "superseded_at", "superseded_by", "supersedes_id",
    "valid_from", "valid_until", "scope", "scope_target", "embedding_model", *_IN_METADATA,
})  # fmt: skip
# Bookkeeping of its own, of no use elsewhere.
_DERIVED = frozenset({
    "rowid", "normalized_hash", "last_confirmed_at", "access_count", "last_accessed_at", "indexed_count",
    "last_indexed", "fts_text", "duplicate_count", "revision_count", "quality_score",
})  # fmt: skip


def records(path: Path, scope: Scope, findings: Findings) -> Iterator[Item]:
    """Yield a fact for every row that is not expired; what it replaced comes before it."""
    file = path / DATABASE if path.is_dir() else path
    connection = findings.stack.enter_context(streams.database(file))
    names = streams.columns(connection, "facts")
    if not {"id", "text"} <= {*names}:
        raise ConfigError(f"{file} has no table facts with id and text", f"name {DATABASE} of openclaw-hybrid-memory")
    findings.name_unknown("facts", names, _READ | _DERIVED)
    return _Facts(connection, names, scope, findings, _lance(file.with_name(LANCE), findings)).read()


class _Facts:
    """Reads the rows of the table in the order they were written."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        names: list[str],
        scope: Scope,
        findings: Findings,
        vectors: Mapping[str, Any],
    ) -> None:
        self._connection = connection
        self._names = {*names}
        self._scope = scope
        self._findings = findings
        self._vectors = vectors
        self._numbering = Numbering()
        self._ids: dict[str, MemoryId] = {}
        self._replaced = self._pairs()

    def _pairs(self) -> dict[str, list[tuple[str, object]]]:
        """Return what every fact replaced, with the moment: one of the two columns says it."""
        pairs: dict[str, dict[str, object]] = {}
        if "superseded_by" in self._names:
            at = "superseded_at" if "superseded_at" in self._names else "NULL"
            asked = f"SELECT id, superseded_by, {at} FROM facts WHERE superseded_by IS NOT NULL AND superseded_by != ''"
            for old, new, moment in self._connection.execute(asked):
                pairs.setdefault(str(new), {})[str(old)] = moment
        if "supersedes_id" in self._names:
            asked = "SELECT supersedes_id, id FROM facts WHERE supersedes_id IS NOT NULL AND supersedes_id != ''"
            for old, new in self._connection.execute(asked):
                pairs.setdefault(str(new), {}).setdefault(str(old), None)
        self._successors = {old for olds in pairs.values() for old in olds}
        return {new: [*olds.items()] for new, olds in pairs.items()}

    def read(self) -> Iterator[Item]:
        """Yield the rows; a fact that was replaced by one that is gone is no longer valid."""
        held = {str(row[0]) for row in self._connection.execute("SELECT id FROM facts")}
        self._successors = {old for new, olds in self._replaced.items() if new in held for old, _ in olds}
        if orphans := len(self._vectors.keys() - held):
            told = counted(orphans, "row is", "rows are")
            self._findings.left_out.append((LANCE, f"{told} of no fact of the database: deleted or pruned there"))
        order = "created_at, rowid" if "created_at" in self._names else "rowid"
        for row in self._connection.execute(f"SELECT * FROM facts ORDER BY {order}"):
            said = dict(row)
            place = f"fact {said['id']}"
            item = read_item(place, self._record, said)
            if item.holds is not None and self._is_over(said):
                self._findings.left_out.append((place, "it has expired"))
                continue
            yield item

    def _is_over(self, said: Mapping[str, Any]) -> bool:
        expires = moment_of("expires_at", said.get("expires_at"))
        return expires is not None and expires <= self._findings.now

    def _record(self, said: Mapping[str, Any]) -> Record:
        """Return one row; it expires when it says so: a class alone, the default of old rows, ends nothing."""
        identity, times = str(said["id"]), {name: moment_of(name, said.get(name)) for name in _MOMENTS}
        created = times["created_at"] or 0.0
        is_replaced = identity in self._successors
        ended = times["valid_until"]
        if ended is None and not is_replaced and (times["superseded_at"] is not None or said.get("superseded_by")):
            ended = times["superseded_at"] or created
        decay = said.get("decay_class") or ""
        if decay and decay not in LIFETIMES:
            self._findings.remark(f"decay class {decay!r}", "it is not known here, and such facts have none")
            decay = ""
        category, other = category_of(said.get("category"))
        entity, key = (value if isinstance(value, str) else "" for value in (said.get("entity"), said.get("key")))
        began = times["valid_from"]
        fields = {
            "category": category,
            "importance": importance_of(said.get("importance"), 1),
            "tags": names_in(said.get("tags")),
            "entities": [entity] if entity.strip() else [],
            "subject": entity,
            "attribute": key,
            "decay": decay,
            "date": times["source_date"],
            "valid_from": None if began == created or (began and ended and ended <= began) else began,
            "valid_until": ended,
            "trust": "agent",
            "metadata": filled({**{name: said.get(name) for name in _IN_METADATA}, "category": other}),
        }
        memory = fact(
            said["text"], self._owner(said), created, fields, self._numbering,
            is_living=not is_replaced and ended is None,
            summary=_summary(said.get("summary")), recalls=_count(said.get("recall_count")),
            recalled=times["last_accessed"], expires=times["expires_at"],
            expires_given=times["expires_at"] is not None and not decay,
        )  # fmt: skip
        replaces = [
            (self._ids[old], moment_of("superseded_at", at) or created)
            for old, at in self._replaced.get(identity, ())
            if old in self._ids
        ]
        self._ids[identity] = memory.id
        if identity in self._vectors:
            self._findings.vectors.offer(said.get("embedding_model") or "", memory.text, self._vectors[identity])
        return Record(memory, replaces=replaces)

    def _owner(self, said: Mapping[str, Any]) -> Scope:
        kind = said.get("scope")
        if kind in (None, "", "global"):
            return self._scope
        if kind not in ("user", "agent", "session"):
            raise ConfigError(f"its scope is {kind!r:.60}; global, user, agent and session are known")
        return owner_of(kind, said.get("scope_target"))


_MOMENTS = (
    "created_at", "source_date", "expires_at", "last_accessed", "superseded_at", "valid_from", "valid_until",
)  # fmt: skip


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 2**31 else 0


def _lance(folder: Path, findings: Findings) -> Mapping[str, Any]:
    """Return the vectors of the table by the ids of facts; none where there is no table, or no lancedb."""
    if not folder.is_dir() or folder.is_symlink():
        return {}
    if find_spec("lancedb") is None:
        findings.remark(folder.name, "its vectors are not read, as lancedb is not installed; facts are embedded here")
        return {}
    if reason := findings.vectors.refusal_of_all():
        findings.remark(folder.name, f"its vectors are not used: {reason}")
        return {}
    import lancedb

    try:
        table = lancedb.connect(folder).open_table(_TABLE)
        rows = table.search().select(["id", "vector"]).limit(table.count_rows()).to_batches(_LANCE_ROWS)
        vectors: dict[str, Any] = {}
        for batch in rows:
            table_rows = batch.column("vector").flatten().to_numpy().reshape(batch.num_rows, -1)
            vectors |= zip(batch.column("id").to_pylist(), table_rows, strict=True)
        return vectors
    except Exception as error:  # whatever LanceDB throws, the facts are there
        findings.unread.append((folder.name, f"its table {_TABLE} cannot be read: {str(error)[:200]}"))
        return {}


def _summary(value: object) -> str:
    """Return a summary as it can be stored; any other value than a text is none."""
    return clean(value).text if isinstance(value, str) else ""
