"""Reports of several environments meet in one folder; text, page and JSON say the same."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import whyrank
from tests.unit.pages.reading import Read
from whyrank_conformance import Conformance, Outcome, Report, Skipped
from whyrank_conformance.adapters import ENGINES, RECIPES, chosen, engine_named
from whyrank_conformance.errors import BadReport, UsageError
from whyrank_conformance.outcome import report_from
from whyrank_conformance.page import page_of
from whyrank_conformance.report import as_markdown, as_text
from whyrank_conformance.session import keep, kept, run

if TYPE_CHECKING:
    from pathlib import Path

OUTCOMES = (
    Outcome(1, "word scores are flat", "passed", "“a”", "b", "c", trials=1),
    Outcome(
        5, "all words must match", "failed", "“<b>q</b>”", "x | y", "nothing", choice="so meant", trials=3, failed=2
    ),
    Outcome(10, "an exact name is buried", "not applicable", reason="it has no names"),
)


def report(engine: str, outcomes: tuple[Outcome, ...] = OUTCOMES) -> Report:
    return Report(engine, "an engine", "ask(q)", {engine: "1.2"}, outcomes, 3.5, "2026-11-15", "3.11.7")


def test_a_report_comes_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    keep([report("lancedb"), report("fts5+numpy before")], tmp_path / "results")
    assert sorted(file.name for file in (tmp_path / "results").iterdir()) == ["fts5-numpy-before.json", "lancedb.json"]
    assert kept(tmp_path / "results") == (report("fts5+numpy before"), report("lancedb"))


def test_whyrank_stands_first_and_strangers_last(tmp_path: Path) -> None:
    keep([report(name) for name in ("my engine", "txtai", "whyrank", "lancedb")], tmp_path)
    assert [one.engine for one in kept(tmp_path)] == ["whyrank", "lancedb", "txtai", "my engine"]


@pytest.mark.parametrize("text", ["{}", "[]", "not json", '{"format": 2}', '{"format": 1, "outcomes": [{"x": 1}]}'])
def test_a_file_that_is_no_report_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadReport, match=r"bad\.json is no report"):
        kept(tmp_path)


def test_a_folder_without_reports_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadReport, match="there are no reports"):
        kept(tmp_path)


def test_of_one_engine_every_check_has_its_line_with_the_evidence() -> None:
    told = as_text(Conformance((report("lancedb"),)))
    assert "lancedb (lancedb 1.2): 1 of 2 passed, 1 not applicable" in told
    assert "✓  1 how strongly words match counts" in told
    assert "✗  5 all words must match" in told
    assert "came back: nothing (2 of 3 trials failed)" in told
    assert "Why: so meant." in told
    assert "it has no names" in told


def test_of_several_there_is_a_table_and_only_failures_are_told() -> None:
    told = as_text(Conformance((report("a"), report("b")), (Skipped("c", "not installed; pip install c"),)))
    head, first = told.splitlines()[:2]
    assert head.split()[:3] == ["1", "2", "3"]
    assert first.split() == ["a", "✓", "?", "?", "?", "✗", *"????", "–", *"????????", "1", "of", "2"]
    assert "it has no names" not in told
    assert told.endswith("skipped: c: not installed; pip install c")


def test_the_page_of_the_documentation_begins_with_our_own_gaps(tmp_path: Path) -> None:
    page = as_markdown([report("whyrank-openclaw"), report("lancedb")], "conformance/")
    own, others = page.index("## Our own gaps first"), page.index("## lancedb")
    assert (
        own
        < page.index("- [whyrank-openclaw](#whyrank-openclaw) fails 5, all words must match. Why: so meant.")
        < others
    )
    assert r"x \| y" in page  # a bar would end a cell
    assert "*Why: so meant.*" in page
    assert "## Not asked" in page


def test_the_page_to_look_at_fetches_nothing_and_shows_the_evidence() -> None:
    read = Read(page_of([report("whyrank"), report("lancedb")]))
    assert read.problems == []
    assert "came back: nothing" in read.text
    assert "<b>q</b>" in read.text  # as text, not as an element
    assert read.count("b") == 0


def test_what_was_passed_is_called_by_what_is_owed_and_not_by_the_mistake() -> None:
    passed = (Outcome(10, "an exact name is buried", "passed", "“a”", "b", "c", trials=1),)
    markup = page_of([report("whyrank", passed)])
    assert "10, an exact name comes first" in Read(markup).text
    assert 'title="an exact name comes first: passed"' in markup
    assert Read(markup).text.count("an exact name is buried") == 1  # in the table of checks alone
    failed = (Outcome(10, "an exact name is buried", "failed", "“a”", "b", "c", trials=1, failed=1),)
    assert "10, an exact name is buried" in Read(page_of([report("whyrank", failed)])).text


def test_an_engine_that_declares_no_versions_has_no_empty_brackets() -> None:
    silent = replace(report("mine"), versions={})
    assert as_text(Conformance((silent,))).startswith("mine: 1 of 2 passed")
    assert "- Versions: not declared; Python" in as_markdown([silent], "conformance/")
    assert "an engine. Versions: not declared; Python" in Read(page_of([silent])).text


def test_data_and_report_are_the_same_thing() -> None:
    data = json.loads(json.dumps(report("lancedb").as_data()))
    assert report_from(data) == report("lancedb")
    assert Conformance((report("lancedb"),)).as_data()["conforms"] is False


def test_an_engine_that_is_not_there_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="there is no engine 'lancdb'") as error:
        chosen(["lancdb"])
    assert error.value.hint == "did you mean 'lancedb'?"
    with pytest.raises(UsageError, match="cannot be imported"):
        chosen(["no_such_module:Engine"])
    with pytest.raises(UsageError, match="is no adapter"):
        chosen(["json:JSONDecoder"])


def test_all_are_all_and_nobody_is_whyrank() -> None:
    assert chosen(["all", "whyrank"]) == list(ENGINES)
    assert chosen(None) == ["whyrank"]


def test_every_recipe_of_whyrank_is_an_engine() -> None:
    assert ["default", *RECIPES] == list(whyrank.RECIPES)


@pytest.mark.parametrize("name", ENGINES)
def test_every_adapter_says_what_it_is_and_can_be_named_without_its_package(name: str) -> None:
    engine = engine_named(name)()
    assert engine.name == name
    assert engine.about
    assert engine.call
    assert engine.packages
    assert engine.promises


def test_a_stranger_is_run_and_an_absent_one_is_skipped_by_name() -> None:
    here = "tests.conformance.strangers"
    found = run([f"{here}:Stranger", f"{here}:Absent"])
    assert [one.engine for one in found.reports] == ["stranger"]
    assert found.conforms
    assert found.skipped == (Skipped(f"{here}:Absent", "no-such-distribution is not installed; pip install it"),)
