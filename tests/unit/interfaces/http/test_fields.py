"""What a request says is held to the schema that is shown of it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from whyrank.errors import ConfigError
from whyrank.interfaces.arguments import Argument
from whyrank.interfaces.http import routes
from whyrank.interfaces.http.routes import OPERATIONS, document, fitting, parameters, strictly

LIMIT = Argument("limit", routes.whole(0, 10), "How many")
TAGS = Argument("tags", routes.TAGS, "Which")
STRICT = Argument("strict", routes.YES_OR_NO, "Whether")
QUERY = Argument("query", routes.QUESTION, "What", required=True)
KNOWN = (QUERY, LIMIT, TAGS, STRICT)


@pytest.mark.parametrize(("kind", "good", "bad"), [
    (routes.whole(0, 10), [0, 10, 3.0], [-1, 11, 1.5, "3", True, None, float("inf"), float("nan")]),
    (routes.YES_OR_NO, [True, False], ["true", 1, 0, None]),
    (routes.TEXT, ["", "a", "x" * 1000], [1, None, "a\x00b", "x" * 1001, ["a"]]),
    (routes.FACT, ["a", " a\n"], ["", "  ", "\x00", "a\x00", "x" * 50_001]),
    (routes.one_of("chunk", "fact"), ["fact"], ["Fact", "", None, 1]),
    (routes.TAGS, [[], ["a"]], ["a", [1], ["a"] * 201, {"a": 1}]),
    (routes.MOMENT, ["2026-03-14", "2026-03-14T09:30", "2026-03-14T09:30:00Z", "2026-03-14T09:30:00.5+02:00"],
     ["2026-02-30", "yesterday", "14.03.2026", 1773480600, "", "2026-03-14\n", "٢٠٢٦-03-14"]),
    (routes.OWN_SCOPE, ["global", "user:42", "agent:a b"],
     ["", "everybody", "user:", "user: a", "user:a\n", "X:y", "global:y"]),
    (routes.SCOPES, ["user:42", ["user:42", "global"], "team:a/agent:b"], [[], ["x"], 7, None]),
    (routes.or_nothing(routes.whole(1, 5)), [None, 1], [0, "1"]),
    (routes.HEADER_KEY, ["k-1"], ["", "a b", "é"]),
])  # fmt: skip
def test_a_value_fits_its_schema_or_is_refused(kind: Any, good: list[object], bad: list[object]) -> None:
    for value in good:
        assert fitting(kind.schema, value) == value
    for value in bad:
        with pytest.raises(ValueError, match=r"\w"):
            fitting(kind.schema, value)


def test_what_nobody_knows_is_refused_with_what_may_have_been_meant() -> None:
    with pytest.raises(ConfigError) as refused:
        strictly("POST /v1/search", KNOWN, {"query": "a", "limitt": 1})
    assert (refused.value.message, refused.value.hint) == (
        "POST /v1/search does not know 'limitt'", "did you mean 'limit'?",
    )  # fmt: skip
    with pytest.raises(ConfigError) as refused:
        strictly("here", KNOWN, {"query": "a", "limit": "x"})
    assert refused.value.message == "limit is 'x'"
    assert refused.value.hint.startswith("give a whole number from ")
    assert refused.value.hint.endswith(")")
    assert ";" not in refused.value.hint
    with pytest.raises(ConfigError, match="needs query"):
        strictly("here", KNOWN, {})
    with pytest.raises(ConfigError, match="fixed on this server"):
        strictly("here", KNOWN, {"query": "a", "scope": "user:7"}, "it is fixed")


def test_an_address_says_the_same_as_a_body() -> None:
    read = parameters(KNOWN, b"query=green+tea%21&limit=3&tags=a&tags=b&strict=true")
    assert read == {"query": "green tea!", "limit": 3, "tags": ["a", "b"], "strict": True}
    assert strictly("here", KNOWN, read) == read
    assert parameters(KNOWN, b"query=%ff&tags=")["query"] == "\ufffd"
    with pytest.raises(ConfigError, match="limit is given twice"):
        parameters(KNOWN, b"limit=1&limit=2")
    for wrong in (b"query=a&limit=1.5", b"query=a&strict=yes", b"query=a&limit=" + b"9" * 100, b"query=a&limit="):
        with pytest.raises(ConfigError):
            strictly("here", KNOWN, parameters(KNOWN, wrong))
    with pytest.raises(ConfigError, match="too many parameters"):
        parameters(KNOWN, b"&".join([b"a=1"] * 1_001))


def test_every_route_is_described_with_an_example_that_it_accepts() -> None:
    told = document(multi_scope=True)
    for operation in OPERATIONS:
        about = told["paths"][operation.path][operation.method.lower()]
        assert about["responses"][str(operation.statuses[0])]["content"]["application/json"]["examples"]
        if operation.has_body:
            [example] = about["requestBody"]["content"]["application/json"]["examples"].values()
            assert strictly(operation.name, operation.fields, example["value"]) == example["value"]
    assert "scope" not in str(document(multi_scope=False)["paths"]["/v1/search"]["post"]["requestBody"])
    assert document(multi_scope=False, has_token=False)["security"] == []


def test_the_longest_text_is_read_in_one_go() -> None:
    # If every beginning were tried, this would not end today.
    assert not re.fullmatch(routes.FACT.schema["pattern"].removeprefix("^").removesuffix("$"), "a" * 1_000_000 + "\0")
