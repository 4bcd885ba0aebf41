"""Tiny models in ONNX, written by the package `onnx`: so small that their numbers can be added up by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Punctuation, Whitespace
from tokenizers.pre_tokenizers import Sequence as InTurn
from tokenizers.processors import TemplateProcessing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# Two numbers a word: things to drink lie on the first axis, ships on the second.
TABLE: dict[str, tuple[float, float]] = {
    "[UNK]": (0.0, 0.0),
    "[CLS]": (0.0, 1.0),
    "[SEP]": (1.0, 1.0),
    "tea": (3.0, 0.0),
    "green": (1.0, 0.0),
    "boat": (0.0, 4.0),
    "ask": (0.0, 2.0),
    ":": (0.0, 0.0),
}
IDS = {word: place for place, word in enumerate(TABLE)}
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def write_tokenizer(folder: Path) -> None:
    """Write a tokenizer of whole words, with [CLS] before and [SEP] after a text."""
    tokenizer = Tokenizer(WordLevel(IDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = InTurn([Whitespace(), Punctuation()])
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(mark, IDS[mark]) for mark in ("[CLS]", "[SEP]")],
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))


def write_embedder(
    folder: Path,
    *,
    inputs: Sequence[str] = INPUTS,
    output: str = "last_hidden_state",
    graph: str = "onnx/model.onnx",
    pools: bool = False,
    files: Mapping[str, object] | None = None,
) -> Path:
    """Write a model whose tokens have the vectors of the table, with further files of JSON as they are given."""
    write_tokenizer(folder)
    table = numpy_helper.from_array(np.array(list(TABLE.values()), np.float32), "table")
    hidden = "hidden" if pools else output
    nodes = [helper.make_node("Gather", ["table", inputs[0]], [hidden])]
    shape: list[str | int] = ["batch", "length", 2]
    if pools:
        nodes.append(helper.make_node("ReduceMean", [hidden, "axis"], [output], keepdims=0))
        shape = ["batch", 2]
    axis = numpy_helper.from_array(np.array([1], np.int64), "axis")
    _write(folder / graph, nodes, inputs, (output, shape), [table, axis] if pools else [table])
    for name, content in (files or {}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def write_reranker(folder: Path, *, labels: int = 1) -> Path:
    """Write a cross-encoder: a pair's logit is the sum of the first numbers of the text's tokens, minus 2.

    With two labels the first has the logit 1, and the second one more than a single one would have.
    """
    write_tokenizer(folder)
    worth = numpy_helper.from_array(np.array([first for first, _ in TABLE.values()], np.float32), "worth")
    constants = [worth, numpy_helper.from_array(np.array([1], np.int64), "axis")]
    nodes = [
        helper.make_node("Gather", ["worth", "input_ids"], ["worths"]),
        helper.make_node("Cast", ["token_type_ids"], ["is_text"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["worths", "is_text"], ["counted"]),
        helper.make_node("ReduceSum", ["counted", "axis"], ["sum"], keepdims=1),
    ]
    if labels == 1:
        constants.append(numpy_helper.from_array(np.array([[-2.0]], np.float32), "offset"))
        nodes.append(helper.make_node("Add", ["sum", "offset"], ["logits"]))
    else:
        constants.append(numpy_helper.from_array(np.array([[0.0] + [1.0] * (labels - 1)], np.float32), "picks"))
        constants.append(numpy_helper.from_array(np.array([[1.0] + [-1.0] * (labels - 1)], np.float32), "offset"))
        nodes.append(helper.make_node("MatMul", ["sum", "picks"], ["picked"]))
        nodes.append(helper.make_node("Add", ["picked", "offset"], ["logits"]))
    _write(folder / "onnx/model.onnx", nodes, INPUTS, ("logits", ["batch", labels]), constants)
    return folder


def _write(
    path: Path,
    nodes: Sequence[NodeProto],
    inputs: Sequence[str],
    output: tuple[str, Sequence[str | int]],
    constants: Sequence[TensorProto],
) -> None:
    given = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in inputs]
    told = [helper.make_tensor_value_info(output[0], TensorProto.FLOAT, list(output[1]))]
    graph = helper.make_graph(nodes, "tiny", given, told, constants)
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 20)])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())
