"""The real model for the tests: fetched once per machine, kept beside the packages, and an oracle written in numpy."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from safetensors.numpy import load_file

from whyrank.embedding.minilm.fetch import fetch
from whyrank.embedding.minilm.files import PINNED, WEIGHTS, Place
from whyrank.embedding.minilm.install import install, is_ready

MODELS = Path(sys.prefix) / "whyrank-models"
_LAYERS, _HEADS = 6, 12


@cache
def installed() -> Place:
    """Return the model, ready to be loaded; made of files put there by hand, as a user without a network would."""
    place = Place.below(MODELS)
    originals = fetched()
    with FileLock(MODELS / "making.lock"):
        if not is_ready(place):
            place.folder.mkdir(exist_ok=True)
            for pinned in PINNED:
                place.file(pinned).unlink(missing_ok=True)
                os.link(originals.file(pinned), place.file(pinned))
            install(place)
    return place


@cache
def fetched() -> Place:
    """Return the files as they were published."""
    place = Place(MODELS / "published")
    place.folder.mkdir(parents=True, exist_ok=True)
    with FileLock(MODELS / "fetching.lock"):
        fetch(place, lambda done, total, name: None)
    return place


@cache
def _weights() -> dict[str, NDArray[np.float64]]:
    return {name: values.astype(np.float64) for name, values in load_file(fetched().file(WEIGHTS)).items()}


def forward(ids: Sequence[int]) -> NDArray[np.float64]:
    """Return the unit vector of word pieces, marks of begin and end among them, in double precision."""
    weights, length = _weights(), len(ids)

    def dense(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        return np.asarray(x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"])

    def normalised(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return np.asarray(centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"])

    def attention(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        query, key, value = (
            dense(x, f"{name}.{part}").reshape(length, _HEADS, -1).swapaxes(0, 1) for part in ("query", "key", "value")
        )
        raised = np.exp(query @ key.swapaxes(1, 2) / math.sqrt(query.shape[-1]))
        shares = raised / raised.sum(axis=-1, keepdims=True)
        return np.asarray((shares @ value).swapaxes(0, 1).reshape(length, -1))

    tables = [weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")]
    x = normalised(tables[0][list(ids)] + tables[1][:length] + tables[2][0], "embeddings.LayerNorm")
    for layer in range(_LAYERS):
        name = f"encoder.layer.{layer}"
        mixed = dense(attention(x, f"{name}.attention.self"), f"{name}.attention.output.dense")
        x = normalised(x + mixed, f"{name}.attention.output.LayerNorm")
        inner = dense(x, f"{name}.intermediate.dense")
        x = normalised(x + dense(_gelu(inner), f"{name}.output.dense"), f"{name}.output.LayerNorm")
    mean = x.mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))


def _gelu(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """x · Φ(x), with the error function of Abramowitz and Stegun, 7.1.26, which is right to 1.5e-7."""
    size = np.abs(x) / math.sqrt(2)
    t = 1 / (1 + 0.3275911 * size)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.asarray(x * 0.5 * (1 + np.sign(x) * (1 - series * np.exp(-(size**2)))))
