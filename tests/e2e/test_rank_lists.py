"""`whyrank rank`: lists of other engines from files, fused and explained on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import whyrank

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Run

WORDS = [("tea", 8.5), ("coffee", 3.2)]
NEAR = [("tea", 0.9), ("server", 0.3)]


@pytest.fixture
def lists(workspace: Path) -> Path:
    (workspace / "keyword.json").write_text(json.dumps(WORDS), encoding="utf-8")
    (workspace / "vector.json").write_text(json.dumps(NEAR), encoding="utf-8")
    return workspace


def fused(call: Run, *arguments: str) -> dict[str, float]:
    done = call("rank", *arguments, "--json")
    assert done.status == 0, done.said
    return {hit["id"]: hit["score"] for hit in done.data["hits"]}


FORMS = {
    "pairs": json.dumps(WORDS),
    "entries": json.dumps([{"id": identity, "score": score} for identity, score in WORDS]),
    "by id": json.dumps(dict(WORDS)),
    "lines of pairs": "\n".join(map(json.dumps, WORDS)),
    "lines of entries": "\n".join(json.dumps({"id": identity, "score": score}) for identity, score in WORDS) + "\n",
    "an answer": json.dumps({"query": "tea", "hits": [{"id": id, "score": s, "title": ""} for id, s in WORDS]}),
    "with a mark of its bytes": "\ufeff" + json.dumps(WORDS),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_list_has_many_forms(call: Run, lists: Path, form: str) -> None:
    (lists / "keyword.json").write_text(FORMS[form], encoding="utf-8")
    found = fused(call, "keyword.json", "vector.json")
    # 1/(60 + rank) of each list, scaled: × 61/2
    assert found == pytest.approx({"tea": 1.0, "coffee": 61 / 62 / 2, "server": 61 / 62 / 2})


def test_the_answer_is_that_of_the_library(call: Run, lists: Path) -> None:
    for recipe in whyrank.RECIPES:
        ranking = whyrank.rank({"keyword": WORDS, "vector": NEAR}, recipe)
        expected = {hit.id: hit.score for hit in ranking.hits}
        assert fused(call, "keyword.json", "vector.json", "--recipe", recipe) == expected
    told = call("rank", "keyword.json", "vector.json", "--recipe", "openclaw", "--explain").out
    assert "vector: 0.6300 = 0.700 × 0.9000  (rank 1, raw 0.9000" in told
    assert "– server  score 0.2100  openclaw-selection: score 0.210 is below 0.35" in told


def test_trec_runs_are_fused_question_by_question(call: Run, lists: Path) -> None:
    (lists / "bm25.run").write_text("q1 Q0 d1 1 9.5 x\nq1 Q0 d2 2 3.5 x\nq2 Q0 d9 1 4.0 x\n", encoding="utf-8")
    (lists / "dense.run").write_text("q1\tQ0\td2\t1\t0.9\ty\n", encoding="utf-8")
    data = call("rank", "bm25.run", "dense.run", "--k", "20", "--json").data
    assert [(hit["query"], hit["rank"], hit["id"]) for hit in data["hits"]] == [
        ("q1", 1, "d2"), ("q1", 2, "d1"), ("q2", 1, "d9"),
    ]  # fmt: skip
    assert data["runs"] == ["bm25", "dense"]
    # (k + 1)/(k + rank) with k = 20: (21/22 + 21/21)/2; of q2 the second list says nothing, and takes nothing off
    assert [hit["score"] for hit in data["hits"]] == pytest.approx([(21 / 22 + 1) / 2, 0.5, 1.0])
    assert call("rank", "bm25.run", "dense.run").out.startswith("q1\n 1. d2")


def test_lower_is_better_in_every_list_or_in_some(call: Run, lists: Path) -> None:
    (lists / "fts.json").write_text('[["a", -8.5], ["b", -0.5]]', encoding="utf-8")
    (lists / "near.json").write_text('[["a", 0.9], ["b", 0.1]]', encoding="utf-8")
    assert list(fused(call, "fts.json")) == ["b", "a"]
    assert list(fused(call, "fts.json", "--lower-is-better")) == ["a", "b"]
    assert fused(call, "fts.json", "near.json", "--lower-is-better-in", "fts")["a"] == 1.0
    done = call("rank", "fts.json", "--lower-is-better-in", "bm25")
    assert (done.status, "there is no list called 'bm25'" in done.err) == (2, True)


def test_lists_are_named_weighted_cut_and_cleared_of_what_was_replaced(call: Run, lists: Path) -> None:
    data = call("rank", "words=keyword.json", "near=vector.json", "--weight", "near=0", "--limit", "1", "--json").data
    assert (data["runs"], [hit["id"] for hit in data["hits"]]) == (["words", "near"], ["tea"])
    assert "tea" not in fused(call, "keyword.json", "vector.json", "--superseded", "tea")
    (lists / "texts.json").write_text('{"tea": "Suzy drinks tea", "coffee": "suzy drinks  TEA"}', encoding="utf-8")
    once = call("rank", "keyword.json", "vector.json", "--recipe", "hybrid-mem", "--texts", "texts.json", "--json").data
    assert [(hit["id"], hit["text"]) for hit in once["hits"]] == [("tea", "Suzy drinks tea"), ("server", None)]
    by_text = ("--superseded", "suzy drinks tea", "--texts", "texts.json")
    assert list(fused(call, "keyword.json", "vector.json", *by_text)) == ["server"]


def test_standard_input_is_a_list(lists: Path) -> None:
    command = [sys.executable, "-m", "whyrank", "rank", "-", "vector.json", "--json"]
    done = subprocess.run(command, input=json.dumps(WORDS), capture_output=True, text=True, check=True, cwd=lists)
    assert json.loads(done.stdout)["runs"] == ["stdin", "vector"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("hello world", "line 1 has 2 columns; a TREC run has 6"),
        ('[["a", 1], ["b"]]', 'entry 2 is ["b"]'),
        ('[["a", "much"]]', "entry 1 has the score 'much', which is not a finite number"),
        ('[["a", NaN]]', "not a finite number"),
        ('[{"id": "a"}]', "entry 1 has no score"),
        ('[{"score": 1}]', "entry 1 has no id"),
        ('{"id": "a", "score": 1}\n{"id":', "line 2: "),
        ('{"keyword": [["a", true]], "vector": []}', "entry 1 of 'keyword' has no score"),
        ("[" * 100_000, "nested too deeply"),
        ("q1 Q0 d1 1 inf x", "line 1 has the score 'inf'"),
    ],
)
def test_what_is_no_list_is_refused_with_the_forms_there_are(call: Run, lists: Path, text: str, named: str) -> None:
    (lists / "bad.json").write_text(text, encoding="utf-8")
    done = call("rank", "bad.json")
    assert done.status == 2
    assert named in done.err
    assert "a list is JSON" in done.err


def test_files_that_do_not_go_together_are_refused(call: Run, lists: Path) -> None:
    (lists / "bm25.run").write_text("q1 Q0 d1 1 9.5 x\n", encoding="utf-8")
    (lists / "image.json").write_bytes(b"\x89PNG\xff")
    for arguments, named in (
        (("keyword.json", "bm25.run"), "'keyword' does not"),
        (("keyword.json", "keyword.json"), "two lists are called 'keyword'"),
        (("keyword.json", "--weight", "near=1"), "which is not a run"),
        (("keyword.json", "--weight", "keyword=x"), "is not a number"),
        (("keyword.json", "--k", "0"), "k is 0"),
        (("keyword.json", "--k", "many"), "'many' is not a number"),
        (("keyword.json", "--texts", "vector.json"), "contains no texts by id"),
        (("image.json",), "image.json is not text"),
    ):
        done = call("rank", *arguments)
        assert (done.status, named in done.err) == (2, True), done.err
    assert "No such file" in call("rank", "nowhere.json").err


def test_an_empty_list_is_a_list(call: Run, lists: Path) -> None:
    (lists / "nothing.json").write_text("[]", encoding="utf-8")
    (lists / "empty.run").write_text("", encoding="utf-8")
    assert list(fused(call, "nothing.json", "empty.run", "vector.json")) == ["tea", "server"]
    done = call("rank", "nothing.json")
    assert (done.status, done.out) == (0, "no candidate is left\n")


def test_a_mistyped_recipe_is_answered_with_advice(call: Run, lists: Path) -> None:
    assert "did you mean 'rrf'?" in call("rank", "keyword.json", "--recipe", "rff").err
