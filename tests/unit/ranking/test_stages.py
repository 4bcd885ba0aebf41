"""Each stage on a ranking small enough to follow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.ranking.builders import DAY, NOW, context, hit, memory, ranking
from whyrank.errors import ConfigError
from whyrank.ranking.diversity import Similarity
from whyrank.ranking.stages import (
    Dedup,
    Evidence,
    ExactName,
    GroupBySource,
    InScope,
    NameFirst,
    NotExpired,
    OpenClawSelection,
    Recency,
    SameLanguage,
    Superseded,
    Top,
)
from whyrank.types.memory import Memory, Scope
from whyrank.types.query import Statistics, Where
from whyrank.types.results import Hit, Ranking
from whyrank.types.trail import NameMatch, Part, Step, TermValue


def ids(ranked: Ranking) -> list[str]:
    return [found.id for found in ranked.hits]


def reason(found: Hit) -> str:
    return found.trail[-1].why


def test_an_equal_name_is_lifted_above_every_score() -> None:
    a, b = memory("a"), memory("b")
    ranked = NameFirst()(ranking(hit(a, 0.9), hit(b, 0.1)), context(a, b, names={"b": NameMatch("equal", "Tea")}))
    assert ids(ranked) == ["b", "a"]
    assert ranked.hits[0].score == 0.1  # the score stays what it was
    assert ranked.hits[0].tier == 16  # tier 4 of 4 places each


def test_exact_names_alone_are_lifted_where_only_these_count() -> None:
    found = [memory(key) for key in "abcd"]
    names = {
        "a": NameMatch("one edit", "Teas"),
        "b": NameMatch("equal", "Tea"),
        "c": NameMatch("accents", "Téa"),
        "d": NameMatch("first words", "Tea pot"),
    }
    ranked = ExactName()(ranking(*(hit(one, 0.5) for one in found)), context(*found, names=names))
    assert [(one.id, one.tier, one.score) for one in ranked.hits] == [
        ("b", 16, 0.5), ("c", 12, 0.5), ("a", 0, 0.5), ("d", 0, 0.5),
    ]  # fmt: skip
    assert reason(ranked.hits[0]) == "equal: 'Tea'"


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (NameMatch("equal", "x"), NameMatch("same words", "x")),
        (NameMatch("same words", "x"), NameMatch("one edit", "x")),
        (NameMatch("one edit", "x"), NameMatch("two edits", "x")),
        (NameMatch("equal", "x", specificity=3), NameMatch("equal", "x", specificity=1)),
        (NameMatch("same words", "x"), NameMatch("one edit", "x", specificity=3)),
    ],
)
def test_name_tiers_are_ordered(better: NameMatch, worse: NameMatch) -> None:
    a, b = memory("a"), memory("b")
    ranked = NameFirst()(ranking(hit(a, 0.9), hit(b, 0.1)), context(a, b, names={"a": worse, "b": better}))
    assert ids(ranked) == ["b", "a"]


def test_a_part_of_a_name_gets_a_bounded_bonus() -> None:
    a = memory("a")
    names = {"a": NameMatch("first words", "Tea Pot", covered=0.5)}
    ranked = NameFirst()(ranking(hit(a, 0.4)), context(a, names=names))
    # 0.1 · (1.0 + 0.9 · 0.5)
    assert ranked.hits[0].score == 0.4 + 0.1 * (1.0 + 0.9 * 0.5)


def test_a_name_inside_a_sentence_gets_its_share_of_the_idf() -> None:
    a = memory("a")
    statistics = Statistics(10, 5.0, {"tea": 1, "pot": 1, "boil": 1})
    names = {"a": NameMatch("in a sentence", "Tea Pot", words=("tea", "pot"))}
    ranked = NameFirst()(ranking(hit(a, 0.4)), context(a, text="boil tea pot", names=names, statistics=statistics))
    # two of three terms of equal idf: 0.3 · 2/3
    assert ranked.hits[0].score == pytest.approx(0.4 + 0.3 * 2 / 3)


def test_a_name_that_is_a_small_part_of_a_sentence_gets_nothing() -> None:
    a = memory("a")
    statistics = Statistics(10, 5.0, dict.fromkeys(["tea", "boil", "water", "kettl"], 1))
    names = {"a": NameMatch("in a sentence", "Tea", words=("tea",))}
    asked = context(a, text="boil water kettle tea", names=names, statistics=statistics)
    assert NameFirst()(ranking(hit(a, 0.4)), asked).hits[0].score == 0.4  # 1/4 < 0.3


def test_a_name_inside_a_sentence_yields_to_a_name_of_the_whole_query() -> None:
    a, b = memory("a"), memory("b")
    statistics = Statistics(10, 5.0, {"tea": 1, "pot": 1})
    names = {"a": NameMatch("in a sentence", "Tea", words=("tea",)), "b": NameMatch("all words", "Tea Pot Shop")}
    asked = context(a, b, text="tea pot", names=names, statistics=statistics)
    scores = {found.id: found.score for found in NameFirst()(ranking(hit(a, 0.4), hit(b, 0.3)), asked).hits}
    assert scores["a"] == 0.4


def test_recency_halves_its_weight_at_the_half_life() -> None:
    a = memory("a", date=NOW - 30 * DAY)
    ranked = Recency(half_life_days=30, weight=0.2)(ranking(hit(a, 1.0)), context(a))
    # 1 − 0.2 + 0.2 · 2^(−1)
    assert ranked.hits[0].score == pytest.approx(0.9)


@pytest.mark.parametrize(("date", "evergreen"), [(NOW + 5 * DAY, False), (NOW - 900 * DAY, True), (None, False)])
def test_the_future_the_evergreen_and_the_undated_do_not_age(date: float | None, evergreen: bool) -> None:
    a = memory("a", date=date, evergreen=evergreen)
    assert Recency()(ranking(hit(a, 0.7)), context(a)).hits[0].score == 0.7


@pytest.mark.parametrize(("half_life", "weight"), [(0.0, 0.2), (-1.0, 0.2), (30.0, 1.5), (30.0, -0.1)])
def test_recency_refuses_settings_that_make_no_sense(half_life: float, weight: float) -> None:
    with pytest.raises(ConfigError):
        Recency(half_life, weight)


def test_evidence_keeps_what_passes_by_either_measure() -> None:
    both, words, meaning, neither = (memory(name) for name in ("both", "words", "meaning", "neither"))
    ranked = Evidence(min_vector=0.4, min_coverage=0.3)(
        ranking(
            hit(both, 0.01, cosine=0.5, coverage=0.5),
            hit(words, 0.02, cosine=0.1, coverage=0.5),
            hit(meaning, 0.03, cosine=0.5, coverage=0.1),
            hit(neither, 0.99, cosine=0.1, coverage=0.1),
        ),
        context(both, words, meaning, neither),
    )
    assert set(ids(ranked)) == {"both", "words", "meaning"}
    assert reason(ranked.dropped[0]) == "cosine 0.100 is below 0.4, coverage 0.100 is below 0.3"


def test_evidence_drops_no_hit_for_a_signal_it_does_not_have() -> None:
    a = memory("a")
    assert ids(Evidence(min_vector=0.9)(ranking(hit(a, 0.5, coverage=0.2)), context(a))) == ["a"]


def test_openclaw_keeps_what_reaches_the_minimum_and_drops_the_rest() -> None:
    a, b = memory("a"), memory("b")
    ranked = OpenClawSelection(0.35)(ranking(hit(a, 0.4, cosine=0.4), hit(b, 0.3, cosine=0.3)), context(a, b))
    assert ids(ranked) == ["a"]
    assert "no keyword matches" in reason(ranked.dropped[0])


def test_openclaw_keeps_keyword_rows_when_nothing_reaches_the_minimum() -> None:
    a, b = memory("a"), memory("b")
    ranked = OpenClawSelection(0.35)(
        ranking(hit(a, 0.3, cosine=0.3, coverage=0.4), hit(b, 0.2, cosine=0.2)), context(a, b)
    )
    assert ids(ranked) == ["a"]


def test_openclaw_keeps_a_row_whose_cosine_alone_reaches_the_minimum() -> None:
    a, b, c = memory("a"), memory("b"), memory("c")
    # Criterion 3: 0.7 × 0.45 + 0.3 × 0 = 0.315 is below 0.35, but the cosine is not.
    ranked = OpenClawSelection(0.35)(
        ranking(hit(a, 0.5, cosine=0.5, coverage=0.6), hit(b, 0.315, cosine=0.45), hit(c, 0.24, cosine=0.34)),
        context(a, b, c),
    )
    assert ids(ranked) == ["a", "b"]
    assert reason(ranked.hits[1]) == "cosine 0.450 reaches 0.35"
    assert ranked.hits[1].trail[-1].op == "note"
    assert reason(ranked.dropped[0]) == "score 0.240 is below 0.35, and no keyword matches"


def held(memory: Memory, score: float, cosine: float, **words: float) -> Hit:
    """Return a hit of both runs whose keyword part is made of these words."""
    terms = tuple(TermValue(word, "words", "own", value) for word, value in words.items())
    vector = Part("vector", 0.7 * cosine, 0.7, cosine, raw=cosine, rank=1)
    keyword = Part("keyword", score - 0.7 * cosine, 0.3, 0.5, raw=sum(words.values()), rank=1, terms=terms)
    return Hit(memory).after(Step("fusion", "set", score, parts=(vector, keyword)))


def test_openclaw_keeps_the_only_note_with_a_word_of_the_query() -> None:
    a, b, c = memory("a"), memory("b"), memory("c")
    ranked = OpenClawSelection(0.35)(
        ranking(
            held(a, 0.5, cosine=0.5, settings=1.0),
            held(b, 0.2, cosine=0.1, settings=1.0),
            held(c, 0.1, cosine=0.05, settings=0.5, dchar=0.5),
        ),
        context(a, b, c),
    )
    assert ids(ranked) == ["a", "c"]
    assert reason(ranked.hits[1]) == "no other memory contains dchar"


def test_openclaw_counts_the_chunks_of_a_file_as_one_note_and_pieces_of_words_not_at_all() -> None:
    one, two, other = memory("1", path="a.md"), memory("2", path="a.md"), memory("o", path="o.md")
    gram = TermValue("char", "grams", "own", 0.1)
    grams = Part("keyword", 0.4, 0.3, 0.5, raw=0.1, rank=3, terms=(gram,))
    near = Part("vector", 0.1, 0.7, 0.1, raw=0.1, rank=1)
    with_piece = Hit(other).after(Step("fusion", "set", 0.5, parts=(near, grams)))
    ranked = OpenClawSelection(0.35)(
        ranking(with_piece, held(one, 0.2, 0.1, dchar=1.0), held(two, 0.1, 0.1, dchar=0.5)), context(one, two, other)
    )
    assert ids(ranked) == ["o", "1", "2"]


def test_of_equal_texts_the_best_placed_stands_for_the_rest() -> None:
    a, b = memory("a", "Green  TEA"), memory("b", "green tea")
    ranked = Dedup()(ranking(hit(a, 0.9), hit(b, 0.5)), context(a, b))
    assert ids(ranked) == ["a"]
    assert reason(ranked.dropped[0]) == "same text as a"


def test_of_equal_texts_with_equal_keys_the_newer_stays() -> None:
    a, b = memory("a", "tea", date=1.0), memory("b", "tea", date=2.0)
    assert ids(Dedup()(ranking(hit(a, 0.5), hit(b, 0.5)), context(a, b))) == ["b"]


def test_a_foreign_hit_is_removed_unlisted_and_reported_without_content() -> None:
    foreign = memory("secret", scope=Scope("user", "other"))
    ranked = InScope()(ranking(hit(foreign, 0.9)), context(foreign))
    assert (ranked.hits, ranked.dropped) == ((), ())
    assert ranked.notices[0].code == "scope-defect"
    assert "secret" not in ranked.notices[0].message


def test_the_guards_drop_what_the_store_should_have_filtered() -> None:
    old, expired = memory("old", superseded_by="new"), memory("expired", expires=NOW - 1)
    asked = context(old, expired)
    ranked = NotExpired()(Superseded()(ranking(hit(old, 0.9), hit(expired, 0.8)), asked), asked)
    assert ranked.hits == ()
    assert [reason(found) for found in ranked.dropped] == ["replaced by new", "expired"]


def test_the_guards_let_through_what_was_asked_for() -> None:
    old = memory("old", superseded_by="new")
    asked = context(old, where=Where(now=NOW, include_superseded=True))
    assert ids(Superseded()(ranking(hit(old, 0.9)), asked)) == ["old"]


def test_a_file_is_shown_once_with_its_other_chunks_under_it() -> None:
    first, second, other = memory("1", path="a.md"), memory("2", path="a.md"), memory("3", path="b.md")
    ranked = GroupBySource()(ranking(hit(first, 0.9), hit(second, 0.8), hit(other, 0.7)), context())
    assert ids(ranked) == ["1", "3"]
    assert [also.id for also in ranked.hits[0].also] == ["2"]
    assert reason(ranked.dropped[0]) == "same file as 1, which ranks higher"


def test_turns_and_facts_are_never_grouped() -> None:
    turns = [memory(str(i), path="log.jsonl", session="s") for i in range(2)]
    facts = [memory(f"f{i}") for i in range(2)]
    everything = [hit(found, 0.5) for found in (*turns, *facts)]
    assert len(GroupBySource()(ranking(*everything), context()).hits) == 4


def test_the_page_asked_for_is_cut_and_the_rest_keeps_its_rank() -> None:
    found = [memory(name) for name in "abcd"]
    ranked = Top(limit=2, offset=1)(ranking(*(hit(m, 0.5) for m in found)), context(*found))
    assert ids(ranked) == ["b", "c"]
    assert [reason(gone) for gone in ranked.dropped] == [
        "ranked 1, and results 2 to 3 were asked for",
        "ranked 4, and results 2 to 3 were asked for",
    ]


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (0, "ranked 3, and no results were asked for"),
        (1, "ranked 3, and result 1 was asked for"),
        (2, "ranked 3, and results 1 to 2 were asked for"),
    ],
)
def test_what_was_asked_for_is_told_as_people_count(limit: int, told: str) -> None:
    found = [memory(name) for name in "abc"]
    ranked = Top(limit=limit)(ranking(*(hit(m, 0.5) for m in found)), context(*found))
    assert reason(ranked.dropped[-1]) == told


def test_nearly_the_same_counts_as_the_same_where_it_is_asked_for() -> None:
    a, b, c, d = (memory(key, text) for key, text in zip("abcd", ("tea", "TEA", "some tea", "oil"), strict=True))
    likeness = Similarity({}, {"a": frozenset("tn"), "c": frozenset("tne"), "d": frozenset("o")})  # a and c: 2 of 3
    asked = replace(context(a, b, c, d), likeness=likeness)
    before = ranking(hit(a, 0.9), hit(b, 0.8), hit(c, 0.7), hit(d, 0.6))
    assert ids(Dedup()(before, asked)) == ["a", "c", "d"]
    near = Dedup(near=0.6)(before, asked)
    assert ids(near) == ["a", "d"]
    assert [reason(found) for found in near.dropped] == ["same text as a", "0.667 like a"]
    assert ids(Dedup(near=0.7)(before, asked)) == ["a", "c", "d"]
    with pytest.raises(ConfigError):
        Dedup(near=0.0)


def test_what_is_in_another_language_counts_a_fifth_less() -> None:
    page, copy, unclear = memory("page"), memory("copy"), memory("unclear")
    before = ranking(hit(copy, 0.9), hit(page, 0.75), hit(unclear, 0.71))
    ranked = SameLanguage()(before, context(page, copy, unclear, text="what is the tea", languages={"copy": "de"}))
    assert ids(ranked) == ["page", "copy", "unclear"]  # 0.75 > 0.9 · 0.8 = 0.72 > 0.71
    assert ranked.hits[1].score == 0.9 * 0.8
    assert reason(ranked.hits[1]) == "in de, the question in en"
    assert [len(found.trail) for found in ranked.hits] == [1, 2, 1]  # what shows no other language has no step


def test_a_weight_for_languages_is_a_share() -> None:
    with pytest.raises(ConfigError, match="give a weight from 0 to 1"):
        SameLanguage(1.5)
