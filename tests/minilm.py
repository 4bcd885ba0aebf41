"""The real model for the tests: fetched once per machine, kept beside the packages, and its weights for the oracle."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from filelock import FileLock
from safetensors.numpy import load_file

from tests import encoders
from whyrank.providers.onnx.catalog import MINILM, published
from whyrank.providers.onnx.embedder import OnnxEmbedder
from whyrank.providers.onnx.fetch import fetch
from whyrank.providers.onnx.install import install_published, is_ready

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MODELS = Path(sys.prefix) / "whyrank-models"
WEIGHTS, TOKENIZER = MINILM.files


@cache
def installed() -> Path:
    """Return the model's folder, ready to be loaded; made of files put there by hand, as without a network."""
    folder = MODELS / MINILM.folder
    originals = fetched()
    with FileLock(MODELS / "making.lock"):
        if not is_ready(MINILM, folder):
            folder.mkdir(exist_ok=True)
            for pinned in MINILM.files:
                (folder / pinned.name).unlink(missing_ok=True)
                os.link(originals / pinned.name, folder / pinned.name)
            install_published("minilm", MODELS)
    return folder


@cache
def fetched() -> Path:
    """Return the folder of the files as they were published."""
    folder = MODELS / "published"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(MODELS / "fetching.lock"):
        fetch("minilm", MINILM.files, MINILM.sources, folder, lambda done, total, name: None)
    return folder


def minilm(name: str = "minilm", folder: Path | None = None, threads: int = 1) -> OnnxEmbedder:
    """Return the embedder of a variant."""
    found = published(name)
    assert found is not None
    return OnnxEmbedder(found[1], folder or installed(), threads)


@cache
def _weights() -> dict[str, NDArray[np.float64]]:
    return {name: values.astype(np.float64) for name, values in load_file(fetched() / WEIGHTS.name).items()}


def forward(ids: Sequence[int]) -> NDArray[np.float64]:
    """Return the unit vector of word pieces, marks of begin and end among them, in double precision."""
    return encoders.forward(_weights(), ids, layers=6, heads=12, pooling="mean")
