"""From scores of all rows to the best that pass a filter: filtered before they are cut, without reading every row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...types import Where
from ..pools import Scored
from .connection import Connection
from .filters import clause_for
from .rows import CONTENT_KEY

_ROWS_PER_STATEMENT = 500
_FIRST_ROWS = 150  # enough for a pool of a hundred sources where most rows pass


def passing(
    connection: Connection,
    rows: NDArray[np.int64],
    scores: NDArray[np.floating],
    where: Where,
    limit: int | None,
    margin: float = 0.0,
) -> Iterator[tuple[int, Scored]]:
    """Yield rows that pass, best first, until `limit` sources were seen and none within `margin` of the last is left.

    Ties are never cut apart, so that the caller can break them by content.
    """
    order = np.argsort(-scores, kind="stable")
    clause = clause_for(where)
    sources: set[str] = set()
    lowest = -np.inf
    start, size = 0, _FIRST_ROWS if limit is not None else _ROWS_PER_STATEMENT
    while start < len(order):
        part = order[start : start + size]
        start, size = start + len(part), _ROWS_PER_STATEMENT
        if scores[part[0]] < lowest:
            return
        values = dict(zip(rows[part].tolist(), scores[part].tolist(), strict=True))
        marks = ", ".join("?" * len(values))
        found = connection.execute(
            f"SELECT m.row, m.grouping, {CONTENT_KEY} FROM memories AS m WHERE m.row IN ({marks}) AND {clause.sql}",
            (*values, *clause.parameters),
        ).fetchall()
        for row, group, *tie in sorted(found, key=lambda row: -values[row[0]]):
            if values[row] < lowest:
                return
            yield row, Scored(values[row], tuple(tie), group)
            sources.add(group)
            if limit is not None and lowest == -np.inf and len(sources) >= limit:
                lowest = values[row] - margin
