"""Text to index tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.analysis.dates import asked_dates
from whyrank.analysis.tokenizer import (
    MAX_TOKEN_LETTERS,
    STOP_WORDS,
    Token,
    all_tokens,
    latin_language,
    parts_of,
    parts_of_wholes,
    tokens_of,
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("東京都庁", ("東京", "京都", "都庁")),
        ("ひらがな", ("ひら", "らが", "がな")),
        ("カタカナ", ("カタ", "タカ", "カナ")),
        ("漢字かな", ("漢字", "字か", "かな")),
        ("고양이", ("고양", "양이")),
        ("แมวนอน", ("แม", "มว", "วน", "นอ", "อน")),
        ("東京、大阪", ("東京", "大阪")),
        ("고양이 집", ("고양", "양이", "집")),
    ],
)
def test_unspaced_scripts_become_overlapping_bigrams(text: str, tokens: tuple[str, ...]) -> None:
    assert tokens_of(text) == tokens


@pytest.mark.parametrize("letter", ["猫", "あ", "カ", "집", "ก"])
def test_a_lone_character_of_an_unspaced_script_is_a_token(letter: str) -> None:
    assert tokens_of(letter) == (letter,)


def test_scripts_that_touch_are_taken_apart() -> None:
    assert tokens_of("hotel東京tower") == ("hotel", "東京", "tower")


def test_half_width_katakana_meets_full_width() -> None:
    assert tokens_of("ﾈｺ") == tokens_of("ネコ") == ("ネコ",)


@pytest.mark.parametrize(
    ("identifier", "tokens"),
    [
        ("retry_count_max", ("retrycountmax", "retri", "count", "max")),
        ("parseLogLine", ("parseloglin", "pars", "log", "line")),
        ("XMLHttpClient", ("xmlhttpclient", "xml", "http", "client")),
        ("night-shift", ("nightshift", "night", "shift")),
        ("cache.redis.host", ("cache.redis.host", "cach", "redi", "host")),
        ("docs/setup/linux.md", ("docs/setup/linux.md", "doc", "setup", "linux", "md")),
        ("D:\\backup\\notes.txt", ("d:\\backup\\notes.txt", "d", "backup", "note", "txt")),
        ("v2.10.3", ("v2.10.3", "v2", "10", "3")),
        ("2031-02-03", ("2031-02-03", "2031", "02", "03")),
        ("x86_64", ("x86_64", "x86", "64")),
        ("__main__", ("__main__", "main")),
        ("c++", ("c++", "c")),
        ("C#", ("c#", "c")),
    ],
)
def test_an_identifier_gives_the_whole_and_its_parts(identifier: str, tokens: tuple[str, ...]) -> None:
    assert tokens_of(identifier) == tokens


@pytest.mark.parametrize(
    ("run", "parts"),
    [
        ("getHTTPUrl", ["get", "http", "url"]),
        ("snake_case", ["snake", "case"]),
        ("ALLCAPS", ["allcaps"]),
        ("Capital", ["capital"]),
        ("ÉtéIndien", ["été", "indien"]),
        ("a--b", ["a", "b"]),
        ("---", []),
    ],
)
def test_an_identifier_is_split_at_joints_and_humps(run: str, parts: list[str]) -> None:
    assert parts_of(run) == parts


@pytest.mark.parametrize(
    "written", ["night-shift", "night_shift", "nightShift", "NightShift", "Night-Shifts", "night_shifts"]
)
def test_an_identifier_meets_the_same_words_joined_in_any_way(written: str) -> None:
    assert tokens_of(written) == ("nightshift", "night", "shift")
    assert tokens_of("nightshift") == tokens_of("nightshifts") == ("nightshift",)


def test_letters_and_digits_may_be_joined_but_numbers_may_not() -> None:
    assert tokens_of("KX-7") == ("kx7", "kx", "7")
    assert tokens_of("KX7") == ("kx7",)
    assert tokens_of("4-10") == ("4-10", "4", "10")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("PDFs", ("pdfs", "pdf")),
        ("two TVs", ("two", "tvs", "tv")),
        ("tRNAs", ("trnas", "trna", "t", "rna")),
        ("getURLsNow", ("geturlsnow", "geturlnow", "get", "url", "now")),
        ("XMLstream", ("xmlstream", "xm", "lstream")),  # the s begins a word
        ("As", ("as",)),  # one capital is no acronym
    ],
)
def test_the_plural_of_an_acronym_is_the_acronym_too(text: str, tokens: tuple[str, ...]) -> None:
    assert tokens_of(text) == tokens


@pytest.mark.parametrize("run", ["PDFs", "pdfs", "merge-PDFs"])
def test_names_keep_the_plural_as_it_is_written(run: str) -> None:
    assert parts_of(run)[-1] == "pdfs"


@pytest.mark.parametrize("written", ["QRX-β", "QRXβ", "QRX-beta", "qrx_beta"])
def test_a_greek_symbol_meets_its_name(written: str) -> None:
    assert tokens_of(written) == ("qrxbeta", "qrx", "beta")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("β", ("beta",)),
        ("Ω", ("omega",)),
        ("β2", ("beta2",)),
        ("κB", ("kappab", "kappa", "b")),
        ("7 μm", ("7", "μm")),  # a unit
        ("η θάλασσα", tokens_of("η") + tokens_of("θάλασσα")),  # words of Greek stay Greek
    ],
)
def test_a_greek_letter_alone_is_a_symbol_and_inside_a_word_is_not(text: str, tokens: tuple[str, ...]) -> None:
    assert tokens_of(text) == tokens


@pytest.mark.parametrize("acronym", ["GPU", "CPU", "API", "PDF", "SKU", "LLM", "TV", "mRNA"])
def test_a_plural_meets_its_acronym_and_itself_however_it_is_written(acronym: str) -> None:
    written = {*tokens_of(f"{acronym}s")}
    for asked in (f"{acronym}s", f"{acronym}s".lower(), f"{acronym}s".upper(), acronym, acronym.lower()):
        assert written & {*tokens_of(asked)}, asked


@pytest.mark.parametrize("plural", ["ORs", "ANDs", "AMs"])
def test_a_plural_whose_singular_would_be_a_function_word_stays(plural: str) -> None:
    assert {*tokens_of(plural)} & {*tokens_of(plural.lower())}


def test_a_whole_whose_stem_would_be_a_stub_stays() -> None:
    assert tokens_of("iOS") == ("ios", "os")


def test_a_plain_word_is_given_once() -> None:
    assert tokens_of("lantern") == ("lantern",)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("ends.", ("end",)), ("(ends)", ("end",)), ("wait...", ("wait",)), ("north—south", ("north", "south"))],
)
def test_punctuation_around_words_makes_no_identifier(text: str, tokens: tuple[str, ...]) -> None:
    assert tokens_of(text) == tokens


@pytest.mark.parametrize("text", ["", " \n\t", "!!! ???", "😀🎉", "*", '"'])
def test_a_text_without_words_has_no_tokens(text: str) -> None:
    assert tokens_of(text) == ()


def test_stop_words_of_the_language_go() -> None:
    assert tokens_of("What did the gardener do with these tulips") == ("garden", "tulip")
    assert tokens_of("Wo hat der Gärtner die Tulpen gepflanzt") == ("gartn", "tulp", "gepflanzt")


def test_stop_words_of_another_language_stay() -> None:
    assert "chat" in tokens_of("the chat was short")
    assert "war" in tokens_of("the war was over")  # a German auxiliary


def test_stop_words_stay_if_nothing_else_is_left() -> None:
    assert tokens_of("To be or not to be") == ("to", "be", "or", "not", "to", "be")


def test_stop_words_are_marked_rather_than_lost() -> None:
    assert all_tokens("the lamp") == [Token("the", is_stop_word=True), Token("lamp")]


@pytest.mark.parametrize("word", ["what", "who", "she", "them", "did", "could", "from", "with", "about", "don't"])
def test_question_words_pronouns_auxiliaries_and_prepositions_are_stop_words(word: str) -> None:
    assert word in STOP_WORDS["en"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Nora's kettle", ("nora", "kettl")),
        ("Nora’s kettle", ("nora", "kettl")),
        ("the sailors' song", ("sailor", "song")),
        ("they don't whistle", ("whistl",)),
        ("l'orage de la nuit est dans le ciel", ("orag", "nuit", "ciel")),
        ("'quoted'", ("quot",)),
    ],
)
def test_apostrophes_are_resolved(text: str, tokens: tuple[str, ...]) -> None:
    assert tokens_of(text) == tokens


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("ＬＡＮＴＥＲＮ", "lantern"),
        ("ﬁlter", "FILTER"),
        ("caf\u0065\u0301", "CAFÉ"),
        ("Straße", "STRASSE"),
        ("Ёлка", "ёлка"),
    ],
)
def test_forms_that_fold_alike_give_the_same_tokens(left: str, right: str) -> None:
    assert tokens_of(left) == tokens_of(right)
    assert tokens_of(left)


@pytest.mark.parametrize("bad", ["\x00", "\ud800"])
def test_nul_and_lone_surrogates_part_words_and_raise_nothing(bad: str) -> None:
    assert tokens_of(f"lamp{bad}post") == ("lamp", "post")


def test_a_token_is_cut_at_its_longest() -> None:
    assert tokens_of("q" * (MAX_TOKEN_LETTERS + 36)) == ("q" * MAX_TOKEN_LETTERS,)


def test_each_word_of_a_mixed_text_is_stemmed_in_its_own_language() -> None:
    assert tokens_of("running кошками") == ("run", "кошк")


def test_digits_of_every_script_are_words() -> None:
    assert tokens_of("room 42 ٤٢") == ("room", "42", "٤٢")


PLAIN_PARTS = [
    "the",
    "die",
    "hat",
    "don't",
    "night-shift",
    "C++",
    "a.b.c",
    "GPUs",
    "May 3",
    "2024-05-01",
    "v1.2",
    "'",
    "x@y",
    "\\n",
]


@given(st.lists(st.sampled_from(PLAIN_PARTS) | st.text(st.characters(max_codepoint=127), max_size=12), max_size=8))
def test_a_sign_that_is_no_word_changes_nothing_though_plain_texts_are_read_by_a_faster_way(parts: list[str]) -> None:
    plain = " ".join(parts).replace("\0", "")
    signed = f"{plain} →"
    assert all_tokens(signed) == all_tokens(plain)
    assert latin_language(signed) == latin_language(plain)
    assert asked_dates(signed) == asked_dates(plain)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("is WhatsApp up", {"what": {"whatsapp"}, "app": {"whatsapp"}}),
        ("GitHub's iPhone", {"git": {"github"}, "hub": {"github"}, "i": {"iphon"}, "phone": {"iphon"}}),
        ("the WhatsApp app", {"what": {"whatsapp"}}),  # the app is asked for by itself
        ("GitHub or GitLab", {"git": {"github", "gitlab"}, "hub": {"github"}, "lab": {"gitlab"}}),
        ("our GPUs and PDFs", {}),  # the plural of an acronym is the acronym
        ("a snake_case and kebab-case, Suzy and NASA", {}),
        ("GitHub-Actions", {}),
        ("p16INK4A", {}),  # a code: half of it may be its name
    ],
)
def test_parts_of_a_word_with_inner_capitals_are_told_from_words_asked_for(
    text: str, parts: dict[str, set[str]]
) -> None:
    assert parts_of_wholes(text) == parts
