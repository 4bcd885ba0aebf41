"""Addresses of stores on a server: what of them is shown, which are refused, and which name the same store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from whyrank.config.load import StoreUrl
from whyrank.errors import ConfigError
from whyrank.storage.address import shown
from whyrank.storage.postgres.pool import Address
from whyrank.storage.store import PostgresStore

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "geheim"


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("postgresql://u:geheim@h/db?schema=team&pool_size=3", "postgresql://u@h/db?schema=team&pool_size=3"),
        ("postgresql://:geheim@h/db", "postgresql://h/db"),
        ("postgresql://u:ge?heim=c@h/db?sslmode=require", "postgresql://u@h/db?sslmode=require"),
        ("postgresql://h/db?password=geheim&schema=team", "postgresql://h/db?schema=team"),
        ("postgresql://h/db?pass%77ord=geheim", "postgresql://h/db"),
        ("postgresql://h/db?sslkey=k.pem&sslpassword=geheim", "postgresql://h/db?sslkey=k.pem"),
        ("postgresql://h/db?user=u@host&password=geheim@x", "postgresql://h/db?user=u@host"),
        ("postgresql://u:p@geheim@127.0.0.1/db", "postgresql://…"),
        ("postgresql://u:geheim/p@h/db", "postgresql://…"),
        ("postgresql://u:1/geheim?x=geheim@h/db", "postgresql://…"),
        ("postgresql://u:geheim", "postgresql://…"),
    ],
)
def test_an_address_is_shown_with_its_schema_and_without_its_secrets(url: str, safe: str, tmp_path: Path) -> None:
    assert shown(url) == safe
    assert str(StoreUrl(url, tmp_path)) == safe


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@geheim@127.0.0.1/db",
        "postgresql://u:p@geheim%40127.0.0.1/db",
        "postgresql://u:p@/db?host=geheim@h",
        "postgresql://u:geheim/p@h/db",
        "postgresql://u:p@geheim?x=y@h/db",
        "postgresql://u:geheim",
    ],
)
def test_an_address_whose_host_holds_a_part_of_the_password_is_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Address.parse(url)
    assert SECRET not in str(refused.value)
    assert "%40" in refused.value.hint


def test_a_socket_in_the_abstract_namespace_is_a_host() -> None:
    assert Address.parse("postgresql:///db?host=@whyrank").parameters()["host"] == "@whyrank"


def test_a_question_mark_in_a_password_begins_no_parameters() -> None:
    address = Address.parse("postgresql://u:a?schema=c@h/db?schema=team")
    assert (address.schema, address.parameters()["password"]) == ("team", "a?schema=c")


SAME = [
    ("postgresql://u@h/db", "postgres://v:x@H:5432/db?schema=whyrank&pool_size=3"),
    ("postgresql://u@h/db", "postgresql://u@/?host=h&port=5432&dbname=d%62"),
    ("postgresql://u@h", "postgresql://v@h/u"),
    ("postgresql://u@one,two:5433/db", "postgresql://u@two:5433/db"),
    ("postgresql://u@one,two:5433/db", "postgresql://u@two,one/db?port=5433,5432"),
]
UNLIKE = ["postgresql://u@g/db", "postgresql://u@h:5433/db", "postgresql://u@h/d", "postgresql://u@h/db?schema=team"]


@pytest.mark.parametrize(("url", "other"), SAME)
def test_two_spellings_of_one_schema_are_the_same_store(url: str, other: str) -> None:
    assert PostgresStore.is_same(url, other)


@pytest.mark.parametrize("other", UNLIKE)
def test_another_host_port_database_or_schema_is_another_store(other: str) -> None:
    assert not PostgresStore.is_same("postgresql://u@h/db", other)


def test_what_an_address_leaves_out_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGHOST": "h", "PGPORT": "5433", "PGDATABASE": "db"}.items():
        monkeypatch.setenv(name, value)
    assert PostgresStore.is_same("postgresql://", "postgresql://u@h:5433/db")
    assert not PostgresStore.is_same("postgresql://", "postgresql://u@h/other")
