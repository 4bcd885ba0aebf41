"""The chunk that is shown of a file is the one that answers: long notes, a labelled passage for each question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank import Engine, Hit

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSAGES = Path(__file__).parents[2] / "examples" / "passages"
QUESTIONS = [json.loads(line) for line in (PASSAGES / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("passages")
    with whyrank.open(folder / "memory.db", workspace=folder, embedding="wordllama") as engine:
        engine.ingest(PASSAGES / "notes", base=PASSAGES / "notes")
        yield engine


def test_of_51_questions_the_chunk_shown_answers_38(notes: Engine) -> None:
    """Counted: 40 of 51 with WordLlama, 44 with MiniLM; a chunk taken at random out of its file answers 7."""
    shown = [_chunk_of(notes, asked) for asked in QUESTIONS]
    answering = [
        hit
        for hit, asked in zip(shown, QUESTIONS, strict=True)
        if hit is not None and _plain(asked["answer"]) in _plain(hit.memory.text)
    ]
    assert len(QUESTIONS) == 51
    assert len(answering) >= 38


def test_chunks_of_one_file_differ_by_their_own_words_alone(notes: Engine) -> None:
    """What the file adds is the same for each of its chunks, so that the best own score is shown."""
    looked_at = 0
    for asked in QUESTIONS:
        found = notes.search(asked["question"], limit=6)
        chunks: dict[str, list[Hit]] = {}
        for hit in (*found, *found.dropped):
            if hit.memory.source is not None and hit.trail[0].parts:
                chunks.setdefault(hit.memory.source.path, []).append(hit)
        for shown, *others in chunks.values():
            for other in others:
                assert _of_the_file(shown) == pytest.approx(_of_the_file(other))
                assert (shown.tier, shown.score) >= (other.tier, other.score)
                looked_at += 1
    assert looked_at > 1_000


def _chunk_of(engine: Engine, asked: dict[str, str]) -> Hit | None:
    found = engine.search(asked["question"], limit=6)
    return next((hit for hit in found if hit.memory.source and hit.memory.source.path == asked["file"]), None)


def _of_the_file(hit: Hit) -> float:
    [keyword] = [part for part in hit.trail[0].parts if part.signal == "keyword"]
    return sum(term.value for term in keyword.terms if term.context == "file")


def _plain(text: str) -> str:
    return " ".join(text.split())
