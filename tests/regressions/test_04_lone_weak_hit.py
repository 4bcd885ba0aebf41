"""Failure 4: batch-max makes one lone, weak keyword hit a 1.0."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from whyrank.types.trail import part_of

if TYPE_CHECKING:
    from tests.regressions.conftest import OpenEngine


def test_the_score_orders_and_the_confidence_speaks(open_engine: OpenEngine) -> None:
    engine = open_engine(
        "the printer stands in the cellar", "lunch is at noon", "the cat sleeps on the sofa", embedding="none"
    )
    results = engine.search("quarterly revenue forecast spreadsheet for the printer division")
    lone = results[0]
    keyword = part_of(lone.trail, "keyword")
    assert keyword is not None
    assert keyword.best == keyword.raw  # the best of its batch …
    # … of six words one is held by one of three memories, five by none: ln(1 + 2.5/1.5) + 5 · ln(1 + 3.5/0.5), halved,
    # and 1.3 times as much is asked for among so few memories
    wanted = 1.3 * (math.log(1 + 2.5 / 1.5) + 5 * math.log(1 + 3.5 / 0.5)) / 2
    assert keyword.reference == pytest.approx(wanted)
    assert lone.score == pytest.approx((keyword.raw or 0.0) / wanted)
    assert lone.score < 0.2
    assert keyword.coverage is not None
    assert 0 < keyword.coverage < 0.2  # one word of six matched
    assert lone.confidence is not None
    assert lone.confidence < 0.5  # … and the confidence says weak
    assert results.verdict in ("weak", "nothing")
