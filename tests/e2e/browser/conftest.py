"""One real browser for all tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser import launched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


# No longer than this folder: while it runs, its event loop is in the way of tests that have one of their own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Return a browser without a window."""
    with launched() as started:
        yield started
