"""The files of the page come from their folder and from nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from whyrank.interfaces.http.app import POLICY, page_file

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    page = tmp_path / "page"
    (page / "parts").mkdir(parents=True)
    (page / "index.html").write_text("<!doctype html>", encoding="utf-8")
    (page / "parts/rank.js").write_text("export {};", encoding="utf-8")
    (page / "notes.txt").write_text("no part of the page", encoding="utf-8")
    (tmp_path / "secret.js").write_text("secret", encoding="utf-8")
    (page / "link.js").symlink_to(tmp_path / "secret.js")
    return page


def test_the_page_is_served_under_its_policy(folder: Path) -> None:
    found = page_file("", folder)
    assert found is not None
    assert (found.content, found.headers["content-type"]) == (b"<!doctype html>", "text/html; charset=utf-8")
    assert found.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    script = page_file("parts/rank.js", folder)
    assert script is not None
    assert script.headers["content-type"].startswith("text/javascript")
    assert script.headers["etag"] != found.headers["etag"]


@pytest.mark.parametrize(
    "name",
    ["../secret.js", "parts/../../secret.js", "link.js", "notes.txt", "none.js", "parts", "/etc/hosts", "a\x00.js"],
)
def test_nothing_else_is(folder: Path, name: str) -> None:
    assert page_file(name, folder) is None
