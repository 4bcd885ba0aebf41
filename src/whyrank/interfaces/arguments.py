"""Lenient argument parsing: aliases, quoted numbers, one text for a list; unknown names are reported."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import ConfigError
from ..types.memory import Notice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_SHOWN = 60  # characters quoted of an invalid value or an unknown name
_MOST_ARGUMENTS = 10_000  # of one call, unknown ones included
_NAMED = 5  # unknown arguments that are repeated in the answer
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TRUE, _FALSE = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})


class Kind(NamedTuple):
    """JSON schema of a value, and its parser."""

    schema: Mapping[str, Any]
    read: Callable[[object], Any]


class Argument(NamedTuple):
    """One argument: name, kind, description and aliases."""

    name: str
    kind: Kind
    about: str
    aliases: tuple[str, ...] = ()
    required: bool = False


class Understood(NamedTuple):
    """Parsed values by argument name, and notices about ignored arguments."""

    values: dict[str, Any]
    notices: tuple[Notice, ...]


def understood(
    place: str, arguments: Sequence[Argument], given: Mapping[str, object], fixed: Mapping[str, str] | None = None
) -> Understood:
    """Parse the arguments of a call; `fixed` names arguments the caller may not choose, with the reason."""
    if len(given) > _MOST_ARGUMENTS:
        raise ConfigError(f"there are {len(given):,} arguments", f"{place} takes {len(arguments)}")
    values, taken, notices, unknown = dict[str, Any](), dict[str, str](), list[Notice](), list[str]()
    for key, argument in _known(arguments, given):
        value = given[key]
        if argument is None:
            reason = (fixed or {}).get(_plain(key))
            if reason is None:
                unknown.append(key)
            else:
                notices.append(Notice("argument-fixed", f"{key} was ignored: {reason}"))
        elif argument.name in values:
            if value != given[taken[argument.name]]:
                notices.append(Notice("argument-twice", f"{key} was ignored: {taken[argument.name]} was given too"))
        elif value is not None and (value != "" or argument.required):
            values[argument.name], taken[argument.name] = _read(argument, value), key
    for argument in arguments:
        if argument.required and argument.name not in values:
            raise ConfigError(f"{place} needs {argument.name}", f"{argument.name}: {argument.about}")
    return Understood(values, (*notices, *_unknown(place, arguments, unknown)))


def schema_of(arguments: Sequence[Argument]) -> dict[str, Any]:
    """Return the arguments as a JSON schema; aliases are accepted but not listed."""
    return {
        "type": "object",
        "properties": {one.name: {**one.kind.schema, "description": one.about} for one in arguments},
        "required": [one.name for one in arguments if one.required],
    }


def _known(arguments: Sequence[Argument], given: Mapping[str, object]) -> Iterator[tuple[str, Argument | None]]:
    """Yield each given key with its argument; keys that are exact argument names come first."""
    own = {argument.name: argument for argument in arguments}
    others = {alias: argument for argument in arguments for alias in argument.aliases if alias not in own}
    found = {key: own.get(_plain(key)) or others.get(_plain(key)) for key in given}
    for key in sorted(given, key=lambda key: key not in own):
        yield key, found[key]


def _plain(key: str) -> str:
    """Normalize maxTokens and max-tokens to max_tokens."""
    return _HUMP.sub("_", key.strip()).replace("-", "_").lower()


def _read(argument: Argument, value: object) -> Any:
    try:
        return argument.kind.read(value)
    except ValueError as error:
        shown = repr(value)[:_SHOWN]
        raise ConfigError(f"{argument.name} is {shown}: {error}", f"{argument.name}: {argument.about}") from error


def _unknown(place: str, arguments: Sequence[Argument], unknown: Sequence[str]) -> tuple[Notice, ...]:
    if not unknown:
        return ()
    named = ", ".join(repr(key[:_SHOWN]) for key in unknown[:_NAMED])
    more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
    takes = ", ".join(argument.name for argument in arguments)
    return (Notice("argument-unknown", f"{place} does not know {named}{more}, and ignored it; it takes {takes}"),)


def _text(value: object) -> str:
    if isinstance(value, list) and len(value) == 1:
        return _text(value[0])
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise ValueError("give a text")


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        number = float(value) if isinstance(value, str | float) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number != math.floor(number):
        raise ValueError("give a whole number")
    return int(number)


def _yes_or_no(value: object) -> bool:
    word = str(value).strip().lower() if isinstance(value, bool | int | str) else ""
    if word not in _TRUE | _FALSE:
        raise ValueError("give true or false")
    return word in _TRUE


def _texts(value: object) -> list[str]:
    """Parse a list, a JSON list, or texts separated by commas."""
    if isinstance(value, str):
        value = _listed(value)
    if not isinstance(value, list | tuple):
        value = [value]
    return [text for text in (_text(one).strip() for one in value) if text]


def _listed(text: str) -> list[object]:
    if text.lstrip().startswith("["):
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            read = None
        if isinstance(read, list):
            return read
    return list(text.split(","))


def _moment(value: object) -> str | int | float:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return value
    raise ValueError("give a date")


def _object(value: object) -> object:
    """Return an object, or the text of one, which the engine reads."""
    if isinstance(value, dict | str):
        return value
    raise ValueError("give an object")


def one_of(*names: str) -> Kind:
    """Return the kind of a text with a few values; other values are left to the engine to refuse."""
    return Kind({"type": "string", "enum": list(names)}, lambda value: _text(value).strip().lower())


TEXT = Kind({"type": "string"}, _text)
WHOLE = Kind({"type": "integer"}, _whole)
YES_OR_NO = Kind({"type": "boolean"}, _yes_or_no)
TEXTS = Kind({"type": "array", "items": {"type": "string"}}, _texts)
MOMENT = Kind({"type": "string"}, _moment)
OBJECT = Kind({"type": "object"}, _object)
