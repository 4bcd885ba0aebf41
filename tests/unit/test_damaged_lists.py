"""Rows whose lists are no JSON any more are listed and exported as far as they can be read, and that is said."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

import whyrank
from tests.damage import told
from whyrank.protocols import UNREADABLE
from whyrank.types.memory import Notice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WHOLE, BROKEN = "coffee is black", "tea is green"
LEFT_OUT = (
    "the tags of 1 memory were damaged, so it is unknown whether it matches the filter; `whyrank doctor` "
    "lists what is damaged, and `--repair` fixes it"
)


def codes_of(results: whyrank.Results) -> list[str]:
    return [notice.code for notice in results.notices if notice.code == "facts-damaged"]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[whyrank.Engine]:
    """Return a store of two facts, the tags of one of them half a list."""
    store = tmp_path / "memory.db"
    with whyrank.open(store, workspace=tmp_path, embedding="none") as engine:
        engine.add(BROKEN, tags=["drink"])
        engine.add(WHOLE, tags=["drink"])
        engine.search("tea")  # both are indexed
    told(store, "UPDATE memories SET tags = '[\"dri' WHERE text = ?", BROKEN)
    with whyrank.open(store, workspace=tmp_path, embedding="none") as engine:
        yield engine


def test_a_list_goes_on_and_says_so(engine: whyrank.Engine) -> None:
    found = engine.list()
    assert {memory.text: memory.tags for memory in found} == {BROKEN: (), WHOLE: ("drink",)}
    [notice] = engine.memories.list_notices(found)
    assert notice.code == "facts-damaged"
    assert "1 memory of these was damaged" in notice.message
    assert engine.memories.list_notices([memory for memory in found if memory.text == WHOLE]) == ()


def test_an_export_goes_on_and_says_so(engine: whyrank.Engine) -> None:
    out, notices = io.StringIO(), list[Notice]()
    assert engine.export(out, notices=notices) == 2
    assert [json.loads(line)["text"] for line in out.getvalue().splitlines()].count(BROKEN) == 1
    assert [notice.code for notice in notices] == ["facts-damaged"]


def test_tags_that_are_none_do_not_stop_those_who_look_for_others(engine: whyrank.Engine) -> None:
    assert [memory.text for memory in engine.list(tags=["drink"])] == [WHOLE]
    assert [hit.memory.text for hit in engine.search("tea coffee", tags=["drink"])] == [WHOLE]


@pytest.mark.parametrize(
    "asked",
    [{"query": "tea coffee", "tags": ["drink"]}, {"query": "(tea OR coffee) AND tag:drink", "syntax": "advanced"}],
)
def test_a_search_says_whose_tags_nobody_knows(engine: whyrank.Engine, asked: dict[str, Any]) -> None:
    results = engine.search(**asked)
    assert [hit.memory.text for hit in results] == [WHOLE]
    assert [notice.message for notice in results.notices if notice.code == "facts-damaged"] == [LEFT_OUT]


def test_a_list_says_whose_tags_nobody_knows(engine: whyrank.Engine) -> None:
    found = engine.list(tags=["drink"])
    assert [notice.message for notice in engine.memories.list_notices(found, tags=["drink"])] == [LEFT_OUT]


def test_what_other_filters_leave_out_is_not_told_of(engine: whyrank.Engine) -> None:
    assert engine.memories.list_notices((), tags=["drink"], kind="chunk") == ()
    assert engine.memories.list_notices((), tags=["drink"], scope="user:1") != ()  # who sees the global scope as well
    assert codes_of(engine.search("coffee AND tag:drink", syntax="advanced")) == []
    told = engine.search("tea OR tag:drink", syntax="advanced").notices  # it is found, by another word
    assert [notice.message[:32] for notice in told if notice.code == "facts-damaged"] == [
        "1 memory that answers was damage"
    ]


@pytest.mark.parametrize("stored", ["5", '{"drink": 1}', '["drink", 1]', "[", ""])
def test_whatever_is_no_list_of_texts_is_told(engine: whyrank.Engine, tmp_path: Path, stored: str) -> None:
    told(tmp_path / "memory.db", "UPDATE memories SET tags = ? WHERE text = ?", stored, BROKEN)
    found = engine.list(tags=["else"])
    assert found == []
    assert [notice.message for notice in engine.memories.list_notices(found, tags=["else"])] == [LEFT_OUT]


@pytest.mark.parametrize("recipe", ["default", "hybrid-mem", "clawhub", "clawhub-266", "openvault"])
def test_a_search_goes_on_and_says_so_also_where_stages_read_every_candidate(
    engine: whyrank.Engine, recipe: str
) -> None:
    found = engine.search("tea", recipe=recipe)
    assert [hit.memory.text for hit in found] == [BROKEN]
    assert UNREADABLE in {notice.code for notice in found.notices}


def test_a_repair_keeps_a_fact_whose_tags_cannot_be_read(engine: whyrank.Engine) -> None:
    [finding] = engine.doctor().findings
    assert (finding.code, finding.message[:49]) == (
        "fields",
        "1 fact has invalid fields, which will be blank: m",
    )
    assert [(one.code, one.mended) for one in engine.doctor(repair=True).findings] == [("fields", True)]
    assert {memory.text: memory.tags for memory in engine.list()} == {BROKEN: (), WHOLE: ("drink",)}
    assert engine.search("tea")[0].memory.text == BROKEN
    assert engine.memories.list_notices((), tags=["drink"]) == ()
    assert engine.doctor().findings == ()
