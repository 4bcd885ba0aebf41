"""Normalisation of all input text to valid Unicode in one form."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

if TYPE_CHECKING:
    from regex import Pattern

SIGN = "="  # in the marks of dates, languages and speakers, so that no word equals one
BY = f"by{SIGN}"  # how the mark of a speaker begins
_METHODS = ("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")


class _Later:
    """Lazily compiled pattern; after the first use its methods are as fast as the pattern's own."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:  # for copies of it
            raise AttributeError(name)
        import regex  # takes as long to load as all these patterns to compile

        compiled = regex.compile(self._source)
        self.__dict__.update((method, getattr(compiled, method)) for method in _METHODS)
        return self.__dict__[name]


def pattern(source: str) -> Pattern[str]:
    """Return a lazily compiled pattern in the syntax of `regex`."""
    return cast("Pattern[str]", _Later(source))


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")  # where a line may break, or must not; and BOMs
_ODD_SPACES = b"\t\n\v\f\r\x1c\x1d\x1e\x1f"  # all that `split` splits at in ASCII, but the space itself

# Scripts written without spaces between words (and Hangul, whose particles stick to the words).
# The long-vowel mark ー belongs to no script of its own, but occurs inside Japanese words.
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\u30fc\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_UNSPACED_LETTER = pattern(f"[{UNSPACED}]")
# Ranges of all of them, and few others: not the dashes, arrows and emoji of other texts. It is ten times as fast.
_MAY_BE_UNSPACED = re.compile(
    "[\u0e00-\u11ff\u1780-\u19ff\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffff"
    "\U00010000-\U0001efff\U0001f200-\U0001f2ff\U00020000-\U0003ffff]"
)

# Marks on one letter beyond which a text is normalised in parts: `unicodedata` sorts them by insertion. The
# Stream-Safe Text Format (UAX #15) allows 30; no language writes more, drawings made of marks do.
_MOST_MARKS = 128
_MANY_MARKS = pattern(rf"\p{{M}}{{{_MOST_MARKS}}}(?=\p{{M}})")
_GRAPHEME_JOINER = "\u034f"  # invisible, and of no combining class: marks are not sorted across it

CHARACTERS_PER_TOKEN = 4  # English prose; the usual estimate, good enough to size a chunk


class Cleaned(NamedTuple):
    """Text that can be stored and searched, and whether anything had to be replaced."""

    text: str
    replaced: bool


def is_clean(text: str) -> bool:
    """Return whether a store can hold a text as it is."""
    try:
        text.isascii() or text.encode()  # ten times as fast as a pattern
    except UnicodeEncodeError:
        return False
    return "\x00" not in text


def clean(text: str) -> Cleaned:
    """Replace characters that no store can hold (NUL, lone surrogates)."""
    return Cleaned(text, False) if is_clean(text) else Cleaned(_UNSTORABLE.sub(_REPLACEMENT, text), True)


def fold(text: str) -> str:
    """Bring text to the form it is matched in: compatibility-composed and case-folded."""
    if text.isascii():
        return text.lower()
    return normalized("NFKC", normalized("NFKC", text).casefold())


def same_text(text: str) -> str:
    """Return the normal form for equality of texts: composed, case-folded, with single spaces."""
    return same_bytes(text).decode()


def same_bytes(text: str) -> bytes:
    """Return the same, encoded."""
    if text.isascii():
        said = text.lower().strip().encode()
        if b"  " not in said and len(said.translate(None, _ODD_SPACES)) == len(said):
            return said
    # Letters that are put together of several (as of some file systems) are the same letters.
    composed = normalized("NFC", text)
    return " ".join(composed.casefold().split()).encode("utf-8", errors="replace")


def text_key(text: str) -> str:
    """Return the fingerprint of a text's normal form, shared by equal texts."""
    return hashlib.blake2b(same_bytes(text), digest_size=16).hexdigest()


def compose(text: str) -> str:
    """Return the cleaned, composed form of a text with straight apostrophes; case is kept, to detect camelCase.

    Invisible characters inside a word do not split it: soft hyphens, and characters without a width.
    """
    if text.isascii() and "\x00" not in text:
        return text
    return _INVISIBLE.sub("", normalized("NFKC", clean(text).text).replace("’", "'"))


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return a Unicode normal form in linear time; runs of over 128 marks are split by joiners."""
    if any(map(unicodedata.combining, text[_MOST_MARKS // 2 :: _MOST_MARKS // 2])):  # no longer run is between these
        text = _MANY_MARKS.sub(rf"\g<0>{_GRAPHEME_JOINER}", text)
    return unicodedata.normalize(form, text)


def unspaced_letters(text: str) -> int:
    """Count the letters of scripts that put no spaces between words."""
    if text.isascii() or _MAY_BE_UNSPACED.search(text) is None:
        return 0
    return len(_UNSPACED_LETTER.findall(text))


def estimated_tokens(text: str) -> int:
    """Estimate the size of a text in model tokens without calling a model."""
    return tokens_in_letters(len(text), unspaced_letters(text))


def tokens_in_letters(letters: int, unspaced: int) -> int:
    """Estimate the same of a text by its letters, some of which are of scripts without spaces."""
    return unspaced + (letters - unspaced + CHARACTERS_PER_TOKEN - 1) // CHARACTERS_PER_TOKEN
