"""The best rows of some shelves by score: filtered before they are cut, ties broken by content, cut by source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..pools import CHUNKS_PER_SOURCE
from .catalogue import Flags, Floats, Integers, Shelf
from .connection import Connection
from .rows import CONTENT_KEY

_ROWS_PER_STATEMENT = 500
_BLOCK = 128  # scores whose best is looked at together
_MORE = 64  # rows looked at beyond the sources asked for, before looking deeper


class Chosen(NamedTuple):
    """Places of shelves with their scores, in no order."""

    shelves: Integers
    places: Integers
    scores: Floats


Row = tuple[int, float]


def best_rows(
    connection: Connection,
    shelves: Sequence[Shelf],
    scores: Sequence[Floats],
    allowed: Sequence[Flags | None],
    limit: int | None,
) -> list[Row]:
    """Return the rows with a score above zero, best first, cut at `limit` distinct sources."""
    masked = [own if mask is None else np.where(mask, own, 0.0) for own, mask in zip(scores, allowed, strict=True)]
    wanted = None if limit is None else limit + _MORE
    while True:
        lowest = 0.0 if wanted is None else threshold(masked, wanted)
        chosen = above(masked, lowest)
        rows = cut(connection, shelves, chosen, limit)
        if rows is not None:
            return rows
        if lowest <= 0.0 or wanted is None:
            return cut(connection, shelves, chosen, limit, is_all=True) or []
        wanted *= 4


def above(scores: Sequence[Floats], threshold: float) -> Chosen:
    """Choose the places at or above a threshold, or above zero."""
    places = [np.flatnonzero(own >= threshold if threshold > 0.0 else own > 0.0) for own in scores]
    numbers = [np.full(len(found), number) for number, found in enumerate(places)]
    values = [own[found] for own, found in zip(scores, places, strict=True)]
    return Chosen(_joined(numbers), _joined(places), np.concatenate(values) if values else np.zeros(0))


def _joined(parts: Sequence[Integers]) -> Integers:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def threshold(scores: Sequence[NDArray[np.floating]], wanted: int) -> float:
    """Return a score that at least `wanted` places reach: the best of so many blocks do."""
    size = max(1, min(_BLOCK, sum(map(len, scores)) // (4 * wanted)))
    tops = np.concatenate([_block_tops(own, size) for own in scores]) if scores else np.zeros(0)
    if len(tops) <= wanted:
        return 0.0
    return float(np.partition(tops, len(tops) - wanted)[len(tops) - wanted])


def _block_tops(scores: NDArray[np.floating], size: int) -> NDArray[np.floating]:
    whole = len(scores) - len(scores) % size
    tops = scores[:whole].reshape(-1, size).max(axis=1)
    return np.append(tops, scores[whole:].max()) if whole < len(scores) else tops


def cut(
    connection: Connection, shelves: Sequence[Shelf], chosen: Chosen, limit: int | None, is_all: bool = False
) -> list[Row] | None:
    """Order what was chosen and cut it at `limit` sources; None if more would be needed to know."""
    order = np.argsort(-chosen.scores, kind="stable")
    rows = np.zeros(len(order), np.int64)
    groups = np.zeros(len(order), np.uint64)
    for number, shelf in enumerate(shelves):
        here = chosen.shelves == number
        rows[here] = shelf.rows[chosen.places[here]]
        groups[here] = shelf.groups[chosen.places[here]]
    ordered, scores, sources = rows[order].tolist(), chosen.scores[order].tolist(), groups[order].tolist()
    # Sources are counted up to the first that is too many; equals of that one belong to the same decision.
    end = _first_beyond(sources, limit)
    if end is None and not (is_all or limit is None):
        return None
    end = len(ordered) if end is None else _end_of_tie(scores, end)
    placed = _ties_broken(connection, ordered[:end], scores)
    return list(_cut(placed, scores, dict(zip(ordered[:end], sources, strict=False)), limit))


def _first_beyond(sources: Sequence[int], limit: int | None) -> int | None:
    if limit is None:
        return None
    seen: set[int] = set()
    for place, source in enumerate(sources):
        seen.add(source)
        if len(seen) > limit:
            return place
    return None


def _end_of_tie(scores: Sequence[float], place: int) -> int:
    end = place + 1
    while end < len(scores) and scores[end] == scores[place]:
        end += 1
    return end


def _ties_broken(connection: Connection, rows: list[int], scores: Sequence[float]) -> list[int]:
    """Order rows of equal scores by their content keys, which are read only for these."""
    tied = [i for i in range(len(rows)) if _is_tied(scores, i, len(rows))]
    if not tied:
        return rows
    keys = content_keys(connection, [rows[i] for i in tied])
    placed = list(rows)
    for group in _runs(tied, scores):
        for place, row in zip(group, sorted((rows[i] for i in group), key=lambda row: keys[row]), strict=True):
            placed[place] = row
    return placed


def _is_tied(scores: Sequence[float], i: int, end: int) -> bool:
    return (i > 0 and scores[i - 1] == scores[i]) or (i + 1 < end and scores[i + 1] == scores[i])


def _runs(tied: Sequence[int], scores: Sequence[float]) -> Iterator[list[int]]:
    run: list[int] = []
    for i in tied:
        if run and scores[i] != scores[run[0]]:
            yield run
            run = []
        run.append(i)
    if run:
        yield run


def content_keys(connection: Connection, rows: Sequence[int]) -> dict[int, tuple[object, ...]]:
    """Return what breaks the ties of some rows."""
    keys: dict[int, tuple[object, ...]] = {}
    for start in range(0, len(rows), _ROWS_PER_STATEMENT):
        part = rows[start : start + _ROWS_PER_STATEMENT]
        marks = ", ".join("?" * len(part))
        found = connection.execute(f"SELECT m.row, {CONTENT_KEY} FROM memories AS m WHERE m.row IN ({marks})", part)
        keys.update({row: tuple(key) for row, *key in found})
    return keys


def _cut(rows: Sequence[int], scores: Sequence[float], sources: dict[int, int], limit: int | None) -> Iterator[Row]:
    """Yield rows until `limit` sources were seen, a few rows of each; None yields all."""
    seen: Counter[int] = Counter()
    for row, score in zip(rows, scores, strict=False):
        source = sources[row]
        if limit is not None:
            if seen[source] >= CHUNKS_PER_SOURCE:
                continue
            if source not in seen and len(seen) >= limit:
                return
            seen[source] += 1
        yield row, score
