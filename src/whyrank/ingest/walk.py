"""Which files are read: ignore rules honoured, and nothing outside the root, no device, no pipe, no binary.

Files and folders may be swapped for links at any moment. So folders are listed and files are read through descriptors,
opened one path component after the other from the root without following links; where a platform has no such calls,
what was opened is compared with what is at the resolved path.
"""

from __future__ import annotations

import codecs
import errno
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
_PRINTED = bytes([*b"\t\n\r\f", *range(32, 127)])
_MOSTLY = 0.75  # of bytes that ASCII prints; of those of Chinese in UTF-16 it prints about half
_FEW = 0.01  # of characters that cannot be decoded
_MOST_IGNORE_BYTES = 1_048_576
_MOST_STARS = 3  # in one part of an ignore rule, and `**` in all of it: matching takes (length of the name)^stars

# openat(2) and its like; without them the check after opening is what there is.
HAS_DIR_FD = os.open in os.supports_dir_fd and os.scandir in os.supports_fd and hasattr(os, "O_NOFOLLOW")
_READ_ONLY = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = _READ_ONLY | getattr(os, "O_DIRECTORY", 0)
# Opening a pipe without O_NONBLOCK would hang for ever, and the path may have become one since we looked.
_FILE = _READ_ONLY | getattr(os, "O_NONBLOCK", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# What opening a link without following it fails with, by platform and flags.
_IS_LINK = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK})
_SWAPPED = "it or a folder on the way to it has become a link that leads out"


class Root(NamedTuple):
    """The folder that nothing is read outside of: as it was named, and its device and inode when it was looked at."""

    path: str
    identity: tuple[int, int] | None = None


class Found(NamedTuple):
    """A file worth reading, with what a stat says of it, and the folder it must be read below (its own, if None)."""

    path: str
    size: int
    mtime_ns: int
    root: Root | None = None


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
    """The text of a file, whether bytes had to be replaced, and what else is to be said of its encoding."""

    text: str
    data: bytes
    replaced: bool
    remark: str = ""


def is_readable(path: str) -> bool:
    """Tell whether a file in a folder is one we read, by its name."""
    return _suffix(path) in SUFFIXES


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def walk(
    root: Path, wanted: Callable[[str], bool] = is_readable, below: Path | None = None
) -> Iterator[Found | Skipped]:
    """Yield the readable files at or below a path, in order, and what was passed over; in folders only the wanted.

    Nothing is read outside of the path, or of the folder `below` that it lies in.
    """
    if not os.path.isdir(root):
        yield _look(str(root), _root(below or root.parent))
        return
    rules: list[Rule] = []
    for folder in _folders_above(root):
        yield from _add_rules(folder, rules, _root(folder))
    # What is named is wanted, even if it is ignored from above.
    top = _Entry(str(root), os.path.islink(root), True, ())
    yield from _walk_folder(root, () if _ignored(top, rules) else tuple(rules), wanted, _root(below or root))


def _root(folder: Path) -> Root:
    try:
        status = os.stat(folder)
    except OSError:
        return Root(str(folder))  # whoever opens it will hear of it
    return Root(str(folder), (status.st_dev, status.st_ino))


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


def _walk_folder(
    top: Path, inherited: tuple[Rule, ...], wanted: Callable[[str], bool], root: Root
) -> Iterator[Found | Skipped]:
    """Walk with a stack of what is left to do: folders may be nested deeper than functions."""
    left = [_Entry(str(top), False, True, inherited)]
    while left:
        entry = left.pop()
        if not entry.is_folder:
            if wanted(entry.path):
                yield _look(entry.path, root)
            continue
        # What was a folder when its own folder was listed may have become a link since.
        if entry.is_link or (entry.path != str(top) and os.path.islink(entry.path)):
            yield Skipped(entry.path, "a link to a folder; links are not followed")
            continue
        rules = list(entry.rules)
        yield from _add_rules(Path(entry.path), rules, root)
        try:
            below = _entries(entry.path, root, tuple(rules))
        except _LeadsOut as error:
            yield Skipped(entry.path, str(error))
        except OSError as error:
            yield Skipped(entry.path, f"cannot be read: {error.strerror}", failed=True)
        else:
            left += [one for one in below if not _ignored(one, rules)]


def _entries(folder: str, root: Root, rules: tuple[Rule, ...]) -> list[_Entry]:
    """Return what stands in a folder, the last first."""
    descriptor = open_below(root, folder, _FOLDER) if HAS_DIR_FD else None
    try:
        with os.scandir(folder if descriptor is None else descriptor) as listed:
            kept = [entry for entry in listed if not entry.name.startswith(".") and entry.name not in _NEVER]
            kept.sort(key=attrgetter("name"), reverse=True)
            return [_Entry(os.path.join(folder, entry.name), *_kind(entry), rules) for entry in kept]
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _kind(entry: os.DirEntry[str]) -> tuple[bool, bool]:
    """Tell whether something is a link, and whether it is a folder or leads to one."""
    try:
        return entry.is_symlink(), entry.is_dir()
    except OSError:  # a link that leads to itself
        return True, False


def _add_rules(folder: Path, rules: list[Rule], root: Root) -> Iterator[Skipped]:
    """Add the ignore rules of a folder; a line that is no pattern is passed over and named."""
    for name in IGNORE_FILES:
        file = folder / name
        if not os.path.isfile(file) or os.path.islink(file):
            continue
        try:
            data = _bytes_of(str(file), _MOST_IGNORE_BYTES, root)
        except _LeadsOut as error:
            yield Skipped(str(file), str(error))
            continue
        except OSError as error:
            yield Skipped(str(file), f"cannot be read: {error.strerror}", failed=True)
            continue
        if data is None or len(data) > _MOST_IGNORE_BYTES:
            yield Skipped(str(file), f"no file of ignore rules, or over the cap of {_MOST_IGNORE_BYTES:,} bytes")
            continue
        lines = data.decode("utf-8", errors="replace").splitlines()
        rules.append(Rule(folder, (yield from _spec(file, lines))))


def _spec(file: Path, lines: Sequence[str]) -> Generator[Skipped, None, GitIgnoreSpec]:
    from pathspec import GitIgnoreSpec  # many folders ignore nothing, and it takes long to load

    good = []
    for number, line in enumerate(lines, 1):
        if max(line.count("**"), *(part.count("*") for part in line.split("/"))) > _MOST_STARS:
            yield Skipped(f"{file}:{number}", f"{line[:80]!r} has more than {_MOST_STARS} stars in one part")
            continue
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


def _look(path: str, root: Root) -> Found | Skipped:
    if not is_clean(path):
        return Skipped(repr(path), "its name is no valid Unicode")
    try:
        status = os.lstat(path)  # it may have become a link since its folder was listed
        if stat.S_ISLNK(status.st_mode):
            if not Path(path).resolve(strict=True).is_relative_to(Path(root.path).resolve()):
                return Skipped(path, "a link that leads out of the folder")
            status = os.stat(path)
    except (OSError, RuntimeError) as error:
        return Skipped(path, f"cannot be read: {getattr(error, 'strerror', None) or error}", failed=True)
    if not stat.S_ISREG(status.st_mode):
        return Skipped(path, "not a regular file")
    return Found(path, status.st_size, status.st_mtime_ns, root)


def read(found: Found, max_bytes: int) -> Content | Skipped:
    """Read a file as text: never a pipe or a device, never more than the cap, never a binary, no export of ours."""
    if found.size > max_bytes:
        return Skipped(found.path, f"{found.size:,} bytes, over the cap of {max_bytes:,}")
    try:
        data = _bytes_of(found.path, max_bytes, found.root or Root(os.path.dirname(found.path) or "."))
    except _LeadsOut as error:
        return Skipped(found.path, str(error))
    except OSError as error:
        return Skipped(found.path, f"cannot be read: {error.strerror}", failed=True)
    if data is None:
        return Skipped(found.path, "not a regular file")
    if len(data) > max_bytes:
        return Skipped(found.path, f"grown over the cap of {max_bytes:,} bytes")
    content = _decoded(data)
    if content is None:
        return Skipped(found.path, "a binary file")
    if _suffix(found.path) in LOGS and is_export(content.text):
        return Skipped(found.path, REASON)
    return content._replace(text=content.text.replace("\r\n", "\n").replace("\r", "\n"))


def _decoded(data: bytes) -> Content | None:
    """Decode a file as UTF-8, or as UTF-16 if it begins with its mark and is such; None for a binary file."""
    mark = data[:2]
    if mark in _UTF16_MARKS and _is_utf16(data):
        text = data.decode("utf-16", errors="replace")
        return None if "\x00" in text[:_BINARY_PROBE_BYTES] else Content(text, data, "\ufffd" in text)
    if b"\x00" in data[:_BINARY_PROBE_BYTES]:
        return None
    told, remark = data.removeprefix(codecs.BOM_UTF8), ""
    if mark in _UTF16_MARKS:
        told, remark = data[2:], f"begins with the mark of UTF-16 ({mark.hex(' ').upper()}) and is none: read as UTF-8"
    try:
        return Content(told.decode("utf-8"), data, False, remark)
    except UnicodeDecodeError:
        return Content(told.decode("utf-8", errors="replace"), data, True, remark)


def _is_utf16(data: bytes) -> bool:
    """Tell whether bytes behind a mark of UTF-16 are such: they decode, and are not text as they stand."""
    text, rest = data.decode("utf-16", errors="replace"), data[2:]
    if text.count("\ufffd") > 1 + _FEW * len(text):
        return False
    if b"\x00" in rest or not rest:  # every letter of ASCII has one in UTF-16
        return True
    if len(rest) % 2 or len(rest.translate(None, _PRINTED)) < (1 - _MOSTLY) * len(rest):
        return False
    try:
        rest.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


class _LeadsOut(OSError):
    """A path leads out of the root; told as it stands."""

    def __str__(self) -> str:
        return _SWAPPED


def _bytes_of(path: str, max_bytes: int, root: Root) -> bytes | None:
    """Return the bytes of a regular file below a root, one more than the cap if it has more; None for a pipe."""
    descriptor = open_below(root, path, _FILE)
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


def open_below(root: Root, path: str, flags: int = _FILE, has_dir_fd: bool = HAS_DIR_FD) -> int:
    """Open a file or folder below a root and return its descriptor; a link must lead to somewhere below it too."""
    if not has_dir_fd:
        return _opened_and_compared(root, path, flags)
    try:
        return _opened_by_parts(root, _relative(path, root.path), flags)
    except OSError as error:
        if isinstance(error, _LeadsOut) or error.errno not in _IS_LINK:
            raise
    # It is a link, or stands behind one: the place it leads to is opened, and has no links on the way.
    return _opened_by_parts(root, _relative(_resolved(root, path), os.path.realpath(root.path)), flags)


def _relative(path: str, top: str) -> str:
    """Return a path as it is seen from a folder, as `os.path.relpath` does, which takes longer than opening it."""
    return path[len(top) + 1 :] if path.startswith(top + os.sep) else os.path.relpath(path, top)


def _resolved(root: Root, path: str) -> str:
    """Return where a path leads, which must be below the root."""
    real, top = os.path.realpath(path), os.path.realpath(root.path)
    if os.path.commonpath([real, top]) != top:
        raise _LeadsOut
    return real


def _opened_by_parts(root: Root, relative: str, flags: int) -> int:
    """Open one part of a path after the other, none of which may be a link."""
    *folders, last = relative.split(os.sep)
    if os.pardir in (*folders, last):
        raise _LeadsOut
    descriptor = os.open(root.path, _FOLDER)
    try:
        status = os.fstat(descriptor)
        if root.identity not in (None, (status.st_dev, status.st_ino)):
            raise _LeadsOut
        for folder in folders:
            inner = os.open(folder, _FOLDER | _NO_LINK, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        return os.open(last, flags | _NO_LINK, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def _opened_and_compared(root: Root, path: str, flags: int) -> int:
    """Open a path, and refuse it if something else is where the path leads to now, or that is not below the root."""
    descriptor = os.open(path, flags)
    try:
        there, opened = os.lstat(_resolved(root, path)), os.fstat(descriptor)
        if (there.st_dev, there.st_ino) != (opened.st_dev, opened.st_ino):
            raise _LeadsOut
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
