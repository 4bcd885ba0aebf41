"""Backups and restores as users meet them: from the command line, with a server running on the same store."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

import whyrank
from whyrank.storage.sqlite.schema import MIGRATIONS

from .conftest import STORE, Run, still_answers
from .rest import serving

if TYPE_CHECKING:
    from pathlib import Path

COPY = "copy.db"


def test_a_backup_is_told_with_what_it_holds(call: Run, workspace: Path) -> None:
    held = call("status", "--json").data["memories"]
    told = call("backup", COPY)
    size = (workspace / COPY).stat().st_size
    assert (told.status, told.out) == (0, f"{held} memories written to {COPY} ({size:,} bytes, verified)\n")
    data = call("backup", COPY, "--json").data
    assert (data["memories"], data["path"], data["format"]) == (held, str(workspace / COPY), 1)
    assert data["schema"] == MIGRATIONS[-1].version


def test_a_restore_brings_back_what_was_backed_up(call: Run, workspace: Path) -> None:
    call("backup", COPY)
    call("forget", "--whole-scope", "global", "--yes")
    assert call("status", "--json").data["memories"] == 0
    told = call("restore", COPY, "--json")  # the store is empty, so nobody need say --yes
    assert (told.status, told.data["format"]) == (0, 1)
    assert told.data["restored"] == call("status", "--json").data["memories"]
    assert still_answers(call)
    assert call("doctor").status == 0


def test_a_restore_over_memories_must_be_meant(call: Run, workspace: Path) -> None:
    call("backup", COPY)
    fact = call("add", "the boat is red", "--json").data["memories"][0]["id"]
    refused = call("restore", COPY)
    assert refused.status == 2
    assert "this replaces" in refused.err
    assert "pass --yes to confirm" in refused.err
    assert call("show", fact).status == 0
    told = call("restore", COPY, "--yes")
    assert told.status == 0
    kept = workspace / f"{STORE}.before-restore.bak"
    assert f"the old store is kept as {kept}; delete it when nothing is missing" in told.out
    assert call("show", fact).status == 3
    assert call("restore", str(kept), "--yes", "--no-keep").status == 0
    assert call("show", fact).status == 0
    assert [file.name for file in kept.parent.glob("*.bak")] == [kept.name]


def test_a_bad_file_is_refused_with_the_status_of_its_error(call: Run, workspace: Path) -> None:
    (workspace / "notes.db").write_text("a note\n" * 500)
    for verb, file, status in (
        ("restore", "nowhere.db", 2), ("restore", "notes.db", 6), ("backup", "notes.db", 2), ("backup", "no/dir.db", 2)
    ):  # fmt: skip
        refused = call(verb, file, *(["--yes"] if verb == "restore" else []))
        assert (refused.status, refused.out) == (status, "")
    assert still_answers(call)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_running_server_answers_by_the_restored_store(call: Run, workspace: Path, workers: str) -> None:
    call("add", "the lighthouse keeper is called Bo")
    call("backup", COPY)
    with serving(workspace, "--workers", workers) as server:

        def first(query: str) -> str:
            hits = server.client.post("/v1/search", json={"query": query}).json()["hits"]
            return str(hits[0]["text"]) if hits else ""

        added = server.client.post("/v1/memories", json={"text": "the lighthouse keeper is called Cy"})
        assert added.status_code == 201
        for _ in range(4):  # so that every worker has it in memory
            assert first("lighthouse keeper called Cy").endswith("Cy")
        assert call("restore", COPY, "--yes").status == 0
        for _ in range(8):
            assert first("lighthouse keeper called Cy").endswith("Bo")
        assert server.client.get(f"/v1/memories/{added.json()['id']}").status_code == 404
        again = server.client.post("/v1/memories", json={"text": "the lighthouse keeper is called Di"})
        assert again.status_code == 201
        assert first("lighthouse keeper called Di").endswith("Di")
        assert "Traceback" not in server.log.read_text(encoding="utf-8")


def test_readers_meet_one_content_or_the_other_while_a_store_is_restored(workspace: Path) -> None:
    """Each content has three memories that say one word: an answer of both would hold two words."""
    store = workspace / "pair.db"
    with whyrank.open(store, workspace=workspace, embedding="none", calibration="manual") as engine:
        for word in ("oak", "elm"):
            engine.memories.forget_scope("global")
            engine.facts.import_memories(
                [whyrank.Memory(f"m{number}", f"the mast number {number} is {word}") for number in range(3)]
            )
            engine.backup(workspace / f"{word}.db")
        answers: list[frozenset[str]] = []
        stop = threading.Event()

        def read() -> None:
            while not stop.is_set():
                answers.append(frozenset(hit.memory.text for hit in engine.search("mast number")))

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        try:
            for number in range(20):
                whyrank.restore(workspace / ("oak.db", "elm.db")[number % 2], store, keep=False)
        finally:
            stop.set()
            for reader in readers:
                reader.join()
    whole = {word: frozenset(f"the mast number {number} is {word}" for number in range(3)) for word in ("oak", "elm")}
    assert {*answers} == {*whole.values()}


# -- export and import -------------------------------------------------------------------------------------


def test_an_export_of_every_scope_comes_back_whole(call: Run, workspace: Path) -> None:
    call("add", "Robin prefers tea", "--scope", "user:42", "--key", "k")
    call("pin", "green tea", "notes/tea.md")
    told = call("export", "--every-scope", "--out", "all.jsonl", "--json")
    count = told.data["exported"]
    assert (told.data["scope"], count) == (None, call("status", "--json").data["memories"])
    other = ["--store", "new.db"]
    dry = call("import", "whyrank", "all.jsonl", "--dry-run", *other)
    assert (dry.status, dry.out) == (0, f"{count} memories would be imported, 0 unchanged\n1 pin would be imported\n")
    assert not (workspace / "new.db").exists()
    assert call("import", "whyrank", "all.jsonl", *other).out.startswith(f"{count} memories imported, 0 unchanged\n")
    again = call("import", "whyrank", "all.jsonl", "--json", *other).data
    assert again == {
        "new": 0, "unchanged": count, "pins": 0, "skipped": [], "bad": [], "dry_run": False, "format": 1
    }  # fmt: skip
    call("export", "--every-scope", "--out", "again.jsonl", *other)
    assert (workspace / "again.jsonl").read_bytes() == (workspace / "all.jsonl").read_bytes()
    assert call("check", *other).status == 0
    shown = [call("search", "green tea", "--explain", "--json", *store).data["hits"] for store in ([], other)]
    assert shown[0] == shown[1]


def test_lines_that_cannot_be_read_are_named_and_end_with_a_status(call: Run, workspace: Path) -> None:
    (workspace / "all.jsonl").write_text("{}\n" * 30, encoding="utf-8")
    told = call("import", "whyrank", "all.jsonl")
    assert (told.status, told.out) == (14, "0 memories imported, 0 unchanged\n")
    assert told.err.splitlines()[0].startswith("could not read line 1: it is not a line of an export")
    assert told.err.splitlines()[-1] == "could not read 10 more lines (--json names all of them)"
    refused = call("import", "spreadsheet", "all.jsonl")
    assert (refused.status, "the formats are whyrank" in refused.err) == (2, True)


def test_an_export_of_one_scope_takes_no_place_of_one_of_every_scope(call: Run, workspace: Path) -> None:
    call("add", "Robin prefers tea", "--scope", "user:42")
    call("export", "--every-scope", "--out", "all.jsonl")
    assert call("export", "--every-scope", "--out", "all.jsonl").status == 0
    refused = call("export", "--out", "all.jsonl")
    assert (refused.status, "is not an export of global" in refused.err) == (2, True)
    assert call("export", "--scope", "user:42", "--every-scope").status == 2
