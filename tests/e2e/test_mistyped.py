"""Whoever mistypes a verb, an option, a path or an id is told what was meant."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import Run


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["serch", "tea"], "did you mean 'search'?"),
        (["search", "tea", "--limitt", "3"], "did you mean --limit?"),
        (["search", "tea", "--limt=3"], "did you mean --limit?"),
        (["why", "--expain"], "did you mean --expand?"),  # before anything that is missing
        (["list", "--offfset", "1"], "did you mean --offset?"),
        (["model", "lst"], "did you mean 'list'?"),
        (["model", "zebra"], "give list, use, add, fetch, rollback, drop or rerank"),
        (["list", "--sort", "dat"], "did you mean 'date'?"),
        (["mcp", "--print-config", "cursr"], "did you mean 'cursor'?"),
        (["list", "--limit", "x"], "whyrank: --limit: 'x' is not a whole number"),
        (["search", "tea", "--as-of"], "whyrank: --as-of: expected one argument"),
        (["status", "--zebra"], "`whyrank status --help` shows the usage"),
    ],
)
def test_verbs_and_options(call: Run, typed: list[str], said: str) -> None:
    done = call(*typed)
    assert (done.status, done.out) == (2, "")
    assert said in done.err


def test_help_is_a_word_too(call: Run) -> None:
    assert call("help", "search").out == call("search", "--help").out
    assert call("help").out == call("--help").out


def test_a_fact_that_was_stored_already_is_said_to_be(call: Run) -> None:
    first, again = (call("add", "Robin sails on Sundays") for _ in range(2))
    assert (first.err, first.out) == ("", again.out)
    assert "it was stored already" in again.err


def test_what_begins_with_dashes_can_still_be_asked(call: Run) -> None:
    assert call("search", "--json", "--", "--limitt").status == 0
    assert call("search", "--limitt is what?", "--json").status == 0


@pytest.mark.parametrize(
    "typed",
    [
        ["why", "tea", "notes/te.md"],
        ["why", "tea", "notes/boat.md", "--over", "tea.md"],
        ["pin", "what does Suzy drink?", "garden/tea.md"],
    ],
)
def test_paths(call: Run, typed: list[str]) -> None:
    done = call(*typed)
    assert done.status == 3
    assert "did you mean 'notes/tea.md'?" in done.err


@pytest.mark.parametrize("verb", ["show", "forget", "recalled", "update"])
def test_ids(call: Run, verb: str) -> None:
    identity = call("add", "Robin prefers tea", "--json").data["memories"][0]["id"]
    more = ["--importance", "4"] if verb == "update" else []
    done = call(verb, identity[:-1], *more)
    assert (done.status, f"did you mean {identity!r}?" in done.err) == (3, True)
    hint = json.loads(call(verb, identity[:-1], *more, "--json").out)["error"]["hint"]
    assert hint == f"did you mean {identity!r}?"
    assert call("show", identity).status == 0  # nothing was done to what was meant


def test_a_path_where_an_id_is_wanted_is_said_to_be_a_file(call: Run) -> None:
    done = call("show", "notes/tea.md")
    assert "notes/tea.md is a file; `whyrank list --path notes/tea.md` shows the ids of its memories" in done.err
    assert call("list", "--path", "notes/tea.md").out.startswith("m_")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["--limit", "0"], "the limit is 0"),
        (["--offset", "500"], "there are no memories from number 501 on"),
        (["--tag", "zebra"], "no memory passes the filters"),
    ],
)
def test_an_empty_list_says_why_it_is_empty(call: Run, typed: list[str], said: str) -> None:
    done = call("list", *typed)
    assert (done.status, done.out) == (0, "")
    assert said in done.err
    assert call("list", *typed, "--json").data["memories"] == []


def test_a_list_of_a_store_that_holds_nothing_says_so(call: Run) -> None:
    for memory in call("list", "--json").data["memories"]:
        assert call("forget", memory["id"]).status == 0
    for asked in ([], ["--tag", "zebra"], ["--offset", "500"]):
        assert "there is no memory here; `whyrank add TEXT`" in call("list", *asked).err


@pytest.mark.parametrize("scopes", ["user:1,user:2", "global, agent:7", "user:1; session:a", "user:1|global"])
def test_several_scopes_in_one_are_refused_with_the_way_to_ask_for_them(call: Run, scopes: str) -> None:
    for verb in (("search", "tea"), ("list",), ("add", "tea is green"), ("show", "m_1")):
        done = call(*verb, "--scope", scopes)
        assert (done.status, f"{scopes!r} is more than one scope" in done.err) == (2, True)
        assert "--scope user:1 --scope user:2" in done.err
    assert call("search", "tea", "--scope", "user:1", "--scope", "user:2").status == 0


def test_a_comma_in_a_name_is_part_of_the_name(call: Run) -> None:
    assert call("add", "Jane drinks tea", "--scope", "user:Doe, Jane").status == 0
    assert call("list", "--scope", "user:Doe, Jane", "--json").data["memories"][0]["scope"] == "user:Doe, Jane"


def test_where_nothing_is_near_the_way_to_look_is_named(call: Run) -> None:
    assert "`whyrank list` shows" in call("why", "tea", "zeppelin.txt").err


def test_a_limit_of_nothing_says_why_nothing_is_shown(call: Run) -> None:
    done = call("search", "tea", "--limit", "0")
    assert done.status == 0
    assert "the limit is 0" in done.err


def test_a_page_behind_the_end_says_so(call: Run) -> None:
    done = call("search", "tea", "--offset", "500")
    assert done.out == ""
    assert "begins at 501" in done.err


def test_words_alone_and_back(call: Run, workspace: Path) -> None:
    assert call("model", "use", "none").status == 0
    call("add", "The anchor lies under the bench")
    back = call("model", "rollback")
    assert (back.status, back.out.splitlines()[0]) == (0, "back to wordllama")
    assert "1 text was embedded" in back.out
    assert 'embedding = "wordllama"' in (workspace / "whyrank.toml").read_text(encoding="utf-8")


def test_where_words_answer_alone_every_model_may_be_dropped(call: Run) -> None:
    assert call("model", "drop", "wordllama").status == 2  # it answers
    call("model", "use", "none")
    done = call("model", "drop", "wordllama")
    assert (done.status, "vectors of wordllama were deleted" in done.out) == (0, True)
    gone = call("model", "rollback")
    assert (gone.status, "there is no model before" in gone.err) == (3, True)
    again = call("model", "use", "wordllama")
    assert again.status == 0
    assert call("search", "green tea", "--json").data["hits"][0]["confidence"] is not None


def test_what_a_fact_replaced_is_brought_back(call: Run) -> None:
    old = call("add", "Robin prefers tea", "--json").data["memories"][0]["id"]
    new = call("add", "Robin prefers coffee", "--supersedes", old, "--json").data["memories"][0]["id"]
    assert call("show", old, "--json").data["superseded_by"] == new
    assert call("update", new, "--supersedes", "none").status == 0
    assert call("show", old, "--json").data["superseded_by"] is None
    shown = call("show", new, "--json").data
    assert (shown["supersedes"], shown["history"][0]["was"]) == (None, {"supersedes": old})


def test_a_filter_that_leaves_nothing_is_told_by_what_it_counts(call: Run) -> None:
    assert "paths are as `whyrank list` shows them" in call("search", "tea", "--path", "zebra/*").err
    by_time = call("search", "tea", "--as-of", "2001-01-01").err
    assert "compares with the time when a memory was stored" in by_time
    assert "paths" not in by_time
    assert "compare with the date of a memory" in call("search", "tea", "--since", "2101-01-01").err


def test_the_space_that_answers_is_said_once(call: Run) -> None:
    assert call("status").out.count("space: ") == 1
