"""The one contract suite, run on every embedder there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faulty_server import FaultyServer
from tests.granite import granite
from tests.minilm import minilm
from tests.multilingual import installed as multilingual_files
from whyrank.providers.endpoint import Endpoint
from whyrank.providers.http import Transport
from whyrank.providers.multilingual import Multilingual
from whyrank.providers.openai import OpenAiEmbedder, ServedModel
from whyrank.providers.registry import with_cache
from whyrank.providers.wordllama import WordLlama
from whyrank.testing.embedder_contract import EmbedderContract
from whyrank.testing.fakes import WordDirections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whyrank.protocols import Embedder


class TestWordLlama(EmbedderContract):
    def make(self) -> Embedder:
        return WordLlama()


class TestMiniLm(EmbedderContract):
    def make(self) -> Embedder:
        return minilm()


class TestMiniLmInBytes(EmbedderContract):
    def make(self) -> Embedder:
        return minilm("minilm-int8")


class TestGranite(EmbedderContract):
    def make(self) -> Embedder:
        return granite()


class TestMultilingual(EmbedderContract):
    def make(self) -> Embedder:
        return Multilingual(multilingual_files())


class TestWordDirections(EmbedderContract):
    def make(self) -> Embedder:
        return WordDirections()


class TestWithCache(EmbedderContract):
    def make(self) -> Embedder:
        return with_cache(WordLlama())


class TestServed(EmbedderContract):
    @pytest.fixture(autouse=True)
    def _served(self) -> Iterator[None]:
        with FaultyServer() as server:
            self.url = server.url
            yield

    def make(self) -> Embedder:
        return OpenAiEmbedder(ServedModel("m"), Transport(Endpoint(self.url, "embedder")))
