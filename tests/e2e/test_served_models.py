"""With a real server and a real language model: only the shape of what it says is held against it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

import whyrank
from whyrank.config.load import load
from whyrank.engine.open import served_embedder, served_llm
from whyrank.protocols import Message

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = {
    "type": "object",
    "properties": {"drink": {"type": "string", "maxLength": 8}},
    "required": ["drink"],
    "additionalProperties": False,
}
PATIENT_MS = 600_000  # of a machine with other things to do


def test_a_real_model_embeds(model_url: str, tmp_path: Path) -> None:
    config = load(
        {"embedder.url": model_url, "embedder.model": "smollm2", "embedder.timeout_s": 300}, workspace=tmp_path
    )
    embedder = served_embedder(config)
    rows = embedder.documents(["green tea", " ", "the tax office"])
    assert rows.shape == (3, 576)
    assert np.allclose(np.linalg.norm(rows, axis=1), [1, 0, 1], atol=1e-5)
    near = rows @ embedder.query("green tea")
    assert near[0] > near[2]


def test_a_real_model_keeps_to_a_schema(model_url: str, tmp_path: Path) -> None:
    config = load({"llm.url": model_url, "llm.model": "smollm2", "llm.timeout_s": 300}, workspace=tmp_path)
    answer = served_llm(config).complete([Message("user", "Name a drink.")], schema=SCHEMA, max_tokens=24)
    assert set(json.loads(answer.text)) == {"drink"}
    assert answer.prompt_tokens > 0
    assert 0 < answer.completion_tokens <= 24


def test_a_question_is_widened_and_searched_by_real_models(model_url: str, tmp_path: Path) -> None:
    with whyrank.open(
        tmp_path / "memory.db",
        workspace=tmp_path,
        embedding="openai",
        embedder_url=model_url,
        embedder_model="smollm2",
        embedder_timeout_s=300,
        llm_url=model_url,
        llm_model="smollm2",
        query_expansion_timeout_ms=PATIENT_MS,
    ) as memory:
        memory.add("Robin prefers green tea")
        memory.add("The tax office closes at noon")
        results = memory.search("what does Robin drink?", expand=True)
        assert {hit.memory.text for hit in results} >= {"Robin prefers green tea"}
        assert "expanded" in {notice.code for notice in results.notices}
        assert "vector:hyde" in {part.signal for part in results[0].trail[0].parts}
        assert memory.status().spaces == {"openai/smollm2@served/own/no-prompt": 2}
