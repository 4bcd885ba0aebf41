"""What the facade does with pins: whose they are, and what may be said, checked once for all doors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arguments import Scopes, check_count, scopes_of, storable
from .ranking.recipes import Recipe

if TYPE_CHECKING:
    from collections.abc import Callable

    from .evaluation.pinboard import Checkup, Pinboard
    from .evaluation.pins import Pin


class Pinning:
    """Good answers, recorded once and re-checked whenever anything has changed."""

    def _pinboard(self) -> Pinboard:
        raise NotImplementedError

    def pin(
        self,
        query: str,
        identity: str,
        *,
        scope: Scopes = None,
        within: int | None = None,
        recipe: str | Recipe | None = None,
    ) -> Pin:
        """Record that a memory, or a file by its path, is a good answer to a query."""
        if within is not None:
            check_count("within", within)
        return self._pinboard().add(storable("query", query), identity, _named(scope), within, recipe)

    def pins(self, *, scope: Scopes = None, all_scopes: bool = False) -> list[Pin]:
        """Return the pins of the scopes asked for, or of all."""
        return self._pinboard().pins(None if all_scopes else _named(scope))

    def unpin(
        self, query: str, identity: str | None = None, *, scope: Scopes = None, all_scopes: bool = False
    ) -> list[Pin]:
        """Take out the pins of a query, or one of them."""
        return self._pinboard().remove(query, identity, None if all_scopes else _named(scope))

    def check(
        self,
        *,
        scope: Scopes = None,
        all_scopes: bool = False,
        recipe: str | Recipe | None = None,
        progress: Callable[[int, int, str], None] | None = None,
    ) -> Checkup:
        """Ask every pinned query again, each in its own scopes, and say what became of the pins."""
        scopes = None if all_scopes else _named(scope)
        return self._pinboard().check(scopes, recipe, progress or (lambda *_: None))


def _named(scope: Scopes) -> list[str]:
    return [str(one) for one in scopes_of(scope)]
