"""The few protobuf messages an ONNX file is made of, written byte by byte.

The numbers of fields and types are those of onnx.proto (ONNX 1.15, IR version 9). A package that knows the whole
format would take more room on the disk than the model.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

IR_VERSION = 9
OPSET = 20  # the first that knows Gelu

Attribute = int | float | Sequence[int]
_ELEMENT = {"float32": 1, "int8": 3, "int64": 7, "float16": 10}
FLOAT = _ELEMENT["float32"]
_FLOAT, _INT, _INTS = 1, 2, 7  # kinds of attributes
_VARINT, _BYTES, _FIXED32 = 0, 2, 5  # wire types


def model(graph: bytes) -> bytes:
    """Return a ModelProto, which is what an ONNX file holds."""
    opset = _blob(1, "") + _number(2, OPSET)
    return _number(1, IR_VERSION) + _blob(2, "whyrank") + _blob(7, graph) + _blob(8, opset)


def graph(
    nodes: Iterable[bytes], initializers: Iterable[bytes], inputs: Iterable[bytes], outputs: Iterable[bytes]
) -> bytes:
    """Return a GraphProto."""
    parts = [*(_blob(1, node) for node in nodes), _blob(2, "minilm")]
    parts += (_blob(5, tensor) for tensor in initializers)
    parts += (_blob(11, value) for value in inputs)
    parts += (_blob(12, value) for value in outputs)
    return b"".join(parts)


def node(kind: str, inputs: Iterable[str], outputs: Iterable[str], attributes: Mapping[str, Attribute]) -> bytes:
    """Return a NodeProto: one operator with its inputs and outputs by name."""
    names = [_blob(1, name) for name in inputs] + [_blob(2, name) for name in outputs]
    settings = [_blob(5, _attribute(name, value)) for name, value in attributes.items()]
    return b"".join([*names, _blob(4, kind), *settings])


def tensor(name: str, values: NDArray[np.generic]) -> bytes:
    """Return a TensorProto with its values as they lie in memory, little-endian."""
    dimensions = b"".join(_number(1, size) for size in values.shape)
    raw = values.astype(values.dtype.newbyteorder("<")).tobytes()
    return dimensions + _number(2, _ELEMENT[values.dtype.name]) + _blob(8, name) + _blob(9, raw)


def value(name: str, element: str, dimensions: Iterable[str | int]) -> bytes:
    """Return a ValueInfoProto: an input or output; a dimension is a number, or a name for any number."""
    shape = b"".join(_blob(1, _number(1, size) if isinstance(size, int) else _blob(2, size)) for size in dimensions)
    kind = _blob(1, _number(1, _ELEMENT[element]) + _blob(2, shape))
    return _blob(1, name) + _blob(2, kind)


def _attribute(name: str, given: Attribute) -> bytes:
    if isinstance(given, float):
        return _blob(1, name) + _key(2, _FIXED32) + struct.pack("<f", given) + _number(20, _FLOAT)
    if isinstance(given, int):
        return _blob(1, name) + _number(3, given) + _number(20, _INT)
    return _blob(1, name) + b"".join(_number(8, item) for item in given) + _number(20, _INTS)


def _number(field: int, given: int) -> bytes:
    return _key(field, _VARINT) + _varint(given)


def _blob(field: int, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return _key(field, _BYTES) + _varint(len(data)) + data


def _key(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _varint(given: int) -> bytes:
    """Write seven bits a byte, the lowest first; a negative number as its 64-bit complement."""
    left, out = given % (1 << 64), bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])
