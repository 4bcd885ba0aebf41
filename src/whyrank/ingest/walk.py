"""Traversal of folders without leaving the root: ignore rules, globs, links refused; paths and stored names."""

from __future__ import annotations

import codecs
import errno
import json
import os
import re
import stat
from functools import lru_cache
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from ..analysis.normalize import is_clean
from ..errors import ConfigError
from ..types.query import literally

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from pathspec import GitIgnoreSpec

# No other line has all of these: they are about the life of a memory.
_OF_AN_EXPORT = frozenset({"id", "kind", "text", "scope", "superseded_by", "expires_given", "content_hash", "history"})
REASON = "an export of whyrank, not a log of turns; `whyrank import whyrank FILE` restores it"


def is_export(text: str) -> bool:
    """Return whether a text is an export, by its first line."""
    first = text.lstrip().partition("\n")[0]
    if not all(f'"{name}"' in first for name in _OF_AN_EXPORT):
        return False
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and record.keys() >= _OF_AN_EXPORT


MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
PLAIN = frozenset({".txt", ".text"})
LOGS = frozenset({".jsonl"})
SUFFIXES = MARKDOWN | PLAIN | LOGS

IGNORE_FILES = (".gitignore", ".whyrankignore")
_TOPS = (".git", ".whyrank")
_NEVER = frozenset({"node_modules", "__pycache__"})
_BINARY_PROBE_BYTES = 8_192
_BYTES_AT_A_TIME = 1_048_576  # of a file that has grown since its size was read
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_PRINTED = bytes([*b"\t\n\r\f", *range(32, 127)])
_MOSTLY = 0.75  # of bytes that ASCII prints; of those of Chinese in UTF-16 it prints about half
_FEW = 0.01  # of characters that cannot be decoded
_MOST_IGNORE_BYTES = 1_048_576
_MOST_STARS = 3  # in one part of an ignore rule, and `**` in all of it: matching takes (length of the name)^stars

# openat(2) and its like; without them there is only the check after opening.
HAS_DIR_FD = os.open in os.supports_dir_fd and os.scandir in os.supports_fd and hasattr(os, "O_NOFOLLOW")
_READ_ONLY = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = _READ_ONLY | getattr(os, "O_DIRECTORY", 0)
# Opening a pipe without O_NONBLOCK would hang for ever, and the path may have become one since the stat.
_FILE = _READ_ONLY | getattr(os, "O_NONBLOCK", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# Errors of opening a link without following it, by platform and flags.
_IS_LINK = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK})
_SWAPPED = "the file or one of its folders has become a link that leads out"


class Root(NamedTuple):
    """Folder that nothing is read outside of: its path, and its device and inode at the time of the stat."""

    path: str
    identity: tuple[int, int] | None = None


class FileEntry(NamedTuple):
    """File to read, with its size and time from stat, and the folder it must be below (its own, if None)."""

    path: str
    size: int
    mtime_ns: int
    root: Root | None = None


class SkippedPath(NamedTuple):
    """A path that was not read, and why; `failed` if it should have been readable."""

    path: str
    reason: str
    failed: bool = False


class Rule(NamedTuple):
    """Ignore rules of one folder, which apply to everything below it."""

    folder: Path
    spec: GitIgnoreSpec


class Content(NamedTuple):
    """Text of a file, with a flag for replaced bytes and a remark about its encoding."""

    text: str
    data: bytes
    replaced: bool
    remark: str = ""


def is_readable(path: str) -> bool:
    """Return whether a file in a folder is of a readable type, by its name."""
    return os.path.splitext(path)[1].lower() in SUFFIXES


def walk(
    root: Path, wanted: Callable[[str], bool] = is_readable, below: Path | None = None
) -> Iterator[FileEntry | SkippedPath]:
    """Yield the readable files at or below a path, in order, and the skipped; in folders only `wanted`.

    Nothing is read outside of the path, or of the folder `below` that it lies in.
    """
    if not os.path.isdir(root):
        yield _look(str(root), _root(below or root.parent))
        return
    rules: list[Rule] = []
    for folder in _folders_above(root):
        yield from _add_rules(folder, rules, _root(folder))
    # A named file is wanted, even if it is ignored from above.
    top = _Entry(str(root), os.path.islink(root), True, ())
    yield from _walk_folder(root, () if _ignored(top, rules) else tuple(rules), wanted, _root(below or root))


def _root(folder: Path) -> Root:
    try:
        status = os.stat(folder)
    except OSError:
        return Root(str(folder))  # opening it will raise the error
    return Root(str(folder), (status.st_dev, status.st_ino))


def _folders_above(root: Path) -> list[Path]:
    """Return the folders above with ignore rules that apply too: from the repository or workspace down."""
    above = [root, *root.parents]
    for place, folder in enumerate(above):
        if any(os.path.exists(folder / mark) for mark in _TOPS):
            return above[1 : place + 1][::-1]
    return []


class _Entry(NamedTuple):
    """Entry of a folder listing, with the ignore rules that apply to it."""

    path: str
    is_link: bool
    is_folder: bool
    rules: tuple[Rule, ...]


def _walk_folder(
    top: Path, inherited: tuple[Rule, ...], wanted: Callable[[str], bool], root: Root
) -> Iterator[FileEntry | SkippedPath]:
    """Traverse folders with an explicit stack: they may be nested deeper than calls."""
    left = [_Entry(str(top), False, True, inherited)]
    while left:
        entry = left.pop()
        if not entry.is_folder:
            if wanted(entry.path):
                yield _look(entry.path, root)
            continue
        # A folder at the time of listing may have become a link since.
        if entry.is_link or (entry.path != str(top) and os.path.islink(entry.path)):
            yield SkippedPath(entry.path, "a link to a folder; links are not followed")
            continue
        rules = list(entry.rules)
        yield from _add_rules(Path(entry.path), rules, root)
        try:
            below = _entries(entry.path, root, tuple(rules))
        except _LeadsOut as error:
            yield SkippedPath(entry.path, str(error))
        except OSError as error:
            yield SkippedPath(entry.path, f"cannot be read: {error.strerror}", failed=True)
        else:
            left += [one for one in below if not _ignored(one, rules)]


def _entries(folder: str, root: Root, rules: tuple[Rule, ...]) -> list[_Entry]:
    """Return the entries of a folder in reverse order."""
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
    """Return whether an entry is a link, and whether it is a folder or leads to one."""
    try:
        return entry.is_symlink(), entry.is_dir()
    except OSError:  # a link that leads to itself
        return True, False


def _add_rules(folder: Path, rules: list[Rule], root: Root) -> Iterator[SkippedPath]:
    """Add the ignore rules of a folder; a line that is not a pattern is passed over and named."""
    for name in IGNORE_FILES:
        file = folder / name
        if not os.path.isfile(file) or os.path.islink(file):
            continue
        try:
            data = _bytes_of(str(file), _MOST_IGNORE_BYTES, root)
        except _LeadsOut as error:
            yield SkippedPath(str(file), str(error))
            continue
        except OSError as error:
            yield SkippedPath(str(file), f"cannot be read: {error.strerror}", failed=True)
            continue
        if data is None or len(data) > _MOST_IGNORE_BYTES:
            yield SkippedPath(
                str(file), f"not a file of ignore rules, or over the limit of {_MOST_IGNORE_BYTES:,} bytes"
            )
            continue
        lines = data.decode("utf-8", errors="replace").splitlines()
        rules.append(Rule(folder, (yield from _spec(file, lines))))


def _spec(file: Path, lines: Sequence[str]) -> Generator[SkippedPath, None, GitIgnoreSpec]:
    from pathspec import GitIgnoreSpec  # many folders ignore nothing, and it takes long to load

    good = []
    for number, line in enumerate(lines, 1):
        if max(line.count("**"), *(part.count("*") for part in line.split("/"))) > _MOST_STARS:
            yield SkippedPath(f"{file}:{number}", f"{line[:80]!r} has more than {_MOST_STARS} stars in one part")
            continue
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            yield SkippedPath(f"{file}:{number}", f"{line!r} is not a pattern")
        else:
            good.append(line)
    return GitIgnoreSpec.from_lines(good)


def _ignored(entry: _Entry, rules: Sequence[Rule]) -> bool:
    """Return whether a path is ignored: as with git, the last matching rule decides."""
    ignored, is_folder = False, entry.is_folder and not entry.is_link
    for rule in rules:
        relative = Path(entry.path).relative_to(rule.folder).as_posix() + ("/" if is_folder else "")
        said = rule.spec.check_file(relative).include
        ignored = ignored if said is None else said
    return ignored


def _look(path: str, root: Root) -> FileEntry | SkippedPath:
    if not is_clean(path):
        return SkippedPath(repr(path), "its name is not valid Unicode")
    try:
        status = os.lstat(path)  # it may have become a link since its folder was listed
        if stat.S_ISLNK(status.st_mode):
            if not Path(path).resolve(strict=True).is_relative_to(Path(root.path).resolve()):
                return SkippedPath(path, "a link that leads out of the folder")
            status = os.stat(path)
    except (OSError, RuntimeError) as error:
        return SkippedPath(path, f"cannot be read: {getattr(error, 'strerror', None) or error}", failed=True)
    if not stat.S_ISREG(status.st_mode):
        return SkippedPath(path, "not a regular file")
    return FileEntry(path, status.st_size, status.st_mtime_ns, root)


def read(found: FileEntry, max_bytes: int) -> Content | SkippedPath:
    """Read a file as text: no pipe or device, no more than the cap, no binary file, no export of ours."""
    if found.size > max_bytes:
        return SkippedPath(found.path, f"{found.size:,} bytes, over the limit of {max_bytes:,}")
    try:
        data = _bytes_of(found.path, max_bytes, found.root or Root(os.path.dirname(found.path) or "."))
    except _LeadsOut as error:
        return SkippedPath(found.path, str(error))
    except OSError as error:
        return SkippedPath(found.path, f"cannot be read: {error.strerror}", failed=True)
    if data is None:
        return SkippedPath(found.path, "not a regular file")
    if len(data) > max_bytes:
        return SkippedPath(found.path, f"grown over the limit of {max_bytes:,} bytes")
    content = _decoded(data)
    if content is None:
        return SkippedPath(found.path, "a binary file")
    if os.path.splitext(found.path)[1].lower() in LOGS and is_export(content.text):
        return SkippedPath(found.path, REASON)
    return content._replace(text=content.text.replace("\r\n", "\n").replace("\r", "\n"))


def _decoded(data: bytes) -> Content | None:
    """Decode a file as UTF-8, or as UTF-16 if its mark and its bytes are UTF-16; None for a binary file."""
    mark = data[:2]
    if mark in _UTF16_MARKS and _is_utf16(data):
        text = data.decode("utf-16", errors="replace")
        return None if "\x00" in text[:_BINARY_PROBE_BYTES] else Content(text, data, "\ufffd" in text)
    if b"\x00" in data[:_BINARY_PROBE_BYTES]:
        return None
    told, remark = data.removeprefix(codecs.BOM_UTF8), ""
    if mark in _UTF16_MARKS:
        told, remark = (
            data[2:],
            f"begins with the mark of UTF-16 ({mark.hex(' ').upper()}) but is not UTF-16: read as UTF-8",
        )
    try:
        return Content(told.decode("utf-8"), data, False, remark)
    except UnicodeDecodeError:
        return Content(told.decode("utf-8", errors="replace"), data, True, remark)


def _is_utf16(data: bytes) -> bool:
    """Return whether bytes after a UTF-16 mark are UTF-16: they decode, and are not text as they are."""
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
    """A path leads out of the root; the message is fixed."""

    def __str__(self) -> str:
        return _SWAPPED


def _bytes_of(path: str, max_bytes: int, root: Root) -> bytes | None:
    """Return the bytes of a regular file below a root, at most one above the cap; None for a pipe."""
    descriptor = open_below(root, path, _FILE)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        wanted = min(status.st_size, max_bytes) + 1
        parts = [os.read(descriptor, wanted)]
        if len(parts[0]) == status.st_size < wanted:  # the size of the stat, and the buffer was larger
            return parts[0]
        while parts[-1] and (room := max_bytes + 1 - sum(map(len, parts))) > 0:
            parts.append(os.read(descriptor, min(room, _BYTES_AT_A_TIME)))
        return b"".join(parts)
    finally:
        os.close(descriptor)


def open_below(root: Root, path: str, flags: int = _FILE, has_dir_fd: bool = HAS_DIR_FD) -> int:
    """Open a file or folder below a root and return its descriptor; a link must lead below it too."""
    if not has_dir_fd:
        return _opened_and_compared(root, path, flags)
    try:
        return _opened_by_parts(root, _relative(path, root.path), flags)
    except OSError as error:
        if isinstance(error, _LeadsOut) or error.errno not in _IS_LINK:
            raise
    # It is a link, or lies behind one: its target is opened, and has no links on the way.
    return _opened_by_parts(root, _relative(_resolved(root, path), os.path.realpath(root.path)), flags)


def _relative(path: str, top: str) -> str:
    """Return a path relative to a folder, as `os.path.relpath`, which takes longer than opening a file."""
    return path[len(top) + 1 :] if path.startswith(top + os.sep) else os.path.relpath(path, top)


def _resolved(root: Root, path: str) -> str:
    """Return the target of a path, which must be below the root."""
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
    """Open a path, and refuse it if its target has changed meanwhile or is not below the root."""
    descriptor = os.open(path, flags)
    try:
        there, opened = os.lstat(_resolved(root, path)), os.fstat(descriptor)
        if (there.st_dev, there.st_ino) != (opened.st_dev, opened.st_ino):
            raise _LeadsOut
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


_WILD = re.compile(r"[*?\[]")
_MAX_PATTERN = 1_000  # characters; no pattern typed by hand is longer

MISSING = "does not exist"


def parsed(patterns: str | Sequence[str]) -> tuple[str, ...]:
    """Parse patterns, separated by commas in a text; one that leads out of the workspace is an error."""
    given = patterns.split(",") if isinstance(patterns, str) else patterns
    found = tuple(dict.fromkeys(pattern.strip() for pattern in given if pattern.strip()))
    if not found:
        raise ConfigError("there is no pattern", "give some, separated by commas: skills/**/*.md,TOOLS.md")
    for pattern in found:
        path = PurePosixPath(pattern)
        if path.is_absolute() or ".." in path.parts or "\0" in pattern or len(pattern) > _MAX_PATTERN:
            raise ConfigError(
                f"the pattern {pattern[:80]!r} leads out of the workspace, or is not a pattern",
                "give patterns relative to the workspace; --workspace names another one",
            )
        try:
            _expression(pattern)
        except re.error as error:
            hint = "write skills/**/*.md or notes/[a-f]*.md"
            raise ConfigError(f"{pattern[:80]!r} is not a pattern: {error}", hint) from error
    return found


def matching(workspace: Path, patterns: Sequence[str]) -> Iterator[FileEntry | SkippedPath]:
    """Yield the matching files, each once, in the order of the patterns, and the skipped."""
    seen: set[Path] = set()
    inside = workspace.resolve()
    for pattern in patterns:
        for item in _of_pattern(workspace, pattern):
            path = Path(item.path)
            if path in seen:
                continue
            seen.add(path)
            yield (_astray(path, inside) or item) if isinstance(item, FileEntry) else item


def is_match(path: str, pattern: str) -> bool:
    """Return whether a path matches: `*` and `?` stay inside a folder, `**` spans any number, also none."""
    return _expression(pattern).fullmatch(path) is not None


def _of_pattern(workspace: Path, pattern: str) -> Iterator[FileEntry | SkippedPath]:
    parts = PurePosixPath(pattern).parts
    wild = next((number for number, part in enumerate(parts) if _WILD.search(part)), None)
    root = workspace.joinpath(*parts[:wild])
    if not os.path.lexists(root):
        yield SkippedPath(str(root), MISSING, failed=wild is None)
    elif astray := _astray(root, workspace.resolve()):
        yield astray
    elif wild is None and os.path.isdir(root):
        below = f"`{pattern.rstrip('/')}/**/*.md` means all markdown files in it"
        yield SkippedPath(str(root), f"is a folder; {below}", failed=True)
    else:
        yield from walk(root, lambda path: is_match(Path(path).relative_to(workspace).as_posix(), pattern), workspace)


def _astray(path: Path, workspace: Path) -> SkippedPath | None:
    """Return why to skip a file that is inside by name only: a folder on its path may be a link."""
    try:
        if path.resolve(strict=True).is_relative_to(workspace):
            return None
    except (OSError, RuntimeError) as error:
        return SkippedPath(str(path), f"cannot be read: {getattr(error, 'strerror', None) or error}", failed=True)
    return SkippedPath(str(path), "a link that leads out of the workspace")


@lru_cache(maxsize=256)
def _expression(pattern: str) -> re.Pattern[str]:
    parts = PurePosixPath(pattern).parts
    written = ""
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        if part == "**":
            written += ".+" if is_last else "(?:[^/]+/)*"
        else:
            written += "".join(_letter(piece) for piece in re.findall(r"\[!?[^\]/]+\]|.", part, re.DOTALL))
            written += "" if is_last else "/"
    return re.compile(written, re.DOTALL)


def _letter(piece: str) -> str:
    if piece in ("*", "?"):
        return "[^/]*" if piece == "*" else "[^/]"
    if len(piece) == 1:
        return re.escape(piece)
    inside = piece[1:-1]
    negated = inside.startswith("!")
    letters = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside.removeprefix("!"))
    return f"[^/{letters}]" if negated else f"[{letters}]"


# -- paths of files, and their names in a store

_UP = ".."
FROM_HERE = ("./", "../", "/", "~/")  # how a path or pattern begins that is not one as it is stored
# Stems that name the role of a file in its folder, and not its subject.
_FOLDER_STEMS = frozenset({"readme", "index", "_index", "skill"})
_SEPARATORS = re.compile(r"(?<![0-9])[-_]+|[-_]+(?![0-9])")  # between digits they belong to a date or a number


def settled(path: str | Path) -> Path:
    """Return an absolute path without `.` and `..` that leads to the same place; links stay as they are."""
    typed = Path(path).absolute()
    plain = Path(os.path.normpath(typed))
    if _UP in typed.parts and os.path.realpath(typed) != os.path.realpath(plain):
        return Path(os.path.realpath(typed))  # behind a link to a folder `..` is the parent of where the link leads
    return plain


def seen_from(base: Path, path: str | Path) -> Path:
    """Return the absolute path, below the base if it is inside it, also if it is typed through a link."""
    place = settled(path)
    if place.is_relative_to(base):
        return place
    # The last part may be a link itself, and is the one that is meant.
    real, inside = Path(os.path.realpath(place.parent)) / place.name, Path(os.path.realpath(base))
    return base / real.relative_to(inside) if real.is_relative_to(inside) else place


def name_in(base: Path, path: str | Path) -> str:
    """Return the name of a place in a store: below its base relative to it, elsewhere the whole path."""
    whole, inside = _with_slashes(path), _with_slashes(base).rstrip("/") + "/"
    if whole.startswith(inside):  # as most are, by the thousand
        return whole[len(inside) :]
    if whole.startswith("/") and whole + "/" != inside and not any(odd in whole + "/" for odd in ("//", "/./")):
        return whole
    place = Path(path)
    return (place.relative_to(base) if place.is_relative_to(base) else place).as_posix()


def _with_slashes(path: str | Path) -> str:
    return str(path) if os.sep == "/" else Path(path).as_posix()


class StoredPlace(NamedTuple):
    """Parts of a stored path: the folders, the last part, its stem and its suffix."""

    folders: tuple[str, ...]
    name: str
    stem: str
    suffix: str


@lru_cache(maxsize=64)  # several parts of one file's name are read in a row
def stored_place(name: str) -> StoredPlace:
    """Return the parts of a stored path, as `PurePosixPath` has them; the root has no name."""
    parts = f"{name}/"
    if "//" in parts or "/./" in parts or parts.startswith("./") or parts == "/":  # an unusual path
        path = PurePosixPath(name)
        return StoredPlace(tuple(folder.strip("/") for folder in path.parts[:-1]), path.name, path.stem, path.suffix)
    *folders, last = name.split("/")
    dot = last.rfind(".")
    if not 0 < dot < len(last) - 1:
        dot = len(last)
    return StoredPlace(tuple(folders), last, last[:dot], last[dot:])


def file_title(name: str) -> str:
    """Return the title of a file without one: its stem as words, or its folder if the stem is generic.

    A stem with spaces is written for readers already and stays as it is.
    """
    place = stored_place(name)
    is_of_its_folder = place.stem.lower() in _FOLDER_STEMS and place.folders
    stem = place.folders[-1] if is_of_its_folder else place.stem
    return stem if " " in stem else _SEPARATORS.sub(" ", stem).strip() or stem


def stored_name(base: Path, typed: str) -> str:
    """Return the stored name of a path typed relative to the current folder."""
    return name_in(base, seen_from(base, Path(os.path.expanduser(typed))))


def stored_pattern(base: Path, typed: str) -> str:
    """Return a pattern of stored paths; ./, ../, ~/ or / in front is resolved from the current folder."""
    if not typed.startswith(FROM_HERE):
        return typed
    here = literally(str(seen_from(base, Path.cwd())))
    whole = os.path.normpath(os.path.join(here, os.path.expanduser(typed)))
    for top in (literally(str(base)), str(base)):
        if whole.startswith(top.rstrip("/") + "/"):
            return whole[len(top.rstrip("/")) + 1 :]
    return "[!/]*" if whole in (literally(str(base)), str(base)) else whole
