"""Table of routes: description, fields, permissions and handler of each.

Requests are parsed by this table and the OpenAPI document is generated from it, so the two cannot disagree.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from urllib.parse import parse_qsl

from ... import __version__
from ...analysis.dates import parse_date
from ...analysis.tokenizer import LANGUAGES
from ...engine.arguments import MAX_FACT_CHARACTERS, MAX_IDS, MAX_NAME_CHARACTERS, MAX_NAMES
from ...engine.recall_log import MOST_SESSION
from ...errors import ConfigError
from ...ranking.recipes import RECIPES
from ...types.memory import CATEGORIES, KINDS, LIFETIMES, ORDERS, TRUSTS
from ...types.query import MAX_TIMEOUT_MS, SYNTAXES
from ..arguments import Argument, Kind, schema_of
from ..auth import SLOW_BODY, Receive, body_of
from ..errors import BadRequest
from . import handlers
from .schemas import ANSWERS, SCHEMAS, named

if TYPE_CHECKING:
    from ..engine_pool import Access

MAX_BODY_BYTES = 1_048_576  # a fact of 50,000 letters in any script with all its fields, several times over
_LINGER_SECONDS = 5.0  # for a client to finish sending a discarded body, so that it reads the error
_LINGER_BYTES = 64 * 1_048_576


async def read_body(receive: Receive, length: str | None) -> bytes:
    """Return the body; refuse it by its declared length before it arrives, or after a timeout."""
    try:
        body = await body_of(receive, length, MAX_BODY_BYTES)
    except TimeoutError as error:
        raise BadRequest(*SLOW_BODY) from error
    if body is None:
        message = f"the body is longer than {MAX_BODY_BYTES:,} bytes"
        raise BadRequest(413, "too-long", message, "send less; long texts are files for /v1/ingest")
    return body


async def drained(receive: Receive) -> None:
    """Discard the rest of a body for a while: a client cut off while sending does not read the error."""
    size = 0
    try:
        async with asyncio.timeout(_LINGER_SECONDS):
            while size < _LINGER_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return


def read_json(content_type: str | None, encoding: str | None, body: bytes) -> dict[str, Any]:
    """Parse a body as one JSON object."""
    kind, _, charset = (content_type or "").partition(";")
    is_utf8 = charset.strip().lower().removeprefix("charset=").strip('"') in ("", "utf-8", "utf8")
    if kind.strip().lower() != "application/json" or not is_utf8 or encoding not in (None, "", "identity"):
        raise BadRequest(415, "content-type", "the body is not sent as JSON", "send Content-Type: application/json")
    try:
        read = json.loads(body.decode("utf-8"), parse_constant=_no_number, object_pairs_hook=_said_once)
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise BadRequest(400, "bad-json", f"the body is not JSON: {said}", "send one JSON object in UTF-8") from error
    if not isinstance(read, dict):
        raise BadRequest(422, "config", "the body is not a JSON object", 'send one object: {"query": "…"}')
    return read


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _said_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("a name occurs twice in it")
    return read


Schema = Mapping[str, Any]

_SHOWN = 60  # characters quoted of an invalid value
_PARAMETERS = 1_000  # of one query string: all lists at their maximum length
# Whitespace that dialects of regular expressions disagree on is listed, so that all read the document alike.
_SEEN = r"[^\s\x00-\x1f\x85\ufeff]"
_UNSEEN = r"[\s\x01-\x1f\x85\ufeff]"
# Names of scopes begin and end with a visible character.
SCOPE_PATTERN = rf"^(global|(?!global:)[a-z][a-z0-9_-]*:{_SEEN}([^\x00]*{_SEEN})?)$"
# Unambiguous, so that matching takes linear time.
_WITH_TEXT = rf"^{_UNSEEN}*{_SEEN}[^\x00]*$"
_NO_NUL = r"^[^\x00]*$"
# A day, or a moment of a day, in UTC where no offset is given; RFC 3339, seconds and offset may be left out.
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_WHOLE_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,18})?([eE][-+]?\d{1,3})?", re.ASCII)
_NAMES = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def strictly(place: str, fields: Sequence[Argument], given: Mapping[str, object], fixed: str = "") -> dict[str, Any]:
    """Parse the fields of a request; unknown ones are refused, and so is a scope where it is `fixed`."""
    known = {field.name: field for field in fields}
    for name in given:
        if name not in known:
            raise _unknown(place, name, known, fixed)
    for field in fields:
        if field.required and field.name not in given:
            raise ConfigError(f"{place} needs {field.name}", f"{field.name}: {field.about}")
    return {name: _read(known[name], value) for name, value in given.items()}


def _unknown(place: str, name: str, known: Iterable[str], fixed: str) -> ConfigError:
    if name == "scope" and fixed:
        return ConfigError("the scope is fixed on this server", fixed)
    close = get_close_matches(name, known, n=1)
    meant = f"did you mean {close[0]!r}?" if close else f"it takes {', '.join(known) or 'nothing'}"
    return ConfigError(f"{place} does not know {name[:_SHOWN]!r}", meant)


def _read(field: Argument, value: object) -> Any:
    try:
        return field.kind.read(value)
    except ValueError as error:
        hint = f"give {error} ({field.about[:1].lower()}{field.about[1:]})"
        raise ConfigError(f"{field.name} is {repr(value)[:_SHOWN]}", hint) from error


def parameters(fields: Sequence[Argument], query: bytes) -> dict[str, object]:
    """Parse a query string into typed fields; lists are given by repetition."""
    types = {field.name: parameter_schema(field.kind.schema).get("type") for field in fields}
    given: dict[str, object] = {}
    try:
        pairs = parse_qsl(
            query.decode("ascii", errors="replace"),
            keep_blank_values=True, errors="replace", max_num_fields=_PARAMETERS,
        )  # fmt: skip
    except ValueError as error:
        raise ConfigError("the address has too many parameters", f"give at most {_PARAMETERS}") from error
    for name, text in pairs:
        held = given.get(name)
        if types.get(name) == "array":
            given[name] = [*held, text] if isinstance(held, list) else [text]
        elif name in given:
            raise ConfigError(f"{name[:_SHOWN]} is given twice", "give it once")
        else:
            given[name] = _typed(types.get(name), text)
    return given


def _typed(kind: object, text: str) -> object:
    if kind == "integer" and _WHOLE_NUMBER.fullmatch(text):
        return int(text)
    if kind == "number" and _NUMBER.fullmatch(text):
        return float(text)
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    if kind == "object":
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return text


def parameter_schema(schema: Schema) -> Schema:
    """Return the schema of a field in a query string: one or several becomes several."""
    several = (one for one in schema.get("anyOf", ()) if one.get("type") == "array")
    return next(several, schema)


def fitting(schema: Schema, value: object) -> Any:
    """Return a value that fits a schema; raise ValueError with a description of a fitting one."""
    if "anyOf" in schema:
        return _fitting_any(schema["anyOf"], value)
    if isinstance(value, float) and schema["type"] == "integer" and value.is_integer():
        value = int(value)  # 1.0 is a whole number to JSON
    if not _is_of(schema["type"], value) or ("enum" in schema and value not in schema["enum"]):
        raise ValueError(_wanted(schema))
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema["maxItems"]:
            raise ValueError(_wanted(schema))
        return [fitting(schema["items"], one) for one in value]
    if isinstance(value, str) and not _is_text(schema, value):
        raise ValueError(_wanted(schema))
    least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    if isinstance(value, int | float) and not least <= value <= most:
        raise ValueError(_wanted(schema))
    return value


def _fitting_any(schemas: Sequence[Schema], value: object) -> Any:
    for schema in schemas:
        try:
            return fitting(schema, value)
        except ValueError:
            continue
    raise ValueError(" or ".join(dict.fromkeys(map(_wanted, schemas))))


def _is_of(kind: str, value: object) -> bool:
    types: dict[str, tuple[type, ...]] = {
        "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list,),
        "null": (type(None),), "object": (dict,),
    }  # fmt: skip
    return isinstance(value, types[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _is_text(schema: Schema, text: str) -> bool:
    if not schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", math.inf):
        return False
    if "pattern" in schema and not re.fullmatch(schema["pattern"].removeprefix("^").removesuffix("$"), text):
        return False
    return schema.get("format") not in ("date", "date-time") or _is_moment(text)


def _is_moment(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and parse_date(text) is not None


def _wanted(schema: Schema) -> str:
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if "format" in schema:
        return "a date such as 2026-03-14 or 2026-03-14T09:30:00Z"
    wanted = _NAMES[schema["type"]]
    if schema["type"] in ("integer", "number"):
        return f"{wanted} from {schema['minimum']} to {schema['maximum']}"
    if schema["type"] == "array":
        most = f"at most {schema['maxItems']}, each {_wanted(schema['items'])}"
        return f"{wanted} of {'at least one and ' if schema.get('minItems') else ''}{most}"
    if schema.get("pattern") == SCOPE_PATTERN:
        return "global, user:NAME, agent:NAME or another KIND:NAME"
    if schema == HEADER_KEY.schema:
        return f"1 to {MAX_NAME_CHARACTERS} letters, digits and signs of ASCII without spaces"
    if schema.get("minLength"):
        return f"{wanted} of 1 to {schema['maxLength']} characters, without NUL"
    return wanted if "maxLength" not in schema else f"{wanted} of at most {schema['maxLength']} characters, without NUL"


def kind(schema: Schema) -> Kind:
    """Return the kind of value that is validated by a schema."""
    return Kind(schema, partial(fitting, schema))


def whole(least: int, most: int) -> Kind:
    """Return the kind of integers in a range."""
    return kind({"type": "integer", "minimum": least, "maximum": most})


def between(least: float, most: float) -> Kind:
    """Return the kind of numbers in a range."""
    return kind({"type": "number", "minimum": least, "maximum": most})


def one_of(*names: str) -> Kind:
    """Return the kind of a text with a few values."""
    return kind({"type": "string", "enum": list(names)})


def or_nothing(some: Kind) -> Kind:
    """Return the same kind, or null, which clears a value."""
    return kind({"anyOf": [*some.schema.get("anyOf", [some.schema]), {"type": "null"}]})


QUESTION = kind({"type": "string"})  # any text is one
TEXT = kind({"type": "string", "maxLength": MAX_NAME_CHARACTERS, "pattern": _NO_NUL})
REFERENCE = kind({"type": "string", "minLength": 1, "maxLength": MAX_NAME_CHARACTERS, "pattern": _WITH_TEXT})
FACT = kind({"type": "string", "minLength": 1, "maxLength": MAX_FACT_CHARACTERS, "pattern": _WITH_TEXT})
KEY = kind({"type": "string", "minLength": 1, "maxLength": MAX_NAME_CHARACTERS, "pattern": _WITH_TEXT})
HEADER_KEY = kind({"type": "string", "minLength": 1, "maxLength": MAX_NAME_CHARACTERS, "pattern": r"^[!-~]+$"})
YES_OR_NO = kind({"type": "boolean"})
TAGS = kind({"type": "array", "items": TEXT.schema, "maxItems": MAX_NAMES})
METADATA = kind({"type": "object", "propertyNames": {"pattern": _NO_NUL}, "additionalProperties": named("Json")})
MOMENT = kind({"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}]})
SESSION = kind({"type": "string", "maxLength": MOST_SESSION, "pattern": _NO_NUL})
OWN_SCOPE = kind({"type": "string", "maxLength": MAX_NAME_CHARACTERS, "pattern": SCOPE_PATTERN})
_SEVERAL_SCOPES = {"type": "array", "items": OWN_SCOPE.schema, "minItems": 1, "maxItems": MAX_NAMES}
SCOPES = kind({"anyOf": [OWN_SCOPE.schema, _SEVERAL_SCOPES]})


Example = Mapping[str, Any]
MOST_HITS = 1_000  # of one answer, and of one page of a list
_FARTHEST = 1_000_000
_MOST_TOKENS = 10_000_000
_FIXED = "the scope is set where the server is started, not by its callers"


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
        return () if self.scope is None else (Argument("scope", self.scope, "The scope, such as user:42"),)

    def read(self, access: Access, given: Mapping[str, object]) -> dict[str, Any]:
        """Parse the fields of a request; a single scope need not be a list."""
        values = strictly(f"{self.method} {self.path}", self.fields_at(access), given, _FIXED)
        return {**values, "scope": [values["scope"]]} if isinstance(values.get("scope"), str) else values


def _filters(tags: str = "tags") -> tuple[Argument, ...]:
    return (
        Argument("kind", one_of(*KINDS), "chunk: of a file; fact: added"),
        Argument(tags, TAGS, "Only memories with all these tags"),
        Argument("path", TEXT, "Only files whose path matches, such as notes/*"),
        Argument("since", MOMENT, "Only memories dated from here on"),
        Argument("before", MOMENT, "Only memories dated before this"),
        Argument("as_of", MOMENT, "As of this time"),
        Argument("include_superseded", YES_OR_NO, "Also replaced memories"),
        Argument("category", one_of(*CATEGORIES), "Only facts of this category"),
        Argument("decay", one_of(*LIFETIMES), "Only facts of this decay class"),
        Argument("min_importance", whole(1, 5), "Only memories of this importance or more"),
        Argument("language", one_of(*LANGUAGES), "Only memories in this language"),
        Argument("where", METADATA, 'Only what has such metadata, such as {"status": "open"}'),
    )


_ASKED = (
    Argument("query", QUESTION, "A question, a name or words", required=True),
    Argument("limit", whole(0, MOST_HITS), "How many results"),
    Argument("recipe", one_of(*RECIPES), "The ranking recipe"),
    Argument("syntax", one_of(*SYNTAXES), "advanced: the query knows AND, OR, NOT, word* and field:"),
    Argument("expand", YES_OR_NO, "Let a language model expand the query first"),
)
SEARCH_FIELDS = (
    *_ASKED,
    Argument("offset", whole(0, _FARTHEST), "How many results to skip"),
    Argument("strict", YES_OR_NO, "Results only if the verdict is `found`"),
    Argument("min_confidence", between(0, 1), "Only results of this confidence or more, from 0 to 1"),
    Argument("max_tokens", whole(1, _MOST_TOKENS), "Token budget: as many whole memories as fit, best first"),
    Argument("timeout_ms", whole(1, MAX_TIMEOUT_MS), "Answer with what was found so far after this time"),
    Argument("explain", YES_OR_NO, "With the trail of every result and every dropped candidate"),
    *_filters(),
)
# Candidates always carry their explanation, and the page that requests them waits for all of them.
CANDIDATE_FIELDS = tuple(field for field in SEARCH_FIELDS if field.name not in ("explain", "timeout_ms"))
_FACT_FIELDS = (
    ("name", TEXT, "Its name"),
    ("category", one_of(*CATEGORIES), "What kind of fact it is"),
    ("tags", TAGS, "To filter by"),
    ("entities", TAGS, "Persons and things it is about"),
    ("importance", whole(1, 5), "How important it is"),
    ("decay", one_of(*LIFETIMES), "How long it is kept"),
    ("date", MOMENT, "When it happened"),
    ("valid_from", MOMENT, "From when on it is true"),
    ("valid_until", MOMENT, "Until when it is true"),
    ("expires", MOMENT, "When it expires"),
    ("trust", one_of(*TRUSTS), "How far it is trusted"),
    ("metadata", METADATA, "Anything else, as an object"),
    ("subject", TEXT, "Whom or what it says something about, as a key"),
    ("attribute", TEXT, "What it says of the subject, as a key"),
)
_SUPERSEDES = Argument("supersedes", FACT, "Id or text of the fact it replaces")
IDEMPOTENCY_KEY = Argument(
    "Idempotency-Key",
    HEADER_KEY,
    "Makes the write idempotent: repeating it returns the same memory, and a different write with this key is refused",
)
CURSOR = kind({"type": "string", "minLength": 1, "maxLength": handlers.MAX_CURSOR_CHARACTERS})
_QUERY = {"query": "which tea does Robin prefer?", "limit": 3}
_ID = "m_tcvp3fagya7erbvs"

OPERATIONS = (
    Operation("POST", "/v1/search", "search", "Find memories, best first", handlers.search, "Results",
              SEARCH_FIELDS, _QUERY),
    Operation("GET", "/v1/search", "searchByAddress", "The same as a GET request", handlers.search, "Results",
              SEARCH_FIELDS, _QUERY),
    Operation("POST", "/v1/recall", "recall", "What an agent should be reminded of in a turn, as quoted data with"
              " sources; an empty text if there is nothing to say", handlers.recall, "Reminder",
              (Argument("turn", QUESTION, "The turn of the conversation", required=True),
               Argument("max_tokens", whole(1, _MOST_TOKENS), "Token budget, frame included (recall.max_tokens)"),
               Argument("session", SESSION, "Give nothing twice in this session"),
               Argument("timeout_ms", whole(1, MAX_TIMEOUT_MS), "Answer with what was found so far after this time")),
              {"turn": "can you make Robin something to drink?", "max_tokens": 400, "session": "today"}),
    Operation("POST", "/v1/candidates", "candidates", "All that ranking knew of the candidates, to be ranked again by"
              " other settings", handlers.candidates, "Candidates", CANDIDATE_FIELDS, _QUERY),
    Operation("POST", "/v1/likeness", "likeness", "Similarities between candidates, as diversity needs them",
              handlers.likeness, "Likeness", CANDIDATE_FIELDS, _QUERY),
    Operation("POST", "/v1/why", "why", "Explain the place of a memory among the results, or where it was lost; with"
              " `over`, the smallest change that would put it above another", handlers.why, "WhyOrContrast",
              (*_ASKED, Argument("id", REFERENCE, "Id or path of the memory", required=True),
               Argument("over", REFERENCE, "Id or path of another"), *_filters()),
              {"query": "which tea does Robin prefer?", "id": _ID}, failures=(404, 422, 503)),
    Operation("GET", "/v1/memories", "listMemories", "List memories, a page at a time", handlers.listed, "Page",
              (Argument("limit", whole(1, MOST_HITS), f"How many on a page ({handlers.PAGE_MEMORIES})"),
               Argument("cursor", CURSOR, "`next` of the previous page"),
               Argument("sort", one_of(*ORDERS), "The order (place)"),
               *_filters(),
               Argument("superseded", YES_OR_NO, "Only replaced memories"),
               Argument("expired", YES_OR_NO, "Only expired or no longer valid")), {"limit": 2, "sort": "created"}),
    Operation("POST", "/v1/memories", "addMemory", "Store a fact: 201 if it is new, 200 if it was there",
              handlers.added, "Added",
              (Argument("text", FACT, "The fact", required=True), _SUPERSEDES,
               Argument("key", KEY, "Makes the write idempotent; same as the header Idempotency-Key"),
               *(Argument(*one) for one in _FACT_FIELDS)),
              {"text": "Robin prefers green tea", "tags": ["drinks"], "importance": 4},
              scope=OWN_SCOPE, writes=True, statuses=(200, 201), failures=(403, 404, 409, 422, 503, 507)),
    Operation("GET", "/v1/memories/{id}", "showMemory", "One memory with its history and what it replaced",
              handlers.shown, "Shown", failures=(404, 422, 503)),
    Operation("PATCH", "/v1/memories/{id}", "updateMemory", "Change a fact; it keeps its id, and null clears a field",
              handlers.updated, "Changed",
              (Argument("text", FACT, "The new text"),
               Argument("supersedes", or_nothing(FACT), "Id or text of the fact it replaces; null restores that fact"),
               *(Argument(name, or_nothing(kind), about) for name, kind, about in _FACT_FIELDS)),
              {"importance": 5, "tags": ["drinks", "robin"]},
              writes=True, failures=(403, 404, 409, 422, 503, 507)),
    Operation("DELETE", "/v1/memories/{id}", "forgetMemory", "Remove a memory for good", handlers.forgotten,
              "Forgotten", (Argument("purge", YES_OR_NO, "Overwrite every byte of it; at most ten times a minute"),),
              writes=True, failures=(403, 404, 409, 422, 429, 503, 507)),
    Operation("POST", "/v1/recalled", "recalled", "Record that memories were useful", handlers.recalled, "Recalled",
              (Argument("ids", kind({"type": "array", "items": REFERENCE.schema, "minItems": 1,
                                            "maxItems": MAX_IDS}), "Their ids", required=True),),
              {"ids": [_ID]}, writes=True, failures=(403, 404, 422, 503, 507)),
    Operation("POST", "/v1/ingest", "ingest", "Index files and folders of the workspace; with Accept: text/event-stream"
              " the answer is events: progress {done, total, what}, then report, or error", handlers.ingested, "Report",
              (Argument("paths", kind({"type": "array", "items": REFERENCE.schema, "minItems": 1,
                                              "maxItems": MAX_IDS}), "Files and folders below the workspace",
                        required=True),
               Argument("dry_run", YES_OR_NO, "Show what would happen, change nothing")),
              {"paths": ["notes"], "dry_run": True},
              scope=OWN_SCOPE, writes=True, takes_long=True, failures=(403, 422, 503, 507)),
    Operation("GET", "/v1/status", "status", "Counts, pending work and calibration of the store",
              handlers.status, "Status"),
    Operation("GET", "/v1/recipes", "recipes", "The recipes, and the settings each of them uses",
              handlers.recipes, "Recipes", scope=None),
)  # fmt: skip


def by_path(operations: Sequence[Operation] = OPERATIONS) -> dict[str, dict[str, Operation]]:
    """Return the operations of each path, by method."""
    paths: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = operation
    return paths


_ABOUT = """Memory search that can say why. Answers are the same as those of the library and the command line.

Send `Authorization: Bearer TOKEN`. Bodies are JSON of at most {limit:,} bytes; what is unknown or of the wrong type is
refused. Every answer has an `X-Request-Id`, copied from the request if it has a valid one."""


def document(*, multi_scope: bool, has_token: bool = True) -> dict[str, Any]:
    """Return the OpenAPI document of a server; `scope` is included if callers may choose it."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, multi_scope)
    paths["/health"] = {"get": _open("health", "Health check: runs a real query", "Health")}
    paths["/metrics"] = {"get": _metrics()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "whyrank", "version": __version__, "description": _ABOUT.format(limit=MAX_BODY_BYTES)},
        "security": [{"token": []}] if has_token else [],
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}} if has_token else {},
        },
    }


_ID_SCHEMA = {"type": "string", "minLength": 1, "maxLength": 100, "pattern": r"^[^/\x00]+$"}


def _operation(operation: Operation, multi_scope: bool) -> dict[str, Any]:
    fields = (*operation.fields, *operation.scope_field) if multi_scope else operation.fields
    told: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.about,
        "parameters": [
            _parameter(name, "path", "The id of a memory", _ID_SCHEMA, required=True, example=ANSWERS["Shown"]["id"])
            for name in re.findall(r"{(\w+)}", operation.path)
        ],
        "responses": _responses(operation),
    }
    if operation.has_body:
        told["requestBody"] = _body(operation, fields)
    else:
        given = operation.example or {}
        told["parameters"] += [
            _parameter(field.name, "query", field.about, parameter_schema(field.kind.schema), required=field.required,
                       **({"example": given[field.name]} if field.name in given else {}))
            for field in fields
        ]  # fmt: skip
    if any(field.name == "key" for field in fields):
        key = IDEMPOTENCY_KEY
        told["parameters"].append(_parameter(key.name, "header", key.about, key.kind.schema))
    return told


def _body(operation: Operation, fields: tuple[Argument, ...]) -> dict[str, Any]:
    schema = {**schema_of(fields), "additionalProperties": False}
    content: dict[str, Any] = {"schema": schema}
    if operation.example is not None:
        content["examples"] = {"usual": {"value": dict(operation.example)}}
    return {"required": True, "content": {"application/json": content}}


def _parameter(name: str, place: str, about: str, schema: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    is_object = schema.get("type") == "object"  # written as JSON
    of = {"content": {"application/json": {"schema": schema}}} if is_object else {"schema": schema}
    return {"name": name, "in": place, "required": False, "description": about, **of, **more}


def _responses(operation: Operation) -> dict[str, Any]:
    told = {str(status): _response(HTTPStatus(status).phrase, operation.answer) for status in operation.statuses}
    if operation.takes_long:
        told["200"]["content"]["text/event-stream"] = {"schema": {"type": "string"}}
    body = (400, 413, 415) if operation.has_body else ()
    for status in sorted({*operation.failures, *body, 401}):
        told[str(status)] = _response(HTTPStatus(status).phrase, "Error")
    return {**told, "default": _response("Any other failure", "Error")}


def _response(about: str, schema: str) -> dict[str, Any]:
    content = {"schema": named(schema), "examples": {"usual": {"value": ANSWERS[schema]}}}
    headers = {"X-Request-Id": {"description": "The id of the request", "required": True, "schema": {"type": "string"}}}
    return {"description": about, "headers": headers, "content": {"application/json": content}}


def _open(name: str, about: str, schema: str) -> dict[str, Any]:
    responses = {
        "200": _response("Healthy", schema),
        "503": _response("Unhealthy", schema),
        "default": _response("Any other failure", "Error"),
    }
    return {"operationId": name, "summary": about, "security": [], "responses": responses}


def _metrics() -> dict[str, Any]:
    content = {"text/plain": {"schema": {"type": "string"}}}
    responses = {
        "200": {"description": "Prometheus text", "content": content},
        "401": _response(HTTPStatus(401).phrase, "Error"),
        "default": _response("Any other failure", "Error"),
    }
    return {"operationId": "metrics", "summary": "Figures in the Prometheus format", "responses": responses}
