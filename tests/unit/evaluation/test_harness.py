"""`eval` on a set small enough to know the answer."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.errors import BadDataset
from whyrank.evaluation.datasets import load_set
from whyrank.evaluation.harness import CEILING, as_data, evaluate, write_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

DOCUMENTS = [
    {"id": "tea", "title": "Tea", "text": "green tea in the afternoon", "meta": {"scope": "ann"}},
    {"id": "oil", "text": "change the engine oil in spring", "meta": {"scope": "ann"}},
    {"id": "foreign", "title": "Tea", "text": "green tea in the afternoon", "meta": {"scope": "bob"}},
]
QUERIES = [
    {"id": "q1", "text": "green tea", "scope": "ann", "kind": "words"},
    {"id": "q2", "text": "engine", "scope": "ann", "kind": "name"},
    {"id": "q3", "text": "has no judgement", "scope": "ann"},
]


def lines(rows: Sequence[Mapping[str, object]]) -> str:
    return "\n".join(json.dumps(row) for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "small"
    made.mkdir()
    (made / "corpus.jsonl").write_text(lines(DOCUMENTS))
    (made / "queries.jsonl").write_text(lines(QUERIES))
    (made / "qrels.tsv").write_text("query-id\tdoc-id\trelevance\nq1\ttea\t1\nq2\toil\t1\n")
    return made


@pytest.fixture
def engine(tmp_path: Path) -> whyrank.Engine:
    return whyrank.open(tmp_path / "memory.db", workspace=tmp_path)


def test_an_easy_set_is_answered_wholly_and_within_its_scope(folder: Path, engine: whyrank.Engine) -> None:
    evaluation = evaluate(load_set(folder), engine, ["default", "rrf"], lambda *_: None)
    assert evaluation.lines["default"].means()["ndcg@10"] == 1.0
    assert evaluation.lines["default"].ranked["q1"][0] == "tea"
    assert all("foreign" not in ranked for line in evaluation.lines.values() for ranked in line.ranked.values())
    engine.close()


def test_single_runs_and_ceiling_are_always_beside(folder: Path, engine: whyrank.Engine) -> None:
    evaluation = evaluate(load_set(folder), engine, ["default"], lambda *_: None)
    assert list(evaluation.lines) == ["default", "keyword", "vector", CEILING]
    assert set(evaluation.by_kind("default")) == {"words", "name"}
    assert evaluation.trails > 0
    assert evaluation.broken_trails == []
    engine.close()


def test_no_line_is_above_the_ceiling_whatever_recipe_comes_first(folder: Path, engine: whyrank.Engine) -> None:
    (folder / "queries.jsonl").write_text(lines([{"id": "q1", "text": "hot beverage", "scope": "ann"}]))
    (folder / "qrels.tsv").write_text("query-id\tdoc-id\trelevance\nq1\ttea\t1\n")
    evaluation = evaluate(load_set(folder), engine, ["keyword"], lambda *_: None)
    assert evaluation.lines["keyword"].ranked["q1"] == []  # no word is shared, so words bring no candidate …
    assert "tea" in evaluation.lines["vector"].ranked["q1"]  # … but vectors do
    assert evaluation.lines[CEILING].means()["ndcg@10"] == 1.0
    engine.close()


def test_the_run_file_falls_strictly(folder: Path, engine: whyrank.Engine, tmp_path: Path) -> None:
    evaluation = evaluate(load_set(folder), engine, ["default"], lambda *_: None)
    file = tmp_path / "out.run"
    write_run(file, evaluation.lines["default"], "tag")
    rows = [line.split() for line in file.read_text().splitlines() if line.startswith("q1 ")]
    assert [row[3] for row in rows] == [str(i) for i in range(1, len(rows) + 1)]
    scores = [float(row[4]) for row in rows]
    assert all(higher > lower for higher, lower in pairwise(scores))
    engine.close()


def test_as_data_holds_every_line(folder: Path, engine: whyrank.Engine) -> None:
    data = as_data(evaluate(load_set(folder), engine, ["default", "rrf"], lambda *_: None))
    assert json.loads(json.dumps(data)) == data
    assert data["trails"] == {"replayed": data["trails"]["replayed"], "broken": 0}
    engine.close()


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("corpus.jsonl", "{not json", "corpus.jsonl:1 is not JSON: Expecting property name"),
        ("corpus.jsonl", '{"text": "no id"}', "corpus.jsonl:1 has no id"),
        ("corpus.jsonl", "{}", "corpus.jsonl:1 has no id and no text"),
        ("corpus.jsonl", '{"id": 1, "text": "a", "meta": "b"}', "corpus.jsonl:1 has a meta that is not an object: 'b'"),
        ("queries.jsonl", "[]", "queries.jsonl:1 is not an object"),
        ("qrels.tsv", "query\tdocument\tgain\nq1\ttea\n", "qrels.tsv:2"),
        ("qrels.tsv", "query\tdocument\tgain\nq1\ttea\tmuch\n", "qrels.tsv:2"),
        ("qrels.tsv", "query\tdocument\tgain\n", "no query"),
        ("qrels.tsv", "q1\ttea\tmuch\n", "qrels.tsv:1"),  # no header: it begins with a query there is
        ("qrels.tsv", "q1\ttea\nq2\toil\t1\n", "qrels.tsv:1"),
        ("qrels.tsv", "q1 tea 1\nq2\ttea\t1\n", "qrels.tsv:1"),
        ("qrels.tsv", "q1\ttea\t1.5\n", "qrels.tsv:1: .* is not a judgement"),
        (
            "queries.jsonl",
            '{"id": "q1", "text": "a"}\n{"id": "q1", "text": "b"}\n',
            "contains the id .q1. 2 times",
        ),
        ("set.json", "{", "set.json"),
    ],
)
def test_a_broken_set_says_where(folder: Path, file: str, content: str, said: str) -> None:
    (folder / file).write_text(content)
    with pytest.raises(BadDataset, match=said):
        load_set(folder)


def test_ids_may_be_written_as_the_sets_of_beir_have_them(folder: Path) -> None:
    for name in ("corpus.jsonl", "queries.jsonl"):
        file = folder / name
        file.write_text(file.read_text(encoding="utf-8").replace('"id":', '"_id":'), encoding="utf-8")
        assert '"_id"' in file.read_text(encoding="utf-8")
    assert [question.id for question in load_set(folder).questions][:2] == ["q1", "q2"]


@pytest.mark.parametrize(
    "header", ["query-id\tdoc-id\trelevance\n", "", "\ufeff", "\ufeffquery\tdocument\tgain\n", "\n"]
)
def test_judgements_need_no_header(folder: Path, header: str) -> None:
    (folder / "qrels.tsv").write_text(f"{header}q1\ttea\t1\nq2\toil\t2\n", encoding="utf-8")
    assert load_set(folder).judgements == {"q1": {"tea": 1}, "q2": {"oil": 2}}


def test_a_first_line_that_judges_is_no_header_even_of_a_query_that_is_not_there(folder: Path) -> None:
    (folder / "qrels.tsv").write_text("q9\ttea\t1\nq2\toil\t1\n", encoding="utf-8")
    assert load_set(folder).judgements == {"q9": {"tea": 1}, "q2": {"oil": 1}}


def test_a_folder_that_is_no_set_says_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match=r"corpus\.jsonl"):
        load_set(tmp_path)
    with pytest.raises(BadDataset, match="not a folder"):
        load_set(tmp_path / "nowhere")


def test_what_is_judged_and_not_there_is_counted(folder: Path, engine: whyrank.Engine) -> None:
    with (folder / "qrels.tsv").open("a", encoding="utf-8") as file:
        file.write("q1\tno-such-document\t1\nno-such-query\tno-such-document\t1\n")
    notices = evaluate(load_set(folder), engine, ["default"], lambda *_: None).notices
    assert (notices["unknown-document"], notices["unknown-query"]) == (1, 1)


def test_a_set_none_of_whose_judged_documents_is_there_is_refused(folder: Path, engine: whyrank.Engine) -> None:
    (folder / "qrels.tsv").write_text("q1\ttea.md\t1\nq2\toil.md\t1\n", encoding="utf-8")
    with pytest.raises(BadDataset, match=r"none of the 2 documents that qrels.tsv judges is in the set.*'oil.md'"):
        evaluate(load_set(folder), engine, ["default"], lambda *_: None)


def test_files_are_the_same_documents_whichever_way_leads_to_them(folder: Path, engine: whyrank.Engine) -> None:
    (folder / "files").mkdir()
    (folder / "files/tea.md").write_text("green tea", encoding="utf-8")
    (folder / "corpus.jsonl").unlink()
    (folder / "queries.jsonl").write_text(json.dumps({"id": "q1", "text": "green tea"}), encoding="utf-8")
    (folder / "qrels.tsv").write_text("q1\ttea.md\t1\n", encoding="utf-8")
    found = evaluate(load_set(folder / ".." / folder.name), engine, ["default"], lambda *_: None)
    assert {name: line.values() for name, line in found.lines.items() if name in ("default", CEILING)} == {
        "default": [1.0],
        CEILING: [1.0],
    }
