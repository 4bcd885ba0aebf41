"""A store with the vectors of an earlier whyrank answers by them, says so, and changes to today's when told to."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import whyrank
from whyrank.providers.wordllama import WordLlama

GOLDEN = Path(__file__).parent
FILES = [*(GOLDEN / "stores" / f"schema{version}.db" for version in (2, 3, 4)), GOLDEN / "readers" / "reader3.db"]
EARLIER, TODAY = WordLlama("no-prompt"), WordLlama()
QUESTION = "what does Suzy drink?"


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copy(request.param, tmp_path / "memory.db"))


def open_store(store: Path, **options: Any) -> whyrank.Engine:
    return whyrank.open(store, workspace=store.parent, **options)


def codes(engine: whyrank.Engine) -> set[str]:
    return {notice.code for notice in engine.search(QUESTION, scope="user:42").notices}


def cosines(engine: whyrank.Engine) -> dict[str, float | None]:
    """Return what the vectors of every memory were worth to a question."""
    hits = engine.search(QUESTION, scope="user:42", recipe="vector", limit=50)
    parts = {hit.memory.text: hit.trail[0].parts for hit in hits}
    return {text: next(part.raw for part in found if part.signal == "vector") for text, found in parts.items()}


def expected(embedder: WordLlama, text: str) -> float:
    return float(embedder.documents([text])[0] @ embedder.query(QUESTION))


def test_earlier_vectors_go_on_answering_and_it_is_said(store: Path) -> None:
    with open_store(store) as engine:
        assert engine.models.space == EARLIER.fingerprint
        assert engine.models.has_earlier_vectors()
        assert codes(engine) >= {"earlier-vectors"}
        assert not codes(engine) & {"vector-off", "model-differs"}
        [message] = [said.message for said in engine.search("tea").notices if said.code == "earlier-vectors"]
        assert "`whyrank model use wordllama`" in message
        added = engine.add("Suzy keeps the tin behind the flour", scope="user:42")
        assert cosines(engine)[added.text] == pytest.approx(expected(EARLIER, added.text), abs=1e-3)
        assert engine.status().without_vector == 0


def test_told_to_the_store_changes_to_the_vectors_of_today_and_back(store: Path) -> None:
    with open_store(store) as engine:
        before = cosines(engine)
        made = engine.models.reembed()
        assert made == len(engine.list(scope="user:42", include_superseded=True, limit=100)) > 0
        assert engine.models.space == TODAY.fingerprint
        assert not engine.models.has_earlier_vectors()
        assert "earlier-vectors" not in codes(engine)
        after = cosines(engine)
        assert after.keys() == before.keys()
        [tea] = [text for text in after if text in ("Suzy prefers tea", "Suzy drinks tea")]
        assert after[tea] == pytest.approx(expected(TODAY, tea), abs=1e-3)
        assert before[tea] == pytest.approx(expected(EARLIER, tea), abs=1e-3)
        assert engine.models.reembed() == 0
        assert engine.models.rollback().space == EARLIER.fingerprint
        assert cosines(engine) == before
    with open_store(store) as engine:
        assert engine.models.space == EARLIER.fingerprint


def test_where_words_answer_alone_there_is_nothing_to_renew(store: Path) -> None:
    with open_store(store, embedding="none") as engine:
        assert not engine.models.has_earlier_vectors()
        assert engine.models.reembed() == 0
        assert "earlier-vectors" not in codes(engine)
