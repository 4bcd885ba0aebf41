"""A kept contest is read again whole, held to its limits, and shown on a page that needs nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.speed.measurement import Span
from benchmarks.speed.page import Goal, held_to, page_of
from benchmarks.speed.peers import ALONE, OURS, SHARED
from benchmarks.speed.results import Category, Entrant, KeptContest, Line, Outcome, Round, Scoped, Skipped, kept_from
from benchmarks.speed.results import read as read_results
from tests.unit.pages.reading import read
from tests.unit.pages.test_markup import HOSTILE
from whyrank.errors import BadDataset

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = {
    "cpu": "A", "cores": 2, "system": "B", "python": "3", "numpy": "2", "sqlite": "3", "whyrank": "0.1",
    "one_thread": True,
}  # fmt: skip
SETTINGS = {"queries": 2, "words": 60, "seed": 1, "limit": 50, "patience_s": 600}


def contest_data(other: str = "fts5+numpy", version: str = "1.2", slower: float = 5.0) -> dict[str, Any]:
    """Return a contest at two sizes in which the other takes five times as long."""
    rounds = []
    for notes, unit in ((10_000, 2.0), (100_000, 3.0)):
        lines = [
            Line(OURS, {0: Span(unit, unit), 1: Span(unit, unit)}, recall=1.0),
            Line(other, {0: Span(unit * slower, 8), 1: Span(unit * slower, 8)}, recall=0.95),
        ]
        entrant = Entrant(OURS, {}, {"cpu_s": 1.0}, {"peak_mb": 100.0})
        second = Entrant(other, {other: version}, {"cpu_s": None}, {})
        filtered = [Category("5.0% of the notes", [Line(OURS, {0: Span(1, 1)}, recall=0.9)])]
        rounds.append(
            Round(notes, [entrant, second], [Category("hybrid", lines)], filtered, 0.2, [Skipped("third", "no time")])
        )
    alone = Category("scopes", [Line(SHARED, {0: Span(6, 6)}), Line(ALONE, {0: Span(5, 5)})], ALONE)
    data = Outcome("2026-01-02", MACHINE, SETTINGS, rounds, Scoped(1_000, 500, alone)).as_data()
    made: dict[str, Any] = json.loads(json.dumps(data))
    return made


@pytest.fixture
def contest() -> KeptContest:
    return kept_from(contest_data())


def test_what_is_kept_is_read_again(contest: KeptContest, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps(contest_data()))
    assert read_results(tmp_path / "results.json") == contest
    line = contest.rounds[0].categories[0].lines[1]
    assert (line.turns, line.cpu, line.wall, line.ratio) == (2, (10.0, 10.0), (8.0, 8.0), (5.0, 4.0))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sizes": None}, "sizes: a list is expected"),
        ({"format": 9}, "format 9"),
        ({"format": 0}, "there is no format 0"),
        ({"machine": {}}, "'cpu' is missing"),
        ({"sizes": [{"notes": "many"}]}, "notes: a whole number is expected"),
    ],
)
def test_damage_is_refused_with_its_place(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    file = tmp_path / "results.json"
    file.write_text(json.dumps({**contest_data(), **change}))
    with pytest.raises(BadDataset, match=said) as refused:
        read_results(file)
    assert "results.json" in refused.value.message


def test_results_of_an_evaluation_are_no_contest() -> None:
    with pytest.raises(BadDataset, match="not the results of a contest"):
        kept_from({"sets": [], "kind": "whyrank-eval", "format": 1})


def test_a_limit_from_below_and_one_from_above() -> None:
    least, most = Goal("", must=4, aim=12), Goal("", must=12, aim=4, is_most=True)
    assert [least.standing(value) for value in (3.9, 4, 12)] == ["missed", "must reached", "aim reached"]
    assert [most.standing(value) for value in (12.1, 12, 4)] == ["missed", "must reached", "aim reached"]


def test_a_contest_is_held_to_what_it_measured(contest: KeptContest) -> None:
    held = {(one.goal.name, one.goal.notes): (one.value, one.standing) for one in held_to(contest)}
    assert held["search: FTS5 + numpy / whyrank", 10_000] == (5.0, "must reached")  # at least 4, aim 12
    assert held["search: FTS5 + numpy / whyrank", 100_000] == (5.0, "missed")  # at least 20
    assert held["recall@10 behind a filter, the worst", 10_000] == (0.9, "missed")
    assert held["search in one scope of 1,000 / in a store of its own", 500] == (6 / 5, "must reached")
    assert held["ranking and trails, share of a search", 10_000] == (0.2, "must reached")
    assert held["memory at its peak, MB", 100_000] == (100.0, "aim reached")
    assert not any("LanceDB" in name for name, _ in held)  # it did not take part


def test_the_page_shows_limits_bars_growth_and_who_was_skipped(contest: KeptContest) -> None:
    parsed = read(page_of(contest))
    missed, reached = parsed.text.index("missed"), parsed.text.index("must reached")
    assert missed < reached  # what is missed stands first
    assert "search: FTS5 + numpy / whyrank 100,000 5 ≥ 20 ≥ 60 missed" in parsed.text
    assert "10 ms · 5 ×" in parsed.text
    assert "third: no time" in parsed.text
    assert "fts5+numpy: 15 at 100,000" in parsed.text  # 3 × 5, a dot of the growth
    assert parsed.count("polyline") == 2
    assert "1,000 scopes of 500 memories" in parsed.text


def test_an_earlier_contest_stands_beside_by_ratios(contest: KeptContest) -> None:
    earlier = kept_from(contest_data(version="1.1", slower=4.0))
    earlier = replace(earlier, date="2025-12-31", machine={**earlier.machine, "cpu": "old"})
    said = read(page_of(contest, earlier)).text
    assert "Against 2025-12-31" in said
    assert "10,000 hybrid fts5+numpy 8 10 4 5 1.25" in said  # 2 × 4 and 2 × 5 ms; 5 / 4
    assert "cpu was old and is A" in said
    assert "contestants differ: fts5+numpy 1.1, fts5+numpy 1.2" in said


def test_an_earlier_ratio_of_nought_has_nothing_grown_from_it(contest: KeptContest) -> None:
    said = read(page_of(contest, kept_from(contest_data(slower=0.0)))).text
    assert "10,000 hybrid fts5+numpy 0 10 0 5 –" in said


def test_contests_without_a_common_size_are_not_compared(contest: KeptContest) -> None:
    small = replace(contest, rounds=[replace(contest.rounds[0], notes=5)])
    said = read(page_of(contest, small)).text
    assert "Nothing can be compared" in said
    assert "only one side has 5, 10,000, 100,000 notes" in said


def test_hostile_names_stay_text() -> None:
    contest = kept_from(contest_data(other=HOSTILE, version=HOSTILE))
    parsed = read(page_of(contest, contest))
    assert parsed.text.count("<script>alert('x')</script>") > 5
