"""Entities named in a question, and the weight of their terms."""

from __future__ import annotations

from dataclasses import replace

from ..analysis.names import match_name, name_key, name_words, names_of
from ..analysis.tokenizer import tokens_of
from ..protocols import Store
from ..ranking.boosts import EntityBoost
from ..types.expressions import label_of
from ..types.names import NameProbe, TermBoost
from ..types.query import Analysis, Query, Statistics, Where
from ..types.results import at_hand, memory_of

ASKED_MEMORIES = 100  # whose names and entities are read
_NAMED = frozenset({"equal", "same words", "in a sentence"})


def with_boosts(
    analysis: Analysis, boost: EntityBoost, statistics: Statistics, store: Store, query: Query, language: str
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


def _known_entities(analysis: Analysis, store: Store, query: Query) -> list[str]:
    """Return the names and entities of memories that the query names, whatever else it filters by.

    Only the scopes and the time restrict the memories read: a filter must not change the weight of a term.
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
    """Count the occurrences of an entity's words, as a sequence, in the query."""
    words, spoken = name_words(entity), probe.words
    places = range(len(spoken) - len(words) + 1) if words else range(0)
    return sum(spoken[place : place + len(words)] == words for place in places)


def _terms_of(entity: str, analysis: Analysis, language: str) -> list[str]:
    """Return the terms of the query that belong to an entity."""
    asked = {label_of(term): term for term in analysis.terms}
    return [asked[token] for token in dict.fromkeys(tokens_of(entity, language)) if token in asked]
