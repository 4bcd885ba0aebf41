"""Curves drawn, where matplotlib is installed; refused in words where not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from whyrank.errors import ConfigError, MissingExtra
from whyrank.evaluation.abstention import Abstention, Side
from whyrank.evaluation.harness import Judged
from whyrank.evaluation.report.html import check_drawable, draw_plot

SIDE = Side("foreign", [Judged(0.9, "found"), Judged(0.4, "weak")], [Judged(0.1, "nothing")])


def test_a_file_of_another_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"neither \.png nor \.svg"):
        check_drawable(Path("curve.pdf"))


def test_without_matplotlib_the_install_command_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "matplotlib", raising=False)
    monkeypatch.setattr(sys, "path", [])  # nothing is installed
    with pytest.raises(MissingExtra) as said:
        check_drawable(Path("curve.png"))
    assert said.value.hint == "pip install matplotlib"


@pytest.mark.parametrize(("name", "start"), [("curve.png", b"\x89PNG"), ("curve.svg", b"<?xml")])
def test_a_picture_is_written(tmp_path: Path, name: str, start: bytes) -> None:
    check_drawable(tmp_path / name)
    draw_plot(Abstention("small", (SIDE,)), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_folder_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        draw_plot(Abstention("small", (SIDE,)), tmp_path / "nowhere" / "curve.png")
