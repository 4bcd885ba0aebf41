"""Tenants of one server come from a file, and no two of them share anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from whyrank.errors import ConfigError
from whyrank.interfaces.tenants import Tenant, tenants_in

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
[alice]
store = "alice/memory.db"
token_file = "alice.token"
scopes = ["user:alice"]
read_only = true

[bob]
store = "bob.db"
token_file = "bob.token"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "alice.token").write_text("the-token-of-alice\n", encoding="utf-8")
    (tmp_path / "bob.token").write_text("the-token-of-bob-1\n", encoding="utf-8")
    return tmp_path


def written(folder: Path, text: str) -> str:
    (folder / "tenants.toml").write_text(text, encoding="utf-8")
    return str(folder / "tenants.toml")


def test_each_has_a_store_a_token_and_scopes(folder: Path) -> None:
    assert tenants_in(written(folder, GOOD)) == [
        Tenant(
            "alice",
            folder / "alice/memory.db",
            "the-token-of-alice",
            ("user:alice",),
            is_read_only=True,
            files=folder / "alice",
        ),
        Tenant("bob", folder / "bob.db", "the-token-of-bob-1"),
    ]


BAD = {
    "no file at all": ("", "names no tenant"),
    "broken": ("[alice", "cannot be read"),
    "not a table": ("alice = 1", "alice is not a table"),
    "unknown key": (GOOD.replace("scopes =", "scope ="), "unknown key 'scope'"),
    "no store": (GOOD.replace('store = "bob.db"', ""), "the tenant bob has no store"),
    "no token": (GOOD.replace('token_file = "bob.token"', ""), "the tenant bob has no token_file"),
    "no such token": (GOOD.replace("bob.token", "eve.token"), "cannot be read"),
    "no scope": (GOOD.replace("user:alice", "people"), "'people' is not a scope"),
    "no list": (GOOD.replace('["user:alice"]', '"user:alice"'), "the scopes of alice"),
    "no yes": (GOOD.replace("true", '"yes"'), "read_only of alice"),
    "one token": (GOOD.replace("bob.token", "alice.token"), "alice and bob have the same token"),
    "one store": (GOOD.replace("bob.db", "alice/../alice/memory.db"), "alice and bob have the same store"),
}


SERVER = GOOD.replace("alice/memory.db", "postgresql://u:geheim@h/db").replace(
    "bob.db", "postgres://v@h:5432/db?schema=whyrank"
)
BAD |= {
    "one schema in two spellings": (SERVER, "alice and bob have the same store"),
    "an address that cannot be read": (
        SERVER.replace("geheim", "p@geheim"),
        "the store of alice: postgresql://… is no",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_makes_no_sense_is_refused(folder: Path, name: str) -> None:
    text, complaint = BAD[name]
    with pytest.raises(ConfigError) as caught:
        tenants_in(written(folder, text))
    assert complaint in caught.value.message
    assert "geheim" not in str(caught.value)


def test_files_are_taken_from_no_folder_that_holds_what_is_anothers_or_a_token(folder: Path) -> None:
    alice, bob = tenants_in(written(folder, GOOD))
    assert alice.files == folder / "alice"  # nothing else is there
    assert bob.files is None  # beside bob.db lie two tokens, the list of tenants, and the folder of alice


def test_a_folder_inside_that_of_another_is_read_by_its_owner_alone(folder: Path) -> None:
    (folder / "tokens").mkdir()
    for name in ("alice", "bob"):
        (folder / f"tokens/{name}").write_text(f"the-token-of-{name}-here", encoding="utf-8")
    both = '[alice]\nstore = "a/memory.db"\ntoken_file = "tokens/alice"\n'
    both += '[bob]\nstore = "a/b/memory.db"\ntoken_file = "tokens/bob"\n'
    assert [one.files for one in tenants_in(written(folder, both))] == [None, folder / "a/b"]
