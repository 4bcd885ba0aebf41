"""txtai: a sparse index and a dense one, normalised and averaged, asked in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..adapter import Adapter, Answer, Door, Found, Note, Question, Setup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ASKED = "SELECT id, score FROM txtai WHERE similar(:text)"


class Txtai(Adapter):
    """A txtai index with `hybrid=True`, and vectors given from outside."""

    name = "txtai"
    about = "txtai, Embeddings(hybrid=True, content=True), with vectors from outside"
    packages = ("txtai",)
    install = "pip install txtai (it brings torch, so it is no part of the extra)"
    call = 'embeddings.search("SELECT id, score FROM txtai WHERE similar(:text) AND score >= … AND scope = …", n)'
    promises = frozenset({"words", "vectors", "relevance", "threshold", "scopes", "doors"})
    choices: ClassVar[Mapping[int, str]] = {
        11: "similar() has candidates before the other conditions are looked at; how many is its argument"
    }

    def open(self, setup: Setup) -> None:
        """Make an empty index."""
        from txtai import Embeddings

        # A plain function: of other objects it makes an instance first.
        self._index: Any = Embeddings(
            method="external", transform=lambda texts: setup.embed(texts), hybrid=True, content=True
        )

    def add(self, notes: Sequence[Note]) -> None:
        """Insert notes, or update the index by them."""
        rows = [(note.id, {"text": note.text, "scope": note.scope}, None) for note in notes]
        self._index.upsert(rows)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete by id."""
        self._index.delete(list(ids))

    def search(self, question: Question) -> Answer:
        """Ask in its SQL, as its documentation does."""
        query, parameters = _ASKED, {"text": question.text}
        if question.minimum is not None:
            query += f" AND score >= {question.minimum}"
        if question.scope:
            query += f" AND scope = '{question.scope}'"
        found = self._index.search(query, question.limit, parameters=parameters)
        return Answer(tuple(Found(row["id"], row["score"]) for row in found))

    def close(self) -> None:
        """Close the index."""
        self._index.close()

    def doors(self) -> Mapping[str, Door]:
        """Return its plain search and its search in batches."""
        return {
            "plain search": lambda question: _ids(self._index.search(question.text, question.limit)),
            "batch": lambda question: _ids(self._index.batchsearch([question.text], question.limit)[0]),
        }


def _ids(found: Sequence[Mapping[str, Any]]) -> list[str]:
    return [row["id"] for row in found]
