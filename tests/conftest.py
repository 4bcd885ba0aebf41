"""What all tests share: one thread for numpy, and a real language model for those who ask for one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

# The suite says the same of the same code every time; `make soak` thinks of new examples.
settings.register_profile("suite", derandomize=True)
settings.register_profile("sanitize", derandomize=True, deadline=None)  # `make sanitize`, where all takes longer
if "SOAK" not in os.environ:
    settings.load_profile("suite")

# With more threads for numpy's products, the workers of the suite wait for each other's spinning threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def model_url() -> Iterator[str]:
    """Return the base URL of a real OpenAI-compatible server that chats and embeds, slowly and not very well."""
    from tests.served import served

    with served() as address:
        yield address
