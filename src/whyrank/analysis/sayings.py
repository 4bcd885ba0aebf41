"""What the fields of a memory say, and whether that is what was asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from ..expressions import Says
from ..types import CATEGORIES, KINDS, Memory
from .patterns import pattern
from .text import fold

_WORD = pattern(r"[\p{L}\p{M}\p{N}_]+")
_WILD = "*?["
_HEADING = pattern(r"(?m)^#{1,6}[ \t]+(.+)$")
_UNDERLINED = re.compile(r"^(\S.*)\n(?:={2,}|-{2,})[ \t]*$", re.MULTILINE)


def headings_in(text: str) -> list[str]:
    """Return the headings inside a text, as markdown marks them: a chunk may go on over several."""
    underlined = _UNDERLINED.findall(text) if "\n==" in text or "\n--" in text else []
    return (_HEADING.findall(text) if "#" in text else []) + underlined


# Each field of the advanced syntax with what a memory says there.
FIELDS: Mapping[str, Callable[[Memory], Sequence[str]]] = {
    "name": lambda memory: (memory.name, memory.title, memory.slug, *memory.aliases),
    "heading": lambda memory: (*memory.headings, *headings_in(memory.text)),
    "path": lambda memory: (memory.source.path,) if memory.source else (),
    "tag": lambda memory: memory.tags,
    "category": lambda memory: (memory.category,),
    "kind": lambda memory: (memory.kind,),
    "speaker": lambda memory: (memory.speaker,),
}
ALIASES = {"title": "name"}
# Fields that can say only one of a few things.
CHOICES: Mapping[str, Sequence[str]] = {"kind": KINDS, "category": CATEGORIES}
# Fields whose words stand in the searched text too, and are scored there.
SPOKEN = frozenset({"name", "heading"})


def is_said(leaf: Says, values: Iterable[str]) -> bool:
    """Tell whether one of a field's values is what was asked for."""
    match leaf.field:
        case "path":
            return any(_is_below(path, leaf) for path in values)
        case "name" | "heading" | "speaker":
            return any(_has_words(value, leaf) for value in values)
        case _:
            folded = map(fold, values)
            return any(value.startswith(leaf.value) if leaf.begins else value == leaf.value for value in folded)


def _is_below(path: str, leaf: Says) -> bool:
    """Tell whether a path is the one asked for, lies in that folder, or matches the pattern; case counts."""
    if leaf.begins or any(sign in leaf.value for sign in _WILD):
        return fnmatchcase(path, leaf.value + ("*" if leaf.begins else ""))
    wanted = leaf.value.rstrip("/")
    return path == wanted or path.startswith(f"{wanted}/") or path.endswith(f"/{wanted}")


def _has_words(value: str, leaf: Says) -> bool:
    """Tell whether the words asked for stand side by side in a name or heading, the last one perhaps only begun."""
    folded = fold(value)
    if leaf.value.split(" ")[0] not in folded:
        return False
    words, asked = _WORD.findall(folded), leaf.value.split(" ")
    last = len(asked) - 1
    return any(
        words[i : i + last] == asked[:last] and _is_word(words[i + last], asked[last], leaf.begins)
        for i in range(len(words) - last)
    )


def _is_word(word: str, asked: str, begins: bool) -> bool:
    return word.startswith(asked) if begins else word == asked


def words_of(value: str) -> str:
    """Return the words of a value as they are compared: folded, a space between them."""
    return " ".join(_WORD.findall(fold(value)))
