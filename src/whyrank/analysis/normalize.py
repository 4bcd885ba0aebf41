"""Text in one valid Unicode form, patterns compiled when first used, and bounded caches.

Sizes in caches are computed from the content of an entry, not measured: a count costs nothing and is the same on every
machine.
"""

from __future__ import annotations

import hashlib
import re
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import lru_cache, wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from regex import Pattern

SIGN = "="  # in the marks of dates, languages and speakers, so that no word equals one
SHOWN = f"in{SIGN}"  # how the mark of a language begins that a text shows …
ASSUMED = f"as{SIGN}"  # … and that of the language setting, on a text that shows none
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
    """Return a text cleaned, composed and with straight apostrophes; case is kept for camelCase.

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


ENTRY_BYTES = 400  # key, value object, its dictionary and the links of the order; tracemalloc: 350 for an empty list
STRING_BYTES = 60  # a short str object, as tracemalloc counts it
LONGEST_TEXT = 256  # characters of an argument whose result is kept; longer ones do not come again
MOST_WORDS = 65_536  # kept by a `Memo`; some ten megabytes
LONGEST_WORD = 64  # letters; a longer one is data, or of a script without spaces, and does not come again
TEXT_BYTES = 256  # of a word or name and its cached result, on average

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Function = TypeVar("Function", bound=Callable[..., Any])


class ByteBoundedCache(Generic[Key, Value]):
    """A least-recently-used cache; the newest entry stays, even where it is larger than the bound.

    `get` takes no lock: under the GIL each operation of an OrderedDict is atomic.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[Key, Value], int]) -> None:
        self.max_bytes = max_bytes
        self._calm_bytes = max_bytes // 4 * 3  # up to here the order of use need not be kept: nothing is evicted soon
        self.nbytes = 0
        self._size_of = size_of
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, now the most recently used; None if it is not kept."""
        value = self._values.get(key)
        if value is not None and self.nbytes > self._calm_bytes:
            with suppress(KeyError):  # another thread may have evicted it since
                self._values.move_to_end(key)
        return value

    def get_many(self, keys: Sequence[Key]) -> list[Value | None]:
        """Return the value of each key, None for those that are not kept."""
        held = self._values
        found = [*map(held.get, keys)]
        if self.nbytes > self._calm_bytes:
            with self._lock:  # none is evicted meanwhile
                for key in filter(held.__contains__, keys):
                    held.move_to_end(key)
        return found

    def put(self, key: Key, value: Value) -> None:
        """Keep a value as the most recently used, and evict others until the bound holds."""
        self.update({key: value})

    def update(self, values: Mapping[Key, Value]) -> None:
        """Keep several values, then evict until the bound holds."""
        with self._lock:
            held, sizes = self._values, self._sizes
            for key, value in values.items():
                if key in held:
                    held.move_to_end(key)
                size = self._size_of(key, value) + ENTRY_BYTES
                self.nbytes += size - sizes.get(key, 0)
                held[key], sizes[key] = value, size
            while self.nbytes > self.max_bytes and len(self._values) > 1:
                key, _ = self._values.popitem(last=False)
                self.nbytes -= self._sizes.pop(key)

    def drop(self, keys: Iterable[Key]) -> None:
        """Remove the entries that are in the cache."""
        with self._lock:
            for key in keys:
                self._values.pop(key, None)
                self.nbytes -= self._sizes.pop(key, 0)

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._values.clear()
            self._sizes.clear()
            self.nbytes = 0

    def keys(self) -> list[Key]:
        """Return all keys, the least recently used first."""
        return [*self._values]

    def values(self) -> list[Value]:
        """Return all values, the least recently used first."""
        return [*self._values.values()]


# Caches that all stores of a process share: how many entries each has, and the most it may have.
_shared: list[tuple[Callable[[], int], int]] = []


def share(count: Callable[[], int], most: int) -> None:
    """Count a cache of words that all stores of the process share."""
    _shared.append((count, most))


def shared_bytes() -> int:
    """Return about how many bytes the caches hold that all stores of the process share."""
    return TEXT_BYTES * sum(count() for count, _ in _shared)


def most_shared_bytes() -> int:
    """Return the approximate maximum of bytes they hold."""
    return TEXT_BYTES * sum(most for _, most in _shared)


def text_cache(most: int, longest: int = LONGEST_TEXT) -> Callable[[Function], Function]:
    """Cache a function of a text like `lru_cache`, but not for texts longer than `longest` characters."""

    def decorate(function: Function) -> Function:
        kept = lru_cache(maxsize=most)(function)
        share(lambda: kept.cache_info().currsize, most)

        @wraps(function)
        def cached(text: str, *rest: Hashable) -> Any:
            return kept(text, *rest) if len(text) <= longest else function(text, *rest)

        return cast("Function", cached)

    return decorate


class Memo(dict[str, Value], Generic[Value]):
    """Dictionary that computes missing values; `map(memo.__getitem__, words)` is all C for known words."""

    def __init__(self, make: Callable[[str], Value], most: int = MOST_WORDS) -> None:
        super().__init__()
        self._make = make
        self._most = most

    def __missing__(self, word: str) -> Value:
        made = self._make(word)
        if len(word) <= LONGEST_WORD:
            # The older half is evicted; frequent words return with their next occurrence.
            for old in [*islice(self, self._most // 2)] if len(self) >= self._most else ():
                self.pop(old, None)  # another thread may have been faster
            self[word] = made
        return made
