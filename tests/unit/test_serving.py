"""Which space answers: what the store says, read in one shape only, changed by one at a time."""

from __future__ import annotations

import pytest

from whyrank.engine.spaces import NOTE, Makers, Roles, Serving, Space
from whyrank.errors import ConfigError, ProviderUnavailable, StoreError
from whyrank.providers.registry import MissingModel
from whyrank.testing.fakes import WordDirections
from whyrank.testing.memory_store import MemoryStore

OLD, NEW = Space("old/16", "old"), Space("new/32", "new", {"prompt": "none"})


def test_a_switch_makes_what_answered_the_one_before() -> None:
    roles = Roles(OLD, filling=NEW).switched(NEW)
    assert roles == Roles(NEW, None, OLD)
    assert roles.switched(OLD) == Roles(OLD, None, NEW)


def test_a_switch_to_what_answers_changes_nothing_but_the_filling() -> None:
    assert Roles(OLD, filling=OLD, before=NEW).switched(OLD) == Roles(OLD, None, NEW)
    assert Roles().switched(OLD) == Roles(OLD)


def test_a_space_that_is_gone_has_no_role() -> None:
    assert Roles(OLD, filling=NEW, before=NEW).without([NEW.name]) == Roles(OLD)


def test_a_switch_to_what_was_added_leaves_nothing_added() -> None:
    third = Space("third/8", "third")
    assert Roles(OLD, added=NEW).switched(NEW) == Roles(NEW, before=OLD)
    assert Roles(OLD, filling=third, added=NEW).switched(third) == Roles(third, before=OLD, added=NEW)
    assert Roles(OLD, added=NEW).without([NEW.name]) == Roles(OLD)


def test_a_note_without_an_added_space_is_read_by_an_earlier_whyrank() -> None:
    store = MemoryStore()
    serving = Serving(store, WordDirections(), Makers("test"))
    serving.change(lambda roles: Roles(OLD))
    assert "added" not in (store.note(NOTE) or "")
    serving.change(lambda roles: Roles(OLD, added=NEW))
    assert serving.roles().added == NEW


def test_the_roles_are_what_was_written() -> None:
    store = MemoryStore()
    serving = Serving(store, WordDirections(), Makers("test"))
    serving.change(lambda roles: Roles(OLD, NEW))
    assert Serving(store, None, Makers()).roles() == Roles(OLD, NEW)


@pytest.mark.parametrize("text", ["", "[]", "null", '{"format": 2}', '{"format": 1, "serving": {"nome": 1}}', "{"])
def test_roles_that_cannot_be_read_are_no_roles(text: str) -> None:
    store = MemoryStore()
    store.put_note(NOTE, text)
    embedder = WordDirections()
    serving = Serving(store, embedder, Makers())
    assert serving.roles() == Roles()
    assert serving.embedder is embedder


def test_two_who_change_the_roles_do_not_undo_each_other() -> None:
    store = MemoryStore()
    first, second = (Serving(store, WordDirections(), Makers()) for _ in range(2))
    asked = 0

    def slowly(roles: Roles) -> Roles:
        nonlocal asked
        asked += 1
        if asked == 1:
            second.change(lambda now: Roles(now.serving, now.filling, before=OLD))
        return Roles(roles.serving, NEW, roles.before)

    assert first.change(slowly) == Roles(first.configured, NEW, OLD)
    assert asked == 2


def test_one_who_never_gets_to_change_them_says_so() -> None:
    store = MemoryStore()
    serving = Serving(store, WordDirections(), Makers())

    def disturbed(roles: Roles) -> Roles:
        store.put_note(NOTE, (store.note(NOTE) or "") + " ")
        return Roles(OLD)

    with pytest.raises(StoreError, match="another process"):
        serving.change(disturbed)


def test_a_model_of_another_version_does_not_serve_the_old_vectors() -> None:
    makers = Makers("test", make=lambda provider, settings: WordDirections(32, "version-2"))
    made = Serving(MemoryStore(), None, makers).made(Space("testing/version-1", "test"))
    assert isinstance(made, MissingModel)
    with pytest.raises(ProviderUnavailable, match="`whyrank model use test` embeds the memories again"):
        made.query("tea")


def test_there_is_no_space_of_no_embedder() -> None:
    with pytest.raises(ConfigError, match="no space without an embedder"):
        Serving(MemoryStore(), None, Makers("none")).target("none")


def test_an_embedder_that_is_tried_out_answers_whatever_the_store_says() -> None:
    store, tried = MemoryStore(), WordDirections(8)
    Serving(store, WordDirections(), Makers()).adopt()
    assert Serving(store, tried, Makers(), is_fixed=True).current() == (tried, None, ())
