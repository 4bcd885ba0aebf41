"""Results that were kept as JSON, read again: what is not as it was written is said, never guessed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from ..errors import BadDataset

Kind = TypeVar("Kind")
_CALLED: Mapping[type, str] = {
    dict: "an object", list: "a list", str: "a text", int: "a whole number", float: "a number"
}  # fmt: skip
_ROUNDING = 1e-9  # by which a mean of shares may miss 0 or 1
_LARGEST = 2**53  # above it whole numbers are no longer those that were written


class Node:
    """One place in kept JSON, which knows where it stands, so that an error can say it."""

    def __init__(self, value: object, place: str) -> None:
        self.value = value
        self.place = place

    def get(self, key: str, kind: type[Kind]) -> Kind:
        """Return what stands under a key, which must be of this kind."""
        place = f"{self.place}.{key}".lstrip(".")
        if not isinstance(self.value, dict) or key not in self.value:
            refuse(self.place or "the file", f"{key!r} is missing")
        return _of(self.value[key], kind, place)

    def maybe(self, key: str, kind: type[Kind]) -> Kind | None:
        """Return what is under a key, None where it is null or missing."""
        is_there = isinstance(self.value, dict) and self.value.get(key) is not None
        return self.get(key, kind) if is_there else None

    def below(self, key: str) -> Node:
        """Return the object under a key."""
        return Node(self.get(key, dict), f"{self.place}.{key}".lstrip("."))

    def each(self, key: str) -> list[Node]:
        """Return the objects of the list under a key."""
        return [Node(self._member(key, at, dict), f"{self.place}.{key}[{at}]") for at in self._places(key)]

    def numbers(self, key: str) -> list[float]:
        """Return the finite numbers of the list under a key."""
        return [self._member(key, at, float) for at in self._places(key)]

    def share(self, key: str) -> float:
        """Return the number from 0 to 1 under a key."""
        return _share(self.get(key, float), f"{self.place}.{key}".lstrip("."))

    def shares(self, key: str) -> list[float]:
        """Return the numbers from 0 to 1 of the list under a key."""
        return [_share(value, f"{self.place}.{key}[{at}]".lstrip(".")) for at, value in enumerate(self.numbers(key))]

    def texts(self, key: str) -> list[str]:
        """Return the texts of the list under a key."""
        return [self._member(key, at, str) for at in self._places(key)]

    def names(self) -> list[str]:
        """Return the keys of an object."""
        return list(self.value) if isinstance(self.value, dict) else []

    def _places(self, key: str) -> range:
        return range(len(self.get(key, list)))

    def _member(self, key: str, at: int, kind: type[Kind]) -> Kind:
        return _of(self.get(key, list)[at], kind, f"{self.place}.{key}[{at}]".lstrip("."))


def read_json(file: Path, written_by: str) -> dict[str, Any]:
    """Read a file of kept results; `written_by` is the command that makes one."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadDataset(f"{file} is not there", f"`{written_by}` writes one") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataset(f"{file} cannot be read: {error}", f"`{written_by}` writes one") from error
    except (ValueError, RecursionError) as error:
        raise BadDataset(f"{file} is no JSON: {error}", f"it is damaged; `{written_by}` writes another") from error
    if not isinstance(data, dict):
        raise BadDataset(f"{file} holds no results", f"`{written_by}` writes some")
    return data


def check_format(node: Node, known: int) -> None:
    """Refuse results of a newer form than this version knows, and of one that never was."""
    found = node.get("format", int)
    if found < 1:
        refuse("format", f"there is no format {found}")
    if found > known:
        raise BadDataset(
            f"these results have format {found}, and this whyrank reads up to {known}", "use the newer whyrank"
        )


def refuse(place: str, said: str) -> NoReturn:
    """Say where results are not as they should be."""
    raise BadDataset(f"{place}: {said}", "these results are damaged, or of another kind; write them again")


def _share(value: float, place: str) -> float:
    if not -_ROUNDING <= value <= 1 + _ROUNDING:
        refuse(place, "a number from 0 to 1 is expected here")
    return value


def _of(value: object, kind: type[Kind], place: str) -> Kind:
    if kind is float and type(value) is int and abs(value) < _LARGEST:
        value = float(value)
    is_number = isinstance(value, float) and math.isfinite(value)
    if not isinstance(value, kind) or isinstance(value, bool) or (kind is float and not is_number):
        refuse(place, f"{_CALLED[kind]} is expected here")
    return value
