"""OpenClaw: the memory files of a workspace, its settings, and the embeddings of its index."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from typing import TYPE_CHECKING, Any

from ...config.legacy import is_retired
from ...config.load import flatten
from ...errors import ConfigError
from ...formatting import counted
from . import streams
from .records import NO_COUNTERPART, MappedSetting, map_settings, vector_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ...protocols import Vector
    from .records import Findings

SETTINGS = "openclaw.json"
_MEMORY_FILES = (("MEMORY.md", "memory.md"), ("USER.md",))  # of each the first that is there
_MEMORY_FOLDER = "memory"
_INDEXES = ("memory/*.sqlite", "agents/*/agent/openclaw-agent.sqlite", "agents/*/*.sqlite")  # below the state folder
_CHUNKS = ("memory_index_chunks", "chunks")  # of this year's versions, and of those before
_NO_MODEL = "fts-only"  # what its index says where there is no embedder
_SPELLINGS = ("agents.defaults.memorySearch.", "memory.search.", "memorySearch.")
_PLAIN = "memorySearch."
_MOST_SETTINGS_BYTES = 8 * 1024 * 1024
# What JSON5 adds that a person writes: comments, keys without quotes, quotes of the other kind, commas at the end.
_JSON5 = re.compile(
    r"""("(?:[^"\\]|\\.)*")|'((?:[^'\\]|\\.)*)'|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|([A-Za-z_$][\w$]*)(?=\s*:)|,(?=(?:\s|//[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*[}\]])""",
    re.DOTALL,
)


def files(path: Path, findings: Findings) -> Sequence[Path]:
    """Return the memory files of a workspace, or of the one in the state folder; nothing outside is followed."""
    if not path.is_dir():
        raise ConfigError(f"{path} is no folder", "name the workspace, or the folder with openclaw.json")
    said = _settings(path, findings)
    workspace = _workspace(path, said, findings)
    _map(said, findings)
    _read_indexes(path, findings)
    found = [*_memory_files(workspace, findings), *_extra(workspace, said, findings)]
    if not found and not findings.settings:
        raise ConfigError(
            f"{path} is no workspace of OpenClaw: it has no MEMORY.md, USER.md or memory/",
            f"name the workspace, or the folder with {SETTINGS}",
        )
    return found


def read_settings(file: Path) -> dict[str, Any]:
    """Return the settings in openclaw.json by their dotted names; it may be JSON5."""
    streams.check_file(file, SETTINGS)
    if file.stat().st_size > _MOST_SETTINGS_BYTES:
        raise ConfigError(f"{file} has more than {_MOST_SETTINGS_BYTES:,} bytes", f"name {SETTINGS}")
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        try:
            said = json.loads(_JSON5.sub(_plain, text))
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{file} cannot be read: {error}", "write it as JSON or JSON5") from error
    if not isinstance(said, dict):
        raise ConfigError(f"{file} is no object of JSON", f"name {SETTINGS}")
    return flatten(said)


def _plain(match: re.Match[str]) -> str:
    whole, single, key = match.groups()
    if whole is not None:
        return whole
    if single is not None:
        return json.dumps(single.replace("\\'", "'"))
    return f'"{key}"' if key is not None else ""


def mapped_names(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of memory search under the names that whyrank reads, and others of the same block."""
    found: dict[str, Any] = {}
    for prefix in reversed(_SPELLINGS):  # the first one wins
        found |= {_PLAIN + key.removeprefix(prefix): value for key, value in said.items() if key.startswith(prefix)}
    return found


def _settings(path: Path, findings: Findings) -> dict[str, Any]:
    file = path / SETTINGS
    if not file.exists():
        return {}
    if file.is_symlink():
        findings.left_out.append((SETTINGS, "it is a link, and links are not followed"))
        return {}
    try:
        return read_settings(file)
    except ConfigError as error:
        findings.unread.append((SETTINGS, error.message))
        return {}


def _map(said: Mapping[str, Any], findings: Findings) -> None:
    given = mapped_names(said)
    map_settings(given, SETTINGS, findings)
    # Values without a counterpart are not shown: keys of servers are among them.
    others = sorted(key for key in given if not is_retired(key) and key != f"{_PLAIN}extraPaths")
    findings.settings += [MappedSetting(key, None, {}, NO_COUNTERPART) for key in others]
    if "agents.list" in said:
        findings.remark("agents.list", "settings of single agents are not mapped, and other workspaces not read")


def _workspace(path: Path, said: Mapping[str, Any], findings: Findings) -> Path:
    if _memory_files(path, None):
        return path
    named = said.get("agents.defaults.workspace")
    if isinstance(named, str) and named:
        place = _inside(path, named)
        if place is not None and place.is_dir():
            return place
        findings.left_out.append((named, "this workspace is outside of the folder; import it by its own path"))
    inner = path / "workspace"
    return inner if inner.is_dir() and not inner.is_symlink() else path


def _inside(root: Path, named: str) -> Path | None:
    """Return a path below a folder, wherever its links lead; None for one that is not."""
    try:
        place = (root / named).resolve()
    except (OSError, ValueError, RuntimeError):
        return None
    return place if place.is_relative_to(root.resolve()) else None


def _memory_files(workspace: Path, findings: Findings | None) -> list[Path]:
    found = []
    for names in _MEMORY_FILES:
        there = [workspace / name for name in names if (workspace / name).exists() or (workspace / name).is_symlink()]
        found += there[:1]
    folder = workspace / _MEMORY_FOLDER
    if folder.is_dir() and (folder.is_symlink() or any(folder.glob("**/*.md"))):
        found.append(folder)
    kept = [one for one in found if not one.is_symlink()]
    if findings is not None:
        links = [one for one in found if one.is_symlink()]
        findings.left_out += [(one.name, "it is a link, and links are not followed") for one in links]
    return kept


def _extra(workspace: Path, said: Mapping[str, Any], findings: Findings) -> Iterator[Path]:
    """Yield the further paths of the settings that are inside the workspace."""
    named = mapped_names(said).get(f"{_PLAIN}extraPaths")
    for one in named if isinstance(named, list) else ():
        given = one.get("path") if isinstance(one, dict) else one
        if not isinstance(given, str) or not given:
            findings.unread.append(("extraPaths", f"{one!r:.60} is no path"))
            continue
        place = _inside(workspace, given)
        if place is None or not place.exists():
            told = (
                "it is not there" if place is not None else "it is outside of the workspace; `whyrank ingest` reads it"
            )
            findings.left_out.append((given, told))
        else:
            yield place


def _read_indexes(path: Path, findings: Findings) -> None:
    """Offer the embeddings of the indexes below the state folder, for texts that are equal."""
    for pattern in _INDEXES:
        for file in sorted(path.glob(pattern)):
            if file.is_symlink() or not file.is_file() or _inside(path, str(file.relative_to(path))) is None:
                continue
            try:
                connection = findings.stack.enter_context(streams.database(file))
                _offer(connection, str(file.relative_to(path)), findings)
            except (ConfigError, sqlite3.DatabaseError) as error:
                findings.unread.append((str(file.relative_to(path)), str(getattr(error, "message", error))))


def _offer(connection: sqlite3.Connection, place: str, findings: Findings) -> None:
    table = next((one for one in _CHUNKS if {"model", "text", "embedding"} <= {*streams.columns(connection, one)}), "")
    if not table:
        findings.remark(place, "it holds no index of memory search that is known")
        return
    vectors, rows, kept = findings.vectors, dict[bytes, int](), 0
    for rowid, model, text, embedding in connection.execute(f"SELECT rowid, model, text, embedding FROM {table}"):
        vector = None if model == _NO_MODEL else vector_of(embedding)
        if vector is None or not isinstance(text, str):
            continue
        vectors.offered += 1
        if reason := vectors.refusal(str(model), len(vector)):
            vectors.refused[reason] += 1
        else:
            rows[_key(text)] = rowid
            kept += 1
    if kept:
        findings.remark(place, f"{counted(kept, 'embedding')} of the same model; used where a text is the same")
        vectors.look_up(lambda text: _looked_up(connection, table, rows.get(_key(text))))


def _looked_up(connection: sqlite3.Connection, table: str, rowid: int | None) -> Vector | None:
    if rowid is None:
        return None
    [[embedding]] = connection.execute(f"SELECT embedding FROM {table} WHERE rowid = ?", [rowid]).fetchall()
    return vector_of(embedding)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", errors="replace"), digest_size=16).digest()
