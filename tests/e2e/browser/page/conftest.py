"""The example memory, served: one server for all tests of this folder, and a fresh page for each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import whyrank
from tests.e2e.conftest import STORE

from .site import Site, opened, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

EXAMPLES = Path(__file__).parents[4] / "examples" / "memory"


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Ingest the example memory and serve it."""
    folder = tmp_path_factory.mktemp("served")
    with whyrank.open(folder / STORE, workspace=folder, embedding="wordllama") as memory:
        memory.ingest(EXAMPLES, base=EXAMPLES.parent)
        memory.add("Robin prefers tea", tags=["drinks"])
    with serving(folder) as started:
        yield started


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """Return the page as somebody opens it on a desk."""
    with opened(browser, site) as shown:
        yield shown
