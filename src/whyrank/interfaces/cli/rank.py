"""Fusion of result lists of other engines, from JSON, JSON lines or TREC runs, without a store."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...engine.open import rank as fuse
from ...errors import ConfigError
from ...formatting import counted
from ...ranking.external import negative_scores
from ...ranking.recipes import recipe_named
from ...types.memory import Notice
from ...types.query import Run
from ...types.results import Hit, Ranking
from .. import serialize
from ..errors import OK
from . import output

_STANDARD_INPUT = "-"
_TREC_COLUMNS = 6
_FORMS = (
    'a list is JSON, [["id", 1.5], …] or [{"id": "…", "score": 1.5}, …] or {"id": 1.5, …}; such entries line by line; '
    "or a TREC run: qid Q0 docid rank score tag"
)
_DROPPED_SHOWN = 10
_QUOTED = 60  # characters quoted of unreadable input
_TEXT_SHOWN = 100  # characters


class ListEntry(NamedTuple):
    """One entry of a list, with its query and text if the file has them."""

    id: str
    score: float
    query: str | None = None
    text: str | None = None


def rank(asked: argparse.Namespace) -> int:
    """Fuse lists, query by query."""
    lists = dict[str, list[ListEntry]]()
    for name, entries in (named for argument in asked.files for named in _read(argument)):
        if name in lists:
            raise ConfigError(
                f"two lists are called {name!r}", "name them: whyrank rank words=a/run.json near=b/run.json"
            )
        lists[name] = entries
    _check_known(asked.lower_is_better_in, lists)
    texts = {entry.id: entry.text for entries in lists.values() for entry in entries if entry.text is not None}
    if asked.texts is not None:
        texts |= _texts(asked.texts)
    rankings = {
        query: fuse(
            [_run(name, entries, query, asked) for name, entries in lists.items()],
            asked.recipe,
            weights=dict(map(_weight, asked.weight)),
            limit=asked.limit,
            k=asked.k,
            superseded=asked.superseded,
            texts=texts or None,
        )
        for query in _questions(lists)
    }
    notices = [*_negative(lists, asked), *_gathered(rankings)]
    if asked.json:
        output.say_json(_as_data(rankings, notices, asked, list(lists)))
    else:
        for query, ranking in rankings.items():
            _show(query, ranking, asked.explain)
        output.show_notices(tuple(notices))
    return OK


def _negative(lists: Mapping[str, Sequence[ListEntry]], asked: argparse.Namespace) -> Iterator[Notice]:
    for name, entries in lists.items():
        if not asked.lower_is_better and name not in asked.lower_is_better_in:
            yield from negative_scores(name, [entry.score for entry in entries])


def _check_known(named: Iterable[str], lists: Mapping[str, object]) -> None:
    for name in named:
        if name not in lists:
            raise ConfigError(f"there is no list called {name!r}", f"the lists are {', '.join(lists)}")


def _questions(lists: Mapping[str, Sequence[ListEntry]]) -> list[str | None]:
    """Return the queries of the lists, in their order; [None] if the lists name none."""
    found = list(dict.fromkeys(entry.query for entries in lists.values() for entry in entries))
    if None in found and len(found) > 1:
        without = next(name for name, entries in lists.items() if any(entry.query is None for entry in entries))
        raise ConfigError(
            f"some lists say which question they answer, and {without!r} does not", 'give its entries a "query"'
        )
    return found or [None]


def _run(name: str, entries: Iterable[ListEntry], query: str | None, asked: argparse.Namespace) -> Run:
    pairs = [(entry.id, entry.score) for entry in entries if entry.query == query]
    return Run.of(name, pairs, lower_is_better=asked.lower_is_better or name in asked.lower_is_better_in)


def _weight(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        raise ConfigError(f"--weight {text}: {number!r} is no number", "write --weight NAME=0.7") from None


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(argument: str) -> Iterator[tuple[str, list[ListEntry]]]:
    """Read the lists of a file, named after the file, by NAME=FILE, or by the keys of its JSON."""
    name, text = _named(argument)
    try:
        for inner, entries in _lists_in(text):
            yield inner or name, list(entries)
    except ValueError as error:
        raise ConfigError(f"{argument} is no list: {error}", _FORMS) from error


def _named(argument: str) -> tuple[str, str]:
    if argument == _STANDARD_INPUT:
        return "stdin", _decoded(sys.stdin.buffer.read(), "standard input")
    name, equals, path = argument.partition("=")
    if not equals or Path(argument).exists():
        name, path = Path(argument).stem, argument
    return name, _decoded(Path(path).read_bytes(), path)


def _decoded(raw: bytes, place: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{place} is no text: {error.reason}", _FORMS) from error


def _lists_in(text: str) -> Iterator[tuple[str, Iterable[ListEntry]]]:
    """Yield the lists of a text, each with its own name if it has one."""
    if not text.lstrip().startswith(("[", "{")):
        yield "", [_trec(number, line) for number, line in _lines(text)]
        return
    data = _json(text)
    if not isinstance(data, dict):
        yield "", [_entry(f"entry {number}", item) for number, item in enumerate(data, 1)]
    elif isinstance(data.get("hits"), list):  # output of `whyrank search --json`
        yield "", [_entry(f"hit {number}", item) for number, item in enumerate(data["hits"], 1)]
    elif all(isinstance(value, list) for value in data.values()):
        for name, items in data.items():
            yield name, [_entry(f"entry {number} of {name!r}", item) for number, item in enumerate(items, 1)]
    else:
        yield "", [_entry(repr(identity), [identity, score]) for identity, score in data.items()]


def _json(text: str) -> Any:
    """Parse JSON or JSON lines."""
    try:
        data = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:
        if "\n" not in text.strip():
            raise
        return [_line(number, line) for number, line in _lines(text)]
    is_one_entry = isinstance(data, dict) and {"id", "score"} <= data.keys()
    is_one_pair = isinstance(data, list) and len(data) == 2 and isinstance(data[0], str)
    return [data] if is_one_entry or is_one_pair else data


def _line(number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"line {number}: {error}") from None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())


def _entry(where: str, item: Any) -> ListEntry:
    if isinstance(item, dict):
        identity, score, query, text = (item.get(key) for key in ("id", "score", "query", "text"))
    elif isinstance(item, list) and len(item) == 2:
        (identity, score), query, text = item, None, None
    else:
        raise ValueError(f"{where} is {_short(item)}")
    if isinstance(identity, bool) or not isinstance(identity, str | int) or identity == "":
        raise ValueError(f"{where} has no id")
    return ListEntry(
        str(identity),
        _score(where, score),
        None if query is None else str(query),
        text if isinstance(text, str) and text else None,
    )


def _score(where: str, score: object) -> float:
    if isinstance(score, bool) or not isinstance(score, str | int | float):
        raise ValueError(f"{where} has no score")
    try:
        number = float(score)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{where} has the score {score!r}, which is no finite number")
    return number


def _trec(number: int, line: str) -> ListEntry:
    columns = line.split()
    if len(columns) != _TREC_COLUMNS:
        raise ValueError(f"line {number} has {counted(len(columns), 'column')}, and a TREC run {_TREC_COLUMNS}")
    query, _, identity, _, score, _ = columns
    return ListEntry(identity, _score(f"line {number}", score), query)


def _short(item: object) -> str:
    shown = json.dumps(item, ensure_ascii=False)
    return shown if len(shown) <= _QUOTED else f"{shown[:_QUOTED]}…"


def _texts(place: str) -> dict[str, str]:
    """Read texts by id: a JSON object, or entries with an id and a text."""
    try:
        data = _json(_decoded(Path(place).read_bytes(), place))
        if not isinstance(data, dict):
            data = {str(item["id"]): item["text"] for item in data}
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"{place} holds no texts by id: {error}", _TEXTS) from error
    for identity, text in data.items():
        if not isinstance(text, str):
            raise ConfigError(f"{place}: the text of {identity!r} is {_short(text)}", _TEXTS)
    return data


_TEXTS = 'give {"id": "text", …}, or entries {"id": "…", "text": "…"}'


# -- output ------------------------------------------------------------------------------------------------------------


def _gathered(rankings: Mapping[str | None, Ranking]) -> Iterator[Notice]:
    """Yield the notices; for several queries each kind once, with a count of the others."""
    said: dict[str, list[Notice]] = {}
    for ranking in rankings.values():
        for notice in ranking.notices:
            said.setdefault(notice.code if len(rankings) > 1 else notice.message, []).append(notice)
    for notices in said.values():
        first = notices[0]
        others = f" ({counted(len(notices) - 1, 'further notice')} of this kind)" if len(notices) > 1 else ""
        yield Notice(first.code, f"{first.message}{others}")


def _as_data(
    rankings: Mapping[str | None, Ranking], notices: Sequence[Notice], asked: argparse.Namespace, runs: list[str]
) -> dict[str, Any]:
    data: dict[str, Any] = {
        "recipe": recipe_named(asked.recipe).name,
        "runs": runs,
        "notices": serialize.notices(notices),
        "hits": [
            {"query": query, "rank": place, **_hit(hit, asked.explain)}
            for query, ranking in rankings.items()
            for place, hit in enumerate(ranking.hits, 1)
        ],
        "format": serialize.FORMAT,
    }
    if asked.explain:
        data["dropped"] = [
            {"query": query, **_hit(hit, True)} for query, ranking in rankings.items() for hit in ranking.dropped
        ]
    return data


def _hit(hit: Hit, explain: bool) -> dict[str, Any]:
    trail = {"trail": [serialize.step(step) for step in hit.trail]} if explain else {}
    return {"id": hit.id, "score": hit.score, "tier": hit.tier, "text": hit.memory.text or None, **trail}


def _show(query: str | None, ranking: Ranking, explain: bool) -> None:
    if query is not None:
        output.say(output.bold(query))
    if not ranking.hits:
        output.say("no candidate is left")
    for place, hit in enumerate(ranking.hits, 1):
        output.say(f"{place:>2}. {output.bold(hit.id)}  {output.dim(f'score {hit.score:.4f}')}")
        if hit.memory.text:
            output.say("    " + " ".join(hit.memory.text.split())[:_TEXT_SHOWN])
        if explain:
            for line in hit.explain().splitlines():
                output.say("      " + output.dim(line))
    if explain:
        for hit in ranking.dropped[:_DROPPED_SHOWN]:
            last = hit.trail[-1]
            output.say(output.dim(f"  – {hit.id}  score {hit.score:.4f}  {last.stage}: {last.why}"))
