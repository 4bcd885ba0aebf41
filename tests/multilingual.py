"""USE-multilingual-3 for the tests: fetched once per machine, kept beside the packages."""

from __future__ import annotations

from functools import cache

from tests.minilm import MODELS
from whyrank.providers.multilingual import ModelFolder, install


@cache
def installed() -> ModelFolder:
    """Return the model, ready to be loaded."""
    files = ModelFolder.below(MODELS)
    install(files)
    return files
