"""Conversion of published weights of BERT-like encoders to ONNX: token ids in, unit vectors out.

Graphs are built by the package `onnx`, which is needed here alone: they are run by onnxruntime. All texts of a batch
have the same length, so there is no padding and no mask, and a vector is the same, bit for bit, in any batch.
"""

from __future__ import annotations

import importlib.util
import json
import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import MissingExtra, ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx import NodeProto, TensorProto


Floats = NDArray[np.float32]
# How weights are stored: half precision (as good as whole), or bytes (smaller and faster, a little worse).
Precision = Literal["fp16", "int8"]

EXTRA = "pip install onnx onnxruntime"
INPUT, OUTPUT = "pieces", "vectors"
EPSILON = 1e-12  # of the layer normalisations
_IR_VERSION = 9
_OPSET = 20  # the first that knows Gelu
_LARGEST = 127  # of a signed byte, used evenly on both sides of zero


@dataclass(frozen=True)
class Encoder:
    """Shape and pooling of a BERT-like encoder."""

    layers: int
    width: int
    heads: int
    max_tokens: int
    pooling: Literal["mean", "cls"]
    first_position: int = 0  # RoBERTa's positions begin at 2


def check_converter() -> None:
    """Raise MissingExtra without the package `onnx`."""
    if not has_package("onnx"):
        raise MissingExtra("converting weights needs the package onnx, which is not installed", EXTRA)


def has_package(name: str) -> bool:
    """Check that a package is installed."""
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # a stub without a spec stands in its place
        return False


def converted(weights: Mapping[str, Floats], encoder: Encoder, precision: Precision) -> bytes:
    """Return the encoder as the bytes of an ONNX file; weights have the names of BERT's."""
    return _Builder(weights, encoder, precision).model()


class _Builder:
    """Builder of a graph; every method returns the name of its output."""

    def __init__(self, weights: Mapping[str, Floats], encoder: Encoder, precision: Precision) -> None:
        self._weights = weights
        self._encoder = encoder
        self._precision = precision
        self._nodes: list[NodeProto] = []
        self._tensors: list[TensorProto] = []
        self._names = 0

    def model(self) -> bytes:
        from onnx import TensorProto, helper

        length = self._op("Shape", INPUT, start=1, end=2)
        hidden = self._embeddings(length)
        for layer in range(self._encoder.layers):
            hidden = self._layer(hidden, f"encoder.layer.{layer}.")
        if self._encoder.pooling == "mean":
            pooled = self._mean(hidden, length)
        else:
            pooled = self._op("Gather", hidden, self._constant(np.int64(0)), axis=1)
        self._nodes.append(helper.make_node("LpNormalization", [pooled], [OUTPUT], axis=-1, p=2))
        inputs = [helper.make_tensor_value_info(INPUT, TensorProto.INT64, ["batch", "length"])]
        outputs = [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", self._encoder.width])]
        graph = helper.make_graph(self._nodes, "encoder", inputs, outputs, self._tensors)
        opsets = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, producer_name="whyrank", ir_version=_IR_VERSION, opset_imports=opsets)
        return bytes(model.SerializeToString(deterministic=True))

    def _embeddings(self, length: str) -> str:
        first = self._encoder.first_position
        table = self._weights["embeddings.position_embeddings.weight"][first : first + self._encoder.max_tokens]
        # There is but one token type, so its embedding is added to every position's.
        positions = self._constant(table + self._weights["embeddings.token_type_embeddings.weight"][0])
        zero = self._integers(0)
        places = self._op("Slice", positions, zero, length, zero)
        return self._normalised(self._op("Add", self._word_rows(), places), "embeddings.LayerNorm")

    def _word_rows(self) -> str:
        """Gather rows in their stored precision: the table is half of the model, and few rows are needed."""
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
        width, heads = self._encoder.width, self._encoder.heads
        joined = self._dense(hidden, *(f"{prefix}attention.self.{part}" for part in ("query", "key", "value")))
        split = self._op("Reshape", joined, self._integers(0, 0, 3, heads, width // heads))
        stacked = self._op("Transpose", split, perm=[2, 0, 3, 1, 4])
        first = self._integers(0)
        queries, keys, values = (
            self._op("Squeeze", part, first) for part in self._ops(3, "Split", stacked, axis=0, num_outputs=3)
        )
        products = self._op("MatMul", queries, self._op("Transpose", keys, perm=[0, 1, 3, 2]))
        scale = self._constant(np.float32((width / heads) ** -0.5))
        shares = self._op("Softmax", self._op("Mul", products, scale), axis=-1)
        mixed = self._op("Transpose", self._op("MatMul", shares, values), perm=[0, 2, 1, 3])
        return self._op("Reshape", mixed, self._integers(0, 0, width))

    def _mean(self, hidden: str, length: str) -> str:
        """Sum the rows; the sum has the direction of the mean.

        By a product with ones: the sums of ReduceMean depend in their last bit on the size of the batch.
        """
        one = self._constant(np.ones((1, 1, 1), np.float32))
        ones = self._op("Expand", one, self._op("Concat", self._integers(1, 1), length, axis=0))
        return self._op("Squeeze", self._op("MatMul", ones, hidden), self._integers(1))

    def _dense(self, values: str, *names: str) -> str:
        """Multiply by the concatenated matrices of these names, and add their biases."""
        matrix = np.concatenate([self._weights[f"{name}.weight"].T for name in names], axis=1)
        bias = np.concatenate([self._weights[f"{name}.bias"] for name in names])
        product = self._product(values, matrix) if self._precision == "fp16" else self._in_bytes(values, matrix)
        return self._op("Add", product, self._constant(bias))

    def _product(self, values: str, matrix: Floats) -> str:
        """Multiply by a matrix stored in half precision; onnxruntime widens it once, when the file is loaded."""
        return self._op("MatMul", values, self._as_float(self._constant(matrix.astype(np.float16))))

    def _in_bytes(self, values: str, matrix: Floats) -> str:
        """Multiply in int8: the matrix with a scale per column, the values with a dynamic one."""
        scales = _scales(matrix, axis=0)
        steps, step, zero = self._ops(3, "DynamicQuantizeLinear", values)
        whole = self._op("MatMulInteger", steps, self._constant(_in_steps(matrix, scales)), zero)
        return self._op("Mul", self._as_float(whole), self._op("Mul", step, self._constant(scales[0])))

    def _normalised(self, values: str, name: str) -> str:
        scale, bias = (self._constant(self._weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self._op("LayerNormalization", values, scale, bias, axis=-1, epsilon=EPSILON)

    def _as_float(self, values: str) -> str:
        from onnx import TensorProto

        return self._op("Cast", values, to=TensorProto.FLOAT)

    def _integers(self, *values: int) -> str:
        return self._constant(np.array(values, np.int64))

    def _constant(self, values: NDArray[np.generic] | np.generic) -> str:
        from onnx import numpy_helper

        name = self._new_name()
        self._tensors.append(numpy_helper.from_array(np.ascontiguousarray(values).reshape(np.shape(values)), name))
        return name

    def _op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        return self._ops(1, kind, *inputs, **attributes)[0]

    def _ops(self, count: int, kind: str, *inputs: str, **attributes: Any) -> list[str]:
        from onnx import helper

        outputs = [self._new_name() for _ in range(count)]
        self._nodes.append(helper.make_node(kind, inputs, outputs, **attributes))
        return outputs

    def _new_name(self) -> str:
        self._names += 1
        return f"n{self._names}"


def _scales(matrix: Floats, axis: int) -> Floats:
    """Return the quantization step of each row or column: its largest value is 127 steps."""
    largest = np.abs(matrix).max(axis=axis, keepdims=True)
    steps: Floats = (np.where(largest > 0, largest, 1.0) / _LARGEST).astype(np.float32)
    return steps


def _in_steps(matrix: Floats, scales: Floats) -> NDArray[np.int8]:
    steps: NDArray[np.int8] = np.clip(np.rint(matrix / scales), -_LARGEST, _LARGEST).astype(np.int8)
    return steps


class Pack(NamedTuple):
    """A tokenizer and the weights of an encoder, under the names of BERT's."""

    tokenizer: bytes
    weights: dict[str, Floats]


_MAGIC = b"HMSEMB01"
_LENGTH = struct.Struct("<Q")
_OUTER = {
    "word_emb": "embeddings.word_embeddings.weight",
    "pos_emb": "embeddings.position_embeddings.weight",
    "type_emb": "embeddings.token_type_embeddings.weight",
    "emb_ln.w": "embeddings.LayerNorm.weight",
    "emb_ln.b": "embeddings.LayerNorm.bias",
}
_INNER = {
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "f1": "intermediate.dense",
    "f2": "output.dense",
    "fln": "output.LayerNorm",
}
_PART = {"w": "weight", "b": "bias"}


def read_pack(content: bytes) -> Pack:
    """Read a file in the format HMSEMB01: length of the header, header (JSON), tokenizer, tensors."""
    if not content.startswith(_MAGIC):
        raise ProviderError("the weights are not in the format HMSEMB01", "fetch them again")
    (length,) = _LENGTH.unpack_from(content, len(_MAGIC))
    place = len(_MAGIC) + _LENGTH.size
    header = json.loads(content[place : place + length])
    place += length
    tokenizer = content[place : place + header["tokenizer_len"]]
    place += header["tokenizer_len"]
    weights: dict[str, Floats] = {}
    for tensor in header["tensors"]:
        values = _tensor(content[place : place + tensor["len"]], tensor["shape"], tensor["group"])
        weights |= _bert_names(tensor["name"], values)
        place += tensor["len"]
    return Pack(tokenizer, weights)


def _tensor(raw: bytes, shape: list[int], group: int) -> Floats:
    """Decode a tensor: floats, or int8 values followed by one scale for every `group` of a row."""
    if not group:
        return np.frombuffer(raw, "<f4").reshape(shape).astype(np.float32)
    count = math.prod(shape)
    steps = np.frombuffer(raw, np.int8, count).reshape(-1, group)
    scales = np.frombuffer(raw, "<f4", offset=count).reshape(-1, 1)
    values: Floats = (steps * scales).reshape(shape).astype(np.float32)
    return values


def _bert_names(name: str, values: Floats) -> dict[str, Floats]:
    if name in _OUTER:
        return {_OUTER[name]: values}
    layer, kind, part = name.split(".")
    prefix = f"encoder.layer.{layer.removeprefix('l')}"
    if kind != "qkv":
        return {f"{prefix}.{_INNER[kind]}.{_PART[part]}": values}
    thirds = zip(("query", "key", "value"), np.split(values, 3), strict=True)
    return {f"{prefix}.attention.self.{role}.{_PART[part]}": third for role, third in thirds}
