"""Which files are read: ignore rules honoured, and nothing outside the root, no device, no pipe, no binary."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..analysis.text import is_clean
from .exported import REASON, is_export

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
PLAIN = frozenset({".txt", ".text"})
LOGS = frozenset({".jsonl"})
SUFFIXES = MARKDOWN | PLAIN | LOGS

IGNORE_FILES = (".gitignore", ".whyrankignore")
_TOPS = (".git", ".whyrank")
_NEVER = frozenset({"node_modules", "__pycache__"})
_BINARY_PROBE_BYTES = 8_192
_BYTES_AT_A_TIME = 1_048_576  # of a file that has grown since its size was asked for
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Found(NamedTuple):
    """A file worth reading, with what a stat says of it."""

    path: str
    size: int
    mtime_ns: int


class Skipped(NamedTuple):
    """A path that was not read, and why; `failed` if it should have been readable."""

    path: str
    reason: str
    failed: bool = False


class Rule(NamedTuple):
    """The ignore rules of one folder, which hold for what is below it."""

    folder: Path
    spec: GitIgnoreSpec


class Content(NamedTuple):
    """The text of a file, and whether bytes had to be replaced."""

    text: str
    data: bytes
    replaced: bool


def is_readable(path: str) -> bool:
    """Tell whether a file in a folder is one we read, by its name."""
    return _suffix(path) in SUFFIXES


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def walk(root: Path, wanted: Callable[[str], bool] = is_readable) -> Iterator[Found | Skipped]:
    """Yield the readable files at or below a path, in order, and what was passed over; in folders only the wanted."""
    if not os.path.isdir(root):
        yield _look(str(root), root.parent)
        return
    rules: list[Rule] = []
    for folder in _folders_above(root):
        yield from _add_rules(folder, rules)
    # What is named is wanted, even if it is ignored from above.
    top = _Entry(str(root), os.path.islink(root), True, ())
    yield from _walk_folder(root, () if _ignored(top, rules) else tuple(rules), wanted)


def _folders_above(root: Path) -> list[Path]:
    """Return the folders whose ignore rules hold here too: those from the repository or workspace down to the root."""
    above = [root, *root.parents]
    for place, folder in enumerate(above):
        if any(os.path.exists(folder / mark) for mark in _TOPS):
            return above[1 : place + 1][::-1]
    return []


class _Entry(NamedTuple):
    """What stands in a folder, as the folder tells it, and the rules that hold for it."""

    path: str
    is_link: bool
    is_folder: bool
    rules: tuple[Rule, ...]


def _walk_folder(root: Path, inherited: tuple[Rule, ...], wanted: Callable[[str], bool]) -> Iterator[Found | Skipped]:
    """Walk with a stack of what is left to do: folders may be nested deeper than functions."""
    top = str(root)
    left = [_Entry(top, False, True, inherited)]
    while left:
        entry = left.pop()
        # What was a folder when its own folder was listed may have become a link since.
        if entry.is_folder and entry.path != top and os.path.islink(entry.path):
            yield Skipped(entry.path, "a link to a folder; links are not followed")
        elif entry.is_folder:
            rules = list(entry.rules)
            yield from _add_rules(Path(entry.path), rules)
            try:
                below = [*_entries(entry.path, tuple(rules))]
            except OSError as error:
                yield Skipped(entry.path, f"cannot be read: {error.strerror}", failed=True)
                continue
            left += [one for one in below if not _ignored(one, rules)]
        elif wanted(entry.path):
            yield _look(entry.path, root)


def _entries(folder: str, rules: tuple[Rule, ...]) -> Iterator[_Entry]:
    """Yield what stands in a folder, the last first."""
    with os.scandir(folder) as listed:
        entries = sorted(listed, key=attrgetter("name"), reverse=True)
    for entry in entries:
        if not entry.name.startswith(".") and entry.name not in _NEVER:
            yield _Entry(entry.path, *_told(entry), rules)


def _told(entry: os.DirEntry[str]) -> tuple[bool, bool]:
    """Tell whether something is a link, and whether it is a folder or leads to one."""
    is_link = entry.is_symlink()
    return is_link, os.path.isdir(entry.path) if is_link else entry.is_dir(follow_symlinks=False)


def _add_rules(folder: Path, rules: list[Rule]) -> Iterator[Skipped]:
    """Add the ignore rules of a folder; a line that is no pattern is passed over and named."""
    for name in IGNORE_FILES:
        file = folder / name
        if not os.path.isfile(file) or os.path.islink(file):
            continue
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            yield Skipped(str(file), f"cannot be read: {error.strerror}", failed=True)
            continue
        rules.append(Rule(folder, (yield from _spec(file, lines))))


def _spec(file: Path, lines: Sequence[str]) -> Generator[Skipped, None, GitIgnoreSpec]:
    from pathspec import GitIgnoreSpec  # many folders ignore nothing, and it takes long to load

    good = []
    for number, line in enumerate(lines, 1):
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            yield Skipped(f"{file}:{number}", f"{line!r} is no pattern")
        else:
            good.append(line)
    return GitIgnoreSpec.from_lines(good)


def _ignored(entry: _Entry, rules: Sequence[Rule]) -> bool:
    """Tell whether a path is ignored: as with git, the last rule that speaks of it decides."""
    ignored, is_folder = False, entry.is_folder and not entry.is_link
    for rule in rules:
        relative = Path(entry.path).relative_to(rule.folder).as_posix() + ("/" if is_folder else "")
        said = rule.spec.check_file(relative).include
        ignored = ignored if said is None else said
    return ignored


def _look(path: str, root: Path) -> Found | Skipped:
    if not is_clean(path):
        return Skipped(repr(path), "its name is no valid Unicode")
    try:
        status = os.lstat(path)  # it may have become a link since its folder was listed
        if stat.S_ISLNK(status.st_mode):
            if not Path(path).resolve(strict=True).is_relative_to(root.resolve()):
                return Skipped(path, "a link that leads out of the folder")
            status = os.stat(path)
    except (OSError, RuntimeError) as error:
        return Skipped(path, f"cannot be read: {getattr(error, 'strerror', None) or error}", failed=True)
    if not stat.S_ISREG(status.st_mode):
        return Skipped(path, "not a regular file")
    return Found(path, status.st_size, status.st_mtime_ns)


def read(found: Found, max_bytes: int) -> Content | Skipped:
    """Read a file as text: never a pipe or a device, never more than the cap, never a binary, no export of ours."""
    if found.size > max_bytes:
        return Skipped(found.path, f"{found.size:,} bytes, over the cap of {max_bytes:,}")
    try:
        data = _bytes_of(found.path, max_bytes)
    except OSError as error:
        return Skipped(found.path, f"cannot be read: {error.strerror}", failed=True)
    if data is None:
        return Skipped(found.path, "not a regular file")
    if len(data) > max_bytes:
        return Skipped(found.path, f"grown over the cap of {max_bytes:,} bytes")
    encoding = "utf-16" if data[:2] in _UTF16_MARKS else "utf-8"
    if encoding != "utf-16" and b"\x00" in data[:_BINARY_PROBE_BYTES]:
        return Skipped(found.path, "a binary file")
    told = data.removeprefix(codecs.BOM_UTF8)
    try:
        text, replaced = told.decode(encoding), False
    except UnicodeDecodeError:
        text, replaced = told.decode(encoding, errors="replace"), True
    if _suffix(found.path) in LOGS and is_export(text):
        return Skipped(found.path, REASON)
    return Content(text.replace("\r\n", "\n").replace("\r", "\n"), data, replaced)


def _bytes_of(path: str, max_bytes: int) -> bytes | None:
    # Opening a pipe without O_NONBLOCK would hang for ever, and the path may have become one since we looked.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        wanted = min(status.st_size, max_bytes) + 1
        parts = [os.read(descriptor, wanted)]
        if len(parts[0]) == status.st_size < wanted:  # as it said, and there was room for more
            return parts[0]
        while parts[-1] and (room := max_bytes + 1 - sum(map(len, parts))) > 0:
            parts.append(os.read(descriptor, min(room, _BYTES_AT_A_TIME)))
        return b"".join(parts)
    finally:
        os.close(descriptor)
