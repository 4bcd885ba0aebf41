"""One real browser for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser import launched


# No longer than this folder: while it runs, its event loop is in the way of tests that have one of their own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Return a browser without a window."""
    with launched() as started:
        yield started
