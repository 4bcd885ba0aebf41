"""Failure 16: a superseded fact outranks its correction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from whyrank.errors import NotFound

if TYPE_CHECKING:
    from tests.regressions.conftest import OpenEngine


def test_the_old_fact_is_gone_and_comes_back_only_when_asked_for(open_engine: OpenEngine) -> None:
    engine = open_engine()
    old = engine.add("Suzy drinks coffee, coffee and only coffee")
    new = engine.add("Suzy prefers tea now", supersedes=old.id)
    query = "what does Suzy drink: coffee?"
    assert [hit.id for hit in engine.search(query)] == [new.id]
    everything = engine.search(query, include_superseded=True)
    assert {hit.id for hit in everything} == {old.id, new.id}
    assert engine.get(old.id).superseded_by == new.id


def test_as_of_an_earlier_time_the_old_fact_answers(open_engine: OpenEngine) -> None:
    engine = open_engine()
    old = engine.add("Suzy drinks coffee")
    engine.add("Suzy prefers tea now", supersedes=old.id)
    assert [hit.id for hit in engine.search("Suzy", as_of=old.created)] == [old.id]


def test_why_names_the_successor(open_engine: OpenEngine) -> None:
    engine = open_engine()
    old = engine.add("Suzy drinks coffee")
    new = engine.add("Suzy prefers tea now", supersedes=old.id)
    answer = engine.why("coffee", old.id)
    assert answer.outcome == "filtered"
    assert new.id in answer.summary


def test_an_unknown_id_to_supersede_is_an_error_and_stores_nothing(open_engine: OpenEngine) -> None:
    engine = open_engine()
    with pytest.raises(NotFound):
        engine.add("Suzy prefers tea now", supersedes="m_unknown")
    assert engine.status().memories == 0
