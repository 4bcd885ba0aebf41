"""Settings in layers, each with its origin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from whyrank.config.load import WORKSPACE_FILE, Config, StoreUrl, flatten, load, save, store_setting, token, user_file
from whyrank.config.settings import DEFAULT_STORE, SETTINGS
from whyrank.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose user file nobody else writes."""
    return {"HOME": str(tmp_path / "home")}


def write_user_file(environment: dict[str, str], text: str) -> Path:
    file = user_file(environment)
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    return file


def write_workspace_file(workspace: Path, text: str) -> Path:
    file = workspace / WORKSPACE_FILE
    file.write_text(text, encoding="utf-8")
    return file


def origin(config: Config, key: str) -> str:
    return config.values[key].origin


def test_without_any_file_every_setting_has_its_default(workspace: Path, home: dict[str, str]) -> None:
    config = load(workspace=workspace, environment=home)

    assert {key: config[key] for key in SETTINGS} == {key: setting.default for key, setting in SETTINGS.items()}
    assert {value.origin for value in config.values.values()} == {"default"}


@pytest.mark.parametrize(
    ("key", "default"),
    [("limit", 6), ("chunk.tokens", 400), ("chunk.overlap", 80), ("recipe", "default"), ("embedding", "wordllama")],
)
def test_the_promised_defaults(key: str, default: object) -> None:
    assert SETTINGS[key].default == default


def test_each_layer_beats_the_one_below_and_says_so(workspace: Path, home: dict[str, str]) -> None:
    layers = [load(workspace=workspace, environment=home)]
    user = write_user_file(home, "limit = 11")
    layers.append(load(workspace=workspace, environment=home))
    file = write_workspace_file(workspace, "limit = 12")
    layers.append(load(workspace=workspace, environment=home))
    environment = {**home, "WHYRANK_LIMIT": "13"}
    layers.append(load(workspace=workspace, environment=environment))
    layers.append(load({"limit": 14}, workspace=workspace, environment=environment))

    assert [(config["limit"], origin(config, "limit")) for config in layers] == [
        (6, "default"),
        (11, str(user)),
        (12, str(file)),
        (13, "environment (WHYRANK_LIMIT)"),
        (14, "argument"),
    ]


def test_a_layer_changes_only_what_it_sets(workspace: Path, home: dict[str, str]) -> None:
    write_workspace_file(workspace, "[chunk]\ntokens = 200\n")

    config = load(workspace=workspace, environment=home)

    assert (config["chunk.tokens"], config["chunk.overlap"]) == (200, 80)
    assert origin(config, "chunk.overlap") == "default"


def test_an_argument_that_was_not_given_sets_nothing(workspace: Path, home: dict[str, str]) -> None:
    assert origin(load({"limit": None}, workspace=workspace, environment=home), "limit") == "default"


def test_an_empty_variable_sets_nothing(workspace: Path, home: dict[str, str]) -> None:
    assert origin(load(workspace=workspace, environment={**home, "WHYRANK_LIMIT": ""}), "limit") == "default"


def test_a_dotted_key_has_a_variable_with_underscores(workspace: Path, home: dict[str, str]) -> None:
    config = load(workspace=workspace, environment={**home, "WHYRANK_CHUNK_TOKENS": "99"})

    assert config["chunk.tokens"] == 99


def test_the_workspace_comes_from_the_environment_if_it_is_not_given(workspace: Path, home: dict[str, str]) -> None:
    assert load(environment={**home, "WHYRANK_WORKSPACE": str(workspace)}).workspace == workspace
    assert load(environment={**home, "OPENCLAW_WORKSPACE": str(workspace)}).workspace == workspace
    both = {**home, "WHYRANK_WORKSPACE": str(workspace), "OPENCLAW_WORKSPACE": str(workspace.parent)}
    assert load(environment=both).workspace == workspace
    assert load(environment={**both, "WHYRANK_WORKSPACE": ""}).workspace == workspace.parent
    assert load(workspace=workspace, environment={**home, "OPENCLAW_WORKSPACE": "nowhere"}).workspace == workspace


def test_the_user_file_is_where_xdg_says(tmp_path: Path) -> None:
    assert user_file({"XDG_CONFIG_HOME": str(tmp_path)}) == tmp_path / "whyrank" / "config.toml"
    assert user_file({"HOME": str(tmp_path)}) == tmp_path / ".config" / "whyrank" / "config.toml"


@pytest.mark.parametrize(
    ("typed", "meant"), [("limt", "limit"), ("chunk.token", "chunk.tokens"), ("embeding", "embedding")]
)
def test_an_unknown_key_asks_did_you_mean(workspace: Path, home: dict[str, str], typed: str, meant: str) -> None:
    file = write_workspace_file(workspace, f"{typed} = 3\n")

    with pytest.raises(ConfigError) as caught:
        load(workspace=workspace, environment=home)

    assert caught.value.hint == f"did you mean {meant!r}?"
    assert typed in caught.value.message
    assert str(file) in caught.value.message


def test_an_unknown_key_like_no_other_says_where_the_settings_are_listed(workspace: Path, home: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load({"zzzzzz": 1}, workspace=workspace, environment=home)

    assert "`whyrank config` lists the settings" in caught.value.hint


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("limit", -1),
        ("limit", 1_001),
        ("limit", 2.5),
        ("limit", True),
        ("limit", "many"),
        ("limit", [1]),
        ("chunk.tokens", 15),
        ("store", "  "),
        ("store", 7),
        ("embedding", "telepathy"),
        ("recipe", "defualt"),
        ("ranking.vector_weight", 1.5),
        ("ranking.vector_weight", float("nan")),
        ("ranking.recency_weight", True),
        ("ranking.max_per_file", 0),
    ],
)
def test_a_bad_value_is_refused(workspace: Path, home: dict[str, str], key: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        load({key: value}, workspace=workspace, environment=home)

    assert caught.value.hint


def test_a_refused_value_is_named_with_its_origin(workspace: Path, home: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load(workspace=workspace, environment={**home, "WHYRANK_LIMIT": "many"})

    assert "limit = 'many' from environment (WHYRANK_LIMIT)" in caught.value.message


@pytest.mark.parametrize("text", ["limit = = 3", "[chunk", "\x00"])
def test_a_broken_file_is_an_error_that_names_it(workspace: Path, home: dict[str, str], text: str) -> None:
    file = write_workspace_file(workspace, text)

    with pytest.raises(ConfigError, match="cannot be read") as caught:
        load(workspace=workspace, environment=home)

    assert str(file) in caught.value.message


def test_a_file_that_is_no_utf_8_is_an_error_that_names_it(workspace: Path, home: dict[str, str]) -> None:
    (workspace / WORKSPACE_FILE).write_bytes(b'store = "caf\xe9.db"')

    with pytest.raises(ConfigError, match="cannot be read"):
        load(workspace=workspace, environment=home)


def test_the_store_stands_in_the_workspace(workspace: Path, home: dict[str, str]) -> None:
    assert load(workspace=workspace, environment=home).store == workspace / DEFAULT_STORE


@pytest.mark.parametrize("key", ["store", "pins"])
@pytest.mark.parametrize("place", ["../elsewhere.db", "/elsewhere/memory.db", "~/memory.db", "sub/../../out.db"])
def test_a_workspace_file_may_not_point_outside_the_workspace(
    workspace: Path, home: dict[str, str], key: str, place: str
) -> None:
    write_workspace_file(workspace, f'{key} = "{place}"\n')

    with pytest.raises(ConfigError, match="leads out of the workspace"):
        load(workspace=workspace, environment=home)


def test_a_workspace_file_may_not_point_outside_through_a_link(
    workspace: Path, home: dict[str, str], tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (workspace / "inside").symlink_to(outside)
    write_workspace_file(workspace, 'store = "inside/memory.db"\n')

    with pytest.raises(ConfigError, match="leads out of the workspace"):
        load(workspace=workspace, environment=home)


def test_models_are_kept_in_the_users_cache(workspace: Path, home: dict[str, str], tmp_path: Path) -> None:
    assert load(workspace=workspace, environment=home).models == tmp_path / "home/.cache/whyrank/models"
    elsewhere = {**home, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert load(workspace=workspace, environment=elsewhere).models == tmp_path / "cache/whyrank/models"


def test_or_where_the_user_says(workspace: Path, home: dict[str, str], tmp_path: Path) -> None:
    write_user_file(home, f'model.folder = "{tmp_path / "disk"}"')
    assert load(workspace=workspace, environment=home).models == tmp_path / "disk"
    named = {**home, "WHYRANK_MODEL_FOLDER": "none"}
    assert load(workspace=workspace, environment=named).models == tmp_path / "home/.cache/whyrank/models"


def test_a_workspace_file_may_not_bring_a_model_of_its_own(workspace: Path, home: dict[str, str]) -> None:
    write_workspace_file(workspace, 'model.folder = "models"\n')
    with pytest.raises(ConfigError, match="WHYRANK_MODEL_FOLDER"):
        load(workspace=workspace, environment=home)


def test_a_workspace_file_may_point_inside_the_workspace(workspace: Path, home: dict[str, str]) -> None:
    write_workspace_file(workspace, 'store = "data/memory.db"\n')

    assert load(workspace=workspace, environment=home).store == workspace / "data" / "memory.db"


def test_the_user_file_the_environment_and_arguments_may_point_anywhere(
    workspace: Path, home: dict[str, str], tmp_path: Path
) -> None:
    place = tmp_path / "far" / "memory.db"
    write_user_file(home, f'store = "{place}"\n')

    assert load(workspace=workspace, environment=home).store == place
    assert load(workspace=workspace, environment={**home, "WHYRANK_STORE": str(place)}).store == place
    assert load({"store": str(place)}, workspace=workspace, environment=home).store == place


def test_nested_tables_become_dotted_keys() -> None:
    assert flatten({"limit": 1, "chunk": {"tokens": 2, "deep": {"er": 3}}}) == {
        "limit": 1,
        "chunk.tokens": 2,
        "chunk.deep.er": 3,
    }


def test_save_keeps_comments_and_other_settings(workspace: Path, home: dict[str, str]) -> None:
    file = write_workspace_file(workspace, "# mine\nlimit = 3 # three\n\n[chunk] # sizes\n# inner\ntokens = 200\n")
    config = load(workspace=workspace, environment=home)

    save(config, "limit", "9")
    save(config, "chunk.overlap", 20)

    assert file.read_text(encoding="utf-8") == (
        "# mine\nlimit = 9 # three\n\n[chunk] # sizes\n# inner\ntokens = 200\noverlap = 20\n"
    )


def test_save_makes_a_file_that_loads_again(workspace: Path, home: dict[str, str]) -> None:
    file = save(load(workspace=workspace, environment=home), "ranking.recency_weight", "0.25")

    again = load(workspace=workspace, environment=home)

    assert again["ranking.recency_weight"] == 0.25
    assert origin(again, "ranking.recency_weight") == str(file)


def test_saving_none_takes_the_setting_out(workspace: Path, home: dict[str, str]) -> None:
    write_workspace_file(workspace, "[ranking]\nmin_vector = 0.5\n")

    save(load(workspace=workspace, environment=home), "ranking.min_vector", "none")

    assert origin(load(workspace=workspace, environment=home), "ranking.min_vector") == "default"


@pytest.mark.parametrize(
    ("key", "value"), [("limit", "many"), ("limt", 3), ("store", "../out.db"), ("store", "/out.db")]
)
def test_save_refuses_what_load_would_refuse_and_leaves_the_file_alone(
    workspace: Path, home: dict[str, str], key: str, value: object
) -> None:
    file = write_workspace_file(workspace, "limit = 3\n")
    config = load(workspace=workspace, environment=home)

    with pytest.raises(ConfigError):
        save(config, key, value)

    assert file.read_text(encoding="utf-8") == "limit = 3\n"


def test_ranking_settings_change_the_recipe(workspace: Path, home: dict[str, str]) -> None:
    plain = load(workspace=workspace, environment=home)
    changed = load({"ranking.vector_weight": 0.9}, workspace=workspace, environment=home)

    assert plain.recipe() != changed.recipe()
    assert plain.recipe().name == changed.recipe().name == "default"


def test_the_recipe_asked_for_beats_the_one_that_is_set(workspace: Path, home: dict[str, str]) -> None:
    assert load({"recipe": "rrf"}, workspace=workspace, environment=home).recipe("keyword").name == "keyword"


def test_the_token_of_servers_is_no_setting_and_shown_nowhere(workspace: Path, home: dict[str, str]) -> None:
    environment = {**home, "WHYRANK_TOKEN": "a-token-nobody-sees"}
    assert token(environment) == "a-token-nobody-sees"
    assert token({**home, "WHYRANK_TOKEN": ""}) is None
    assert "a-token-nobody-sees" not in repr(load(workspace=workspace, environment=environment))


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://u:x@h/notes", "notes.whyrank"),
        ("postgresql://u@h/notes?schema=Team&pool_size=2", "notes.team"),
        ("postgresql://u@h?dbname=notes", "notes.whyrank"),
        ("postgresql://ann@h", "ann.whyrank"),
        ("postgresql://h/..%2Fa.b?schema=../c", "___a_b.___c"),
    ],
)
def test_files_of_a_store_on_a_server_have_the_name_of_its_database_and_schema(
    tmp_path: Path, url: str, name: str
) -> None:
    config = load({"store": url}, workspace=tmp_path, environment={})
    assert config.pins == tmp_path / f".whyrank/{name}.pins"
    assert config.evaluation == tmp_path / f".whyrank/{name}.eval"
    assert config.notes == tmp_path


def test_files_of_a_tenant_on_a_server_stay_in_the_place_named_for_them(tmp_path: Path) -> None:
    alice, bob = (StoreUrl("postgresql://u@h/notes", tmp_path / f"tenants/{name}.db") for name in ("alice", "bob"))
    config = load({"store": store_setting(alice)}, workspace=tmp_path, environment={})
    assert (config.store, config["store"]) == (alice, alice.url)
    assert config.pins == tmp_path / "tenants/alice.pins"
    assert load({"store": bob}, workspace=tmp_path, environment={}).pins != config.pins
