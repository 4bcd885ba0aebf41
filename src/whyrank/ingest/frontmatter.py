"""Front matter: the fields between the first two fences of a file, where they stand, and what is wrong with them.

A file may as well begin with a rule. What stands between two fences and makes no fields is text; something is said of
it where somebody must have meant fields: right below the fence it is a list or no YAML, or one of its lines is a field
that we read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any, NamedTuple

import yaml

from .markers import FRONT, READERS

_FENCE = "---"
_FENCE_ENDS = ("---", "...")
# What a value that does not fit its tag makes of PyYAML, beside its own errors.
_YAML_ERRORS = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, OverflowError, RecursionError)
_BEHIND_THE_FENCE = 2  # lines of YAML count from 0, those of the file from 1 and with the fence
_FIELD = re.compile(r"""(?:-[ \t]+)?["']?([\w-]+)["']?[ \t]*:(?:[ \t]|$)""")
# Tabs, other ends of lines than ours, comments right behind the sign of a block, question marks, which begin keys, and
# tags without a name.
_READ_OTHERWISE = re.compile(
    r"[^\n -~\u00a0-\u2027\u202a-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|[|>][-+0-9]*#|\?"
    r"|(?:^|[\s,\[{])!(?:[\s,\]}]|\Z)"
)
# In so short a text, lines can be indented but some ninety times; what nests within lines has signs.
_SHORT, _NESTING, _MOST_NESTED = 4096, ("[", "{", "- "), 64
_KEY = re.compile(r"[\w-]+:(?:[ \t]|$)")
_GOES_ON = re.compile(r"[ \t#]|- |-?$")  # what is below a key belongs to it
_NAMING_FIELDS = frozenset({"title", "name", "slug", "description", "summary"})


class FrontMatter(NamedTuple):
    """The fields of a file by lower-case key, what to call their lines, where the body begins, and what was wrong."""

    fields: Mapping[str, Any] = {}
    places: Mapping[str, str] = {}
    body_start: int = 0
    problem: str = ""


def front_matter(lines: Sequence[str]) -> FrontMatter:
    """Read the front matter of a file, if it has any."""
    if not lines or lines[0].strip() != _FENCE:
        return FrontMatter()
    end = next((i for i, line in enumerate(lines[1:], 1) if line.strip() in _FENCE_ENDS), None)
    if end is None:
        paragraph = list(takewhile(str.strip, lines[1:]))
        return FrontMatter(
            problem="front matter is never closed by ---: read as text" if _names_fields(paragraph) else ""
        )
    between = lines[1:end]
    try:
        fields, places = _loaded("\n".join(between))
    except _YAML_ERRORS as error:
        return _one_by_one(between, error)
    if isinstance(fields, list) and between[0].strip():
        return FrontMatter(problem="front matter is a list, and no fields (key: value): read as text")
    return FrontMatter(fields, places, end + 1) if isinstance(fields, dict) else FrontMatter()


def _one_by_one(between: Sequence[str], error: Exception) -> FrontMatter:
    """Read fields that make no YAML together, so that a colon in one costs no other; all of it stays text as well."""
    said = f"front matter could not be read: {_slip(error)}"
    if not _names_fields(between):
        return FrontMatter(problem=said if between[0].strip() else "")
    starts = [number for number, line in enumerate(between) if _KEY.match(line)]
    fields = dict(_field([between[start], *takewhile(_GOES_ON.match, between[start + 1 :])]) for start in starts)
    places = {between[start].split(":", 1)[0].lower(): _place(start) for start in starts}
    return FrontMatter(fields, places, problem=f"{said}; its fields were read one by one" if fields else said)


def _field(lines: Sequence[str]) -> tuple[str, Any]:
    """Return the key and the value of one field; what is no YAML is taken as it is written."""
    key, written = lines[0].split(":", 1)
    with suppress(*_YAML_ERRORS):
        fields, _ = _loaded("\n".join(lines))
        if isinstance(fields, dict) and len(fields) == 1:
            return next(iter(fields.items()))
    return key.lower(), " ".join(" ".join([written, *lines[1:]]).split())


def _names_fields(lines: Sequence[str]) -> bool:
    """Tell whether one of the lines begins as a field does that we read."""
    said = (_FIELD.match(line) for line in lines)
    return any(field is not None and field[1].lower() in _NAMING_FIELDS | READERS.keys() for field in said)


class OwnLoader(yaml.SafeLoader):
    """Leaves a day that there is not (30 February) as it is written, so that its field alone is refused."""


def _moment(loader: OwnLoader, node: yaml.ScalarNode) -> object:
    try:
        return loader.construct_yaml_timestamp(node)
    except (ValueError, OverflowError):
        return loader.construct_scalar(node)


# The same eight times as fast, where PyYAML was built with libyaml.
QuickLoader: type[Any] = type("QuickLoader", (yaml.CSafeLoader,), {}) if yaml.__with_libyaml__ else OwnLoader
for _each in (OwnLoader, QuickLoader):
    _each.add_constructor("tag:yaml.org,2002:timestamp", _moment)


def _loaded(text: str) -> tuple[object, dict[str, str]]:
    """Return what YAML says, its keys in small letters, and where in the file they stand."""
    if is_read_alike(text):
        with suppress(*_YAML_ERRORS):  # PyYAML's own are told
            return loaded_by(QuickLoader, text)
    return loaded_by(OwnLoader, text)


def is_read_alike(text: str) -> bool:
    """Tell whether libyaml reads a text as PyYAML does, if it reads it, and does not go down without an end."""
    nested = sum(map(text.count, _NESTING))
    return len(text) <= _SHORT and nested <= _MOST_NESTED and _READ_OTHERWISE.search(text) is None


def loaded_by(kind: type[Any], text: str) -> tuple[object, dict[str, str]]:
    """Return the same as one loader has it."""
    loader = kind(text)
    try:
        node = loader.get_single_node()
        said = None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()
    if node is None or said is None:
        return {}, {}
    if not isinstance(said, dict):
        return said, {}
    keys = [key for key, _ in node.value if isinstance(key.value, str)]
    places = {key.value.lower(): _place(key.start_mark.line) for key in keys}
    return {key.lower(): value for key, value in said.items() if isinstance(key, str)}, places


def _place(line: int) -> str:
    return f"{FRONT}, line {line + _BEHIND_THE_FENCE}"


def _slip(error: Exception) -> str:
    """Say what is wrong with front matter, and in which line of its file, where that is known."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None or not problem:
        return (str(error) or repr(error)).splitlines()[0]
    return f"{problem} in line {mark.line + _BEHIND_THE_FENCE}"
