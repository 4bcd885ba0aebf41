"""Which files of a workspace are meant by patterns such as `skills/**/*.md`: never one outside of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath

from ..errors import ConfigError
from .walk import Found, Skipped, walk

_WILD = re.compile(r"[*?\[]")
_MAX_PATTERN = 1_000  # characters; nobody types more

MISSING = "does not exist"


def parsed(patterns: str | Sequence[str]) -> tuple[str, ...]:
    """Read patterns, a text of several separated by commas; one that leads out of the workspace is an error."""
    given = patterns.split(",") if isinstance(patterns, str) else patterns
    found = tuple(dict.fromkeys(pattern.strip() for pattern in given if pattern.strip()))
    if not found:
        raise ConfigError("there is no pattern", "give some, separated by commas: skills/**/*.md,TOOLS.md")
    for pattern in found:
        path = PurePosixPath(pattern)
        if path.is_absolute() or ".." in path.parts or "\0" in pattern or len(pattern) > _MAX_PATTERN:
            raise ConfigError(
                f"the pattern {pattern[:80]!r} leads out of the workspace, or is none",
                "give patterns relative to the workspace; --workspace names another one",
            )
        _check(pattern)
    return found


def _check(pattern: str) -> None:
    try:
        _expression(pattern)
    except re.error as error:
        raise ConfigError(
            f"{pattern[:80]!r} is no pattern: {error}", "write skills/**/*.md or notes/[a-f]*.md"
        ) from error


def matching(workspace: Path, patterns: Sequence[str]) -> Iterator[Found | Skipped]:
    """Yield the files that match, each once, in the order of the patterns, and what was passed over."""
    seen: set[Path] = set()
    inside = workspace.resolve()
    for pattern in patterns:
        for item in _of_pattern(workspace, pattern):
            path = Path(item.path)
            if path in seen:
                continue
            seen.add(path)
            yield (_astray(path, inside) or item) if isinstance(item, Found) else item


def is_match(path: str, pattern: str) -> bool:
    """Tell whether a path matches: `*` and `?` stay inside a folder, `**` is any number of folders, also none."""
    return _expression(pattern).fullmatch(path) is not None


def _of_pattern(workspace: Path, pattern: str) -> Iterator[Found | Skipped]:
    parts = PurePosixPath(pattern).parts
    wild = next((number for number, part in enumerate(parts) if _WILD.search(part)), None)
    root = workspace.joinpath(*parts[:wild])
    if not os.path.lexists(root):
        yield Skipped(str(root), MISSING, failed=wild is None)
    elif astray := _astray(root, workspace.resolve()):
        yield astray
    elif wild is None and os.path.isdir(root):
        below = f"`{pattern.rstrip('/')}/**/*.md` means the markdown below it"
        yield Skipped(str(root), f"is a folder; {below}", failed=True)
    else:
        wanted = partial(_is_match_below, workspace, pattern)
        yield from walk(root, wanted, below=workspace)


def _is_match_below(workspace: Path, pattern: str, path: str) -> bool:
    return is_match(Path(path).relative_to(workspace).as_posix(), pattern)


def _astray(path: Path, workspace: Path) -> Skipped | None:
    """Refuse what is inside by its name only: a folder on the way to it may be a link."""
    try:
        if path.resolve(strict=True).is_relative_to(workspace):
            return None
    except (OSError, RuntimeError) as error:
        return Skipped(str(path), f"cannot be read: {getattr(error, 'strerror', None) or error}", failed=True)
    return Skipped(str(path), "a link that leads out of the workspace")


@lru_cache(maxsize=256)
def _expression(pattern: str) -> re.Pattern[str]:
    parts = PurePosixPath(pattern).parts
    written = ""
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        if part == "**":
            written += ".+" if is_last else "(?:[^/]+/)*"
        else:
            written += "".join(_letter(piece) for piece in re.findall(r"\[!?[^\]/]+\]|.", part, re.DOTALL))
            written += "" if is_last else "/"
    return re.compile(written, re.DOTALL)


def _letter(piece: str) -> str:
    if piece in ("*", "?"):
        return "[^/]*" if piece == "*" else "[^/]"
    if len(piece) == 1:
        return re.escape(piece)
    inside = piece[1:-1]
    negated = inside.startswith("!")
    letters = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside.removeprefix("!"))
    return f"[^/{letters}]" if negated else f"[{letters}]"
