"""The browser's ranking is the library's: recorded pools, every recipe, sliders anywhere, compared to the last step."""

from __future__ import annotations

import itertools
import json
import random
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Error, Page

import whyrank
from tests.minilm import MODELS
from tests.multilingual import installed as multilingual_files
from tests.properties.worlds import World, recipes, worlds
from whyrank.config.load import load
from whyrank.interfaces import serialize_candidates
from whyrank.ranking.counterfactuals import Pool
from whyrank.ranking.fusion import candidate_ids
from whyrank.ranking.recipes import AS_IT_IS, RECIPES, Adjustments, Recipe, adjusted
from whyrank.search.confidence import Weighing
from whyrank.search.explain import Pooled
from whyrank.testing.fakes import ScriptedLlm, SharedWords
from whyrank.types.results import Results

from .agreement import differences, opened, ranked_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whyrank.engine.engine import Engine

EXAMPLES = Path(__file__).parents[3] / "examples"
WISHES_PER_POOL = 8
QUESTIONS = (
    "What is Suzy's standard day rate in 2026?",
    "rsync command used to copy heron to plover",
    "an umbrella for the orchestra that plays on the moon",
    "podcast studio",
    "Hollerdeich",
    "what changed since the last call about the wind farm survey?",
    "",
)
RANGES: dict[str, tuple[float, float]] = {
    "vector_weight": (0.0, 1.0),
    "alpha": (0.0, 1.0),
    "boost_weight": (1.0, 30.0),
    "vector_threshold": (0.0, 0.99),
    "k": (0.01, 200.0),
    "name_bonus": (0.0, 10.0),
    "recency_weight": (0.0, 1.0),
    "recency_half_life_days": (0.5, 400.0),
    "mmr_lambda": (0.0, 1.0),
    "min_vector": (-1.0, 1.0),
    "min_coverage": (0.0, 1.0),
    "min_score": (0.0, 1.0),
}


def wished(chance: random.Random) -> dict[str, float]:
    """Return some sliders somewhere, often at their ends, where votes fall silent and everything ties."""
    names = chance.sample(sorted(RANGES), chance.randint(1, 4))
    return {name: chance.choice([*RANGES[name], *(chance.uniform(*RANGES[name]) for _ in range(4))]) for name in names}


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    page = opened(browser)
    yield page
    page.close()


class Engines(NamedTuple):
    """The example memories asked with vectors, without, and with a reranker."""

    wordllama: Engine
    none: Engine
    reranked: Engine


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    folder = tmp_path_factory.mktemp("examples")
    store = folder / "memory.db"
    with whyrank.open(store, workspace=folder, embedding="wordllama") as memory:
        memory.ingest(EXAMPLES / "memory", base=EXAMPLES)
        for text, importance in (("Suzy's day rate is 940 euros", 5), ("suzy's day  rate is 940 euros", 1)):
            memory.add(text, importance=importance, key=str(importance))
        with (
            whyrank.open(store, workspace=folder, embedding="none") as none,
            whyrank.open(store, workspace=folder, embedding="wordllama", reranker=SharedWords()) as read,
        ):
            none.add("The Hollerdeich survey was never paid: Suzy's day rate in 2026")  # it has no vector
            yield Engines(memory, none, read)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("which", Engines._fields)
def test_every_recipe_ranks_alike_wherever_the_sliders_stand(
    page: Page, engines: Engines, which: str, recipe: str
) -> None:
    chance = random.Random(f"{which} {recipe}")
    for question in QUESTIONS:
        pooled = getattr(engines, which).pool(question, recipe=recipe, likeness=True)
        wishes = [{}, *(wished(chance) for _ in range(WISHES_PER_POOL))]
        assert [*differences(page, pooled, wishes)] == []


def test_as_it_is_the_pool_is_ranked_as_the_search_answers(page: Page, engines: Engines) -> None:
    for recipe in RECIPES:
        for question in QUESTIONS:
            results = engines.wordllama.search(question, recipe=recipe, limit=7)
            [found] = ranked_in(page, engines.wordllama.pool(question, recipe=recipe, limit=7, likeness=True), [{}])
            assert [(hit["id"], hit["score"]) for hit in found["hits"][:7]] == [(hit.id, hit.score) for hit in results]


@pytest.mark.parametrize("mode", ["hyde", "variants"])
@pytest.mark.parametrize("recipe", ["default", "rrf", "openvault", "hybrid-mem"])
def test_a_widened_question_divides_its_votes_alike(page: Page, tmp_path: Path, mode: str, recipe: str) -> None:
    said = (
        json.dumps({"variants": ["beverage of Robin", "hot leaves in a cup"]}) if mode == "variants" else "hot leaves"
    )
    chance = random.Random(f"{mode} {recipe}")
    options = {"query_expansion.mode": mode, "embedding": "wordllama", "recipe": recipe}
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, llm=ScriptedLlm(said), **options) as memory:  # type: ignore[arg-type]
        for text in ("green leaves for a hot cup", "Robin drinks tea in the morning", "the cup of Robin", "noon"):
            memory.add(text)
        pooled = memory.pool("what does Robin drink?", expand=True, likeness=True)
    assert pooled.shares
    assert [*differences(page, pooled, [{}, *(wished(chance) for _ in range(20))])] == []


@pytest.mark.parametrize("recipe", ["default", "rrf", "openvault"])
def test_a_model_that_was_added_votes_alike(page: Page, tmp_path: Path, recipe: str) -> None:
    multilingual_files()
    chance = random.Random(recipe)
    options = {"embedding": "wordllama", "recipe": recipe, "model.folder": str(MODELS)}
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, **options) as memory:  # type: ignore[arg-type]
        for text in (
            "The plants in the hall are not for the cat.",
            "Wer im Sommer die Pflanzen gießt, das ist Anna.",
            "Пока нас нет, растения поливает соседка.",
            "The boat is at the jetty in the summer.",
        ):
            memory.add(text)
        memory.models.add("multilingual")
        pooled = memory.pool("Who waters the plants while we are away?", likeness=True)
    has_vote = any(signal == "vector:multilingual" for signal in pooled.pool.context.signals)
    assert has_vote == (recipe == "default")
    assert [*differences(page, pooled, [{}, *(wished(chance) for _ in range(20))])] == []


def test_in_a_small_batch_the_boost_weight_is_the_cap_as_well(page: Page, tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as memory:
        for text in ("green tea", "green oil"):
            memory.add(text)
        pooled = memory.pool("green tea", recipe="openvault", likeness=True)
    assert len(pooled.memories) < 3
    assert [*differences(page, pooled, [{"boost_weight": weight} for weight in (1.0, 5.0, 30.0)])] == []


def settled(world: World, recipe: Recipe, wish: Adjustments) -> Pooled:
    """Make a pool of a generated world: only candidates, and what is known of them."""
    ids = candidate_ids(world.runs)
    context = replace(world.context, memories={key: world.context.memories[key] for key in ids})
    chosen = adjusted(recipe, wish)
    results = Results("", (), "found", recipe.name, context.analysis)
    return Pooled(results, Pool(world.runs, context, chosen), recipe, wish, (), 0.6, {}, {}, Weighing(1.0))


wishes = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(ends) | st.floats(*ends) for name, ends in RANGES.items()}
)
laid_over = st.sampled_from(
    [AS_IT_IS, Adjustments(), Adjustments(importance="scaled", recency_weight=0.3), Adjustments(evidence="calibrated")]
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    world=worlds(visible_only=True), recipe=recipes(), wish=laid_over, moved=st.lists(wishes, min_size=1, max_size=4)
)
def test_generated_worlds_and_recipes_rank_alike(
    page: Page, world: World, recipe: Recipe, wish: Adjustments, moved: list[dict[str, float]]
) -> None:
    assert [*differences(page, settled(world, recipe, wish), [{}, *moved])] == []


def test_settings_travel_as_toml_into_the_file_they_are_copied_to(page: Page, tmp_path: Path) -> None:
    moved = {"vector_weight": 0.35, "k": 7, "mmr_lambda": None, "recency_half_life_days": 1e-3, "name_bonus": 1.5}
    script = """async (moved) => (await import("/page/rank.js")).toToml(moved, "rrf")"""
    text = page.evaluate(script, moved)
    assert tomllib.loads(text)["ranking"].keys() == moved.keys() - {"mmr_lambda"}
    (tmp_path / "whyrank.toml").write_text(text)
    config = load(workspace=tmp_path, environment={"XDG_CONFIG_HOME": str(tmp_path)})
    assert config["recipe"] == "rrf"
    assert {name: config[f"ranking.{name}"] for name in moved} == moved


@pytest.mark.parametrize("settings", ['{ "ranking.k": 3 }', "{ k: undefined }"])
def test_what_is_no_setting_is_refused_and_not_ranked_by(page: Page, engines: Engines, settings: str) -> None:
    pool = json.dumps(serialize_candidates.pool(engines.none.pool("tea")))
    script = f"""async (pool) => (await import("/page/rank.js")).rank(JSON.parse(pool), {settings})"""
    with pytest.raises(Error, match="is no setting of a ranking"):
        page.evaluate(script, pool)


def test_diversity_without_likeness_is_refused(page: Page, engines: Engines) -> None:
    pool = json.dumps(serialize_candidates.pool(engines.wordllama.pool("tea")))
    script = """async ([pool, settings]) => {
      const { needsLikeness, rank } = await import("/page/rank.js");
      return [needsLikeness(JSON.parse(pool), settings), rank(JSON.parse(pool), settings).hits.length];
    }"""
    assert page.evaluate(script, [pool, {"k": 3}])[0] is False
    with pytest.raises(Error, match="diversity needs the likeness"):
        page.evaluate(script, [pool, {"mmr_lambda": 0.5}])


@pytest.mark.parametrize("label", ["__proto__", "constructor"])
def test_a_term_may_be_called_as_a_property_of_every_object(page: Page, engines: Engines, label: str) -> None:
    pool = serialize_candidates.pool(engines.none.pool("podcast studio"))
    keys = [key for signal in pool["signals"] for key in signal["terms"]["keys"] if key["term"] == "studio"]
    keys[0]["term"] = label
    script = """async (pool) => {
      const { hits } = (await import("/page/rank.js")).rank(JSON.parse(pool), {});
      const parts = hits.flatMap((hit) => hit.trail.flatMap((step) => step.parts));
      return parts.flatMap((part) => part.terms.map(({ term }) => term));
    }"""
    assert label in page.evaluate(script, json.dumps(pool))


def test_ties_break_by_code_point_as_python_compares(page: Page, tmp_path: Path) -> None:
    # U+FF5E sorts before U+1F600 by code point, and after it by UTF-16 unit, which browsers compare.
    assert "\uff5e" < "\U0001f600"
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as memory:
        for name in ("\U0001f600.md", "\uff5e.md"):
            (tmp_path / name).write_text("tea", encoding="utf-8")
        memory.ingest(tmp_path)
        pooled = memory.pool("tea", likeness=True)
        [found] = ranked_in(page, pooled, [{}])
    assert [pooled.memories[hit["place"]].source.path for hit in found["hits"]] == ["\uff5e.md", "\U0001f600.md"]
    assert len({hit["score"] for hit in found["hits"]}) == 1


BUGS = {
    "a whole vote for a weak best": ("ranking/normalisers.js", "Math.max(best - minimum, least)", "best - minimum"),
    "ranks from zero": ("ranking/normalisers.js", "(k + 1) / (k + rank)", "k / (k + rank - 1)"),
    "a missing signal as zero": ("ranking/fusion.js", 'if (absent !== "shared" || ', "if (true || "),
    "a weight of its own": ("ranking/fusion.js", "(weight / summed) * whole", "weight * whole"),
    "words shut off": ("ranking/fusion.js", 'familyOf(vote.signal) !== "vector"', "false"),
    "ties upside down": ("ranking/order.js", "one.place - other.place", "other.place - one.place"),
    "another curve of age": ("ranking/stages.js", "weight * 2 **", "weight * Math.E **"),
    "evidence of names": ("ranking/stages.js", "failed.length && hit.tier", "failed.length && 0 * hit.tier"),
    "the last of a file": ("ranking/stages.js", "taken.length < most", "taken.length <= most"),
    "diversity without memory": ("ranking/diversity.js", "Math.max(most[place], likeness", "Math.min(1, likeness"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_planted_in_the_browser_is_noticed(browser: Browser, engines: Engines, bug: str) -> None:
    file, old, new = BUGS[bug]

    def planted(path: str, source: str) -> str:
        assert path != file or source.count(old) == 1
        return source.replace(old, new) if path == file else source

    page = opened(browser, planted)
    chance = random.Random(7)
    asked = itertools.product(("default", "rrf", "hybrid-mem"), QUESTIONS[:5], engines[:2])
    found = itertools.chain.from_iterable(
        differences(page, engine.pool(question, recipe=recipe, likeness=True), [wished(chance) for _ in range(6)])
        for recipe, question, engine in asked
    )
    assert next(found, None) is not None
    page.close()
