"""Strict parsing of request fields and bodies."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from ...engine.arguments import MAX_FACT_CHARACTERS, MAX_NAME_CHARACTERS, MAX_NAMES
from ...errors import ConfigError, WhyrankError
from ...ingest.dates import parse_date
from ..arguments import Argument, Kind
from ..auth import BODY_SECONDS, Receive

MAX_BODY_BYTES = 1_048_576  # a fact of 50,000 letters in any script with all its fields, several times over
_LINGER_SECONDS = 5.0  # for a client to finish sending a discarded body, so that it reads the error
_LINGER_BYTES = 64 * 1_048_576


class BadRequest(WhyrankError):
    """An invalid request, with its HTTP status."""

    def __init__(self, status: int, code: str, message: str, hint: str, retry_after_s: float | None = None) -> None:
        super().__init__(message, hint)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s


class Left(Exception):
    """The client has disconnected."""


async def read_body(receive: Receive, length: str | None) -> bytes:
    """Return the body; refuse it by its declared length before it arrives, or after a timeout."""
    if length is not None and length.isdecimal() and int(length[:20]) > MAX_BODY_BYTES:
        raise _too_long()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _all_of(receive)
    except TimeoutError as error:
        message = f"the body did not arrive within {BODY_SECONDS:.0f} seconds"
        raise BadRequest(408, "slow", message, "send it at once") from error


async def _all_of(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Left
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise _too_long()
        parts.append(part)
        more = message.get("more_body", False)
    return b"".join(parts)


def _too_long() -> BadRequest:
    message = f"the body is longer than {MAX_BODY_BYTES:,} bytes"
    return BadRequest(413, "too-long", message, "send less; long texts are files for /v1/ingest")


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
        raise BadRequest(400, "bad-json", f"the body is no JSON: {said}", "send one JSON object in UTF-8") from error
    if not isinstance(read, dict):
        raise BadRequest(422, "config", "the body is no JSON object", 'send one object: {"query": "…"}')
    return read


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _said_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("a name stands in it twice")
    return read


Schema = Mapping[str, Any]

_SHOWN = 60  # characters quoted of an invalid value
_PARAMETERS = 1_000  # of one query string: all lists at their maximum length
# Whitespace that dialects of regular expressions disagree on is listed, so that all read the document alike.
_SEEN = r"[^\s\x00-\x1f\x85\ufeff]"
_UNSEEN = r"[\s\x01-\x1f\x85\ufeff]"
# Names of scopes begin and end with a visible character.
SCOPE_PATTERN = rf"^(global|(user|agent|session):{_SEEN}([^\x00]*{_SEEN})?)$"
# Unambiguous, so that matching takes linear time.
_WITH_TEXT = rf"^{_UNSEEN}*{_SEEN}[^\x00]*$"
_NO_NUL = r"^[^\x00]*$"
# A day, or a moment of a day, in UTC where no offset is given; RFC 3339, seconds and offset may be left out.
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_WHOLE_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,18})?", re.ASCII)
_NAMES = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
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
        return ConfigError("scope is not the caller's to choose here", fixed)
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
    if isinstance(value, int | float) and not schema.get("minimum", -math.inf) <= value <= schema.get(
        "maximum", math.inf
    ):
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
        "null": (type(None),),
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
    """Describe a schema in words."""
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
        return "global, user:NAME, agent:NAME or session:NAME"
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
MOMENT = kind({"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}]})
OWN_SCOPE = kind({"type": "string", "maxLength": MAX_NAME_CHARACTERS, "pattern": SCOPE_PATTERN})
SCOPES = kind(
    {"anyOf": [OWN_SCOPE.schema, {"type": "array", "items": OWN_SCOPE.schema, "minItems": 1, "maxItems": MAX_NAMES}]}
)
