"""What models there are, and what each needs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.granite import granite
from tests.minilm import MODELS, installed
from tests.multilingual import installed as multilingual_files
from whyrank.errors import MissingExtra
from whyrank.providers.names import FETCHED, MULTILINGUAL, NAMES, SERVED
from whyrank.providers.registry import embedder_named, fetch, models

if TYPE_CHECKING:
    from pathlib import Path


def test_every_embedder_is_listed_with_the_space_it_has() -> None:
    installed()
    granite()
    multilingual_files()
    known = models(MODELS)
    assert tuple(model.name for model in known) == tuple(name for name in NAMES if name != SERVED)
    for model in known:
        if model.name in (*FETCHED, MULTILINGUAL):
            assert model.licence
            assert model.fetched_bytes > 20_000_000
        if model.name == "bge-small":  # nothing here fetches it
            continue
        embedder = embedder_named(model.name, MODELS)
        assert model.installed
        assert model.space == (embedder.fingerprint if embedder else "")
        assert model.dimension == (embedder.query("tea").size if embedder else 0)


def test_a_missing_extra_is_said_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    needs = {model.name: model.needs for model in models(tmp_path)}
    assert needs["minilm"] == needs["minilm-int8"] == "pip install onnx onnxruntime"
    with pytest.raises(MissingExtra, match="pip install onnx onnxruntime"):
        fetch("minilm", tmp_path, lambda *told: pytest.fail("something was fetched"))
    assert list(tmp_path.iterdir()) == []


def test_a_default_model_that_lost_its_files_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("whyrank.providers.wordllama.TABLE", "weights/none.safetensors")
    [wordllama, *_] = models(tmp_path)
    assert not wordllama.installed
    assert "reinstall wordllama" in wordllama.needs


def test_what_is_part_of_the_installation_needs_no_fetching(tmp_path: Path) -> None:
    assert fetch("wordllama", tmp_path, lambda *told: None) == ("wordllama", False)
    assert fetch("none", tmp_path, lambda *told: None) == ("none", False)
