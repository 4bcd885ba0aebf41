"""JSON schemas of answers, with an example of each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...analysis.query import analyse
from ...engine.recall import Reminder
from ...engine.recall_log import Citation
from ...engine.records import Added, Backlog, Changed, Forgotten, SpaceState
from ...ingest.pipeline import Report
from ...protocols import StoreStatus
from ...ranking.counterfactuals import Pool
from ...ranking.recipes import RECIPES, Adjustments, honoured
from ...search.confidence import Weighing
from ...search.explain import Pooled, Why
from ...types.memory import CATEGORIES, KINDS, TRUSTS, Memory, Scope
from ...types.query import Query
from ...types.results import Candidate, Context, Hit, Results, Run, Signal
from ...types.trail import Part, Step, TermValue
from .. import serialize, serialize_candidates
from ..errors import FORMAT as FORMAT_NUMBER

if TYPE_CHECKING:
    from collections.abc import Sequence

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
YES_OR_NO: Schema = {"type": "boolean"}
ANY: Schema = {}
MOMENT: Schema = {"type": "string", "description": "ISO 8601, UTC"}
FORMAT: Schema = {"const": 1, "description": "The version of the shape"}
IDENTITY: Schema = {"type": "string", "description": "The id of a memory"}


def record(**properties: Schema) -> Schema:
    """Return the schema of an object that has all these fields."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def listing(items: Schema) -> Schema:
    """Return the schema of a list of these items."""
    return {"type": "array", "items": items}


def table(values: Schema) -> Schema:
    """Return the schema of an object with arbitrary keys and these values."""
    return {"type": "object", "additionalProperties": values}


def or_null(schema: Schema) -> Schema:
    """Return the same schema, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def named(name: str) -> Schema:
    """Refer to a schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def _name_of(*names: str) -> Schema:
    return {"type": "string", "enum": list(names)}


_PLACE_AND_TEXT = {
    "text": TEXT,
    "title": TEXT,
    "headings": listing(TEXT),
    "path": or_null(TEXT),
    "start_line": or_null(WHOLE),
    "end_line": or_null(WHOLE),
    "kind": _name_of(*KINDS),
    "scope": TEXT,
    "tags": listing(TEXT),
    "metadata": table(named("Json")),
    "date": or_null(MOMENT),
}
_TRUST = _name_of(*TRUSTS)
TERM_KEY = {
    "term": TEXT,
    "field": {**TEXT, "description": "words, pairs, grams, dates or speakers"},
    "context": {**TEXT, "description": "own, file or window"},
}
_TERM = record(**TERM_KEY, value=NUMBER)
_PART = record(
    signal=TEXT, value=NUMBER, weight=or_null(NUMBER), normalised=or_null(NUMBER), raw=or_null(NUMBER),
    rank=or_null(WHOLE), best=or_null(NUMBER), floor=or_null(NUMBER), reference=or_null(NUMBER),
    coverage=or_null(NUMBER), terms=listing(named("Term")),
)  # fmt: skip
_STEP = record(
    stage=TEXT, op=_name_of("set", "add", "scale", "lift", "note", "drop"), value=NUMBER, why=TEXT,
    parts=listing(named("Part")),
)  # fmt: skip
_HIT = record(
    id=IDENTITY, score=NUMBER, tier=WHOLE, confidence=or_null(NUMBER), **_PLACE_AND_TEXT,
    trust=_TRUST, snippet=TEXT, also=listing(TEXT),
)  # fmt: skip
_HIT["properties"]["trail"] = listing(named("Step"))
_RESULTS = record(
    query=TEXT, verdict=_name_of("found", "weak", "nothing"), recipe=TEXT, notices=listing(named("Notice")),
    hits=listing(named("Hit")), timings=table(NUMBER), format=FORMAT,
)  # fmt: skip
_RESULTS["properties"] |= {"analysis": table(ANY), "dropped": listing(named("Hit"))}
_MEMORY = record(
    id=IDENTITY, **_PLACE_AND_TEXT, name=TEXT, slug=TEXT, aliases=listing(TEXT), summary=TEXT,
    category=_name_of(*CATEGORIES), entities=listing(TEXT), importance=or_null(WHOLE), created=or_null(MOMENT),
    decay=or_null(TEXT), valid_from=or_null(MOMENT), valid_until=or_null(MOMENT), expires=or_null(MOMENT),
    supersedes=or_null(IDENTITY), superseded_by=or_null(IDENTITY), superseded_at=or_null(MOMENT), recalls=WHOLE,
    recalled=or_null(MOMENT), trust=_TRUST, session=TEXT, speaker=TEXT, subject=TEXT,
    attribute=TEXT, format=FORMAT,
)  # fmt: skip
_ADDED = record(
    outcome=_name_of("stored", "known", "replacing", "revived", "merged"),
    near=listing(record(id=IDENTITY, cosine=NUMBER, text=TEXT)), notices=listing(named("Notice")),
)  # fmt: skip
_SHOWN = record(
    history=listing(record(changed=ANY, was=table(ANY))), replaced=listing(record(id=IDENTITY, text=TEXT)),
    notices=listing(named("Notice")),
)  # fmt: skip
_CONTRAST = record(
    query=TEXT, id=IDENTITY, over=IDENTITY, outcome=TEXT, summary=TEXT, first=or_null(IDENTITY),
    changes=listing(table(ANY)), details=listing(TEXT), notices=listing(named("Notice")), format=FORMAT,
)  # fmt: skip
_WHY = record(
    query=TEXT, id=IDENTITY, outcome=TEXT, summary=TEXT, details=listing(TEXT), rank=or_null(WHOLE),
    score=or_null(NUMBER), trail=listing(named("Step")), format=FORMAT,
)  # fmt: skip
_BACKLOG = record(
    waiting=WHOLE, refused=WHOLE, attempts=WHOLE, error=or_null(TEXT), next_try=or_null(MOMENT),
    nowhere=WHOLE,
)  # fmt: skip
_SPACE = record(space=TEXT, model=or_null(TEXT), role=TEXT, vectors=WHOLE, waiting=WHOLE, error=or_null(TEXT))
_STATUS = record(
    store=TEXT, schema=WHOLE, engine=TEXT, keyword_index=TEXT, memories=WHOLE, files=WHOLE, scopes=table(WHOLE),
    space=or_null(TEXT), spaces=table(WHOLE), without_vector=WHOLE, bytes=or_null(WHOLE), caches=table(WHOLE),
    free_bytes=or_null(WHOLE), ballast_bytes=or_null(WHOLE), server=table(ANY),
    calibrations=listing(table(ANY)), roles=listing(_SPACE), backlog=_BACKLOG, notices=listing(named("Notice")),
    evaluation=ANY, version=TEXT,
    old_words=WHOLE, multi_scope=YES_OR_NO, read_only=YES_OR_NO, format=FORMAT,
)  # fmt: skip
_REPORT = record(
    dry_run=YES_OR_NO, files=table(WHOLE), chunks=WHOLE, removed=WHOLE, embedded=WHOLE, without_vector=WHOLE,
    plans=listing(record(path=TEXT, action=TEXT, renamed_from=or_null(TEXT))),
    skipped=listing(record(path=TEXT, reason=TEXT, failed=YES_OR_NO)),
    remarks=listing(record(path=TEXT, remark=TEXT)), format=FORMAT,
)  # fmt: skip

_NORMALISER: Schema = {"type": "object", "properties": {"kind": TEXT}, "required": ["kind"]}
_VOTE = record(signal=TEXT, weight=or_null(NUMBER), normaliser=_NORMALISER)
_FUSION = record(
    votes=listing(_VOTE), others=or_null(_VOTE), proposing=listing(TEXT),
    absent={"type": "string", "enum": ["shared", "kept", "zero"]}, strength=or_null(NUMBER), declared=NUMBER,
    shares=table(table(NUMBER)), why=TEXT,
)  # fmt: skip
_STAGE: Schema = {"type": "object", "properties": {"kind": TEXT}, "required": ["kind"]}
_SIGNAL = record(
    name=TEXT, raw=listing(or_null(NUMBER)), rank=listing(or_null(WHOLE)),
    coverage=or_null(listing(or_null(NUMBER))), is_evidence=YES_OR_NO,
    terms=record(
        keys=listing(record(**TERM_KEY)),
        added={**listing(listing(NUMBER)), "description": "key, value, key, value, … of each candidate"},
    ),
)  # fmt: skip
_CANDIDATE = record(
    id=IDENTITY, title=TEXT, headings=listing(TEXT), path=or_null(TEXT), start_line=or_null(WHOLE),
    end_line=or_null(WHOLE), kind=TEXT, scope=TEXT, tags=listing(TEXT), date=or_null(TEXT), trust=TEXT,
    snippet={**listing(TEXT), "description": "text, match, text, match, …: every second piece matches"},
    confidence=or_null(NUMBER), age_days=or_null(NUMBER),
    origin={"type": "integer", "description": "equal for chunks of one file"},
)  # fmt: skip
_KNOB = record(
    key=TEXT, setting=TEXT, label=TEXT, meaning=TEXT, low=NUMBER, high=NUMBER, step=NUMBER, value=NUMBER,
    given=or_null(NUMBER), unit=TEXT, idle=or_null(TEXT), needs=or_null(TEXT),
)  # fmt: skip
SCHEMAS: dict[str, Schema] = {
    "Error": record(
        error=record(
            code={"type": "string", "description": "Error code, for programs"},
            message={"type": "string", "description": "What is wrong"},
            hint={"type": "string", "description": "What to do"},
            request_id={"type": "string", "description": "Request id, as in the server's log"},
        ),
        format=FORMAT,
    ),
    "Notice": record(code=TEXT, message=TEXT),
    "Json": {
        "anyOf": [
            {"type": "string", "pattern": r"^[^\x00]*$"},
            {"type": ["number", "boolean", "null"]},
            listing(named("Json")),
            {"type": "object", "propertyNames": {"pattern": r"^[^\x00]*$"}, "additionalProperties": named("Json")},
        ]
    },
    "Part": _PART,
    "Term": _TERM,
    "Step": _STEP,
    "Hit": _HIT,
    "Results": _RESULTS,
    "Memory": _MEMORY,
    "Added": {"allOf": [named("Memory"), _ADDED]},
    "Shown": {"allOf": [named("Memory"), _SHOWN]},
    "Changed": {"allOf": [named("Memory"), _SHOWN, record(notices=listing(named("Notice")))]},
    "Page": record(
        memories=listing(named("Memory")), next=or_null(TEXT), notices=listing(named("Notice")), format=FORMAT
    ),
    "Reminder": record(
        id=TEXT, text={**TEXT, "description": "Ready to inject; empty if there is nothing to say"},
        verdict=_name_of("found", "weak", "nothing"),
        reason={**TEXT, "description": "Why nothing was given"}, tokens=WHOLE,
        memories=listing(record(id=IDENTITY, citation=TEXT, confidence=NUMBER, score=NUMBER)),
        left_out=listing(record(id=IDENTITY, citation=TEXT, reason=TEXT)),
        notices=listing(named("Notice")), format=FORMAT,
    ),
    "WhyOrContrast": {"anyOf": [_WHY, _CONTRAST]},
    "Forgotten": record(
        forgotten=listing(IDENTITY), scope=or_null(TEXT), memories=WHOLE, remains=listing(TEXT), format=FORMAT
    ),
    "Recalled": record(recalled=listing(IDENTITY), format=FORMAT),
    "Status": _STATUS,
    "Recipes": record(recipes=table(record(value=TEXT, settings=listing(TEXT))), format=FORMAT),
    "Report": _REPORT,
    "Health": record(status=_name_of("ok", "failing"), memories_searchable=YES_OR_NO, format=FORMAT),
    "Candidates": record(
        query=TEXT, verdict=TEXT, evidence=NUMBER, notices=listing(named("Notice")), recipe=TEXT, limit=WHOLE,
        offset=WHOLE, settings=table({}), knobs=listing(_KNOB), runs=listing(TEXT), fusion=_FUSION,
        stages=listing(_STAGE), importance=or_null(_STAGE), last=listing(_STAGE), least=table(NUMBER),
        weighing=record(coverage_counts=NUMBER, rest=NUMBER, least=NUMBER),
        signals=listing(_SIGNAL),
        candidates={**listing(_CANDIDATE), "description": "in the order that breaks ties"},
        timings=table(NUMBER), format=FORMAT,
    ),
    "Likeness": record(
        ids=listing(IDENTITY),
        likeness={**listing(listing(NUMBER)), "description": "of each to each of those that stand before it"},
        format=FORMAT,
    ),
}  # fmt: skip

_CREATED = datetime(2026, 3, 14, 9, 30, tzinfo=UTC).timestamp()
_QUERY = "which tea does Robin prefer?"
_EXAMPLE_SPACE = "wordllama/l2_supercat@0.4.0.post1/256/plain-words"
MEMORY = Memory(
    "m_tcvp3fagya7erbvs",
    "Robin prefers green tea",
    scope=Scope("user", "42"),
    tags=("drinks",),
    importance=4,
    created=_CREATED,
    date=_CREATED,
)
_TERMS = (TermValue("tea", "words", "own", 2.1), TermValue("robin", "words", "own", 1.1))
_KEYWORD = Part("keyword", 0.4, 0.4, 1.0, 3.2, 1, terms=_TERMS)
_EXAMPLE_STEP = Step("fusion", "set", 1.0, "", (Part("vector", 0.6, 0.6, 1.0, 0.71, 1), _KEYWORD))
_EXAMPLE_HIT = Hit(MEMORY, 0, 1.0, (_EXAMPLE_STEP,), confidence=0.99)


_EXAMPLE_REMINDER = Reminder(
    f"Reminder from memory …\n> {MEMORY.text}", (Citation(MEMORY.id, MEMORY.id, 0.99, 1.0, ""),), 84, "found",
    "", (), (), "r_4f2a91c07b3d",
)  # fmt: skip


def _status() -> dict[str, Any]:
    store = StoreStatus(
        "/srv/notes/.whyrank/memory.db", 3, "postings", 412, 87, {"global": 411, "user:42": 1}, {_EXAMPLE_SPACE: 412},
        0, 3_200_000, "SQLite 3.51.3, a compiled kernel", 81_000_000_000, 8_388_608,
        {"vectors": 426_000, "lists": 51_200, "pages": 310_000},
    )  # fmt: skip
    return {
        **serialize.status(store, _EXAMPLE_SPACE),
        "roles": serialize.spaces([SpaceState(_EXAMPLE_SPACE, "wordllama", "serving", 412, 0)]),
        "backlog": serialize.backlog(Backlog()),
        "old_words": 0,
        "notices": [],
        "evaluation": None,
        "version": __version__,
        "multi_scope": False,
        "read_only": False,
    }


def _candidates(memory: Memory, terms: Sequence[TermValue]) -> dict[str, dict[str, Any]]:
    text, recipe = _QUERY, RECIPES["default"]
    runs = (Run("keyword", (Candidate(memory.id, 3.2),)), Run("vector", (Candidate(memory.id, 0.71),)))
    signals = {
        "keyword": Signal("keyword", {memory.id: 3.2}, {memory.id: 0.8}, {memory.id: terms}),
        "vector": Signal("vector", {memory.id: 0.71}),
    }
    context = Context(Query(text), analyse(text), {memory.id: memory}, signals)
    results = Results(text, (), "found", recipe.name, context.analysis, timings={"total": 2.1}, evidence=1.67)
    settled = Pool(runs, context, recipe)
    found = Pooled(results, settled, recipe, Adjustments(), (), 0.6, {}, {memory.id: 0.99}, Weighing.of(context, 0.35))
    return {"Candidates": serialize_candidates.pool(found), "Likeness": serialize_candidates.likeness(found)}


ANSWERS: dict[str, dict[str, Any]] = {
    "Results": serialize.results(
        Results(_QUERY, (_EXAMPLE_HIT,), "found", "default", analyse(_QUERY), timings={"total": 2.1})
    ),
    "Reminder": serialize.reminder(_EXAMPLE_REMINDER),
    "WhyOrContrast": serialize.why(Why(_QUERY, MEMORY, "found", "it is result 1", rank=1, hit=_EXAMPLE_HIT)),
    "Page": {"memories": [serialize.memory(MEMORY)], "next": None, "notices": [], "format": FORMAT_NUMBER},
    "Added": serialize.added(Added(MEMORY, "stored")),
    "Shown": serialize.shown(MEMORY, [], []),
    "Changed": serialize.changed(Changed(MEMORY), [], []),
    "Forgotten": serialize.forgotten([MEMORY.id], None, Forgotten(1)),
    "Recalled": {"recalled": [MEMORY.id], "format": FORMAT_NUMBER},
    "Status": _status(),
    "Recipes": {
        "recipes": {"rrf": {"value": repr(RECIPES["rrf"]), "settings": list(honoured(RECIPES["rrf"]))}},
        "format": FORMAT_NUMBER,
    },
    **_candidates(MEMORY, _TERMS),
    "Report": serialize.report(
        Report(files={"new": 1}, unchanged=86, chunks=3, embedded=3, plans=[("notes/tea.md", "new")])
    ),
    "Health": {"status": "ok", "memories_searchable": True, "format": FORMAT_NUMBER},
    "Error": {
        "error": {
            "code": "config",
            "message": "POST /v1/search does not know 'limitt'",
            "hint": "did you mean 'limit'?",
            "request_id": "5f0c1d2e3a4b5c6d",
        },
        "format": FORMAT_NUMBER,
    },
}
