"""Query analysis: terms, phrases, name keys, query kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..types.memory import Notice
from ..types.query import Analysis, QueryKind
from .dates import MONTH_OF, asked_dates
from .entities import asked_speakers, entities_in, is_identifier, plain_entities
from .language import DEFAULT_LANGUAGE, language_of, latin_language, shown_by, shown_language, voted, word_language
from .names import plain_probe, probe_for
from .normalize import clean, compose, fold, pattern, unspaced_letters
from .query_terms import term_for
from .relative_dates import TELLING, told_dates
from .stemming import is_stub
from .stopwords import QUESTION_WORDS
from .tokenizer import (
    asked_tokens,
    named_tokens,
    parts_of,
    plain_asked,
    plain_tokens,
    plain_words,
    runs_of,
    spoken_words,
    tokens_of,
    word_token,
)

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
    return scanned(text, default_language, now) if words is None else plainly(text, words, default_language, now)


def scanned(text: str, default_language: str, now: float | None) -> Analysis:
    """Understand any text."""
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


def plainly(text: str, words: Sequence[str], default_language: str, now: float | None) -> Analysis:
    """Understand a text of plain words in the same way."""
    folded = [word.lower() for word in words]
    language = voted(folded, default_language)
    kind = _kind(text.strip(), folded, language, is_name=len(words) <= NAME_WORDS)
    distinct = tuple(dict.fromkeys(plain_tokens(folded, language) if kind == "name" else plain_asked(folded, language)))
    probe = plain_probe(folded)
    return Analysis(
        text=text,
        language=language,
        shown_language=shown_by(folded, language, default_language),
        kind=kind,
        terms=distinct[:MAX_TERMS],
        probe=probe,
        entities=plain_entities(text, words),
        dates=() if _DATED.isdisjoint(folded) else _dates(text, now, language),
        speakers=asked_speakers(probe),
        notices=tuple(_notices(False, len(text), len(distinct))),
    )


def terms_of(text: str, default_language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """Return the distinct terms of a name, in order, without the rest of its analysis."""
    words = plain_words(text)
    if words is None:
        return tuple(dict.fromkeys(_terms(text, "name", default_language)))
    folded = [word.lower() for word in words]
    return tuple(dict.fromkeys(plain_tokens(folded, voted(folded, default_language))))


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
        if term := term_for(phrase, latin_language(compose(clean(text).text), default_language)):
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
    tokens = named_tokens(text, default_language) if kind == "name" else asked_tokens(text, text, default_language)
    return tuple(token.text for token in tokens if not token.is_stop_word) or tokens_of(text, default_language)


def _notices(replaced: bool, characters: int, terms: int) -> Iterator[Notice]:
    if replaced:
        yield Notice("query-cleaned", "the query held characters that cannot be stored; they were replaced")
    if characters > MAX_QUERY_CHARACTERS:
        yield Notice("query-cut", f"only the first {MAX_QUERY_CHARACTERS} characters of the query were read")
    if terms > MAX_TERMS:
        yield Notice("terms-cut", f"the keyword run looked for the first {MAX_TERMS} of {terms} different words")


def long_terms(terms: Sequence[str], text: str, default_language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """Return the terms that are long enough before and after stemming, or all if none is; phrases stay.

    Bigrams of scripts without spaces are no words, and stay.
    """
    composed = compose(clean(text).text)
    short = frozenset(_short_tokens(composed, latin_language(composed, default_language)))
    return tuple(term for term in terms if term not in short) or tuple(terms)


def _short_tokens(composed: str, latin: str) -> Iterator[str]:
    for run in runs_of(composed):
        for word in (part for spoken in spoken_words(run) for part in parts_of(spoken)):
            if is_stub(word, word_language(word, latin)):
                yield word_token(word, latin).text
