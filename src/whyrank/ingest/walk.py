"""Which files are read: ignore rules honoured, and nothing outside the root, no device, no pipe, no binary."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec

MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
PLAIN = frozenset({".txt", ".text"})
LOGS = frozenset({".jsonl"})
SUFFIXES = MARKDOWN | PLAIN | LOGS

IGNORE_FILES = (".gitignore", ".whyrankignore")
_NEVER = frozenset({"node_modules", "__pycache__"})
_BINARY_PROBE_BYTES = 8_192
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Found(NamedTuple):
    """A file worth reading, with what a stat says of it."""

    path: Path
    size: int
    mtime_ns: int


class Skipped(NamedTuple):
    """A path that was not read, and why; `failed` if it should have been readable."""

    path: str
    reason: str
    failed: bool = False


@dataclass(frozen=True)
class Content:
    """The text of a file, and whether bytes had to be replaced."""

    text: str
    data: bytes
    replaced: bool


def walk(root: Path) -> Iterator[Found | Skipped]:
    """Yield the readable files at or below a path, in order, and what was passed over."""
    if not root.is_dir() or (root.is_symlink() and not root.is_dir()):
        yield _look(root, root.parent)
        return
    yield from _walk_folder(root, root, ())


def _walk_folder(folder: Path, root: Path, rules: tuple[tuple[Path, GitIgnoreSpec], ...]) -> Iterator[Found | Skipped]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield Skipped(str(folder), f"cannot be read: {error.strerror}", failed=True)
        return
    rules = (*rules, *_rules_in(folder))
    for entry in entries:
        path = Path(entry.path)
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name.startswith(".") or entry.name in _NEVER or _ignored(path, is_folder, rules):
            continue
        if is_folder:
            yield from _walk_folder(path, root, rules)
        elif path.suffix.lower() in SUFFIXES:
            yield _look(path, root)
        elif entry.is_symlink() and entry.is_dir():
            yield Skipped(str(path), "a link to a folder; links are not followed")


def _rules_in(folder: Path) -> Iterator[tuple[Path, GitIgnoreSpec]]:
    for name in IGNORE_FILES:
        file = folder / name
        if file.is_file():
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
            yield folder, GitIgnoreSpec.from_lines(lines)


def _ignored(path: Path, is_folder: bool, rules: tuple[tuple[Path, GitIgnoreSpec], ...]) -> bool:
    for base, spec in rules:
        relative = path.relative_to(base).as_posix() + ("/" if is_folder else "")
        if spec.match_file(relative):
            return True
    return False


def _look(path: Path, root: Path) -> Found | Skipped:
    try:
        if path.is_symlink() and not path.resolve(strict=True).is_relative_to(root.resolve()):
            return Skipped(str(path), "a link that leads out of the folder")
        status = path.stat()
    except (OSError, RuntimeError) as error:
        return Skipped(str(path), f"cannot be read: {getattr(error, 'strerror', None) or error}", failed=True)
    if not stat.S_ISREG(status.st_mode):
        return Skipped(str(path), "not a regular file")
    return Found(path, status.st_size, status.st_mtime_ns)


def read(found: Found, max_bytes: int) -> Content | Skipped:
    """Read a file as text: never a pipe or a device, never more than the cap, never a binary."""
    if found.size > max_bytes:
        return Skipped(str(found.path), f"{found.size:,} bytes, over the cap of {max_bytes:,}")
    try:
        data = _bytes_of(found.path, max_bytes)
    except OSError as error:
        return Skipped(str(found.path), f"cannot be read: {error.strerror}", failed=True)
    if data is None:
        return Skipped(str(found.path), "not a regular file")
    if data[:2] in _UTF16_MARKS:
        text = data.decode("utf-16", errors="replace")
    elif b"\x00" in data[:_BINARY_PROBE_BYTES]:
        return Skipped(str(found.path), "a binary file")
    else:
        text = data.decode("utf-8-sig", errors="replace")
    return Content(text.replace("\r\n", "\n").replace("\r", "\n"), data, "\ufffd" in text)


def _bytes_of(path: Path, max_bytes: int) -> bytes | None:
    # Opening a pipe without O_NONBLOCK would hang for ever, and the path may have become one since we looked.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(max_bytes + 1)[:max_bytes]
    finally:
        os.close(descriptor)
