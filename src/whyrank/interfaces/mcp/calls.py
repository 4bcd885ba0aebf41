"""What the tools do: each takes what was understood of its arguments, asks the engine, answers as data and as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...analysis.text import CHARACTERS_PER_TOKEN, estimated_tokens
from ...arguments import MAX_IDS, MAX_PATTERN_CHARACTERS
from ...engine import Engine
from ...errors import ConfigError, NotFound
from ...places import literally
from ...types import Memory
from .. import fact_shapes, shapes
from ..door import Door, Values, timeout_of
from . import texts

PART_TOKENS = 2_000  # of a long text in one answer
_CHUNKS_OF_A_FILE = 10_000
MEMORY_ADDRESS = "whyrank://memory/"
_LINES = re.compile(r"(?P<file>.+):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?", re.DOTALL)


class Answer(NamedTuple):
    """One answer, as data by the documented shapes and as text to be read."""

    data: dict[str, Any]
    text: str


_FILTERS = ("kind", "tags", "path", "since", "before", "as_of", "include_superseded")


def search(door: Door, values: Values) -> Answer:
    """Find memories."""
    given = {key: values[key] for key in ("limit", "offset", "strict", "max_tokens", *_FILTERS) if key in values}
    engine = door.desk.reading()
    found = engine.search(values["query"], scope=door.seen(values), timeout_ms=timeout_of(engine, values), **given)
    return Answer(shapes.results(found), texts.results(found, values.get("offset", 0)))


def get(door: Door, values: Values) -> Answer:
    """Read memories whole, or the next part of a long one."""
    engine, seen = door.desk.reading(), door.seen(values)
    memories = named(engine, values["id"], seen)
    altered = engine.text_notices(memories, scope=seen)
    offset, tokens = values.get("offset", 0), values.get("max_tokens", PART_TOKENS)
    if offset < 0 or tokens < 1:
        raise ConfigError(f"offset is {offset}, max_tokens {tokens}", "give offset 0 or more, max_tokens 1 or more")
    parts, after = parts_of(memories, offset, tokens)
    data = {
        "memories": [
            {**shapes.memory(part.memory), "text": part.text, "offset": part.start, "characters": len(part.memory.text)}
            for part in parts
        ],
        "next": after,
        "notices": shapes.notices(altered),
        "format": shapes.FORMAT,
    }
    return Answer(data, texts.parts([(part.memory, part.text) for part in parts], after))


def add(door: Door, values: Values) -> Answer:
    """Store a fact."""
    fields = {key: value for key, value in values.items() if key not in ("text", "scope")}
    engine = door.desk.writing()
    done = engine.remember(values["text"], scope=door.home_for(values, engine), trust="agent", **fields)
    return Answer({"memories": [fact_shapes.added(done)], "format": shapes.FORMAT}, texts.stored(done))


def forget(door: Door, values: Values) -> Answer:
    """Remove memories by their exact ids, all of them or none; only what is the caller's own."""
    engine, seen = door.desk.reading(), door.seen(values)
    if len(values["ids"]) > MAX_IDS:
        raise ConfigError(f"there are {len(values['ids']):,} ids", f"give at most {MAX_IDS:,} at once")
    memories = [engine.get(one, scope=seen) for one in dict.fromkeys(map(_identity, values["ids"]))]
    if not memories:
        raise ConfigError("no memory was named", "give ids as memory_search shows them")
    door.refuse_others(memories, values)
    engine.forget(*(memory.id for memory in memories), scope=seen)
    return Answer({"forgotten": [memory.id for memory in memories], "format": shapes.FORMAT}, texts.gone(memories))


def why(door: Door, values: Values) -> Answer:
    """Explain a place, an absence, or why not the other way round."""
    engine, identity = door.desk.reading(), _identity(values["id"])
    known: dict[str, Any] = {"scope": door.seen(values), "limit": values.get("limit")}
    if "over" not in values:
        placed = engine.why(values["query"], identity, **known)
        return Answer(shapes.why(placed), texts.explained(str(placed)))
    contrast = engine.why(values["query"], identity, over=_identity(values["over"]), **known)
    return Answer(shapes.contrast(contrast), texts.explained(str(contrast)))


def named(engine: Engine, wanted: str, scopes: Sequence[str]) -> list[Memory]:
    """Return the memory with this id, or the chunks of a file, all of them or those that reach into the lines named."""
    identity = _identity(wanted)
    try:
        return [engine.get(identity, scope=scopes)]
    except NotFound:
        chunks = _chunks(engine, identity, scopes)
    lines = _LINES.fullmatch(identity)
    if not chunks and lines is not None:
        first, last = sorted((int(lines["first"]), int(lines["last"] or lines["first"])))
        chunks = [chunk for chunk in _chunks(engine, lines["file"], scopes) if _reaches(chunk, first, last)]
    if not chunks:
        raise NotFound(f"there is no memory {identity!r}")
    return chunks


def _chunks(engine: Engine, path: str, scopes: Sequence[str]) -> list[Memory]:
    pattern = literally(path.removeprefix("./"))
    if not path or len(pattern) > MAX_PATTERN_CHARACTERS:
        return []
    return engine.list(path=pattern, kind="chunk", scope=scopes, limit=_CHUNKS_OF_A_FILE)


def _reaches(chunk: Memory, first: int, last: int) -> bool:
    place = chunk.source
    return place is not None and place.start_line <= last and first <= place.end_line


def _identity(wanted: str) -> str:
    return wanted.strip().removeprefix(MEMORY_ADDRESS)


class Part(NamedTuple):
    """What one answer shows of a memory: its text from a character on."""

    memory: Memory
    start: int
    text: str


def parts_of(memories: Sequence[Memory], offset: int, tokens: int) -> tuple[list[Part], int | None]:
    """Cut so many tokens out of texts that stand one behind the other; also say where the next part begins."""
    shown, passed, left = list[Part](), 0, tokens
    for memory in memories:
        start = max(0, offset - passed)
        passed += len(memory.text)
        if start and start >= len(memory.text):
            continue
        if left < 1:
            return shown, passed - len(memory.text) + start
        text = _fitting(memory.text[start : start + left * CHARACTERS_PER_TOKEN], left)
        shown.append(Part(memory, start, text))
        left -= estimated_tokens(text)
        if start + len(text) < len(memory.text):
            return shown, passed - len(memory.text) + start + len(text)
    return shown, None


def _fitting(text: str, tokens: int) -> str:
    """Cut a text further where its script has a token to every letter."""
    return text if estimated_tokens(text) <= tokens else text[:tokens]
