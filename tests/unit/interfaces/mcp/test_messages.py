"""Messages that do not parse: mended where that can be done, else refused under the id their client waits for."""

from __future__ import annotations

import json

import pytest

from whyrank.interfaces.mcp.transports import MAX_NESTING, REPAIRED, Slip, identity_in, message_in

CALL = '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": %s}'


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (r'{"q": "a\ud83d"}', "a\ufffd"),
        (r'{"q": "\ude00a"}', "\ufffda"),
        (r'{"q": "\ud83d\ud83d\ude00"}', "\ufffd\U0001f600"),
        (r'{"q": "\uD83D"}', "\ufffd"),
    ],
)
def test_half_of_a_pair_becomes_the_replacement_character_and_marks_the_call(sent: str, read: str) -> None:
    message = message_in(CALL % sent)
    assert isinstance(message, bytes)
    assert json.loads(message)["params"] == {"q": read, "_meta": {REPAIRED: True}}


def test_a_whole_pair_marks_nothing() -> None:
    message = message_in(CALL % r'{"q": "\ud83d\ude00"}')
    assert isinstance(message, bytes)
    assert json.loads(message)["params"] == {"q": "\U0001f600"}


def test_surrogates_as_raw_bytes_are_mended_too() -> None:
    message = message_in((CALL % '{"q": "a?"}').encode().replace(b"?", b"\xed\xa0\xbd"))
    assert isinstance(message, bytes)
    assert json.loads(message)["params"] == {"q": "a\ufffd", "_meta": {REPAIRED: True}}


@pytest.mark.parametrize(
    "params",
    [
        "[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1),
        "[" * 100_000,
        "1" * 5_000,  # Python refuses to read numbers of more than 4,300 digits
        '{"q": "a}',
        '{"q": \\}',
        "5",
    ],
)
def test_what_cannot_be_read_is_refused_under_its_id(params: str) -> None:
    refused = message_in(CALL % params)
    assert isinstance(refused, Slip)
    assert refused.answer().id == 7


def test_invalid_utf8_is_refused_under_its_id() -> None:
    refused = message_in((CALL % '{"q": "?"}').encode().replace(b"?", b"\xff"))
    assert isinstance(refused, Slip)
    assert refused.answer().id == 7


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ('{"id": 7, ', 7),
        ('{"id": "a-7", ', "a-7"),
        ('{"method": "id", "id": 8, ', 8),  # a value that is called id is none
        ('{"params": {"id": 1}, "id": 9, ', 9),  # nor is one further down
        ('{"params": "\\"id\\": 1", "id": -3, ', -3),
        ('{"id": 1.5, ', None),
        ('{"id": null, ', None),
        ('[{"id": 1}', None),
        ('{"id": "\\ud83d", ', None),
        ("", None),
    ],
)
def test_an_id_is_read_from_the_top_level_alone(text: str, identity: str | int | None) -> None:
    assert identity_in(text) == identity


def test_a_text_of_escaped_quotes_is_read_in_one_pass() -> None:
    # Read again from every quote this would take 10^12 steps.
    assert identity_in('{"q": "' + '\\"' * 1_000_000) is None
