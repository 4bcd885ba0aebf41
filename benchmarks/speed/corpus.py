"""Notes, vectors and questions from a seed: the same seed, size and length give the same corpus everywhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

FUNCTION_SHARE = 0.43  # of the tokens of running English
TOPIC_SHARE = 0.3  # of a note's content words are drawn from its topic: words come in bursts
NOTES_PER_TOPIC = 100
WORDS_PER_TOPIC = 40
COMMON_WORDS = 20_000  # people ask in the words most people know, and rare ones are names
NOTES_PER_BATCH = 10_000  # about 10 MB of vectors and as much of tokens at a time
SPARE_NOTES = 128  # that stand in no corpus, to be inserted

_TOPICS, _TOPIC_OF, _BATCH, _SPARE, _QUESTIONS = 11, 12, 13, 14, 15  # streams of chance

# -- words: function words as often as English has them, and a vocabulary of syllables

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


# -- vectors: clusters around topics, most of the variance in few dimensions

DIMENSION = 256
# How fast the variance of the axes falls, how far notes lie from their topic, and questions from their note: chosen so
# that a question's best neighbour is at a cosine of about 0.75 and its tenth at 0.65 to 0.7, as with sentence models.
_DECAY = 0.5
_NOTE_SPREAD = 0.5
_QUESTION_SPREAD = 0.87
_SPECTRUM, _TURN, _CENTRES = 1, 2, 3  # streams of chance


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


@dataclass(frozen=True)
class Directions:
    """A space with one cluster for every topic."""

    topics: int
    seed: int

    @cached_property
    def _scale(self) -> Matrix:
        scale: Matrix = (np.arange(1, DIMENSION + 1) ** -_DECAY).astype(np.float32)
        return scale / np.float32(np.linalg.norm(scale))

    @cached_property
    def _turn(self) -> Matrix:
        """Return a rotation, so that no axis of the vectors is special."""
        square = np.random.default_rng([self.seed, _TURN]).standard_normal((DIMENSION, DIMENSION))
        turn: Matrix = np.linalg.qr(square)[0].astype(np.float32)
        return turn

    @cached_property
    def _centres(self) -> Matrix:
        return self._cloud(self.topics, np.random.default_rng([self.seed, _CENTRES]))

    def notes(self, topics: NDArray[np.int32], chance: np.random.Generator) -> Matrix:
        """Return one unit vector a note, each near its topic's centre."""
        return _unit(self._centres[topics] + np.float32(_NOTE_SPREAD) * self._cloud(len(topics), chance)) @ self._turn

    def questions(self, notes: Matrix, chance: np.random.Generator) -> Matrix:
        """Return one unit vector near each of these notes."""
        return _unit(notes + np.float32(_QUESTION_SPREAD) * (self._cloud(len(notes), chance) @ self._turn))

    def _cloud(self, count: int, chance: np.random.Generator) -> Matrix:
        cloud: Matrix = chance.standard_normal((count, DIMENSION), dtype=np.float32) * self._scale
        return cloud


def _unit(rows: Matrix) -> Matrix:
    lengths: Matrix = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / lengths


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
