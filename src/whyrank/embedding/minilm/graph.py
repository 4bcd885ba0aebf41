"""The transformer as an ONNX graph: word pieces in, one unit vector per text out.

All texts of a batch have the same length, so there is no padding and no mask, and a vector is the same, bit for bit, in
any batch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from . import wire
from .files import Precision

Floats = NDArray[np.float32]

LAYERS = 6
WIDTH = 384
HEADS = 12
MAX_PIECES = 256  # what the model was trained on, though it has positions for 512
EPSILON = 1e-12  # of its layer normalisations
INPUT, OUTPUT = "pieces", "vectors"
_LARGEST = 127  # of a signed byte, used evenly on both sides of zero


def converted(weights: Mapping[str, Floats], precision: Precision) -> bytes:
    """Return the model as the bytes of an ONNX file."""
    return _Builder(weights, precision).model()


class _Builder:
    """Adds operators to a graph; every method returns the name of what it computes."""

    def __init__(self, weights: Mapping[str, Floats], precision: Precision) -> None:
        self._weights = weights
        self._precision = precision
        self._nodes: list[bytes] = []
        self._tensors: list[bytes] = []
        self._names = 0

    def model(self) -> bytes:
        length = self._op("Shape", INPUT, start=1, end=2)
        hidden = self._embeddings(length)
        for layer in range(LAYERS):
            hidden = self._layer(hidden, f"encoder.layer.{layer}.")
        self._pooled(hidden, length)
        inputs = [wire.value(INPUT, "int64", ["batch", "length"])]
        outputs = [wire.value(OUTPUT, "float32", ["batch", WIDTH])]
        return wire.model(wire.graph(self._nodes, self._tensors, inputs, outputs))

    def _embeddings(self, length: str) -> str:
        table = self._weights["embeddings.position_embeddings.weight"][:MAX_PIECES]
        # There is but one kind of text, so its embedding is part of every position's.
        positions = self._constant(table + self._weights["embeddings.token_type_embeddings.weight"][0])
        zero = self._integers(0)
        places = self._op("Slice", positions, zero, length, zero)
        return self._normalised(self._op("Add", self._word_rows(), places), "embeddings.LayerNorm")

    def _word_rows(self) -> str:
        """Look the rows up as they are stored: the table is half of the model, and few of its rows are needed."""
        table = self._weights["embeddings.word_embeddings.weight"]
        if self._precision == "fp16":
            return self._as_float(self._op("Gather", self._constant(table.astype(np.float16)), INPUT))
        scales = _scales(table, axis=1)
        rows = self._as_float(self._op("Gather", self._constant(_in_steps(table, scales)), INPUT))
        return self._op("Mul", rows, self._op("Gather", self._constant(scales), INPUT))

    def _layer(self, hidden: str, prefix: str) -> str:
        mixed = self._dense(self._attention(hidden, prefix), prefix + "attention.output.dense")
        hidden = self._normalised(self._op("Add", mixed, hidden), prefix + "attention.output.LayerNorm")
        inner = self._op("Gelu", self._dense(hidden, prefix + "intermediate.dense"))
        outer = self._dense(inner, prefix + "output.dense")
        return self._normalised(self._op("Add", outer, hidden), prefix + "output.LayerNorm")

    def _attention(self, hidden: str, prefix: str) -> str:
        """Compute queries, keys and values by one product: (3, batch, head, length, width of a head)."""
        parts = [f"{prefix}attention.self.{part}" for part in ("query", "key", "value")]
        joined = self._dense(hidden, *parts)
        split = self._op("Reshape", joined, self._integers(0, 0, 3, HEADS, WIDTH // HEADS))
        stacked = self._op("Transpose", split, perm=[2, 0, 3, 1, 4])
        first = self._integers(0)
        queries, keys, values = (
            self._op("Squeeze", part, first) for part in self._ops(3, "Split", stacked, axis=0, num_outputs=3)
        )
        products = self._op("MatMul", queries, self._op("Transpose", keys, perm=[0, 1, 3, 2]))
        scale = self._constant(np.float32((WIDTH / HEADS) ** -0.5))
        shares = self._op("Softmax", self._op("Mul", products, scale), axis=-1)
        heads = self._op("Transpose", self._op("MatMul", shares, values), perm=[0, 2, 1, 3])
        return self._op("Reshape", heads, self._integers(0, 0, WIDTH))

    def _pooled(self, hidden: str, length: str) -> None:
        """Add the rows up and bring the sum to unit length.

        By a product with ones: the sums of ReduceMean depend in their last bit on the size of the batch.
        """
        one = self._constant(np.ones((1, 1, 1), np.float32))
        ones = self._op("Expand", one, self._op("Concat", self._integers(1, 1), length, axis=0))
        summed = self._op("Squeeze", self._op("MatMul", ones, hidden), self._integers(1))
        self._nodes.append(wire.node("LpNormalization", [summed], [OUTPUT], {"axis": -1, "p": 2}))

    def _dense(self, values: str, *names: str) -> str:
        """Multiply by the matrices of these names, side by side, and add their biases."""
        matrix = np.concatenate([self._weights[f"{name}.weight"].T for name in names], axis=1)
        bias = np.concatenate([self._weights[f"{name}.bias"] for name in names])
        product = self._product(values, matrix) if self._precision == "fp16" else self._in_bytes(values, matrix)
        return self._op("Add", product, self._constant(bias))

    def _product(self, values: str, matrix: Floats) -> str:
        """Multiply by a matrix stored in half precision; onnxruntime widens it once, when the file is loaded."""
        return self._op("MatMul", values, self._as_float(self._constant(matrix.astype(np.float16))))

    def _in_bytes(self, values: str, matrix: Floats) -> str:
        """Multiply in whole numbers: the matrix with a scale per column, the values with one found on the way."""
        scales = _scales(matrix, axis=0)
        steps, step, zero = self._ops(3, "DynamicQuantizeLinear", values)
        whole = self._op("MatMulInteger", steps, self._constant(_in_steps(matrix, scales)), zero)
        return self._op("Mul", self._as_float(whole), self._op("Mul", step, self._constant(scales[0])))

    def _normalised(self, values: str, name: str) -> str:
        scale, bias = (self._constant(self._weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self._op("LayerNormalization", values, scale, bias, axis=-1, epsilon=EPSILON)

    def _as_float(self, values: str) -> str:
        return self._op("Cast", values, to=wire.FLOAT)

    def _integers(self, *values: int) -> str:
        return self._constant(np.array(values, np.int64))

    def _constant(self, values: NDArray[np.generic] | np.generic) -> str:
        name = self._new_name()
        self._tensors.append(wire.tensor(name, np.asarray(values)))
        return name

    def _op(self, kind: str, *inputs: str, **attributes: wire.Attribute) -> str:
        return self._ops(1, kind, *inputs, **attributes)[0]

    def _ops(self, count: int, kind: str, *inputs: str, **attributes: wire.Attribute) -> list[str]:
        outputs = [self._new_name() for _ in range(count)]
        self._nodes.append(wire.node(kind, inputs, outputs, attributes))
        return outputs

    def _new_name(self) -> str:
        self._names += 1
        return f"n{self._names}"


def _scales(matrix: Floats, axis: int) -> Floats:
    """Return the step of each row or column: its largest number is 127 of them."""
    largest = np.abs(matrix).max(axis=axis, keepdims=True)
    steps: Floats = (np.where(largest > 0, largest, 1.0) / _LARGEST).astype(np.float32)
    return steps


def _in_steps(matrix: Floats, scales: Floats) -> NDArray[np.int8]:
    steps: NDArray[np.int8] = np.clip(np.rint(matrix / scales), -_LARGEST, _LARGEST).astype(np.int8)
    return steps
