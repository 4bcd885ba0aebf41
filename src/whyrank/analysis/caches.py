"""Bounded caches: `ByteBoundedCache` for one store, `text_cache` and `Memo` for the process.

Sizes are computed from the content of an entry, not measured: a count costs nothing and is the same on every machine.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache, wraps
from itertools import islice
from typing import Any, Generic, TypeVar, cast

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
        self._calm_bytes = max_bytes // 2  # up to here nothing is evicted soon, and the order of use need not be kept
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
            self._touch(key)
        return value

    def get_many(self, keys: Sequence[Key]) -> list[Value | None]:
        """Return the value of each key, None for those that are not kept."""
        found = [*map(self._values.get, keys)]
        if self.nbytes > self._calm_bytes:
            for key, value in zip(keys, found, strict=True):
                if value is not None:
                    self._touch(key)
        return found

    def _touch(self, key: Key) -> None:
        try:
            self._values.move_to_end(key)
        except KeyError:
            return  # another thread has evicted it since

    def put(self, key: Key, value: Value) -> None:
        """Keep a value as the most recently used, and evict others until the bound holds."""
        self.update({key: value})

    def update(self, values: Mapping[Key, Value]) -> None:
        """Keep several values, then evict until the bound holds."""
        with self._lock:
            for key, value in values.items():
                self._drop(key)
                size = self._size_of(key, value) + ENTRY_BYTES
                self._values[key] = value
                self._sizes[key] = size
                self.nbytes += size
            while self.nbytes > self.max_bytes and len(self._values) > 1:
                key, _ = self._values.popitem(last=False)
                self.nbytes -= self._sizes.pop(key)

    def drop(self, keys: Iterable[Key]) -> None:
        """Let entries go, those of them that are kept."""
        with self._lock:
            for key in keys:
                self._drop(key)

    def _drop(self, key: Key) -> None:
        if key in self._sizes:
            del self._values[key]
            self.nbytes -= self._sizes.pop(key)

    def clear(self) -> None:
        """Let all entries go."""
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
