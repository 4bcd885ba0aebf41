"""The JSON of a pool: what it holds, what it keeps to itself, and how large it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from whyrank.analysis.snippets import Snippet, Span
from whyrank.errors import BadQuery, ConfigError
from whyrank.interfaces import serialize_candidates
from whyrank.ranking.recipes import RECIPES, Recipe
from whyrank.search.explain import Pooled
from whyrank.types.memory import Memory

if TYPE_CHECKING:
    from whyrank.engine.engine import Engine
    from whyrank.types.results import Context, Ranking

EXAMPLES = Path(__file__).parents[3] / "examples"
QUESTION = "What is Suzy's standard day rate in 2026?"
Shape = Callable[[Pooled], dict[str, Any]]
LARGEST = 170_000  # bytes, for 200 candidates; openvault says of each what it is worth, and has the most


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("pool")
    with whyrank.open(folder / "memory.db", workspace=folder, embedding="wordllama") as memory:
        memory.ingest(EXAMPLES / "memory", base=EXAMPLES)
        yield memory


@pytest.mark.parametrize("recipe", RECIPES)
def test_two_hundred_candidates_are_no_more_than_170_kilobytes(memory: Engine, recipe: str) -> None:
    data = serialize_candidates.pool(memory.pool(QUESTION, recipe=recipe))
    size = len(json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode())
    assert size / len(data["candidates"]) * 200 <= LARGEST


def test_numbers_that_are_added_up_are_whole(memory: Engine) -> None:
    pooled = memory.pool(QUESTION)
    sent = json.loads(json.dumps(serialize_candidates.pool(pooled)))
    [keyword] = [signal for signal in sent["signals"] if signal["name"] == "keyword"]
    values = pooled.pool.context.signals["keyword"].values
    assert keyword["raw"] == [values.get(found.id) for found in pooled.memories]
    assert [one["id"] for one in sent["candidates"]] == [found.id for found in pooled.memories]


@pytest.mark.parametrize("question", [QUESTION, "invoice", "ERR-4012 on the printer"])
def test_a_browser_can_add_up_the_evidence_that_the_verdict_rests_on(memory: Engine, question: str) -> None:
    sent = serialize_candidates.pool(memory.pool(question))
    cosines, coverages = _signal(sent, "vector")["raw"], _signal(sent, "keyword")["coverage"]
    counts, rest, least = (sent["weighing"][name] for name in ("coverage_counts", "rest", "least"))
    own = [
        max(least if coverage else 0.0, rest * ((cosine or 0.0) + counts * (coverage or 0.0)))
        for cosine, coverage in zip(cosines, coverages, strict=True)
    ]
    assert sent["evidence"] == pytest.approx(max(own))
    assert (least > 0) == (question == "invoice")
    assert (rest < 1) == question.startswith("ERR")


def _signal(sent: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [signal for signal in sent["signals"] if signal["name"] == name]
    return dict(found)


def test_candidates_stand_in_the_order_that_breaks_ties(memory: Engine) -> None:
    keys = [found.content_key for found in memory.pool(QUESTION).memories]
    assert keys == sorted(keys)


def test_a_snippet_is_cut_at_its_marks() -> None:
    assert serialize_candidates.pieces(Snippet("green tea", (Span(0, 5),))) == ["", "green", " tea"]
    assert serialize_candidates.pieces(Snippet("<b>tea</b>", (Span(3, 6),))) == ["<b>", "tea", "</b>"]
    assert serialize_candidates.pieces(Snippet("tea", ())) == ["tea"]


@pytest.mark.parametrize(
    ("shape", "most", "what"),
    [
        (
            serialize_candidates.pool,
            serialize_candidates.MOST_SENT,
            "5,001 candidates are too many to rank in a browser",
        ),
        (serialize_candidates.likeness, serialize_candidates.MOST_COMPARED, "1,001 candidates are too many to compare"),
    ],
)
def test_a_crowd_of_candidates_is_refused(memory: Engine, shape: Shape, most: int, what: str) -> None:
    pooled = memory.pool(QUESTION, likeness=True)
    many = {str(place): Memory(str(place), "tea") for place in range(most + 1)}
    crowd = replace(pooled, pool=replace(pooled.pool, context=replace(pooled.pool.context, memories=many)))
    with pytest.raises(BadQuery, match=what):
        shape(crowd)


def test_a_stage_or_normaliser_of_ones_own_is_refused_by_name(memory: Engine) -> None:
    @dataclass(frozen=True)
    class Backwards:
        def __call__(self, ranking: Ranking, context: Context) -> Ranking:
            return ranking

    @dataclass(frozen=True)
    class Half:
        by_rank = False

        def __call__(self, scores: Any, ranks: Any) -> list[float]:
            return [0.5 for _ in scores]

    fusion = RECIPES["default"].fusion
    votes = tuple(replace(vote, normaliser=Half()) for vote in fusion.votes)
    for recipe, name in (
        (Recipe("mine", fusion, (Backwards(),)), "Backwards"),
        (Recipe("mine", replace(fusion, votes=votes)), "Half"),
    ):
        with pytest.raises(ConfigError, match=f"a browser cannot rank by .*{name}"):
            serialize_candidates.pool(memory.pool(QUESTION, recipe=recipe))


def test_settings_and_knobs_are_those_of_the_answer(memory: Engine) -> None:
    data = serialize_candidates.pool(memory.pool(QUESTION, recipe="rrf", limit=3, offset=1))
    assert (data["recipe"], data["limit"], data["offset"], data["format"]) == ("rrf", 3, 1, 1)
    [k] = [knob for knob in data["knobs"] if knob["key"] == "ranking.k"]
    assert (k["value"], k["given"], k["idle"], k["needs"]) == (60.0, None, None, None)
    [half_life] = [knob for knob in data["knobs"] if knob["key"] == "ranking.recency_half_life_days"]
    assert (half_life["idle"], half_life["needs"]) == ("Recency is at 0", "recency_weight")
    assert data["settings"]["max_per_file"] == 1
