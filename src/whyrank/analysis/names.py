"""Names: the keys they are compared by, and how a query and a name are related."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from functools import cache, lru_cache
from itertools import chain, dropwhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from ..types.trail import Name, NameMatch, NameProbe, NameRelation
from .normalize import BY, compose, fold, pattern, text_cache
from .tokenizer import MAX_TOKEN_LETTERS, STOP_WORDS, parts_of, spoken_words, stem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ..types.memory import Memory

# Letters that Unicode does not take apart, as they are typed where there are none of them.
_TYPED = {
    "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "æ": "ae", "œ": "oe", "ħ": "h", "ŧ": "t", "ё": "е",
}  # fmt: skip
_GERMAN = {"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"}
_MARKED = ((0xC0, 0x250), (0x1E00, 0x1F00), (0x386, 0x3CF), (0x1F00, 0x2000))  # Latin and Greek letters with marks
_MARKS = range(0x300, 0x370)  # combining marks, for letters that have no precomposed form
# A letter that may have an accent; the letters of Greek that have none are many.
_ACCENT = re.compile("[\u00c0-\u024f\u0300-\u036f\u1e00-\u1fffάέήίόύώϊϋΐΰё]")
_TWO_LETTERS = re.compile("([aou])e|aa")  # typed forms of umlauts and å


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[int, str], dict[int, str]]:
    """Return the typed form of each letter: without its marks, and with umlauts as two letters."""
    plain: dict[int, str] = dict.fromkeys(_MARKS, "")
    for first, end in _MARKED:
        for number in range(first, end):
            letters = unicodedata.normalize("NFD", chr(number))
            if len(letters) > 1 and all(ord(mark) in _MARKS for mark in letters[1:]):
                plain[number] = letters[0]
    plain |= {ord(letter): typed for letter, typed in _TYPED.items()}
    return plain, plain | {ord(letter): typed for letter, typed in _GERMAN.items()}


def plain_spellings(word: str) -> tuple[str, ...]:
    """Return the spellings of a folded word or token without accents: none, one or a few.

    An accent may keep an English stemmer from a suffix it removes otherwise: `résumé` is searched as `resume`, `Hélène`
    as `Helene`, and both are stemmed.
    """
    if word.isascii():
        return ()
    plain, apart = (word.translate(table) for table in _tables())
    is_stemmed = plain.isascii() and plain.isalpha()
    found = dict.fromkeys((plain, apart, *((stem(plain, "en"), stem(apart, "en")) if is_stemmed else ())))
    found.pop(word, None)
    return tuple(found)


def may_hold_umlauts(word: str) -> bool:
    """Return whether a folded word has two letters that may have been typed for an umlaut."""
    return _TWO_LETTERS.search(word) is not None


@text_cache(4_096)
def bare_spelling(word: str) -> str:
    """Return the common form of a folded word's spellings: no marks, and one letter where two may be one."""
    return _TWO_LETTERS.sub(lambda two: two[1] or "a", word.translate(_tables()[0]))


def are_spellings(one: str, other: str) -> bool:
    """Return whether two folded words differ only in accents: omitted, or typed as one letter or two.

    `Baeckerei Muller` is `Bäckerei Müller`; but `Moller` is not `Moeller`, for neither has an accent.
    """
    if bare_spelling(one) != bare_spelling(other):
        return False
    return any(
        _typed_pattern(a).fullmatch(b)
        for a, b in ((one, other), (other, one), *((one, b) for b in plain_spellings(other)))
    )


@text_cache(1_024)
def _typed_pattern(word: str) -> re.Pattern[str]:
    """Return a pattern that matches a word in every typed form of its accents."""
    plain, apart = _tables()
    ways = (dict.fromkeys((letter, letter.translate(plain), letter.translate(apart))) for letter in word)
    return re.compile("".join("|".join(map(re.escape, way)).join(("(?:", ")")) for way in ways))


def accented_in(text: str) -> list[str]:
    """Return the tokens of a space-separated text that may have accents."""
    if text.isascii() or not _ACCENT.search(text):
        return []  # as English is, and scripts without accents: one pass decides it for a thousand words
    return [token for token in text.split(" ") if not token.isascii() and _ACCENT.search(token)]


def by_plain_spelling(tokens: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the tokens with accents among some, by how they are typed without."""
    found: dict[str, tuple[str, ...]] = {}
    for token in tokens:
        for plain in plain_spellings(token):
            found[plain] = (*found.get(plain, ()), token)
    return found


def typed_beginning(known: Mapping[str, tuple[str, ...]], beginning: str) -> set[str]:
    """Return the accented tokens whose plain spelling has this prefix."""
    return {token for plain, tokens in known.items() if plain.startswith(beginning) for token in tokens}


def typed_as(token: str) -> tuple[str, ...]:
    """Return the plain spellings to look up for a query token: itself, and those of its letters."""
    return (token,) if token.isascii() else (token, *plain_spellings(token))


_NOT_IN_KEY = pattern(r"[^\p{L}\p{M}\p{N}]+")
_WORD = pattern(r"[\p{L}\p{M}\p{N}_]+(?:'[\p{L}]+)*")
_ASCII_WORD = re.compile(r"\w+(?:'[A-Za-z]+)*", re.ASCII)
_PLAIN_WORD = re.compile("[a-z0-9]+")
# An inner capital, which splits an ASCII word into more words, as an apostrophe joins two.
_HUMP = re.compile(r"\w[A-Z]", re.ASCII)

# Specificity of a path whose key equals the query's.
FULL_PATH, BASENAME, STEM = 3, 2, 1

ONE_EDIT_LETTERS = 4  # shorter keys have a neighbour at distance one too often
TWO_EDITS_LETTERS = 8
PARTIAL_WORDS = 3  # up to here a query may be a part of a name
MAX_WINDOW_WORDS = 6  # names of more words than this are not searched inside sentences
MAX_WINDOWED_WORDS = 40  # nor in texts longer than this

_WAYS = 2  # to type a name without its accents: umlauts as one letter, or as two

# From the best relation to the weakest; the order a name run proposes in.
RELATIONS: tuple[NameRelation, ...] = (
    "equal", "accents", "same words", "one edit", "two edits", "first words", "all words", "prefixes", "in a sentence",
)  # fmt: skip


@text_cache(16_384)
def name_key(text: str) -> str:
    """Fold a name to letters and digits: `Remind Me`, `remind-me` and `RemindMe` are equal."""
    folded = fold(text)
    if folded.isascii():
        return folded if folded.isalnum() else "".join(_PLAIN_WORD.findall(folded))
    return _NOT_IN_KEY.sub("", folded)


@text_cache(4_096)
def name_words(text: str) -> tuple[str, ...]:
    """Return the words of a name, identifiers split into theirs."""
    if text.isascii() and "'" not in text and not _HUMP.search(text):  # as most are
        return tuple([word[:MAX_TOKEN_LETTERS] for word in _PLAIN_WORD.findall(text.lower())])
    return _parts_of_all(_words(text))


def _words(text: str) -> list[str]:
    composed = compose(text)
    words: list[str] = (_ASCII_WORD if composed.isascii() else _WORD).findall(composed)
    return words


def _parts_of_all(words: Iterable[str]) -> tuple[str, ...]:
    return tuple([part for word in words for spoken in spoken_words(word) for part in parts_of(spoken)])


def words_key(words: Iterable[str]) -> str:
    """Return a key that is the same for the same words in any order."""
    return " ".join(sorted(words))


def names_of(memory: Memory) -> tuple[Name, ...]:
    """Return every name a memory answers to: name, slug, owner/slug, aliases, path, base name and stem.

    The title of a file without a name counts as its stem does.
    """
    is_called_so = memory.source is not None and memory.kind == "chunk" and not memory.is_turn
    path = memory.source.path if memory.source is not None and is_called_so else None
    title = memory.title if is_called_so and not memory.name else ""
    return _names(memory.name, memory.slug, memory.owner, memory.aliases, title, path)


@lru_cache(maxsize=8)  # the chunks of a file come one after the other
def _names(
    name: str, slug: str, owner: str, aliases: tuple[str, ...], title: str, path: str | None
) -> tuple[Name, ...]:
    written = [(text, 0) for text in (name, slug, *aliases) if text]
    if owner and slug:
        written.append((f"{owner}/{slug}", 0))
    if path is not None:
        written += _names_of_path(path)
    if title:
        written.append((title, STEM))
    found: dict[str, Name] = {}
    for text, specificity in written:
        key, words = _key_and_words(text)
        if key and (key not in found or found[key].specificity < specificity):
            found[key] = Name(text, key, words, specificity)
    return tuple(found.values())


def _key_and_words(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the key and the words of a name; if it is plain, as most are, the key is its joined words."""
    if text.isascii() and (text.islower() or not _HUMP.search(text)) and "'" not in text:
        words = _PLAIN_WORD.findall(text.lower())
        return "".join(words), tuple([word[:MAX_TOKEN_LETTERS] for word in words])
    return name_key(text), name_words(text)


def _names_of_path(stored: str) -> tuple[tuple[str, int], ...]:
    parts = f"{stored}/"
    if parts.startswith(("./", "//")) or "//" in parts or "/./" in parts or len(parts) == 1:
        stored = str(PurePosixPath(stored))  # an unusual path
    base = stored[stored.rfind("/") + 1 :]
    dot = base.rfind(".")
    stem = base[:dot] if 0 < dot < len(base) - 1 else base
    return tuple({stem: (stem, STEM), base: (base, BASENAME), stored: (stored, FULL_PATH)}.values())[::-1]


def probe_for(text: str, *, typos: bool = False) -> NameProbe:
    """Return the name probe of a query."""
    words = _words(text)
    return NameProbe(name_key(text), _parts_of_all(words), windows_of(tuple(map(fold, words))), typos)


def windows_of(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return every run of neighbouring words inside a sentence, longest first."""
    if not 1 < len(words) <= MAX_WINDOWED_WORDS:
        return ()
    sizes = range(min(MAX_WINDOW_WORDS, len(words) - 1), 0, -1)
    return tuple([words[i : i + size] for size in sizes for i in range(len(words) - size + 1)])


@lru_cache(maxsize=8)  # of the last queries: speakers, names and every comparison with a name need them
def windows_by_key(windows: tuple[tuple[str, ...], ...]) -> dict[str, tuple[str, ...]]:
    """Return word windows of a query by the keys of the names they would be, the longest of each."""
    letters = "".join(chain.from_iterable(windows))
    if letters.isascii() and letters.isalnum():  # every word is its own key
        return {"".join(window): window for window in reversed(windows)}
    keys = {word: name_key(word) for word in set(chain.from_iterable(windows))}
    return {"".join(map(keys.__getitem__, window)): window for window in reversed(windows)}


def edits_allowed(key: str) -> int:
    """Return the number of typos allowed in a key; swapping two neighbours is one edit."""
    if len(key) >= TWO_EDITS_LETTERS:
        return 2
    return 1 if len(key) >= ONE_EDIT_LETTERS else 0


def match_name(probe: NameProbe, names: Iterable[Name]) -> NameMatch | None:
    """Return the best relation between the query and any of a memory's names."""
    windows, matches = windows_by_key(probe.windows), list[NameMatch]()
    for name in names:
        if match := _relation(probe, name, windows):
            matches.append(match)
    return min(matches, key=match_order) if len(matches) > 1 else next(iter(matches), None)


def match_in_any_spelling(probe: NameProbe, names: Sequence[Name]) -> NameMatch | None:
    """Return the same, also where the query or a name was written without its accents."""
    found = match_name(probe, names)
    accented = [name for name in names if not name.key.isascii()]
    if not accented and probe.key.isascii():  # as most are
        return found
    asked = _spelled(probe)
    others = [
        name._replace(key=key, words=_typed(name.words, way))
        for name in accented
        for way, key in enumerate(plain_spellings(name.key)[:_WAYS])
    ]
    others += [same for name in names if (same := _as_asked(name, asked))]
    matches = [*_in_accents(probe, asked.windows, others)]
    for plain, windows in asked.plainly:
        matches += _in_accents(plain, windows, names)
    return min([*matches, *([found] if found else [])], key=match_order, default=None)


@lru_cache(maxsize=64)
def plainly(probe: NameProbe) -> tuple[NameProbe, ...]:
    """Return the name probes of a query typed without accents; none if it has no accents."""
    if probe.key.isascii():
        return ()
    return tuple(
        replace(
            probe,
            key=key,
            words=_typed(probe.words, way),
            windows=tuple(_typed(window, way) for window in probe.windows),
        )
        for way, key in enumerate(plain_spellings(probe.key)[:_WAYS])
    )


def _typed(words: tuple[str, ...], way: int) -> tuple[str, ...]:
    """Return words without accents, umlauts as one letter or as two."""
    ways = [plain_spellings(word) or (word,) for word in words]
    return tuple([typed[min(way, len(typed) - 1)] for typed in ways])


class _Spelled(NamedTuple):
    """Query in its own spelling and without accents; its keys and words by their common spelling."""

    windows: dict[str, tuple[str, ...]]
    plainly: list[tuple[NameProbe, dict[str, tuple[str, ...]]]]
    keys: dict[str, list[str]]
    words: dict[str, list[str]]


@lru_cache(maxsize=8)
def _spelled(probe: NameProbe) -> _Spelled:
    windows = windows_by_key(probe.windows)
    plain = [(one, windows_by_key(one.windows)) for one in plainly(probe)]
    return _Spelled(windows, plain, _by_bare_spelling((probe.key, *windows)), _by_bare_spelling(probe.words))


def _by_bare_spelling(texts: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in texts:
        found.setdefault(bare_spelling(text), []).append(text)
    return found


def _as_asked(name: Name, asked: _Spelled) -> Name | None:
    """Return a name with its words respelled as in the query; None if it has none of them."""
    key = _spelled_as(asked.keys, name.key)
    words = tuple([_spelled_as(asked.words, word) for word in name.words])
    return name._replace(key=key, words=words) if key != name.key or words != name.words else None


def _spelled_as(known: dict[str, list[str]], text: str) -> str:
    return next((one for one in known.get(bare_spelling(text), ()) if are_spellings(one, text)), text)


def _in_accents(probe: NameProbe, windows: dict[str, tuple[str, ...]], names: Iterable[Name]) -> Iterator[NameMatch]:
    """Yield the relations of a query and names, one side of which was written without its accents."""
    for name in names:
        match = _relation(probe, name, windows)
        if match is not None:
            yield match._replace(relation="accents") if match.relation == "equal" else match


def match_order(match: NameMatch) -> tuple[int, int, float, str]:
    """Order matches: relation, path specificity, share of the name covered, name."""
    return RELATIONS.index(match.relation), -match.specificity, -match.covered, match.name


def proposal_score(match: NameMatch) -> float:
    """Return a score that orders proposals: by the relation, then by specificity and coverage."""
    return len(RELATIONS) - RELATIONS.index(match.relation) + match.specificity / 10 + match.covered / 100


def _relation(probe: NameProbe, name: Name, windows: dict[str, tuple[str, ...]]) -> NameMatch | None:
    if not probe.key:
        return None
    if name.key == probe.key:
        return NameMatch("equal", name.text, name.specificity)
    # Another number is no slip: `2025-03-12` is another day than `2025-03-13`, `ADR-016` another page than `ADR-006`.
    has_same_numbers = [*filter(str.isdigit, probe.key)] == [*filter(str.isdigit, name.key)]
    if has_same_numbers and len(name.words) > 1 and words_key(name.words) == words_key(probe.words):
        return NameMatch("same words", name.text, name.specificity)
    allowed = min(edits_allowed(probe.key), edits_allowed(name.key)) if probe.typos and has_same_numbers else 0
    if allowed and (distance := edit_distance()(probe.key, name.key, score_cutoff=allowed)) <= allowed:
        return NameMatch("one edit" if distance == 1 else "two edits", name.text, name.specificity)
    if 0 < len(probe.words) <= PARTIAL_WORDS and is_known_in_part(name):
        covered = min(1.0, sum(map(len, probe.words)) / max(1, sum(map(len, name.words))))
        if name.words[: len(probe.words)] == probe.words:
            return NameMatch("first words", name.text, covered=covered)
        if set(probe.words) <= set(name.words):
            return NameMatch("all words", name.text, covered=covered)
        spelled = " ".join(("", *name.words))
        if all(f" {word}" in spelled for word in probe.words):
            return NameMatch("prefixes", name.text, covered=covered)
    window = windows.get(name.key)
    if window is None or name.specificity == STEM:
        return None
    return NameMatch("in a sentence", name.text, name.specificity, words=window)


@cache
def edit_distance() -> Callable[..., int]:
    """Return the edit distance function, imported lazily: most queries hold no misspelt word."""
    from rapidfuzz.distance import OSA

    return OSA.distance


def is_known_in_part(name: Name) -> bool:
    """Return whether some words of a name are enough to match it; a full path matches only as a whole."""
    return name.specificity != FULL_PATH


_CAPITALISED = pattern(r"(?<![\p{L}\p{M}\p{N}_])\p{Lu}[\p{L}\p{M}\p{N}'-]*(?:\s+\p{Lu}[\p{L}\p{M}\p{N}'-]*)*")
_IDENTIFIER = pattern(
    r"\b(?:[\p{L}\p{N}]+(?:[_./:\\-][\p{L}\p{N}]+)+|[\p{Ll}\p{N}]+\p{Lu}[\p{L}\p{N}]*|\p{Lu}\p{Ll}+\p{Lu}[\p{L}\p{N}]*)"
)
# The same two for pure ASCII.
_ASCII_CAPITALISED = re.compile(r"(?<![A-Za-z0-9_])[A-Z][A-Za-z0-9'-]*(?:\s+[A-Z][A-Za-z0-9'-]*)*", re.ASCII)
_ASCII_IDENTIFIER = re.compile(
    r"\b(?:[A-Za-z0-9]+(?:[_./:\\-][A-Za-z0-9]+)+|[a-z0-9]+[A-Z][A-Za-z0-9]*|[A-Z][a-z]+[A-Z][A-Za-z0-9]*)", re.ASCII
)
# No space, and a sign that prose does not put inside words, or a capital in the middle.
_WHOLE_IDENTIFIER = pattern(
    r"(?=\S*[\p{L}\p{N}])\S*(?:[\p{L}\p{N}][_./:\\-]+[\p{L}\p{N}]|[~/\\][\p{L}\p{N}]|\p{Ll}\p{Lu}|\p{L}_|_\p{L}|\(\))\S*"
)
FUNCTION_WORDS = frozenset().union(*STOP_WORDS.values())


def entities_in(text: str) -> tuple[str, ...]:
    """Return the entities a text names, in order of appearance, each once."""
    composed = compose(text)
    is_ascii = composed.isascii()
    identifiers = (_ASCII_IDENTIFIER if is_ascii else _IDENTIFIER).finditer(composed)
    spans = [(match.start(), match.group()) for match in identifiers]
    names = (_ASCII_CAPITALISED if is_ascii else _CAPITALISED).finditer(composed)
    for match in names:  # without function words, which are capitalised where a sentence starts with them
        words = [*dropwhile(lambda word: fold(word) in FUNCTION_WORDS, match.group().split())]
        spans += [(match.start(), " ".join(words))] if words else []
    found: dict[str, str] = {}
    for _, span in sorted(spans):
        found.setdefault(name_key(span), span)
    return tuple(found.values())


def is_identifier(text: str) -> bool:
    """Return whether a text is one identifier: a path, an address, a version, a name in code."""
    whole = compose(text.strip())
    if " " in whole or (whole.isascii() and whole.isalnum() and whole[1:] == whole[1:].lower()):
        return False  # as most are: two words, or one without a sign or a capital in it
    return bool(_WHOLE_IDENTIFIER.fullmatch(whole))


_AROUND = "\"'“”„«»‹›()[]{}<>.,;:!?#`"  # characters around a code that are not part of it


def is_code(text: str) -> bool:
    """Return whether a text is nothing but codes in the widest sense: identifiers, words with a digit."""
    first = text.partition(" ")[0]
    if first.isalpha() and first[1:] == first[1:].lower():
        return False  # as most questions, which begin with a word
    words = [word.strip(_AROUND) for word in compose(text).split()]
    return bool(words) and all(is_identifier(word) or any(map(str.isdigit, word)) for word in words)


MAX_NAME_WORDS = 3  # people are called by one to three words


def speaker_mark(name: str) -> tuple[str, ...]:
    """Return the mark of a speaker; nothing for a name without letters."""
    key = name_key(name)
    return (f"{BY}{key}",) if key else ()


def asked_speakers(probe: NameProbe) -> tuple[str, ...]:
    """Return the marks of all speakers that the words of a query could name."""
    keys = [key for key, window in windows_by_key(probe.windows).items() if key and len(window) <= MAX_NAME_WORDS]
    # One word alone has no windows.
    return tuple([BY + key for key in keys or [probe.key] if key])


def is_speaker_mark(term: str) -> bool:
    """Return whether a mark is a speaker's, not a date word."""
    return term.startswith(BY)


def speaker_of(mark: str) -> str:
    """Return the speaker key of a mark."""
    return mark.removeprefix(BY)
