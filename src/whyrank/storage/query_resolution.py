"""Rewrite a query against the index: known terms, other spellings, corrections, codes, entities."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from string import ascii_lowercase
from typing import TYPE_CHECKING

from ..analysis.document import searchable_text
from ..analysis.names import (
    MAX_WINDOW_WORDS,
    by_plain_spelling,
    is_code,
    match_name,
    may_hold_umlauts,
    name_key,
    name_words,
    names_of,
    plainly,
    typed_as,
    typed_beginning,
)
from ..analysis.normalize import fold
from ..analysis.query import (
    MAX_READINGS,
    MOST_JOINED,
    Code,
    codes_in,
    foreign_spellings,
    foreign_stems_beginning,
    other_terms,
    terms_of,
    words_meaning,
)
from ..analysis.tokenizer import (
    LATIN_LANGUAGES,
    STOP_WORDS,
    foreign_stems,
    german_stems,
    parts_of_wholes,
    stems,
    tokens_of,
)
from ..protocols import FEW_HOLDERS, HeldCode, Question, Resolution, is_rare
from ..types.memory import MemoryId, Notice, Scope
from ..types.query import (
    All,
    Analysis,
    Begins,
    Expression,
    Holds,
    Leaf,
    Query,
    Where,
    is_several,
    label_of,
    meant,
    rewritten,
    several,
    spelled,
    spellings,
    wanted,
)
from ..types.results import Candidate, Column, Run, column_of
from ..types.trail import NameMatch, Unheld

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..protocols import Reader
    from ..types.query import Plan, Statistics, TermBooster
    from ..types.results import Signal
    from ..types.trail import NameProbe, TermBoost

_MAX_TYPO_LETTERS = 64  # no name is longer, and a long key is slow to compare


def resolve(
    store: Reader,
    question: Question,
    plan: Plan,
    language: str,
    further: Sequence[Analysis] = (),
    spaces: Sequence[str] = (),
    notes: Iterable[str] = (),
) -> Resolution:
    """Rewrite a query and its other wordings in the terms of the visible memories, with statistics.

    What else a search must know before it embeds is read in the same snapshot: spaces, languages, notes.
    """
    if question.expression is not None or " " in "".join(question.analysis.terms):  # as in few questions
        question = resolve_expression(question, store, language)
    query, analysis = question.query, question.analysis
    scopes, given = query.where.scopes, analysis.terms
    probe = _allow_typos(analysis, store, scopes, language)
    terms, statistics, notices = _resolve_terms(analysis, store, query.where, language)
    if probe is not analysis.probe or terms is not given:
        analysis = replace(analysis, probe=probe, terms=terms)
    written = codes_in(analysis.text, language) if query.where.matching is None else ()
    codes = find_codes(written, analysis, statistics, store, query.where) if written else ()
    if codes:
        analysis, statistics = split_codes(analysis, statistics, codes)
    others = tuple(
        replace(one, terms=_resolve_terms(one, store, query.where, language)[0]) if one.terms else one
        for one in further
    )
    if plan.entities is not None:
        analysis = with_boosts(analysis, plan.entities, statistics, store, query, language)
    return Resolution(
        query=query,
        analysis=analysis,
        statistics=statistics,
        codes=codes,
        is_respelled=analysis.terms is not given,
        further=others,
        notices=notices,
        dimensions={space: store.dimensions(space) for space in spaces},
        languages=store.languages(scopes) if len(spaces) > 1 else {},
        notes={name: store.note(name) for name in notes},
    )


def _allow_typos(analysis: Analysis, store: Reader, scopes: frozenset[Scope], language: str) -> NameProbe:
    """Allow misspelt names only where the query holds an unknown word: "test" must not find "Text"."""
    probe, terms = analysis.probe, analysis.terms
    if not 0 < len(probe.key) <= _MAX_TYPO_LETTERS or len(probe.words) > MAX_WINDOW_WORDS:
        return probe
    spoken = [token for term in terms for token in ([term] if is_several(term) else term.split(" "))]
    joined = terms_of(probe.key, language)
    known = store.statistics({*spoken, *joined}, scopes).frequency
    is_known = any(known[term] for term in joined) or all(known[term] for term in spoken)
    return probe if probe.typos != is_known else replace(probe, typos=not is_known)


def _resolve_terms(
    analysis: Analysis, store: Reader, where: Where, language: str
) -> tuple[tuple[str, ...], Statistics, tuple[Notice, ...]]:
    """Resolve terms to those of the index: stems of other languages, other spellings, corrections.

    A query of one German word does not show its language; the memories do. A word that is in no memory in any form may
    be mistyped. The parts of a word with inner capitals are dropped where the whole is indexed: `WhatsApp` is no `app`.
    """
    scopes = where.scopes
    statistics = store.statistics(analysis.terms, scopes)
    known = statistics.frequency
    wholes = parts_of_wholes(analysis.text, language)
    parts = {part for part, whole in wholes.items() if all(map(known.get, whole))}
    terms = tuple(term for term in analysis.terms if term not in parts) if parts else analysis.terms
    foreign: dict[str, Sequence[str]] = {}
    if not all(known.values()):
        foreign, known = _as_others_stem(analysis, terms, known, store, scopes, language)
        statistics = replace(statistics, frequency=known)
    others: dict[str, str] = {}
    notices: tuple[Notice, ...] = ()
    if where.matching is None:  # else its leaves are settled
        words = {word for term in terms for word in label_of(term).split(" ")}
        stems = german_stems(analysis.text, analysis.language, language, words)
        for term, stemmed in foreign.items():
            stems[term] = (*stems.get(term, ()), *stemmed)
        others = resolve_spellings(terms, known, store, scopes, stems)
        unknown = [term for term in terms if not (known[term] or term in others or term in foreign or " " in term)]
        if unknown:
            corrections, notices = correct_terms(unknown, analysis, store, scopes, language)
            others |= corrections
    if not others and not foreign:
        return terms, statistics, notices
    resolved = tuple(dict.fromkeys(others.get(term) or foreign.get(term, [term])[0] for term in terms))
    frequency = {**known, **store.statistics(others.values(), scopes).frequency}
    return resolved, replace(statistics, frequency={term: frequency[term] for term in resolved}), notices


def _as_others_stem(
    analysis: Analysis,
    terms: Sequence[str],
    frequency: Mapping[str, int],
    store: Reader,
    scopes: frozenset[Scope],
    language: str,
) -> tuple[dict[str, Sequence[str]], Mapping[str, int]]:
    """Stem words unknown in the query's language as another language does, if that stem is indexed.

    A query that shows its language is stemmed only as languages that memories show: the German stem of `tablet` is
    the English one of `table`. Of several indexed stems the most frequent is taken, or all where two letters may be an
    umlaut: `mueller` is not `muelle`, however frequent that is.
    """
    variants = foreign_stems(analysis.text, language, {term for term in terms if not frequency[term]})
    unknown = [term for term in terms if variants.get(term)]
    others = [variant for term in unknown for variant in variants[term]]
    known = {**frequency, **store.statistics(others, scopes).frequency}
    if analysis.shown_language and any(known[one] for one in others):
        held = {language, *store.languages(scopes)}
        variants = foreign_stems(analysis.text, language, unknown, [one for one in LATIN_LANGUAGES if one in held])
    living = {term: sorted(filter(known.get, variants[term]), key=lambda one: -known[one]) for term in unknown}
    better: dict[str, Sequence[str]] = {
        term: found if may_hold_umlauts(term) else found[:1] for term, found in living.items() if found
    }
    return better, known


_MOST_WHOLES = 16  # that begin with the same words, the most frequent


def with_further_joints(term: str, store: Reader, scopes: frozenset[Scope]) -> str:
    """Return the term of a phrase, extended to texts where its last words begin a joined word."""
    known = meant(term)
    phrase = next((reading for reading in known if " " in reading), None)
    if phrase is None:
        return term
    further = [reading for reading in _further(phrase.split(" "), store, scopes) if reading not in known]
    return several(label_of(term), [*known, *further][:MAX_READINGS]) if further else term


def _further(words: list[str], store: Reader, scopes: frozenset[Scope]) -> Iterator[str]:
    for start in range(max(1, len(words) - MOST_JOINED + 1), len(words)):
        joined = "".join(words[start:])
        found = {whole: count for whole, count in store.beginning(joined, scopes).items() if whole != joined}
        for whole in sorted(found, key=lambda one: (-found[one], one))[:_MOST_WHOLES]:
            yield " ".join([*words[:start], whole, *words[start:]])


_MOST_OF_A_WORD = 8  # other spellings
_MOST_OF_A_PHRASE = 16  # ways to write it with those of its words

Others = Mapping[str, Sequence[str]]


def resolve_spellings(
    terms: Sequence[str],
    frequency: Mapping[str, int],
    store: Reader,
    scopes: frozenset[Scope],
    stems: Others,
) -> dict[str, str]:
    """Return the terms that memories hold in other spellings too, or only in those, each with all of them.

    `stems` maps a token to its stems in other languages; one of these alone needs no other spelling.
    """
    tokens, together = terms, "".join(terms)
    if " " in together or is_several(together):
        tokens = [*dict.fromkeys(token for term in terms for one in meant(term) for token in one.split(" "))]
    spelled_so: dict[str, Sequence[str]]
    if not stems and together.isascii():  # as most questions: every token equals its typed form
        accented = store.spelled(tokens, scopes)
        spelled_so = {token: accented[token] for token in tokens if token in accented} if accented else {}
    else:
        typed = {token: (*typed_as(token), *stems.get(token, ())) for token in tokens}
        accented = store.spelled([plain for words in typed.values() for plain in words], scopes)
        spelled_so = {token: words for token in tokens if (words := _alike(token, typed[token], accented))}
    if not spelled_so:
        return {}
    known = store.statistics({word for words in spelled_so.values() for word in words}, scopes).frequency
    often = {
        token: sorted(filter(known.get, words), key=lambda word: -known[word]) for token, words in spelled_so.items()
    }
    others = {token: words[:_MOST_OF_A_WORD] for token, words in often.items() if words}
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


def _alike(token: str, typed: Iterable[str], accented: Mapping[str, tuple[str, ...]]) -> Sequence[str]:
    """Return the other spellings of a token in texts: as it is typed, and with accents."""
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


NOTHING_TO_RANK_BY = Notice(
    "nothing-to-rank-by",
    "the query only filters memories and has no word to rank them by: add one, or use `whyrank list`",
)
MAX_WORDS = 1_024  # that a prefix expands to, the most frequent; more of them do not discriminate


def resolve_expression(question: Question, store: Reader, language: str) -> Question:
    """Resolve terms against the store; the expression becomes a filter, its positive terms are searched."""
    scopes = question.query.where.scopes
    if question.expression is None:
        terms = tuple(with_further_joints(term, store, scopes) for term in question.analysis.terms)
        is_settled = terms == question.analysis.terms
        return question if is_settled else question._replace(analysis=replace(question.analysis, terms=terms))
    settling = _Settling(store, scopes, language, question.analysis.language)
    expression = rewritten(question.expression, settling.leaf)
    positive = [leaf.term for leaf in wanted(expression) if isinstance(leaf, Holds)]
    named = [term for term in question.analysis.terms if term not in settling.replaced]
    terms = tuple(dict.fromkeys((*positive, *named)))
    said = (*question.analysis.notices, *settling.notices, *(() if terms else (NOTHING_TO_RANK_BY,)))
    analysis = replace(question.analysis, terms=terms, notices=said)
    where = replace(question.query.where, matching=expression)
    return Question(replace(question.query, where=where), analysis, expression)


class _Settling:
    """Resolution of one expression to terms that the store holds."""

    def __init__(self, store: Reader, scopes: frozenset[Scope], language: str, spoken: str) -> None:
        self._store = store
        self._scopes = scopes
        self._language = language
        self._spoken = spoken
        self.notices: list[Notice] = []
        self.replaced: set[str] = set()

    def leaf(self, leaf: Leaf) -> Expression:
        """Return a leaf as stores understand it."""
        match leaf:
            case Begins():
                return Holds(leaf.asked, self._beginning(leaf))
            case Holds():
                self.replaced.add(leaf.term)
                term = with_further_joints(self._known(leaf), self._store, self._scopes)
                return replace(leaf, term=self._spelled(term, leaf.asked))
            case _:
                return leaf

    def _beginning(self, leaf: Begins) -> str:
        """Return the terms that words with a beginning are known by, as one."""
        found = self._written(leaf.spellings, leaf.stems)
        if not found:
            start, spoken = leaf.beginning, self._spoken
            found = self._written(foreign_spellings(start, spoken), foreign_stems_beginning(start, spoken))
        terms = sorted(found, key=lambda term: (-found[term], term))
        if len(terms) > MAX_WORDS:
            message = f"{leaf.asked} matches {len(terms)} words; only the {MAX_WORDS} most frequent were searched"
            self.notices.append(Notice("beginning-cut", message))
        if not terms:
            self.notices.append(Notice("beginning-unknown", f"no word in these memories begins with {leaf.beginning}"))
        terms = terms[:MAX_WORDS]
        unlike = [term for term in terms if not term.startswith(leaf.beginning)]
        typed = typed_beginning(by_plain_spelling(unlike), leaf.beginning)
        others = [term for term in terms if term in typed]
        asked = several(leaf.asked, (term for term in terms if term not in typed))
        return spelled(asked, others, is_known=len(others) < len(terms)) if others else asked

    def _written(self, spellings: Sequence[str], stems: Sequence[str]) -> dict[str, int]:
        """Return the indexed terms with one of these prefixes or stems, with their frequencies."""
        found: dict[str, int] = {}
        for spelling in spellings:
            found |= self._store.beginning(spelling, self._scopes)
        return found | self._frequent(stems)

    def _known(self, leaf: Holds) -> str:
        """Return the term of a word or phrase in a stemming that is indexed, if the query's own is not."""
        if self._frequent([leaf.term]):
            return leaf.term
        others = self._frequent(other_terms(leaf, self._language))
        if others and may_hold_umlauts(leaf.term):
            umlauts = self._frequent(foreign_stems(leaf.asked, self._language).get(leaf.term, ()))
            if len(umlauts) > 1:
                return spelled(leaf.term, sorted(umlauts, key=lambda term: -umlauts[term]), is_known=False)
        return max(others, key=lambda term: others[term]) if others else leaf.term

    def _spelled(self, term: str, asked: str) -> str:
        """Return a term extended by its other spellings, where memories have these."""
        frequency = self._store.statistics([term], self._scopes).frequency
        stems = german_stems(asked, self._spoken, self._language)
        return resolve_spellings([term], frequency, self._store, self._scopes, stems).get(term, term)

    def _frequent(self, terms: Sequence[str]) -> dict[str, int]:
        frequency = self._store.statistics(terms, self._scopes).frequency
        return {term: frequency[term] for term in terms if frequency[term]}


_NAMED_OTHERWISE = 20  # memories that hold other spellings whose names are compared


def also_proposed(runs: Sequence[Run], further: Iterable[MemoryId]) -> tuple[Run, ...]:
    """Return the runs, the name run extended by further memories."""
    return tuple(_behind(run, further) if run.name == "name" else run for run in runs)


def _behind(names: Run, further: Iterable[MemoryId]) -> Run:
    known = {*names.ids}
    new = [Candidate(identity, 0.0) for identity in dict.fromkeys(further) if identity not in known]
    return Run(names.name, (*names.candidates, *new), names.notices) if new else names


def with_accented_names(runs: tuple[Run, ...], analysis: Analysis, store: Reader, where: Where) -> tuple[Run, ...]:
    """Add candidates to the name run whose names differ from the query in accents alone.

    Names are indexed as they are written. Those that the query writes without accents are in the texts that hold other
    spellings of its words, those that it writes with accents under its spelling without.
    """
    named = [store.named(probe, where, _NAMED_OTHERWISE) for probe in plainly(analysis.probe)]
    further = [identity for run in named for identity in run.ids]
    if may_hold_umlauts(analysis.probe.key) or any(spellings(term)[1] for term in analysis.terms):
        further += [identity for run in runs if run.name == "keyword" for identity in islice(run.ids, _NAMED_OTHERWISE)]
    return also_proposed(runs, further) if further else runs


SHORTEST_CORRECTED = 5  # letters; shorter words have too many neighbours …
LONGEST_CORRECTED = 40  # … and the edits of longer ones cost the square of their letters
LONG_WORD = 10  # letters; words so long have few neighbours, however one letter is changed
LONG_STEM = 8  # letters; stems so long belong to words of one meaning
MOST_CORRECTED = 8  # words of one question; each costs a comparison with some hundred words
_STEMS_LOOKED_AT = 4  # of those one edit away, the most frequent
_MEMORIES_LOOKED_AT = 8  # that hold a stem, read for the words they write
_MOST_HASHES = 4  # that begin alike
_CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюяё"
_HASH = re.compile(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{7,}")
_WORD = re.compile(r"\w+")

Edits = Mapping[str, Sequence[str]]


def correct_terms(
    unknown: Sequence[str], analysis: Analysis, store: Reader, scopes: frozenset[Scope], language: str
) -> tuple[dict[str, str], tuple[Notice, ...]]:
    """Return terms that no memory holds with their corrections, and the notices about them."""
    typed: dict[str, str] = {}  # the folded word that each term was typed as, if that may be mistyped
    for term in unknown[:MOST_CORRECTED]:
        words = words_meaning(term, analysis.text, language) if term.isalpha() else ()
        word = words[0].lower() if len(words) == 1 else ""
        typed[term] = word if word.isalpha() and SHORTEST_CORRECTED <= len(word) <= LONGEST_CORRECTED else ""
    # With a dot inside, and without: `nodejs` and `node.js` are one name.
    ways = {term: [f"{word[:place]}.{word[place:]}" for place in range(1, len(word))] for term, word in typed.items()}
    for term in typed:
        if "." in term and term.replace(".", "").isalpha():
            ways[term].append(term.replace(".", ""))
    edits = {term: _one_edit_away(word, analysis.language) if word else {} for term, word in typed.items()}
    asked = {one for found in (*ways.values(), *edits.values()) for one in found}
    known = store.statistics(sorted(asked), scopes).frequency if asked else {}
    terms: dict[str, str] = {}
    notices: list[Notice] = []
    for term, word in typed.items():
        # A hash, as tools cut it short, is the beginning of others.
        begun = sorted(store.beginning(term, scopes))[:_MOST_HASHES] if _HASH.fullmatch(term) else []
        same = begun or [way for way in ways[term] if known[way]]
        if same:
            terms[term] = spelled(term, same, is_known=False)
            continue
        frequent = sorted(filter(known.get, edits[term]), key=lambda stem: (-known[stem], stem))[:_STEMS_LOOKED_AT]
        written = ((stem, _written_words(stem, edits[term][stem], store, scopes)) for stem in frequent)
        meant, shown = next((found for found in written if found[1]), ("", ""))
        if meant:
            terms[term] = spelled(term, [meant], is_known=True)
            notices.append(_did_you_mean(word, shown))
    return terms, tuple(notices)


def _one_edit_away(word: str, language: str) -> Edits:
    """Return the words one edit away by their stems; none if one is a function word, which was meant then."""
    letters = ascii_lowercase if word.isascii() else _CYRILLIC if word[0] in _CYRILLIC else {*ascii_lowercase, *word}
    halves = [(word[:place], word[place:]) for place in range(1, len(word) + 1)]
    slips = {begin + letter + end for begin, end in halves for letter in letters}
    slips |= {begin + end[1] + end[0] + end[2:] for begin, end in halves if len(end) > 1}
    slips |= {begin + end[1:] for begin, end in halves if begin[-1:] == end[:1]}
    others = {begin + letter + end[1:] for begin, end in halves if end for letter in ("", *letters)}
    if (slips | others) & STOP_WORDS.get(language, frozenset()):
        return {}
    words = sorted(slips | others if len(word) >= LONG_WORD else slips)
    by_stem: dict[str, list[str]] = {}
    for stem, written in zip(stems(words, language), words, strict=True):
        by_stem.setdefault(stem, []).append(written)
    return by_stem


def _written_words(stem: str, words: Sequence[str], store: Reader, scopes: frozenset[Scope]) -> str:
    """Return the first of these words in memories with their stem; for a long stem, any word with it."""
    # No filter but the scopes: the terms of a query do not depend on which memories may answer.
    everything = Where(scopes, include_superseded=True, include_expired=True)
    found = store.fetch(store.keyword([stem], everything, _MEMORIES_LOOKED_AT).ids, scopes).memories
    said = {word for memory in found.values() for word in _WORD.findall(fold(searchable_text(memory)))}
    alike = min(filter(lambda word: word.startswith(stem), said), default=stem) if len(stem) >= LONG_STEM else ""
    return next((word for word in words if word in said), alike)


def _did_you_mean(typed: str, meant: str) -> Notice:
    return Notice("did-you-mean", f"no memory contains {typed!r}; did you mean {meant!r}? It was searched too")


ASKED_MEMORIES = 100  # whose names and entities are read
_NAMED = frozenset({"equal", "same words", "in a sentence"})


def with_boosts(
    analysis: Analysis, boost: TermBooster, statistics: Statistics, store: Reader, query: Query, language: str
) -> Analysis:
    """Return the analysis with boosts for terms of entities: written as a name, or known to the store.

    The weight of an entity is the number of times the query names it.
    """
    known = _known_entities(analysis, store, query)
    entities = tuple({name_key(entity): entity for entity in (*known, *analysis.entities)}.values())
    best: dict[str, TermBoost] = {}
    for entity in entities:
        weight = max(1, mentions(entity, analysis.probe))  # its words may occur in another order
        for term in _terms_of(entity, analysis, language):
            found = boost.boost(entity, weight, term, statistics)
            if term not in best or found.repeats > best[term].repeats:
                best[term] = found
    return replace(analysis, boosts=tuple(best.values())) if best else analysis


def _known_entities(analysis: Analysis, store: Reader, query: Query) -> list[str]:
    """Return the names and entities of memories that the query names, whatever else it filters by.

    Only the scopes and the time restrict the memories read: a filter must not change the weight of a term.
    """
    where = Where(query.where.scopes, include_superseded=True, now=query.where.now)
    named = store.named(analysis.probe, where, ASKED_MEMORIES).ids if analysis.probe.key else []
    worded = store.keyword(analysis.terms, where, ASKED_MEMORIES).ids
    memories = store.fetch(dict.fromkeys((*named, *worded)), query.where.scopes).memories
    probe = analysis.probe
    found = {entity for memory in memories.values() for entity in memory.entities if mentions(entity, probe)}
    matches = (match_name(probe, names_of(memories[identity])) for identity in named if identity in memories)
    found |= {match.name for match in matches if match is not None and match.relation in _NAMED}
    return sorted(found)


def mentions(entity: str, probe: NameProbe) -> int:
    """Count the occurrences of an entity's words, as a sequence, in the query."""
    words, spoken = name_words(entity), probe.words
    places = range(len(spoken) - len(words) + 1) if words else range(0)
    return sum(spoken[place : place + len(words)] == words for place in places)


def _terms_of(entity: str, analysis: Analysis, language: str) -> list[str]:
    """Return the terms of the query that belong to an entity."""
    asked = {label_of(term): term for term in analysis.terms}
    return [asked[token] for token in dict.fromkeys(tokens_of(entity, language)) if token in asked]


LOOKED_AT = 8  # memories whose texts are read to check whether they hold a code; a code in more identifies none of them
_MOST_COUNTED = 3  # codes of one memory that its place among the lifted counts


def find_codes(
    codes: Sequence[Code], analysis: Analysis, statistics: Statistics, store: Reader, where: Where
) -> tuple[HeldCode, ...]:
    """Return the codes of a query with the visible memories that hold them."""
    frequency = store.statistics([code.term for code in codes], where.scopes).frequency
    whole = statistics.mass(analysis.terms)
    found = []
    for code in codes:
        own = statistics.mass(term for term in analysis.terms if term in code.tokens or label_of(term) in code.tokens)
        one = statistics.idf(label_of(code.term)) if own else 0.0
        share, alone = (own / whole, one / (whole - own + one)) if own else (0.0, 0.0)
        near = _find_candidates(code, store, where)
        holders = _read_holders(code, near, store, where)
        # Where more memories match than were read, one of the unread may hold the code.
        is_missing = code.stands_alone and not holders and len(near) <= (0 if code.is_told_whole else LOOKED_AT)
        found.append(
            HeldCode(code.text, code.term, share, alone, frequency[code.term], holders, is_missing, statistics.total)
        )
    return tuple(found)


def _find_candidates(code: Code, store: Reader, where: Where) -> Sequence[MemoryId]:
    """Return some memories that hold a code or all parts of it."""
    runs = (store.keyword(terms, where, LOOKED_AT + 1, "and") for terms in code.ways if any(terms))
    return [*dict.fromkeys(identity for run in runs for identity in run.ids)]


def _read_holders(code: Code, ids: Sequence[MemoryId], store: Reader, where: Where) -> tuple[MemoryId, ...]:
    """Return the memories whose text holds a code; none if there are more than a few."""
    read = store.fetch(ids, where.scopes).memories
    said = tuple(one for one in ids if one in read and code.is_written_in(searchable_text(read[one])))
    return said if len(said) <= LOOKED_AT else ()


def split_codes(analysis: Analysis, statistics: Statistics, codes: Sequence[HeldCode]) -> tuple[Analysis, Statistics]:
    """Replace the terms of codes with those of their split spelling (`E 47`), if no text joins them."""
    known = {label_of(code.term): code for code in codes if code.frequency and code.holders}
    apart = {term: known[term].term for term in analysis.terms if term in known and not statistics.frequency[term]}
    if not apart:
        return analysis, statistics
    frequency = {**statistics.frequency, **{known[term].term: known[term].frequency for term in apart}}
    terms = tuple(apart.get(term, term) for term in analysis.terms)
    return replace(analysis, terms=terms), replace(statistics, frequency=frequency)


def unheld(codes: Sequence[HeldCode]) -> Unheld | None:
    """Return the codes that no memory holds, if there are any, and their share of the query."""
    missing = [code for code in codes if code.is_missing]
    return (
        Unheld(tuple(code.text for code in missing), min(1.0, sum(code.alone for code in missing))) if missing else None
    )


def with_holders(runs: Sequence[Run], codes: Sequence[HeldCode]) -> tuple[Run, ...]:
    """Add the holders of rare codes to the name run: shorter texts with parts of one may fill other pools."""
    return also_proposed(runs, [identity for code in codes for identity in code.holders[:FEW_HOLDERS]])


def holders_of(codes: Sequence[HeldCode], ids: Iterable[MemoryId]) -> Mapping[MemoryId, list[HeldCode]]:
    """Return the rare codes that each of some memories holds."""
    known, held = {*ids}, dict[MemoryId, list[HeldCode]]()
    for code in codes:
        for identity in code.holders if code.is_rare else ():
            if identity in known:
                held.setdefault(identity, []).append(code)
    return held


def with_code_matches(
    names: Mapping[MemoryId, NameMatch], held: Mapping[MemoryId, list[HeldCode]]
) -> dict[MemoryId, NameMatch]:
    """Return the name matches, with code matches for memories that have no better name."""
    matches = dict(names)
    for identity, codes in held.items():
        few = [code for code in codes if code.is_meant]
        known = names.get(identity)
        if few and (known is None or known.relation not in _NAME_RELATIONS):
            said = ", ".join(code.text for code in few)
            matches[identity] = NameMatch("code", said, min(len(few), _MOST_COUNTED))
    return matches


_NAME_RELATIONS = frozenset({"equal", "accents", "same words", "one edit", "two edits"})


def with_codes(
    signals: Iterable[Signal],
    analysis: Analysis,
    statistics: Statistics,
    held: Mapping[MemoryId, list[HeldCode]],
    store: Reader,
    where: Where,
) -> list[Signal]:
    """Return signals in which words cover as much of a question as the rare codes are that a memory holds."""
    shares = {identity: min(1.0, sum(code.share for code in codes)) for identity, codes in held.items()}
    whole: Expression | None = None
    if (
        where.matching is None
        and is_code(analysis.text)
        and is_rare(min((statistics.frequency.get(term, 0) for term in analysis.terms), default=0), statistics.total)
    ):
        whole = All(tuple(Holds(term, term) for term in analysis.terms))
    if not shares and whole is None:
        return [*signals]
    return [_covered(signal, shares, whole, store, where) if signal.name == "keyword" else signal for signal in signals]


def _covered(
    signal: Signal, shares: Mapping[MemoryId, float], whole: Expression | None, store: Reader, where: Where
) -> Signal:
    ids = [*signal.values]
    holders = store.passing(ids, replace(where, matching=whole)) if whole is not None else ()
    known = zip(ids, column_of(signal.coverage, ids), strict=True)
    coverage = [1.0 if key in holders else max(covered or 0.0, shares.get(key, 0.0)) for key, covered in known]
    return replace(signal, coverage=Column(ids, coverage))
