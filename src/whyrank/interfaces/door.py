"""What a server was started with: its engine, whose memories it serves, and what its callers may do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..arguments import scope_of
from ..deadline import SERVER_TIMEOUT_MS
from ..engine import Engine
from ..errors import ConfigError, NotFound
from ..types import GLOBAL, Memory
from .desk import Desk

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Door:
    """One engine as its callers may use it; what they may ask for is in the values of each call."""

    desk: Desk
    scopes: tuple[str, ...] = ()
    is_multi_scope: bool = False
    is_read_only: bool = False
    workspace: Path | None = None  # from which files may be put in, if any

    def seen(self, values: Values) -> list[str]:
        """Return whose memories a call sees beside the global ones: the server's own, or those asked for if it may."""
        return list(values.get("scope") or self.scopes)

    def home(self, values: Values) -> str:
        """Return where a call stores."""
        return next(iter(self.seen(values)), str(GLOBAL))

    def home_for(self, values: Values, engine: Engine) -> str:
        """Return where a call stores a fact: beside what it replaces, if that is in one of the caller's own scopes."""
        replaced, own = values.get("supersedes"), self.seen(values)
        if isinstance(replaced, str) and len(own) > 1:
            old = _replaced(engine, replaced, own)
            if old is not None and str(old.scope) in own:
                return str(old.scope)
        return self.home(values)

    def refuse_others(self, memories: Iterable[Memory], values: Values, done: str = "removed") -> None:
        """Refuse to change what a caller sees and does not own: the global memories, if it has scopes of its own."""
        own = {scope_of(scope) for scope in self.seen(values)} or {GLOBAL}
        for memory in memories:
            if memory.scope not in own:
                raise ConfigError(
                    f"{memory.id} is {memory.scope}, not this agent's own; nothing was {done}",
                    "whoever looks after the store can do that for everybody, on the command line",
                )


def _replaced(engine: Engine, named: str, own: list[str]) -> Memory | None:
    """Return the memory that is named by its id or its text."""
    try:
        return engine.get(named, scope=own)
    except NotFound:
        return engine.saying(named, scope=own)


def timeout_of(engine: Engine, values: Values) -> int:
    """Return how many milliseconds a search through a server may take: as asked for, as set, or the usual limit."""
    timeout_ms: int = values.get("timeout_ms") or engine.config["timeout_ms"] or SERVER_TIMEOUT_MS
    return timeout_ms
