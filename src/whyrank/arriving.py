"""Store a fact that nobody has said before, by the shortest way."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from .analysis.documents import embedded_text
from .facts import Keys, new_fact
from .ingest.entries import fingerprints
from .ingest.filling import Attempt, Desk
from .lifetimes import NEVER
from .lives import Living
from .ports import Arrival, Failure, Vector, Written
from .serving import NOTE
from .types import Memory, Scope

_QUICK_SECONDS = 0.001  # an embedder that takes no longer may be asked for nothing


class Given(NamedTuple):
    """What went wrong when a fact was embedded, if something did."""

    space: str = ""
    failures: Mapping[str, Failure | None] = {}


NOTHING_GIVEN = Given()


class Footing(NamedTuple):
    """Where facts are embedded, if anywhere, and in which space, as long as the store says this of its spaces."""

    desk: Desk | None = None
    space: str = ""
    note: tuple[str, str] | None = None
    language: str = ""


class Arriving(Living):
    """Facts that are new."""

    _footing: Footing | None = None
    _looks_first = True  # whether a fact is there, before an embedder is asked that is not known to be quick

    def _arrived(self, text: str, owner: Scope, fields: Mapping[str, Any], keys: Keys) -> Memory | Given:
        """Store a fact if it is new and nothing more must be thought of; else return what the embedder failed with."""
        footing = self._footing or self._looked()
        if footing is None:
            return NOTHING_GIVEN
        desk, space, note, language = footing
        identity, _, exact = fingerprints(owner, text)
        memory = new_fact(identity, exact, text, owner, fields, self._clock())
        vector: Vector | None = None
        if desk is not None:
            if self._looks_first and self._is_there(memory, owner):
                return NOTHING_GIVEN
            began = time.perf_counter()
            done = desk.attempt_one(embedded_text(memory) if fields else text)
            self._looks_first = time.perf_counter() - began > _QUICK_SECONDS
            if isinstance(done, Attempt):
                if done.failures:
                    self._footing = None
                    return Given(space, failures=done.failures)
                vector = next(iter(done.vectors.values()), None)
            else:
                vector = done
        key = None
        for (_, name), asked in keys.items():
            key = (name, Written(memory.id, asked.content))
        if self._store.take_in(Arrival(memory, language, space, vector, key, note)):
            return memory
        self._footing = None  # the spaces may be others now; whoever comes next looks again
        return NOTHING_GIVEN

    def _is_there(self, memory: Memory, owner: Scope) -> bool:
        with self._store.reading():
            return bool(self._store.get([memory.id], frozenset({owner})))

    def _looked(self) -> Footing | None:
        """Look who embeds facts here; None where the store does not know its spaces yet, or the embedder has failed.

        None also where old words wait to be read anew, which is done along with other writes.
        """
        language = self._config["language"]
        with self._store.reading():
            if not self._are_words_new():
                return None
            embedder, roles = self._embedder, self._store.note(NOTE)
            if embedder is None:
                self._footing = Footing(language=language)
            elif roles is not None:
                dimension = self._store.dimensions(embedder.fingerprint)
                failures = self._store.failures(embedder.fingerprint)
                is_usual = dimension is not None and all(failure.next_try >= NEVER for failure in failures)
                desk = Desk(self._store, embedder, self._clock, dimension)
                self._footing = Footing(desk, desk.space, (NOTE, roles), language) if is_usual else None
        return self._footing
