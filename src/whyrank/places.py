"""Where a path leads, and what a file is called in a store: one name, however the path was typed."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

_UP = ".."
FROM_HERE = ("./", "../", "/", "~/")  # how a path or pattern begins that is not one as it is stored


def settled(path: str | Path) -> Path:
    """Return a path from the root without `.` and `..`, which leads to the same place; links stay as they are."""
    typed = Path(path).absolute()
    plain = Path(os.path.normpath(typed))
    if _UP in typed.parts and os.path.realpath(typed) != os.path.realpath(plain):
        return Path(os.path.realpath(typed))  # behind a link to a folder `..` is the parent of where the link leads
    return plain


def seen_from(base: Path, path: str | Path) -> Path:
    """Return where a path leads, by way of the base if it is in it: one may stand in a folder by another way."""
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
    """The name of a place in a store in its parts: the folders, the last part, and the same before and from its dot."""

    folders: tuple[str, ...]
    name: str
    stem: str
    suffix: str


@lru_cache(maxsize=64)  # a file is asked for several parts of its name in a row
def stored_place(name: str) -> StoredPlace:
    """Return the parts of the name of a place in a store, as `PurePosixPath` has them; the root has no name."""
    parts = f"{name}/"
    if "//" in parts or "/./" in parts or parts.startswith("./") or parts == "/":  # as nobody writes a path
        path = PurePosixPath(name)
        return StoredPlace(tuple(folder.strip("/") for folder in path.parts[:-1]), path.name, path.stem, path.suffix)
    *folders, last = name.split("/")
    dot = last.rfind(".")
    if not 0 < dot < len(last) - 1:
        dot = len(last)
    return StoredPlace(tuple(folders), last, last[:dot], last[dot:])


def stored_name(base: Path, typed: str) -> str:
    """Return the name in a store of a path as somebody types it in the folder they are in."""
    return name_in(base, seen_from(base, Path(os.path.expanduser(typed))))


def literally(path: str) -> str:
    """Write a path as a pattern that matches it alone."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def stored_pattern(base: Path, typed: str) -> str:
    """Return a pattern of names in a store; one that begins with ./, ../, ~/ or / is taken from where one is."""
    if not typed.startswith(FROM_HERE):
        return typed
    here = literally(str(seen_from(base, Path.cwd())))
    whole = os.path.normpath(os.path.join(here, os.path.expanduser(typed)))
    for top in (literally(str(base)), str(base)):
        if whole.startswith(top.rstrip("/") + "/"):
            return whole[len(top.rstrip("/")) + 1 :]
    return "[!/]*" if whole in (literally(str(base)), str(base)) else whole
