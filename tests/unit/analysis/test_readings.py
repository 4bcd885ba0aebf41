"""The ways in which a text may write what is asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.analysis.query import MAX_READINGS, term_for
from whyrank.analysis.tokenizer import tokens_of
from whyrank.storage.bm25 import occurrences, padded
from whyrank.types.query import label_of, meant


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("Teas", ["tea"]),
        ("the green teas", ["green tea"]),
        ("the", []),
        ("don't", []),
        ("night-shift", ["nightshift", "night shift"]),
        ("nightShift", ["nightshift", "night shift"]),
        ("state-of-the-art", ["stateoftheart", "state art"]),
        ("A/B", ["a/b"]),  # B alone would be another thing
        ("C++", ["c++"]),
        ("GPUs", ["gpus", "gpu"]),
        ("miRNAs", ["mirna", "mi rna"]),
        ("TGFβ1", ["tgfbeta1", "tgf beta 1", "tgf beta1"]),
        ("TGF-β1", ["tgfbeta1", "tgf beta1", "tgf beta 1"]),
        ("l'avion", ["l avion"]),
        ("東京タワー", ["東京 京タ タワ ワー"]),
        ("new night-shift", ["new nightshift", "new night shift", "new nightshift night shift"]),
        ("night shift", ["night shift"]),  # joined from the first on, the parts stand side by side all the same
        ("new night shift", ["new night shift", "new nightshift night shift"]),
        (
            "a new night shift plan",
            [
                "new night shift plan",
                "new nightshift night shift plan",
                "new nightshiftplan night shift plan",
                "new night shiftplan shift plan",
            ],
        ),
    ],
)
def test_a_word_or_phrase_is_read_in_every_way_it_may_be_written(text: str, readings: list[str]) -> None:
    term = term_for(text, "en")
    assert (meant(term) if term else []) == readings


def test_a_quotation_is_read_as_it_stands() -> None:
    words = ["gull", "tern", "wren", "crow", "rook", "kite", "finch"]
    assert len(meant(term_for(" ".join(words[:6]), "en"))) == 1 + 4 + 3  # as it is; two joined; three joined
    assert meant(term_for(" ".join(words), "en")) == [" ".join(words)]


def test_a_term_is_called_by_its_wholes() -> None:
    assert label_of(term_for("the new night-shift", "en")) == "new nightshift"


def test_too_many_identifiers_are_all_read_alike() -> None:
    term = term_for(" ".join(f"night{i}-shift" for i in range(12)), "en")
    assert 1 < len(meant(term)) < MAX_READINGS
    assert " ".join(f"night{i} shift" for i in range(12)) in meant(term)


WORDS = st.sampled_from(["night", "shift", "tea", "pots", "engine", "rooms", "harbour"])
JOINED = ["{}-{}", "{}_{}", "camel"]


def written(pair: tuple[str, str], way: str) -> str:
    return pair[0] + pair[1].capitalize() if way == "camel" else way.format(*pair)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=3), st.data())
def test_pairs_of_words_are_found_whichever_way_each_is_written(
    pairs: list[tuple[str, str]], data: st.DataObject
) -> None:
    asked = " ".join(written(pair, data.draw(st.sampled_from(JOINED))) for pair in pairs)
    text = " ".join(written(pair, data.draw(st.sampled_from([*JOINED, "{} {}"]))) for pair in pairs)
    assert occurrences(padded(tokens_of(f"the {text} of it")), term_for(asked, "en"))


@given(st.text(max_size=60), st.sampled_from(["en", "de", "fr"]))
def test_no_text_makes_a_term_that_is_no_term(text: str, language: str) -> None:
    term = term_for(text, language)
    assert all(one.strip() == one and "  " not in one for one in meant(term))
    assert len(meant(term)) <= MAX_READINGS
