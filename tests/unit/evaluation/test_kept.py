"""Results are kept whole, and what is damaged is refused by its place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.evaluation.test_harness import engine, folder  # noqa: F401 - fixtures
from whyrank.errors import BadDataset, ConfigError
from whyrank.evaluation import abstention, harness
from whyrank.evaluation import results as kept
from whyrank.evaluation.abstention import Abstention, Side
from whyrank.evaluation.datasets import digest, load_set
from whyrank.evaluation.harness import Judged
from whyrank.evaluation.results import worst

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import whyrank

SIDE = Side("foreign", [Judged(0.9, "found"), Judged(0.4, "weak")], [Judged(0.1, "nothing")])


@pytest.fixture
def data(folder: Path, engine: whyrank.Engine) -> dict[str, Any]:  # noqa: F811
    """Return a real evaluation and an abstention as they are kept."""
    with engine:
        evaluation = harness.evaluate(load_set(folder), engine, ["default", "rrf"], lambda *_: None)
        stories = [kept.story_as_data(story) for story in worst(evaluation, engine, 2)]
    told = [{**harness.as_data(evaluation), "worst": stories}]
    silent = [abstention.as_data(Abstention("small", (SIDE,), ("global",)))]
    made: dict[str, Any] = json.loads(json.dumps(kept.as_data("1.2", "today", {"embedding": "none"}, told, silent)))
    return made


def test_what_is_kept_is_read_again_as_it_was(data: dict[str, Any], tmp_path: Path) -> None:
    kept.write(data, tmp_path / "kept.json")
    found = kept.read(tmp_path / "kept.json")
    [one] = found.sets
    assert (found.whyrank, found.made, found.settings) == ("1.2", "today", {"embedding": "none"})
    assert (one.name, one.recipes) == ("small", ("default", "rrf"))
    assert one.lines == ("default", "rrf", "keyword", "vector", "ceiling")
    assert [query.id for query in one.queries] == ["q1", "q2"]
    assert one.query("q1").expected == {"tea": 1}
    assert one.query("q1").ranks["default"] == 1
    assert one.values("default") == [1.0, 1.0]
    [side] = found.abstentions[0].sides
    assert (side.answerable, side.unanswerable, side.kept, side.rejected) == (2, 1, 1.0, 1.0)
    assert side.points == tuple(SIDE.curve())


def remove(*keys: str | int) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        for key in keys[:-1]:
            data = data[key]
        del data[keys[-1]]

    return change


def put(value: object, *keys: str | int) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        for key in keys[:-1]:
            data = data[key]
        data[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (remove("kind"), "not the results of an evaluation"),
        (put("whyrank-bench", "kind"), "not the results of an evaluation"),
        (put(2, "format"), "format 2, and this whyrank reads up to 1"),
        (put(0, "format"), "format: there is no format 0"),
        (remove("format"), "'format' is missing"),
        (put({}, "sets"), "sets: a list is expected here"),
        (put("x", "sets", 0), r"sets\[0\]: an object is expected here"),
        (remove("sets", 0, "per_query"), "'per_query' is missing"),
        (put([], "sets", 0, "per_query"), "a set needs queries"),
        (put(["soup"], "sets", 0, "recipes"), "recipes that are among its lines"),
        (put([1.0], "sets", 0, "per_query", 0, "figures", "default"), "8 figures are expected here"),
        (put("much", "sets", 0, "per_query", 0, "figures", "default", 0), r"default\[0\]: a number is expected"),
        (
            put(1.5, "sets", 0, "per_query", 0, "figures", "default", 0),
            r"default\[0\]: a number from 0 to 1 is expected",
        ),
        (
            put(-0.1, "sets", 0, "per_query", 1, "figures", "ceiling", 2),
            r"ceiling\[2\]: a number from 0 to 1 is expected",
        ),
        (put("q1", "sets", 0, "per_query", 1, "id"), r"sets\[0\].per_query: q1 stands there 2 times"),
        (put(7, "abstention", 0, "sides", 0, "auc"), "auc: a number from 0 to 1 is expected"),
        (put(-1, "abstention", 0, "sides", 0, "points", "kept", 0), r"kept\[0\]: a number from 0 to 1 is expected"),
        (put(float("nan"), "sets", 0, "per_query", 0, "evidence"), "evidence: a number is expected"),
        (put(10**400, "sets", 0, "per_query", 0, "evidence"), "evidence: a number is expected"),
        (put(True, "sets", 0, "trails", "broken"), "broken: a whole number is expected"),
        (put(1, "sets", 0, "per_query", 0, "text"), "text: a text is expected"),
        (put(["ndcg@10"], "sets", 0, "measures"), "hit@1 is missing"),
        (put([0.1], "abstention", 0, "sides", 0, "points", "kept"), "a point has a threshold"),
    ],
)
def test_damage_is_refused_with_its_place(
    data: dict[str, Any], tmp_path: Path, change: Callable[[Any], None], said: str
) -> None:
    change(data)
    file = tmp_path / "kept.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(BadDataset, match=said) as refused:
        kept.read(file)
    assert "kept.json" in refused.value.message
    assert refused.value.hint


def test_results_of_a_whyrank_that_knew_fewer_measures_are_read(data: dict[str, Any]) -> None:
    [one] = data["sets"]
    place = one["measures"].index("hit@6")
    del one["measures"][place]
    for query in one["per_query"]:
        for figures in query["figures"].values():
            del figures[place]
    [read] = kept.kept_from(data).sets
    assert read.measures == ("ndcg@10", "recall@5", "recall@10", "mrr@10", "hit@1", "hit@5", "hit@10")
    assert read.values("default", "hit@10") == [1.0, 1.0]


def test_a_figure_that_misses_one_by_rounding_is_not_damage(data: dict[str, Any]) -> None:
    data["sets"][0]["per_query"][0]["figures"]["default"][0] = 1.0000000000000002
    assert len(kept.kept_from(data).sets[0].queries) == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"{", "not JSON"), (b"[1]", "holds no results"), (b"\xff\xfe", "cannot be read"), (b"", "not JSON")],
)
def test_what_is_no_json_is_said_so(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "kept.json").write_bytes(content)
    with pytest.raises(BadDataset, match=said):
        kept.read(tmp_path / "kept.json")
    with pytest.raises(BadDataset, match="is not there"):
        kept.read(tmp_path / "nowhere.json")


def test_a_folder_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        kept.write({}, tmp_path / "nowhere" / "kept.json")


def test_a_set_is_known_by_its_documents(folder: Path, tmp_path: Path) -> None:  # noqa: F811
    before = digest(load_set(folder))
    corpus = folder / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("green tea", "black tea"))
    assert digest(load_set(folder)) != before
    corpus.unlink()
    (folder / "files").mkdir()
    (folder / "files" / "tea").write_text("green tea")
    files = digest(load_set(folder))
    (folder / "files" / "tea").write_text("black tea")
    assert digest(load_set(folder)) != files
