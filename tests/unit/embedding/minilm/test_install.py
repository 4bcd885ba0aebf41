"""From the published files to what is loaded, once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from tests.minilm import fetched, installed
from whyrank.embedding.minilm.files import PINNED, TOKENIZER, WEIGHTS, Place
from whyrank.embedding.minilm.graph import converted
from whyrank.embedding.minilm.install import PRECISIONS, install, is_ready
from whyrank.errors import ProviderError


def test_files_put_there_by_hand_are_converted_and_the_weights_let_go(tmp_path: Path) -> None:
    place = Place.below(tmp_path)
    place.folder.mkdir()
    for pinned in PINNED:
        shutil.copyfile(fetched().file(pinned), place.file(pinned))
    seen: list[str] = []
    install(place, lambda done, total, label: seen.append(f"{done / total:.0%} {label}"))
    assert seen == ["50% converting to fp16", "100% converting to int8"]
    assert is_ready(place)
    kept = {path.name for path in place.folder.iterdir()} - {".lock"}
    assert kept == {TOKENIZER.name, "fp16-1.onnx", "int8-1.onnx"}
    assert place.graph("int8").stat().st_size < 24_000_000 < 46_000_000 > place.graph("fp16").stat().st_size


def test_what_is_ready_is_left_alone() -> None:
    place = installed()
    before = {path: path.stat().st_mtime_ns for path in place.folder.iterdir()}
    install(place, lambda done, total, label: pytest.fail("something was done"))
    assert {path: path.stat().st_mtime_ns for path in place.folder.iterdir()} == before


def test_the_same_weights_give_the_same_bytes() -> None:
    # The file was written by the first run on this machine: a graph that has changed since needs another CONVERSION.
    weights = load_file(fetched().file(WEIGHTS))
    for precision in PRECISIONS:
        assert converted(weights, precision) == installed().graph(precision).read_bytes()


def test_a_folder_that_cannot_be_made_is_told_with_the_setting_that_names_another(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ProviderError, match=r"cannot be kept in .*model\.folder"):
        install(Place.below(tmp_path / "file"))
