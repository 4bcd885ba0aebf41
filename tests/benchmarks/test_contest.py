"""A contest goes on without those who cannot take part, says why, and reports the rest in one shape."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.speed import child
from benchmarks.speed.child import Failed
from benchmarks.speed.contest import Means, Settings, contest, first_ten, found, nearest_numbers, recall, scoped
from benchmarks.speed.corpus import Written
from benchmarks.speed.measurement import Span
from benchmarks.speed.page import write_folder
from benchmarks.speed.peers import ALONE, OURS, PEERS, SHARED, Ability, Key, Peer, chosen, fused, missing, peer_named
from benchmarks.speed.report import as_markdown, as_text
from benchmarks.speed.results import Category, Entrant, Line, Outcome, Round, Skipped, kept_from
from whyrank.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Absent(Peer):
    """An engine nobody has."""

    name = "absent"
    needs = ("no-such-distribution",)
    modules = ()
    offers: frozenset[Ability] = frozenset({"keyword"})

    def build(self, corpus: Written, folder: Path) -> None:
        raise AssertionError("what is not installed is not built")

    def open(self, folder: Path) -> None:
        raise AssertionError("what is not built is not opened")


def here(task: str, name: str, corpus: Path, folder: Path, patience: float) -> dict[str, float]:
    """Do a task in this process, which is faster."""
    return {"build": child.build, "cold": child.cold}[task](name, Written(corpus), folder)


MACHINE = {
    "cpu": "A", "cores": 2, "system": "B", "python": "3", "numpy": "2", "sqlite": "3", "whyrank": "0.1",
    "one_thread": True,
}  # fmt: skip
SETTINGS = {"queries": 2, "words": 60, "seed": 1, "limit": 50, "patience_s": 600}


def outcome() -> Outcome:
    lines = [
        Line(OURS, {0: Span(2, 4), 1: Span(4, 4)}, recall=1.0),
        Line("other", {0: Span(9, 8), 1: Span(9, 8)}, recall=0.95),
    ]
    entrant = Entrant("other", {"other-dist": "1.2"}, {"cpu_s": 1.0, "wall_s": 2.0}, {"open_ms": 3.0, "peak_mb": None})
    one = Round(
        1_000, [entrant], [Category("hybrid", lines)], ranking_share=0.25, skipped=[Skipped("third", "no time")]
    )
    return Outcome("2026-01-02", MACHINE, SETTINGS, [one])


def test_what_is_not_installed_is_named_with_the_way_to_get_it() -> None:
    assert missing(Absent()) == "no-such-distribution is not installed; pip install 'whyrank[peers]'"


def test_only_txtai_is_not_brought_by_the_extra() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    brought = {re.split("[><=]", need)[0] for need in project["optional-dependencies"]["peers"]}
    assert {need for name in PEERS for need in peer_named(name).needs} - brought == {"txtai"}
    assert peer_named("txtai").install.startswith("pip install txtai")


def test_a_missing_peer_is_skipped_by_name() -> None:
    settings = Settings(sizes=(100,), peers=("absent",), queries=2)
    [one] = contest(settings, Means(task=here, find=_with_absent)).rounds
    assert one.skipped == [Skipped("absent", missing(Absent()))]
    assert [entrant.name for entrant in one.entrants] == [OURS]


def _with_absent(name: str) -> Peer:
    return Absent() if name == "absent" else child.contestant_named(name)


def test_who_cannot_be_built_in_time_is_skipped_by_name() -> None:
    def impatient(task: str, name: str, corpus: Path, folder: Path, patience: float) -> dict[str, float]:
        if name != OURS:
            raise Failed(f"{task} was not done in {patience:g} s")
        return here(task, name, corpus, folder, patience)

    settings = Settings(sizes=(100,), peers=("fts5+numpy",), queries=2, patience=7)
    [one] = contest(settings, Means(task=impatient)).rounds
    assert one.skipped == [Skipped("fts5+numpy", "build was not done in 7 s")]


def test_a_real_process_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"build failed: .*KeyError: 'nobody'"):
        child.in_a_process("build", "nobody", tmp_path, tmp_path / "built", 60)


def test_every_peer_has_the_name_it_is_called_by() -> None:
    assert {name: peer_named(name).name for name in PEERS} == {name: name for name in PEERS}


def test_an_unknown_peer_is_answered_with_the_likely_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'tantivy'"):
        chosen(["tantivi"])


def test_nobody_named_is_everybody_and_none_is_nobody() -> None:
    assert chosen(None) == [name for name in PEERS if name != "whyrank without kernel"]
    assert chosen(["none"]) == []
    assert chosen(["tantivy", "tantivy"]) == ["tantivy"]


def test_fusion_adds_the_reciprocal_ranks() -> None:
    # 7: 1/61 + 1/62; 8: 1/61; 9: 1/62.
    assert fused([[7, 9], [8, 7]], limit=3) == [7, 8, 9]
    assert fused([[7, 9], [8, 7]], limit=1) == [7]


def test_the_exact_answer_is_the_order_of_the_products() -> None:
    vectors = np.eye(12, dtype=np.float32)
    question = np.array([[12 - place for place in range(12)]], dtype=np.float32)
    assert nearest_numbers(vectors, question).tolist() == [list(range(10))]
    few = nearest_numbers(vectors, question, among=np.array([11, 5]))
    assert few.tolist() == [[5, 11, *[-1] * 8]]


def test_recall_is_the_share_of_the_exact_ten_among_the_first_ten() -> None:
    exact = np.array([list(range(10)), [3, 4, *[-1] * 8]])
    answers: dict[int, Sequence[Key]] = {0: [0, 1, 2, *range(20, 27), 9], 1: [4, 3]}
    # 3 of 10 (the 9 stands eleventh) and 2 of 2.
    assert recall(first_ten(Absent(), answers), exact) == pytest.approx(5 / 12)


def test_found_is_the_share_of_answers_that_hold_the_note_asked_about() -> None:
    assert found({0: [4, 5], 1: [6], 2: []}, asked=[5, 7, 8]) == pytest.approx(1 / 3)


def test_the_data_has_the_documented_shape() -> None:
    data = json.loads(json.dumps(outcome().as_data()))
    assert data.keys() == {"date", "machine", "settings", "sizes", "scopes", "format"}
    assert data["format"] == 1
    [size] = data["sizes"]
    assert size.keys() == {
        "notes", "contestants", "categories", "filtered", "ranking_share", "skipped",
    }  # fmt: skip
    assert size["skipped"] == [{"name": "third", "reason": "no time"}]
    [category] = size["categories"]
    assert (category["name"], category["baseline"]) == ("hybrid", OURS)
    assert category["lines"][1] == {
        "name": "other",
        "turns": 2,
        "cpu_ms": {"p50": 9.0, "p95": 9.0},
        "wall_ms": {"p50": 8.0, "p95": 8.0},
        "ratio": {"cpu": 3.0, "wall": 2.0},  # 9 over the median of 2 and 4; 8 over 4
        "recall_at_10": 0.95,
        "found_at_10": None,
    }


def test_the_tables_hold_ratios_skipped_peers_and_the_share_of_ranking() -> None:
    text = as_text(kept_from(outcome().as_data()))
    assert "other       9.00     9.00      8.00      8.00       3.00        2.00      2      0.950" in text
    assert "- third: no time" in text
    assert "Ranking, with every trail, is 25% of a whyrank search." in text


def test_the_page_says_when_where_and_that_there_are_no_plots() -> None:
    page = as_markdown(kept_from(outcome().as_data()), plots=[])
    assert "Taken on 2026-01-02" in page
    assert "- Contestants: whyrank 0.1, other-dist 1.2" in page
    assert "| other | 9.00 | 9.00 | 8.00 | 8.00 | 3.00 | 2.00 | 2 | 0.950 |" in page
    assert "matplotlib is not installed" in page


def test_the_page_and_its_data_are_written(tmp_path: Path) -> None:
    write_folder(outcome().as_data(), tmp_path / "new")
    assert json.loads((tmp_path / "new/results.json").read_text("utf-8"))["format"] == 1
    assert (tmp_path / "new/index.md").read_text("utf-8").startswith("# Benchmarks\n")
    assert (tmp_path / "new/page.html").read_text("utf-8").startswith("<!doctype html>\n")


@pytest.mark.parametrize("name", ["index.md", "page.html", "results.json"])
def test_a_folder_with_other_things_of_these_names_is_left_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    kept, folder = tmp_path / "results.json", tmp_path / "site"
    kept.write_text(json.dumps(outcome().as_data()), encoding="utf-8")
    assert main(["--from", str(kept), "--out", str(folder)]) == 0
    written = {line.removeprefix("written: ") for line in capsys.readouterr().err.splitlines()}
    assert {str(folder / one) for one in ("index.md", "page.html", "results.json")} <= written
    assert main(["--from", str(kept), "--out", str(folder)]) == 0  # its own it writes again
    (folder / name).write_text("my own site", encoding="utf-8")
    assert main(["--from", str(kept), "--out", str(folder)]) == 2
    assert f"{name} already exists" in capsys.readouterr().err
    assert (folder / name).read_text("utf-8") == "my own site"


def test_kept_results_are_shown_without_a_contest(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = outcome().as_data()
    (tmp_path / "results.json").write_text(json.dumps(data), encoding="utf-8")
    kept, page = str(tmp_path / "results.json"), tmp_path / "page.html"
    assert main(["--from", kept, "--against", kept, "--html", str(page), "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out) == {**json.loads(json.dumps(data)), "written": [str(page)]}
    assert told.err == f"written: {page}\n"
    assert "Against 2026-01-02" in page.read_text("utf-8")
    assert main(["--from", str(tmp_path / "nowhere.json")]) == 13
    assert main(["--from", kept, "--peers", "none"]) == 2
    assert main(["--from", kept, "--html", str(tmp_path / "nowhere" / "x.html")]) == 2


def test_scopes_are_compared_with_stores_of_their_own() -> None:
    outcome = scoped(3, 100, words=20, seed=1, tell=lambda said: None)
    assert (outcome.scopes, outcome.memories, outcome.category.baseline) == (3, 100, ALONE)
    assert [line.name for line in outcome.category.lines] == [SHARED, ALONE]


def test_the_command_runs_whyrank_and_the_usual_recipe(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    typed = ["--sizes", "300", "--peers", "fts5+numpy,whyrank without kernel,sqlite insert"]
    assert main([*typed, "--queries", "5", "--json", "--out", str(tmp_path)]) == 0
    [size] = json.loads(capsys.readouterr().out)["sizes"]
    assert size["skipped"] == []
    peers = ["fts5+numpy", "whyrank without kernel"]
    assert [entrant["name"] for entrant in size["contestants"]] == [OURS, *peers, "sqlite insert"]
    names = {category["name"]: [line["name"] for line in category["lines"]] for category in size["categories"]}
    both = [OURS, "fts5+numpy"]
    assert names == {
        **{key: [OURS, *peers] for key in ("hybrid", "keyword", "vector", "name by words", "name")},
        "insert": [*both, "sqlite insert"],
        "insert, indexed": [*both, "sqlite insert"],
    }
    [vector] = [category for category in size["categories"] if category["name"] == "vector"]
    assert [line["recall_at_10"] for line in vector["lines"]] == [1.0, 1.0, 1.0]
    assert all(line["found_at_10"] > 0.5 for category in size["categories"][:-2] for line in category["lines"])
    assert [category["lines"][0]["recall_at_10"] for category in size["filtered"]] == [1.0, 1.0, 1.0]
    assert 0 < size["ranking_share"] < 1
    assert (tmp_path / "index.md").exists()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["--sizes", "many"], "'many' is no size"),
        (["--sizes", "10k,5"], "'5' is no size"),
        (["--peers", "lancebd"], "did you mean 'lancedb'?"),
        (["--queries", "0"], "--queries must be at least 1"),
        (["--scopes", "1000"], "'1000' is not a number of scopes"),
    ],
)
def test_a_slip_is_answered_with_advice(typed: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*typed]) == 2
    assert said in capsys.readouterr().err
