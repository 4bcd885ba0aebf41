"""Words and names are found with other accents than they were asked for, behind those that are written as asked."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.analysis.names import are_spellings, plain_spellings
from whyrank.analysis.tokenizer import foreign_stems, german_stems

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from whyrank.types.memory import Memory

TEXTS = (
    "The café at the station opens at six", "A cafe in the old town closes at nine",
    "Her résumé lists three jobs", "Press play to resume the film",
    "José repairs the printer", "Jose keeps the keys of the cellar",
    "A naïve approach to sorting", "He is naive about money",
    "The office in São Paulo moved", "Sao Paulo has a new plant",
    "Jean-René likes chess", "Jean-Rene likes the game of go",
    "Mr Müller of the bank called", "Mr Mueller of the store called",
    "Frau Müller ist die Chefin der Abteilung und hat die Schlüssel",
    "The train to Göteborg leaves at noon", "Smørrebrød for the guests", "A ship called Łódź", "Ёж живёт в саду",
    "Jürgen Hoeß met us in the lobby", "Goethe stayed in the inn", "The value of the blue book is high",
)  # fmt: skip


@pytest.fixture(scope="module", params=["postings", "fts5"])
def engine(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[whyrank.Engine]:
    place = tmp_path_factory.mktemp(request.param)
    (place / "whyrank.toml").write_text(f'keyword = "{request.param}"\n', encoding="utf-8")
    with whyrank.open(place / "memory.db", workspace=place, embedding="none") as engine:
        for text in TEXTS:
            engine.add(text)
        engine.add("Mr Schroeder of the bank", scope="user:1")
        engine.add("Señor Núñez of the bank", scope="user:2")
        yield engine


def found(engine: whyrank.Engine, query: str, **asked: object) -> list[str]:
    """Return the texts that words alone find, the best first."""
    return [hit.memory.text for hit in engine.search(query, recipe="keyword", **asked)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "first", "second"),
    [
        ("cafe", 1, 0), ("café", 0, 1), ("CAFÉS", 0, 1), ("resume", 3, 2), ("résumé", 2, 3), ("resumes", 3, 2),
        ("Jose", 5, 4), ("José", 4, 5), ("naive", 7, 6), ("naïve", 6, 7), ("Sao Paulo", 9, 8), ("São Paulo", 8, 9),
        ("Jean-Rene", 11, 10), ("Jean-René", 10, 11), ("Mueller bank store", 13, 12), ("Müller bank store", 12, 13),
        ('"sao paulo"', 9, 8), ('"São Paulo"', 8, 9), ('"jean-rene"', 11, 10),
    ],
)  # fmt: skip
def test_the_spelling_that_was_asked_for_comes_first_and_the_other_behind_it(
    engine: whyrank.Engine, query: str, first: int, second: int
) -> None:
    assert found(engine, query)[:2] == [TEXTS[first], TEXTS[second]]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Goteborg", 15), ("Goeteborg", 15), ("Smorrebrod", 16), ("Smoerrebroed", 16), ("Lodz", 17), ("еж", 18),
        ("juergen", 19), ("Jurgen", 19), ("Höss", 19), ("Göthe", 20), ("value blue", 21),
    ],
)  # fmt: skip
def test_either_spelling_finds_the_other_where_it_stands_alone(engine: whyrank.Engine, query: str, text: int) -> None:
    assert found(engine, query) == [TEXTS[text]]


def test_german_texts_are_found_whose_stems_show_no_umlaut(engine: whyrank.Engine) -> None:
    for query in ("Mueller", "Müller", "Muller", "Wo ist Frau Mueller und was hat sie?"):
        assert TEXTS[14] in found(engine, query)


def test_other_spellings_are_those_of_what_may_be_seen(engine: whyrank.Engine) -> None:
    assert found(engine, "Schröder") == []
    assert found(engine, "Schröder", scope="user:1") == ["Mr Schroeder of the bank"]
    assert found(engine, "Nunez") == []
    assert found(engine, "senor Nunez", scope="user:2") == ["Señor Núñez of the bank"]
    assert engine.search("Nunez", scope="user:1").analysis.terms == ("nunez",)


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("cafe AND town", {1}), ("cafe AND station", {0}), ("resume NOT film", {2}), ('"sao paulo"', {8, 9}),
        ("Jean-Rene AND chess", {10}), ("Mueller AND bank", {12}), ("cafe*", {0, 1}), ("café*", {0}), ("gote*", {15}),
        ("goete*", {15}), ("lod*", {17}), ("(station OR town) NOT cafe", set()), ("town NOT café", set()),
        ("(station OR town) NOT cafe*", set()), ("town NOT café*", {1}),
    ],
)  # fmt: skip
def test_the_advanced_syntax_knows_other_spellings(engine: whyrank.Engine, query: str, texts: set[int]) -> None:
    assert set(found(engine, query, syntax="advanced")) == {TEXTS[text] for text in texts}


def test_the_trail_says_which_spelling_was_found(engine: whyrank.Engine) -> None:
    [exact, other] = engine.search("cafe", recipe="keyword").hits
    named = [[found.label for found in hit.trail[0].parts[0].terms] for hit in (exact, other)]
    assert ([names[0] for names in named], len(named[1])) == (["cafe", "cafe as café"], 1)


def test_a_question_whose_words_stand_there_in_one_spelling_is_asked_as_ever(engine: whyrank.Engine) -> None:
    assert engine.search("the keys of the printer").analysis.terms == ("key", "printer")
    assert engine.search("Łódź").analysis.terms == ("łódź",)


def test_a_common_spelling_stays_before_a_rare_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("common")
    with whyrank.open(place / "memory.db", workspace=place, embedding="none") as engine:
        for number in range(30):
            engine.add(f"Note no {number} on the cafe of the town")
        engine.add("Note no 99 on the café of the town")
        texts = found(engine, "cafe", limit=31)
        # One of 31 would tell ln(1 + 30.5/1.5) = 3.1 against ln(1 + 1.5/30.5) = 0.05; as one term both tell as much.
        assert texts.index("Note no 99 on the café of the town") == 30


NAMES = (
    "Café Roma", "Cafe Milano", "Müller & Söhne", "Schroeder GmbH", "Mueller", "Müller", "Bäckerei Öztürk",
)  # fmt: skip


@pytest.mark.parametrize(
    ("query", "name", "why"),
    [
        ("Cafe Roma", 0, "accents: 'Café Roma'"), ("café roma", 0, "equal: 'Café Roma'"),
        ("Roma Cafe", 0, "same words: 'Café Roma'"), ("Café Milano", 1, "accents: 'Cafe Milano'"),
        ("Mueller & Soehne", 2, "accents: 'Müller & Söhne'"), ("Muller Sohne", 2, "accents: 'Müller & Söhne'"),
        ("Schröder GmbH", 3, "accents: 'Schroeder GmbH'"), ("Mueller", 4, "equal: 'Mueller'"),
        ("Müller", 5, "equal: 'Müller'"),
        ("Baeckerei Oeztuerk", 6, "accents: 'Bäckerei Öztürk'"), ("Backerei Ozturk", 6, "accents: 'Bäckerei Öztürk'"),
        ("Baeckerei Ozturk", 6, "accents: 'Bäckerei Öztürk'"), ("Bäckerei Oeztürk", 6, "accents: 'Bäckerei Öztürk'"),
        ("Oztuerk Baeckerei", 6, "same words: 'Bäckerei Öztürk'"),
        ("where is Baeckerei Oztuerk?", 6, "'Bäckerei Öztürk' is in the question, 1.00 of its weight"),
        ("where is Cafe Roma?", 0, "'Café Roma' is in the question, 1.00 of its weight"),
    ],
)  # fmt: skip
def test_a_name_is_a_name_whatever_its_accents(called: whyrank.Engine, query: str, name: int, why: str) -> None:
    answer = called.search(query)
    steps = [step.why for step in answer[0].trail if step.stage == "name"]
    assert (answer.verdict, answer[0].memory.name, steps) == ("found", NAMES[name], [why])


def test_a_name_in_the_spelling_asked_for_stands_before_the_other(called: whyrank.Engine) -> None:
    assert [hit.memory.name for hit in called.search("Mueller")][:2] == ["Mueller", "Müller"]
    assert [hit.memory.name for hit in called.search("Müller")][:2] == ["Müller", "Mueller"]


@pytest.mark.parametrize("name", ["Hélène", "Jérôme", "Frédéric", "Céline", "Schrödinger", "Pénélope"])
def test_a_name_is_found_without_the_accents_that_kept_it_from_being_stemmed(tmp_path: Path, name: str) -> None:
    plain = "".join(letter for letter in unicodedata.normalize("NFD", name) if letter.isalpha())
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        for stored, asked in ((f"{name} came by train", plain), (f"{plain} went home on foot", name)):
            engine.add(stored)
            assert stored in found(engine, asked)


def test_spellings_that_nobody_has_any_more_leave_room_for_the_others(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        gone = [engine.add(f"d{letter} was here") for letter in "àáâãäåāăą"]  # more than are asked for at once
        engine.add("đa is the living one")
        for memory in gone:
            engine.forget(memory.id)
        assert found(engine, "da") == ["đa is the living one"]


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> Iterator[whyrank.Engine]:
    place = tmp_path_factory.mktemp("called")
    with whyrank.open(place / "memory.db", workspace=place, embedding="wordllama") as engine:
        memories: list[Memory] = [engine.add(f"Firm no {number}", name=name) for number, name in enumerate(NAMES)]
        assert len(memories) == len(NAMES)
        yield engine


def test_words_are_one_however_each_accent_is_typed_but_not_where_none_is() -> None:
    alike = (("bäckereimüller", "baeckereimuller"), ("baeckereimüller", "bäckereimueller"), ("ålborg", "aalborg"))
    apart = (("moller", "moeller"), ("müller", "mullere"), ("café", "coffee"))
    assert [are_spellings(*pair) for pair in (*alike, *apart)] == [True, True, True, False, False, False]
    assert all(are_spellings(other, one) == are_spellings(one, other) for one, other in (*alike, *apart))


def test_marks_are_left_away_of_letters_that_are_typed_without() -> None:
    typed = {
        word: plain_spellings(word) for word in ("müller", "smørrebrød", "œuvr", "ёлка", "θάλασσα", "i̇zmir", "žižek")
    }
    assert typed == {
        "müller": ("muller", "mueller"), "smørrebrød": ("smorrebrod", "smoerrebroed", "smoerrebro"), "œuvr": ("oeuvr",),
        "ёлка": ("елка",), "θάλασσα": ("θαλασσα",), "i̇zmir": ("izmir",), "žižek": ("zizek",),
    }  # fmt: skip
    # й is a letter of its own, as are the vowels of Devanagari, Hebrew, Arabic and Thai
    assert not any(map(plain_spellings, ("tea", "йод", "हिन्दी", "שָׁלוֹם", "مُحَمَّد", "น้ำ", "東京", "がく", "한국")))


def test_a_word_has_other_spellings_in_both_directions() -> None:
    assert "müller" in foreign_stems("Mueller")["mueller"]
    assert "mueller" in foreign_stems("Müller")["müller"]
    assert "tea" not in foreign_stems("tea")["tea"]


def test_two_letters_are_an_umlaut_in_names_and_in_german_alone() -> None:
    assert german_stems("who is Mueller?", "en") == {"mueller": ("mull", "müller")}
    assert german_stems("wo ist der schluessel?", "de") == {"schlussel": ("schluessel", "schlüssel")}
    for text in ("what does the guest want?", "Michael and Joel", "Sue asked Zoe", "Bauer, Query, True", "Noah"):
        assert german_stems(text, "en") == {}


@pytest.mark.parametrize("asked", ["mueller", "Mueller", "müller"])
@pytest.mark.parametrize("syntax", ["plain", "advanced"])
def test_a_word_that_is_stemmed_alike_hides_no_umlaut_however_often_it_is_said(
    tmp_path: Path, asked: str, syntax: str
) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        meant = engine.add("Frau Müller kommt am Dienstag in die Praxis und bringt die Rechnung mit")
        for number in range(3):  # German strips `er` of mueller, English `e` of muelle: both are muell
            engine.add(f"The muelle number {number} is a pier")
        assert meant.id in [hit.id for hit in engine.search(asked, syntax=syntax)]


@pytest.mark.parametrize("index", ["postings", "fts5"])
@pytest.mark.parametrize(
    ("query", "scopes", "texts"),
    [
        ("is the tablet of the waiter here", ["global"], []),  # the German stems of "table" and "waits"
        ("where are the Rechnungen of the office", ["global", "user:1"], ["Die Rechnung liegt auf dem Tisch"]),
        ("where are the Rechnungen of the office", ["global", "user:2"], []),  # that memory may not be seen
        ("wo ist der printer der Chefin", ["global"], ["printer repaired"]),  # shows no language: taken for English
    ],
)
def test_a_question_that_shows_its_language_is_stemmed_as_the_languages_of_the_visible_memories(
    tmp_path: Path, index: str, query: str, scopes: list[str], texts: list[str]
) -> None:
    (tmp_path / "whyrank.toml").write_text(f'keyword = "{index}"\n', encoding="utf-8")
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.add("He waits for us at the round table")
        engine.add("printer repaired")
        engine.add("Die Rechnung liegt auf dem Tisch", scope="user:1")
        assert found(engine, query, scope=scopes) == texts


def test_a_word_that_shows_no_language_is_stemmed_as_any(tmp_path: Path) -> None:
    with whyrank.open(tmp_path / "memory.db", workspace=tmp_path, embedding="none") as engine:
        engine.add("Rechnung Schmidt")
        assert found(engine, "Rechnungen") == ["Rechnung Schmidt"]
