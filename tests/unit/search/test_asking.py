"""Queries in the advanced syntax, through the whole of search and `why`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from whyrank.analysis.document import entry_for
from whyrank.protocols import Changes, Store
from whyrank.ranking.recipes import RECIPES
from whyrank.search.explain import contrast, why
from whyrank.search.searcher import Searcher
from whyrank.storage import query_resolution as asking
from whyrank.testing.fakes import WordDirections
from whyrank.testing.memory_store import MemoryStore
from whyrank.testing.store_contract import NOW, fact
from whyrank.types.query import Query, Where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whyrank.types.memory import Memory
    from whyrank.types.results import Results

EMBEDDER = WordDirections()
NOTES = [
    fact("m_1", "deployment to staging operates daily"),
    fact("m_2", "rollback of the deployment"),
    fact("m_3", "Suzy drinks green tea", tags=("drinks",)),
    fact("m_4", "die Regierungen der Häuser"),
]


def filled(memories: Sequence[Memory] = NOTES) -> Store:
    entries = [entry_for(memory, "en") for memory in memories]
    rows = EMBEDDER.documents([entry.embed_text for entry in entries])
    store = MemoryStore()
    vectors = {entry.embed_hash: row for entry, row in zip(entries, rows, strict=True)}
    store.write(Changes(put=entries, space=EMBEDDER.fingerprint, vectors=vectors))
    return store


def query(text: str) -> Query:
    return Query(text, Where(now=NOW), syntax="advanced")


def ask(text: str, store: Store | None = None) -> Results:
    return Searcher(store or filled(), EMBEDDER, "en").search(query(text), RECIPES["default"])


def found(text: str) -> set[str]:
    return {hit.id for hit in ask(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("deploy*", {"m_1", "m_2"}),
        ("deploy* -rollback", {"m_1"}),
        ("operat*", {"m_1"}),
        ("rollback OR tea", {"m_2", "m_3"}),
        ('"green tea"', {"m_3"}),
        ('"tea green"', set()),
        ("tea tag:drinks", {"m_3"}),
        ("tea -tag:drinks", set()),
        ("Regierung", {"m_4"}),  # stemmed as the memory's language does, which the query does not show
        ("regierun*", {"m_4"}),
        ("häus*", {"m_4"}),
        ("tea -Regierung", {"m_3"}),
        ('en* OR "green tea"', {"m_3"}),  # a beginning shows no language
        ('"Regierungen der Häuser"', {"m_4"}),
    ],
)
def test_an_expression_decides_who_may_answer(text: str, expected: set[str]) -> None:
    assert found(text) == expected


def test_in_a_plain_query_operators_are_text() -> None:
    plain = Query("deploy* -rollback", Where(now=NOW))
    results = Searcher(filled(), EMBEDDER, "en").search(plain, RECIPES["default"])
    assert "m_2" in {hit.id for hit in results}


def test_a_beginning_is_one_term_of_the_trail() -> None:
    [hit] = ask("operat* staging")
    keyword = next(part for part in hit.trail[0].parts if part.signal == "keyword")
    assert {found.label for found in keyword.terms} >= {"operat*", "stage"}


def test_rare_words_of_a_beginning_do_not_weigh_more_than_frequent_ones() -> None:
    # deploy stands in three memories, deployable in one; under deploy* both are the same
    texts = ["deploy it", "deploy that", "deploy this", "deployable it"]
    store = filled([fact(f"m_{i}", text) for i, text in enumerate(texts)])
    results = Searcher(store, None, "en").search(query("deploy*"), RECIPES["keyword"])
    assert len({round(hit.score, 9) for hit in results}) == 1
    assert len(results) == 4


def test_what_cannot_be_ranked_is_said() -> None:
    for text in ("tag:drinks", "NOT tea"):
        results = ask(text)
        assert not results.hits
        assert "nothing-to-rank-by" in {notice.code for notice in results.notices}


def test_a_beginning_of_nothing_is_said() -> None:
    assert "beginning-unknown" in {notice.code for notice in ask("zebr*").notices}


def test_a_beginning_of_too_many_words_is_cut_to_the_most_frequent_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, "MAX_WORDS", 2)
    texts = ["alphab", "alphac", "alphac", "alphad", "alphad"]
    results = ask("alpha*", filled([fact(f"m_{i}", text) for i, text in enumerate(texts)]))
    assert {hit.id for hit in results} == {"m_1", "m_2", "m_3", "m_4"}
    assert [notice.message for notice in results.notices if notice.code == "beginning-cut"] == [
        "alpha* matches 3 words; only the 2 most frequent were searched"
    ]


@pytest.mark.parametrize(
    ("text", "identity", "said"),
    [
        ("deploy* -rollback", "m_2", "it cannot answer: it contains rollback"),
        ("deploy*", "m_3", "it cannot answer: it does not contain deploy*"),
        ("tea tag:x*", "m_3", "it cannot answer: it is not tag:x*"),
        ("tea OR milk", "m_1", "it cannot answer: it contains neither of tea, milk"),
    ],
)
def test_why_names_what_keeps_a_memory_out(text: str, identity: str, said: str) -> None:
    answer = why(Searcher(filled(), EMBEDDER, "en"), query(text), RECIPES["default"], identity)
    assert (answer.outcome, answer.summary) == ("filtered", said)


def test_two_can_be_held_against_each_other() -> None:
    searcher = Searcher(filled(), EMBEDDER, "en")
    answer = contrast(searcher, query("deploy* OR rollback"), RECIPES["keyword"], "m_1", "m_2")
    assert answer.first == "m_2"
    assert "|" not in str(answer)
