"""Which memories have the same text: capitals and white space do not count."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache

from ..columns import MemoryId

_OPENING = 8  # words; most texts that begin with the same ones are the same
_KEPT = 4_096  # texts whose openings are known: many questions find the same memories


def text_key(text: str) -> str:
    """Return what two texts that are the same have in common."""
    return " ".join(text.casefold().split())


def same_texts(ids: Sequence[MemoryId], texts: Iterable[str]) -> list[list[MemoryId]]:
    """Return the memories whose text another one has as well, those of one text together.

    Long texts are folded only where they begin alike.
    """
    said = [*texts]
    openings = [*map(_opening, said)]
    if len({*openings}) == len(openings):
        return []
    alike = _grouped(openings, range(len(said)))
    same = (_grouped([text_key(said[place]) for place in group], group) for group in alike)
    return [[ids[place] for place in group] for groups in same for group in groups]


@lru_cache(maxsize=_KEPT)
def _opening(text: str) -> str:
    return " ".join(text.split(None, _OPENING)[:_OPENING]).casefold()


def _grouped(keys: Iterable[Hashable], places: Iterable[int]) -> list[list[int]]:
    """Return the places that have their key in common with another."""
    groups: dict[Hashable, list[int]] = {}
    for key, place in zip(keys, places, strict=True):
        groups.setdefault(key, []).append(place)
    return [group for group in groups.values() if len(group) > 1]
