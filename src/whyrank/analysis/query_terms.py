"""Terms of expressions, and the fields of a memory that they match."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain, combinations, product
from typing import NamedTuple

from ..types.expressions import Says, several
from ..types.memory import CATEGORIES, KINDS, Memory
from .normalize import clean, compose, fold, pattern
from .tokenizer import bigrams, is_unspaced, run_tokens, runs_in, singular_of, spelled, spoken_words, word_token

MAX_READINGS = 64  # of a phrase; beyond three identifiers they are all read alike
MOST_JOINED = 3  # words that signs join to one: `up-to-date`; more are rare, and each reading is searched
MOST_WORDS_WITH_JOINTS = 6  # of a phrase: seven readings more, and a millisecond; longer ones are quotations

Reading = tuple[str, ...]
_NUMBERED = pattern(r"(\p{L}+)(\p{N}+)")
_NUMBER = pattern(r"\p{N}+")
_NAME = pattern(r"\p{L}+")


def term_for(text: str, latin: str) -> str:
    """Return the index term of a word or phrase; empty if it holds function words alone."""
    read = [word for word in _words(compose(clean(text).text), latin) if word.readings]
    words = [word.readings for word in read]
    label = " ".join(token for readings in words for token in readings[0])
    readings = chain(_combined(words), _with_joints(read, latin))
    found = list(dict.fromkeys(" ".join(chain.from_iterable(reading)) for reading in readings))
    return label if len(found) < 2 else several(label, found[:MAX_READINGS])


def _with_joints(words: Sequence[Word], latin: str) -> Iterator[Sequence[Reading]]:
    """Yield readings for texts that join some plain words: `late night shift` as `late night-shift`.

    A word joined from the first word on needs no reading of its own: its parts are indexed side by side behind the
    whole.
    """
    if len(words) <= MOST_WORDS_WITH_JOINTS and all(word.is_plain for word in words):
        said = [word.readings[0] for word in words]
        for start, end in combinations(range(1, len(words) + 1), 2):
            if 1 < end - start <= MOST_JOINED:
                whole = run_tokens("-".join(word.text for word in words[start:end]), latin)[0].text
                yield [*said[:start], (whole,), *said[start:]]


def _combined(words: Sequence[Sequence[Reading]]) -> Iterator[Sequence[Reading]]:
    """Yield the readings of several words side by side; of too many, those that read all words alike."""
    count = 1
    for readings in words:
        count *= len(readings)
    if count <= MAX_READINGS:
        yield from product(*words)
        return
    for number in range(max(map(len, words))):
        yield [readings[min(number, len(readings) - 1)] for readings in words]


class Word(NamedTuple):
    """One word of a phrase and its possible forms in an index, the label first."""

    text: str
    readings: Sequence[Reading]

    @property
    def is_plain(self) -> bool:
        """Return whether it has only one form."""
        return len(self.readings) == 1 and len(self.readings[0]) == 1 and not is_unspaced(self.text)


def _words(composed: str, latin: str) -> Iterator[Word]:
    """Yield each word with its readings."""
    runs = [run for run in runs_in(composed) if not _is_stop_word(run, latin)]
    words = [word for run in runs for word in ([run] if is_unspaced(run) else spoken_words(spelled(run)))]
    for word in words:
        if is_unspaced(word):
            yield Word(word, [tuple(token.text for token in bigrams(word))])
        else:
            yield Word(word, _readings(word, latin, is_alone=len(words) == 1))


def _is_stop_word(run: str, latin: str) -> bool:
    """Return whether a run is a function word as a whole: `don't` is one, though it has two tokens."""
    return all(token.is_stop_word for token in run_tokens(run, latin)) and not is_unspaced(run)


def _readings(word: str, latin: str, is_alone: bool) -> list[Reading]:
    """Return the possible forms of one word in an index."""
    tokens = run_tokens(word, latin)
    content = tuple(token.text for token in tokens if not token.is_stop_word)
    if len(tokens) < 2 or not content:
        return [content] if content else []
    whole = () if tokens[0].is_stop_word else content[:1]
    parts = content[len(whole) :]
    singular = singular_of(word, latin)
    if singular is not None:
        apart = _readings(singular, latin, is_alone=True)
    else:
        apart = [some for some in _with_numbers(parts, latin) if len(some) > 1]
    # A single word is found by its whole wherever that is indexed before its parts.
    together = [] if is_alone or not whole else [whole + some for some in (parts, *apart)]
    return list(dict.fromkeys([*([whole] if whole else []), *apart, *together])) or [content]


def _with_numbers(parts: Reading, latin: str) -> Iterator[Reading]:
    """Yield parts as they are, and with numbers apart from the names before them, and joined to these."""
    yield parts
    apart: list[str] = []
    for part in parts:
        numbered = _NUMBERED.fullmatch(part)
        apart += [word_token(numbered[1], latin).text, numbered[2]] if numbered else [part]
    yield tuple(apart)
    joined: list[str] = []
    for part in parts:
        if joined and _NUMBER.fullmatch(part) and _NAME.fullmatch(joined[-1]):
            joined[-1] += part
        else:
            joined.append(part)
    yield tuple(joined)


_WORD = pattern(r"[\p{L}\p{M}\p{N}_]+")
_WILD = "*?["
_HEADING = pattern(r"(?m)^#{1,6}[ \t]+(.+)$")
_UNDERLINED = re.compile(r"^(\S.*)\n(?:={2,}|-{2,})[ \t]*$", re.MULTILINE)


def headings_in(text: str) -> list[str]:
    """Return the headings inside a text, as markdown marks them: a chunk may go on over several."""
    underlined = _UNDERLINED.findall(text) if "\n==" in text or "\n--" in text else []
    return (_HEADING.findall(text) if "#" in text else []) + underlined


# Fields of the advanced syntax, with the values of a memory.
MEMORY_FIELDS: Mapping[str, Callable[[Memory], Sequence[str]]] = {
    "name": lambda memory: (memory.name, memory.title, memory.slug, *memory.aliases),
    "heading": lambda memory: (*memory.headings, *headings_in(memory.text)),
    "path": lambda memory: (memory.source.path,) if memory.source else (),
    "tag": lambda memory: memory.tags,
    "category": lambda memory: (memory.category,),
    "kind": lambda memory: (memory.kind,),
    "speaker": lambda memory: (memory.speaker,),
}
ALIASES = {"title": "name"}
# Fields with a few possible values.
CHOICES: Mapping[str, Sequence[str]] = {"kind": KINDS, "category": CATEGORIES}
# Fields whose words are in the searched text too, and are scored there.
SPOKEN = frozenset({"name", "heading"})


def is_said(leaf: Says, values: Iterable[str]) -> bool:
    """Return whether one of a field's values matches the leaf."""
    match leaf.field:
        case "path":
            return any(_is_below(path, leaf) for path in values)
        case "name" | "heading" | "speaker":
            return any(_has_words(value, leaf) for value in values)
        case _:
            folded = map(fold, values)
            return any(value.startswith(leaf.value) if leaf.begins else value == leaf.value for value in folded)


def _is_below(path: str, leaf: Says) -> bool:
    """Return whether a path equals the value, lies in that folder, or matches the pattern; case-sensitive."""
    if leaf.begins or any(sign in leaf.value for sign in _WILD):
        return fnmatchcase(path, leaf.value + ("*" if leaf.begins else ""))
    wanted = leaf.value.rstrip("/")
    return path == wanted or path.startswith(f"{wanted}/") or path.endswith(f"/{wanted}")


def _has_words(value: str, leaf: Says) -> bool:
    """Return whether a name or heading holds the leaf's words side by side, the last perhaps a prefix."""
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
