"""One line for each request, whatever its path."""

from __future__ import annotations

import io
import json

from whyrank.interfaces.http.observability import Log


def test_a_path_cannot_forge_a_line() -> None:
    out = io.StringIO()
    Log(out, as_json=False).request("GET", b"/a\nwhyrank: forged\x1b[31m\xff", 404, 0.00123, "id")
    assert "\x1b" not in out.getvalue()
    assert out.getvalue().endswith("404 1.2 ms id\n")
    assert "\\xff" in out.getvalue()
    assert out.getvalue().count("\n") == 1


def test_a_line_may_be_json() -> None:
    out = io.StringIO()
    Log(out, as_json=True).request("GET", b"/v1/status", 200, 0.5, "id")
    told = json.loads(out.getvalue())
    assert (told["event"], told["ms"], told["request_id"], told["level"]) == ("request", 500.0, "id", "info")
