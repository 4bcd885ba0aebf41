"""What a schema cannot say, told to the tool that makes requests of schemas: when an advanced query can be read."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import schemathesis

from whyrank.analysis.query import asked_for
from whyrank.errors import BadQuery
from whyrank.interfaces.asgi_server import MAX_HEAD_BYTES


def _is_readable(asked: Any) -> bool:
    if not isinstance(asked, dict) or asked.get("syntax") != "advanced" or not isinstance(asked.get("query"), str):
        return True
    try:
        asked_for(asked["query"])
    except BadQuery:
        return False
    return True


@schemathesis.hook
def filter_body(context: object, body: Any) -> bool:
    return _is_readable(body)


@schemathesis.hook
def filter_query(context: object, query: Any) -> bool:
    # A longer address is refused before it is read, and not for what it says.
    return _is_readable(query) and len(urlencode(query or {}, doseq=True, errors="replace")) < MAX_HEAD_BYTES // 2
