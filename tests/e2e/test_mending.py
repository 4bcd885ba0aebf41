"""`doctor` as it is typed, and what `status` and answers say of a store that an earlier whyrank has read."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from whyrank.analysis.document import READER_VERSION
from whyrank.interfaces.errors import WAITING

from ..damage import cut, pages_of, told, zero
from .conftest import STORE, Run

OLD = Path(__file__).parent.parent / "golden/readers/reader3.db"


@pytest.fixture
def old(workspace: Path) -> str:
    return str(shutil.copy(OLD, workspace / "old.db"))


def test_what_an_earlier_whyrank_has_read_is_named_and_mended(call: Run, old: str) -> None:
    found = call("doctor", "--store", old)
    assert found.status == WAITING.exit_status == 17
    assert found.out == (
        "file: in order\nwords: 6 memories were indexed by an earlier whyrank\n"
        "vectors: made by an earlier whyrank and still used\n"
    )
    assert "whyrank doctor --repair" in found.err
    assert "whyrank model use wordllama" in found.err
    mended = call("doctor", "--repair", "--store", old)
    assert mended.status == 0
    assert mended.out == (
        "file: in order\n6 memories were reindexed, 6 texts were embedded\nwords: in order\nvectors: in order\n"
    )
    assert call("doctor", "--store", old).out == "file: in order\nwords: in order\nvectors: in order\n"


def test_reindexing_alone_leaves_the_vectors_as_they_are(call: Run, old: str) -> None:
    assert call("reindex", "--store", old).out == "6 memories reindexed\n"
    assert call("reindex", "--json", "--store", old).data == {"reindexed": 0, "reader": READER_VERSION, "format": 1}
    found = call("doctor", "--json", "--store", old).data
    assert (found["words"]["old"], found["vectors"]["earlier"]) == (0, True)


def test_the_json_of_the_doctor_tells_all(call: Run, old: str) -> None:
    found = call("doctor", "--json", "--store", old)
    assert found.status == 17
    assert found.data["file"] == {"sound": True, "findings": [], "kept": None}
    assert found.data["words"] == {"reader": READER_VERSION, "old": 6, "read_anew": 0}
    assert [notice["code"] for notice in found.data["notices"]] == ["old-words", "earlier-vectors"]
    assert found.data["vectors"]["earlier"]
    mended = call("doctor", "--repair", "--json", "--store", old)
    assert (mended.status, mended.data["notices"], mended.data["format"]) == (0, [], 1)
    assert mended.data["words"] == {"reader": READER_VERSION, "old": 0, "read_anew": 6}
    vectors = mended.data["vectors"]
    assert (vectors["waiting"], vectors["earlier"], vectors["embedded"]) == (0, False, 6)


def test_a_store_changes_to_the_vectors_of_today_as_to_another_model_and_back(call: Run, old: str) -> None:
    def told() -> list[str]:
        return [notice["code"] for notice in call("search", "tea", "--json", "--store", old).data["notices"]]

    assert "earlier-vectors" in told()
    used = call("model", "use", "wordllama", "--store", old)
    assert (used.status, used.out.splitlines()[0]) == (0, "6 texts were embedded; vectors of other models stay")
    assert "earlier-vectors" not in told()
    assert call("model", "rollback", "--store", old).status == 0
    assert "earlier-vectors" in told()
    earlier = call("status", "--json", "--store", old).data["roles"][0]["space"]
    assert call("doctor", "--repair", "--store", old).status == 0
    assert "earlier-vectors" in told()  # who went back to them keeps them
    call("model", "use", "wordllama", "--store", old)
    assert call("model", "drop", earlier, "--store", old).out == f"6 vectors of {earlier} were deleted\n"


def test_the_doctor_gives_vectors_to_what_waits(call: Run, workspace: Path) -> None:
    store = str(workspace / "new.db")
    call("add", "Robin waters the plants", "--store", store, "--embedding", "none")
    found = call("doctor", "--store", store)
    assert (found.status, found.out) == (17, "file: in order\nwords: in order\nwaiting for a vector: 1\n")
    assert "1 text was embedded" in call("doctor", "--repair", "--store", store).out
    assert call("doctor", "--store", store).status == 0


def test_status_and_answers_say_it_until_it_is_done(call: Run, old: str) -> None:
    assert "old words: 6\n" in call("status", "--store", old).out
    assert "indexed by an earlier whyrank" in call("status", "--store", old).err
    assert call("status", "--json", "--store", old).data["old_words"] == 6
    assert "4 of these memories" in call("search", "tea", "--store", old).err
    assert "6 of these memories" in call("search", "tea", "--scope", "user:42", "--store", old).err
    call("doctor", "--repair", "--store", old)
    assert call("status", "--json", "--store", old).data["old_words"] == 0
    assert "earlier whyrank" not in call("search", "tea", "--store", old).err


def test_the_doctor_of_a_store_that_is_not_there_makes_none(call: Run, workspace: Path) -> None:
    assert call("doctor", "--store", str(workspace / "none.db")).status == 8
    assert not (workspace / "none.db").exists()


def test_a_damaged_file_is_named_and_mended_and_kept_as_it_was(call: Run, workspace: Path) -> None:
    zero(workspace / STORE, pages_of(workspace / STORE, "names")[0])
    found = call("doctor")
    assert found.status == 6
    assert found.out.startswith("file: damaged\n")
    assert "\n  pages: the table names has damaged pages, which can be rebuilt" in found.out
    assert "`whyrank doctor --repair` rewrites the store" in found.out
    as_data = call("doctor", "--json")
    assert (as_data.status, as_data.data["file"]["sound"], as_data.data["words"]) == (6, False, None)
    pages = [one for one in as_data.data["file"]["findings"] if one["code"] == "pages"]
    assert {(one["derived"], one["mended"], tuple(one["names"])) for one in pages} == {(True, False, ())}
    mended = call("doctor", "--repair")
    assert mended.status == 0
    assert mended.out.startswith("file: repaired\n")
    assert "memory.db.damaged.bak; delete it when nothing is missing" in mended.out
    assert call("doctor").out == "file: in order\nwords: in order\nvectors: in order\n"
    assert "notes/tea.md" in call("search", "green tea").out


def test_a_damaged_memory_is_named_until_it_is_given_up(call: Run, workspace: Path) -> None:
    identity = call("add", "Robin hides the key", "--json").data["memories"][0]["id"]
    call("status")  # which indexes it
    told(workspace / STORE, "UPDATE memories SET content_hash = x'ff' WHERE id = ?", identity)
    broken = call("search", "who hides the key")
    assert (broken.status, "Robin hides the key" in broken.out) == (0, True)
    assert "1 memory that answers was damaged" in broken.err
    mended = call("doctor", "--repair")
    assert mended.status == 6
    assert f"unreadable: 1 memory cannot be read: {identity}" in mended.out
    assert "cannot be read any more" in call("search", "who hides the key").err
    assert f"aside: 1 memory was damaged and set aside: {identity}" in call("doctor").out
    assert call("doctor", "--give-up").out == f"gave up 1 damaged memory\n  {identity}\n"
    assert call("doctor", "--give-up", "--json").data == {"given_up": [], "format": 1}
    assert call("doctor").status == 0


def test_a_fact_with_damaged_tags_is_kept_without_them(call: Run, workspace: Path) -> None:
    identity = call("add", "Robin hides the key", "--tag", "home", "--json").data["memories"][0]["id"]
    call("status")  # which indexes it
    told(workspace / STORE, "UPDATE memories SET tags = 'oops' WHERE id = ?", identity)
    for asked in (("search", "the key"), ("list",)):
        assert "the tags of 1 memory were damaged" in call(*asked, "--tag", "home").err
    assert call("doctor", "--repair").status == 0
    assert call("show", identity, "--json").data["tags"] == []
    assert "Robin hides the key" in call("search", "who hides the key").out


def test_a_store_too_damaged_to_open_says_what_to_do(call: Run, workspace: Path) -> None:
    cut(workspace / STORE, 30)
    refused = call("search", "tea")
    assert refused.status == 6
    assert "facts may be lost: keep the file, look for a copy of it" in refused.err
    assert call("doctor").status == 6
    (workspace / STORE).write_bytes(b"SQLite format 3\0 and nothing more")
    for options in ((), ("--repair",)):
        found = call("doctor", *options)
        assert found.status == 6
        assert "look for a copy" in found.out
        assert "whyrank doctor" not in found.out
        as_data = call("doctor", "--json", *options)
        assert (as_data.status, as_data.data["file"]["sound"], as_data.data["words"]) == (6, False, None)
        assert [one["code"] for one in as_data.data["file"]["findings"]] == ["unusable"]


def test_half_of_a_file_is_told_or_saved_and_never_blamed_on_who_looks(call: Run, workspace: Path) -> None:
    whole = (workspace / STORE).stat().st_size
    with (workspace / STORE).open("r+b") as file:
        file.truncate(whole // 2)
    mended = call("doctor", "--repair", "--json")
    assert mended.status == 6
    assert mended.data["file"]["findings"]
    assert all(one["hint"] for one in mended.data["file"]["findings"] if not one["derived"])
    assert "doctor --repair" not in str([one["hint"] for one in mended.data["file"]["findings"] if not one["mended"]])


def test_damaged_definitions_of_tables_end_in_findings(call: Run, workspace: Path) -> None:
    zero(workspace / STORE, pages_of(workspace / STORE, "sqlite_schema")[0])
    found = call("doctor", "--repair", "--json")
    assert found.status == 6
    assert {one["code"] for one in found.data["file"]["findings"]} & {"hopeless", "lost", "books"}


def test_an_empty_file_is_a_store_that_was_never_written(call: Run, workspace: Path) -> None:
    (workspace / STORE).write_bytes(b"")
    found = call("doctor")
    assert found.status == call("doctor", "--store", str(workspace / "none.db")).status == 8
    assert "a store that was never written" in found.err


def test_a_deep_look_says_what_it_has_compared(call: Run) -> None:
    found = call("doctor", "--deep")
    assert found.status == 0
    assert re.search(r"^compared in \d+\.\d s: 7 memories, \d+ words, \d+ segments?, 7 vectors$", found.out, re.M)
    data = call("doctor", "--deep", "--json").data["compared"]
    assert (data["memories"], data["vectors"], data["records"]) == (7, 7, 7)
    assert call("doctor", "--json").data["compared"] is None
