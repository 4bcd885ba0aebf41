"""Paths of files, and their names in a store."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ..types.query import literally

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
