"""The advanced query syntax: words, "phrases", beginnings*, fields, AND, OR, NOT and parentheses.

    query  = both { OR both }
    both   = one { [AND] one }
    one    = (NOT | -) one | ( query ) | [field:] (word | word* | "phrase")

Operators are written in capitals. A syntax error raises BadQuery with its position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ..errors import BadQuery
from ..types.expressions import All, Begins, Either, Expression, Holds, Leaf, Not, Says, label_of, wanted
from ..types.memory import Notice
from ..types.query import Analysis
from .language import DEFAULT_LANGUAGE, LATIN_LANGUAGES, latin_language
from .normalize import clean, compose, fold, pattern, unspaced_letters
from .query import MAX_QUERY_CHARACTERS, MAX_TERMS, analyse
from .query_terms import ALIASES, CHOICES, MEMORY_FIELDS, SPOKEN, term_for, words_of
from .stemming import spellings, stems_beginning
from .tokenizer import MAX_TOKEN_LETTERS, all_tokens, joined, runs_in, spelled

MIN_BEGINNING = 2  # letters before a *; a single one begins a tenth of all words
MAX_DEPTH = 32  # nested parentheses and NOTs; no query written by hand has more, and the stack must not overflow
_SHOWN = 30  # characters of a query shown before and after the place of an error

_PIECE = pattern(
    r"\s*(?:(?P<open>\()|(?P<close>\))|(?P<minus>-)(?=[^\s)])"
    r'|(?:(?P<field>\p{L}+):(?!\s|:|//))?(?:["“”„«](?P<phrase>[^"“”„«»]*)(?P<end>["“”»])(?P<starred>\*?)'
    r'|(?P<word>[^\s()"“”„«»]+))|(?P<bad>\S))'
)
_LETTER = pattern(r"[\p{L}\p{N}]")
_BEGINNING = pattern(r"[\p{L}\p{M}\p{N}_\-./:@'\\+#]+")  # the signs a token may hold
_OPERATORS = frozenset({"AND", "OR", "NOT"})
QUOTE_IT = "put it in quotes to look for it as text, or ask in the plain syntax"


class Piece(NamedTuple):
    """One token of a query: its kind, its text, its position, and the field before it."""

    kind: str
    text: str
    place: int
    field: str = ""


@dataclass(frozen=True)
class ParsedQuery:
    """Parsed query in the advanced syntax; its expression is None if it holds nothing to search."""

    analysis: Analysis
    expression: Expression | None


def asked_for(text: str, default_language: str = DEFAULT_LANGUAGE, now: float | None = None) -> ParsedQuery:
    """Parse a query in the advanced syntax; it is ranked by its positive words."""
    cleaned = clean(text)
    reading = _Reading(cleaned.text, default_language)
    expression = reading.whole()
    leaves = list(wanted(expression)) if expression is not None else []
    plain = analyse(" ".join(_spoken(leaves)), default_language, now)
    notices = [*reading.notices]
    if cleaned.replaced:
        notices.append(Notice("query-cleaned", "the query held characters that cannot be stored; they were replaced"))
    terms = tuple(dict.fromkeys(leaf.term for leaf in leaves if isinstance(leaf, Holds)))
    named = tuple(term for leaf in leaves if isinstance(leaf, Says) for term in _terms_in(leaf, default_language))
    analysis = Analysis(
        plain.text,
        plain.language,
        plain.kind,
        tuple(dict.fromkeys((*terms, *named))),
        plain.probe,
        plain.entities,
        tuple(notices),
        plain.dates,
        plain.speakers,
    )
    return ParsedQuery(analysis, expression)


def _spoken(leaves: Iterable[Leaf]) -> Iterator[str]:
    """Yield the plain words of the positive leaves."""
    for leaf in leaves:
        match leaf:
            case Begins():
                yield leaf.beginning
            case Holds():
                yield leaf.asked
            case Says() if leaf.field in SPOKEN:
                yield leaf.value


def _terms_in(leaf: Says, default_language: str) -> list[str]:
    """Return the terms that a name or heading is ranked by: its words are in the searched text too."""
    if leaf.field not in SPOKEN or leaf.begins:
        return []
    return [token.text for token in all_tokens(leaf.value, default_language) if not token.is_stop_word]


@dataclass
class _Reading:
    """One pass over a query, from left to right."""

    text: str
    default_language: str
    notices: list[Notice] = field(default_factory=list)
    _place: int = 0

    def whole(self) -> Expression | None:
        """Read the whole query."""
        if len(self.text) > MAX_QUERY_CHARACTERS:
            raise self._wrong(f"the query has {len(self.text)} characters", 0, f"write at most {MAX_QUERY_CHARACTERS}")
        self._pieces = list(self._split())
        leaves = [piece for piece in self._pieces if piece.kind in ("word", "phrase")]
        if len(leaves) > MAX_TERMS:
            raise self._wrong(f"the query has {len(leaves)} words", 0, f"write at most {MAX_TERMS}")
        # A prefix, or the name of a field, shows no language: "en*" is not French.
        spoken = " ".join(piece.text for piece in leaves if not piece.field and "*" not in piece.text)
        self._latin = latin_language(compose(spoken), self.default_language)
        if not self._pieces:
            return None
        found = self._either(0)
        left = self._next()
        if left is not None:
            raise self._wrong("a closing parenthesis has no opening one", left.place, "take it out")
        return found

    def _split(self) -> Iterator[Piece]:
        place = 0
        while (match := _PIECE.match(self.text, place)) is not None:
            place = match.end()
            kind = match.lastgroup
            if match["bad"]:
                raise self._wrong("a quotation mark is not closed", match.start("bad"), "close it, or take it out")
            if match["phrase"] is not None:
                if match["starred"]:
                    raise self._wrong(
                        "a phrase cannot be a beginning", match.start("starred"), "put the * behind a word"
                    )
                yield Piece("phrase", match["phrase"], match.start("phrase"), match["field"] or "")
            elif match["word"] is not None:
                is_operator = match["word"] in _OPERATORS and not match["field"]
                start = match.start("field") if match["field"] else match.start("word")
                yield Piece(match["word"] if is_operator else "word", match["word"], start, match["field"] or "")
            elif kind is not None:
                yield Piece(kind, match[kind], match.start(kind))

    def _next(self) -> Piece | None:
        return self._pieces[self._place] if self._place < len(self._pieces) else None

    def _either(self, depth: int) -> Expression | None:
        parts = [self._both(depth)]
        while (piece := self._next()) is not None and piece.kind == "OR":
            self._place += 1
            parts.append(self._both(depth))
        return _joined(Either, parts)

    def _both(self, depth: int) -> Expression | None:
        parts = [self._one(depth)]
        while (piece := self._next()) is not None and piece.kind not in ("OR", "close"):
            if piece.kind == "AND":
                self._place += 1
            parts.append(self._one(depth))
        return _joined(All, parts)

    def _one(self, depth: int) -> Expression | None:
        piece = self._next()
        if piece is None:
            raise self._wrong("a word is missing", len(self.text), "write one behind the last operator")
        if depth > MAX_DEPTH:
            raise self._wrong("parentheses or NOTs are too deep", piece.place, f"nest at most {MAX_DEPTH}")
        self._place += 1
        match piece.kind:
            case "NOT" | "minus":
                inside = self._one(depth + 1)
                return None if inside is None else Not(inside)
            case "open":
                return self._group(piece, depth)
            case "word" | "phrase":
                return self._leaf(piece)
        raise self._wrong(f"a word is missing before {piece.text}", piece.place, "write one, or take it out")

    def _group(self, opening: Piece, depth: int) -> Expression | None:
        inside = self._either(depth + 1)
        closing = self._next()
        if closing is None:
            raise self._wrong("a parenthesis is not closed", opening.place, "close it with )")
        self._place += 1
        return inside

    def _leaf(self, piece: Piece) -> Leaf | None:
        if piece.field:
            return self._saying(piece)
        if piece.kind == "word" and "*" in piece.text:
            return self._beginning(piece)
        if (
            piece.kind == "word"
            and ALIASES.get(piece.text[:-1], piece.text[:-1]) in MEMORY_FIELDS
            and piece.text[-1] == ":"
        ):
            raise self._wrong(
                "a field names nothing", piece.place, "write what it says behind the colon, as in tag:work"
            )
        term = term_for(piece.text, self._latin)
        if term:
            quoted = f'"{piece.text}"' if piece.kind == "phrase" else piece.text
            return Holds(quoted, term)
        is_word = bool(runs_in(compose(piece.text)))
        said = f"{piece.text!r} is in no index and was passed over"
        self.notices.append(
            Notice("word-ignored", said if is_word else f"{piece.text!r} is no word; it was passed over")
        )
        return None

    def _beginning(self, piece: Piece) -> Leaf:
        star = piece.text.index("*")
        if piece.text[star:].strip("*"):
            raise self._wrong("a * stands inside a word", piece.place + star, "put it at the end")
        written = fold(compose(piece.text[:star])).rstrip("-_")
        # A separator at the end joins nothing yet: `night-*` equals `night*`.
        folded = joined(fold(spelled(compose(piece.text[:star]))))[:MAX_TOKEN_LETTERS].rstrip("-_")
        unspaced = unspaced_letters(folded)
        # Letters are counted as they are written: `π*` is one, and would else begin every pipe and picture.
        if not _LETTER.search(folded) or (min(len(written), len(folded)) < MIN_BEGINNING and not unspaced):
            hint = f"write at least {MIN_BEGINNING} letters before *"
            raise self._wrong(f"{piece.text!r} begins too many words", piece.place, hint)
        if not _BEGINNING.fullmatch(folded):
            raise self._wrong(
                f"no word begins with {piece.text!r}", piece.place, "write the beginning of one word before *"
            )
        if unspaced > 1:  # scripts without spaces are indexed as pairs of letters: a prefix is searched as its pairs
            return Holds(piece.text, " ".join(token.text for token in all_tokens(folded, self._latin)))
        return Begins(f"{folded}*", spellings(folded, self._latin), stems_beginning(folded, self._latin))

    def _saying(self, piece: Piece) -> Leaf:
        name = ALIASES.get(piece.field.lower(), piece.field.lower())
        asked = f'{piece.field}:"{piece.text}"' if piece.kind == "phrase" else f"{piece.field}:{piece.text}"
        if name not in MEMORY_FIELDS:
            known = ", ".join(sorted((*MEMORY_FIELDS, *ALIASES)))
            raise self._wrong(f"there is no field {piece.field!r}", piece.place, f"the fields are {known}; {QUOTE_IT}")
        if name == "path":
            return Says(asked, name, piece.text)
        begins = piece.kind == "word" and piece.text.endswith("*")
        value = piece.text.removesuffix("*") if begins else piece.text
        folded = fold(value).strip() if name in ("tag", *CHOICES) else words_of(value)
        if not folded:
            raise self._wrong(f"{asked!r} names nothing", piece.place, "write a word behind the colon")
        choices = CHOICES.get(name)
        if choices and not any(choice.startswith(folded) if begins else choice == folded for choice in choices):
            raise self._wrong(f"there is no {name} {value!r}", piece.place, f"there are {', '.join(choices)}")
        return Says(asked, name, folded, begins)

    def _wrong(self, message: str, place: int, hint: str) -> BadQuery:
        before, after = self.text[max(0, place - _SHOWN) : place], self.text[place : place + _SHOWN]
        return BadQuery(f"{message}, at character {place + 1}: {before}▸{after}", hint)


def other_terms(leaf: Holds, default_language: str) -> list[str]:
    """Return the terms of a word or phrase in the languages that its query was not detected as.

    They have as many words: where a language treats one as a function word, the term would match more.
    """
    text, languages = leaf.asked.strip('"'), dict.fromkeys((default_language, *LATIN_LANGUAGES))
    terms = dict.fromkeys(term_for(text, language) for language in languages)
    words = label_of(leaf.term).count(" ")
    return [term for term in terms if term and term != leaf.term and label_of(term).count(" ") == words]


def _joined(kind: type[All] | type[Either], parts: list[Expression | None]) -> Expression | None:
    """Join the non-empty parts; a part of nothing but function words is empty."""
    found = [part for part in parts if part is not None]
    if len(found) < 2:
        return found[0] if found else None
    return kind(tuple(inner for part in found for inner in (part.parts if isinstance(part, kind) else (part,))))
