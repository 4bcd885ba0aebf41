"""Give vectors to the memories that have none in a space: after a failure, or for another model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..ports import Changes, Embedder, Store, Vector

Embed = Callable[[dict[str, str]], Mapping[str, Vector]]
Progress = Callable[[int, int, str], None]

# A slow model takes some seconds for so many: as much as may be lost when it is stopped.
_TEXTS_PER_TRANSACTION = 64


class Embedded(NamedTuple):
    """What was embedded: how many texts got a vector, and how many have no direction in this space."""

    space: str
    embedded: int
    without_vector: int


def embed_all(store: Store, embedder: Embedder, progress: Progress) -> Embedded:
    """Embed whatever is missing in the embedder's space; stopped and called again, it goes on where it was."""
    space, made = embedder.fingerprint, 0
    store.drop_damaged_vectors(space)
    total = store.status(space).without_vector

    def embed(texts: dict[str, str]) -> dict[str, Vector]:
        nonlocal made
        vectors = with_direction(texts, embedder)
        made += len(vectors)
        progress(min(made, total), total, "")
        return vectors

    given_up = fill(store, space, embed)
    return Embedded(space, made, given_up)


def fill(store: Store, space: str, embed: Embed) -> int:
    """Embed batch by batch, each in a transaction of its own; return how many texts got no vector."""
    given_up: set[str] = set()
    while True:
        waiting = store.without_vector(space, _TEXTS_PER_TRANSACTION + len(given_up))
        batch = {text_hash: text for text_hash, text in waiting if text_hash not in given_up}
        if not batch:
            return len(given_up)
        vectors = embed(batch)
        given_up |= batch.keys() - vectors.keys()
        if vectors:
            store.write(Changes(space=space, vectors=vectors))


def with_direction(texts: Mapping[str, str], embedder: Embedder) -> dict[str, Vector]:
    """Embed texts; what has no direction is left out."""
    rows = embedder.documents(list(texts.values()))
    return {key: row for key, row in zip(texts, rows, strict=True) if row.any()}
