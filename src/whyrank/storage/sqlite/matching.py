"""Which places of a shelf an expression of the advanced syntax is true of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...analysis.sayings import headings_in, is_said
from ...expressions import Expression, Holds, Leaf, Says, valued, wanted
from .catalogue import Flags, Integers, Shelf
from .connection import Connection, rows_of
from .records import NUMBERED
from .rows import legible

Holders = Callable[[str], Integers]
Said = Callable[[Says], Flags]

# The columns in which a memory says what a field is asked for; those in the second place hold lists.
_COLUMNS = {
    "name": ("name, title, slug", "aliases"),
    "heading": ("text", "headings"),
    "path": ("path", ""),
    "tag": ("", "tags"),
    "category": ("category", ""),
    "kind": ("kind", ""),
    "speaker": ("speaker", ""),
}


def matching(shelf: Shelf, expression: Expression, holders: Holders, said: Said) -> Flags:
    """Tell of which places an expression is true; of places that hold nothing, anything may be."""

    def leaf_flags(leaf: Leaf) -> Flags:
        match leaf:
            case Holds():
                flags = np.zeros(len(shelf), np.bool_)
                flags[holders(leaf.term)] = True
                return flags
            case Says():
                return said(leaf)
            case _:
                raise ValueError(f"{leaf} must be settled before a store is asked")

    return valued(expression, leaf_flags, np.logical_not)


def saying(connection: Connection, shelf: Shelf, leaf: Says) -> Flags:
    """Tell which places say something in a field; what many say alike is judged once."""
    single, listed = _COLUMNS[leaf.field]
    columns = ", ".join(column for column in (single, listed) if column)
    rows = rows_of(
        connection, f"SELECT number, {columns} FROM memories WHERE scope = ? AND {NUMBERED}", (shelf.scope, len(shelf))
    )
    known: dict[tuple[str, ...], bool] = {}
    flags = np.zeros(len(shelf), np.bool_)
    for number, *stored in rows:
        if not all(isinstance(value, str) for value in stored):
            stored = [value if isinstance(value, str) else "" for value in stored]  # it was damaged, and says nothing
        values = (*headings_in(stored[0]), stored[1]) if leaf.field == "heading" else tuple(stored)
        is_so = known.get(values)
        if is_so is None:
            spread = (*values[:-1], *legible(values[-1])) if listed else values
            is_so = known[values] = is_said(leaf, spread)
        flags[number] = is_so
    return flags


def lists_wanted(expression: Expression | None) -> set[str]:
    """Return the columns of lists that an expression would have say something."""
    leaves = wanted(expression) if expression is not None else ()
    return {_COLUMNS[leaf.field][1] for leaf in leaves if isinstance(leaf, Says)} - {""}
