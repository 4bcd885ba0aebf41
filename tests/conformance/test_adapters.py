"""whyrank passes whole; peers whose packages are here are really asked."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING

import numpy as np
import pytest

from whyrank_conformance import Question, Report, examine
from whyrank_conformance.adapters import ENGINES, engine_named
from whyrank_conformance.adapters.served import EmbeddingServer
from whyrank_conformance.corpora import everyday, planted
from whyrank_conformance.meanings import Corpus
from whyrank_conformance.trial import Lab

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

OURS = [name for name in ENGINES if name.startswith("whyrank")]
PEERS = [name for name in ENGINES if name not in OURS]


def states(report: Report, state: str) -> list[int]:
    return [outcome.check for outcome in report.outcomes if outcome.state == state]


@pytest.mark.parametrize("name", ["whyrank", "whyrank-fts5"])
def test_whyrank_passes_all_eighteen_with_either_index(name: str) -> None:
    report = examine(engine_named(name))
    assert [(outcome.check, outcome.evidence) for outcome in report.outcomes if outcome.state != "passed"] == []
    assert len(report.outcomes) == 18


def test_whyrank_is_asked_through_every_door_it_has(tmp_path: Path) -> None:
    notes = (planted("tea", "green tea is steeped at seventy degrees"), *everyday(3, 1))
    with Lab(engine_named("whyrank"), tmp_path).planted(Corpus(notes, {}), own_model=True) as engine:
        doors = engine.doors()
        wanted = engine.search(Question("green tea", limit=2)).ids
        assert list(doors) == ["asynchronous library", "command line", "MCP", "HTTP"]
        assert tuple(doors["HTTP"](Question("green tea", limit=2))) == wanted


def test_the_call_says_how_a_least_relevance_is_asked_for() -> None:
    for name in OURS:
        recipe = "default" if name in ("whyrank", "whyrank-fts5") else name.removeprefix("whyrank-")
        assert f'RECIPES["{recipe}"].with_stages(Evidence(m, m))' in engine_named(name)().call


def test_a_meaning_stands_before_a_lone_word(tmp_path: Path) -> None:
    question = Question("quarterly revenue forecast spreadsheet of the printer division")
    meant = planted("meaning", "Money we expect between April and June", {"money": 0.6})
    notes = (meant, planted("lone-word", "The printer stands in the cellar"), *everyday(20, 1))
    lab = Lab(engine_named("whyrank"), tmp_path)
    first, second, *_ = lab.ask(Corpus(notes, {question.text: "money"}), question).hits
    assert (first.id, second.id) == ("meaning", "lone-word")
    assert (second.relevance or 0) < 0.2 < 0.7 < (first.relevance or 0)


def test_the_recipe_that_shows_the_faults_makes_them() -> None:
    report = examine(engine_named("whyrank-openclaw-2026-02"))
    # flat words, AND, a lost run, a missing run as zero, the minimum of 0.35
    assert {1, 5, 7, 8} <= set(states(report, "failed"))
    assert all(outcome.choice for outcome in report.outcomes if outcome.state == "failed")


def test_the_usual_recipe_makes_the_mistakes_it_is_known_for_and_fewer_once_mended() -> None:
    before, after = examine(engine_named("fts5+numpy before")), examine(engine_named("fts5+numpy after"))
    assert {1, 5, 7, 8, 12} <= set(states(before, "failed"))
    # OR and reciprocal ranks mend flat words, the missing run and the minimum; not the ASCII words, nor the threshold
    assert not {1, 7, 8} & set(states(after, "failed"))
    assert {9, 12} <= set(states(after, "failed"))


@pytest.mark.filterwarnings("ignore")  # what a peer warns of is not ours to mend
@pytest.mark.parametrize("name", [name for name in PEERS if "fts5" not in name])
def test_a_peer_that_is_here_can_be_judged(name: str) -> None:
    make = engine_named(name)
    missing = type(make()).missing()
    if missing:
        pytest.skip(missing)
    report = examine(make)
    assert not report.broken
    assert len(report.outcomes) == 18
    assert report.count("passed") > 0


def test_the_embedder_is_served_as_libraries_of_openai_ask_for_it() -> None:
    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[len(text), 0.5] for text in texts], dtype=np.float32)

    server = EmbeddingServer(embed)
    try:
        body = json.dumps({"input": ["a", "bcd"], "model": "m"}).encode()
        request = urllib.request.Request(f"{server.url}/embeddings", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            told = json.load(answer)
    finally:
        server.close()
    assert [one["embedding"] for one in told["data"]] == [[1.0, 0.5], [3.0, 0.5]]
