"""A rehearsal: the store copied aside, questions made of it, their words hidden, and every choice tried on them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from .config import Config
from .evaluation.pseudo import KINDS, Material, Origin, Pseudo, by_source, hide, questions
from .evaluation.tuning import DEPTH, Choice, Trial, Tuning, gain, grid, tune
from .ingest.entries import entry_for
from .ports import Changes, Embedder, Store
from .ranking.recipes import Recipe
from .ranking.settings import tunable
from .search.searcher import Searcher
from .search.trials import origins_by_recipe
from .types import Memory, Query, Where

Tick = Callable[[int, int, str], None]

MAX_MEMORIES = 6_000  # read to make questions of; more would not change the figures
_PAGE = 200  # memories in a row, so that files come whole
_PER_TRANSACTION = 256


@dataclass(frozen=True)
class Stage:
    """What a rehearsal needs: the copy it may change, the embedder, the settings and whose memories they are."""

    store: Store
    embedder: Embedder | None
    config: Config
    where: Where

    @property
    def language(self) -> str:
        """Return the language of texts that do not show theirs."""
        return str(self.config["language"])


def tuned(stage: Stage, asked: str | Recipe | None, most: int, seed: int, tick: Tick) -> Tuning:
    """Fit the fusion of a recipe to the memories of a stage."""
    config = stage.config
    possible = tunable(config.recipe(asked)) - (frozenset() if stage.embedder else {"vector_weight"})
    present = Choice(config["ranking.vector_weight"], config["ranking.name_bonus"])
    if not possible:
        return Tuning(present, (), (present,), (), seed)
    choices = grid(present, possible)
    recipes = [config.recipe(asked, **choice._asdict()) for choice in choices]
    return tune(rehearse(stage, recipes, most, seed, tick), choices, seed)


def rehearse(stage: Stage, recipes: Sequence[Recipe], most: int, seed: int, tick: Tick) -> list[Trial]:
    """Make questions, hide their words kind by kind, and try every recipe on each."""
    material = Material(by_source(_sample(stage, seed)), lambda terms: _frequency(stage, terms), stage.language)
    made = questions(material, most, seed)
    searcher = Searcher(stage.store, stage.embedder, stage.language)
    trials: list[Trial] = []
    for kind in KINDS:
        asked = [question for question in made if question.kind == kind]
        with _hidden(stage, asked):
            for question in asked:
                query = Query(question.text, stage.where, limit=DEPTH)
                found = origins_by_recipe(searcher, query, recipes)
                trials.append(Trial(question, tuple(gain(origins, question.answer) for origins in found)))
                tick(len(trials), len(made), kind)
    return trials


def _frequency(stage: Stage, terms: Iterable[str]) -> dict[str, int]:
    return dict(stage.store.statistics(terms, stage.where.scopes).frequency)


def _sample(stage: Stage, seed: int) -> list[Memory]:
    """Read the memories, or pages of them drawn by a seed where there are too many."""
    total = stage.store.statistics((), stage.where.scopes).total
    if total <= MAX_MEMORIES:
        return stage.store.browse(stage.where, MAX_MEMORIES)
    pages = random.Random(seed).sample(range(total // _PAGE), MAX_MEMORIES // _PAGE)
    return [memory for page in sorted(pages) for memory in stage.store.browse(stage.where, _PAGE, page * _PAGE)]


@contextmanager
def _hidden(stage: Stage, asked: Sequence[Pseudo]) -> Iterator[None]:
    """Take out of the copy what the questions were made of, and put it back afterwards."""
    words: dict[Origin, list[str]] = {}
    for question in asked:
        if question.hidden_in is not None:
            words.setdefault(question.hidden_in, []).append(question.hidden)
    whole = {origin: _memories_of(stage, origin) for origin in words}
    _write(stage, [_without(memory, words[origin]) for origin, held in whole.items() for memory in held])
    yield
    _write(stage, [memory for held in whole.values() for memory in held])


def _without(memory: Memory, hidden: Iterable[str]) -> Memory:
    for words in hidden:
        memory = hide(memory, words)
    return memory


def _memories_of(stage: Stage, origin: Origin) -> list[Memory]:
    """Return every memory of a source, also those that were not sampled."""
    ids = [origin] if isinstance(origin, str) else list(stage.store.chunks_of(*origin))
    return list(stage.store.get(ids, stage.where.scopes).values())


def _write(stage: Stage, memories: Sequence[Memory]) -> None:
    for start in range(0, len(memories), _PER_TRANSACTION):
        entries = [entry_for(memory, stage.language) for memory in memories[start : start + _PER_TRANSACTION]]
        changes = Changes(put=entries)
        if stage.embedder is not None:
            space = stage.embedder.fingerprint
            texts = {entry.embed_hash: entry.embed_text for entry in entries}
            known = stage.store.known_vectors(texts, space)
            missing = [key for key in texts if key not in known]
            rows = stage.embedder.documents([texts[key] for key in missing])
            vectors = {key: row for key, row in zip(missing, rows, strict=True) if row.any()}
            changes = replace(changes, space=space, vectors=vectors)
        stage.store.write(changes)
