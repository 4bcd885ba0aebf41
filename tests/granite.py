"""granite-embedding-30m-english for the tests: fetched once per machine, and its weights read once more for the oracle.

The file is read here by offsets and matrices of its own, without whyrank's reader.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from filelock import FileLock

from tests import encoders
from tests.minilm import MODELS
from whyrank.providers.onnx.catalog import GRANITE
from whyrank.providers.onnx.embedder import OnnxEmbedder
from whyrank.providers.onnx.fetch import fetch
from whyrank.providers.onnx.install import install_published, is_ready

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_INNER = {
    "ao": "attention.output.dense", "aln": "attention.output.LayerNorm", "f1": "intermediate.dense",
    "f2": "output.dense", "fln": "output.LayerNorm",
}  # fmt: skip


@cache
def granite() -> OnnxEmbedder:
    """Return the embedder."""
    folder = MODELS / GRANITE.folder
    original = fetched()
    with FileLock(MODELS / "making-granite.lock"):
        if not is_ready(GRANITE, folder):
            folder.mkdir(exist_ok=True)
            (folder / original.name).unlink(missing_ok=True)
            os.link(original, folder / original.name)
            install_published("granite", MODELS)
    return OnnxEmbedder(GRANITE.models[0], folder)


@cache
def fetched() -> Path:
    """Return the file as it was published."""
    folder = MODELS / "published-granite"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(MODELS / "fetching-granite.lock"):
        fetch("granite", GRANITE.files, GRANITE.sources, folder, lambda done, total, name: None)
    return folder / GRANITE.files[0].name


@cache
def _weights() -> dict[str, NDArray[np.float64]]:
    raw = np.fromfile(fetched(), np.uint8)
    header_bytes = int.from_bytes(raw[8:16].tobytes(), "little")
    header = json.loads(raw[16 : 16 + header_bytes].tobytes())
    begin = 16 + header_bytes + header["tokenizer_len"]
    weights: dict[str, NDArray[np.float64]] = {}
    for tensor in header["tensors"]:
        block = raw[begin : begin + tensor["len"]]
        begin += tensor["len"]
        rows, columns = tensor["shape"] if len(tensor["shape"]) == 2 else (1, tensor["shape"][0])
        if tensor["dtype"] == "i8":
            steps = block[: rows * columns].view(np.int8).reshape(rows, columns).astype(np.float64)
            scales = block[rows * columns :].copy().view(np.float32).reshape(rows, columns // 64)
            values = steps * np.repeat(scales, 64, axis=1)  # one scale for 64 numbers of a row
        else:
            values = block.copy().view(np.float32).reshape(tensor["shape"]).astype(np.float64)
        _store(weights, tensor["name"], values)
    assert begin == raw.size
    return weights


def _store(weights: dict[str, NDArray[np.float64]], name: str, values: NDArray[np.float64]) -> None:
    outer = {"word_emb": "word_embeddings", "pos_emb": "position_embeddings", "type_emb": "token_type_embeddings"}
    if name in outer:
        weights[f"embeddings.{outer[name]}.weight"] = values
        return
    *layer, kind, part = name.split(".")
    end = "weight" if part == "w" else "bias"
    if kind == "emb_ln":
        weights[f"embeddings.LayerNorm.{end}"] = values
    elif kind == "qkv":
        for place, role in enumerate(("query", "key", "value")):
            weights[f"encoder.layer.{layer[0][1:]}.attention.self.{role}.{end}"] = values[place * 384 :][:384]
    else:
        weights[f"encoder.layer.{layer[0][1:]}.{_INNER[kind]}.{end}"] = values


def forward(ids: Sequence[int]) -> NDArray[np.float64]:
    """Return the unit vector of tokens, marks of begin and end among them, in double precision."""
    return encoders.forward(_weights(), ids, layers=6, heads=12, pooling="cls", first_position=2)
