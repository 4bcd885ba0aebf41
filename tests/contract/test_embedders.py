"""The one contract suite, run on every embedder there is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.minilm import installed
from whyrank.embedding.minilm.embedder import MiniLm
from whyrank.embedding.openai import OpenAiEmbedder, Served
from whyrank.embedding.wordllama import WordLlama
from whyrank.ports import Embedder
from whyrank.testing.embedder import WordDirections
from whyrank.testing.embedder_contract import EmbedderContract
from whyrank.testing.faulty_server import FaultyServer
from whyrank.transport.asking import Transport
from whyrank.transport.endpoint import Endpoint


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


class TestServed(EmbedderContract):
    @pytest.fixture(autouse=True)
    def _served(self) -> Iterator[None]:
        with FaultyServer() as server:
            self.url = server.url
            yield

    def make(self) -> Embedder:
        return OpenAiEmbedder(Served("m"), Transport(Endpoint(self.url, "embedder")))
