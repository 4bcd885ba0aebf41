"""Cross-encoders: pairs in, a score from 0 to 1 out, added up by hand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

import whyrank
from tests.tiny import write_embedder, write_reranker
from whyrank.errors import ProviderError
from whyrank.providers.onnx.embedder import CrossEncoder
from whyrank.providers.onnx.install import install_from_folder

if TYPE_CHECKING:
    from pathlib import Path


def made(folder: Path, models: Path) -> CrossEncoder:
    installed, _ = install_from_folder(folder, models, kind="reranker")
    return CrossEncoder(installed.description, installed.folder)


def logistic(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def test_a_pair_is_read_together_and_its_logit_becomes_a_score(tmp_path: Path) -> None:
    reranker = made(write_reranker(tmp_path / "judge"), tmp_path / "models")
    # The text's tokens and its end: tea 3 + [SEP] 1 − 2 = 2; green 1 + tea 3 + 1 − 2 = 3; boat 0 + 1 − 2 = −1. The
    # question's tea does not count.
    scores = reranker.scores("tea", ["tea", "green tea", "boat"])
    assert scores == pytest.approx([logistic(2), logistic(3), logistic(-1)])
    assert repr(reranker).startswith("folder:judge@")


def test_of_two_logits_the_second_speaks_against_the_first(tmp_path: Path) -> None:
    reranker = made(write_reranker(tmp_path / "judge", labels=2), tmp_path / "models")
    # tea: (1, 3 + 1 − 1) = (1, 3), so 3 − 1 = 2.
    assert reranker.scores("boat", ["tea"]) == pytest.approx([logistic(2)])


def test_a_long_text_is_read_from_its_beginning_and_a_long_question_leaves_it_half(tmp_path: Path) -> None:
    folder = write_reranker(tmp_path / "judge")
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 13}', encoding="utf-8")
    reranker = made(folder, tmp_path / "models")
    # 13 − 3 marks = 10 tokens: 5 of the question, 5 of the text. 4 · green + tea + 1 − 2 = 6.
    [score] = reranker.scores("boat " * 50, ["green green green green tea tea tea"])
    assert score == pytest.approx(logistic(4 + 3 + 1 - 2))


def test_no_text_is_no_score(tmp_path: Path) -> None:
    assert made(write_reranker(tmp_path / "judge"), tmp_path / "models").scores("tea", []) == []


def test_what_is_no_cross_encoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="which is not one score per pair"):
        made(write_embedder(tmp_path / "vectors"), tmp_path / "models")
    with pytest.raises(ProviderError, match="which is not one score per pair"):
        made(write_reranker(tmp_path / "classes", labels=3), tmp_path / "models")


def test_an_engine_reranks_by_the_one_that_the_settings_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHYRANK_MODEL_FOLDER", str(tmp_path / "models"))
    made(write_reranker(tmp_path / "judge"), tmp_path / "models")
    store = tmp_path / "memory.db"
    with whyrank.open(store, workspace=tmp_path, embedding="none", reranker_model="folder:judge") as memory:
        memory.add("boat boat boat, and no tea")
        memory.add("a boat with green tea, tea and tea")
        results = memory.search("boat")
        [step, *_] = [step for step in results[0].trail if step.stage == "rerank"]
        assert results[0].memory.text == "a boat with green tea, tea and tea"
        assert "by folder:judge@" in step.why
        assert results[0].score == pytest.approx(logistic(1 + 3 * 3 + 1 - 2))  # green, tea, tea, tea, [SEP]


def test_one_that_is_not_here_leaves_the_order_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHYRANK_MODEL_FOLDER", str(tmp_path / "models"))
    with whyrank.open(
        tmp_path / "memory.db", workspace=tmp_path, embedding="none", reranker_model="hf:org/judge"
    ) as memory:
        memory.add("green tea")
        results = memory.search("tea")
        [notice] = [notice for notice in results.notices if notice.code == "rerank-off"]
        assert len(results) == 1
        assert "`whyrank model rerank hf:org/judge` gets it" in notice.message
