"""A memory made fast is the same memory, and as frozen."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from whyrank.making import Draft, finished
from whyrank.types import GLOBAL, Memory, Scope, Source

SOURCE = Source("", content_hash="abc")


def test_a_finished_draft_is_the_memory_of_the_same_fields() -> None:
    told = {"scope": Scope("user", "42"), "source": SOURCE, "tags": ("a", "b"), "importance": 4, "created": 1.0}
    made, usual = finished(Draft("m_1", "tea", **told)), Memory("m_1", "tea", **told)  # type: ignore[arg-type]
    assert (type(made), made, hash(made), repr(made)) == (Memory, usual, hash(usual), repr(usual))
    assert replace(made, text="coffee") == replace(usual, text="coffee")
    assert pickle.loads(pickle.dumps(made)) == usual


def test_what_is_not_said_is_as_in_any_memory() -> None:
    assert finished(Draft("m_1", "tea")) == Memory("m_1", "tea", scope=GLOBAL)


def test_a_finished_memory_is_frozen_and_a_draft_lacks_nothing() -> None:
    with pytest.raises(FrozenInstanceError):
        finished(Draft("m_1", "tea")).text = "coffee"  # type: ignore[misc]
    with pytest.raises(TypeError, match="text"):
        Draft("m_1")
