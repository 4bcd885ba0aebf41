"""What a request may say: each field is held to the very schema that the OpenAPI document shows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from ...arguments import MAX_FACT_CHARACTERS, MAX_NAME_CHARACTERS, MAX_NAMES
from ...errors import ConfigError
from ...ingest.dates import parse_date
from ..forgiving import Argument, Kind

Schema = Mapping[str, Any]

_SHOWN = 60  # characters of a value that makes no sense
_PARAMETERS = 1_000  # of one address: all lists as long as they may be
# What is white to one dialect of patterns and not to another is named, so that all read the document alike.
_SEEN = r"[^\s\x00-\x1f\x85\ufeff]"
_UNSEEN = r"[\s\x01-\x1f\x85\ufeff]"
# Names of scopes begin and end with something that can be seen.
SCOPE_PATTERN = rf"^(global|(user|agent|session):{_SEEN}([^\x00]*{_SEEN})?)$"
# One way to read it, so that the longest text takes no longer than its length.
_WITH_TEXT = rf"^{_UNSEEN}*{_SEEN}[^\x00]*$"
_NO_NUL = r"^[^\x00]*$"
# A day, or a moment of a day, in UTC where no offset is given; RFC 3339, seconds and offset may be left out.
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_WHOLE_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)
_NAMES = {
    "string": "a text",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "null": "null",
}


def strictly(place: str, fields: Sequence[Argument], given: Mapping[str, object], fixed: str = "") -> dict[str, Any]:
    """Read what was given to a place; what nobody knows is refused, and so is a scope where it is `fixed`."""
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
    """Return what stands behind the question mark of an address, each as its field wants it, lists by repeating."""
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
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    return text


def parameter_schema(schema: Schema) -> Schema:
    """Return how a field is written in an address: what may be one or several is several."""
    several = (one for one in schema.get("anyOf", ()) if one.get("type") == "array")
    return next(several, schema)


def fitting(schema: Schema, value: object) -> Any:
    """Return a value that fits a schema, or say what would."""
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
    if isinstance(value, int) and not schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf):
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
    types: dict[str, type] = {"string": str, "integer": int, "boolean": bool, "array": list, "null": type(None)}
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
    """Say in words what a schema asks for."""
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if "format" in schema:
        return "a date such as 2026-03-14 or 2026-03-14T09:30:00Z"
    wanted = _NAMES[schema["type"]]
    if schema["type"] == "integer":
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
    """Return a kind of value that is read as its schema says."""
    return Kind(schema, partial(fitting, schema))


def whole(least: int, most: int) -> Kind:
    """Return whole numbers between two."""
    return kind({"type": "integer", "minimum": least, "maximum": most})


def one_of(*names: str) -> Kind:
    """Return a text that is one of a few."""
    return kind({"type": "string", "enum": list(names)})


def or_nothing(some: Kind) -> Kind:
    """Return the same, or null, which takes back what was said."""
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
