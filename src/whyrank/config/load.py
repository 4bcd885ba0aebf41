"""Load settings from defaults, files, environment and arguments; each value keeps its origin."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ConfigError
from ..ingest.walk import settled
from ..ranking.recipes import AS_IT_IS, Adjustments, Recipe, adjusted, recipe_named, unhonoured
from ..storage import address
from ..types.memory import Notice
from .legacy import SPELLINGS, is_retired, renewed
from .settings import PREFIX, SETTINGS, STORE_FOLDER, USERS_OWN, read

WORKSPACE_FILE = "whyrank.toml"
EVALUATION_SUFFIX = ".eval"  # one JSON object
PINS_SUFFIX = ".pins"  # JSON lines; not .jsonl, because conversation logs have that suffix and are ingested
WORKSPACE_VARIABLES = ("WHYRANK_WORKSPACE", "OPENCLAW_WORKSPACE")  # the first that is set
TOKEN_VARIABLE = "WHYRANK_TOKEN"  # the servers' token; no setting, because files and `whyrank config` would show it
OPENAI_KEY_VARIABLE = "OPENAI_API_KEY"
SPAN_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
KEY_VARIABLES = ("WHYRANK_EMBEDDER_KEY", "WHYRANK_LLM_KEY", OPENAI_KEY_VARIABLE)
_NO_SETTINGS = frozenset({*WORKSPACE_VARIABLES, TOKEN_VARIABLE, *KEY_VARIABLES})


class StoreUrl(NamedTuple):
    """A store on a server, where others have the path of a file; `beside` is where files of its own are kept."""

    url: str
    beside: Path

    def __str__(self) -> str:
        """Return the address without its password and other secrets; schema and pool_size are kept."""
        return address.shown(self.url)

    def __repr__(self) -> str:
        return f"StoreUrl({str(self)!r}, {self.beside!r})"

    @property
    def has_secret(self) -> bool:
        """Return whether the address holds a password or another secret."""
        return address.parts_of(self.url).has_secret


def is_url(store: object) -> bool:
    """Return whether a store is named by the address of a server."""
    return str(store).startswith(address.SCHEMES)


def is_there(store: Path | StoreUrl) -> bool:
    """Return whether a store exists, or a link of its name; a server tells when the store is opened."""
    return isinstance(store, StoreUrl) or os.path.lexists(store)


def store_setting(store: str | Path | StoreUrl) -> str | StoreUrl:
    """Return a store as an argument of `load`: an address as it is, or a path from here."""
    if isinstance(store, StoreUrl):
        return store
    return str(store) if is_url(store) else str(settled(Path(store).expanduser()))


class Value(NamedTuple):
    """Value and origin of a setting."""

    value: Any
    origin: str

    @property
    def shown(self) -> Any:
        """Return the value as it may be printed: the address of a store without its secrets."""
        return address.shown(self.value) if is_url(self.value) else self.value

    def __repr__(self) -> str:
        return f"Value({self.shown!r}, {self.origin!r})"


@dataclass(frozen=True)
class Config:
    """All effective settings."""

    workspace: Path
    values: Mapping[str, Value]
    cache: Path = Path()
    notices: tuple[Notice, ...] = ()
    user_file: Path = Path()
    # Secrets from the environment by variable; kept apart because settings are printed.
    keys: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    beside: Path | None = None  # where files of a store on a server are kept, if an argument says so

    def __getitem__(self, key: str) -> Any:
        return self.values[key].value

    @property
    def store(self) -> Path | StoreUrl:
        """Return the path of the store, or its address."""
        if is_url(self["store"]):
            named = self.workspace / STORE_FOLDER / f"{address.parts_of(self['store']).file_name}.db"
            return StoreUrl(self["store"], self.beside or named)
        return self.place("store")

    @property
    def has_store(self) -> bool:
        """Return whether the store is a file that exists, or on a server."""
        store = self.store
        return not isinstance(store, Path) or store.is_file()

    @property
    def store_file(self) -> Path:
        """Return the path of the store; of one on a server, the path that its pins and evaluations are beside."""
        store = self.store
        return store if isinstance(store, Path) else store.beside

    @property
    def notes(self) -> Path:
        """Return the folder that stored paths are relative to; it depends on the store, not on the cwd."""
        return notes_of(self.store)

    @property
    def models(self) -> Path:
        """Return the folder of fetched models."""
        return self.place("model.folder") if self["model.folder"] else self.cache / "models"

    @property
    def pins(self) -> Path:
        """Return the path of the pins file; by default beside the store, with its name."""
        return self.store_file.with_suffix(PINS_SUFFIX) if self["pins"] is None else self.place("pins")

    @property
    def evaluation(self) -> Path:
        """Return the path of the last kept evaluation: beside the store, with its name."""
        return self.store_file.with_suffix(EVALUATION_SUFFIX)

    def place(self, key: str) -> Path:
        """Return the path in a setting, relative to the workspace."""
        try:
            place = settled(self.workspace / Path(self[key]).expanduser())
            if not place.name:
                raise ConfigError(f"{key} = {self[key]!r} is a folder", "name a file for it, for instance memory.db")
            return place
        except RuntimeError as error:
            raise ConfigError(f"{key} = {self[key]!r}: {error}", "name a path that exists") from error

    def recipe(self, asked: str | Recipe | None = None, **wishes: Any) -> Recipe:
        """Return the requested recipe, adjusted by the settings or by `wishes` in their place.

        A recipe given as a value is the whole policy: an argument wins over settings.
        """
        if isinstance(asked, Recipe):
            return adjusted(asked, Adjustments(**wishes)) if wishes else asked
        recipe, wish = self.wishes(asked)
        if wishes:
            return adjusted(recipe, replace(wish, **wishes))
        if recipe.name not in self._adjusted:
            self._adjusted[recipe.name] = adjusted(recipe, wish)
        return self._adjusted[recipe.name]

    @cached_property
    def _adjusted(self) -> dict[str, Recipe]:
        """Return the cache of adjusted recipes by name: every search needs one, and settings never change."""
        return {}

    def wishes(self, asked: str | Recipe | None = None) -> tuple[Recipe, Adjustments]:
        """Return the requested recipe as shipped, and the adjustments of the settings."""
        if isinstance(asked, Recipe):
            return asked, AS_IT_IS
        return recipe_named(asked or self["recipe"]), self._adjustments

    def unhonoured(self, asked: str | Recipe | None, recipe: Recipe) -> tuple[Notice, ...]:
        """Return notices about settings that the requested recipe does not use."""
        if not isinstance(asked, Recipe):
            return unhonoured(recipe, self._adjustments)
        ranking = (key for key in self.values if key.startswith("ranking."))
        changed = [key for key in ranking if self[key] != SETTINGS[key].default]
        return tuple(Notice("setting-unused", f"{key} is not applied to a recipe given as a value") for key in changed)

    @cached_property
    def _adjustments(self) -> Adjustments:
        prefix = "ranking."
        return Adjustments(**{key.removeprefix(prefix): self[key] for key in self.values if key.startswith(prefix)})


def load(
    arguments: Mapping[str, Any] | None = None,
    *,
    workspace: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Config:
    """Load the settings: arguments win over environment, workspace file, user file and defaults."""
    place = settled(workspace or Path(next(filter(None, map(environment.get, WORKSPACE_VARIABLES)), ".")))
    if not place.is_dir():
        said = f"--workspace, {' or '.join(WORKSPACE_VARIABLES)}"
        raise ConfigError(f"there is no folder {place}", f"create it, or name another one with {said}")
    values = {key: Value(setting.default, "default") for key, setting in SETTINGS.items()}
    given = dict(arguments or {})
    beside = None
    if isinstance(store := given.get("store"), StoreUrl):
        given["store"], beside = store
    sources = list(_sources(place, environment, given))
    for origin, raws in sources:
        for key, raw in raws.items():
            ours = SPELLINGS.get(key, key)
            if not is_retired(key) and (ours == key or ours not in raws):
                told = origin if ours == key else f"{origin} ({key})"
                values[ours] = Value(read(ours, raw, told), told)
    older, notices = _from_old_keys(sources)
    values |= {key: value for key, value in older.items() if values[key].origin == "default"}
    keys = {name: environment[name] for name in KEY_VARIABLES if environment.get(name)}
    config = Config(place, values, user_cache(environment), notices, user_file(environment), keys, beside)
    _check(config)
    return config


def _from_old_keys(sources: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[dict[str, Value], tuple[Notice, ...]]:
    """Return the values of retired keys; applied last, because a new key wins in any source."""
    values: dict[str, Value] = {}
    notices: list[Notice] = []
    for origin, given in sources:
        older = renewed({key: raw for key, raw in given.items() if is_retired(key)}, origin)
        for key, raw in older.values.items():
            try:
                values[key] = Value(read(key, raw, origin), origin)
            except ConfigError as error:
                raise ConfigError(f"{older.said_by[key]}: {error.message}", error.hint) from error
        notices += older.notices
    return values, tuple(notices)


def _sources(
    workspace: Path, environment: Mapping[str, str], arguments: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the sources, lowest precedence first."""
    for file in (user_file(environment), workspace / WORKSPACE_FILE):
        if file.exists():
            yield str(file), flatten(_toml(file))
    variables = {setting.variable: setting.key for setting in SETTINGS.values()}
    for name, value in sorted(environment.items()):
        if name.startswith(PREFIX) and name not in _NO_SETTINGS and value:
            key = variables.get(name, name.removeprefix(PREFIX).lower())
            yield f"environment ({name})", {key: value}
    yield "argument", {key: value for key, value in arguments.items() if value is not None}


def exports_spans(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether OpenTelemetry's own variables request an export of spans."""
    return any(environment.get(name) for name in SPAN_VARIABLES)


def notes_of(store: Path | StoreUrl) -> Path:
    """Return the folder that the paths in a store are relative to."""
    store = store if isinstance(store, Path) else store.beside
    return store.parent.parent if store.parent.name == STORE_FOLDER else store.parent


def token(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the token of servers from the environment, if set."""
    return environment.get(TOKEN_VARIABLE) or None


def user_file(environment: Mapping[str, str]) -> Path:
    """Return the path of the user's settings for all workspaces."""
    base = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME") or Path.home()) / ".config")
    return Path(base) / "whyrank" / "config.toml"


def user_cache(environment: Mapping[str, str]) -> Path:
    """Return the folder of the user's cache, whose contents can be fetched again."""
    base = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME") or Path.home()) / ".cache")
    return Path(base).absolute() / "whyrank"


def _toml(file: Path) -> dict[str, Any]:
    import tomllib  # most runs have no settings file

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", "fix the file, or move it away") from error


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested tables to dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _check(config: Config) -> None:
    """Refuse settings that contradict each other, or that a workspace file may not set."""
    overlap, tokens = config.values["chunk.overlap"], config.values["chunk.tokens"]
    if overlap.value >= tokens.value:
        raise ConfigError(
            f"chunk.overlap is {overlap.value} ({overlap.origin}), chunk.tokens {tokens.value} ({tokens.origin})",
            "chunk.overlap must be smaller; change it first",
        )
    # The workspace file may come from another author: it may not point outside, nor set models, URLs or keys.
    file = str(config.workspace / WORKSPACE_FILE)
    if config.values["store"].origin == file and is_url(config["store"]):
        raise ConfigError(
            f"store in {file} is an address: a workspace may not set where texts are sent",
            f"take it out of the file; `whyrank config store ADDRESS` writes it into {config.user_file}",
        )
    if config.values["store"].origin == "default" and not _is_inside(config.store_file, config.workspace):
        raise ConfigError(
            f"{config.store} is a link that leads out of the workspace, to {config.store_file.resolve()}",
            "if the store should be there, name it with --store or WHYRANK_STORE; otherwise remove the link",
        )
    for key, place, elsewhere in (
        ("store", config.store_file, "--store, WHYRANK_STORE"),
        ("pins", config.pins, "WHYRANK_PINS"),
    ):
        value = config.values[key]
        if value.origin == file and not _is_inside(place, config.workspace):
            raise ConfigError(
                f"{key} = {value.value!r} in {file} leads out of the workspace",
                f"set it with {elsewhere} or the user file",
            )
    models = config.values["model.folder"]
    if models.origin == file and models.value is not None:
        raise ConfigError(
            f"model.folder = {models.value!r} in {file}: a workspace may not choose which models are loaded",
            "set it with WHYRANK_MODEL_FOLDER or in the user file",
        )
    for key in USERS_OWN:
        if config.values[key].origin == file and config[key] is not None:
            raise ConfigError(
                f"{key} in {file}: a workspace may not set where texts and keys are sent",
                f"`whyrank config {key} VALUE` writes it into {config.user_file}, or set {SETTINGS[key].variable}",
            )


def _is_inside(place: Path, workspace: Path) -> bool:
    """Return whether a path is inside the workspace after all links are resolved."""
    try:
        return place.resolve().is_relative_to(workspace.resolve())
    except (OSError, RuntimeError):  # circular links
        return False


def save(config: Config, key: str, raw: Any) -> Path:
    """Write one setting into the workspace file, or the user file for the user's own; keep all others."""
    value = read(key, raw, "argument")
    file = _file_of(config, key, value)
    if key == "store" and is_url(value):
        _check_address(config, value)
    _check(replace(config, values={**config.values, key: Value(value, str(file))}))
    return _write(file, key, value)


def unset(config: Config, key: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Remove one setting from its file; restore the file if the remaining settings are invalid."""
    file = _file_of(config, key)
    if key == "store" and not _has(file, key):
        file = config.user_file  # an address
    if not file.is_file():
        return file
    before = file.read_bytes()
    _write(file, key, None)
    try:
        load(workspace=config.workspace, environment=environment)
    except ConfigError:
        file.write_bytes(before)
        raise
    return file


def _file_of(config: Config, key: str, value: Any = None) -> Path:
    """Return the file for a setting: the user's for their own, and for a store that is named by an address."""
    is_users = key in USERS_OWN or (key == "store" and is_url(value))
    return config.user_file if is_users else config.workspace / WORKSPACE_FILE


def _has(file: Path, key: str) -> bool:
    return file.is_file() and key in flatten(_toml(file))


def _check_address(config: Config, url: str) -> None:
    """Refuse an address that would be written in vain, or with a secret."""
    if address.parts_of(url).has_secret:
        raise ConfigError(
            f"{address.shown(url)} was given with a password, which a settings file must not hold",
            "leave it out of the address, and put it into ~/.pgpass or PGPASSWORD",
        )
    file = config.workspace / WORKSPACE_FILE
    if _has(file, "store"):
        raise ConfigError(
            f"{file} sets store too, and wins over {config.user_file}, where an address is written",
            "take it out with `whyrank config store --default`, then set the address again",
        )


def _write(file: Path, key: str, value: Any) -> Path:
    import tomlkit

    document = tomlkit.parse(file.read_text(encoding="utf-8")) if file.is_file() else tomlkit.document()
    table: Any = document
    *outer, last = key.split(".")
    for name in outer:
        table = table.setdefault(name, tomlkit.table())
    if value is None:
        if table.pop(last, None) is None:
            return file
    else:
        table[last] = value
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(tomlkit.dumps(document), encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be written: {error.strerror}", "check the permissions of the folder"
        ) from error
    return file
