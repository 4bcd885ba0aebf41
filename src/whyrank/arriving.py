"""What the facade does with a fact that nobody has said before: one row, durable at once, indexed with others."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from .analysis.documents import embedded_text
from .analysis.text import same_text
from .facts import Added, Keys, new_fact, unseen
from .ingest.entries import content_hash, id_for
from .ingest.filling import Attempt, Desk
from .lives import Living
from .ports import Arrival, Failure, Vector, Written
from .serving import NOTE
from .types import Memory, Scope

_QUICK_SECONDS = 0.001  # an embedder that takes no longer may be asked for nothing


class Given(NamedTuple):
    """What an embedder gave for a fact, or what went wrong."""

    space: str = ""
    vector: Vector | None = None
    failures: Mapping[str, Failure | None] = {}


class Footing(NamedTuple):
    """Where facts are embedded, if anywhere, and in which space, as long as the store says this of its spaces."""

    desk: Desk | None = None
    space: str = ""
    roles: str | None = None


class Arriving(Living):
    """Facts that are new."""

    _footing: Footing | None = None
    _looks_first = True  # whether a fact is there, before an embedder is asked that is not known to be quick

    def _arrived(self, text: str, owner: Scope, fields: Mapping[str, Any], keys: Keys) -> Added | Given:
        """Store a fact if it is new and nothing more must be thought of; else return what the embedder failed with."""
        footing = self._footing or self._looked()
        if footing is None:
            return Given()
        memory = new_fact(id_for(owner, "", same_text(text)), text, owner, fields, self._clock())
        if footing.desk is not None and self._looks_first and self._is_there(memory, owner):
            return Given()
        began = time.perf_counter()
        given = _embedded(memory, footing.desk, footing.space) if footing.desk is not None else Given()
        self._looks_first = time.perf_counter() - began > _QUICK_SECONDS
        if given.failures:
            self._footing = None
            return given
        key = None
        for (_, name), asked in keys.items():
            key = (name, Written(memory.id, asked.content))
        note = (NOTE, footing.roles) if footing.roles is not None else None
        if self._store.take_in(Arrival(memory, self._config["language"], given.space, given.vector, key, note)):
            return Added(memory, "stored", (), unseen(memory, memory.created))
        self._footing = None  # the spaces may be others now; whoever comes next looks again
        return Given()

    def _is_there(self, memory: Memory, owner: Scope) -> bool:
        with self._store.reading(latest=False):
            return bool(self._store.get([memory.id], frozenset({owner})))

    def _looked(self) -> Footing | None:
        """Look who embeds facts here; None where the store does not know its spaces yet, or the embedder has failed.

        None also where old words wait to be read anew, which is done along with other writes.
        """
        with self._store.reading(latest=False):
            if not self._are_words_new():
                return None
            embedder, roles = self._embedder, self._store.note(NOTE)
            if embedder is None:
                self._footing = Footing()
            elif roles is not None:
                dimension = self._store.dimensions(embedder.fingerprint)
                is_usual = dimension is not None and not self._store.failures(embedder.fingerprint)
                desk = Desk(self._store, embedder, self._clock, dimension)
                self._footing = Footing(desk, desk.space, roles) if is_usual else None
        return self._footing


def _embedded(memory: Memory, desk: Desk, space: str) -> Given:
    text, source = embedded_text(memory), memory.source
    # Most facts are nothing but their text, whose hash is known.
    known = source.content_hash if source is not None and text == memory.text else content_hash(text)
    done = desk.attempt_one(known, text)
    return Given(space, done.vectors.get(known), done.failures) if isinstance(done, Attempt) else Given(space, done)
