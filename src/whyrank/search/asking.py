"""What a query asks, settled against a store: which words begin as asked, and which stems the memories know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..analysis.advanced import asked_for, other_terms
from ..analysis.endings import foreign_spellings, foreign_stems_beginning
from ..analysis.query import analyse
from ..analysis.sayings import FIELDS, is_said
from ..analysis.spellings import by_plain_spelling, may_hold_umlauts, typed_beginning
from ..analysis.strict import long_terms
from ..analysis.words import foreign_stems, german_stems
from ..expressions import Begins, Expression, Holds, Leaf, Says, refusal, rewritten, several, spelled, wanted
from ..ports import Store
from ..types import Analysis, Memory, Notice, Query, Scope
from .joints import with_further_joints
from .spelling import in_other_spellings

NOTHING_TO_RANK_BY = Notice(
    "nothing-to-rank-by",
    "the query says which memories may answer, but no word to rank them by: add one, or see `whyrank list`",
)
MAX_WORDS = 1_024  # that a beginning stands for, the most frequent; more of them tell nothing


@dataclass(frozen=True)
class Question:
    """A query as it was understood; in the advanced syntax with the expression that memories must satisfy."""

    query: Query
    analysis: Analysis
    expression: Expression | None = None

    def in_long_words(self, language: str) -> Question:
        """Return the same without the words that are too short to be asked for."""
        terms = long_terms(self.analysis.terms, self.analysis.text, language)
        return replace(self, analysis=replace(self.analysis, terms=terms))


def understood(query: Query, language: str) -> Question:
    """Read a query; only the advanced syntax can be written wrongly."""
    moment = query.where.moment
    if query.syntax == "plain":
        return Question(query, analyse(query.text, language, moment))
    asked = asked_for(query.text, language, moment)
    return Question(query, asked.analysis, asked.expression)


def settled(question: Question, store: Store, language: str) -> Question:
    """Let the store say which terms are meant; the expression becomes a filter, its positive terms are looked for."""
    scopes = question.query.where.scopes
    if question.expression is None:
        terms = tuple(with_further_joints(term, store, scopes) for term in question.analysis.terms)
        is_settled = terms == question.analysis.terms  # as terms nearly always are
        return question if is_settled else replace(question, analysis=replace(question.analysis, terms=terms))
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
    """One expression on its way to terms that a store knows."""

    def __init__(self, store: Store, scopes: frozenset[Scope], language: str, spoken: str) -> None:
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
            message = f"{leaf.asked} begins {len(terms)} words; only the {MAX_WORDS} most frequent were looked for"
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
        """Return the terms that are known of those that begin in some way or are these stems, with their counts."""
        found: dict[str, int] = {}
        for spelling in spellings:
            found |= self._store.beginning(spelling, self._scopes)
        return found | self._frequent(stems)

    def _known(self, leaf: Holds) -> str:
        """Return the term of a word or phrase as the memories' language stems it, if the query's is unknown to them."""
        if self._frequent([leaf.term]):
            return leaf.term
        others = self._frequent(other_terms(leaf, self._language))
        if others and may_hold_umlauts(leaf.term):
            umlauts = self._frequent(foreign_stems(leaf.asked, self._language).get(leaf.term, ()))
            if len(umlauts) > 1:
                return spelled(leaf.term, sorted(umlauts, key=lambda term: -umlauts[term]), is_known=False)
        return max(others, key=lambda term: others[term]) if others else leaf.term

    def _spelled(self, term: str, asked: str) -> str:
        """Return a term that also stands for what it asks for in other spellings, where memories have these."""
        frequency = self._store.statistics([term], self._scopes).frequency
        stems = german_stems(asked, self._spoken, self._language)
        return in_other_spellings([term], frequency, self._store, self._scopes, stems).get(term, term)

    def _frequent(self, terms: Sequence[str]) -> dict[str, int]:
        frequency = self._store.statistics(terms, self._scopes).frequency
        return {term: frequency[term] for term in terms if frequency[term]}


def mismatch(store: Store, query: Query, memory: Memory) -> str | None:
    """Say what in a settled expression keeps a memory out, if something does."""
    if query.where.matching is None:
        return None

    def is_true(leaf: Leaf) -> bool:
        if isinstance(leaf, Says):
            return is_said(leaf, FIELDS[leaf.field](memory))
        where = replace(query.where, matching=leaf)
        return bool(store.passing([memory.id], where))

    return refusal(query.where.matching, is_true)
