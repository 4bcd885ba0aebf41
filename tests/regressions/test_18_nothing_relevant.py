"""Failure 18: nothing relevant in memory, ten results anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.regressions.conftest import OpenEngine

# Thresholds are the embedder's defaults here; a later release calibrates them on the store's own memories.
NOTES = (
    "The concert hall's stage fan is louder than agreed.",
    "Invoices are sent on the first Monday of the month.",
    "The home server moves to the new rack in October.",
    "Suzy prefers green tea in the afternoon.",
)


def test_a_foreign_question_is_called_nothing(open_engine: OpenEngine) -> None:
    engine = open_engine(*NOTES)
    assert engine.search("mitochondrial membrane potential in zebrafish embryos").verdict == "nothing"


def test_strict_returns_no_results_then(open_engine: OpenEngine) -> None:
    engine = open_engine(*NOTES)
    assert len(engine.search("mitochondrial membrane potential in zebrafish embryos", strict=True)) == 0


def test_an_answerable_question_is_found(open_engine: OpenEngine) -> None:
    engine = open_engine(*NOTES)
    results = engine.search("which green tea does Suzy prefer in the afternoon?", strict=True)
    assert results.verdict == "found"
    assert results[0].memory.text == NOTES[3]


def test_an_empty_store_says_nothing(open_engine: OpenEngine) -> None:
    results = open_engine().search("anything at all")
    assert (results.verdict, len(results)) == ("nothing", 0)
