"""Front matter: the fields between the first two fences of a file, where they stand, and what is wrong with them.

A file may as well begin with a rule. What stands between two fences and makes no fields is text; something is said of
it where somebody must have meant fields: right below the fence it is a list or no YAML, or one of its lines is a field
that we read.

What YAML may cost is bounded: characters, tokens, levels of nesting, aliases, and entries that merge keys add. What is
over a limit is text, and its fields are read one by one where that is possible.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any, NamedTuple

import yaml

from .markers import FRONT, READERS

MOST_CHARACTERS = 65_536  # some ten pages; PyYAML reads as many in half a second
MOST_LEVELS = 100  # the scanner of PyYAML looks at every open level for every token
MOST_TOKENS = 10_000  # three thousand fields, about a quarter of a second of PyYAML
MOST_ALIASES = 100
MOST_MERGED = 1_000  # entries; nine merge keys on each of ten levels would add 9^10 of them
_MOST_SEXAGESIMAL = 32  # characters of a number like 1:30:00; each part multiplies a number as long as all before

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
    size = sum(map(len, between)) + len(between)
    if size > MOST_CHARACTERS:
        said = f"front matter could not be read: it has {size:,} characters, over the limit of {MOST_CHARACTERS:,}"
        return FrontMatter(problem=said if between[0].strip() or _names_fields(between) else "")
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
    starts, written = list[int](), list[list[str]]()
    is_open = False
    for number, line in enumerate(between):
        if _KEY.match(line):
            starts.append(number)
            written.append([line])
            is_open = True
        elif is_open and _GOES_ON.match(line):
            written[-1].append(line)
        else:
            is_open = False
    fields = dict(map(_field, written))
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


class _CountsMerged:
    """Refuses merge keys that add too many entries: each level of them may add as many times what the last one has."""

    _merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Add the entries of merge keys to a mapping, and count them."""
        before = len(node.value)
        super().flatten_mapping(node)  # type: ignore[misc]
        self._merged += max(0, len(node.value) - before)
        if self._merged > MOST_MERGED:
            raise _refusal(f"merge keys add more than {MOST_MERGED:,} entries", node.start_mark)


class OwnLoader(_CountsMerged, yaml.SafeLoader):
    """Reads what libyaml may not, within limits; tokens, levels and aliases are counted as they are met."""

    _read, _aliases = 0, 0

    def fetch_more_tokens(self) -> Any:
        """Read the next token."""
        self._read += 1
        if self._read > MOST_TOKENS:
            raise _refusal(f"more than {MOST_TOKENS:,} tokens", self.get_mark())
        if self.flow_level + len(self.indents) > MOST_LEVELS:
            raise _refusal(f"nested deeper than {MOST_LEVELS} levels", self.get_mark())
        return super().fetch_more_tokens()

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Read a node, or what an alias stands for."""
        if self.check_event(yaml.AliasEvent):
            self._aliases += 1
            if self._aliases > MOST_ALIASES:
                raise _refusal(f"more than {MOST_ALIASES} aliases", self.get_mark())
        return super().compose_node(parent, index)


def _refusal(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _moment(loader: OwnLoader, node: yaml.ScalarNode) -> object:
    """Leave a day that there is not (30 February) as it is written, so that its field alone is refused."""
    try:
        return loader.construct_yaml_timestamp(node)
    except (ValueError, OverflowError):
        return loader.construct_scalar(node)


def _whole(loader: OwnLoader, node: yaml.ScalarNode) -> object:
    return loader.construct_scalar(node) if _is_long_sexagesimal(node) else loader.construct_yaml_int(node)


def _decimal(loader: OwnLoader, node: yaml.ScalarNode) -> object:
    return loader.construct_scalar(node) if _is_long_sexagesimal(node) else loader.construct_yaml_float(node)


def _is_long_sexagesimal(node: yaml.ScalarNode) -> bool:
    return len(node.value) > _MOST_SEXAGESIMAL and ":" in node.value


# The same eight times as fast, where PyYAML was built with libyaml.
QuickLoader: type[Any] = (
    type("QuickLoader", (_CountsMerged, yaml.CSafeLoader), {}) if yaml.__with_libyaml__ else OwnLoader
)
for _each in (OwnLoader, QuickLoader):
    _each.add_constructor("tag:yaml.org,2002:timestamp", _moment)
    _each.add_constructor("tag:yaml.org,2002:int", _whole)
    _each.add_constructor("tag:yaml.org,2002:float", _decimal)


def _loaded(text: str) -> tuple[object, dict[str, str]]:
    """Return what YAML says, its keys in small letters, and where in the file they stand."""
    if is_read_alike(text):
        with suppress(*_YAML_ERRORS):  # PyYAML's own are told
            return loaded_by(QuickLoader, text)
    return loaded_by(OwnLoader, text)


def is_read_alike(text: str) -> bool:
    """Tell whether libyaml reads a text as PyYAML does, if it reads it, and does not go down without an end."""
    nested = sum(map(text.count, _NESTING))
    counted = nested <= _MOST_NESTED and text.count("*") <= MOST_ALIASES
    return len(text) <= _SHORT and counted and _READ_OTHERWISE.search(text) is None


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
