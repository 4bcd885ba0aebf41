"""Verbs for search, ingest, status and settings, each a thin layer over the engine."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...analysis.normalize import is_clean
from ...config import load as settings
from ...config.settings import SETTINGS, setting_named
from ...engine.arguments import MAX_PATTERN_CHARACTERS
from ...engine.open import open_engine
from ...engine.open import rank as fuse
from ...errors import ConfigError, NotFound, StoreError
from ...formatting import counted, on_one_line
from ...ingest.walk import stored_name, stored_pattern
from ...ranking.external import negative_scores
from ...ranking.recipes import RECIPES, recipe_named
from ...search.explain import Why
from ...types.memory import Notice
from ...types.query import literally
from ...types.results import Run
from .. import serialize
from ..errors import FORMAT, OK, PARTLY_READ
from . import output
from .output import settings_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ...engine.engine import Engine
    from ...protocols import Embedder
    from ...search.explain import Contrast
    from ...types.results import Hit, Ranking

_TOLD_OTHERWISE = frozenset({"format", "calibrations", "space", "spaces", "roles", "backlog", "without_vector"})
_NOTHING_STORED = "there is no memory here; `whyrank add TEXT` and `whyrank ingest PATH` store some"
_TAKE_PATHS = frozenset({"why", "pin"})  # verbs that accept the path of a file for any of its memories


def ingest(asked: argparse.Namespace) -> int:
    """Index files and print the report."""
    with writable(asked) as engine, output.progress("ingest", quiet=asked.json) as tick:
        base = settings_of(asked).notes
        report = engine.ingest(*asked.paths, scope=asked.scope, dry_run=asked.dry_run, base=base, progress=tick)
    if asked.json:
        output.say_json(serialize.report(report))
    else:
        output.show_ingest(report)
    return PARTLY_READ.exit_status if report.failed else OK


@contextmanager
def writable(asked: argparse.Namespace) -> Iterator[Engine]:
    """Open or create the store; a dry run without a store uses a temporary one."""
    if not asked.dry_run or settings.is_there(settings_of(asked).store):
        with open_or_make(asked) as engine:
            yield engine
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="whyrank-dry-run-") as place:
        store = Path(place) / "memory.db"
        with open_engine(store, workspace=asked.workspace, embedding=asked.embedding) as engine:
            yield engine


def search(asked: argparse.Namespace) -> int:
    """Find memories."""
    with open_existing(asked) as engine:
        options = serialize.fields(asked, "offset strict min_confidence max_tokens timeout_ms")
        answer = engine.search(" ".join(asked.query), **options, **_question(asked, engine))
        # Dropped hits are read from the store when they are printed.
        if asked.json:
            output.say_json(serialize.results(answer, explain=asked.explain))
        else:
            output.show_results(answer, explain=asked.explain, offset=asked.offset)
    return OK


def why(asked: argparse.Namespace) -> int:
    """Explain a rank, an absence, or a recall."""
    if asked.recall is not None:
        return _why_recalled(asked)
    if asked.query is None or asked.id is None:
        raise ConfigError("a question and a memory are needed", "whyrank why QUERY ID, or whyrank why --recall ID")
    with open_existing(asked) as engine:
        wanted = name_of(engine, asked.id, asked.scope)
        over = asked.over and name_of(engine, asked.over, asked.scope)
        with suggesting(engine, asked, wanted, over):
            answer: Why | Contrast = engine.why(asked.query, wanted, over=over, **_question(asked, engine))
    if asked.json:
        output.say_json(serialize.why(answer) if isinstance(answer, Why) else serialize.contrast(answer))
        return OK
    output.say(str(answer))
    output.show_notices(() if isinstance(answer, Why) else answer.notices)
    return OK


def _why_recalled(asked: argparse.Namespace) -> int:
    if asked.query is not None or asked.over is not None:
        raise ConfigError("--recall takes no question and no --over", "whyrank why --recall ID")
    with open_existing(asked) as engine:
        trail = engine.recall.why(asked.recall)
    if asked.json:
        output.say_json(serialize.recall_trail(trail))
    else:
        output.say(str(trail))
    return OK


@contextmanager
def suggesting(engine: Engine, asked: argparse.Namespace, *named: str | None) -> Iterator[None]:
    """Add a suggestion to a NotFound error about a named memory."""
    try:
        yield
    except NotFound as error:
        missing = next((name for name in named if name and repr(name) in error.message), None)
        near = engine.memories.suggest_id(missing, scope=asked.scope) if missing else None
        hint = f"did you mean {near!r}?" if near else error.hint
        if near and not near.startswith("m_") and asked.verb not in _TAKE_PATHS:
            hint = f"{near} is a file; `whyrank list --path {near}` shows the ids of its memories"
        raise NotFound(error.message, hint) from error


def list_memories(asked: argparse.Namespace) -> int:
    """List memories."""
    with open_existing(asked) as engine:
        limit = 50 if asked.limit is None else asked.limit
        lives = {"superseded": asked.superseded, "expired": asked.expired}
        filters = {**lives, **_filters(asked, engine)}
        found = engine.list(limit=limit, offset=asked.offset, sort=asked.sort, **filters)
        notices = engine.memories.list_notices(found, **filters)
        is_empty = not found and not engine.status(scope=asked.scope or ()).memories
    if asked.json:
        memories = [serialize.memory(memory) for memory in found]
        output.say_json({"memories": memories, "notices": serialize.notices(notices)})
        return OK
    for memory in found:
        begin = output.dim(f"  {glimpse}") if (glimpse := output.glimpse(memory)) else ""
        output.say(f"{memory.id}  {output.place(memory)}  {output.heading(memory)}{begin}")
    if not found:
        output.complain(f"notice: {_NOTHING_STORED if is_empty else _nothing_listed(limit, asked.offset)}")
    output.show_notices(notices)
    return OK


def _nothing_listed(limit: int, offset: int) -> str:
    if limit == 0:
        return "the limit is 0; give 1 or more to see memories"
    return f"there are no memories from number {offset + 1} on" if offset else "no memory passes the filters"


def status(asked: argparse.Namespace) -> int:
    """Print the status of the store."""
    with open_existing(asked) as engine:
        calibrations = engine.models.calibrations()
        data = serialize.status(engine.status(), engine.models.space, calibrations)
        states, behind = engine.models.list(), engine.models.backlog()
        data |= {"roles": serialize.spaces(states), "backlog": serialize.backlog(behind)}
        data["old_words"], notices = (
            engine.maintenance.stale_count(),
            (*engine.maintenance.stale_notices(), *engine.models.notices()),
        )
        notices = (*notices, *engine.maintenance.damage_notices())
    if asked.json:
        output.say_json(data)
        return OK
    for key, value in data.items():
        if key not in _TOLD_OTHERWISE:
            text = output.counts_in(value) if isinstance(value, dict) else value
            output.say(f"{key.replace('_', ' ')}: {'–' if text in (None, '') else on_one_line(str(text))}")
    output.show_replicas(data["server"].get("replicas", ()))
    output.show_spaces(states)
    output.show_backlog(behind)
    output.show_calibrations(calibrations, time.time())
    output.show_notices(notices)
    return OK


def config(asked: argparse.Namespace) -> int:
    """Show or change settings."""
    values = settings_of(asked)
    if asked.default and (asked.key is None or asked.value is not None):
        raise ConfigError("--default is for one setting, and takes no value", "whyrank config KEY --default")
    if asked.default or asked.value is not None:
        key = setting_named(asked.key).key
        file = settings.unset(values, key) if asked.default else settings.save(values, key, asked.value)
        values = settings_of(asked)
        if not asked.json:
            output.say(f"{'not in' if asked.default else 'written to'} {file}")
    keys = [setting_named(asked.key).key] if asked.key else list(SETTINGS)
    if asked.json:
        data = serialize.config(values)
        output.say_json({**data, "settings": {key: data["settings"][key] for key in keys}})
        return OK
    for key in keys:
        one = values.values[key]
        about = output.dim(f"({one.origin}; {SETTINGS[key].meaning})")
        output.say(f"{key} = {'unset' if one.value is None else one.shown}  {about}")
    output.show_notices(values.notices)
    return OK


def recipes(asked: argparse.Namespace) -> int:
    """Print recipes."""
    chosen = [recipe_named(asked.name)] if asked.name else list(RECIPES.values())
    if asked.json:
        output.say_json({"recipes": {recipe.name: repr(recipe) for recipe in chosen}})
        return OK
    for recipe in chosen:
        output.say(output.bold(recipe.name))
        plan = recipe.plan
        output.say(f"  runs: {', '.join(plan.runs)}; terms joined by {plan.join.upper()}; pool {plan.pool}")
        if plan.analysis != "standard" or plan.entities:
            entities = f"; {plan.entities!r}" if plan.entities else ""
            output.say(f"  query terms: {plan.analysis}{entities}")
        if recipe.fusion.strength is not None:
            output.say(f"  blend: the votes add up to at most {recipe.fusion.strength:g}")
        others = [recipe.fusion.others] if recipe.fusion.others else []
        for vote in (*recipe.fusion.votes, *others):
            signal = "any other run" if vote.signal == "*" else vote.signal
            weight = "the rest, or what the embedder declares" if vote.weight is None else vote.weight
            output.say(f"  vote: {signal} × {weight}, {vote.normaliser!r}")
        for stage in recipe.stages:
            output.say(f"  stage: {stage!r}")
    return OK


def open_existing(asked: argparse.Namespace) -> Engine:
    """Open an existing store: a search must not create one."""
    store = settings_of(asked).store
    if isinstance(store, settings.StoreUrl):
        from ...storage.store import PostgresStore  # psycopg takes a tenth of a second to import

        is_there = PostgresStore.exists(store.url)
    else:
        is_there = settings.is_there(store)
    if not is_there:
        raise StoreError(f"there is no store at {store}", "`whyrank ingest PATH` creates one; --store names another")
    return open_or_make(asked)


def open_or_make(asked: argparse.Namespace) -> Engine:
    """Open the store, or create it."""
    return open_engine(asked.store, workspace=asked.workspace, embedding=asked.embedding)


@contextmanager
def thrown_away(asked: argparse.Namespace, embedder: Embedder | None = None) -> Iterator[Engine]:
    """Open an empty temporary store; it is calibrated on request only."""
    import tempfile

    given = {"workspace": asked.workspace, "embedding": asked.embedding, "calibration": "manual"}
    with (
        tempfile.TemporaryDirectory(prefix="whyrank-eval-") as place,
        open_engine(Path(place) / "memory.db", embedder=embedder, **given) as engine,
    ):
        if asked.add is not None:
            engine.models.add(asked.add)
        yield engine


def _question(asked: argparse.Namespace, engine: Engine) -> dict[str, Any]:
    syntax = "advanced" if asked.advanced else "plain"
    return {**serialize.fields(asked, "limit recipe expand"), "syntax": syntax, **_filters(asked, engine)}


def _filters(asked: argparse.Namespace, engine: Engine) -> dict[str, Any]:
    path = None if asked.path is None else stored_pattern(engine.config.notes, asked.path)
    return {
        **serialize.fields(asked, "scope kind"), "tags": asked.tag,
        **serialize.fields(asked, "category decay min_importance language where"), "path": path,
        **serialize.fields(asked, "since before as_of include_superseded"),
    }  # fmt: skip


_LINES = re.compile(r":\d+-\d+$")  # after a path, as results show it


def name_of(engine: Engine, typed: str, scope: Sequence[str] | None) -> str:
    """Return the id or stored path for a typed name; an unknown name is returned unchanged."""
    if not typed or not is_clean(typed) or _is_id(engine, typed, scope):
        return typed
    from_here = stored_name(engine.config.notes, typed)
    return next((name for name in (from_here, typed) if _is_file(engine, name, scope)), typed)


def _is_id(engine: Engine, typed: str, scope: Sequence[str] | None) -> bool:
    try:
        engine.get(typed, scope=scope)
    except NotFound:
        return False
    return True


def _is_file(engine: Engine, name: str, scope: Sequence[str] | None) -> bool:
    """Return whether memories come from a file of this name, with or without a line range."""
    patterns = {literally(name), literally(_LINES.sub("", name))}
    return any(
        engine.list(limit=1, path=pattern, scope=scope, include_superseded=True)
        for pattern in patterns
        if len(pattern) <= MAX_PATTERN_CHARACTERS
    )


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
            hint = "name them: whyrank rank words=a/run.json near=b/run.json"
            raise ConfigError(f"two lists are called {name!r}", hint)
        lists[name] = entries
    for name in asked.lower_is_better_in:
        if name not in lists:
            raise ConfigError(f"there is no list called {name!r}", f"the lists are {', '.join(lists)}")
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


def _questions(lists: Mapping[str, Sequence[ListEntry]]) -> list[str | None]:
    """Return the queries of the lists, in their order; [None] if the lists name none."""
    found = list(dict.fromkeys(entry.query for entries in lists.values() for entry in entries))
    if None in found and len(found) > 1:
        without = next(name for name, entries in lists.items() if any(entry.query is None for entry in entries))
        said = f"some lists name the query of each entry, and {without!r} does not"
        raise ConfigError(said, 'give its entries a "query"')
    return found or [None]


def _run(name: str, entries: Iterable[ListEntry], query: str | None, asked: argparse.Namespace) -> Run:
    pairs = [(entry.id, entry.score) for entry in entries if entry.query == query]
    return Run.of(name, pairs, lower_is_better=asked.lower_is_better or name in asked.lower_is_better_in)


def _weight(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        raise ConfigError(f"--weight {text}: {number!r} is not a number", "write --weight NAME=0.7") from None


def _read(argument: str) -> Iterator[tuple[str, list[ListEntry]]]:
    """Read the lists of a file, named after the file, by NAME=FILE, or by the keys of its JSON."""
    name, text = _named(argument)
    try:
        for inner, entries in _lists_in(text):
            yield inner or name, list(entries)
    except ValueError as error:
        raise ConfigError(f"{argument} is not a list: {error}", _FORMS) from error


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
        raise ConfigError(f"{place} is not text: {error.reason}", _FORMS) from error


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
    query = None if query is None else str(query)
    return ListEntry(str(identity), _score(where, score), query, text if isinstance(text, str) and text else None)


def _score(where: str, score: object) -> float:
    if isinstance(score, bool) or not isinstance(score, str | int | float):
        raise ValueError(f"{where} has no score")
    try:
        number = float(score)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{where} has the score {score!r}, which is not a finite number")
    return number


def _trec(number: int, line: str) -> ListEntry:
    columns = line.split()
    if len(columns) != _TREC_COLUMNS:
        raise ValueError(f"line {number} has {counted(len(columns), 'column')}; a TREC run has {_TREC_COLUMNS}")
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
        raise ConfigError(f"{place} contains no texts by id: {error}", _TEXTS) from error
    for identity, text in data.items():
        if not isinstance(text, str):
            raise ConfigError(f"{place}: the text of {identity!r} is {_short(text)}", _TEXTS)
    return data


_TEXTS = 'give {"id": "text", …}, or entries {"id": "…", "text": "…"}'


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
        "format": FORMAT,
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
