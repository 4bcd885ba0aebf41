"""Patterns of Unicode that are compiled when they are first used: most questions never meet most of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from regex import Pattern

_METHODS = ("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")


class _Later:
    """A pattern to come; once it is there, its methods are found here as fast as there."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:  # as of those who copy it
            raise AttributeError(name)
        import regex  # takes as long to load as all these patterns to compile

        compiled = regex.compile(self._source)
        self.__dict__.update((method, getattr(compiled, method)) for method in _METHODS)
        return self.__dict__[name]


def pattern(source: str) -> Pattern[str]:
    """Return a pattern as `regex` knows them."""
    return cast("Pattern[str]", _Later(source))
