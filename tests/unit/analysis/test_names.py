"""Names: keys, words, relations, typos."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.analysis.names import (
    BASENAME,
    FULL_PATH,
    MAX_WINDOW_WORDS,
    MAX_WINDOWED_WORDS,
    RELATIONS,
    STEM,
    edits_allowed,
    match_name,
    match_order,
    name_key,
    name_words,
    names_of,
    probe_for,
    words_key,
)
from whyrank.types.memory import Memory, Source
from whyrank.types.trail import Name, NameMatch, NameRelation


def name(text: str, specificity: int = 0) -> Name:
    return Name(text, name_key(text), name_words(text), specificity)


def relation(query: str, *texts: str, typos: bool = True) -> NameRelation | None:
    match = match_name(probe_for(query, typos=typos), [name(text) for text in texts])
    return match.relation if match else None


@pytest.mark.parametrize(
    "text", ["Night Owl", "night-owl", "NightOwl", "night_owl", "NIGHT OWL!", "Ｎight　Ｏwl", "n.i.g.h.t/owl"]
)
def test_ways_to_write_a_name_share_a_key(text: str) -> None:
    assert name_key(text) == "nightowl"


@pytest.mark.parametrize(
    ("text", "key"), [("Don't Panic", "dontpanic"), ("Straße 5", "strasse5"), ("東京 駅", "東京駅"), ("—!?", "")]
)
def test_a_key_holds_letters_and_digits_only(text: str, key: str) -> None:
    assert name_key(text) == key


def test_a_key_keeps_stop_words() -> None:
    assert name_key("The Who") == "thewho"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Night Owl", ("night", "owl")),
        ("nightOwl", ("night", "owl")),
        ("night_owl.md", ("night", "owl", "md")),
        ("Nora's Kettle", ("nora", "kettle")),
        ("!!!", ()),
    ],
)
def test_the_words_of_a_name_are_split_like_identifiers(text: str, words: tuple[str, ...]) -> None:
    assert name_words(text) == words


def test_the_key_of_words_does_not_depend_on_their_order() -> None:
    assert words_key(("owl", "night")) == words_key(("night", "owl"))
    assert words_key(("owl", "night")) != words_key(("owls", "night"))


@pytest.mark.parametrize(
    ("query", "called", "expected"),
    [
        ("night owl", "Night-Owl", "equal"),
        ("owl night", "Night Owl", "same words"),
        ("nigth owl", "Night Owl", "one edit"),  # a transposition is one edit
        ("night ow", "Night Owl", "one edit"),
        ("night bowl", "Night Owl", "one edit"),
        ("nijht oml", "Night Owl", "two edits"),
        ("nihgt owl 2", "Night Owl 2", "one edit"),
        ("night owl 3", "Night Owl 2", None),  # another number is no slip
        ("2031-02-03", "2031-02-04", None),
        ("2031-02-03", "2031-03-02", "all words"),  # nor are numbers in another order
        ("night", "Night Owl Watch", "first words"),
        ("watch night", "Night Owl Watch", "all words"),
        ("ow wat", "Night Owl Watch", "prefixes"),
        ("where does the night owl sleep", "Night Owl", "in a sentence"),
        ("river", "Night Owl", None),
        ("???", "Night Owl", None),
    ],
)
def test_a_query_and_a_name_are_related(query: str, called: str, expected: NameRelation | None) -> None:
    assert relation(query, called) == expected


@pytest.mark.parametrize(
    ("key", "edits"),
    [("", 0), ("owl", 0), ("owls", 1), ("sevenab", 1), ("eightabc", 2), ("muchlongerthanthat", 2)],
)
def test_how_many_letters_may_be_mistyped_depends_on_the_length_of_the_key(key: str, edits: int) -> None:
    assert edits_allowed(key) == edits


@pytest.mark.parametrize(
    ("query", "called", "expected"),
    [
        ("oml", "owl", None),  # 3 letters: no edit
        ("lapm", "lamp", "one edit"),  # 4 letters: one
        ("lapx", "lamp", None),  # 4 letters, distance 2
        ("lantren", "lantern", "one edit"),  # 7 letters: one
        ("lontren", "lantern", None),  # 7 letters, distance 2
        ("lontrens", "lanterns", "two edits"),  # 8 letters: two
        ("lontrenx", "lanterns", None),  # 8 letters, distance 3
    ],
)
def test_a_typo_is_forgiven_by_the_length_of_the_key(query: str, called: str, expected: NameRelation | None) -> None:
    assert relation(query, called) == expected


def test_typos_are_forgiven_only_where_they_are_asked_for() -> None:
    assert relation("lantren", "lantern", typos=False) is None
    assert not probe_for("lantren").typos


def test_relations_are_ordered_from_equal_to_in_a_sentence() -> None:
    assert RELATIONS == (
        "equal", "accents", "same words", "one edit", "two edits", "first words", "all words", "prefixes",
        "in a sentence",
    )  # fmt: skip


def test_the_best_relation_of_all_names_counts() -> None:
    assert relation("night owl", "Night Owl Watch", "owl-night", "nightowl") == "equal"
    assert relation("night owl", "Night Owl Watch", "owl-night") == "same words"


def test_the_more_specific_path_wins_among_equal_names() -> None:
    names = [name("notes.md", BASENAME), name("notes-md", STEM), name("notes/md", FULL_PATH)]

    match = match_name(probe_for("notes.md"), names)

    assert match == NameMatch("equal", "notes/md", FULL_PATH)


def test_the_share_of_the_name_covered_is_counted_in_letters() -> None:
    match = match_name(probe_for("night"), [name("Night Owl Watch")])

    assert match is not None
    assert match.covered == pytest.approx(5 / (5 + 3 + 5))


def test_the_better_covered_name_comes_first() -> None:
    short, long = (
        NameMatch("first words", "Owl Nest", covered=0.5),
        NameMatch("first words", "Owl Observatory", covered=0.2),
    )

    assert sorted([long, short], key=match_order) == [short, long]


def test_a_query_of_four_words_is_no_part_of_a_name() -> None:
    assert relation("old night owl", "Old Night Owl Watch Tower") == "first words"
    assert relation("old night owl watch", "Old Night Owl Watch Tower") is None


def test_a_full_path_answers_to_no_part_of_itself() -> None:
    assert match_name(probe_for("deep"), [name("deep/down/owl.md", FULL_PATH)]) is None


def test_a_file_stem_is_not_looked_for_inside_sentences() -> None:
    probe = probe_for("where are the notes kept")

    assert match_name(probe, [name("notes", STEM)]) is None
    assert match_name(probe, [name("notes")]) is not None


def test_a_name_in_a_sentence_says_which_words_it_took() -> None:
    match = match_name(probe_for("ask the Night Owl about rain"), [name("NightOwl")])

    assert match is not None
    assert match.words == ("night", "owl")


def test_windows_are_all_runs_of_neighbouring_words_longest_first() -> None:
    assert probe_for("one two three").windows == (("one", "two"), ("two", "three"), ("one",), ("two",), ("three",))


def test_windows_stop_at_the_longest_name_looked_for() -> None:
    windows = probe_for("a b c d e f g h").windows

    assert max(map(len, windows)) == MAX_WINDOW_WORDS
    assert len(windows) == 3 + 4 + 5 + 6 + 7 + 8  # 8 words give 8 − size + 1 windows of each size 6 … 1


def test_a_text_of_very_many_words_has_no_windows() -> None:
    assert probe_for("w " * MAX_WINDOWED_WORDS).windows
    assert probe_for("w " * (MAX_WINDOWED_WORDS + 1)).windows == ()


def test_a_memory_answers_to_name_slug_owner_and_aliases() -> None:
    memory = Memory("m_1", "hoots", name="Night Owl", slug="owl", owner="greta", aliases=("Hooter",))

    assert [found.text for found in names_of(memory)] == ["Night Owl", "owl", "Hooter", "greta/owl"]


def test_a_chunk_answers_to_its_path_base_name_and_stem() -> None:
    memory = Memory("m_1", "hoots", kind="chunk", source=Source("birds/owl.md", 1, 1))

    assert [(found.text, found.specificity) for found in names_of(memory)] == [
        ("birds/owl.md", FULL_PATH),
        ("owl.md", BASENAME),
        ("owl", STEM),
    ]


def test_names_that_share_a_key_are_one_name() -> None:
    memory = Memory("m_1", "hoots", name="Night Owl", slug="night-owl", aliases=("NIGHTOWL", "!!!"))

    assert [found.text for found in names_of(memory)] == ["Night Owl"]


def test_headings_and_titles_are_not_names() -> None:
    assert names_of(Memory("m_1", "hoots", title="Birds", headings=("Birds", "Owls"))) == ()


def test_a_turn_of_a_log_is_not_called_after_its_file() -> None:
    turn = Memory("m_1", "hoots", kind="chunk", source=Source("chat.jsonl", 1, 1), session="s1")

    assert names_of(turn) == ()


@given(st.one_of(st.text(st.sampled_from("aZ9_-'./ é"), max_size=12), st.text("aB_9", min_size=60, max_size=70)))
def test_a_name_has_the_words_that_a_question_for_it_has(text: str) -> None:
    assert name_words(text) == probe_for(text).words
    assert name_key(text) == "".join(filter(str.isalnum, text.lower()))


def test_a_file_without_a_name_answers_to_its_title_as_to_its_stem() -> None:
    memory = Memory("m_1", "refunds", kind="chunk", title="payments api", source=Source("payments-api/README.md"))

    assert [(found.text, found.specificity) for found in names_of(memory)] == [
        ("payments-api/README.md", 3),
        ("README.md", 2),
        ("README", 1),
        ("payments api", 1),
    ]
    assert "Payments" not in [found.text for found in names_of(replace(memory, name="Refunds", title="Payments"))]


@given(st.text(st.sampled_from("./a"), max_size=7))
def test_the_names_of_a_path_are_those_of_its_parts(path: str) -> None:
    place = PurePosixPath(path)
    texts = {name.text for name in names_of(Memory("m", "tea", kind="chunk", source=Source(path)))}
    assert texts <= {str(place), place.name, place.stem}
    assert {name_key(text) for text in texts} == {name_key(t) for t in (str(place), place.name, place.stem)} - {""}
