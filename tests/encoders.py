"""A forward pass of BERT-like encoders in numpy and double precision, written without a look at the graphs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Doubles = NDArray[np.float64]


def forward(
    weights: Mapping[str, Doubles],
    ids: Sequence[int],
    *,
    layers: int,
    heads: int,
    pooling: Literal["mean", "cls"],
    first_position: int = 0,
) -> Doubles:
    """Return the unit vector of tokens, marks of begin and end among them."""
    length = len(ids)

    def dense(x: Doubles, name: str) -> Doubles:
        return np.asarray(x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"])

    def normalised(x: Doubles, name: str) -> Doubles:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return np.asarray(centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"])

    def attention(x: Doubles, name: str) -> Doubles:
        query, key, value = (
            dense(x, f"{name}.{part}").reshape(length, heads, -1).swapaxes(0, 1) for part in ("query", "key", "value")
        )
        raised = np.exp(query @ key.swapaxes(1, 2) / math.sqrt(query.shape[-1]))
        shares = raised / raised.sum(axis=-1, keepdims=True)
        return np.asarray((shares @ value).swapaxes(0, 1).reshape(length, -1))

    tables = [weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")]
    places = tables[1][first_position : first_position + length]
    x = normalised(tables[0][list(ids)] + places + tables[2][0], "embeddings.LayerNorm")
    for layer in range(layers):
        name = f"encoder.layer.{layer}"
        mixed = dense(attention(x, f"{name}.attention.self"), f"{name}.attention.output.dense")
        x = normalised(x + mixed, f"{name}.attention.output.LayerNorm")
        inner = dense(x, f"{name}.intermediate.dense")
        x = normalised(x + dense(_gelu(inner), f"{name}.output.dense"), f"{name}.output.LayerNorm")
    pooled = x.mean(axis=0) if pooling == "mean" else x[0]
    return np.asarray(pooled / np.linalg.norm(pooled))


def _gelu(x: Doubles) -> Doubles:
    """x · Φ(x), with the error function of Abramowitz and Stegun, 7.1.26, which is right to 1.5e-7."""
    size = np.abs(x) / math.sqrt(2)
    t = 1 / (1 + 0.3275911 * size)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.asarray(x * 0.5 * (1 + np.sign(x) * (1 - series * np.exp(-(size**2)))))
