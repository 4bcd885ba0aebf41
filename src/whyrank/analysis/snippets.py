"""The part of a text that shows why it was found, with the matching words marked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ..types.query import meant
from .normalize import UNSPACED, compose, pattern
from .tokenizer import DEFAULT_LANGUAGE, Token, is_unspaced, latin_language, run_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SNIPPET_CHARACTERS = 240

_RUN = pattern(rf"(?V1)[{UNSPACED}]|[[\p{{L}}\p{{M}}\p{{N}}_'’]--[{UNSPACED}]]+")
_ASCII_RUN = re.compile(r"[A-Za-z0-9_']+")  # the same for pure ASCII, and several times as fast
# Words that signs join to one, or that end in some; they are searched only around such signs, which are few.
_JOINT = re.compile(r"(?<=\S)(?:[-./:@\\]+(?=\w)|\+\+|\#)")
_WORD = r"[\p{L}\p{M}\p{N}_]++"
_JOINED = pattern(rf"{_WORD}(?:(?:[-./:@\\]++{_WORD})++(?:\+\+|\#)?|\+\+|\#)")


class Span(NamedTuple):
    """One matching word: where it starts and ends in the snippet."""

    start: int
    end: int


class Snippet(NamedTuple):
    """A readable part of a text and the words in it that match the query."""

    text: str
    spans: tuple[Span, ...]

    def marked(self, before: str, after: str) -> str:
        """Return the text with every match between two marks."""
        pieces: list[str] = []
        position = 0
        for start, end in self.spans:
            pieces += [self.text[position:start], before, self.text[start:end], after]
            position = end
        return "".join((*pieces, self.text[position:]))


def snippet(text: str, terms: tuple[str, ...], width: int = SNIPPET_CHARACTERS) -> Snippet:
    """Cut the stretch of a text with the most matching words, at word boundaries."""
    flat = " ".join(text.split())
    wanted = {token for term in terms for one in meant(term) for token in one.split()}
    spans = _matches(flat, wanted)
    start, end = _best_window(flat, spans, width)
    shift = start - (start > 0)  # there is an ellipsis before
    inside = tuple(Span(s - shift, e - shift) for s, e in spans if start <= s and e <= end)
    before, after = "…" if start > 0 else "", "…" if end < len(flat) else ""
    return Snippet(before + flat[start:end] + after, inside)


def _matches(text: str, wanted: set[str]) -> list[Span]:
    if not wanted:
        return []
    latin = latin_language(text, DEFAULT_LANGUAGE)
    spans: list[Span] = []
    for match in (_ASCII_RUN if text.isascii() else _RUN).finditer(text):
        run = match.group()
        if is_unspaced(run):
            pair = text[match.start() : match.start() + 2]
            if pair in wanted or run in wanted:
                spans.append(Span(match.start(), match.start() + (len(pair) if pair in wanted else 1)))
        elif _is_wanted(run_tokens(compose(run), latin), wanted):
            spans.append(Span(match.start(), match.end()))
    return _merged(sorted((*spans, *_joined(text, wanted, latin))))


def _joined(text: str, wanted: set[str], latin: str) -> Iterator[Span]:
    """Yield the identifiers that match as one word, even if no part does: `night-shift` for `nightshift`."""
    end = 0
    for joint in _JOINT.finditer(text):
        if joint.start() < end:
            continue
        end = text.find(" ", joint.end())
        end = len(text) if end < 0 else end
        for match in _JOINED.finditer(text, text.rfind(" ", 0, joint.start()) + 1, end):
            if _is_wanted(run_tokens(compose(match.group()), latin)[:1], wanted):
                yield Span(match.start(), match.end())


def _is_wanted(tokens: Iterable[Token], wanted: set[str]) -> bool:
    for token in tokens:  # noqa: SIM110 (every word of every result passes here, and `any` takes three times as long)
        if token.text in wanted:
            return True
    return False


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in spans:
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


def _best_window(text: str, spans: list[Span], width: int) -> tuple[int, int]:
    if len(text) <= width:
        return 0, len(text)
    best_start, best_count, last = 0, 0, 0
    for first, (start, _) in enumerate(spans):
        while last < len(spans) and spans[last].end <= start + width * 3 // 4:
            last += 1
        if last - first > best_count:
            best_start, best_count = start, last - first
    start = max(0, min(best_start - width // 4, len(text) - width))
    if start:
        start = text.find(" ", start, start + width // 8) + 1 or start
    end = min(len(text), start + width)
    if end < len(text):
        end = max(text.rfind(" ", end - width // 8, end), 0) or end
    return start, end
