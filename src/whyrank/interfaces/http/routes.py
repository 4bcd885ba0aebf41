"""Table of routes: description, fields, permissions and handler of each.

Requests are parsed by this table and the OpenAPI document is generated from it, so the two cannot disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...analysis.language import LANGUAGES
from ...engine.arguments import MAX_IDS
from ...ranking.recipes import RECIPES
from ...types.deadline import MAX_TIMEOUT_MS
from ...types.lifetimes import LIFETIMES
from ...types.memory import CATEGORIES, KINDS, ORDERS, TRUSTS
from ...types.query import SYNTAXES
from ..arguments import Argument, Kind
from ..engine_pool import Access
from . import handlers, request
from .pagination import MAX_CURSOR_CHARACTERS
from .request import (
    FACT,
    KEY,
    MOMENT,
    OWN_SCOPE,
    QUESTION,
    REFERENCE,
    SCOPES,
    TAGS,
    TEXT,
    YES_OR_NO,
    one_of,
    or_nothing,
)

Example = Mapping[str, Any]
MOST_HITS = 1_000  # of one answer, and of one page of a list
_FARTHEST = 1_000_000
_MOST_TOKENS = 10_000_000
_FIXED = "whose memories are asked is settled at this server, and not its callers' to choose"


class Operation(NamedTuple):
    """One operation of the API."""

    method: str
    path: str
    name: str
    about: str
    call: handlers.Call
    answer: str  # the name of a schema
    fields: tuple[Argument, ...] = ()
    example: Example | None = None
    scope: Kind | None = SCOPES
    writes: bool = False
    takes_long: bool = False
    statuses: tuple[int, ...] = (200,)
    failures: tuple[int, ...] = (422, 503)

    @property
    def has_body(self) -> bool:
        """Return whether the fields are in the body; otherwise they are in the query string."""
        return self.method in ("POST", "PATCH")

    def fields_at(self, access: Access) -> tuple[Argument, ...]:
        """Return the fields of a request; includes the scope if callers may choose one."""
        return (*self.fields, *self.scope_field) if access.is_multi_scope else self.fields

    @property
    def scope_field(self) -> tuple[Argument, ...]:
        """Return the scope field, if the operation has one."""
        return () if self.scope is None else (Argument("scope", self.scope, "Whose memory, such as user:42"),)

    def read(self, access: Access, given: Mapping[str, object]) -> dict[str, Any]:
        """Parse the fields of a request; a single scope need not be a list."""
        values = request.strictly(f"{self.method} {self.path}", self.fields_at(access), given, _FIXED)
        return {**values, "scope": [values["scope"]]} if isinstance(values.get("scope"), str) else values


def _filters(tags: str = "tags") -> tuple[Argument, ...]:
    return (
        Argument("kind", one_of(*KINDS), "chunk: of a file; fact: added"),
        Argument(tags, TAGS, "Only what has all these tags"),
        Argument("path", TEXT, "Only files whose path matches, such as notes/*"),
        Argument("since", MOMENT, "Only what is dated from here on"),
        Argument("before", MOMENT, "Only what is dated before this"),
        Argument("as_of", MOMENT, "As it was known then"),
        Argument("include_superseded", YES_OR_NO, "Also what was replaced"),
        Argument("category", one_of(*CATEGORIES), "Only facts of this category"),
        Argument("decay", one_of(*LIFETIMES), "Only what has this decay class"),
        Argument("min_importance", request.whole(1, 5), "Only what is at least so important"),
        Argument("language", one_of(*LANGUAGES), "Only what is in this language"),
    )


_ASKED = (
    Argument("query", QUESTION, "A question, a name or words", required=True),
    Argument("limit", request.whole(0, MOST_HITS), "How many results"),
    Argument("recipe", one_of(*RECIPES), "How they are ranked"),
    Argument("syntax", one_of(*SYNTAXES), "advanced: the query knows AND, OR, NOT, word* and field:"),
    Argument("expand", YES_OR_NO, "Let a language model widen the question first"),
)
SEARCH_FIELDS = (
    *_ASKED,
    Argument("offset", request.whole(0, _FARTHEST), "How many results to skip"),
    Argument("strict", YES_OR_NO, "Results only if the verdict is `found`"),
    Argument("min_confidence", request.between(0, 1), "Only results that are at least so sure, from 0 to 1"),
    Argument("max_tokens", request.whole(1, _MOST_TOKENS), "Only as many whole memories, best first, as fit into this"),
    Argument("timeout_ms", request.whole(1, MAX_TIMEOUT_MS), "Answer with what was found so far after this time"),
    Argument("explain", YES_OR_NO, "With the trail of every result, and of what was dropped"),
    *_filters(),
)
# Candidates always carry their explanation, and the page that requests them waits for all of them.
CANDIDATE_FIELDS = tuple(field for field in SEARCH_FIELDS if field.name not in ("explain", "timeout_ms"))
_FACT_FIELDS = (
    ("name", TEXT, "What it is called"),
    ("category", one_of(*CATEGORIES), "What kind of fact it is"),
    ("tags", TAGS, "To filter by"),
    ("entities", TAGS, "Whom and what it is about"),
    ("importance", request.whole(1, 5), "How important it is"),
    ("decay", one_of(*LIFETIMES), "How long it is kept"),
    ("date", MOMENT, "When it happened"),
    ("valid_from", MOMENT, "From when on it is true"),
    ("valid_until", MOMENT, "Until when it is true"),
    ("expires", MOMENT, "When it is no longer found"),
    ("trust", one_of(*TRUSTS), "How far what it says is trusted"),
)
_SUPERSEDES = Argument("supersedes", FACT, "Id or text of the fact it replaces")
IDEMPOTENCY_KEY = Argument(
    "Idempotency-Key",
    request.HEADER_KEY,
    "Makes the write happen once: the same again gives the same memory, another one with this key is refused",
)
_QUERY = {"query": "which tea does Robin prefer?", "limit": 3}
_ID = "m_tcvp3fagya7erbvs"

OPERATIONS = (
    Operation("POST", "/v1/search", "search", "Find memories, best first", handlers.search, "Results",
              SEARCH_FIELDS, _QUERY),
    Operation("GET", "/v1/search", "searchByAddress", "The same, asked by an address", handlers.search, "Results",
              SEARCH_FIELDS, _QUERY),
    Operation("POST", "/v1/candidates", "candidates", "All that ranking knew of the candidates, to be ranked again by"
              " other settings", handlers.candidates, "Candidates", CANDIDATE_FIELDS, _QUERY),
    Operation("POST", "/v1/likeness", "likeness", "How like each other the candidates are, which diversity asks for",
              handlers.likeness, "Likeness", CANDIDATE_FIELDS, _QUERY),
    Operation("POST", "/v1/why", "why", "Explain the place of a memory among the results, or where it was lost; with"
              " `over`, the smallest change that would put it above another", handlers.why, "WhyOrContrast",
              (*_ASKED, Argument("id", REFERENCE, "Id or path of the memory", required=True),
               Argument("over", REFERENCE, "Id or path of another"), *_filters()),
              {"query": "which tea does Robin prefer?", "id": _ID}, failures=(404, 422, 503)),
    Operation("GET", "/v1/memories", "listMemories", "List memories, a page at a time", handlers.listed, "Page",
              (Argument("limit", request.whole(1, MOST_HITS), f"How many on a page ({handlers.PAGE_MEMORIES})"),
               Argument("cursor", request.kind({"type": "string", "minLength": 1, "maxLength": MAX_CURSOR_CHARACTERS}),
                        "`next` of the page before"),
               Argument("sort", one_of(*ORDERS), "In which order (place)"),
               *_filters(),
               Argument("superseded", YES_OR_NO, "Only what was replaced"),
               Argument("expired", YES_OR_NO, "Only what expired or holds no more")), {"limit": 2, "sort": "created"}),
    Operation("POST", "/v1/memories", "addMemory", "Store a fact: 201 if it is new, 200 if it was there",
              handlers.added, "Added",
              (Argument("text", FACT, "The fact", required=True), _SUPERSEDES,
               Argument("key", KEY, "Makes the write happen once; the header Idempotency-Key says the same"),
               *(Argument(*one) for one in _FACT_FIELDS)),
              {"text": "Robin prefers green tea", "tags": ["drinks"], "importance": 4},
              scope=OWN_SCOPE, writes=True, statuses=(200, 201), failures=(403, 404, 409, 422, 503, 507)),
    Operation("GET", "/v1/memories/{id}", "showMemory", "One memory whole, with what it was and what it replaced",
              handlers.shown, "Shown", failures=(404, 422, 503)),
    Operation("PATCH", "/v1/memories/{id}", "updateMemory", "Change a fact, which keeps its id; null takes back",
              handlers.updated, "Changed",
              (Argument("text", FACT, "What it says from now on"),
               Argument("supersedes", or_nothing(FACT), "Id or text of the fact it replaces; null brings that back"),
               *(Argument(name, or_nothing(kind), about) for name, kind, about in _FACT_FIELDS)),
              {"importance": 5, "tags": ["drinks", "robin"]},
              writes=True, failures=(403, 404, 409, 422, 503, 507)),
    Operation("DELETE", "/v1/memories/{id}", "forgetMemory", "Remove a memory for good", handlers.forgotten,
              "Forgotten", (Argument("purge", YES_OR_NO, "Leave no byte of it behind; ten times a minute at most"),),
              writes=True, failures=(403, 404, 409, 422, 429, 503, 507)),
    Operation("POST", "/v1/recalled", "recalled", "Count that memories were of use", handlers.recalled, "Recalled",
              (Argument("ids", request.kind({"type": "array", "items": REFERENCE.schema, "minItems": 1,
                                            "maxItems": MAX_IDS}), "Their ids", required=True),),
              {"ids": [_ID]}, writes=True, failures=(403, 404, 422, 503, 507)),
    Operation("POST", "/v1/ingest", "ingest", "Index files and folders of the workspace; with Accept: text/event-stream"
              " the answer is events: progress {done, total, what}, then report, or error", handlers.ingested, "Report",
              (Argument("paths", request.kind({"type": "array", "items": REFERENCE.schema, "minItems": 1,
                                              "maxItems": MAX_IDS}), "Files and folders below the workspace",
                        required=True),
               Argument("dry_run", YES_OR_NO, "Say what would happen, change nothing")),
              {"paths": ["notes"], "dry_run": True},
              scope=OWN_SCOPE, writes=True, takes_long=True, failures=(403, 422, 503, 507)),
    Operation("GET", "/v1/status", "status", "What the store holds, what waits, what was measured",
              handlers.status, "Status"),
    Operation("GET", "/v1/recipes", "recipes", "The recipes there are, and the settings each has a place for",
              handlers.recipes, "Recipes", scope=None),
)  # fmt: skip


def by_path(operations: Sequence[Operation] = OPERATIONS) -> dict[str, dict[str, Operation]]:
    """Return the operations of each path, by method."""
    paths: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = operation
    return paths
