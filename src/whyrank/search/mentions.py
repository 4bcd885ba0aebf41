"""Which entities a question names, as far as these memories know, and how much more their terms count."""

from __future__ import annotations

from dataclasses import replace

from ..analysis.names import match_name, name_key, name_words, names_of
from ..analysis.words import tokens_of
from ..expressions import label_of
from ..hits import at_hand, memory_of
from ..matches import NameProbe, TermBoost
from ..ports import Store
from ..ranking.entities import EntityBoost
from ..types import Analysis, Query, Statistics, Where

ASKED_MEMORIES = 100  # whose names and entities are looked at
_NAMED = frozenset({"equal", "same words", "in a sentence"})


def with_boosts(
    analysis: Analysis, boost: EntityBoost, statistics: Statistics, store: Store, query: Query, language: str
) -> Analysis:
    """Return the analysis with the terms weighed that name an entity: one written as a name, or one the store knows.

    The weight of an entity is how often the question names it.
    """
    known = _known_entities(analysis, store, query)
    entities = tuple({name_key(entity): entity for entity in (*known, *analysis.entities)}.values())
    best: dict[str, TermBoost] = {}
    for entity in entities:
        weight = max(1, mentions(entity, analysis.probe))  # its words may stand in another order
        for term in _terms_of(entity, analysis, language):
            found = boost.boost(entity, weight, term, statistics)
            if term not in best or found.repeats > best[term].repeats:
                best[term] = found
    return replace(analysis, boosts=tuple(best.values())) if best else analysis


def _known_entities(analysis: Analysis, store: Store, query: Query) -> list[str]:
    """Return the names and entities of memories that the question names, whatever else it filters by.

    Only the scopes and the hour decide what is looked at: a filter must not change what a term is worth.
    """
    where = Where(query.where.scopes, include_superseded=True, now=query.where.now)
    named = store.named(analysis.probe, where, ASKED_MEMORIES).ids if analysis.probe.key else []
    worded = store.keyword(analysis.terms, where, ASKED_MEMORIES).ids
    held = at_hand(store.held(dict.fromkeys((*named, *worded)), query.where.scopes))
    memories = {identity: memory_of(one) for identity, one in held.items()}
    probe = analysis.probe
    found = {entity for memory in memories.values() for entity in memory.entities if mentions(entity, probe)}
    matches = (match_name(probe, names_of(memories[identity])) for identity in named if identity in memories)
    found |= {match.name for match in matches if match is not None and match.relation in _NAMED}
    return sorted(found)


def mentions(entity: str, probe: NameProbe) -> int:
    """Count how often a question says the words of an entity, one after the other."""
    words, spoken = name_words(entity), probe.words
    places = range(len(spoken) - len(words) + 1) if words else range(0)
    return sum(spoken[place : place + len(words)] == words for place in places)


def _terms_of(entity: str, analysis: Analysis, language: str) -> list[str]:
    """Return the terms of the question that stand for an entity."""
    asked = {label_of(term): term for term in analysis.terms}
    return [asked[token] for token in dict.fromkeys(tokens_of(entity, language)) if token in asked]
