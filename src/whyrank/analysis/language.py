"""Detect the language of a text by script, else by a vote of stop words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from .caches import text_cache
from .dates import SIGN
from .normalize import fold, pattern
from .stopwords import STOP_WORDS

DEFAULT_LANGUAGE = "en"
VOTING_WORDS = 400  # the beginning of a text is enough to detect its language
SURE_VOTES = 2
_LONGEST_CHUNK = 4_096  # characters of a text whose language is cached
WORDS_FOR_ONE_VOTE = 2  # in longer texts than this, one function word of a language may decide

# Separate words: a part of a path, an address or an identifier is no evidence of the language.
_WORD = pattern(r"(?<![\w@./:\\-])[\p{L}\p{M}'’]+(?![\w@/:\\]|[.-]\w)")
_ASCII_WORD = re.compile(r"(?<![\w@./:\\-])[a-z']+(?![\w@/:\\]|[.-]\w)", re.ASCII)
_ASCII = bytes(range(128))
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())
_LETTERS_OF = {
    "ja": r"\p{Hiragana}\p{Katakana}",
    "ko": r"\p{Hangul}",
    "zh": r"\p{Han}",
    "th": r"\p{Thai}",
    "ru": r"\p{Cyrillic}",
    "el": r"\p{Greek}",
    "ar": r"\p{Arabic}",
    "he": r"\p{Hebrew}",
    "hi": r"\p{Devanagari}",
    "ta": r"\p{Tamil}",
    "hy": r"\p{Armenian}",
}
_SCRIPTS = {language: pattern(f"[{letters}]") for language, letters in _LETTERS_OF.items()}
_ANY_SCRIPT = pattern(f"[{''.join(_LETTERS_OF.values())}]")
# Dashes, quotes, accents and pictures, which are all that most texts hold beyond ASCII: detected 20 times as fast.
_SCRIPTLESS = re.compile("[\u0080-\u036f\u1e00-\u1eff\u2000-\u2125\u2127-\u2bff\ufe00-\ufe0f\U0001f300-\U0001faff]+")
_LATIN = pattern(r"\p{Latin}")
LATIN_LANGUAGES = tuple(language for language in STOP_WORDS if language != "ru")
LANGUAGES = tuple(sorted({*STOP_WORDS, *_SCRIPTS}))

# Languages that each function word votes for; single letters are code.
VOTERS: dict[str, list[str]] = {}
for _language in LATIN_LANGUAGES:
    for _word in STOP_WORDS[_language]:
        if len(_word) > 1:
            VOTERS.setdefault(_word, []).append(_language)

# Function words elsewhere that are everyday words, or abbreviations, in English: alone they show no other language.
# "AI" is not "j'ai", "per week" is not "per favore", "45 min" is not "min syster".
_ENGLISH_TOO_TEXT = """
ai ante bent bin car come con dan den die dig din dir door dove era eras ha hat hen io man men met min non os par per
plus pour sin sob son till ton under van var want war ya yo
"""
_ENGLISH_TOO = frozenset(_ENGLISH_TOO_TEXT.split())
_DOUBTFUL_VOICES = 3  # so many different ones do show it ("die … hat man den …"); with accents in the text, one less

# A Japanese text is mostly Han; a fifth of kana is enough to distinguish it from Chinese.
_KANA_SHARE = 0.2

SHOWN = f"in{SIGN}"  # how the mark of a language begins that a text shows …
ASSUMED = f"as{SIGN}"  # … and that of the language setting, on a text that shows none


def language_of(text: str, default: str = DEFAULT_LANGUAGE) -> str:
    """Return the language of a text, or the default if it cannot be detected."""
    script = script_language(text)
    return script if script is not None else latin_language(text, default)


def script_language(text: str) -> str | None:
    """Return the language of the dominant script, or None for Latin script and none."""
    if text.isascii():
        return None
    strange = text.encode("utf-8", errors="ignore").translate(None, _ASCII).decode()
    if _SCRIPTLESS.fullmatch(strange) or not _ANY_SCRIPT.search(strange):
        return None
    counts = {language: len(pattern.findall(strange)) for language, pattern in _SCRIPTS.items()}
    if counts["ja"] >= _KANA_SHARE * (counts["zh"] + counts["ja"]) > 0:
        counts["ja"] += counts["zh"]
    language, count = max(counts.items(), key=lambda pair: pair[1])
    # One Chinese character counts as three letters.
    letters_each = 3 if language in ("ja", "ko", "zh") else 1
    if not count or count * letters_each < _ascii_letters(text):  # as a text with a few symbols
        return None
    return language if count * letters_each >= len(_LATIN.findall(text)) else None


def _ascii_letters(text: str) -> int:
    return len(text.encode("ascii", errors="ignore").translate(None, _NO_LETTERS))


@text_cache(256, _LONGEST_CHUNK)
def latin_language(text: str, default: str = DEFAULT_LANGUAGE) -> str:
    """Let the stop words of a text vote; the default wins ties and silence."""
    return voted(_words(text), default)


def voted(words: Sequence[str], default: str = DEFAULT_LANGUAGE) -> str:
    """Do the same for the folded separate words of a text."""
    words = words[:VOTING_WORDS]
    voices = voices_in(words)
    # At equal votes the default wins, then the order of the table. One word alone ("die hard") decides nothing.
    if _has_most(default, voices):
        return default
    votes = _votes(voices)
    most = max(votes.values())
    winner = next(language for language in LATIN_LANGUAGES if votes.get(language) == most)
    is_sure = most >= SURE_VOTES or len(words) > WORDS_FOR_ONE_VOTE
    return winner if is_sure and (default != DEFAULT_LANGUAGE or _is_shown(winner, voices, words)) else default


def _has_most(language: str, voices: Sequence[str]) -> bool:
    """Return whether no other language has more of these votes; without votes that is true."""
    # Nearly always it has more votes than all others together, and the others need not be counted.
    if leaning(language, voices) >= 0:
        return True
    votes = _votes(voices)
    return votes.get(language) == max(votes.values())


def leaning(language: str, voices: Sequence[str]) -> int:
    """Return the votes for a language minus the votes for all others together."""
    speaking, against = _sides(language)
    return sum(map(speaking.__contains__, voices)) - sum(map(against.__contains__, voices))


@lru_cache(maxsize=4)
def _sides(language: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the function words that vote for a language, and those that vote for any other."""
    speaking = frozenset(voice for voice, languages in VOTERS.items() if language in languages)
    return speaking, frozenset(voice for voice, languages in VOTERS.items() if {*languages} - {language})


def _votes(voices: Sequence[str]) -> dict[str, int]:
    votes: dict[str, int] = {}
    for voice, count in Counter(voices).items():
        for language in VOTERS[voice]:
            votes[language] = votes.get(language, 0) + count
    return votes


def _is_shown(language: str, voices: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether a non-English word votes for a language, or several do and no word is English."""
    its_own = {voice for voice in voices if language in VOTERS[voice]}
    if its_own - _ENGLISH_TOO:
        return True
    has_accents = any(not word.isascii() for word in words)
    is_english = any("en" in VOTERS[voice] for voice in voices)
    return not is_english and len(its_own) >= (_DOUBTFUL_VOICES - has_accents)


def _words(text: str) -> list[str]:
    folded = fold(text).replace("’", "'")
    found: list[str] = (_ASCII_WORD if folded.isascii() else _WORD).findall(folded)
    return found


def standing_alone(piece: str) -> tuple[str, ...]:
    """Return the folded separate words in a piece of a text between two spaces."""
    return tuple(_words(piece))


def voices_in(words: Sequence[str]) -> list[str]:
    """Return the function words, whole or on a side of an apostrophe (don't, qu'il)."""
    voices = [*filter(VOTERS.__contains__, words)]
    for word in [word for word in words if "'" in word] if "'" in "".join(words) else ():
        voices += [side for side in {*word.split("'")} - {word} if side in VOTERS]
    return voices


def shown_language(text: str, default: str = DEFAULT_LANGUAGE) -> str:
    """Return the language that the script or the function words of a text show; nothing where none does."""
    return script_language(text) or shown_by(_words(text), latin_language(text, default), default)


def shown_by(words: Sequence[str], language: str, default: str) -> str:
    """Return the language that won the vote, unless it is the default without a majority."""
    if language != default:
        return language
    votes = _votes(voices_in(words[:VOTING_WORDS]))
    return language if votes.pop(language, 0) > max(votes.values(), default=0) else ""


def language_mark(shown: str, default: str) -> str:
    """Return the mark of a memory's language: the one it shows, or the default."""
    return f"{SHOWN}{shown}" if shown else f"{ASSUMED}{default}"


def marks_but_of(language: str) -> dict[str, str]:
    """Return the marks of memories that show another language than this, each with that language."""
    return {f"{SHOWN}{other}": other for other in LANGUAGES if other != language}


def marks_of_language(language: str) -> tuple[str, str]:
    """Return the marks of memories that are in a language, shown or assumed."""
    return f"{SHOWN}{language}", f"{ASSUMED}{language}"


@text_cache(16_384)
def word_language(word: str, latin: str) -> str:
    """Return the language one word is stemmed in: its own script's, or the text's Latin language."""
    return script_language(word) or latin
