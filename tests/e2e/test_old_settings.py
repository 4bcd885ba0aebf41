"""Settings under old names, as users of the command line meet them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import Run

OLD = "vectorSimilarityWeight = 20\nkeywordMatchWeight = 5\n"


def test_every_verb_warns_on_standard_error_and_works(workspace: Path, call: Run) -> None:
    (workspace / "whyrank.toml").write_text(OLD, encoding="utf-8")
    done = call("config", "ranking.alpha")
    assert done.status == 0
    assert done.out.startswith("ranking.alpha = 0.8")
    assert "vectorSimilarityWeight and keywordMatchWeight" in done.err
    assert "ranking.boost_weight" in done.err
    assert call("status").err.count("keywordMatchWeight") == 1


def test_a_search_says_it_once_in_its_answer(workspace: Path, call: Run) -> None:
    (workspace / "whyrank.toml").write_text(OLD, encoding="utf-8")
    plain = call("search", "when does Suzy drink tea?", "--explain")
    assert plain.err.count("keywordMatchWeight") == 1
    assert "16.000 ×" in plain.out  # α · W = 0.8 × 20 for the vectors
    data = call("search", "tea", "--json").data
    assert data["recipe"] == "openvault"
    assert [notice["code"] for notice in data["notices"]].count("setting-old") == 1


def test_a_bad_value_names_the_old_key(workspace: Path, call: Run) -> None:
    (workspace / "whyrank.toml").write_text("vectorSimilarityWeight = 90\n", encoding="utf-8")
    done = call("search", "tea")
    assert done.status == 2
    assert "vectorSimilarityWeight" in done.err
    assert "from 1 to 30" in done.err


def test_the_recipes_of_other_systems_print_and_answer(workspace: Path, call: Run) -> None:
    for name in ("hybrid-mem", "clawhub", "clawhub-266", "openvault"):
        assert name in call("recipes", name).out
        assert call("search", "when does Suzy drink tea?", "--recipe", name, "--json").data["hits"]
    explained = call("search", "Suzy and tea", "--recipe", "openvault", "--explain", "--json").data
    assert explained["analysis"]["repeats"]["suzi"] > 1
    told = call("recipes", "openvault").out
    assert "query terms: strict-length; EntityBoost(weight=5.0)" in told
    assert "blend: the votes add up to at most 15" in told


def test_a_slider_can_be_moved_and_a_recipe_without_it_says_so(workspace: Path, call: Run) -> None:
    assert call("config", "ranking.alpha", "0.25").status == 0
    moved = call("search", "when does Suzy drink tea?", "--recipe", "openvault", "--explain")
    assert "3.750 ×" in moved.out  # 0.25 × 15 for the vectors
    assert "11.250 ×" in moved.out  # 0.75 × 15 for the words
    assert "ranking.alpha has no effect in the recipe 'default'" in call("search", "tea").err
