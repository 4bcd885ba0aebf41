"""The one contract suite, run on every embedder there is."""

from __future__ import annotations

from tests.minilm import installed
from whyrank.embedding.minilm.embedder import MiniLm
from whyrank.embedding.wordllama import WordLlama
from whyrank.ports import Embedder
from whyrank.testing.embedder import WordDirections
from whyrank.testing.embedder_contract import EmbedderContract


class TestWordLlama(EmbedderContract):
    def make(self) -> Embedder:
        return WordLlama()


class TestMiniLm(EmbedderContract):
    def make(self) -> Embedder:
        return MiniLm(installed())


class TestMiniLmInBytes(EmbedderContract):
    def make(self) -> Embedder:
        return MiniLm(installed(), "int8")


class TestWordDirections(EmbedderContract):
    def make(self) -> Embedder:
        return WordDirections()
