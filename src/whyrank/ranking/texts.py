"""Which memories have the same text: capitals and white space do not count."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from ..columns import MemoryId
from ..hits import Fetched, Held, text_of

_OPENING = 8  # words; most texts that begin with the same ones are the same


def text_key(text: str) -> str:
    """Return what two texts that are the same have in common."""
    return " ".join(text.casefold().split())


def same_texts(memories: Sequence[Held]) -> list[list[MemoryId]]:
    """Return the memories whose text another one has as well, those of one text together.

    Long texts are folded only where they begin alike.
    """
    openings = [*map(_opening_of, memories)]
    if len({*openings}) == len(openings):
        return []
    alike = _grouped(openings, range(len(memories)))
    same = (_grouped([text_key(text_of(memories[place])) for place in group], group) for group in alike)
    return [[memories[place].id for place in group] for groups in same for group in groups]


def _opening_of(held: Held) -> str:
    """Return how the text of a memory begins, worked out once where its row stays at hand for many questions."""
    if not isinstance(held, Fetched):
        return _opening(text_of(held))
    if held.opening is None:
        held.opening = _opening(held.text)
    return held.opening


def _opening(text: str) -> str:
    return " ".join(text.split(None, _OPENING)[:_OPENING]).casefold()


def _grouped(keys: Iterable[Hashable], places: Iterable[int]) -> list[list[int]]:
    """Return the places that have their key in common with another."""
    groups: dict[Hashable, list[int]] = {}
    for key, place in zip(keys, places, strict=True):
        groups.setdefault(key, []).append(place)
    return [group for group in groups.values() if len(group) > 1]
