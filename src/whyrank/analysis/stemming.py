"""Snowball stems, and the stems that a prefix may belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import snowballstemmer

from .caches import text_cache
from .language import LATIN_LANGUAGES, script_language

_ALGORITHMS = {
    "ar": "arabic",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "hi": "hindi",
    "hy": "armenian",
    "it": "italian",
    "nl": "dutch",
    "pt": "portuguese",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
}
STUB_LETTERS = 2  # a stem this short is shared by too many words ("боюсь" becomes "бо")
# Pool of idle stemmers, by algorithm. Creating one takes longer than stemming a word.
_IDLE: dict[str, list[Any]] = {algorithm: [] for algorithm in _ALGORITHMS.values()}


@text_cache(16_384)
def is_stub(word: str, language: str) -> bool:
    """Return whether a folded word, or its stem, is so short that too many words share it."""
    algorithm = _ALGORITHMS.get(language)
    stemmed = _stemmed([word], algorithm)[0] if algorithm else word
    return min(len(word), len(stemmed)) <= STUB_LETTERS


def stem(word: str, language: str) -> str:
    """Return the stem of a folded word; instead of a stub, the word without its last letter, or the word."""
    algorithm = _ALGORITHMS.get(language)
    if algorithm is None:
        return word
    stemmed = _stemmed([word], algorithm)[0]
    return stemmed if min(len(word), len(stemmed)) > STUB_LETTERS else _unstemmed(word)


def stems(words: list[str], language: str) -> list[str]:
    """Return the stems of folded words."""
    algorithm = _ALGORITHMS.get(language)
    if algorithm is None:
        return words
    stemmed = _stemmed(words, algorithm)
    if min(map(len, chain(words, stemmed)), default=0) > STUB_LETTERS:  # as nearly always
        return stemmed
    pairs = zip(words, stemmed, strict=True)
    return [found if min(len(word), len(found)) > STUB_LETTERS else _unstemmed(word) for word, found in pairs]


def _unstemmed(word: str) -> str:
    # "aws" and "ads" are searched as they are: a word that cannot be found would be worse than one that finds less.
    return word[:-1] if len(word) - 1 > STUB_LETTERS else word


def _stemmed(words: list[str], algorithm: str) -> list[str]:
    """Return the stems as they come, by a stemmer of one's own: it keeps its state while it works."""
    idle = _IDLE[algorithm]
    try:
        stemmer = idle.pop()
    except IndexError:  # the first word, or one more thread at a time than ever before
        stemmer = snowballstemmer.stemmer(algorithm)
        stemmer.maxCacheSize = 0  # words are remembered further up
    stemmed: list[str] = stemmer.stemWords(words)
    idle.append(stemmer)
    return stemmed


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
