"""What the stems of words that begin in a given way may be, where the beginning reaches beyond the stem.

The index holds stems: "operating" and "operation" as `oper`. Whoever asks for `operat*` means them, though no stem
begins so. The beginning is completed with the endings of the language, and the stems of what comes out are looked for
too; each is the stem of a word that does begin so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..caches import text_cache
from .languages import LATIN_LANGUAGES, script_language
from .stems import STUB_LETTERS, stem

# Endings that the stemmers take off, the longest chains first of all: every tail of one may be what is missing.
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


# Letters that the stemmers write otherwise, wherever they stand in a word.
_RESPELLED: Mapping[str, Mapping[int, str | int]] = {
    "de": {ord("ä"): "a", ord("ö"): "o", ord("ü"): "u", ord("ß"): "ss"},
    "el": str.maketrans("άέήίόύώϊϋΐΰ", "αεηιουωιυιυ"),
    "es": str.maketrans("áéíóú", "aeiou"),
    "it": str.maketrans("áéíóú", "àèìòù"),
    "ru": str.maketrans("ё", "е"),
}


def spellings(beginning: str, latin: str) -> tuple[str, ...]:
    """Return a beginning as it stands in a text, and as the stemmer of the text's language writes it."""
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
    """Return a beginning as the stemmers of these languages write it, where that is otherwise."""
    written = (one for language in _others(beginning, latin) for one in spellings(beginning, language)[1:])
    return tuple(dict.fromkeys(written))


def _others(beginning: str, latin: str) -> list[str]:
    return [] if script_language(beginning) else [language for language in LATIN_LANGUAGES if language != latin]


def _completed(beginning: str, language: str) -> Iterator[str]:
    """Yield the words a beginning may be the beginning of: itself, and with what is missing of an ending."""
    yield beginning
    for ending in _ENDINGS.get(language, "").split():
        if len(ending) <= _ALWAYS:
            yield beginning + ending
        for held in range(1, len(ending)):
            if beginning.endswith(ending[:held]):
                yield beginning + ending[held:]
