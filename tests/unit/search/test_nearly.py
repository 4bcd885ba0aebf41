"""What somebody meant who named a memory that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import whyrank

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = ("notes/tea.md", "notes/Boat.md", "diary/2026-03-14.md")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[whyrank.Engine]:
    place = tmp_path_factory.mktemp("nearly")
    for name in FILES:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(f"# {name}\n\nA note about {name}.\n", encoding="utf-8")
    with whyrank.open(place / "memory.db", workspace=place, embedding="none") as engine:
        engine.ingest(place / "notes", place / "diary")
        yield engine


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("notes/te.md", "notes/tea.md"),
        ("tea.md", "notes/tea.md"),  # without its folder
        ("diary/tea.md", "notes/tea.md"),  # in another folder
        ("notes/boat.md", "notes/Boat.md"),  # in other letters
        ("2026-03-15.md", "diary/2026-03-14.md"),
        ("zeppelin.txt", None),
        ("", None),
        ("*", None),
    ],
)
def test_a_path_is_known_by_its_name_or_its_letters(engine: whyrank.Engine, typed: str, meant: str | None) -> None:
    assert engine.memories.suggest_id(typed) == meant


def test_an_id_is_known_when_it_was_cut_short_or_mistyped(engine: whyrank.Engine) -> None:
    identity = engine.add("Robin drinks tea").id
    assert engine.memories.suggest_id(identity[:8] + "…") == identity
    assert engine.memories.suggest_id(identity[:-1]) == identity
    wrong = "a" if identity[9] != "a" else "b"
    assert engine.memories.suggest_id(identity[:9] + wrong + identity[10:]) == identity
    assert engine.memories.suggest_id("m_") is None
    assert engine.memories.suggest_id("m_000000000000000") is None


def test_what_a_caller_may_not_see_is_never_meant(engine: whyrank.Engine) -> None:
    secret = engine.add("Robin drinks rum", scope="user:7").id
    assert engine.memories.suggest_id(secret[:-1]) is None
    assert engine.memories.suggest_id(secret[:-1], scope="user:7") == secret
