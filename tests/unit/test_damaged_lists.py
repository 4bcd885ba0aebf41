"""Rows whose lists are no JSON any more are listed and exported as far as they can be read, and that is said."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import whyrank
from tests.damage import told
from whyrank.ports import UNREADABLE
from whyrank.types import Notice

WHOLE, BROKEN = "coffee is black", "tea is green"


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
    [notice] = engine.unlisted(found)
    assert notice.code == "facts-damaged"
    assert "1 memory of these was damaged" in notice.message
    assert engine.unlisted([memory for memory in found if memory.text == WHOLE]) == ()


def test_an_export_goes_on_and_says_so(engine: whyrank.Engine) -> None:
    out, notices = io.StringIO(), list[Notice]()
    assert engine.export(out, notices=notices) == 2
    assert [json.loads(line)["text"] for line in out.getvalue().splitlines()].count(BROKEN) == 1
    assert [notice.code for notice in notices] == ["facts-damaged"]


def test_tags_that_are_none_do_not_stop_those_who_look_for_others(engine: whyrank.Engine) -> None:
    assert [memory.text for memory in engine.list(tags=["drink"])] == [WHOLE]
    assert [hit.memory.text for hit in engine.search("tea coffee", tags=["drink"])] == [WHOLE]


@pytest.mark.parametrize("recipe", ["default", "hybrid-mem", "clawhub", "clawhub-266", "openvault"])
def test_a_search_goes_on_and_says_so_also_where_stages_read_every_candidate(
    engine: whyrank.Engine, recipe: str
) -> None:
    found = engine.search("tea", recipe=recipe)
    assert [hit.memory.text for hit in found] == [BROKEN]
    assert UNREADABLE in {notice.code for notice in found.notices}
