"""From the published files to what is loaded, once."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import onnxruntime
import pytest
from safetensors.numpy import load_file

from tests.minilm import MODELS, TOKENIZER, WEIGHTS, fetched, installed
from whyrank.errors import MissingExtra, ProviderError
from whyrank.providers.onnx.catalog import MINILM, PUBLISHED
from whyrank.providers.onnx.conversion import converted
from whyrank.providers.onnx.install import install_published, is_ready

if TYPE_CHECKING:
    from pathlib import Path


def copied(models: Path) -> Path:
    folder = models / MINILM.folder
    folder.mkdir()
    for pinned in MINILM.files:
        shutil.copyfile(fetched() / pinned.name, folder / pinned.name)
    return folder


def test_files_put_there_by_hand_are_converted_and_the_weights_let_go(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    seen: list[str] = []
    assert install_published("minilm", tmp_path, lambda done, total, label: seen.append(f"{done / total:.0%} {label}"))
    assert seen == ["50% converting to fp16", "100% converting to int8"]
    assert is_ready(MINILM, folder)
    kept = {path.name for path in folder.iterdir()} - {".lock"}
    assert kept == {TOKENIZER.name, "fp16-1.onnx", "int8-1.onnx"}
    assert (folder / "int8-1.onnx").stat().st_size < 24_000_000
    assert (folder / "fp16-1.onnx").stat().st_size < 46_000_000


def test_what_is_ready_is_left_alone() -> None:
    folder = installed()
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert not install_published("minilm-int8", MODELS, lambda *told: pytest.fail("something was done"))
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_the_same_weights_give_the_same_graph() -> None:
    # The file was written by the first run on this machine: a graph that has changed since needs another CONVERSION.
    import onnx

    weights = load_file(fetched() / WEIGHTS.name)
    assert MINILM.encoder is not None
    graph = onnx.load_from_string(converted(weights, MINILM.encoder, "int8")).graph
    written = onnx.load(installed() / "int8-1.onnx").graph
    assert [tensor.raw_data for tensor in graph.initializer] == [tensor.raw_data for tensor in written.initializer]
    told = [
        [(n.op_type, list(n.input), list(n.output), sorted(map(str, n.attribute))) for n in one.node]
        for one in (graph, written)
    ]
    assert told[0] == told[1]


def test_a_folder_that_cannot_be_made_is_told_with_the_setting_that_names_another(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ProviderError, match=r"cannot be kept in .*model\.folder"):
        install_published("minilm", tmp_path / "file")


def test_without_the_package_that_converts_nothing_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match="pip install onnx"):
        install_published("granite", tmp_path, lambda *told: pytest.fail("something was fetched"))
    assert list(tmp_path.iterdir()) == []


def test_an_installed_model_needs_no_converter(monkeypatch: pytest.MonkeyPatch) -> None:
    installed()
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert not install_published("minilm", MODELS)
    assert onnxruntime.InferenceSession(str(installed() / "int8-1.onnx"))


def test_the_sizes_that_users_are_told_are_those_of_the_first_source() -> None:
    for source in PUBLISHED:
        first = source.sources[0]
        told = getattr(first, "bytes", sum(pinned.bytes for pinned in source.files))
        assert {model.fetched_bytes for model in source.models} == {told}
