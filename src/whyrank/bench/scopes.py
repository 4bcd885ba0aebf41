"""One scope among many in a file, beside a store that holds that scope alone: what does the company cost?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from ..types import Document, Scope
from .child import LIMIT
from .clock import take_turns
from .contestant import ALONE, SHARED, Key
from .corpus import Corpus, Written, write
from .ours import Ours
from .outcome import Category, Line, Scoped

ASKED = 20  # questions, each in the scope of its note


def scoped(scopes: int, memories: int, words: int, seed: int, tell: Callable[[str], None]) -> Scoped:
    """Search scopes of a shared file, each beside a store of its own, taking turns."""
    with tempfile.TemporaryDirectory(prefix="whyrank-bench-") as place, ExitStack() as stack:
        tell(f"{scopes:,} scopes of {memories:,} memories: writing and building")
        corpus = write(Corpus(scopes * memories, words, seed), ASKED, Path(place) / "corpus")
        shared = _filled(corpus, 0, scopes * memories, memories, Path(place) / "shared", stack)
        asked = [question.note // memories for question in corpus.questions]
        alone = {
            scope: _filled(corpus, scope * memories, memories, memories, Path(place) / f"scope-{scope}", stack)
            for scope in sorted(set(asked))
        }
        tell(f"scopes: {len(asked)} turns")
        calls = {
            SHARED: _asking(corpus, memories, lambda scope: shared),
            ALONE: _asking(corpus, memories, lambda scope: alone[scope]),
        }
        for turn in range(len(asked)):
            for call in calls.values():
                call(turn)  # a scope's caches fill once
        spans = take_turns(calls, len(asked))
    lines = [Line(name, spans[name]) for name in calls]
    return Scoped(scopes, memories, Category("scopes", lines, baseline=ALONE))


def _asking(corpus: Written, memories: int, store_of: Callable[[int], Ours]) -> Callable[[int], Sequence[Key]]:
    def ask(turn: int) -> Sequence[Key]:
        question, vector = corpus.questions[turn], corpus.question_vectors[turn]
        scope = question.note // memories
        return store_of(scope).search_in(_scope(scope), question.text, vector, LIMIT)

    return ask


def _filled(corpus: Written, start: int, count: int, memories: int, folder: Path, stack: ExitStack) -> Ours:
    folder.mkdir()
    ours = Ours()
    ours.open(folder)
    stack.callback(ours.close)
    ours.fill(_documents(corpus, start, count, memories), corpus.vectors[start : start + count])
    return ours


def _documents(corpus: Written, start: int, count: int, memories: int) -> Iterator[Document]:
    for number, note in enumerate(islice(corpus.notes(), start, start + count), start):
        yield Document(str(number), note, scope=_scope(number // memories))


def _scope(number: int) -> Scope:
    return Scope("user", str(number))
