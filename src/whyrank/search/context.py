"""Data that only some stages read, gathered before ranking."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from ..analysis.document import embedded_text
from ..analysis.names import name_words
from ..analysis.tokenizer import tokens_of
from ..formatting import counted
from ..protocols import Store
from ..ranking.boosts import TokenGate
from ..ranking.diversity import Similarity
from ..ranking.recipes import rank_pool
from ..ranking.reranking import Rerank
from ..types.columns import MemoryId
from ..types.memory import Notice
from ..types.results import Context, Labels, at_hand, memory_of
from .retrieval import Retrieved

_LABELS_KEPT = 4_096  # the chunks of a file share theirs, and many questions find the same files


def gathered(retrieved: Retrieved, store: Store, language: str) -> Retrieved:
    """Add the further input that the recipe's stages read; most recipes read none."""
    reads = retrieved.recipe.reads
    if not reads:
        return retrieved
    if "memories" in reads:
        retrieved = replace(retrieved, context=with_memories(retrieved.context))
    if "likeness" in reads:
        retrieved = replace(retrieved, context=with_likeness(retrieved, store, language))
    if "labels" in reads:
        retrieved = replace(retrieved, context=_with_labels(retrieved.context))
    if any(isinstance(stage, TokenGate) and stage.asked(retrieved.context) for stage in retrieved.recipe.stages):
        retrieved = replace(retrieved, context=_with_bodies(retrieved.context))
    if "languages" in reads:
        retrieved = replace(retrieved, context=_with_languages(retrieved.context, store))
    if "chats" in reads:
        retrieved = replace(retrieved, context=_with_chats(retrieved.context, store))
    for place, stage in enumerate(retrieved.recipe.stages):
        if isinstance(stage, Rerank):
            return _with_opinions(retrieved, stage, place)
    return retrieved


def with_likeness(retrieved: Retrieved, store: Store, language: str) -> Context:
    """Gather vectors, and words as well where a candidate has no vector."""
    context = retrieved.context
    ids, scopes = sorted(context.memories), context.query.where.scopes
    vectors = store.vectors(ids, retrieved.space, scopes) if retrieved.space else {}
    tokens: dict[MemoryId, frozenset[str]] = {}
    if len(vectors) < len(ids):
        tokens = {key: frozenset(tokens_of(memory.text, language)) for key, memory in store.get(ids, scopes).items()}
    return replace(context, likeness=Similarity(vectors, tokens))


def with_memories(context: Context) -> Context:
    """Read all candidates in one batch, for stages that read every memory."""
    return replace(context, memories=at_hand(context.memories))


def _with_labels(context: Context) -> Context:
    """Gather the words of names, slugs and summaries."""
    memories = ((key, memory_of(held)) for key, held in context.memories.items())
    labels = {key: _labels(memory.name, memory.slug, memory.summary) for key, memory in memories}
    return replace(context, labels=labels)


def _with_bodies(context: Context) -> Context:
    """Gather the words of texts that have no summary."""
    labels = dict(context.labels)
    for key, held in context.memories.items():
        memory = memory_of(held)
        if not memory.summary:
            labels[key] = replace(labels[key], body=name_words(memory.text))
    return replace(context, labels=labels)


@lru_cache(maxsize=_LABELS_KEPT)
def _labels(name: str, slug: str, summary: str) -> Labels:
    return Labels(*(name_words(label) if label else () for label in (name, slug, summary)))


def _with_chats(context: Context, store: Store) -> Context:
    """Gather how long the conversations are that turns among the candidates belong to."""
    memories = map(memory_of, context.memories.values())
    sessions = {(memory.scope, memory.session) for memory in memories if memory.session}
    return replace(context, chats=store.last_positions(sessions)) if sessions else context


def _with_languages(context: Context, store: Store) -> Context:
    """Gather which candidates show another language than the question, if that shows one."""
    spoken, scopes = context.analysis.shown_language, context.query.where.scopes
    others = store.in_other_languages(context.memories, spoken, scopes) if spoken else {}
    return replace(context, languages=others) if others else context


def _with_opinions(retrieved: Retrieved, stage: Rerank, place: int) -> Retrieved:
    """Rank as far as the reranker's stage, and let it read the head of that."""
    if stage.reranker is None:
        return _without(retrieved, "there is no reranker", "hand one to whyrank.open or to the stage")
    before = replace(retrieved.recipe, stages=retrieved.recipe.stages[:place])
    window = rank_pool(retrieved.runs, before, retrieved.context).hits[: stage.top]
    if not window:
        return retrieved
    deadline, limit_ms = retrieved.context.query.deadline, stage.deadline_ms
    if deadline is not None:
        limit_ms = min(limit_ms, round(1_000 * deadline.remaining_s))
    texts = [embedded_text(hit.memory) for hit in window]
    scores = _answered(stage, retrieved.context.analysis.text, texts, limit_ms)
    if isinstance(scores, str):
        return _without(retrieved, scores, "the order is that of the stages before it")
    opinions = {hit.id: score for hit, score in zip(window, scores, strict=True)}
    return replace(retrieved, context=replace(retrieved.context, opinions=opinions))


def _without(retrieved: Retrieved, failure: str, instead: str) -> Retrieved:
    notice = Notice("rerank-off", f"the results were not reranked: {failure}; {instead}")
    return replace(retrieved, notices=(*retrieved.notices, notice))


def _answered(stage: Rerank, question: str, texts: Sequence[str], limit_ms: float) -> list[float] | str:
    """Return the reranker's scores, or the reason why there are none."""
    said: list[Sequence[float] | Exception] = []

    def ask() -> None:
        assert stage.reranker is not None
        try:
            said.append(stage.reranker.scores(question, texts))
        except Exception as error:  # whatever a provider throws, the order before it must be given out
            said.append(error)

    # A thread of its own can be left behind when it is late; as a daemon it does not keep the process from leaving.
    asking = threading.Thread(target=ask, name="whyrank-rerank", daemon=True)
    asking.start()
    asking.join(limit_ms / 1000)
    if not said:
        return f"it took longer than {limit_ms:g} ms"
    return _checked(said[0], len(texts))


def _checked(said: Sequence[float] | Exception, wanted: int) -> list[float] | str:
    if isinstance(said, Exception):
        return f"it failed ({type(said).__name__}: {said})"
    try:
        scores = [float(score) for score in said]
    except (TypeError, ValueError):
        return "it gave scores that are no numbers"
    if len(scores) != wanted:
        return f"it gave {counted(len(scores), 'score')} for {counted(wanted, 'text')}"
    return scores if all(map(math.isfinite, scores)) else "it gave scores that are no finite numbers"
