"""What the facade does with a fact that nobody has said before: one row, durable at once, indexed with others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .analysis.documents import embedded_text
from .analysis.text import same_text
from .facts import Added, Keys, new_fact
from .ingest.entries import content_hash, id_for
from .lives import Living
from .ports import Arrival, Failure, Vector, Written
from .types import Memory, Scope


class Given(NamedTuple):
    """What an embedder gave for a fact, or what went wrong."""

    space: str = ""
    vector: Vector | None = None
    failures: Mapping[str, Failure | None] = {}


class Arriving(Living):
    """Facts that are new."""

    def _arrived(self, text: str, owner: Scope, fields: Mapping[str, Any], keys: Keys) -> Added | Given:
        """Store a fact if it is new and nothing more must be thought of; else return what the embedder failed with."""
        now = self._clock()
        memory = new_fact(id_for(owner, "", same_text(text)), text, owner, fields, now)
        given = self._given(memory)
        if given is None:
            return Given()
        if given.failures:
            return given
        key = next(((key, Written(memory.id, asked.content)) for (_, key), asked in keys.items()), None)
        arrival = Arrival(memory, self._config["language"], given.space, given.vector, key)
        return Added(memory, "stored") if self._store.take_in(arrival) else Given()

    def _given(self, memory: Memory) -> Given | None:
        """Embed a fact; None where the space that answers is new, or the embedder has failed before."""
        with self._store.reading(latest=False):
            embedder = self._embedder
            if embedder is None:
                return Given()
            space = embedder.fingerprint
            is_usual = self._serving.is_adopted() and self._store.dimensions(space) is not None
            if not is_usual or self._store.failures(space):
                return None
        text = embedded_text(memory)
        known = content_hash(text)
        done = self._attempted(embedder, {known: text})
        return Given(space, done.vectors.get(known), done.failures)
