"""What models there are, and what each needs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.minilm import MODELS, installed
from whyrank.embedding.models import fetch, models
from whyrank.embedding.providers import NAMES, SERVED, embedder_named
from whyrank.errors import MissingExtra


def test_every_embedder_is_listed_with_the_space_it_has() -> None:
    installed()
    known = models(MODELS)
    assert tuple(model.name for model in known) == tuple(name for name in NAMES if name != SERVED)
    for model in known:
        embedder = embedder_named(model.name, MODELS)
        assert model.installed
        assert model.space == (embedder.fingerprint if embedder else "")
        assert model.dimension == (embedder.query("tea").size if embedder else 0)


def test_a_missing_extra_is_said_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    needs = {model.name: model.needs for model in models(tmp_path)}
    assert needs["minilm"] == needs["minilm-int8"] == "pip install onnxruntime"
    with pytest.raises(MissingExtra, match="pip install onnxruntime"):
        fetch("minilm", tmp_path, lambda *told: pytest.fail("something was fetched"))
    assert list(tmp_path.iterdir()) == []


def test_a_default_model_that_lost_its_files_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("whyrank.embedding.wordllama.TABLE", "weights/none.safetensors")
    [wordllama, *_] = models(tmp_path)
    assert not wordllama.installed
    assert "reinstall wordllama" in wordllama.needs


def test_what_is_part_of_the_installation_needs_no_fetching(tmp_path: Path) -> None:
    assert fetch("wordllama", tmp_path, lambda *told: None) is False
    assert fetch("none", tmp_path, lambda *told: None) is False
