"""Vector run of an additional model, for memories in another language than the query.

It adds candidates of its own and votes for them alone. So a memory's weights depend on its language, and those in the
query's language are ranked as they are without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from ..analysis.language import LANGUAGES, LATIN_LANGUAGES, marks_but_of
from ..protocols import LACKING, Embedder, Store, Vector
from ..types.columns import MemoryId
from ..types.expressions import All, Either, Holds
from ..types.memory import Notice
from ..types.query import Analysis, Run, Signal, Where
from ..types.results import Held

ADDED_LACKING = "added-vectors-missing"


class AddedSpace(NamedTuple):
    """Query vector in the space of an additional model, with the language marks of the memories to search."""

    embedder: Embedder
    language: str
    marks: Mapping[str, str]
    vector: Vector

    @property
    def name(self) -> str:
        """Name its run and its signal."""
        return f"vector:{self.embedder.fingerprint.partition('/')[0]}"

    def run(self, store: Store, where: Where, limit: int | None) -> Run:
        """Return the nearest memories in another language, up to `limit` distinct sources; None for all."""
        spoken = Either(tuple(Holds(language, mark) for mark, language in self.marks.items()))
        within = replace(where, matching=spoken if where.matching is None else All((where.matching, spoken)))
        found = store.nearest(self.vector, self.embedder.fingerprint, within, limit)
        return Run(self.name, found.candidates, tuple(map(self._told, found.notices)))

    def _told(self, notice: Notice) -> Notice:
        if notice.code != LACKING:
            return notice
        lacking = f"some memories in another language have no {self.name} yet, so it does not vote for them"
        return Notice(ADDED_LACKING, f"{lacking}; `whyrank embed` makes what is missing")

    def signal(self, store: Store, memories: Mapping[MemoryId, Held], where: Where) -> Signal | None:
        """Score those candidates that are in another language, listed by its run or not; None if none is."""
        others = store.in_other_languages(memories, self.language, where.scopes)
        known = {*self.marks.values()}
        ids = [identity for identity, language in others.items() if language in known]
        for signal in store.score(ids, (), self.vector, self.embedder.fingerprint, where) if ids else ():
            return replace(signal, name=self.name, floor=None)
        return None


def language_asked(analysis: Analysis, there: Mapping[str, int]) -> str:
    """Return the language a query shows, else that of most memories, so that single words stay within it."""
    latin = [(count, language) for language, count in there.items() if language in LATIN_LANGUAGES]
    return analysis.shown_language or max(latin, default=(0, analysis.language))[1]


def other_marks(embedder: Embedder, language: str, there: Mapping[str, int]) -> dict[str, str]:
    """Return the marks of the other languages in the store, if the model supports them and the query's."""
    known = {*(embedder.languages or LANGUAGES)}
    if language not in known:
        return {}
    return {mark: other for mark, other in marks_but_of(language).items() if other in there and other in known}
