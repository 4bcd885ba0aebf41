"""Kept results, written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whyrank.evaluation.measures import MAIN, MEASURES
from whyrank.evaluation.results import FailureDocument, Kept, KeptQuery, KeptSet, Story

if TYPE_CHECKING:
    from collections.abc import Mapping


def query(identity: str, values: Mapping[str, float], **changed: Any) -> KeptQuery:
    """Return a query; `values` is the main measure of each line, and the others are the same."""
    given: dict[str, Any] = {
        "id": identity,
        "text": f"text of {identity}",
        "kind": "",
        "scope": "global",
        "expected": {"d1": 1},
        "evidence": 0.5,
        "verdict": "found",
        "ranks": {line: 1 if value else None for line, value in values.items()},
        "figures": {line: {measure.name: value for measure in MEASURES} for line, value in values.items()},
    }
    return KeptQuery(**{**given, **changed})


def results(
    values: Mapping[str, Mapping[str, float]], *, recipes: tuple[str, ...] = ("default",), **changed: Any
) -> Kept:
    """Return kept results of one set: for each query the main measure of each line; the ceiling is 1."""
    queries = tuple(query(identity, {**lines, "ceiling": 1.0}) for identity, lines in values.items())
    given: dict[str, Any] = {
        "name": "small",
        "digest": "d",
        "recipes": recipes,
        "lines": (*next(iter(values.values())), "ceiling"),
        "measures": tuple(measure.name for measure in MEASURES),
        "queries": queries,
        "worst": (),
        "trails": 3,
        "broken": 0,
        "notices": {},
    }
    return Kept("1.0", "2026-01-01", {"embedding": "none"}, (KeptSet(**{**given, **changed}),))


def story(identity: str, text: str) -> Story:
    """Return a story in which every text is the one given."""
    told = FailureDocument(text, 1, 7, text, text, f"= fusion: 0.5000  {text}")
    return Story(identity, told._replace(rank=1, gain=0), told, text)


__all__ = ["MAIN", "query", "results", "story"]
