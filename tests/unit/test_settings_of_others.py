"""What the settings of OpenVault and OpenClaw say in ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from whyrank.config.load import WORKSPACE_FILE, Config, load, user_file
from whyrank.errors import ConfigError
from whyrank.ranking.fusion import Above
from whyrank.ranking.recipes import RECIPES
from whyrank.ranking.stages import OpenClawSelection

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home")}


def loaded(tmp_path: Path, home: dict[str, str], text: str = "", **arguments: Any) -> Config:
    if text:
        (tmp_path / WORKSPACE_FILE).write_text(text, encoding="utf-8")
    return load(arguments, workspace=tmp_path, environment=home)


def test_the_vector_weight_is_the_budget_and_the_ratio_stays(tmp_path: Path, home: dict[str, str]) -> None:
    config = loaded(tmp_path, home, "vectorSimilarityWeight = 20\nkeywordMatchWeight = 5\n")
    assert config["ranking.boost_weight"] == 20
    assert config["ranking.alpha"] == 20 / (20 + 5)
    assert config["recipe"] == "openvault"
    fusion = config.recipe().fusion
    assert (fusion.strength, fusion.votes[0].weight) == (20, 0.8)


def test_of_two_weights_the_missing_one_is_what_openvault_has(tmp_path: Path, home: dict[str, str]) -> None:
    assert loaded(tmp_path, home, vectorSimilarityWeight=20)["ranking.alpha"] == 20 / (20 + 3)
    other = loaded(tmp_path, home, keywordMatchWeight=15)
    assert (other["ranking.boost_weight"], other["ranking.alpha"]) == (15, 15 / (15 + 15))


def test_its_newer_names_win_over_its_older_ones(tmp_path: Path, home: dict[str, str]) -> None:
    config = loaded(tmp_path, home, "vectorSimilarityWeight = 20\nalpha = 0.5\nentityBoostWeight = 3\n")
    assert (config["ranking.boost_weight"], config["ranking.alpha"]) == (20, 0.5)
    assert config["ranking.entity_boost"] == 3


def test_the_threshold_of_openvault_is_read(tmp_path: Path, home: dict[str, str]) -> None:
    config = loaded(tmp_path, home, "vectorSimilarityThreshold = 0.3\n")
    assert (config["recipe"], config["ranking.vector_threshold"]) == ("openvault", 0.3)
    assert config.recipe().fusion.votes[0].normaliser == Above(0.3)
    assert loaded(tmp_path, home, "alpha = 0.7\n").recipe().fusion.votes[0].normaliser == Above(0.5)


def test_one_notice_names_old_and_new(tmp_path: Path, home: dict[str, str]) -> None:
    [notice] = loaded(tmp_path, home, "vectorSimilarityWeight = 20\nkeywordMatchWeight = 5\n").notices
    assert notice.code == "setting-old"
    for named in ("vectorSimilarityWeight and keywordMatchWeight", "ranking.boost_weight and ranking.alpha"):
        assert named in notice.message


def test_a_new_key_wins_from_wherever(tmp_path: Path, home: dict[str, str]) -> None:
    user_file(home).parent.mkdir(parents=True)
    user_file(home).write_text('recipe = "default"\n[ranking]\nalpha = 0.6\n', encoding="utf-8")
    config = loaded(tmp_path, home, "vectorSimilarityWeight = 20\n")
    assert (config["recipe"], config["ranking.alpha"], config["ranking.boost_weight"]) == ("default", 0.6, 20)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("vectorSimilarityWeight = 90\n", "vectorSimilarityWeight: ranking.boost_weight = 90"),
        ("vectorSimilarityWeight = -1\n", "vectorSimilarityWeight = -1"),
        ('keywordMatchWeight = "much"\n', "keywordMatchWeight = 'much'"),
        ("vectorSimilarityWeight = 0\nkeywordMatchWeight = 0\n", "vectorSimilarityWeight and keywordMatchWeight"),
        ("alpha = 2\n", "alpha: ranking.alpha = 2"),
        ("vectorSimilarityThreshold = 1\n", "vectorSimilarityThreshold: ranking.vector_threshold = 1"),
        ("[memorySearch.query]\nmaxResults = 0\n", "memorySearch.query.maxResults: limit = 0"),
        ("[memorySearch.query]\nminScore = 7\n", "memorySearch.query.minScore: ranking.min_score = 7"),
        ("[memorySearch.query.hybrid]\nenabled = 3\n", "memorySearch.query.hybrid.enabled = 3"),
        ("[memorySearch.query.hybrid.mmr]\nenabled = true\nlambda = 4\n", "memorySearch.query.hybrid.mmr.lambda"),
    ],
)
def test_a_value_out_of_range_names_the_old_key_and_the_file(
    tmp_path: Path, home: dict[str, str], text: str, named: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, home, text)
    assert named in caught.value.message
    assert WORKSPACE_FILE in caught.value.message


OPENCLAW = """
[agents.defaults.memorySearch.query]
maxResults = 10
minScore = 0.25

[agents.defaults.memorySearch.query.hybrid]
vectorWeight = 0.6
textWeight = 0.2
candidateMultiplier = 3
mmr = { enabled = true, lambda = 0.6 }
temporalDecay = { enabled = true, halfLifeDays = 14 }
"""


def test_openclaw_becomes_its_recipe_with_its_numbers(tmp_path: Path, home: dict[str, str]) -> None:
    config = loaded(tmp_path, home, OPENCLAW)
    assert (config["recipe"], config["limit"], config["ranking.pool"]) == ("openclaw", 10, 10 * 3)
    assert config["ranking.vector_weight"] == pytest.approx(0.6 / (0.6 + 0.2))
    assert config["ranking.mmr_lambda"] == 0.6
    assert (config["ranking.recency_weight"], config["ranking.recency_half_life_days"]) == (1.0, 14)
    recipe = config.recipe()
    assert recipe.plan.pool == 30
    assert OpenClawSelection(0.25) in recipe.stages
    assert len(config.notices) == 5


def test_the_same_keys_stand_without_their_root(tmp_path: Path, home: dict[str, str]) -> None:
    short = loaded(tmp_path, home, OPENCLAW.replace("agents.defaults.", ""))
    assert short["ranking.pool"] == 30


def test_defaults_of_openclaw_are_the_recipe_as_it_ships(tmp_path: Path, home: dict[str, str]) -> None:
    text = "[memorySearch.query]\nmaxResults = 6\n[memorySearch.query.hybrid]\nvectorWeight = 0.7\ntextWeight = 0.3\n"
    recipe, shipped = loaded(tmp_path, home, text).recipe(), RECIPES["openclaw"]
    assert (recipe.plan, recipe.stages) == (shipped.plan, shipped.stages)
    assert [vote.weight for vote in recipe.fusion.votes] == pytest.approx([0.7, 0.3])


def test_without_the_hybrid_the_least_score_is_a_cosine(tmp_path: Path, home: dict[str, str]) -> None:
    text = "[memorySearch.query]\nminScore = 0.25\nmaxResults = 10\n[memorySearch.query.hybrid]\nenabled = false\n"
    config = loaded(tmp_path, home, text)
    assert (config["recipe"], config["ranking.min_vector"], config["limit"]) == ("vector", 0.25, 10)
    assert config["ranking.min_score"] is None


def test_what_is_switched_off_changes_nothing_and_says_so(tmp_path: Path, home: dict[str, str]) -> None:
    config = loaded(tmp_path, home, "[memorySearch.query.hybrid.mmr]\nlambda = 0.5\n")
    assert (config["recipe"], config["ranking.mmr_lambda"]) == ("default", None)
    assert "it has no effect" in config.notices[0].message


@pytest.mark.parametrize(
    ("provider", "embedding"),
    [("local", "wordllama"), ("none", "none"), ("openai", "openai"), ("ollama", "openai"), ("gemini", "openai")],
)
def test_the_provider_of_openclaw_is_an_embedder(
    tmp_path: Path, home: dict[str, str], provider: str, embedding: str
) -> None:
    text = f'[agents.defaults.memorySearch]\nprovider = "{provider}"\nmodel = "embed-3"\n'
    config = loaded(tmp_path, home, text)
    assert config["embedding"] == embedding
    assert config["embedder.model"] == ("embed-3" if embedding == "openai" else None)
    assert config["embedder.url"] is None  # where it listens is the user's to say
    [notice] = config.notices
    assert "memorySearch.provider and memorySearch.model" in notice.message


def test_a_provider_that_is_chosen_by_itself_changes_nothing(tmp_path: Path, home: dict[str, str]) -> None:
    config = loaded(tmp_path, home, '[memorySearch]\nprovider = "auto"\n')
    assert (config["embedding"], config.values["embedding"].origin) == ("wordllama", "default")
    with pytest.raises(ConfigError, match=r"memorySearch\.provider = 3"):
        loaded(tmp_path, home, "[memorySearch]\nprovider = 3\n")


EXPANSION = """
[queryExpansion]
enabled = true
model = "openai/gpt-4.1-nano"
timeoutMs = 20000
"""


def test_query_expansion_is_read_as_it_stands(tmp_path: Path, home: dict[str, str]) -> None:
    config = loaded(tmp_path, home, EXPANSION)
    assert config["query_expansion.enabled"] is True
    assert (config["query_expansion.model"], config["query_expansion.timeout_ms"]) == ("openai/gpt-4.1-nano", 20_000)
    assert config.notices == ()  # it is that system's own name for it, and nothing to give up
    assert config.values["query_expansion.model"].origin == f"{tmp_path / WORKSPACE_FILE} (queryExpansion.model)"


def test_query_expansion_wins_over_hyde_and_our_own_name_over_both(tmp_path: Path, home: dict[str, str]) -> None:
    hyde = '[search]\nhydeEnabled = false\nhydeModel = "old"\n'
    config = loaded(tmp_path, home, EXPANSION + hyde)
    assert config["query_expansion.enabled"] is True
    assert (config["query_expansion.model"], config["query_expansion.timeout_ms"]) == ("openai/gpt-4.1-nano", 20_000)
    assert len(config.notices) == 1
    config = loaded(tmp_path, home, EXPANSION + hyde + "[query_expansion]\nenabled = false\n")
    assert config["query_expansion.enabled"] is False
    assert config["query_expansion.model"] == "openai/gpt-4.1-nano"


def test_a_bad_value_of_query_expansion_names_the_key_that_was_written(tmp_path: Path, home: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"from .*whyrank\.toml \(queryExpansion\.enabled\)"):
        loaded(tmp_path, home, '[queryExpansion]\nenabled = "perhaps"\n')
    with pytest.raises(ConfigError, match=r"no setting 'queryExpansion\.colour'"):
        loaded(tmp_path, home, "[queryExpansion]\ncolour = 3\n")


def test_an_answer_says_which_settings_go_by_old_names(tmp_path: Path) -> None:
    options: dict[str, Any] = {"embedding": "none", "vectorSimilarityWeight": 20}
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, **options) as memory:
        memory.add("Suzy drinks tea")
        results = memory.search("tea")
    assert results.recipe == "openvault"
    [notice] = [notice for notice in results.notices if notice.code == "setting-old"]
    assert "vectorSimilarityWeight (argument) is an old name" in notice.message
