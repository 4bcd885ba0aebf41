"""`whyrank eval` with what it leaves behind: kept results, pages, comparisons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.pages.reading import read

if TYPE_CHECKING:
    from tests.e2e.conftest import Run

TEXTS = {"tea": "Green tea stands behind the flour.", "boat": "The ferry leaves at nine.", "heap": "Turn the compost."}
QUESTIONS = {"q1": ("green tea", "tea"), "q2": ("when does the boat go", "boat"), "q3": ("compost", "heap")}


@pytest.fixture
def measured(workspace: Path) -> str:
    folder = workspace / "measured"
    folder.mkdir()
    corpus = [{"id": name, "text": text} for name, text in TEXTS.items()]
    queries = [{"id": name, "text": text, "kind": name} for name, (text, _) in QUESTIONS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    judged = "".join(f"{name}\t{document}\t1\n" for name, (_, document) in QUESTIONS.items())
    (folder / "qrels.tsv").write_text("query\tdocument\tgain\n" + judged)
    return str(folder)


def test_a_page_is_written_that_needs_nothing_else(workspace: Path, measured: str, call: Run) -> None:
    done = call("eval", measured, "--recipe", "default", "--recipe", "openclaw-2026-02", "--html", "page.html")
    assert (done.status, done.err) == (0, "written: page.html\n")
    parsed = read((workspace / "page.html").read_text(encoding="utf-8"))
    assert "openclaw-2026-02 against default" in parsed.text
    assert "= 3 queries" in parsed.text
    assert "By kind of query" in parsed.text
    assert parsed.count("svg") > 3


def test_kept_results_are_compared_with_another_run(workspace: Path, measured: str, call: Run) -> None:
    assert call("eval", measured, "--keep", "before.json").status == 0
    kept = json.loads((workspace / "before.json").read_text(encoding="utf-8"))
    assert (kept["format"], kept["kind"], kept["settings"]) == (1, "whyrank-eval", {"embedding": "wordllama"})
    assert [query["id"] for query in kept["sets"][0]["per_query"]] == ["q1", "q2", "q3"]
    done = call("eval", measured, "--embedding", "none", "--against", "before.json")
    assert "measured: 3 queries, default: " in done.out
    assert "mind: embedding was wordllama and is none" in done.out
    data = call("eval", measured, "--against", "before.json", "--json").data
    [one] = data["against"]["sets"]
    assert (one["queries"], one["better"], one["worse"], one["same"], one["p"]) == (3, 0, 0, 3, 1.0)


def test_every_setting_that_changes_what_is_found_is_minded(workspace: Path, measured: str, call: Run) -> None:
    assert call("eval", measured, "--embedding", "none", "--keep", "before.json").status == 0
    asked = ("eval", measured, "--embedding", "none", "--keep", "after.json", "--against", "before.json")
    said = call(
        *asked,
        WHYRANK_KEYWORD="fts5",
        WHYRANK_LANGUAGE="de",
        WHYRANK_CHUNK_TOKENS="200",
        WHYRANK_EMBEDDER_MODEL="small",
        WHYRANK_EMBEDDER_DIMENSION="64",
        WHYRANK_EMBEDDER_WEIGHT="0.4",
        WHYRANK_EMBEDDER_URL="http://127.0.0.1:9/v1",
        WHYRANK_EMBEDDER_KEY_FILE="secret.txt",
    ).out
    for changed in (
        "keyword was unset and is fts5",
        "language was unset and is de",
        "chunk.tokens was unset and is 200",
        "embedder.model was unset and is small",
        "embedder.dimension was unset and is 64",
        "embedder.weight was unset and is 0.4",
    ):
        assert f"mind: {changed}" in said
    kept = json.loads((workspace / "after.json").read_text(encoding="utf-8"))["settings"]
    assert not {"embedder.url", "embedder.key_file"} & set(kept)  # a place and a secret are nobody's to read


def test_kept_results_are_shown_without_measuring(workspace: Path, measured: str, call: Run) -> None:
    call("eval", measured, "--keep", "kept.json")
    done = call("eval", "--from", "kept.json", "--against", "kept.json", "--html", "again.html")
    assert "better 0, worse 0, same 3" in done.out
    assert "No query moved." in read((workspace / "again.html").read_text(encoding="utf-8")).text
    again = call("eval", "--from", "kept.json", "--json").data
    assert again == {**json.loads((workspace / "kept.json").read_text(encoding="utf-8")), "written": []}


def test_kept_results_are_told_as_they_were_when_they_were_measured(measured: str, call: Run) -> None:
    told = call("eval", measured, "--keep", "kept.json")
    again = call("eval", "--from", "kept.json")
    assert (again.status, again.err) == (0, "")
    first, rest = again.out.split("\n", 1)
    assert first.startswith("kept.json: whyrank ")
    assert rest == told.out
    assert "measured: 3 queries" in rest
    assert "q1                     1.0000" in rest  # by kind of query


def test_every_file_that_was_written_is_named(workspace: Path, measured: str, call: Run) -> None:
    asked = ("eval", measured, "--html", "page.html", "--keep", "kept.json", "--run-out", "run.txt")
    done = call(*asked, "--json")
    assert done.data["written"] == ["run.txt", "kept.json", "page.html"]
    assert done.err == "written: run.txt\nwritten: kept.json\nwritten: page.html\n"
    assert "written" not in json.loads((workspace / "kept.json").read_text(encoding="utf-8"))
    assert call(*asked).status == 0  # its own files it writes again


@pytest.mark.parametrize("option", ["--html", "--keep"])
def test_what_somebody_else_wrote_is_not_overwritten(workspace: Path, measured: str, call: Run, option: str) -> None:
    for name, text in (
        ("notes.md", "# My notes\n"),
        ("mine.html", "<!doctype html><p>mine"),
        ("mine.json", '{"a": 1}'),
    ):
        (workspace / name).write_text(text)
        done = call("eval", measured, option, name)
        assert (done.status, (workspace / name).read_text()) == (2, text)
        assert f"{name} already exists" in done.err
        assert "name another file" in done.err
    (workspace / "empty").touch()
    assert call("eval", measured, option, "empty").status == 0


def test_one_query_is_one_query(workspace: Path, measured: str, call: Run) -> None:
    queries = (Path(measured) / "queries.jsonl").read_text().splitlines()
    (Path(measured) / "queries.jsonl").write_text(queries[0])
    told = call("eval", measured, "--keep", "kept.json", "--html", "page.html").out
    assert "measured: 1 query\n" in told
    assert "1 query, default" in call("eval", "--from", "kept.json", "--against", "kept.json").out
    assert "1 queries" not in told + read((workspace / "page.html").read_text(encoding="utf-8")).text


def test_other_queries_are_not_compared_and_said_so(workspace: Path, measured: str, call: Run) -> None:
    call("eval", measured, "--keep", "kept.json")
    text = (workspace / "kept.json").read_text(encoding="utf-8")
    (workspace / "other.json").write_text(text.replace('"green tea"', '"black tea"'), encoding="utf-8")
    (workspace / "none.json").write_text(text.replace('"set": "measured"', '"set": "lost"'), encoding="utf-8")
    said = call("eval", "--from", "kept.json", "--against", "other.json").out
    assert "measured, not compared: 1 query with another text, scope or judgement (q1)" in said
    said = call("eval", "--from", "kept.json", "--against", "none.json").out
    assert "not compared: set measured: only in these results" in said
    assert "nothing can be compared" in said


def test_an_abstention_has_a_page(workspace: Path, measured: str, call: Run) -> None:
    other = workspace / "other"
    other.mkdir()
    for file in Path(measured).iterdir():
        (other / file.name).write_text(file.read_text().replace("compost", "submarine"))
    asked = ("eval", measured, "--abstention", str(other), "--keep", "kept.json", "--html", "page.html")
    assert call(*asked).status == 0
    page = (workspace / "page.html").read_text(encoding="utf-8")
    assert "unanswerable rejected" in read(page).text
    told = call("eval", "--from", "kept.json", "--html", "again.html").out
    assert (workspace / "again.html").read_text(encoding="utf-8") == page
    assert "3 answerable questions, 3 unanswerable" in told
    assert "the verdict, calibrated without labels: " in told


def test_small_stores_are_measured_kept_shown_and_compared(workspace: Path, measured: str, call: Run) -> None:
    asked = ("eval", measured, "--small", "2,3,9", "--draws", "4", "--keep", "kept.json", "--html", "page.html")
    done = call(*asked)
    assert done.status == 0
    assert "measured, stores of 2: 3 queries" in done.out
    assert "4 stores of 2 files, seed 1: 8 questions asked" in done.out  # every file answers a question
    assert "the better single run: " in done.out
    for size in (3, 9):
        assert f"notice: measured has 3 files: too few to draw stores of {size}\n" in done.err
    page = (workspace / "page.html").read_text(encoding="utf-8")
    assert "verdicts, each question counted once" in read(page).text
    shown = call("eval", "--from", "kept.json", "--html", "again.html")
    assert done.out in shown.out
    assert (workspace / "again.html").read_text(encoding="utf-8") == page
    data = call("eval", measured, "--small", "2", "--draws", "4", "--json", "--against", "kept.json").data
    assert data["sets"][0]["stores"]["asked"] == 8
    assert data["not_drawn"] == []
    [compared] = data["against"]["sets"]
    assert (compared["set"], compared["queries"], compared["same"]) == ("measured, stores of 2", 3, 3)
    other = call("eval", measured, "--small", "2", "--draws", "4", "--seed", "7", "--against", "kept.json").out
    assert "mind: the documents of the set differ" in other


def test_small_stores_are_asked_what_they_cannot_answer(workspace: Path, measured: str, call: Run) -> None:
    other = workspace / "other"
    other.mkdir()
    for file in Path(measured).iterdir():
        (other / file.name).write_text(file.read_text().replace("compost", "submarine"))
    told = call("eval", f"{measured}:q1,q2", "--small", "2", "--abstention", str(other), f"{other}:q3", measured).out
    assert "measured:q1,q2, stores of 2: 2 queries" in told
    groups = [line.split()[:4] for line in told.splitlines() if line.startswith("  questions of ")]
    assert groups == [
        ["questions", "of", "other", "3"],
        ["questions", "of", "other:q3", "1"],  # a set is not foreign to itself, so it is left out
        ["questions", "of", "all", "other"],
    ]


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        ((), 2, "no set is named"),
        (("SET", "--small", "0"), 2, "'0' is less than 1"),
        (("SET", "--small", "2,x"), 2, "'x' is not a whole number"),
        (("SET", "--small", "3"), 2, "no set is larger than the stores to draw"),
        (("SET", "--small", "2", "--run-out", "x.run"), 2, "--run-out and --small exclude each other"),
        (("SET", "--small", "2", "--abstention", "SET", "--plot", "x.svg"), 2, "--plot and --small exclude each other"),
        (("SET", "--draws", "3"), 2, "--draws needs --small"),
        (("SET", "--seed", "3"), 2, "--seed needs --small"),
        (("--from", "kept.json", "--small", "2"), 2, "--small needs a measurement"),
        (("SET", "--from", "kept.json"), 2, "leave one of them out"),
        (("--from", "nowhere.json"), 13, "nowhere.json is not there"),
        (("--from", "nowhere.json", "--html", "x.html"), 13, "nowhere.json is not there"),
        (("--from", "bad.json", "--html", "x.html"), 13, "bad.json is not JSON"),
        (("--from", "kept.json", "--html", "x.html", "--recipe", "rrf"), 2, "--recipe needs a measurement"),
        (("--from", "kept.json", "--html", "x.html", "--abstention"), 2, "--abstention needs a measurement"),
        (("SET", "--against", "old.json"), 13, "figures of each query"),
        (("SET", "--html", "nowhere/x.html"), 2, "nowhere/x.html cannot be written"),
        (("SET", "--html", "/proc/x.html"), 2, "/proc/x.html cannot be written"),  # whoever we are, root too
        (("SET", "--keep", "."), 2, "cannot be written"),
        (("SET", "--abstention", "--against", "kept.json"), 2, "leave one out"),
    ],
)
def test_what_cannot_be_is_said_before_the_work(
    workspace: Path, measured: str, call: Run, typed: tuple[str, ...], code: int, said: str
) -> None:
    (workspace / "bad.json").write_text("{")
    (workspace / "old.json").write_text('{"sets": [], "format": 1}')
    done = call("eval", *(measured if word == "SET" else word for word in typed))
    assert (done.status, done.out) == (code, "")
    assert said in done.err
