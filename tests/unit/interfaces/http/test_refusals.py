"""How often may be asked for what costs much: a sliding window, and when to come back."""

from __future__ import annotations

import pytest

from whyrank.interfaces.errors import BadRequest
from whyrank.interfaces.http.app import RateLimit, refused


def test_so_many_are_let_through_in_any_span_and_the_next_hears_when() -> None:
    now = [0.0]
    limit = RateLimit(2, 60.0, lambda: now[0])
    limit.check("purges", "wait")
    now[0] = 20.0
    limit.check("purges", "wait")
    now[0] = 50.5
    with pytest.raises(BadRequest) as caught:
        limit.check("purges", "wait")
    assert caught.value.status == 429
    assert refused(caught.value, "id").headers["retry-after"] == "10"  # the first leaves the window after 9.5 s
    now[0] = 60.0
    limit.check("purges", "wait")
    with pytest.raises(BadRequest):
        limit.check("purges", "wait")  # the one of second 20 is still in it
