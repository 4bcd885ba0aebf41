"""Facts from the command line: kept, replaced, forgotten, and none lost to its neighbours."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from .conftest import COMMAND, SECONDS, Run

if TYPE_CHECKING:
    from pathlib import Path


def test_a_fact_is_stored_once_and_found(call: Run) -> None:
    first = call("add", "Robin prefers tea", "--scope", "user:42", "--tag", "drinks", "--json").data["memories"][0]
    again = call("add", "robin  prefers tea", "--scope", "user:42", "--json").data["memories"][0]
    assert (first["id"], first["tags"], first["scope"]) == (again["id"], ["drinks"], "user:42")
    found = call("search", "what does Robin drink?", "--scope", "user:42", "--json").data["hits"]
    assert found[0]["id"] == first["id"]
    assert first["id"] not in {hit["id"] for hit in call("search", "Robin", "--json").data["hits"]}


def test_a_fact_replaces_another_and_an_unknown_one_is_an_error(call: Run) -> None:
    old = call("add", "Robin drinks coffee", "--json").data["memories"][0]["id"]
    new = call("add", "Robin drinks tea", "--supersedes", old, "--json").data["memories"][0]
    assert new["supersedes"] == old
    assert call("show", old, "--json").data["superseded_by"] == new["id"]
    lost = call("add", "Robin drinks water", "--supersedes", "m_nothing")
    assert lost.status == 3
    assert "there is no memory 'm_nothing'" in lost.err
    assert "Robin drinks water" not in call("list", "--kind", "fact").out


def test_what_is_written_and_not_found_is_told(call: Run) -> None:
    past = call("add", "Robin drank cocoa", "--expires", "2001-01-01", "--json").data["memories"][0]
    assert [one["code"] for one in past["notices"]] == ["expired-already"]
    assert "notice: it has expired already" in call("add", "Robin drank milk", "--expires", "2001-01-01").err
    old = call("add", "Robin drinks coffee", "--json").data["memories"][0]["id"]
    new = call("add", "Robin drinks tea", "--supersedes", old, "--json").data["memories"][0]["id"]
    changed = call("update", old, "--importance", "4")
    assert (changed.status, f"notice: it was replaced by {new}" in changed.err) == (0, True)
    assert [one["code"] for one in call("update", old, "--importance", "5", "--json").data["notices"]] == [
        "replaced-already"
    ]
    assert "notice: it has these values already" in call("update", new, "--supersedes", old).err
    assert [one["code"] for one in call("update", new, "--json").data["notices"]] == ["nothing-changed"]
    assert call("update", new, "--importance", "5", "--json").data["notices"] == []


def test_options_of_a_fact_that_is_there_are_named_and_not_applied(call: Run) -> None:
    tea = call("add", "Robin drinks tea", "--json").data["memories"][0]["id"]
    again = call("add", "Robin drinks tea", "--importance", "5", "--tag", "x")
    assert f"{tea}: it was stored already" in again.err
    assert f"not applied: tags, importance (`whyrank update {tea}` does that)" in again.err
    milk = call("add", "Robin drinks milk", "--json").data["memories"][0]["id"]
    done = call("add", "Robin drinks tea", "--supersedes", milk, "--tag", "x", "--json").data["memories"][0]
    assert (done["outcome"], done["supersedes"], done["tags"]) == ("replacing", milk, [])
    assert [one["code"] for one in done["notices"]] == ["known-as-it-is"]


def test_facts_out_of_their_time_are_told_and_listed(call: Run) -> None:
    over = call("add", "Robin lived in Bergen", "--valid-until", "2001-01-01")
    assert "notice: it is no longer valid" in over.err
    assert "notice: it is not valid yet" in call("add", "Robin moves", "--valid-from", "2901-01-01").err
    assert "Robin lived in Bergen" in call("list", "--expired").out
    assert "Robin lived in Bergen" in call("list", "--kind", "fact", "--as-of", "2000-01-01").out
    assert "Robin lived in Bergen" not in call("list", "--kind", "fact").out
    assert "Robin moves" in call("list", "--as-of", "2902-01-01").out


def test_an_export_that_is_ingested_is_passed_over_with_its_reason(call: Run, workspace: Path) -> None:
    old = call("add", "Robin drinks coffee", "--json").data["memories"][0]["id"]
    call("add", "Robin drinks tea", "--supersedes", old)
    call("export", "--out", "e.jsonl")
    named = call("ingest", "e.jsonl", "--json")
    assert [one["reason"].partition(";")[0] for one in named.data["skipped"]] == [
        "an export of whyrank, not a log of turns"
    ]
    call("ingest", ".")
    assert "Robin drinks coffee" not in call("list").out


def test_a_past_is_shown_in_plain_words(call: Run) -> None:
    tea = call("add", "Robin drinks tea", "--json").data["memories"][0]["id"]
    call("update", tea, "--tag", "a", "--tag", "b", "--importance", "3", "--expires", "2099-01-01")
    call("update", tea, "--tag", "c", "--importance", "4", "--expires", "none", "--text", "Robin drinks\n cocoa")
    past = [line.partition(": ")[2] for line in call("show", tea).out.splitlines() if line.startswith("until ")]
    assert past == [
        "tags: none; importance: none; expires: none",
        "text: Robin drinks tea; tags: a, b; importance: 3; expires: 2099-01-01T00:00:00Z",
    ]


def test_why_says_that_a_question_is_empty(call: Run) -> None:
    tea = call("add", "Robin drinks tea", "--json").data["memories"][0]["id"]
    assert "the query is empty" in call("why", " ", tea).out
    assert "the query is empty" not in call("why", "mast", tea).out


def test_a_forgotten_fact_is_gone_and_one_that_is_not_there_keeps_all(call: Run) -> None:
    one = call("add", "the spare key hangs in the shed", "--json").data["memories"][0]["id"]
    refused = call("forget", one, "m_nothing")
    assert refused.status == 3
    assert call("show", one).status == 0
    assert call("forget", one).out == f"forgot {one}\n"
    assert call("show", one).status == 3


def test_a_foreign_fact_cannot_be_forgotten(call: Run) -> None:
    theirs = call("add", "the code is 1234", "--scope", "user:7", "--json").data["memories"][0]["id"]
    assert call("forget", theirs).status == 3
    assert call("forget", theirs, "--scope", "user:7").status == 0


def test_every_line_is_a_fact_and_a_bad_one_keeps_no_other_from_being_stored(workspace: Path) -> None:
    lines = b"the boat is blue\n\n\xff\xfe is no text\nthe mast is oak\nthe boat is blue\n"
    done = subprocess.run(
        [COMMAND, "add", "-"], cwd=workspace, input=lines, capture_output=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 14
    assert [line.partition("  ")[2] for line in done.stdout.decode().splitlines()] == [
        "the boat is blue", "the mast is oak", "the boat is blue",
    ]  # fmt: skip
    assert "line 3 was not stored: it is not UTF-8 (byte 0xff); convert it" in done.stderr.decode()


@pytest.mark.parametrize("lines", [b"", b"\n \n"])
def test_no_line_on_standard_input_is_told(workspace: Path, lines: bytes) -> None:
    done = subprocess.run(
        [COMMAND, "add", "-"], cwd=workspace, input=lines, capture_output=True, timeout=SECONDS, check=False
    )
    told = "notice: standard input holds no line, so nothing was stored\n"
    assert (done.returncode, done.stdout, done.stderr.decode()) == (0, b"", told)


def test_what_belongs_to_one_fact_is_not_given_to_many(call: Run) -> None:
    done = call("add", "-", "--supersedes", "m_1")
    assert done.status == 2
    assert "apply to one fact" in done.err


def test_a_fact_is_changed_from_standard_input_and_tells_what_it_was(call: Run, workspace: Path) -> None:
    fact = call("add", "the ferry leaves at nine", "--expires", "2040-01-01", "--json").data["memories"][0]
    assert fact["outcome"] == "stored"
    done = subprocess.run(
        [COMMAND, "update", fact["id"], "--text", "-", "--expires", "none"],
        cwd=workspace, input=b"the ferry leaves at ten\n", capture_output=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.stdout.decode() == f"{fact['id']}  the ferry leaves at ten\n"
    shown = call("show", fact["id"])
    assert "text: the ferry leaves at nine; expires: 2040-01-01T00:00:00Z" in shown.out
    assert "\nexpires:" not in shown.out


def test_a_near_duplicate_is_named_and_a_key_is_honoured(call: Run) -> None:
    first = call("add", "the green boat lies at the north pier", "--key", "k", "--json").data["memories"][0]
    again = call("add", "the green boat lies at the north pier", "--key", "k", "--json").data["memories"][0]
    assert (again["id"], again["outcome"]) == (first["id"], "known")
    assert call("add", "something else", "--key", "k").status == 2
    near = call("add", "the green boat lies at the north pier!", "--json").data["memories"][0]
    assert [(one["id"], one["cosine"] >= 0.95) for one in near["near"]] == [(first["id"], True)]


def test_a_whole_scope_goes_only_when_that_is_meant(run: Run) -> None:
    run("add", "my tea", "--scope", "user:42")
    refused = run("forget", "--whole-scope", "user:42")
    assert (refused.status, "--yes" in refused.err) == (2, True)
    assert run("forget", "m_1", "--whole-scope", "user:42", "--yes").status == 2
    assert run("forget", "--whole-scope", "user:42", "--yes", "--purge").out == "forgot 1 memory of user:42\n"
    assert run("export", "--scope", "user:42").out == ""


def test_an_expired_fact_is_listed_and_pruned(call: Run) -> None:
    fact = call("add", "the kettle is on", "--expires", "2020-01-01", "--json").data["memories"][0]["id"]
    assert call("list", "--expired", "--json").data["memories"][0]["id"] == fact
    assert call("prune", "--dry-run").out.startswith("1 memory would be pruned\n")
    assert call("prune", "--json").data["pruned"] == [fact]
    assert call("show", fact).status == 3


@pytest.mark.parametrize(
    "typed",
    [
        ["add", "x", "--scope", "user:1", "--scope", "user:2"],
        ["export", "--scope", "user:1", "--scope", "user:2"],
        ["forget", "--whole-scope", "user:1", "--whole-scope", "user:2", "--yes"],
    ],
)
def test_a_scope_that_counts_once_is_not_given_twice(call: Run, typed: list[str]) -> None:
    refused = call(*typed)
    assert refused.status == 2
    assert "is given twice" in refused.err


def test_a_store_that_is_the_root_is_refused(call: Run) -> None:
    refused = call("search", "tea", "--store", "/")
    assert refused.status == 2
    assert "is a folder" in refused.err
