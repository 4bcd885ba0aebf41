"""The words notes are made of: English function words as often as English has them, and a vocabulary of syllables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

VOCABULARY = 250_000
SHORTEST, LONGEST = 2, 12  # letters

# Occurrences in 10,000 words of running English, to two or three figures, as the frequency lists of general English
# corpora agree on; what matters here is that few words make most of the tokens.
_FREQUENCIES = """
the 610 of 290 and 285 to 262 a 231 in 200 is 101 that 106 it 98 was 95 for 94 i 88 on 70 with 69 he 68 be 64 you 64
as 63 by 52 at 48 are 47 this 46 not 46 have 45 but 44 had 44 his 43 they 43 from 42 she 38 which 37 or 37 we 36
an 34 were 31 her 30 been 27 has 26 will 26 one 25 there 25 would 24 their 24 all 23 if 23 who 21 no 21 what 21
can 21 do 20 so 20 him 18 when 18 about 18 its 17 my 17 them 16 up 16 more 16 some 15 out 15 could 15 your 14 me 14
into 14 then 13 than 12 other 11 now 11 only 11 just 11 our 10 also 10 how 9 these 9 any 9 very 9 may 8 where 8
should 8 did 8 because 8 over 7 after 7 most 7 before 6 through 6 such 6 those 6 too 6 here 6 between 5 own 5 does 5
us 5 both 4 while 4 why 4 being 4 same 4 each 4 under 4 during 3 off 3 am 3 whose 2 again 2 until 2 against 2
"""
_PAIRS = _FREQUENCIES.split()
FUNCTION_WORDS: tuple[str, ...] = tuple(_PAIRS[0::2])
OPENERS = ("what", "where", "when", "who", "how", "why", "which", "does", "did", "should", "can")

_BEFORE = "b c d f g h j k l m n p r s t v w bl br ch cl cr dr fl fr gl gr pl pr sc sh sl sp st str th tr"
_VOWELS = "a e i o u a e i o u ai ea ee ou"
_AFTER = "l m n r s t d ck nd nt st rt ng"
_INFLECTIONS = "s ed ing er ly es al ion"
_ONSETS, _NUCLEI = _BEFORE.split(), _VOWELS.split()
_CODAS = [*([""] * 12), *_AFTER.split()]  # half of the syllables are open
_ENDINGS = [*([""] * 8), *_INFLECTIONS.split()]  # half of the words are inflected: stemmers have work to do


def function_shares() -> NDArray[np.float64]:
    """Return how often each function word is the next function word."""
    counts = np.array([float(count) for count in _PAIRS[1::2]])
    shares: NDArray[np.float64] = counts / counts.sum()
    return shares


def content_shares(size: int) -> NDArray[np.float64]:
    """Return how often the word of each rank is the next content word: Zipf–Mandelbrot, 1/(rank + q)^s."""
    # s is that of large English corpora; with this q the first content word is 0.15 % of all tokens, as "time" is.
    flattening, exponent = 60.0, 1.07
    weights = (np.arange(1, size + 1) + flattening) ** -exponent
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def vocabulary(size: int, seed: int) -> list[str]:
    """Return pronounceable words of small letters, none a function word; short ones tend to come first."""
    chance = np.random.default_rng([seed, size])
    found: dict[str, None] = {}
    barred = {*FUNCTION_WORDS, *OPENERS}
    while len(found) < size:
        for word in _spoken(size, chance):
            if SHORTEST <= len(word) <= LONGEST and word not in barred:
                found[word] = None
    words = list(found)[:size]
    # Frequent words are short, but not strictly so (Zipf's law of abbreviation).
    length = np.array([len(word) for word in words]) + chance.normal(0.0, 1.5, size)
    return [words[place] for place in np.argsort(length, kind="stable")]


def _spoken(count: int, chance: np.random.Generator) -> list[str]:
    """Return words of one to four syllables, some of them more than once."""
    syllables = chance.choice([1, 2, 3, 4], size=count, p=[0.1, 0.45, 0.35, 0.1])
    pieces = [
        [part[at] for at in chance.integers(len(part), size=int(syllables.sum()))]
        for part in (_ONSETS, _NUCLEI, _CODAS)
    ]
    sounds = list(map("".join, zip(*pieces, strict=True)))
    ends = np.cumsum(syllables)
    endings = chance.integers(len(_ENDINGS), size=count)
    return [
        "".join(sounds[end - many : end]) + _ENDINGS[ending]
        for end, many, ending in zip(ends.tolist(), syllables.tolist(), endings.tolist(), strict=True)
    ]
