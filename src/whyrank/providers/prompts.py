"""Prompts prefixed to texts and queries, by model."""

from __future__ import annotations

import hashlib
import json
from difflib import get_close_matches
from typing import Any, NamedTuple

MOST_LETTERS = 1_000  # a prompt is a line, not a text


class Prompts(NamedTuple):
    """Prefixes of queries and of texts; the name is part of the space's name."""

    name: str
    query: str = ""
    passage: str = ""


def _task(name: str, task: str) -> Prompts:
    """Return one prompt for both sides: with different ones these models compare worse."""
    prompt = f"task: {task} | query: "
    return Prompts(name, prompt, prompt)


NO_PROMPT = Prompts("none")
PROMPTS: dict[str, Prompts] = {
    prompts.name: prompts
    for prompts in (
        NO_PROMPT,
        Prompts("query-passage", "query: ", "passage: "),
        Prompts("search", "search_query: ", "search_document: "),
        Prompts("bge", "Represent this sentence for searching relevant passages: "),
        Prompts("gemma-search", "task: search result | query: ", "title: none | text: "),
        _task("sentence-similarity", "sentence similarity"),
        _task("narrative-similarity", "narrative similarity"),
        _task("romantic-scene-similarity", "romantic scene similarity"),
        _task("character-relationship", "character relationship"),
    )
}


def canonical_prompt(given: Any) -> str:
    """Return the canonical form of a prompt setting, a name or the JSON of a pair, or raise ValueError."""
    if isinstance(given, str) and given in PROMPTS:
        return given
    query, passage = _pair(given)
    return json.dumps([query, passage], ensure_ascii=False)


def prompts_of(setting: str) -> Prompts:
    """Return the prompts of a setting; a custom pair is named by its hash, which makes a separate space."""
    if setting in PROMPTS:
        return PROMPTS[setting]
    query, passage = _pair(setting)
    digest = hashlib.sha256(json.dumps([query, passage]).encode()).hexdigest()
    return Prompts(f"own-{digest[:12]}", query, passage)


def _pair(given: Any) -> tuple[str, str]:
    pair = given
    if isinstance(given, str):
        try:
            pair = json.loads(given)
        except (ValueError, RecursionError):
            raise ValueError(_unknown(given)) from None
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
        raise ValueError('must be a name or a pair of texts: ["before questions ", "before texts "]')
    if any(len(part) > MOST_LETTERS or "\0" in part for part in pair):
        raise ValueError(f"must hold texts of at most {MOST_LETTERS} letters")
    return pair[0], pair[1]


def _unknown(given: str) -> str:
    close = get_close_matches(given, PROMPTS, n=1)
    return f"did you mean {close[0]!r}?" if close else f"must be one of {', '.join(PROMPTS)}, or a pair of texts"
