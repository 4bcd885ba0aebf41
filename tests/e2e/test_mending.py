"""`doctor` as it is typed, and what `status` and answers say of a store that an earlier whyrank has read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from whyrank.ingest.entries import READER_VERSION
from whyrank.interfaces.failures import WAITING

from .conftest import Run

OLD = Path(__file__).parent.parent / "golden/readers/reader3.db"


@pytest.fixture
def old(workspace: Path) -> str:
    return str(shutil.copy(OLD, workspace / "old.db"))


def test_what_an_earlier_whyrank_has_read_is_named_and_mended(call: Run, old: str) -> None:
    found = call("doctor", "--store", old)
    assert found.status == WAITING.exit_status == 17
    assert found.out == (
        "words: 6 memories were read by an earlier whyrank\n"
        "vectors: as an earlier whyrank made them; they go on answering\n"
    )
    assert "whyrank doctor --repair" in found.err
    assert "whyrank model use wordllama" in found.err
    mended = call("doctor", "--repair", "--store", old)
    assert mended.status == 0
    assert mended.out == "6 memories were read anew, 6 texts were embedded\nwords: in order\nvectors: in order\n"
    assert call("doctor", "--store", old).out == "words: in order\nvectors: in order\n"


def test_the_json_of_the_doctor_tells_all(call: Run, old: str) -> None:
    found = call("doctor", "--json", "--store", old)
    assert found.status == 17
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
    call("doctor", "--repair", "--store", old)
    assert call("model", "drop", earlier, "--store", old).out == f"6 vectors of {earlier} were deleted\n"


def test_the_doctor_gives_vectors_to_what_waits(call: Run, workspace: Path) -> None:
    store = str(workspace / "new.db")
    call("add", "Robin waters the plants", "--store", store, "--embedding", "none")
    found = call("doctor", "--store", store)
    assert (found.status, found.out) == (17, "words: in order\nwaiting for a vector: 1\n")
    assert "1 texts were embedded" in call("doctor", "--repair", "--store", store).out
    assert call("doctor", "--store", store).status == 0


def test_status_and_answers_say_it_until_it_is_done(call: Run, old: str) -> None:
    assert "old words: 6\n" in call("status", "--store", old).out
    assert "read by an earlier whyrank" in call("status", "--store", old).err
    assert call("status", "--json", "--store", old).data["old_words"] == 6
    assert "the words of 4 of these memories" in call("search", "tea", "--store", old).err
    assert "the words of 6 of these memories" in call("search", "tea", "--scope", "user:42", "--store", old).err
    call("doctor", "--repair", "--store", old)
    assert call("status", "--json", "--store", old).data["old_words"] == 0
    assert "earlier whyrank" not in call("search", "tea", "--store", old).err


def test_the_doctor_of_a_store_that_is_not_there_makes_none(call: Run, workspace: Path) -> None:
    assert call("doctor", "--store", str(workspace / "none.db")).status == 8
    assert not (workspace / "none.db").exists()
