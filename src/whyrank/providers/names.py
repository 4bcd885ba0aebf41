"""The names of embedding models, as users type them, and the prompts before texts and queries."""

from __future__ import annotations

import hashlib
import json
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

FETCHED = ("minilm", "minilm-int8", "granite", "bge-small")  # fetched once, known by pinned hashes
MULTILINGUAL = "multilingual"  # fetched once too, and read by numpy alone
SERVED = "openai"  # a model behind an OpenAI-compatible server, made from settings
DEFAULT = "wordllama"  # part of the installation
NAMES = (DEFAULT, *FETCHED, MULTILINGUAL, SERVED, "none")
# Any other model in ONNX: of Hugging Face, perhaps of one revision, or copied from a folder.
HUB_NAME = re.compile(r"hf:(\w[\w.-]*/\w[\w.-]*)(?:@(\w[\w.-]*))?", re.ASCII)
FOLDER_NAME = re.compile(r"folder:(\w[\w.-]*)", re.ASCII)
_NO_LETTER = re.compile(r"[^\w.-]+", re.ASCII)


def check_name(name: str) -> None:
    """Refuse a name that no embedder can have, with a suggestion."""
    if name in NAMES or is_recorded_name(name):
        return
    if name.startswith(("hf:", "folder:")):
        raise ConfigError(
            f"{name!r} names no model", "it must be hf:ORG/MODEL or hf:ORG/MODEL@REVISION, or the path of a folder"
        )
    if is_path(name):
        raise ConfigError(f"{name!r} is a path", f"`whyrank model use {name}` installs the model of a folder")
    close = get_close_matches(name, NAMES, n=1)
    meant = f"did you mean {close[0]!r}?" if close else f"the embedders are {', '.join(NAMES)}, hf:ORG/MODEL, ./FOLDER"
    raise ConfigError(f"there is no embedder {name!r}", meant)


def is_recorded_name(name: str) -> bool:
    """Check for the name of a model from the hub or from a folder, which a record describes."""
    return bool(HUB_NAME.fullmatch(name) or FOLDER_NAME.fullmatch(name))


def is_path(name: str) -> bool:
    """Distinguish a folder path from a name: it has a separator, or is the current folder."""
    return not is_recorded_name(name) and not name.startswith("hf:") and ("/" in name or "\\" in name or name == ".")


def folder_name(folder: Path) -> str:
    """Return the name of a model from a folder."""
    return f"folder:{_NO_LETTER.sub('-', folder.resolve().name).strip('.-') or 'model'}"


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
            close = get_close_matches(given, PROMPTS, n=1)
            listed = f"must be one of {', '.join(PROMPTS)}, or a pair of texts"
            raise ValueError(f"did you mean {close[0]!r}?" if close else listed) from None
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
        raise ValueError('must be a name or a pair of texts: ["before questions ", "before texts "]')
    if any(len(part) > MOST_LETTERS or "\0" in part for part in pair):
        raise ValueError(f"must contain texts of at most {MOST_LETTERS} letters")
    return pair[0], pair[1]


# Weight of the vector vote against the keyword vote, measured over all visible sets (docs/decisions).
TRANSFORMER_WEIGHT = 0.5
STATIC_WEIGHT = 0.35
UNKNOWN_LANGUAGE_WEIGHT = 0.25
