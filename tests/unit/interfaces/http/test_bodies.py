"""Bodies are read up to a limit, and only if they are JSON that says one thing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from whyrank.interfaces.auth import Left
from whyrank.interfaces.errors import BadRequest
from whyrank.interfaces.http.routes import MAX_BODY_BYTES, read_body, read_json

if TYPE_CHECKING:
    from collections.abc import MutableMapping


def read(messages: list[MutableMapping[str, Any]], length: str | None = None) -> tuple[bytes, int]:
    left = list(messages)

    async def receive() -> MutableMapping[str, Any]:
        return left.pop(0)

    return asyncio.run(read_body(receive, length)), len(left)


def part(body: bytes, more: bool) -> MutableMapping[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def test_a_body_is_all_its_parts() -> None:
    assert read([part(b"a", True), part(b"b", False)]) == (b"ab", 0)
    assert read([part(b"x" * MAX_BODY_BYTES, False)])[0] == b"x" * MAX_BODY_BYTES


def test_one_that_is_too_long_is_refused_as_soon_as_it_is_known() -> None:
    for messages, length in (
        ([], str(MAX_BODY_BYTES + 1)),
        ([], "9" * 400),
        ([part(b"x" * MAX_BODY_BYTES, True), part(b"x", True)], None),
    ):
        with pytest.raises(BadRequest) as refused:
            read(messages, length)
        assert (refused.value.status, refused.value.code) == (413, "too-long")


def test_whoever_has_left_is_not_waited_for() -> None:
    with pytest.raises(Left):
        read([part(b"a", True), {"type": "http.disconnect"}])


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"']
)
def test_json_is_read(kind: str) -> None:
    assert read_json(kind, None, '{"query": "茶"}'.encode()) == {"query": "茶"}


@pytest.mark.parametrize(("body", "said"), [
    (b"{", "Expecting property name"), (b'{"a": NaN}', "NaN is not a number"),
    (b'{"a": -Infinity}', "-Infinity is not a number"),
    (b'{"a": 1, "a": 2}', "a name occurs twice in it"), (b'{"a": {"b": 1, "b": 2}}', "twice"),
    (b"[" * 100_000, "nested too deeply"), (b"\xff", "utf-8"), (b"", "Expecting value"),
])  # fmt: skip
def test_what_is_no_json_is_refused_with_the_reason(body: bytes, said: str) -> None:
    with pytest.raises(BadRequest, match=said) as refused:
        read_json("application/json", None, body)
    assert refused.value.status == 400
