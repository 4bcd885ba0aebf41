"""Which memory or file somebody meant who named one that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import PurePosixPath

from ..places import literally
from ..ports import Store
from ..types import Memory, Where

_LOOKED_AT = 5_000  # memories: enough for most stores, and no mistake should cost more than a moment
_LIKE = 0.75  # of letters in common, below which a name is another name
_ID_LIKE = 0.8  # ids are letters at random: two of them have some in common by chance
_ID_PREFIX = "m_"
_SHORTEST_ID = 5  # letters of an id that was cut short, with its prefix


def meant(store: Store, where: Where, wanted: str) -> str | None:
    """Return the nearest path or id that may be seen, if one is near: by its file name, else by its letters."""
    name = PurePosixPath(wanted).name
    if name and not wanted.startswith(_ID_PREFIX):
        for pattern in (literally(wanted), f"*/{literally(name)}"):
            if found := store.browse(_below(where, pattern), 1):
                return _paths(found)[0]
    held = store.browse(where, _LOOKED_AT)
    if wanted.startswith(_ID_PREFIX):
        return _id_like(wanted.rstrip("…."), [memory.id for memory in held])
    return _path_like(wanted, _paths(held))


def _below(where: Where, pattern: str) -> Where:
    return Where(where.scopes, path=pattern, include_superseded=True, now=where.now)


def _paths(memories: Sequence[Memory]) -> list[str]:
    sources = (memory.source for memory in memories)
    return list(dict.fromkeys(source.path for source in sources if source is not None and source.path))


def _id_like(wanted: str, ids: Sequence[str]) -> str | None:
    begun = [identity for identity in ids if len(wanted) >= _SHORTEST_ID and identity.startswith(wanted)]
    return next(iter(begun or get_close_matches(wanted, ids, n=1, cutoff=_ID_LIKE)), None)


def _path_like(wanted: str, paths: Sequence[str]) -> str | None:
    """Compare whole paths without regard to case, then the names of files alone."""
    folded = {path.casefold(): path for path in paths}
    near = get_close_matches(wanted.casefold(), folded, n=1, cutoff=_LIKE)
    if near:
        return folded[near[0]]
    names = {PurePosixPath(path).name: path for path in folded}
    alike = get_close_matches(PurePosixPath(wanted.casefold()).name, names, n=1, cutoff=_LIKE)
    return folded[names[alike[0]]] if alike else None
