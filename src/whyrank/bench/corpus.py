"""Notes, vectors and questions from a seed: the same seed, size and length give the same corpus everywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .directions import DIMENSION, Directions
from .words import FUNCTION_WORDS, OPENERS, VOCABULARY, content_shares, function_shares, vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .directions import Matrix

FUNCTION_SHARE = 0.43  # of the tokens of running English
TOPIC_SHARE = 0.3  # of a note's content words are drawn from its topic: words come in bursts
NOTES_PER_TOPIC = 100
WORDS_PER_TOPIC = 40
COMMON_WORDS = 20_000  # people ask in the words most people know, and rare ones are names
NOTES_PER_BATCH = 10_000  # about 10 MB of vectors and as much of tokens at a time
SPARE_NOTES = 128  # that stand in no corpus, to be inserted

_TOPICS, _TOPIC_OF, _BATCH, _SPARE, _QUESTIONS = 11, 12, 13, 14, 15  # streams of chance


class Question(NamedTuple):
    """Something asked about one note: as a sentence, and as a name of one or two rare words."""

    text: str
    name: str
    note: int


@dataclass(frozen=True)
class Corpus:
    """All that decides a corpus: how many notes of how many words, and the seed."""

    size: int
    words: int = 200
    seed: int = 1

    @property
    def topics(self) -> int:
        """Return the number of topics, which is that of the vectors' clusters."""
        return max(10, self.size // NOTES_PER_TOPIC)

    @cached_property
    def directions(self) -> Directions:
        """Return the space the vectors lie in."""
        return Directions(self.topics, self.seed)

    @cached_property
    def lexicon(self) -> NDArray[np.object_]:
        """Return every word: the function words first, then content words by falling frequency."""
        return np.array([*FUNCTION_WORDS, *vocabulary(VOCABULARY, self.seed)], dtype=object)

    @cached_property
    def _topic_of(self) -> NDArray[np.int32]:
        return self._chance(_TOPIC_OF).integers(self.topics, size=self.size, dtype=np.int32)

    @cached_property
    def _function(self) -> NDArray[np.float64]:
        return np.cumsum(function_shares())

    @cached_property
    def _content(self) -> NDArray[np.float64]:
        return np.cumsum(content_shares(VOCABULARY))

    @cached_property
    def _topic_words(self) -> NDArray[np.int64]:
        return self._drawn_content(self.topics * WORDS_PER_TOPIC, self._chance(_TOPICS)).reshape(self.topics, -1)

    def batches(self) -> Iterator[tuple[list[str], Matrix]]:
        """Yield notes and their vectors in order, a batch at a time; only one batch is in memory."""
        for start in range(0, self.size, NOTES_PER_BATCH):
            topics = self._topic_of[start : start + NOTES_PER_BATCH]
            yield self._batch(topics, self._chance(_BATCH, start))

    def spare(self, count: int = SPARE_NOTES) -> tuple[list[str], Matrix]:
        """Return further notes with their vectors, which no batch holds."""
        chance = self._chance(_SPARE)
        return self._batch(chance.integers(self.topics, size=count, dtype=np.int32), chance)

    def _batch(self, topics: NDArray[np.int32], chance: np.random.Generator) -> tuple[list[str], Matrix]:
        lengths = chance.normal(self.words, self.words / 5, len(topics)).round().astype(np.int64)
        lengths = lengths.clip(max(1, self.words // 2), self.words * 2)
        tokens = self.lexicon[self._drawn(np.repeat(topics, lengths), chance)].tolist()
        ends = np.cumsum(lengths).tolist()
        notes = [" ".join(tokens[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
        return notes, self.directions.notes(topics, chance)

    def _drawn(self, topics: NDArray[np.int32], chance: np.random.Generator) -> NDArray[np.int64]:
        """Return a word for every token, given the topic it is said about."""
        kind = chance.random(len(topics))
        drawn = self._drawn_content(len(topics), chance)
        about = kind < FUNCTION_SHARE + TOPIC_SHARE * (1 - FUNCTION_SHARE)
        # The square makes a topic's first words its commonest.
        column = (chance.random(int(about.sum())) ** 2 * WORDS_PER_TOPIC).astype(np.int64)
        drawn[about] = self._topic_words[topics[about], column]
        function = kind < FUNCTION_SHARE
        drawn[function] = np.searchsorted(self._function, chance.random(int(function.sum())) * self._function[-1])
        return drawn

    def _drawn_content(self, count: int, chance: np.random.Generator) -> NDArray[np.int64]:
        places = np.searchsorted(self._content, chance.random(count) * self._content[-1])
        drawn: NDArray[np.int64] = places + len(FUNCTION_WORDS)
        return drawn

    def asked(self, count: int) -> list[int]:
        """Return the notes that questions are asked about, spread over the corpus."""
        return sorted(self._chance(_QUESTIONS).choice(self.size, size=min(count, self.size), replace=False).tolist())

    def questions(self, notes: Sequence[tuple[int, str]], vectors: Matrix) -> tuple[list[Question], Matrix]:
        """Return a question about each of these notes, and its vector."""
        chance = self._chance(_QUESTIONS, 1)
        rank = {word: place for place, word in enumerate(self.lexicon)}
        made = [self._question(number, text, rank, chance) for number, text in notes]
        return made, self.directions.questions(vectors, chance)

    def _question(self, number: int, text: str, rank: dict[str, int], chance: np.random.Generator) -> Question:
        content = [word for word in dict.fromkeys(text.split()) if rank[word] >= len(FUNCTION_WORDS)]
        length = int(chance.integers(6, 13))
        told = (length - 1) // 2  # so that more than half are function words
        common = [word for word in content if rank[word] < COMMON_WORDS] or content
        spoken = chance.choice(common, size=min(told, len(common)), replace=False).tolist()
        between = chance.choice(FUNCTION_WORDS, size=length - 1 - len(spoken), p=function_shares()).tolist()
        words = [*spoken, *between]
        chance.shuffle(words)
        rare = sorted(content, key=lambda word: -rank[word])[: int(chance.integers(1, 3))]
        return Question(" ".join([str(chance.choice(OPENERS)), *words]), " ".join(rare), number)

    def _chance(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.size, *stream])


@dataclass(frozen=True)
class Written:
    """A corpus in a folder, so that every contestant reads the same files, in whatever process."""

    folder: Path

    def notes(self) -> Iterator[str]:
        """Yield the notes in order."""
        with (self.folder / "notes.txt").open(encoding="utf-8") as lines:
            yield from (line[:-1] for line in lines)

    @cached_property
    def vectors(self) -> Matrix:
        """Return the notes' vectors, left on the disk until they are read."""
        vectors: Matrix = np.load(self.folder / "vectors.npy", mmap_mode="r")
        return vectors

    @cached_property
    def questions(self) -> list[Question]:
        """Return the questions."""
        return [Question(*fields) for fields in json.loads((self.folder / "questions.json").read_text("utf-8"))]

    @cached_property
    def question_vectors(self) -> Matrix:
        """Return the questions' vectors."""
        vectors: Matrix = np.load(self.folder / "question_vectors.npy")
        return vectors


def write(corpus: Corpus, questions: int, folder: Path) -> Written:
    """Generate a corpus into a folder, a batch at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    asked, start = corpus.asked(questions), 0
    wanted, about = frozenset(asked), []
    shape = (corpus.size, DIMENSION)
    vectors = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=np.float32, shape=shape)
    with (folder / "notes.txt").open("w", encoding="utf-8") as file:
        for notes, rows in corpus.batches():
            file.writelines(f"{note}\n" for note in notes)
            vectors[start : start + len(notes)] = rows
            about += [(start + place, note) for place, note in enumerate(notes) if start + place in wanted]
            start += len(notes)
    made, near = corpus.questions(about, vectors[asked])
    vectors.flush()
    np.save(folder / "question_vectors.npy", near)
    (folder / "questions.json").write_text(json.dumps(made), encoding="utf-8")
    return Written(folder)
