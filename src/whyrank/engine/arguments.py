"""Check arguments of callers once for all interfaces: scopes, filters, dates, pages, texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from ..analysis.dates import parse_date
from ..analysis.normalize import clean, is_clean
from ..analysis.tokenizer import LANGUAGES
from ..errors import ConfigError
from ..types.memory import CATEGORIES, KINDS, LIFETIMES, ORDERS, Scope, texts_in, visible
from ..types.query import SYNTAXES, All, Compares, Deadline, Either, Not, Query, Where, leaves

if TYPE_CHECKING:
    from ..protocols import Store
    from ..types.query import Expression, Operator

Scopes = str | Scope | Iterable[str | Scope] | None

UNSAID: Any = "\0"  # neither an id nor a text: None clears what a fact supersedes, leaving it out does not
MAX_PATTERN_CHARACTERS = 1_000  # SQLite refuses patterns of 50,000; no typed pattern has 1,000
MAX_LISTED = 1_000_000
MAX_FACT_CHARACTERS = 50_000  # a long article; what is longer is a file, which is cut into chunks
MAX_NAME_CHARACTERS = 1_000  # also of a tag or an entity
MAX_NAMES = 200
MAX_SCOPES = 1_000  # of one question; each is a part of the index of its own
MAX_IDS = 1_000  # of one request
_BYTE = re.compile("[\udc80-\udcff]")  # half characters that stand for bytes of a command line (PEP 383)
MAX_METADATA_CHARACTERS = 20_000  # of a memory, as JSON
MAX_METADATA_DEPTH = 8
MAX_FILTER_DEPTH = 16
MAX_CONDITIONS = 200  # of one metadata filter
_SCOPES = "write global, user:NAME, agent:NAME or another KIND:NAME, or a path of them (team:NAME/agent:NAME)"
_ONE_EACH = "give each separately (--scope user:1 --scope user:2, or a list) where several are allowed"
# A name may hold a comma ("user:Doe, Jane"), but none goes on like this.
_FURTHER_SCOPE = re.compile(r"[,;|]\s*(?:global\s*$|user:|agent:|session:|project:|team:)")
_BELOW = "/*"  # behind a scope: it, and all below it
# Arguments of searches and lists beside filters: a mistyped one is suggested too.
_BESIDE = (
    "limit",
    "offset",
    "recipe",
    "strict",
    "min_confidence",
    "max_tokens",
    "expand",
    "syntax",
    "sort",
    "after",
    "over",
)
Read = TypeVar("Read", bound="Filters")


@dataclass(frozen=True)
class Filters:
    """Filters on the memories that a search may return."""

    scope: Scopes = None
    kind: str | None = None
    tags: str | Sequence[str] = ()
    path: str | None = None
    since: object = None
    before: object = None
    as_of: object = None
    include_superseded: bool = False
    category: str | None = None
    decay: str | None = None
    min_importance: int | None = None
    language: str | None = None
    where: Mapping[str, object] | str | None = None

    def for_store(self, store: Store, now: float) -> Where:
        """Return the filter that a store understands; refuse what makes no sense."""
        if self.kind is not None and self.kind not in KINDS:
            raise ConfigError(f"there is no kind {self.kind!r}", f"the kinds are {', '.join(KINDS)}")
        if self.path is not None and not isinstance(self.path, str):
            raise ConfigError(f"the path pattern is {self.path!r:.60}", "give a text, for instance notes/*.md")
        if self.path is not None and len(self.path) > MAX_PATTERN_CHARACTERS:
            raise ConfigError(
                f"the path pattern has {len(self.path)} characters", f"give at most {MAX_PATTERN_CHARACTERS}"
            )
        if self.category is not None:
            check_category(self.category)
        check_decay(self.decay)
        check_importance(self.min_importance)
        check_language(self.language)
        return Where(
            scopes=visible_scopes(self.scope, store),
            kinds=frozenset({self.kind} if self.kind else ()),
            tags=frozenset(clean(tag).text for tag in _few("tag", _several(self.tags))),
            path=None if self.path is None else clean(self.path).text,
            since=moment("since", self.since),
            before=moment("before", self.before),
            as_of=moment("as_of", self.as_of),
            include_superseded=self.include_superseded,
            now=now,
            category=self.category,
            decay=self.decay,
            min_importance=self.min_importance,
            language=self.language,
            metadata=None if self.where is None else metadata_filter(self.where),
        )


@dataclass(frozen=True)
class ListFilters(Filters):
    """Filters of a list: those of a search, and also or only memories that no search finds."""

    superseded: bool = False
    expired: bool = False

    def for_store(self, store: Store, now: float) -> Where:
        """Return the filter that a store understands."""
        return replace(Filters.for_store(self, store, now), only_superseded=self.superseded, only_expired=self.expired)


def filters_of(kind: type[Read], given: Mapping[str, Any]) -> Read:
    """Build filters from named arguments; an unknown name is an error that suggests the nearest one."""
    known = [field.name for field in fields(kind)]
    for name in given:
        if name not in known:
            near = get_close_matches(name, [*known, *_BESIDE], n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the filters are {', '.join(known)}"
            raise ConfigError(f"there is no argument {name!r}", hint)
    return kind(**given)


def identity_of(identity: str) -> str:
    """Read the id or path of a memory; refuse what is no text."""
    if not isinstance(identity, str):
        raise ConfigError(f"the memory is {identity!r:.60}", "give its id, or for `why` its path, as a text")
    return clean(identity).text


def scope_of(scope: str | Scope) -> Scope:
    """Read one scope."""
    if isinstance(scope, Scope):
        return scope
    try:
        if len(storable("scope", scope)) > MAX_NAME_CHARACTERS:
            raise ConfigError(f"the scope has {len(scope):,} characters", f"give at most {MAX_NAME_CHARACTERS}")
        if _FURTHER_SCOPE.search(scope):
            raise ConfigError(f"{scope!r} is more than one scope", _ONE_EACH)
        if scope.rstrip().endswith(_BELOW):
            raise ConfigError(f"{scope!r} stands for several scopes", "name one; a pattern is for searches and lists")
        return Scope.parse(scope)
    except ValueError as error:
        raise ConfigError(f"{scope!r} is not a scope", _SCOPES) from error


def scopes_of(scopes: Scopes) -> list[Scope]:
    """Read any number of scopes."""
    return [scope_of(scope) for scope in _each_scope(scopes)]


def visible_scopes(scopes: Scopes, store: Store) -> frozenset[Scope]:
    """Return the scopes that a caller of these sees: `team:a/*` is `team:a` and all below it that the store knows."""
    seen = set[Scope]()
    for scope in _each_scope(scopes):
        if isinstance(scope, str) and scope.rstrip().endswith(_BELOW):
            seen |= _scopes_below(scope, store)
        else:
            seen.add(scope_of(scope))
    return visible(seen)


def _scopes_below(pattern: str, store: Store) -> set[Scope]:
    above = scope_of(pattern.rstrip().removesuffix(_BELOW))
    found = {above, *store.scopes(above)}
    if len(found) > MAX_SCOPES:
        raise ConfigError(f"{pattern!r} stands for {len(found):,} scopes", f"ask for at most {MAX_SCOPES:,} at a time")
    return found


def _each_scope(scopes: Scopes) -> list[str | Scope]:
    if scopes is None:
        return []
    if isinstance(scopes, str | Scope):
        return [scopes]
    if not isinstance(scopes, Iterable):
        raise ConfigError(f"{scopes!r:.60} is not a scope", _SCOPES)
    given = list(scopes)
    if len(given) > MAX_SCOPES:
        raise ConfigError(f"there are {len(given):,} scopes", f"give at most {MAX_SCOPES:,}")
    return given


def share_of(scopes: Scopes) -> frozenset[Scope] | None:
    """Parse the scopes whose share of a store is meant, global included; None means the whole store."""
    return None if scopes is None else visible(scopes_of(scopes))


def moment(name: str, value: object) -> float | None:
    """Read a date or time."""
    if value is None:
        return None
    seconds = parse_date(value)
    if seconds is None:
        raise ConfigError(f"{name} is {str(value)[:60]!r}, which is not a date", "write 2026-03-14 or 2026-03-14T09:30")
    return seconds


def query_of(
    store: Store,
    text: str,
    filters: Mapping[str, Any],
    now: float,
    limit: int,
    offset: int = 0,
    syntax: str = "plain",
    strict: bool = False,
    max_tokens: int | None = None,
    min_confidence: float | None = None,
    timeout_ms: int | None = None,
) -> Query:
    """Check the arguments of a search, and return the query they ask; its time runs from here."""
    if max_tokens is not None:
        check_counts(1, max_tokens=max_tokens)
    if min_confidence is not None and not (isinstance(min_confidence, int | float) and 0 <= min_confidence <= 1):
        raise ConfigError(f"min_confidence is {min_confidence!r}", "give a number from 0 to 1")
    if not isinstance(text, str):
        raise ConfigError(f"the query is {text!r}", "give a text")
    check_counts(0, limit=limit, offset=offset)
    where = filters_of(Filters, filters).for_store(store, now) if filters else Where(now=now)
    chosen = next((known for known in SYNTAXES if known == syntax), None)
    if chosen is None:
        raise ConfigError(f"there is no syntax {syntax!r}", f"the syntaxes are {', '.join(SYNTAXES)}")
    if timeout_ms is not None:
        check_counts(1, timeout_ms=timeout_ms)
    deadline = None if timeout_ms is None else Deadline(timeout_ms)
    return Query(text, where, limit, offset, strict, max_tokens, min_confidence, syntax=chosen, deadline=deadline)


def check_counts(least: int, **counts: int) -> None:
    """Refuse numbers, by their names, that are not whole or below the least."""
    for name, value in counts.items():
        if not isinstance(value, int) or value < least:
            raise ConfigError(f"{name} is {value!r}", f"give {least} or more, as a whole number")


def check_category(category: str) -> None:
    """Refuse a category that does not exist."""
    if category not in CATEGORIES:
        raise ConfigError(f"there is no category {category!r}", f"the categories are {', '.join(CATEGORIES)}")


def check_importance(importance: int | None) -> None:
    """Refuse an importance outside 1 to 5."""
    if importance is not None and (type(importance) is not int or importance not in range(1, 6)):
        raise ConfigError(f"importance is {importance!r:.60}", "give a whole number from 1 to 5")


def check_language(language: str | None) -> None:
    """Refuse a language that language detection does not know."""
    if language is not None and language not in LANGUAGES:
        raise ConfigError(f"there is no language {language!r:.60}", f"the languages are {', '.join(LANGUAGES)}")


def check_decay(decay: str | None) -> None:
    """Refuse a decay class that does not exist."""
    if decay and decay not in LIFETIMES:
        raise ConfigError(f"there is no decay class {decay!r}", f"the classes are {', '.join(LIFETIMES)}")


def check_order(order: str) -> None:
    """Refuse an order that does not exist."""
    if order not in ORDERS:
        raise ConfigError(f"there is no order {order!r}", f"the orders are {', '.join(ORDERS)}")


def storable(name: str, text: str) -> str:
    """Refuse text that no store can hold."""
    if not isinstance(text, str):
        raise ConfigError(f"the {name} is {text!r:.60}, which is not a text", "give a text; nothing was stored")
    if not is_clean(text):
        if _BYTE.search(text):
            raise ConfigError(
                f"the {name} contains bytes that are not UTF-8",
                "convert it, for instance with iconv; nothing was stored",
            )
        raise ConfigError(f"the {name} contains a NUL or a lone surrogate", "remove it; nothing was stored")
    return text


def name_of(name: str, value: str) -> str:
    """Read what something is called, or tagged with."""
    if len(storable(name, value)) > MAX_NAME_CHARACTERS:
        raise ConfigError(f"the {name} has {len(value)} characters", f"give at most {MAX_NAME_CHARACTERS}")
    return value.strip()


def tags_of(tags: str | Sequence[str], name: str = "tag") -> tuple[str, ...]:
    """Read tags, or other names; a single one may be given as it is."""
    given = _few(name, _several(tags))
    return tuple(dict.fromkeys(read for tag in given if (read := name_of(name, tag))))


def _few(name: str, given: Sequence[str]) -> Sequence[str]:
    """Refuse too many names, or one that is too long: SQLite takes no expression of a thousand parts."""
    if len(given) > MAX_NAMES:
        raise ConfigError(f"there are {len(given)} of {name}", f"give at most {MAX_NAMES}")
    longest = max(map(len, given), default=0)
    if longest > MAX_NAME_CHARACTERS:
        raise ConfigError(f"the {name} has {longest} characters", f"give at most {MAX_NAME_CHARACTERS}")
    return given


def _several(texts: str | Sequence[str]) -> Sequence[str]:
    given = [texts] if isinstance(texts, str) or not isinstance(texts, Iterable) else list(texts)
    if not all(isinstance(text, str) for text in given):
        raise ConfigError(f"{texts!r:.60} is neither a text nor a list of texts", "give one text, or a list of texts")
    return given


def metadata_of(given: Mapping[str, object] | str) -> dict[str, Any]:
    """Read metadata: a JSON object, or its text; keys are sorted, so that equal metadata are written alike."""
    sound = _json_object("metadata", given)
    size, depth = len(json.dumps(sound, ensure_ascii=False)), _depth(sound)
    if size > MAX_METADATA_CHARACTERS:
        raise ConfigError(f"the metadata have {size:,} characters as JSON", f"give at most {MAX_METADATA_CHARACTERS:,}")
    if depth > MAX_METADATA_DEPTH:
        raise ConfigError("the metadata are nested too deep", f"give at most {MAX_METADATA_DEPTH} levels")
    return sound


def _json_object(name: str, given: Mapping[str, object] | str) -> dict[str, Any]:
    """Return a JSON object as `json` reads it, with sorted keys."""
    example = 'write an object, for instance {"status": "open"}'
    try:
        read = json.loads(given) if isinstance(given, str) else given
        sound = json.loads(json.dumps(read, sort_keys=True, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"the {name} cannot be read as JSON: {error}", example) from error
    if not isinstance(sound, dict):
        raise ConfigError(f"the {name} is {given!r:.60}, which is no JSON object", example)
    for text in texts_in(sound):
        storable(f"text in the {name}", text)
    return sound


def _depth(value: object) -> int:
    inner: Iterable[object] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0)


_AN_ORDER: tuple[Operator, ...] = ("$gt", "$gte", "$lt", "$lte")
_OPERATORS = ("$eq", "$ne", *_AN_ORDER, "$in", "$nin", "$not")
_COMBINING = ("$and", "$or", "$not")


def metadata_filter(given: Mapping[str, object] | str) -> Expression | None:
    """Read a filter on metadata, an object in the manner of MongoDB; None if it asks for nothing.

    `{"status": "open", "priority": {"$gte": 2}}`; `$and`, `$or` and `$not` combine such objects.
    """
    read = _json_object("filter", given)
    if not read:
        return None
    if _depth(read) > MAX_FILTER_DEPTH:
        raise ConfigError("the filter is nested too deep", f"give at most {MAX_FILTER_DEPTH} levels")
    whole = _condition(read)
    if sum(1 for _ in leaves(whole)) > MAX_CONDITIONS:
        raise ConfigError("the filter has too many conditions", f"give at most {MAX_CONDITIONS}")
    return whole


def _condition(read: object) -> Expression:
    """Return the conditions of one object together."""
    if not isinstance(read, dict) or not read:
        raise ConfigError(f"{json.dumps(read):.60} is no condition", 'write one, for instance {"status": "open"}')
    parts = [part for name, value in read.items() for part in _conditions(name, value)]
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def _conditions(name: str, value: object) -> list[Expression]:
    """Return the conditions under one name: those of a field, or a combination."""
    if not name.startswith("$"):
        return _of_field(name, value)
    if name == "$not":
        return [Not(_condition(value))]
    if name not in _COMBINING:
        raise _unknown_operator(name, _COMBINING, "beside fields")
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{name} is {json.dumps(value):.60}", "give it a list of conditions")
    parts = tuple(map(_condition, value))
    return [parts[0] if len(parts) == 1 else All(parts) if name == "$and" else Either(parts)]


def _of_field(name: str, value: object) -> list[Expression]:
    """Return the conditions on one field; a value without an operator must be equal."""
    if isinstance(value, dict) and any(key.startswith("$") for key in value):
        return [_comparison(name, operator, wanted) for operator, wanted in value.items()]
    return [_comparison(name, "$eq", value)]


def _comparison(name: str, operator: str, wanted: Any) -> Expression:
    """Return one comparison; what is not equal includes memories without the field."""
    if operator == "$not":
        if not isinstance(wanted, dict):
            raise ConfigError(f"$not of {name} is {json.dumps(wanted):.60}", 'give it a comparison, such as {"$gt": 2}')
        parts = tuple(_of_field(name, wanted))
        return Not(parts[0] if len(parts) == 1 else All(parts))
    if operator in ("$in", "$nin") and not isinstance(wanted, list):
        raise ConfigError(f"{operator} of {name} is {json.dumps(wanted):.60}", "give it a list of values")
    order = next((known for known in _AN_ORDER if known == operator), None)
    if order and (isinstance(wanted, bool) or not isinstance(wanted, str | int | float)):
        raise ConfigError(f"{operator} of {name} is {json.dumps(wanted):.60}", "give it a number or a text")
    written = json.dumps(wanted, ensure_ascii=False)
    match operator:
        case "$eq":
            return Compares(name, "$eq", written)
        case "$ne":
            return Not(Compares(name, "$eq", written))
        case "$in":
            return Compares(name, "$in", written)
        case "$nin":
            return Not(Compares(name, "$in", written))
    if order is None:
        raise _unknown_operator(operator, _OPERATORS, f"for {name}")
    return Compares(name, order, written)


def _unknown_operator(name: str, known: Sequence[str], place: str) -> ConfigError:
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return ConfigError(f"there is no operator {name!r} {place}", hint)


def fact_text(text: str) -> str:
    """Read the text of a fact."""
    stored = storable("text", text).strip()
    if not stored:
        raise ConfigError("the text is empty", "give some text")
    if len(text) > MAX_FACT_CHARACTERS:
        raise ConfigError(
            f"the text has {len(text):,} characters, a fact at most {MAX_FACT_CHARACTERS:,}",
            "put it into a file and ingest the file; nothing was stored",
        )
    return stored
