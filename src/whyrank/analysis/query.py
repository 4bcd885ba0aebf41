"""Query analysis: terms, phrases, name keys, query kind."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import chain, combinations, product
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from ..errors import BadQuery
from ..types.memory import CATEGORIES, KINDS, Memory, Notice
from ..types.query import (
    All,
    Analysis,
    Begins,
    Either,
    Expression,
    Holds,
    Leaf,
    Not,
    QueryKind,
    Says,
    label_of,
    meant,
    several,
    wanted,
)
from ..types.trail import NameProbe
from .dates import MONTH_OF, TELLING, asked_dates, told_dates
from .names import FUNCTION_WORDS, asked_speakers, entities_in, is_identifier, probe_for, windows_of
from .normalize import clean, compose, fold, pattern, text_cache, unspaced_letters
from .tokenizer import (
    DEFAULT_LANGUAGE,
    LATIN_LANGUAGES,
    MAX_TOKEN_LETTERS,
    QUESTION_WORDS,
    STUB_LETTERS,
    TOLD_WORDS,
    all_tokens,
    asked_tokens,
    bigrams,
    content_of,
    is_stub,
    is_unspaced,
    joined,
    language_of,
    latin_language,
    parts_of,
    plain_tokens,
    plain_words,
    run_tokens,
    runs_in,
    script_language,
    shown_language,
    singular_of,
    spelled,
    spoken_words,
    stem,
    tokens_of,
    vote_language,
    word_language,
    word_token,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

MAX_TERMS = 64  # an OR of more costs more than it finds
MAX_QUERY_CHARACTERS = 8_192  # a longer text is a document, not a question
NAME_WORDS = 2  # a query of one or two words is usually the name of a person or a thing
LETTERS_PER_UNSPACED_WORD = 3  # Chinese and Japanese words have about two characters, Thai ones more

_PHRASE = pattern(r'"([^"]+)"|“([^“”]+)”|„([^„“”]+)[“”]|«([^«»]+)»')
_QUOTES = frozenset('"“„«')  # how a phrase begins
_WORD = pattern(r"[\p{L}\p{M}\p{N}_]+")
_QUESTION_MARKS = ("?", "？", "؟", "⁇")
_DATED = TELLING.union(MONTH_OF)  # every plain text that names a date holds one of these


def analyse(text: str, default_language: str = DEFAULT_LANGUAGE, now: float | None = None) -> Analysis:
    """Analyse the text of a query; with `now`, also its relative dates ("yesterday")."""
    words = plain_words(text) if len(text) <= MAX_QUERY_CHARACTERS else None
    if not words:
        return scanned(text, default_language, now)
    folded = [word.lower() for word in words]
    language, shown = vote_language(folded, default_language)
    kind = _kind(text.strip(), folded, language, is_name=len(words) <= NAME_WORDS)
    told = () if kind == "name" else TOLD_WORDS.get(language, ())
    distinct = tuple(dict.fromkeys(plain_tokens(folded, language, told)))
    shortened = tuple([word[:MAX_TOKEN_LETTERS] for word in folded])
    probe = NameProbe("".join(folded), shortened, windows_of(tuple(folded)))
    # A capital may begin a name, unless it begins a function word at the beginning of the text.
    is_named = not text.islower() and not (folded[0] in FUNCTION_WORDS and "".join([folded[0], *words[1:]]).islower())
    return Analysis(
        text=text,
        language=language,
        shown_language=shown,
        kind=kind,
        terms=distinct[:MAX_TERMS],
        probe=probe,
        entities=entities_in(text) if is_named else (),
        dates=() if _DATED.isdisjoint(folded) else _dates(text, now, language),
        speakers=asked_speakers(probe),
        notices=tuple(_notices(False, len(text), len(distinct))) if len(distinct) > MAX_TERMS else (),
    )


def scanned(text: str, default_language: str, now: float | None) -> Analysis:
    """Analyse any text, one of plain words among them: in the same way, but more slowly."""
    cleaned = clean(text)
    asked = cleaned.text[:MAX_QUERY_CHARACTERS]
    language = language_of(asked, default_language)
    kind = kind_of(asked, language)
    distinct = tuple(dict.fromkeys(_terms(asked, kind, default_language)))
    probe = probe_for(asked)
    return Analysis(
        text=asked,
        language=language,
        shown_language=shown_language(asked, default_language),
        kind=kind,
        terms=distinct[:MAX_TERMS],
        probe=probe,
        entities=entities_in(asked),
        dates=_dates(asked, now, language),
        speakers=asked_speakers(probe),
        notices=tuple(_notices(cleaned.replaced, len(text), len(distinct))),
    )


def terms_of(text: str, default_language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """Return the distinct terms of a name, in order, without the rest of its analysis."""
    words = plain_words(text)
    if words is None:
        return tuple(dict.fromkeys(_terms(text, "name", default_language)))
    folded = [word.lower() for word in words]
    return tuple(dict.fromkeys(plain_tokens(folded, vote_language(folded, default_language)[0])))


def kind_of(text: str, language: str) -> QueryKind:
    """Classify a query as a name, a question or keywords."""
    stripped = text.strip()
    words = _WORD.findall(fold(stripped))
    spoken = len(words) + unspaced_letters(stripped) // LETTERS_PER_UNSPACED_WORD
    return _kind(stripped, words, language, is_name=is_identifier(stripped) or 0 < spoken <= NAME_WORDS)


def _kind(text: str, words: Sequence[str], language: str, *, is_name: bool) -> QueryKind:
    if text.endswith(_QUESTION_MARKS):
        return "question"
    if is_name:
        return "name"
    return "question" if words and words[0] in QUESTION_WORDS.get(language, frozenset()) else "keywords"


def _dates(text: str, now: float | None, language: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*asked_dates(text), *(told_dates(text, now, language) if now else ()))))


def _terms(text: str, kind: QueryKind, default_language: str) -> Iterator[str]:
    """Yield the terms in order; a quoted phrase is one term of several tokens."""
    if _QUOTES.isdisjoint(text):
        yield from _words(text, kind, default_language)
        return
    found_phrase = False
    for match in _PHRASE.finditer(text):
        phrase = next(group for group in match.groups() if group)
        # A phrase of function words alone is in no index.
        if term := term_for(phrase, latin_language(compose(text), default_language)):
            yield term
            found_phrase = True
    remainder = _PHRASE.sub(" ", text)
    if found_phrase:
        tokens = asked_tokens(remainder, text, default_language)
        yield from (token.text for token in tokens if not token.is_stop_word)
    else:
        yield from _words(remainder, kind, default_language)


def _words(text: str, kind: QueryKind, default_language: str) -> tuple[str, ...]:
    """Return the words to search: all of a name, otherwise not those that only phrase the question."""
    tokens = asked_tokens(text, text, default_language, is_name=kind == "name")
    return tuple(token.text for token in tokens if not token.is_stop_word) or tokens_of(text, default_language)


def _notices(replaced: bool, characters: int, terms: int) -> Iterator[Notice]:
    if replaced:
        yield Notice("query-cleaned", "the query contained characters that cannot be stored; they were replaced")
    if characters > MAX_QUERY_CHARACTERS:
        yield Notice("query-cut", f"only the first {MAX_QUERY_CHARACTERS} characters of the query were read")
    if terms > MAX_TERMS:
        yield Notice("terms-cut", f"the keyword run searched for the first {MAX_TERMS} of {terms} different words")


def long_terms(terms: Sequence[str], text: str, default_language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """Return the terms that are long enough before and after stemming, or all if none is; phrases stay.

    Bigrams of scripts without spaces are no words, and stay.
    """
    composed = compose(text)
    latin = latin_language(composed, default_language)
    words = (word for run in runs_in(composed, is_spaced=True) for word in spoken_words(run))
    stubs = (part for word in words for part in parts_of(word) if is_stub(part, word_language(part, latin)))
    short = {word_token(stub, latin).text for stub in stubs}
    return tuple(term for term in terms if term not in short) or tuple(terms)


_text = attrgetter("text")  # a question has up to 900 words, each looked at for every unknown term


def words_meaning(term: str, text: str, default_language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """Return the words of a text that a term represents, as written; none for a term of no single word."""
    composed = compose(text)
    latin = latin_language(composed, default_language)
    runs = dict.fromkeys(runs_in(composed, is_spaced=True))
    if label_of(term).endswith("*"):
        return (label_of(term),)
    wanted = {token for one in meant(term) for token in one.split(" ")}
    return tuple([run for run in runs if wanted.intersection(map(_text, run_tokens(run, latin)))])


MAX_READINGS = 64  # of a phrase; beyond three identifiers they are all read alike
MOST_JOINED = 3  # words that signs join to one: `up-to-date`; more are rare, and each reading is searched
MOST_WORDS_WITH_JOINTS = 6  # of a phrase: seven readings more, and a millisecond; longer ones are quotations

Reading = tuple[str, ...]
_NUMBERED = pattern(r"(\p{L}+)(\p{N}+)")
_NUMBER = pattern(r"\p{N}+")
_NAME = pattern(r"\p{L}+")


def term_for(text: str, latin: str) -> str:
    """Return the index term of a word or phrase; empty if it holds function words alone."""
    read = [word for word in _parsed_words(compose(text), latin) if word.readings]
    words = [word.readings for word in read]
    label = " ".join(token for readings in words for token in readings[0])
    readings = chain(_combined(words), _with_joints(read, latin))
    found = list(dict.fromkeys(" ".join(chain.from_iterable(reading)) for reading in readings))
    return label if len(found) < 2 else several(label, found[:MAX_READINGS])


def _with_joints(words: Sequence[Word], latin: str) -> Iterator[Sequence[Reading]]:
    """Yield readings for texts that join some plain words: `late night shift` as `late night-shift`.

    A word joined from the first word on needs no reading of its own: its parts are indexed side by side behind the
    whole.
    """
    if len(words) <= MOST_WORDS_WITH_JOINTS and all(word.is_plain for word in words):
        said = [word.readings[0] for word in words]
        for start, end in combinations(range(1, len(words) + 1), 2):
            if 1 < end - start <= MOST_JOINED:
                whole = run_tokens("-".join(word.text for word in words[start:end]), latin)[0].text
                yield [*said[:start], (whole,), *said[start:]]


def _combined(words: Sequence[Sequence[Reading]]) -> Iterator[Sequence[Reading]]:
    """Yield the readings of several words side by side; of too many, those that read all words alike."""
    count = 1
    for readings in words:
        count *= len(readings)
    if count <= MAX_READINGS:
        yield from product(*words)
        return
    for number in range(max(map(len, words))):
        yield [readings[min(number, len(readings) - 1)] for readings in words]


class Word(NamedTuple):
    """One word of a phrase and its possible forms in an index, the label first."""

    text: str
    readings: Sequence[Reading]

    @property
    def is_plain(self) -> bool:
        """Return whether it has only one form."""
        return len(self.readings) == 1 and len(self.readings[0]) == 1 and not is_unspaced(self.text)


def _parsed_words(composed: str, latin: str) -> Iterator[Word]:
    """Yield each word with its readings."""
    words: list[str] = []
    for run in runs_in(composed):
        if is_unspaced(run):
            words.append(run)
        elif not all(token.is_stop_word for token in run_tokens(run, latin)):  # as both tokens of `don't` are
            words += spoken_words(spelled(run))
    for word in words:
        if is_unspaced(word):
            yield Word(word, [tuple(token.text for token in bigrams(word))])
        else:
            yield Word(word, _readings(word, latin, is_alone=len(words) == 1))


def _readings(word: str, latin: str, is_alone: bool) -> list[Reading]:
    """Return the possible forms of one word in an index."""
    tokens = run_tokens(word, latin)
    content = tuple(token.text for token in tokens if not token.is_stop_word)
    if len(tokens) < 2 or not content:
        return [content] if content else []
    whole = () if tokens[0].is_stop_word else content[:1]
    parts = content[len(whole) :]
    singular = singular_of(word, latin)
    if singular is not None:
        apart = _readings(singular, latin, is_alone=True)
    else:
        apart = [some for some in _with_numbers(parts, latin) if len(some) > 1]
    # A single word is found by its whole wherever that is indexed before its parts.
    together = [] if is_alone or not whole else [whole + some for some in (parts, *apart)]
    return list(dict.fromkeys([*([whole] if whole else []), *apart, *together])) or [content]


def _with_numbers(parts: Reading, latin: str) -> Iterator[Reading]:
    """Yield parts as they are, and with numbers apart from the names before them, and joined to these."""
    yield parts
    apart: list[str] = []
    for part in parts:
        numbered = _NUMBERED.fullmatch(part)
        apart += [word_token(numbered[1], latin).text, numbered[2]] if numbered else [part]
    yield tuple(apart)
    joined: list[str] = []
    for part in parts:
        if joined and _NUMBER.fullmatch(part) and _NAME.fullmatch(joined[-1]):
            joined[-1] += part
        else:
            joined.append(part)
    yield tuple(joined)


_WILD = "*?["
_HEADING = pattern(r"(?m)^#{1,6}[ \t]+(.+)$")
_UNDERLINED = re.compile(r"^(\S.*)\n(?:={2,}|-{2,})[ \t]*$", re.MULTILINE)


def headings_in(text: str) -> list[str]:
    """Return the headings inside a text, as markdown marks them: a chunk may go on over several."""
    underlined = _UNDERLINED.findall(text) if "\n==" in text or "\n--" in text else []
    return (_HEADING.findall(text) if "#" in text else []) + underlined


# Fields of the advanced syntax, with the values of a memory.
MEMORY_FIELDS: Mapping[str, Callable[[Memory], Sequence[str]]] = {
    "name": lambda memory: (memory.name, memory.title, memory.slug, *memory.aliases),
    "heading": lambda memory: (*memory.headings, *headings_in(memory.text)),
    "path": lambda memory: (memory.source.path,) if memory.source else (),
    "tag": lambda memory: memory.tags,
    "category": lambda memory: (memory.category,),
    "kind": lambda memory: (memory.kind,),
    "speaker": lambda memory: (memory.speaker,),
}
ALIASES = {"title": "name"}
# Fields with a few possible values.
CHOICES: Mapping[str, Sequence[str]] = {"kind": KINDS, "category": CATEGORIES}
# Fields whose words are in the searched text too, and are scored there.
SPOKEN = frozenset({"name", "heading"})


def is_said(leaf: Says, values: Iterable[str]) -> bool:
    """Return whether one of a field's values matches the leaf."""
    match leaf.field:
        case "path":
            return any(_is_below(path, leaf) for path in values)
        case "name" | "heading" | "speaker":
            return any(_has_words(value, leaf) for value in values)
        case _:
            folded = map(fold, values)
            return any(value.startswith(leaf.value) if leaf.begins else value == leaf.value for value in folded)


def _is_below(path: str, leaf: Says) -> bool:
    """Return whether a path equals the value, lies in that folder, or matches the pattern; case-sensitive."""
    if leaf.begins or any(sign in leaf.value for sign in _WILD):
        return fnmatchcase(path, leaf.value + ("*" if leaf.begins else ""))
    wanted = leaf.value.rstrip("/")
    return path == wanted or path.startswith(f"{wanted}/") or path.endswith(f"/{wanted}")


def _has_words(value: str, leaf: Says) -> bool:
    """Return whether a name or heading holds the leaf's words side by side, the last perhaps a prefix."""
    folded = fold(value)
    if leaf.value.split(" ")[0] not in folded:
        return False
    words, asked = _WORD.findall(folded), leaf.value.split(" ")
    last = len(asked) - 1
    return any(
        words[i : i + last] == asked[:last]
        and (words[i + last].startswith(asked[last]) if leaf.begins else words[i + last] == asked[last])
        for i in range(len(words) - last)
    )


def words_of(value: str) -> str:
    """Return the words of a value as they are compared: folded, a space between them."""
    return " ".join(_WORD.findall(fold(value)))


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
QUOTE_IT = "put it in quotes to search for it as text, or use the plain syntax"


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
        notices.append(
            Notice("query-cleaned", "the query contained characters that cannot be stored; they were replaced")
        )
    terms = tuple(dict.fromkeys(leaf.term for leaf in leaves if isinstance(leaf, Holds)))
    named = tuple(term for leaf in leaves if isinstance(leaf, Says) for term in _terms_in(leaf, default_language))
    terms = tuple(dict.fromkeys((*terms, *named)))
    analysis = replace(plain, terms=terms, notices=tuple(notices), shown_language="")
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
                raise self._wrong("a quotation mark is not closed", match.start("bad"), "close it, or remove it")
            if match["phrase"] is not None:
                if match["starred"]:
                    raise self._wrong("a phrase cannot be a prefix", match.start("starred"), "put the * after a word")
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
            raise self._wrong("a word is missing", len(self.text), "write one after the last operator")
        if depth > MAX_DEPTH:
            raise self._wrong("parentheses or NOTs are too deep", piece.place, f"nest at most {MAX_DEPTH}")
        self._place += 1
        match piece.kind:
            case "NOT" | "minus":
                inside = self._one(depth + 1)
                return None if inside is None else Not(inside)
            case "open":
                inside = self._either(depth + 1)
                if self._next() is None:
                    raise self._wrong("a parenthesis is not closed", piece.place, "close it with )")
                self._place += 1
                return inside
            case "word" | "phrase":
                return self._leaf(piece)
        raise self._wrong(f"a word is missing before {piece.text}", piece.place, "write one, or remove it")

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
            raise self._wrong("a field has no value", piece.place, "write its value after the colon, as in tag:work")
        term = term_for(piece.text, self._latin)
        if term:
            quoted = f'"{piece.text}"' if piece.kind == "phrase" else piece.text
            return Holds(quoted, term)
        is_word = bool(runs_in(compose(piece.text)))
        said = f"{piece.text!r} is not indexed and was ignored"
        self.notices.append(
            Notice("word-ignored", said if is_word else f"{piece.text!r} is not a word and was ignored")
        )
        return None

    def _beginning(self, piece: Piece) -> Leaf:
        star = piece.text.index("*")
        if piece.text[star:].strip("*"):
            raise self._wrong("a * is inside a word", piece.place + star, "put it at the end")
        written = fold(compose(piece.text[:star])).rstrip("-_")
        # A separator at the end joins nothing yet: `night-*` equals `night*`.
        folded = joined(fold(spelled(compose(piece.text[:star]))))[:MAX_TOKEN_LETTERS].rstrip("-_")
        unspaced = unspaced_letters(folded)
        # Letters are counted as they are written: `π*` is one, and would else begin every pipe and picture.
        if not _LETTER.search(folded) or (min(len(written), len(folded)) < MIN_BEGINNING and not unspaced):
            hint = f"write at least {MIN_BEGINNING} letters before *"
            raise self._wrong(f"{piece.text!r} matches too many words", piece.place, hint)
        if not _BEGINNING.fullmatch(folded):
            raise self._wrong(
                f"no word begins with {piece.text!r}", piece.place, "write the prefix of one word before *"
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
            raise self._wrong(f"{asked!r} has no value", piece.place, "write a word after the colon")
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


_DIGIT = re.compile(r"\d")
_YEAR = r"(?:19|20)\d\d\b"

# Letters in capitals in front of digits, or one letter, or a few small ones in front of three digits that are no year,
# but may have one before them (`po-2024-0018`, and not `log-2024-05-18`).
_LETTERS_FIRST = pattern(
    r"(?:\p{Lu}{1,6}|\p{L})(?:[-_.]?[\p{Lu}\p{N}]+)+"
    rf"|\p{{Ll}}{{2,5}}(?:[-_.]?{_YEAR}(?=[-_.]))?(?:[-_.]?(?!{_YEAR})\d{{3,}})+"
)
# Digits first: a part number, in groups with signs between them.
_DIGITS_FIRST = pattern(r"\p{N}+[-_][\p{Lu}\p{N}]*\p{Lu}[\p{Lu}\p{N}]*(?:[-_][\p{Lu}\p{N}]+)+")
# `ERR 4011`, `ISO 9001`: an abbreviation and a number that is no year.
_APART = pattern(rf"(?<![\p{{L}}\p{{N}}_-])\p{{Lu}}{{2,6}} (?!{_YEAR})\p{{N}}{{2,}}(?![\p{{L}}\p{{N}}_.-])")
_BORDER = pattern(r"(?<=\p{L})(?=\p{N})|(?<=\p{N})(?=\p{L})|[ _]")
_CODE_PIECE = re.compile(r"[^\W\d_]+|\d+")
_JOINT = r"[\s._/‐–-]?"  # the separator allowed between two pieces of a code
_FEWEST_DIGITS = 2
_MANY_DIGITS = 3
_MOST_LETTERS = 32  # of a code; a longer one is a hash or a number of the universe, and identified by its letters


class Code(NamedTuple):
    """Code of a query: its text, the terms that find texts that hold it, and its tokens in the query.

    It `stands_alone` if nothing but the code itself can be meant: not a code written apart, nor a name with a number
    (`COVID-19`, `GPT-3.5`), which other texts may omit.
    """

    text: str
    term: str
    ways: tuple[tuple[str, ...], ...]  # terms that a text holds together if it holds the code
    tokens: frozenset[str]
    stands_alone: bool
    is_told_whole: bool  # by its words: none of its pieces is a word left out of queries (`SO-2024`)

    def is_written_in(self, text: str) -> bool:
        """Return whether a text holds the code: pieces adjacent or one sign apart, also in the plural."""
        pieces = _JOINT.join(re.escape(piece) for piece in _CODE_PIECE.findall(compose(self.text)))
        return re.search(rf"(?<![^\W_]){pieces}s?(?![^\W_])", compose(text), re.IGNORECASE) is not None


def codes_in(text: str, default_language: str = DEFAULT_LANGUAGE) -> tuple[Code, ...]:
    """Return the codes of a text, each once."""
    if not _DIGIT.search(text):
        return ()  # as in most questions
    composed = compose(text)
    latin = latin_language(composed, default_language)
    apart = _APART.findall(composed)
    written = [*apart, *filter(_is_one_code, runs_in(_APART.sub(" ", composed)))]
    codes: dict[frozenset[str], Code] = {}
    for code in written:
        tokens = frozenset(tokens_of(code, latin))
        codes.setdefault(tokens, _code(code, tokens, latin))
    return tuple(codes.values())


def _code(code: str, tokens: frozenset[str], latin: str) -> Code:
    pieces = _CODE_PIECE.findall(code)
    term, plural = (term_for(_BORDER.sub("-", word), latin) for word in (code, f"{code}s"))
    parts = {tuple(dict.fromkeys(tokens_of(" ".join(cut), latin))) for cut in (pieces, re.split(r"[\W_]+", code))}
    digits = sum(map(len, filter(str.isdigit, pieces)))
    is_bare = digits >= _MANY_DIGITS or len("".join(pieces)) == digits + 1
    is_told_whole = all(content_of(piece, latin) for piece in pieces)
    return Code(code, term, ((term,), (plural,), *sorted(parts)), tokens, is_bare and " " not in code, is_told_whole)


def _is_one_code(run: str) -> bool:
    is_code = _LETTERS_FIRST.fullmatch(run) or _DIGITS_FIRST.fullmatch(run)
    return is_code is not None and len(_DIGIT.findall(run)) >= _FEWEST_DIGITS and len(run) <= _MOST_LETTERS


# Endings that the stemmers remove, the longest chains first of all: every tail of one may be missing.
_ENDINGS = {
    "en": "izations isations ationally ational ations atively atives ators ating ated ates atory ancies encies ances "
    "ences antly ently ants ents ability abilities ibility ibilities ables ably ibles ibly alities ally alisms alists "
    "fulness fully iveness ively ives ousness ously ness nesses ments mental ically icals icities ics ities isms ists "
    "istic izers izing ized izes isers ising ised ises ions ingly ings edly lessly lessness ologies ologists ional "
    "ers ors ies ied iest ier ily iness ing ed es er est s e y ly",
    "de": "ungen ungs heiten keiten lichkeit lichen lichste igkeiten igen ischen ieren ierung ierte ierten erinnen "
    "ern enden ende ten test tet te en em er es e n s st t",
    "fr": "ations ateurs atrices ements issement amment emment ités ives ifs euses eurs ables ibles ismes istes ances "
    "ences issait issant issent aient erait erons antes ants ées és er ez ons ent ais ait ant aux es e s",
    "es": "aciones adoras adores amientos imientos amente mente idades ables ibles istas ismos ancias encias iendo "
    "ando aron ieron aban ados adas idos idas ar er ir as os es a o s",
    "it": "azioni atori atrici amenti imenti amente mente ità abili ibili isti ismi anze enze ando endo avano ati "
    "ate uti ute are ere ire ano ono i e a o",
    "pt": "ações adores adoras amentos imentos amente mente idades áveis íveis istas ismos âncias ências ando endo "
    "indo aram avam ados adas idos idas ar er ir as os es a o s",
    "nl": "ingen heden lijke lijks ingen aties ering eringen ende ten den sten en er es je jes te de t d s",
    "sv": "ningarna ningar heterna heter ligen ligt liga arna erna orna andet ande ende aste ade are ar er or en et a "
    "e s t",
    "ru": "ированиями ирования ированный ированы ировать ованиями ования ованный овать ениями ением ениях ения ение "
    "аниями анием ания ание остями остью ости ость тельного тельный тельная тельно ского ской ские ский ная ного ные "
    "ный ыми ими ого его ому ему ами ями ах ях ов ев ей ой ый ий ая яя ое ее ые ие ать ять ить еть ала али ила или "
    "ает ают ует уют ет ут ют ит ат ят а я о е ы и у ю ь",
}
# Inflections before which a word may change ("runn-ing", "citi-es"), tried whatever the beginning ends with.
_ALWAYS = 3  # letters; longer endings only where the beginning ends with a part of them


# Letters that the stemmers write otherwise, anywhere in a word.
_RESPELLED: Mapping[str, Mapping[int, str | int]] = {
    "de": {ord("ä"): "a", ord("ö"): "o", ord("ü"): "u", ord("ß"): "ss"},
    "el": str.maketrans("άέήίόύώϊϋΐΰ", "αεηιουωιυιυ"),
    "es": str.maketrans("áéíóú", "aeiou"),
    "it": str.maketrans("áéíóú", "àèìòù"),
    "ru": str.maketrans("ё", "е"),
}


def spellings(beginning: str, latin: str) -> tuple[str, ...]:
    """Return a prefix as a text writes it, and as the stemmer of the text's language does."""
    language = script_language(beginning) or latin
    return tuple(dict.fromkeys((beginning, beginning.translate(_RESPELLED.get(language, {})))))


@text_cache(4_096)
def stems_beginning(beginning: str, latin: str) -> tuple[str, ...]:
    """Return stems of words that begin so although the stem itself does not, in the language of a text."""
    language = script_language(beginning) or latin
    if len(beginning) <= STUB_LETTERS or not beginning.isalpha():
        return ()
    stems = (stem(word, language) for word in dict.fromkeys(_completed(beginning, language)))
    known = spellings(beginning, latin)
    return tuple(dict.fromkeys(found for found in stems if not found.startswith(known)))


def foreign_stems_beginning(beginning: str, latin: str) -> tuple[str, ...]:
    """Return the same in the Latin languages that a text was not taken for."""
    others = _others(beginning, latin)
    return tuple(dict.fromkeys(found for language in others for found in stems_beginning(beginning, language)))


def foreign_spellings(beginning: str, latin: str) -> tuple[str, ...]:
    """Return a prefix as the stemmers of these languages write it, where that differs."""
    written = (one for language in _others(beginning, latin) for one in spellings(beginning, language)[1:])
    return tuple(dict.fromkeys(written))


def _others(beginning: str, latin: str) -> list[str]:
    return [] if script_language(beginning) else [language for language in LATIN_LANGUAGES if language != latin]


def _completed(beginning: str, language: str) -> Iterator[str]:
    """Yield the words that a prefix may belong to: itself, and completed by the rest of an ending."""
    yield beginning
    for ending in _ENDINGS.get(language, "").split():
        if len(ending) <= _ALWAYS:
            yield beginning + ending
        for held in range(1, len(ending)):
            if beginning.endswith(ending[:held]):
                yield beginning + ending[held:]
