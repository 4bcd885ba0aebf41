"""Tenants of a server: their stores, tokens, scopes and permissions, from arguments or a TOML file."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..analysis.sanitize import visible
from ..config import load as settings
from ..engine.arguments import scope_of
from ..errors import ConfigError, StoreError
from ..ingest.walk import settled
from .auth import token_from

if TYPE_CHECKING:
    import argparse


_KEYS = ("store", "token_file", "scopes", "multi_scope", "read_only")


class Tenant(NamedTuple):
    """One tenant of a server: name, store, token, visible scopes and permissions."""

    name: str
    store: Path | settings.StoreUrl
    token: str | None
    scopes: tuple[str, ...] = ()
    is_multi_scope: bool = False
    is_read_only: bool = False
    files: Path | None = None  # folder from which files may be ingested, if any


class ServedTenants(NamedTuple):
    """Tenants of a server, and whether the only token is newly generated and has to be printed."""

    tenants: list[Tenant]
    is_new_token: bool


def served_to(asked: argparse.Namespace) -> ServedTenants:
    """Return the tenants of a server: those of the --tenants file, else one without a name."""
    if asked.tenants is not None:
        if any((asked.scope, asked.multi_scope, asked.read_only, asked.token_file, asked.store)):
            raise ConfigError(
                "--tenants says for each tenant what --store, --scope, --multi-scope, --read-only and --token-file say",
                "give it without these",
            )
        return ServedTenants(tenants_in(asked.tenants), False)
    token = token_from(asked.token_file, settings.token())
    scopes = tuple(str(scope_of(scope)) for scope in asked.scope or ())
    only = Tenant("", settings_of(asked).store, token.text, scopes, asked.multi_scope, asked.read_only)
    return ServedTenants([only], token.is_new)


def check_stores(whom: ServedTenants, check: Callable[[Path | settings.StoreUrl], None]) -> None:
    """Refuse paths and addresses that cannot be stores; a failing named tenant is reported, the others are served.

    The folder of a named tenant's store is created: its path comes from a file, not from a hasty command line.
    """
    for one in whom.tenants:
        try:
            if one.name and isinstance(one.store, Path):
                _make_folder(one.store.parent)
            check(one.store)
        except (StoreError, ConfigError) as error:
            if not one.name:
                raise
            print(visible(f"whyrank: {one.name} cannot be served: {error}"), file=sys.stderr, flush=True)


def _make_folder(place: Path) -> None:
    try:
        place.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"there is no folder {place}, and it cannot be created: {error.strerror}", "make it"
        ) from error


def settings_of(asked: argparse.Namespace) -> settings.Config:
    """Return the settings for the arguments a server was started with."""
    store = None if asked.store is None else settings.store_setting(asked.store)
    given = {"store": store, "embedding": asked.embedding}
    return settings.load(given, workspace=Path(asked.workspace) if asked.workspace else None)


def tenants_in(file: str) -> list[Tenant]:
    """Read the tenants of a TOML file, a table each; paths are relative to its folder."""
    path = Path(file).expanduser()
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", "name a TOML file with a table for each tenant") from error
    folder = path.absolute().parent
    tenants = [_tenant(name, table, folder) for name, table in tables.items()]
    if not tenants:
        raise ConfigError(
            f"{file} names no tenant", 'write a table for each tenant: [alice], store = "…", token_file = "…"'
        )
    _refuse_shared([(one.name, one.token or "") for one in tenants], "token")
    _refuse_shared([(one.name, place) for one in tenants for place in _places_of(one)], "store")
    secrets = [path, *(folder / table["token_file"] for table in tables.values())]
    return [
        one._replace(
            files=_files_of(
                one, [other.store for other in tenants if other != one and isinstance(other.store, Path)] + secrets
            )
        )
        for one in tenants
    ]


def _places_of(tenant: Tenant) -> Iterable[Hashable]:
    """Return the places of a tenant's store: of one on a server one for each host."""
    if isinstance(tenant.store, Path):
        return [tenant.store.resolve()]
    from ..storage.store import PostgresStore

    try:
        return PostgresStore.tables(tenant.store.url)
    except ConfigError as error:
        raise ConfigError(f"the store of {tenant.name}: {error.message}", error.hint) from None


def _files_of(tenant: Tenant, others: Sequence[Path]) -> Path | None:
    """Return the folder of a tenant's files; None if another's store or a secret is in it."""
    folder = settings.notes_of(tenant.store)
    own = folder.resolve()
    return None if any(other.resolve().is_relative_to(own) for other in others) else folder


def _tenant(name: str, table: Any, folder: Path) -> Tenant:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{name} is not a table", f"write [{name}] and its keys below: {', '.join(_KEYS)}")
    for key in table:
        if key not in _KEYS:
            raise ConfigError(f"the tenant {name} has an unknown key {key!r}", f"the keys are {', '.join(_KEYS)}")
    scopes = table.get("scopes", [])
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        raise ConfigError(f"the scopes of {name} are {scopes!r}", 'write a list: scopes = ["user:42"]')
    return Tenant(
        name,
        _store_of(_text(name, table, "store"), folder / f"{name}.db"),
        token_from(str(folder / _text(name, table, "token_file")), None).text,
        tuple(str(scope_of(scope)) for scope in scopes),
        _yes(name, table, "multi_scope"),
        _yes(name, table, "read_only"),
    )


def _store_of(named: str, beside: Path) -> Path | settings.StoreUrl:
    return settings.StoreUrl(named, beside) if settings.is_url(named) else settled(beside.parent / named)


def _text(name: str, table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise ConfigError(f"the tenant {name} has no {key}", f'write {key} = "a path"')
    return value


def _yes(name: str, table: Mapping[str, Any], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise ConfigError(f"{key} of {name} is {value!r}", "write true or false")
    return value


def _refuse_shared(owned: Iterable[tuple[str, Hashable]], what: str) -> None:
    """Refuse tenants that share a token or a store: one would see the memories of the other."""
    owners: dict[Hashable, str] = {}
    for name, thing in owned:
        if thing in owners:
            raise ConfigError(f"{owners[thing]} and {name} have the same {what}", f"give each a {what} of its own")
        owners[thing] = name
