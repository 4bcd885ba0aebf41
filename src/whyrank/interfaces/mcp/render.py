"""Text form of tool results for agents: whyrank's own statements, and stored text fenced as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...engine.facts import Added
from ...types.memory import Memory, Notice
from ...types.results import Hit, Results
from ..errors import AT_MCP, at_interface
from ..sanitize import Quoted, about, fenced, one_line
from ..serialize import UNREMARKABLE

_QUERY_CHARACTERS = 120
_VERDICTS = {
    "found": "{count} for {query}, best first.",
    "weak": "Only weak matches for {query}: check before you rely on them. {count}, best first.",
    "nothing": "Nothing relevant is stored for {query}: say so rather than guess.",
}
_EMPTY_PAGE = frozenset({"past-the-end", "limit-zero"})  # there are results, but none on this page


def results(found: Results, offset: int) -> str:
    """Render search results: the verdict first, then the memories."""
    count = f"{len(found.hits)} {'memory' if len(found.hits) == 1 else 'memories'}"
    query = f"“{one_line(found.query, _QUERY_CHARACTERS)}”"
    verdict = _VERDICTS[found.verdict].format(count=count, query=query)
    if not found.hits:
        if found.verdict == "nothing":
            return verdict
        ended = next((notice.message for notice in found.notices if notice.code in _EMPTY_PAGE), "")
        return f"No results on this page for {query}: {ended}." if ended else f"No results for {query}."
    nearest = " The nearest all the same:" if found.verdict == "nothing" else ""
    quotes = [_quoted(rank, hit) for rank, hit in enumerate(found.hits, offset + 1)]
    return f"{verdict}{nearest}\n{fenced(quotes)}"


def _quoted(rank: int, hit: Hit) -> Quoted:
    confidence = "" if hit.confidence is None else f"{hit.confidence:.0%}"
    return Quoted(hit.memory.text, about(hit.memory, rank=str(rank), confidence=confidence))


def parts(shown: Sequence[tuple[Memory, str]], after: int | None) -> str:
    """Render memories, whole or in part with the offset of the next part."""
    if not shown:
        return "There is nothing from that offset on."
    more = "" if after is None else f"\n\nThere is more: call memory_get again with offset {after}."
    return fenced([Quoted(text, about(memory)) for memory, text in shown]) + more


def recent(memories: Sequence[Memory]) -> str:
    """Render a list of memories."""
    return fenced([Quoted(one.text, about(one)) for one in memories]) if memories else "Nothing is stored yet."


_OUTCOMES = {
    "stored": "is stored in",
    "known": "says that already, in",
    "replacing": "said that already, in",
    "revived": "is valid again in",
    "merged": "says almost that; tags, importance and lifetime of this one were added to it, in",
}


def stored(done: Added) -> str:
    """Render the outcome of a stored fact, and its near-duplicates."""
    memory = done.memory
    replaced = f", in place of {memory.supersedes}" if memory.supersedes else ""
    others = ", ".join(one.memory.id for one in done.near if one.memory.id != memory.id)
    near = f" Almost the same say: {others}; forget or replace what is not needed." if others else ""
    notices = "".join(f" Notice: {at_interface(AT_MCP, notice.message)}." for notice in done.notices)
    return f"{memory.id} {_OUTCOMES[done.outcome]} {memory.scope}{replaced}.{near}{notices}"


def gone(memories: Sequence[Memory]) -> str:
    """Render the removed ids, and the files whose text returns with the next ingest of a change."""
    said = f"Forgotten: {', '.join(memory.id for memory in memories)}."
    files = dict.fromkeys(memory.source.path for memory in memories if memory.source and memory.source.path)
    if not files:
        return said
    named = ", ".join(one_line(path) for path in files)
    return f"{said} The text still stands in {named} and comes back when that file changes and is ingested again."


def explained(told: str) -> str:
    """Render an explanation, fenced because it quotes words and names of memories."""
    return fenced([Quoted(told, {"kind": "explanation"})])


def with_notices(text: str, notices: Iterable[Notice]) -> str:
    """Append the notices of an answer."""
    said = [one_line(notice.message, 400) for notice in notices if notice.code not in UNREMARKABLE]
    return "\n".join([text, *(f"notice: {message}" for message in said if message not in text)])
