"""Text to index tokens: Unicode words, bigrams for unspaced scripts, identifiers and their parts.

`reading_of` analyses a text for the index, piece by piece between its spaces, with a token cache. `tokens_of` and its
variants analyse texts and questions whole. Both end in `run_tokens`, which makes the tokens of one word.
"""

from __future__ import annotations

import re
from functools import reduce
from itertools import chain, groupby
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from ..types.expressions import label_of, meant
from .caches import LONGEST_WORD, share, text_cache
from .dates import ANY_DATE, DOUBTFUL_MONTH, MONTH_OF, dated, dated_as_written, has_digit
from .language import (
    DEFAULT_LANGUAGE,
    LATIN_LANGUAGES,
    STOP_WORDS,
    TOLD_WORDS,
    UNSPACED_WORDS,
    VOTERS,
    VOTING_WORDS,
    latin_language,
    leaning,
    script_language,
    shown_language,
    standing_alone,
    stem,
    stems,
    voices_in,
    voted,
    word_language,
)
from .normalize import UNSPACED, compose, fold, pattern

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

MAX_TOKEN_LETTERS = 64  # longer ones are data (hashes, base64), cut so that they cannot bloat the index

_WORD = rf"[[\p{{L}}\p{{M}}\p{{N}}_]--[{UNSPACED}]]+"
_JOINERS = r"-./:@'\\"
_RUN = pattern(rf"(?V1)[{UNSPACED}]+|(?:{_WORD})(?:[{_JOINERS}]+(?:{_WORD}))*(?:\+\+|\#)?")
# The same for plain ASCII, which most texts are: five times as fast.
_ASCII_RUN = re.compile(rf"\w+(?:[{_JOINERS}]+\w+)*(?:\+\+|\#)?", re.ASCII)
_UNSPACED_START = pattern(f"[{UNSPACED}]")
# Humps of an identifier; the plural of an acronym is one of them (`getURLs`).
_CAMEL = pattern(r"\p{Lu}{2,}s(?!\p{Ll})|\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}?[\p{Ll}\p{M}\p{Lo}\p{Lm}]+|\p{Lu}+|\p{N}+")
_PIECES = re.compile(r"[-./:@\\_+#]+")
# The same for an identifier of ASCII, where pieces are letters and digits alone.
_ASCII_CAMEL = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_ASCII_PIECE = re.compile(r"[A-Za-z0-9]+")
_LETTERS = pattern(r"[\p{L}\p{M}]+")
_FUNCTION_WORD = re.compile("|".join(sorted(UNSPACED_WORDS, key=lambda word: (-len(word), word))))
_HAS_LETTER_OR_DIGIT = pattern(r"[\p{L}\p{N}]")

# The plural of an acronym: no stemmer takes the s off `PDFs`, `SNPs` or `miRNAs`, only its case shows it.
_PLURAL = pattern(r"(\p{Lu}{2,})s(?!\p{Ll})")
_ASCII_PLURAL = re.compile(r"(?<![A-Z])([A-Z]{2,})s(?![a-z])")
# Where an identifier may as well be written as one word. Digits stay apart: `1-10` is not 110.
_JOINT = pattern(r"(?<=\p{L})[-_]+(?=[\p{L}\p{N}])|(?<=\p{N})[-_]+(?=\p{L})")
_ASCII_JOINT = re.compile(r"(?<=[A-Za-z])[-_]+(?=[A-Za-z0-9])|(?<=[0-9])[-_]+(?=[A-Za-z])")
# Greek letters used as a symbol (`TGF-β`, `κB`, `β2`), capitalised so that they are humps. No word of Greek has
# a single letter but its articles ο and η, which are not here; before small letters they are units (`μm`).
_GREEK = {
    "α": "Alpha", "β": "Beta", "γ": "Gamma", "δ": "Delta", "ε": "Epsilon", "ζ": "Zeta", "θ": "Theta", "ι": "Iota",
    "κ": "Kappa", "λ": "Lambda", "μ": "Mu", "ν": "Nu", "ξ": "Xi", "π": "Pi", "ρ": "Rho", "σ": "Sigma", "τ": "Tau",
    "υ": "Upsilon", "φ": "Phi", "χ": "Chi", "ψ": "Psi", "ω": "Omega",
}  # fmt: skip
_GREEK_LETTERS = "".join(_GREEK)
_SYMBOL = pattern(rf"(?<!\p{{Greek}})[{_GREEK_LETTERS}{_GREEK_LETTERS.upper()}](?![\p{{Greek}}\p{{Ll}}])")

# How German letters are written where there are none; names travel so between languages.
_UMLAUTS = {"ae": "ä", "oe": "ö", "ue": "ü"}
_APART = str.maketrans({umlaut: letters for letters, umlaut in _UMLAUTS.items()})
# Not behind a vowel or q (`Bauer`, `query`), nor where a word ends with them (`value`, `shoe`) or an l (`Michael`).
_TWO_LETTERS = re.compile(r"(?<![aeiouq])[aou]e(?=[^\W\d_])(?!l(?![^\W\d_]))")
_TWO = re.compile("[aouAOU]e")
_UMLAUT_OR_TWO = re.compile(f"[äöü]|{_TWO_LETTERS.pattern}", re.IGNORECASE)
_NAME_WITH_TWO = re.compile(rf"\b(?=[A-Z])\w*?{_TWO_LETTERS.pattern.replace('[aou]', '[aouAOU]')}")
_SHORTEST_GERMAN_STEM = 4  # letters; shorter ones are stems of too many words (`shoes`, `schö`)

# Suffixes that English joins to a word with an apostrophe; elsewhere (l'avion) both sides are words.
_CONTRACTIONS = frozenset({"s", "t", "re", "ve", "ll", "d", "m"})

# Signs that are part of no word they precede or follow; of `c++`, `c#` and `_x` they are.
_AROUND = '.,;:!?()"*[]{}<>=~$&|^%`/@\\-'
_SENTENCE_SIGNS = ",.?!;"  # signs that may follow a word of a question without changing its tokens
# Pieces of text kept for a language, about 25 MB; a full cache starts anew.
_MOST_PIECES = 131_072
_LONGEST_ADDRESS = 256
# Cost of one word in the cache: so many letters of an address, so many tokens of a script without spaces.
_LETTERS_OF_A_PIECE, _TOKENS_OF_A_PIECE = 24, 8


class Token(NamedTuple):
    """One index token, and whether it is a function word."""

    text: str
    is_stop_word: bool = False


class Reading(NamedTuple):
    """Index tokens of a text, its language, its kinds of dates, and the language if its words show it."""

    tokens: tuple[str, ...]
    language: str
    dated: int
    shown: str = ""


def reading_of(text: str, default_language: str) -> Reading:
    """Analyse a text for the index: its tokens, its language and whether it may name a date."""
    composed, cache = compose(text), _cache_for(default_language)
    try:
        read = cache.read(composed)
    except _TooLong:
        return _read_around(cache, text, composed)
    # All words have a vote, and the default has as many as all others together: it has won.
    is_default = read.words <= VOTING_WORDS and read.leaning >= 0
    latin = default_language if is_default else latin_language(composed, default_language)
    tokens = read.tokens if latin == default_language else ()
    # Digits may be joined by others when a text is composed (`2023²`), but not by its ellipses and apostrophes.
    is_written_so = composed == text or composed == text.replace("…", "...").replace("’", "'")
    dates = read.dated if is_written_so else read.dated | dated_as_written(text)
    if dates == DOUBTFUL_MONTH and not has_digit(composed):  # "may" is a month only beside a number
        dates = 0
    shown = script_language(text)
    if shown is None:  # a language with a positive leaning has more votes than any other
        shown = latin if read.leaning > 0 else voted(standing_alone(composed), default_language)[1]
    return Reading(tokens or content_in(composed, latin), shown or latin, dates, shown)


def _read_around(cache: _TokenCache, text: str, composed: str) -> Reading:
    """Read a text with pieces too long to cache, such as checksums: its words are read from the cache."""
    latin = latin_language(composed, cache.latin)
    tokens = tuple(chain.from_iterable(_tokens_around(cache, composed))) if latin == cache.latin else ()
    shown = shown_language(text, cache.latin)
    return Reading(tokens or content_in(composed, latin), shown or latin, ANY_DATE, shown)


def _tokens_around(cache: _TokenCache, composed: str) -> Iterator[tuple[str, ...]]:
    for is_short, pieces in groupby(composed.split(), lambda piece: len(piece) <= LONGEST_WORD):
        between = " ".join(pieces)
        yield cache.read(between).tokens if is_short else content_of(between, cache.latin)


class _TooLong(Exception):
    """A piece is longer than words and addresses are, and does not come again."""


class _Read(NamedTuple):
    """Sums over the pieces of a text: tokens, words, leaning to the language, kinds of dates."""

    tokens: tuple[str, ...]
    words: int
    leaning: int
    dated: int


class _TokenCache(dict[str, tuple[str, ...]]):
    """Cache of the tokens of pieces between spaces, in one language; no word or month spans a space."""

    def __init__(self, latin: str) -> None:
        super().__init__()
        self.latin = latin
        self.room = 0  # cached size, in words
        # The few pieces that vote, may be dates, or are several words: leaning, words more than one, dates.
        self._more: dict[str, tuple[int, int, int]] = {}
        self._telling = frozenset(VOTERS.keys() | MONTH_OF.keys() | STOP_WORDS.get(latin, frozenset()))

    def read(self, composed: str) -> _Read:
        """Read the pieces of a composed text from the cache."""
        pieces = composed.split()
        tokens = tuple(chain.from_iterable([*map(self.__getitem__, pieces)]))
        more = [*filter(None, map(self._more.get, pieces))]
        leanings, words, dates = zip(*more, strict=True) if more else ((), (), ())
        return _Read(tokens, len(pieces) + sum(words), sum(leanings), reduce(or_, {*dates}, 0))

    def __missing__(self, piece: str) -> tuple[str, ...]:
        """Analyse a new piece and keep its tokens."""
        if len(piece) > LONGEST_WORD and (len(piece) > _LONGEST_ADDRESS or not piece.isascii() or piece.isalnum()):
            raise _TooLong
        tokens = self._plain_tokens(piece)
        if tokens is None:
            tokens = content_of(piece, self.latin)
            words = standing_alone(piece)
            more = leaning(self.latin, voices_in(words)), max(0, len(words) - 1), dated(piece)
            if any(more):
                self._more[piece] = more
        self[piece] = tokens
        by_letters = 1 if len(piece) <= LONGEST_WORD else len(piece) // _LETTERS_OF_A_PIECE
        self.room += max(by_letters, len(tokens) // _TOKENS_OF_A_PIECE)
        return tokens

    def _plain_tokens(self, piece: str) -> tuple[str, ...] | None:
        """Return the tokens of an ASCII word with signs around it; None if it votes or names a month."""
        word = piece.strip(_AROUND)
        folded = word.lower()
        if not (word.isalpha() and word.isascii()) or folded in self._telling or len(word) > MAX_TOKEN_LETTERS:
            return None
        if folded == piece:
            return (stem(piece, self.latin),)
        if is_camel(word):
            return tuple([token.text for token in run_tokens(word, self.latin) if not token.is_stop_word])
        return self[folded]


_caches: dict[str, _TokenCache] = {}
share(lambda: sum(cache.room for cache in [*_caches.values()]), _MOST_PIECES)


def _cache_for(latin: str) -> _TokenCache:
    """Return the token cache of a language: a new one if it is full, as other threads may read the old."""
    cache = _caches.get(latin)
    if cache is None or cache.room >= _MOST_PIECES:
        cache = _caches[latin] = _TokenCache(latin)
    return cache


def tokens_of(text: str, default_language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """Return the index tokens of a text; function words go unless nothing else is there."""
    composed = compose(text)
    return content_in(composed, latin_language(composed, default_language))


def content_in(composed: str, latin: str) -> tuple[str, ...]:
    """Return the same of a composed text that is written in a language."""
    return _content(tokens_in(composed, latin))


def content_of(piece: str, latin: str) -> tuple[str, ...]:
    """Return the tokens of a piece of a composed text between two spaces, without function words."""
    return tuple([token.text for token in tokens_in(piece, latin) if not token.is_stop_word])


def plain_tokens(words: Iterable[str], latin: str) -> tuple[str, ...]:
    """Return the same of plain words that are written in a language."""
    return _content([token for word in words for token in run_tokens(word, latin)])


def plain_asked(words: Sequence[str], latin: str) -> tuple[str, ...]:
    """Return the same for a question, without its phrasing words, unless it has no others."""
    told = TOLD_WORDS.get(latin, frozenset())
    tokens = [token for word in words if word not in told for token in run_tokens(word, latin)]
    return tuple([token.text for token in tokens if not token.is_stop_word]) or plain_tokens(words, latin)


def _content(tokens: Sequence[Token]) -> tuple[str, ...]:
    content = tuple([token.text for token in tokens if not token.is_stop_word])
    return content or tuple([token.text for token in tokens])


def all_tokens(text: str, default_language: str = DEFAULT_LANGUAGE) -> list[Token]:
    """Return the tokens of a text with the function words marked, in order."""
    composed = compose(text)
    return tokens_in(composed, latin_language(composed, default_language))


def asked_tokens(
    part: str, text: str, default_language: str = DEFAULT_LANGUAGE, *, is_name: bool = False
) -> list[Token]:
    """Return the tokens of a part of a question, in the language of the whole; phrasing words stay in a name only."""
    latin = latin_language(compose(text), default_language)
    told = frozenset[str]() if is_name else TOLD_WORDS.get(latin, frozenset())
    kept = [run for run in runs_in(compose(part)) if fold(run) not in told]
    return [token for run in kept for token in (_asked_bigrams(run) if is_unspaced(run) else run_tokens(run, latin))]


def _asked_bigrams(letters: str) -> list[Token]:
    """Return the bigrams of a question; those inside function words are marked as stop words."""
    inside = {place for found in _FUNCTION_WORD.finditer(letters) for place in range(*found.span())}
    tokens = [token.text for token in bigrams(letters)]
    return [Token(token, inside.issuperset(range(place, place + len(token)))) for place, token in enumerate(tokens)]


def tokens_in(composed: str, latin: str) -> list[Token]:
    """Return the tokens of a composed text; its parts in Latin script are in the given language."""
    runs = runs_in(composed)
    if composed.isascii():
        return [token for run in runs for token in run_tokens(run, latin)]
    return [token for run in runs for token in (bigrams(run) if is_unspaced(run) else run_tokens(run, latin))]


def plain_words(text: str) -> list[str] | None:
    """Return the words of a text as they are written; None if it holds anything but plain words."""
    words = [word for piece in text.split() if (word := piece.rstrip(_SENTENCE_SIGNS))]
    letters = "".join(words)
    if not (letters.isascii() and letters.isalpha()):
        return None
    return words if letters.islower() or not any(map(is_camel, words)) else None


def runs_in(composed: str, *, is_spaced: bool = False) -> list[str]:
    """Return the words and identifiers of a composed text: all, or those of scripts with spaces."""
    if composed.isascii():
        return _ASCII_RUN.findall(composed)
    runs: list[str] = _RUN.findall(composed)
    return [run for run in runs if not is_unspaced(run)] if is_spaced else runs


def is_unspaced(run: str) -> bool:
    """Return whether a run is of a script without spaces: no run mixes these with others."""
    return not run.isascii() and _UNSPACED_START.match(run) is not None


def bigrams(letters: str) -> list[Token]:
    """Return the tokens of a run of a script without spaces: overlapping pairs of letters."""
    if len(letters) == 1:
        return [Token(letters)]
    return [Token(letters[i : i + 2]) for i in range(len(letters) - 1)]


@text_cache(32_768)
def run_tokens(run: str, latin: str) -> tuple[Token, ...]:
    """Return the tokens of one run of characters without spaces: the whole, and its parts if it has any."""
    folded = fold(run)[:MAX_TOKEN_LETTERS]
    if folded in STOP_WORDS.get(latin, frozenset()):
        return (Token(folded, is_stop_word=True),)
    if run.isascii() and run.isalpha() and not is_camel(run):  # as most words are: nothing to spell, to part or to join
        return (Token(stem(folded, latin)),)
    spoken = spoken_words(spelled(run))
    if spoken != [run]:
        return tuple(token for word in spoken for token in run_tokens(word, latin))
    if (singular := singular_of(run, latin)) is not None:
        whole, *tokens = word_token(joined(folded), latin), *run_tokens(singular, latin)
        return (whole, *(part for part in tokens if part != whole))
    parts = parts_of(run)
    if not parts:
        return ()
    if parts == [folded]:
        return (word_token(folded, latin),)
    words = [joined(folded), *parts]
    if run.isascii():  # stemmed all at once
        stop_words, spoken = STOP_WORDS.get(latin, frozenset()), [*filter(str.isalpha, words)]
        stemmed = dict(zip(spoken, stems(spoken, latin), strict=True))
        whole, *tokens = [Token(one, True) if one in stop_words else Token(stemmed.get(one, one)) for one in words]
    else:
        whole, *tokens = [word_token(word, latin) for word in words]
    return (whole, *(part for part in tokens if part != whole))


def singular_of(run: str, latin: str) -> str | None:
    """Return an acronym without the s of its plural, `GPUs`; but not where a word like `or` would be left."""
    if run.islower() or run[1:].islower():
        return None  # as most words are, and names
    singular = (_ASCII_PLURAL if run.isascii() else _PLURAL).sub(r"\1", run)
    return None if singular == run or fold(singular) in STOP_WORDS.get(latin, frozenset()) else singular


def spelled(run: str) -> str:
    """Write a run as others may have: Greek symbols by their names."""
    return run if run.isascii() else _SYMBOL.sub(lambda symbol: _GREEK[fold(symbol.group())], run)


def joined(folded: str) -> str:
    """Join an identifier: `night-shift`, `night_shift`, `nightShift` and `nightshift` become equal."""
    return (_ASCII_JOINT if folded.isascii() else _JOINT).sub("", folded)


def spoken_words(run: str) -> list[str]:
    """Resolve apostrophes: `Suzy's` without its ending, `l'avion` in two words."""
    if "'" not in run:
        return [run]
    head, *tail = run.split("'")
    return [word for word in (head, *(end for end in tail if fold(end) not in _CONTRACTIONS)) if word]


def parts_of(run: str) -> list[str]:
    """Split an identifier into its folded words: `getHTTPUrl`, `snake_case`, `a.b.c`, `v1.2`."""
    if run.isascii() and run.isalpha() and not is_camel(run):
        return [fold(run)[:MAX_TOKEN_LETTERS]]  # as most words are
    parts: list[str] = []
    if run.isascii():
        for piece in _ASCII_PIECE.findall(run):
            parts += _ASCII_CAMEL.findall(piece) if is_camel(piece) else [piece]
        return [part.lower()[:MAX_TOKEN_LETTERS] for part in parts]
    for piece in _PIECES.split(run):
        words = _CAMEL.findall(piece) if is_camel(piece) else [piece]
        parts.extend(fold(word)[:MAX_TOKEN_LETTERS] for word in words if _HAS_LETTER_OR_DIGIT.search(word))
    return parts


def word_token(word: str, latin: str) -> Token:
    """Return the token of one folded word."""
    language = word_language(word, latin)
    if word in STOP_WORDS.get(language, frozenset()):
        return Token(word, is_stop_word=True)
    is_word = word.isalpha() if word.isascii() else _LETTERS.fullmatch(word)
    return Token(stem(word, language) if is_word else word)


def is_camel(word: str) -> bool:
    """Return whether a word has humps: `getHTTPUrl`, `iPhone`, but neither `Suzy` nor `NASA`."""
    if word.islower() or word.isupper() or word[1:].islower():  # as most words are, and names
        return False
    return any(letter.isupper() for letter in word[1:])


def words_meaning(term: str, text: str, default_language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """Return the words of a text that a term represents, as written; none for a term of no single word."""
    composed = compose(text)
    latin = latin_language(composed, default_language)
    runs = dict.fromkeys(runs_in(composed, is_spaced=True))
    if label_of(term).endswith("*"):
        return (label_of(term),)
    wanted = {token for one in meant(term) for token in one.split(" ")}
    return tuple(run for run in runs if wanted.intersection(token.text for token in run_tokens(run, latin)))


def parts_of_wholes(text: str, default_language: str = DEFAULT_LANGUAGE) -> dict[str, frozenset[str]]:
    """Return the tokens that a question has only as parts of words with inner capitals, with those words.

    `GitHub` is one word in any query: `git` and `hub` are searched only where no text holds `github`.
    """
    if text.islower() or not any(map(is_camel, text.split())):
        return {}  # as most questions
    composed = compose(text)
    latin = latin_language(composed, default_language)
    parts: dict[str, set[str]] = {}
    alone: set[str] = set()
    for word in [word for run in runs_in(composed, is_spaced=True) for word in spoken_words(run)]:
        whole, *rest = [token.text for token in run_tokens(word, latin)] or [""]
        if rest and word.isalpha() and is_camel(word) and singular_of(word, latin) is None:
            for part in rest:
                parts.setdefault(part, set()).add(whole)
            rest = []
        alone.update((whole, *rest))
    return {part: frozenset(wholes) for part, wholes in parts.items() if part not in alone}


def foreign_stems(
    text: str, default_language: str = DEFAULT_LANGUAGE, wanted: Collection[str] | None = None
) -> dict[str, tuple[str, ...]]:
    """Return, for each plain Latin word of a text, its other possible forms in an index.

    These are its stems in the languages the text was not detected as, and in all of them with its umlauts written
    otherwise. With `wanted` only words that are one of these terms are stemmed: of a thousand words 64 are searched.
    """
    composed = compose(text)
    latin = latin_language(composed, default_language)
    found: dict[str, tuple[str, ...]] = {}
    for run in runs_in(composed):
        tokens = run_tokens(run, latin)
        if (
            len(tokens) != 1
            or (wanted is not None and tokens[0].text not in wanted)
            or tokens[0].is_stop_word
            or is_unspaced(run)
        ):
            continue
        spellings = (run, *_respelled(run.lower()))
        others = (run_tokens(spelling, language) for spelling in spellings for language in (latin, *LATIN_LANGUAGES))
        stems = dict.fromkeys(other[0].text for other in others if len(other) == 1 and not other[0].is_stop_word)
        stems.pop(tokens[0].text, None)
        found[tokens[0].text] = tuple(stems)
    return found


def german_stems(
    text: str, language: str, default_language: str = DEFAULT_LANGUAGE, wanted: Collection[str] | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the other forms of a text's tokens with umlauts, or with two letters that may be one.

    The German stemmer removes umlauts, so its stems show no accent; and a text of few words is seldom detected as
    German. Two letters are taken for an umlaut in German texts, and in names: where a word has a capital.
    """
    if text.isascii() and (not _TWO.search(text) or (language != "de" and not _NAME_WITH_TWO.search(text))):
        return {}  # as most questions
    composed = compose(text)
    latin = latin_language(composed, default_language)
    found: dict[str, tuple[str, ...]] = {}
    for run in runs_in(composed, is_spaced=True):
        if not _UMLAUT_OR_TWO.search(run) or (latin != "de" and run.islower() and run.isascii()):
            continue
        tokens = run_tokens(run, latin)
        if wanted is not None and not any(token.text in wanted for token in tokens):
            continue
        written = (run.lower(), *_respelled(run.lower()))
        for other in (run_tokens(one, spoken) for one in written for spoken in ("de", default_language)):
            for token, stemmed in zip(tokens, other, strict=True) if len(tokens) == len(other) else ():
                if stemmed != token and not stemmed.is_stop_word and len(stemmed.text) >= _SHORTEST_GERMAN_STEM:
                    found[token.text] = tuple(dict.fromkeys((*found.get(token.text, ()), stemmed.text)))
    return found


def _respelled(word: str) -> Iterator[str]:
    """Yield a word with umlauts as two letters, and the reverse: `Müller` and `Mueller` are one name.

    An `ss` needs no other spelling: in folded texts `ß` is one.
    """
    for other in (word.translate(_APART), _TWO_LETTERS.sub(lambda found: _UMLAUTS[found[0]], word)):
        if other != word:
            yield other


_NUMBER = re.compile(r"\d+")
# Words that turn a sentence round, in the languages whose stop words are known here; all of them are short and common.
_NEGATING = """
no not never none nothing nobody neither nor without cannot nicht kein keine keinen nie niemals ohne ne
pas jamais sans non mai senza nunca sin nem não sem niet geen nooit zonder inte ingen aldrig utan не ни нет никогда без
"""
_NEGATIONS = frozenset(_NEGATING.split())
_SPOKEN_WORD = re.compile(r"[^\W\d_]+(?:'t\b)?")


def may_be_one(text: str, other: str) -> bool:
    """Return whether two texts with near vectors may mean the same.

    Ports, versions and dates, a "not", or who pays whom make a difference: numbers and negations must agree, and the
    words that both have must come in the same order.
    """
    return (
        numbers_in(text) == numbers_in(other)
        and _negations(text) == _negations(other)
        and _shared(text, other) == _shared(other, text)
    )


def numbers_in(text: str) -> list[str]:
    """Return the numbers of a text, in no order: ports, versions and dates hardly change a vector."""
    return sorted(_NUMBER.findall(text))


def _negations(text: str) -> int:
    words = _SPOKEN_WORD.findall(text.casefold().replace("\u2019", "'"))
    return sum(word in _NEGATIONS or word.endswith("n't") for word in words)


def _shared(text: str, other: str) -> list[str]:
    """Return the words of a text that the other also has, in the order of their first occurrence."""
    known = set(tokens_of(other))
    return [token for token in dict.fromkeys(tokens_of(text)) if token in known]
