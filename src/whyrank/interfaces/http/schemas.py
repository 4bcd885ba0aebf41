"""JSON schemas of what is answered: the shapes of all doors, as the OpenAPI document shows them."""

from __future__ import annotations

from typing import Any

from ...types import CATEGORIES, KINDS, TRUSTS

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
    """Return an object that has all these."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def listing(items: Schema) -> Schema:
    """Return a list of these."""
    return {"type": "array", "items": items}


def table(values: Schema) -> Schema:
    """Return an object of any keys with these values."""
    return {"type": "object", "additionalProperties": values}


def or_null(schema: Schema) -> Schema:
    """Return the same, or null."""
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
    rank=or_null(WHOLE), best=or_null(NUMBER), coverage=or_null(NUMBER), terms=listing(named("Term")),
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
    recalled=or_null(MOMENT), trust=_TRUST, session=TEXT, speaker=TEXT, format=FORMAT,
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
    free_bytes=or_null(WHOLE), ballast_bytes=or_null(WHOLE),
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

SCHEMAS: dict[str, Schema] = {
    "Error": record(
        error=record(
            code={"type": "string", "description": "What kind of error it is, for programs"},
            message={"type": "string", "description": "What is wrong"},
            hint={"type": "string", "description": "What to do"},
            request_id={"type": "string", "description": "Under which the server's log has it"},
        ),
        format=FORMAT,
    ),
    "Notice": record(code=TEXT, message=TEXT),
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
    "WhyOrContrast": {"anyOf": [_WHY, _CONTRAST]},
    "Forgotten": record(
        forgotten=listing(IDENTITY), scope=or_null(TEXT), memories=WHOLE, remains=listing(TEXT), format=FORMAT
    ),
    "Recalled": record(recalled=listing(IDENTITY), format=FORMAT),
    "Status": _STATUS,
    "Recipes": record(recipes=table(record(value=TEXT, settings=listing(TEXT))), format=FORMAT),
    "Report": _REPORT,
    "Health": record(status=_name_of("ok", "failing"), memories_searchable=YES_OR_NO, format=FORMAT),
}
