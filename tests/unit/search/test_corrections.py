"""Words that no memory holds: what they are corrected to, what that counts, and what is left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import whyrank

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEXTS = (
    "A stuck Kubernetes rollout is undone by hand",
    "The deployment freeze begins before Christmas",
    "The backend runs on Node.js with Express",
    "Commit 3f2a9c1d7be04455aa91 broke the login page",
    "The house has a green door",
    "We keep three lab coats",
    "Traditions of the village",
    "The house rules stand on the wall",
    "Send it by WhatsApp",
    "Das Quartal beginnt mit der Abrechnung und mit der Besprechung",
)


@pytest.fixture(scope="module", params=["postings", "fts5"])
def engine(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[whyrank.Engine]:
    place = tmp_path_factory.mktemp(request.param)
    (place / "whyrank.toml").write_text(f'keyword = "{request.param}"\n', encoding="utf-8")
    with whyrank.open(place / "memory.db", workspace=place, embedding="none") as engine:
        for text in TEXTS:
            engine.add(text)
        engine.add("The migration of Jupiter", scope="user:1")
        yield engine


def found(engine: whyrank.Engine, query: str, **asked: object) -> list[str]:
    return [hit.memory.text for hit in engine.search(query, recipe="keyword", **asked)]  # type: ignore[arg-type]


def meant(engine: whyrank.Engine, query: str, **asked: object) -> list[str]:
    """Return what the notices say."""
    results = engine.search(query, **asked)  # type: ignore[arg-type]
    return [notice.message for notice in results.notices if notice.code == "did-you-mean"]


@pytest.mark.parametrize(
    ("query", "word", "text"),
    [
        ("a rolout", "rollout", 0),  # a letter left out
        ("a rolllout", "rollout", 0),  # doubled
        ("a rollotu", "rollout", 0),  # swapped
        ("the deploymnt", "deployment", 1),  # where the stem of what is typed is not that of the word
        ("before christmmas", "christmas", 1),
        ("wann ist die besprecung", "besprechung", 9),
    ],
)
def test_a_slip_is_corrected_and_said(engine: whyrank.Engine, query: str, word: str, text: int) -> None:
    assert found(engine, query) == [TEXTS[text]]
    typed = query.split()[-1]
    assert meant(engine, query) == [f"no memory contains {typed!r}; did you mean {word!r}? It was searched too"]


def test_every_letter_behind_the_first_may_be_dropped(engine: whyrank.Engine) -> None:
    word = "deployment"
    for place in range(1, len(word)):
        assert found(engine, word[:place] + word[place + 1 :]) == [TEXTS[1]]


def test_a_correction_is_named_in_the_trail_and_counts_half(engine: whyrank.Engine) -> None:
    terms: dict[str, float] = {}
    for asked in ("rollout", "rolout"):
        [hit] = engine.search(f"a stuck {asked}", recipe="keyword")
        [part] = hit.trail[0].parts
        terms |= {term.term: term.value for term in part.terms if term.field == "words"}
    assert terms.keys() == {"stuck", "rollout", "rolout as rollout"}
    # tf/(tf + K) with a tf of 0.5 instead of 1, and the same K.
    ratio = terms["rolout as rollout"] / terms["rollout"]
    assert 0.5 < ratio < 2 / 3  # 0.5·(1 + K)/(0.5 + K) for K from 1 to infinity


@pytest.mark.parametrize(
    "typed",
    [
        "christmos",  # another letter in a word of less than ten
        "horse",  # house: another letter in a short word is another word
        "ouse",  # four letters
        "ollout",  # another first letter
        "traits",  # `tradits` would have the stem of traditions, and nobody writes it
        "lbas",  # labs: too short
        "wich",  # a function word
    ],
)
def test_what_may_be_another_word_is_left_alone(engine: whyrank.Engine, typed: str) -> None:
    assert found(engine, typed) == []
    assert meant(engine, typed) == []


def test_a_mistyped_function_word_is_no_content_word(engine: whyrank.Engine) -> None:
    engine.add("A thread about sewing", scope="user:2")
    assert found(engine, "thees coats", scope="user:2") == [TEXTS[5]]  # these


def test_a_word_that_is_known_is_not_corrected(engine: whyrank.Engine) -> None:
    assert meant(engine, "the house door") == []


def test_only_what_the_caller_may_see_corrects(engine: whyrank.Engine) -> None:
    assert found(engine, "migraton of Jupiter", scope="user:1") == ["The migration of Jupiter"]
    assert found(engine, "migraton of Jupiter") == []
    assert meant(engine, "migraton of Jupiter") == []


def test_a_filter_does_not_change_what_is_corrected(engine: whyrank.Engine) -> None:
    assert meant(engine, "rolout", kind="chunk") == meant(engine, "rolout")
    assert found(engine, "rolout", kind="chunk") == []


@pytest.mark.parametrize("query", ["nodejs", "which backend is nodejs", "NodeJS"])
def test_a_name_is_found_with_its_dot_and_without(engine: whyrank.Engine, query: str) -> None:
    results = engine.search(query)
    assert results[0].memory.text == TEXTS[2]
    assert results.verdict == "found"
    assert meant(engine, query) == []


def test_the_beginning_of_a_hash_stands_for_it(engine: whyrank.Engine) -> None:
    for query in ("3f2a9c1", "3f2a9c1d7", "what did 3f2a9c1d break"):
        results = engine.search(query)
        assert results[0].memory.text == TEXTS[3]
        assert results.verdict != "nothing"
    assert engine.search("3f2a9c1").verdict == "found"
    assert found(engine, "3f2a9") == []  # too short to be one


def test_a_word_with_inner_capitals_is_asked_for_whole_where_it_is_known(engine: whyrank.Engine) -> None:
    engine.add("The app store is closed", scope="user:3")
    assert found(engine, "WhatsApp", scope="user:3") == [TEXTS[8]]
    assert "The app store is closed" in found(engine, "TeleApp", scope="user:3")


def test_the_whole_must_stand_in_what_the_caller_may_see(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.add("Send it by WhatsApp", scope="user:1")
        engine.add("The app store is closed", scope="user:2")
        assert found(engine, "WhatsApp", scope="user:2") == ["The app store is closed"]
        assert found(engine, "WhatsApp", scope=["user:1", "user:2"]) == ["Send it by WhatsApp"]
