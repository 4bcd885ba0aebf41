"""Old keys keep working, say so once, and never beat a new one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from whyrank.config.legacy import HYDE_TIMEOUT_MS, RETIRED, renewed
from whyrank.config.load import WORKSPACE_FILE, Config, load, user_file
from whyrank.config.settings import SETTINGS
from whyrank.errors import ConfigError

REFERENCE = Path(__file__).parent.parent.parent / "docs/reference.md"


def loaded(tmp_path: Path, text: str, user: str = "", **environment: str) -> Config:
    (tmp_path / WORKSPACE_FILE).write_text(text, encoding="utf-8")
    home = {"HOME": str(tmp_path / "home"), **environment}
    if user:
        user_file(home).parent.mkdir(parents=True)
        user_file(home).write_text(user, encoding="utf-8")
    return load(workspace=tmp_path, environment=home)


def test_hyde_becomes_an_expansion_with_the_time_hyde_had(tmp_path: Path) -> None:
    config = loaded(tmp_path, '[search]\nhydeEnabled = true\nhydeModel = "small"\n')
    assert config["query_expansion.enabled"] is True
    assert (config["query_expansion.model"], config["query_expansion.mode"]) == ("small", "hyde")
    assert config["query_expansion.timeout_ms"] == HYDE_TIMEOUT_MS == 25_000


def test_the_size_of_what_a_model_is_shown_is_known_by_its_old_name(tmp_path: Path) -> None:
    config = loaded(tmp_path, '[ingest]\npaths = ["skills/**/*.md", "TOOLS.md"]\nchunkSize = 600\noverlap = 50\n')
    assert (config["ingest.characters"], config["ingest.overlap"]) == (600, 50)
    assert config["ingest.paths"] == "skills/**/*.md,TOOLS.md"


def test_one_notice_names_old_and_new_and_the_file(tmp_path: Path) -> None:
    config = loaded(tmp_path, '[search]\nhydeEnabled = true\nhydeModel = "small"\n')
    [notice] = config.notices
    assert notice.code == "setting-old"
    for named in ("search.hydeEnabled", "search.hydeModel", "query_expansion.enabled", WORKSPACE_FILE):
        assert named in notice.message


def test_a_new_key_wins_even_from_a_weaker_place(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        "[search]\nhydeEnabled = true\n",
        user="[query_expansion]\nenabled = false\ntimeout_ms = 11000\n",
    )
    assert config["query_expansion.enabled"] is False
    assert config["query_expansion.timeout_ms"] == 11_000
    assert len(config.notices) == 1


def test_a_bad_old_value_is_an_error_that_says_where_it_came_from(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, '[search]\nhydeEnabled = "perhaps"\n')
    assert WORKSPACE_FILE in caught.value.message


def test_without_old_keys_nothing_is_said(tmp_path: Path) -> None:
    assert loaded(tmp_path, "limit = 3\n").notices == ()
    assert renewed({}, "argument").values == {}


def test_every_row_speaks_of_settings_there_are_and_is_in_the_reference() -> None:
    reference = REFERENCE.read_text(encoding="utf-8")
    for row in RETIRED:
        assert set(row.instead) <= set(SETTINGS)
        assert not set(row.keys) & set(SETTINGS)
        for key in row.keys:
            assert re.search(rf"^\|.*`{re.escape(key)}`.*\|", reference, flags=re.M), key
