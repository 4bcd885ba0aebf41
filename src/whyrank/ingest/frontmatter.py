"""Front matter and inline markers: bounded, linear, with positions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from difflib import get_close_matches
from functools import lru_cache
from itertools import chain, islice, takewhile
from typing import Any, NamedTuple

import yaml

from ..analysis.dates import parse_date
from ..analysis.normalize import clean
from ..types.memory import CATEGORIES, LIFETIMES, expiry

_OPENING = re.compile(r"(?<!\\)<!--\s*whyrank:")
_CLOSING = "-->"
_BACKTICKS = re.compile("`+")
_MOST_IN_A_MARKER = 4_000  # characters; `shlex` takes four times as long for twice as many
_MOST_NAMES = 100  # of a list: every chunk of the file has them all
_LARGEST_NUMBER = 10**18
_LONGEST = 200  # characters of a tag or an entity
_ALIKE = 0.8  # of difflib: a key in front matter so similar to one of ours is a typo, others belong to other programs
FRONT = "front matter"
_OTHER_SPELLINGS = {"tag": "tags", "entity": "entities", "alias": "aliases"}


class Mark(NamedTuple):
    """Fields of the markers on one line; lines count from 0."""

    line: int
    said: Mapping[str, Any]
    problems: tuple[str, ...] = ()


class FileFields(NamedTuple):
    """Fields of a memory as a file gives them, and the problems with others."""

    values: Mapping[str, Any] = {}
    problems: tuple[str, ...] = ()

    def over(self, below: Mapping[str, Any]) -> dict[str, Any]:
        """Return these fields over those of the whole file; tags, entities and aliases are added to them."""
        lists = {key: (*below.get(key, ()), *value) for key, value in self.values.items() if isinstance(value, tuple)}
        return {**below, **self.values, **{key: tuple(dict.fromkeys(value)) for key, value in lists.items()}}


def taken_out(line: str, number: int) -> tuple[str, Mark | None]:
    """Return a line without its markers, and their fields."""
    found, is_closed = _markers_in(line)
    if is_closed and not found:
        return line, None
    said: dict[str, Any] = {}
    problems = [] if is_closed else [f"line {number + 1}: a marker must end on its line"]
    for marker in found:
        fields, wrong = _assignments(line[marker.inside], number + 1)
        said |= fields
        problems += wrong
    return _without(line, found), Mark(number, said, tuple(problems))


def without_markers(text: str) -> str:
    """Return a text, for instance a heading, without its markers."""
    return _without(text, _markers_in(text)[0]).strip()


class _Marker(NamedTuple):
    """Position of a marker in a line, with the spaces before it, and of its content."""

    start: int
    end: int
    inside: slice


def _markers_in(line: str) -> tuple[list[_Marker], bool]:
    """Return the markers of a line, except in code spans, and whether all of them end on the line."""
    read, markers, place = _without_code(line), list[_Marker](), 0
    while (opening := _OPENING.search(read, place)) is not None:
        closing = read.find(_CLOSING, opening.end())
        if closing < 0:
            return markers, False
        start = place + len(read[place : opening.start()].rstrip(" \t"))
        place = closing + len(_CLOSING)
        markers.append(_Marker(start, place, slice(opening.end(), closing)))
    return markers, True


def _without_code(line: str) -> str:
    """Return a line with its code spans (between equal runs of backticks) masked at the same length."""
    runs = [found.span() for found in _BACKTICKS.finditer(line)]
    if not runs:
        return line
    following: dict[int, int] = {}
    closed_by: list[int | None] = []
    for number in reversed(range(len(runs))):
        length = runs[number][1] - runs[number][0]
        closed_by.append(following.get(length))
        following[length] = number
    closed_by.reverse()
    parts, place, number = list[str](), 0, 0
    while number < len(runs):
        start, closing = runs[number][0], closed_by[number]
        if closing is not None and not line.startswith("\\", start - 1 if start else 0):
            end = runs[closing][1]
            parts += (line[place:start], "`" * (end - start))
            place, number = end, closing
        number += 1
    return "".join([*parts, line[place:]])


def _without(line: str, markers: Sequence[_Marker]) -> str:
    ends = [0, *(marker.end for marker in markers)]
    starts = [*(marker.start for marker in markers), len(line)]
    return "".join(line[end:start] for end, start in zip(ends, starts, strict=True))


def _assignments(marker: str, line: int) -> tuple[dict[str, Any], list[str]]:
    if len(marker) > _MOST_IN_A_MARKER:
        return {}, [f"line {line}: a marker of {len(marker):,} characters, over the limit of {_MOST_IN_A_MARKER:,}"]
    try:
        words = shlex.split(marker)
    except ValueError as error:
        return {}, [f"line {line}: a marker cannot be read: {error}"]
    pairs = [word.partition("=") for word in words]
    fields = {_key(key): value for key, sign, value in pairs if sign}
    return fields, [f"line {line}: {key!r} in a marker is not key=value" for key, sign, _ in pairs if not sign]


def file_fields(said: Mapping[str, Any], places: Mapping[str, str], whole: str = FRONT) -> FileFields:
    """Read fields; unknown or invalid ones become problems with their place, and nothing more."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for given, value in said.items():
        key, place = _key(given), places.get(given, whole)
        if key not in READERS:
            problems += _unknown(given, place)
        elif value not in (None, "", []):
            try:
                values[key] = READERS[key](value)
                if isinstance(values[key], tuple) and len(values[key]) > _MOST_NAMES:
                    problems.append(f"{place}: {len(values[key]):,} {key}, the first {_MOST_NAMES} are kept")
                    values[key] = values[key][:_MOST_NAMES]
            except ValueError as error:
                problems.append(f"{place}: {given[:60]} = {scalar(value)[:60]!r}: {error}")
    if values.get("valid_from", 0.0) >= values.get("valid_until", float("inf")):
        problems.append(f"{whole}: valid_from is not before valid_until")
        del values["valid_until"]
    return FileFields(values, tuple(problems))


def section_fields(marks: Iterable[Mark]) -> FileFields:
    """Read the fields of one section's markers; later ones override earlier ones."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    for mark in marks:
        read = file_fields(mark.said, {}, f"line {mark.line + 1}")
        values = read.over(values)
        problems += (*mark.problems, *read.problems)
        for key, names in values.items():
            if isinstance(names, tuple) and len(names) > _MOST_NAMES:
                values[key] = names[:_MOST_NAMES]
                problems.append(f"line {mark.line + 1}: over the limit of {_MOST_NAMES} {key} for a section")
    return FileFields(values, tuple(problems))


def lasting(values: Mapping[str, Any], written: float) -> dict[str, Any]:
    """Return fields with the expiry that follows from the decay class, unless it is given."""
    if "expires" in values:
        return {**values, "expires_given": True}
    return {**values, "expires": expiry(values.get("decay", ""), written)}


def scalar(value: object) -> str:
    """Return a single value as text; empty for lists, tables and numbers out of range."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | date):
        return ""
    if isinstance(value, int) and abs(value) > _LARGEST_NUMBER:
        return ""
    return " ".join(clean(str(value)).text.split())


def _key(given: str) -> str:
    key = given.lower().replace("-", "_")
    return _OTHER_SPELLINGS.get(key, key)


def _unknown(key: str, place: str) -> list[str]:
    """Return the problem of an unknown key; in front matter, shared by programs, only of a likely typo."""
    close = _close_to(_key(key)) if len(key) <= _LONGEST else None
    if close is not None:
        return [f"{place}: there is no {key!r}; did you mean {close!r}?"]
    return [] if place.startswith(FRONT) else [f"{place}: there is no {key!r}"]


@lru_cache(maxsize=1024)  # files of one kind share their keys
def _close_to(key: str) -> str | None:
    return next(iter(get_close_matches(key, READERS, n=1, cutoff=_ALIKE)), None)


def _one_of(*names: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        name = scalar(value).lower()
        if name not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return name

    return read


def _importance(value: Any) -> int:
    if scalar(value) not in ("1", "2", "3", "4", "5"):
        raise ValueError("must be a whole number from 1 to 5")
    return int(scalar(value))


def _moment(value: Any) -> float:
    seconds = parse_date(value)
    if seconds is None:
        raise ValueError("is not a date")
    return seconds


def _names(value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list):
        raise ValueError("must be a list, or names with commas between them")
    return tuple(dict.fromkeys(name for item in items if (name := scalar(item)[:_LONGEST])))


READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("tags", "entities", "aliases"), _names),
    **dict.fromkeys(("date", "valid_from", "valid_until", "expires"), _moment),
    "category": _one_of(*CATEGORIES),
    "importance": _importance,
    "decay": _one_of(*LIFETIMES),
    "trust": _one_of("ingested", "untrusted"),
}


MOST_CHARACTERS = 65_536  # some ten pages; PyYAML reads as many in half a second
MOST_LEVELS = 100  # the scanner of PyYAML checks every open level for every token
MOST_TOKENS = 10_000  # three thousand fields, about a quarter of a second of PyYAML
MOST_ALIASES = 100
MOST_PROPERTIES = 1_000  # values of one file that are written as text; aliases may repeat them without end
_MOST_OF_A_KEY = 100  # characters of the key of such a value, which holds those of the fields around it
MOST_MERGED = 1_000  # entries; nine merge keys on each of ten levels would add 9^10 of them
_WHOLE_NUMBER = "tag:yaml.org,2002:int"
_MOST_SEXAGESIMAL = 32  # characters of a number like 1:30:00; each part multiplies a number as long as all before

_FENCE = "---"
_FENCE_ENDS = ("---", "...")
# Errors of PyYAML, beside its own, for a value that does not fit its tag.
_YAML_ERRORS = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, OverflowError, RecursionError)
_BEHIND_THE_FENCE = 2  # lines of YAML count from 0, those of the file from 1 and with the fence
_FIELD = re.compile(r"""(?:-[ \t]+)?["']?([\w-]+)["']?[ \t]*:(?:[ \t]|$)""")
# Tabs, other ends of lines than ours, comments right behind the sign of a block, question marks, which begin keys, and
# tags without a name.
_READ_OTHERWISE = re.compile(
    r"[^\n -~\u00a0-\u2027\u202a-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|[|>][-+0-9]*#|\?"
    r"|(?:^|[\s,\[{])!(?:[\s,\]}]|\Z)"
)
# In so short a text, lines can be indented but some ninety times; nesting within lines needs signs.
_SHORT, _NESTING, _MOST_NESTED = 4096, ("[", "{", "- "), 64
_KEY = re.compile(r"[\w-]+:(?:[ \t]|$)")
_GOES_ON = re.compile(r"[ \t#]|- |-?$")  # fields below a key belong to it
_NAMING_FIELDS = frozenset({"title", "name", "slug", "description", "summary"})


class FrontMatter(NamedTuple):
    """Fields of a file by lower-case key, their places, the start of the body, and the error, if any."""

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
        return FrontMatter(problem="front matter is a list, not fields (key: value): read as text")
    return FrontMatter(fields, places, end + 1) if isinstance(fields, dict) else FrontMatter()


class Properties(NamedTuple):
    """Fields as lines of text, `key: value, value`, and whether there are more than are written."""

    lines: Sequence[str]
    is_cut: bool = False


def properties(fields: Mapping[str, Any], told: Sequence[str] = ()) -> Properties:
    """Write fields as text, without empty values and those in `told`."""
    lines: dict[str, list[str]] = {}
    values = _values(fields, "", 0)
    for key, value in islice(values, MOST_PROPERTIES):
        if value and value not in told:
            lines.setdefault(key, []).append(value)
    written = [f"{key}: {', '.join(said)}" for key, said in lines.items()]
    return Properties(written, next(values, None) is not None)


def _values(value: object, key: str, level: int) -> Iterator[tuple[str, str]]:
    """Yield the values of a field and of those nested in it, with keys; containers count as empty values."""
    yield key, str(value).lower() if isinstance(value, bool) else scalar(value)
    if level > MOST_LEVELS:  # only an alias of its own container goes deeper
        return
    if isinstance(value, Mapping):
        named = ((f"{key} {scalar(name)}".strip()[:_MOST_OF_A_KEY], inner) for name, inner in value.items())
        yield from chain.from_iterable(_values(inner, name, level + 1) for name, inner in named)
    elif isinstance(value, list):
        yield from chain.from_iterable(_values(inner, key, level + 1) for inner in value)


def _one_by_one(between: Sequence[str], error: Exception) -> FrontMatter:
    """Read fields that are no YAML together, so that a colon in one costs no other; all stay text as well."""
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
    """Return the key and the value of one field; a value that is not YAML is kept as written."""
    key, written = lines[0].split(":", 1)
    with suppress(*_YAML_ERRORS):
        fields, _ = _loaded("\n".join(lines))
        if isinstance(fields, dict) and len(fields) == 1:
            return next(iter(fields.items()))
    return key.lower(), " ".join(" ".join([written, *lines[1:]]).split())


def _names_fields(lines: Sequence[str]) -> bool:
    """Return whether one of the lines begins with a field that is read."""
    said = (_FIELD.match(line) for line in lines)
    return any(field is not None and field[1].lower() in _NAMING_FIELDS | READERS.keys() for field in said)


class _CountsMerged:
    """Limit on merge keys that add too many entries: each level may multiply those of the last one."""

    _merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Add the entries of merge keys to a mapping, and count them."""
        before = len(node.value)
        super().flatten_mapping(node)  # type: ignore[misc]
        self._merged += max(0, len(node.value) - before)
        if self._merged > MOST_MERGED:
            raise _refusal(f"merge keys add more than {MOST_MERGED:,} entries", node.start_mark)


class OwnLoader(_CountsMerged, yaml.SafeLoader):
    """Loader for texts that libyaml may not read, with limits on tokens, levels and aliases."""

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
        """Compose a node or resolve an alias; more than MOST_ALIASES aliases are refused."""
        if self.check_event(yaml.AliasEvent):
            self._aliases += 1
            if self._aliases > MOST_ALIASES:
                raise _refusal(f"more than {MOST_ALIASES} aliases", self.get_mark())
        return super().compose_node(parent, index)


def _refusal(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _field_moment(loader: OwnLoader, node: yaml.ScalarNode) -> object:
    """Keep a date that does not exist (30 February) as text, so that only its field is refused."""
    try:
        return loader.construct_yaml_timestamp(node)
    except (ValueError, OverflowError):
        return loader.construct_scalar(node)


def _number(loader: OwnLoader, node: yaml.ScalarNode) -> object:
    if len(node.value) > _MOST_SEXAGESIMAL and ":" in node.value:
        return loader.construct_scalar(node)
    return loader.construct_yaml_int(node) if node.tag == _WHOLE_NUMBER else loader.construct_yaml_float(node)


# The same eight times as fast, where PyYAML was built with libyaml.
QuickLoader: type[Any] = (
    type("QuickLoader", (_CountsMerged, yaml.CSafeLoader), {}) if yaml.__with_libyaml__ else OwnLoader
)
for _each in (OwnLoader, QuickLoader):
    _each.add_constructor("tag:yaml.org,2002:timestamp", _field_moment)
    _each.add_constructor(_WHOLE_NUMBER, _number)
    _each.add_constructor("tag:yaml.org,2002:float", _number)


def _loaded(text: str) -> tuple[object, dict[str, str]]:
    """Return the parsed YAML, its keys in lower case, and their places in the file."""
    if is_read_alike(text):
        with suppress(*_YAML_ERRORS):  # the errors reported are PyYAML's own
            return loaded_by(QuickLoader, text)
    return loaded_by(OwnLoader, text)


def is_read_alike(text: str) -> bool:
    """Return whether libyaml, if it parses a text, gives PyYAML's result, without unbounded recursion."""
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
    """Return the error in front matter, with the line of its file, where that is known."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None or not problem:
        return (str(error) or repr(error)).splitlines()[0]
    return f"{problem} in line {mark.line + _BEHIND_THE_FENCE}"
