"""Words in other spellings: whoever asks for `cafe` also means `café`, and `Müller` is `Mueller` where nobody types ü.

The spelling that was asked for counts twice as much as the others, and tells as much as all of them together: which of
them is rare in a store says nothing about what was meant. What other spellings there are, the memories say that the
caller may see; words that stand there in one spelling alone are asked as ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, product

from ..analysis.spellings import typed_as
from ..expressions import is_several, label_of, meant, spelled
from ..ports import Store
from ..types import Scope

_MOST_OF_A_WORD = 8  # other spellings
_MOST_OF_A_PHRASE = 16  # ways to write it with those of its words

Others = Mapping[str, Sequence[str]]


def in_other_spellings(
    terms: Sequence[str],
    frequency: Mapping[str, int],
    store: Store,
    scopes: frozenset[Scope],
    stems: Others,
) -> dict[str, str]:
    """Return the terms that stand in memories in other spellings as well, or in these alone, each with all of them.

    `stems` says what else a token may be, stemmed otherwise; one of these alone needs no other spelling.
    """
    others = _living(_others(_tokens(terms), store, scopes, stems), store, scopes)
    if not others:
        return {}
    written = {term: found for term in terms if (found := list(_written(term, others)))}
    known = store.statistics({one for found in written.values() for one in found}, scopes).frequency
    living = {term: [one for one in found if known[one]] for term, found in written.items()}
    return {
        term: spelled(term, found, frequency[term] > 0)
        for term, found in living.items()
        if found and (frequency[term] or len(found) > 1 or found[0] not in stems.get(term, ()))
    }


def _tokens(terms: Sequence[str]) -> Sequence[str]:
    if " " not in (together := "".join(terms)) and not is_several(together):
        return terms  # as most questions
    return [*dict.fromkeys(token for term in terms for one in meant(term) for token in one.split(" "))]


def _others(tokens: Sequence[str], store: Store, scopes: frozenset[Scope], stems: Others) -> Others:
    """Return the other spellings that tokens may have in memories; some may stand in none any more."""
    if not stems and "".join(tokens).isascii():  # as most questions: every token is what it is typed as
        accented = store.spelled(tokens, scopes)
        return {token: accented[token] for token in tokens if token in accented} if accented else {}
    typed = {token: (*typed_as(token), *stems.get(token, ())) for token in tokens}
    accented = store.spelled([plain for words in typed.values() for plain in words], scopes)
    found = {token: _alike(token, words, accented) for token, words in typed.items()}
    return {token: others for token, others in found.items() if others}


def _living(others: Others, store: Store, scopes: frozenset[Scope]) -> Others:
    """Return the spellings that most memories have, of those that any has."""
    if not others:
        return {}
    known = store.statistics({word for words in others.values() for word in words}, scopes).frequency
    often = {token: sorted(filter(known.get, words), key=lambda word: -known[word]) for token, words in others.items()}
    return {token: words[:_MOST_OF_A_WORD] for token, words in often.items() if words}


def _alike(token: str, typed: Iterable[str], accented: Mapping[str, tuple[str, ...]]) -> Sequence[str]:
    """Return how else a token may stand in texts: as it is typed, and with what accents."""
    words = dict.fromkeys(word for plain in typed for word in (plain, *accented.get(plain, ())))
    words.pop(token, None)
    return [*words]


def _written(term: str, others: Others) -> Iterable[str]:
    """Return the other ways to write a term: with any of its words in another spelling."""
    known = meant(term)
    found: dict[str, None] = {}
    for one in known:
        words = one.split(" ")
        if any(word in others for word in words):
            ways = product(*((word, *others.get(word, ())) for word in words))
            found |= dict.fromkeys(" ".join(way) for way in islice(ways, 1, _MOST_OF_A_PHRASE + 1))
    return [one for one in found if one not in known and one != label_of(term)]
