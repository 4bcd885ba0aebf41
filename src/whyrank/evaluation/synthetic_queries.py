"""Synthetic queries made from the memories, whose answers are known by construction.

A query copied from a text is found by its words, whatever the weights: it measures copying. So the words a query was
made of are removed from the memories before it runs (the inverse cloze task of Lee, Chang and Toutanova, 2019): a
heading must be answered by the text under it, a sentence by the text around it, a link's text by the file it leads to.
Two kinds stay as they are, because people do type what they remember: rare terms and parts of names.
"""

from __future__ import annotations

import posixpath
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..analysis.names import name_key, name_words
from ..analysis.normalize import fold, unspaced_letters
from ..analysis.tokenizer import all_tokens, tokens_of
from ..types.columns import MemoryId
from ..types.memory import Memory, Scope

Origin = tuple[Scope, str] | MemoryId
Frequency = Callable[[Iterable[str]], Mapping[str, int]]
Maker = Callable[["Material", Origin, random.Random], Iterator["Pseudo"]]

HIDDEN_KINDS = ("heading", "title", "link", "paraphrase")  # the words of these are hidden from their source

COMMON_SHARE = 10  # a word in more than one in ten titles does not describe the text below one
MIN_WORDS = 2  # of a heading, title or link: a single word is not specific
MIN_LEFT = 12  # content words that must be left to answer with
SENTENCE_WORDS = range(6, 41)  # content words of a sentence: shorter ones are unspecific, longer ones are lists
DROPPED_SHARE = 3  # one in three content words of a sentence is dropped, the rarest first
TERMS = 3
RAREST = 8  # the terms of a question are drawn from this many rarest words of a memory
PER_SOURCE = 4  # sentences taken from one file at most, so that a long one does not dominate

_LINK = re.compile(r"(?<!!)\[([^\]\n]{3,120})\]\(<?([^)\s>]+)>?[^)\n]*\)|\[\[([^\]|\n]+)\|([^\]\n]{3,120})\]\]")
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+#>|`]|\d+[.)]))")
_SENTENCE = re.compile(r"[^.!?。！？]+(?:[.!?](?=\S)[^.!?。！？]*)*[.!?。！？]?")
_PUNCTUATION = ".,;:!?()[]{}\"'«»„“”"
_MARKS = re.compile(r"[*`~]+|(?<!\w)_+|_+(?!\w)")
_FRAMES = re.compile(r"[#>|]+|^\s*(?:[-+]|\d+[.)])\s+")


@dataclass(frozen=True, slots=True)
class Pseudo:
    """A query made from a memory: its kind, text, relevant source, and the words to hide in a source."""

    kind: str
    text: str
    answer: Origin
    hidden: str = ""
    hidden_in: Origin | None = None


@dataclass(frozen=True)
class Material:
    """Input for making queries: memories by source, document frequencies, and the default language."""

    sources: Mapping[Origin, Sequence[Memory]]
    frequency: Frequency
    language: str
    headings: Counter[str] = field(init=False)
    titled: Counter[str] = field(init=False)
    paths: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        told = ({fold(text) for memory in held for text in memory.headings} for held in self.sources.values())
        object.__setattr__(self, "headings", Counter(text for texts in told for text in texts))
        titles = (set(tokens_of(held[0].name, self.language)) for held in self.sources.values() if held[0].name)
        object.__setattr__(self, "titled", Counter(word for words in titles for word in words))
        paths = frozenset(origin[1] for origin in self.sources if isinstance(origin, tuple))
        object.__setattr__(self, "paths", paths)

    def words(self, text: str) -> int:
        """Count the content words of a text."""
        return len(tokens_of(text, self.language)) if text.strip() else 0

    def is_telling(self, title: str) -> bool:
        """Check that a title or heading is distinctive: more than a date or words of most titles."""
        most = max(1, len(self.sources) // COMMON_SHARE)
        words = {word for word in tokens_of(title, self.language) if any(map(str.isalpha, word))}
        return sum(self.titled[word] <= most for word in words) >= MIN_WORDS

    def leaves_enough(self, origin: Origin, hidden: str) -> bool:
        """Check that a source keeps enough content words when these are hidden."""
        left = 0
        for memory in self.sources[origin]:
            left += self.words(hide(memory, hidden).text)
            if left >= MIN_LEFT:
                return True
        return False


def by_source(memories: Iterable[Memory]) -> dict[Origin, list[Memory]]:
    """Group memories by source."""
    sources: dict[Origin, list[Memory]] = {}
    for memory in memories:
        sources.setdefault(memory.origin, []).append(memory)
    return sources


def questions(material: Material, most: int, seed: int) -> list[Pseudo]:
    """Make up to `most` queries, drawn by a seed; a kind's unfilled share goes to kinds with hidden words."""
    made: dict[str, list[Pseudo]] = {}
    for kind, maker in _MAKERS.items():
        chance = random.Random(f"{seed} {kind}")
        origins = sorted(material.sources, key=str)
        chance.shuffle(origins)
        limit = most if kind in HIDDEN_KINDS else most // len(KINDS)
        made[kind] = _in_turns(maker, material, origins, chance, limit)
    shares = _shares({kind: len(made[kind]) for kind in sorted(KINDS, key=lambda kind: len(made[kind]))}, most)
    return [question for kind in KINDS for question in made[kind][: shares[kind]]]


def _shares(given: Mapping[str, int], most: int) -> dict[str, int]:
    """Divide a number evenly among kinds, smallest first; their unfilled shares pass to the next."""
    shares: dict[str, int] = {}
    for place, (kind, count) in enumerate(given.items()):
        shares[kind] = min(count, (most - sum(shares.values())) // (len(given) - place))
    return shares


def _in_turns(
    maker: Maker, material: Material, origins: Sequence[Origin], chance: random.Random, most: int
) -> list[Pseudo]:
    """Take the first query of every source, then the second of every source, until there are enough."""
    made: list[Pseudo] = []
    waiting = [maker(material, origin, chance) for origin in origins]
    for _ in range(PER_SOURCE):
        going = []
        for source in waiting:
            if len(made) == most:
                return made
            question = next(source, None)
            if question is not None:
                made.append(question)
                going.append(source)
        waiting = going
    return made


def hide(memory: Memory, words: str) -> Memory:
    """Return a memory without these words in its text, its names and its headings."""
    key = name_key(words)
    pattern = re.compile(r"\s+".join(map(re.escape, words.split())), re.IGNORECASE)

    def others(texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(text for text in texts if name_key(text) != key)

    return replace(
        memory,
        text=pattern.sub(" ", memory.text),
        summary=pattern.sub(" ", memory.summary),
        name="".join(others([memory.name])),
        title="".join(others([memory.title])),
        aliases=others(memory.aliases),
        headings=others(memory.headings),
    )


def plain(text: str) -> str:
    """Return a line of markdown as plain text: without marks, links as their text."""
    linked = _LINK.sub(lambda link: link[1] or link[4], text)
    return " ".join(_FRAMES.sub(" ", _MARKS.sub("", linked)).split())


def _headings(material: Material, origin: Origin, chance: random.Random) -> Iterator[Pseudo]:
    """Yield queries from headings that no other source has ("Usage notes" stands in every second file)."""
    memories = material.sources[origin]
    found = list(dict.fromkeys(text for memory in memories for text in memory.headings if text != memory.name))
    chance.shuffle(found)
    for heading in found:
        if (
            material.headings[fold(heading)] == 1
            and material.is_telling(heading)
            and material.leaves_enough(origin, heading)
        ):
            yield Pseudo("heading", plain(heading), origin, heading, origin)


def _titles(material: Material, origin: Origin, chance: random.Random) -> Iterator[Pseudo]:
    """Yield a query from a title that neither path nor slug repeats."""
    memory = material.sources[origin][0]
    path = memory.source.path if memory.source else ""
    given_away = {name_key(text) for text in (memory.slug, posixpath.splitext(posixpath.basename(path))[0])}
    if not material.is_telling(memory.name) or name_key(memory.name) in given_away:
        return
    if material.leaves_enough(origin, memory.name):
        yield Pseudo("title", plain(memory.name), origin, memory.name, origin)


def _links(material: Material, origin: Origin, chance: random.Random) -> Iterator[Pseudo]:
    """Yield queries from the texts of links, which other authors wrote about the target file."""
    if not isinstance(origin, tuple):
        return
    scope, path = origin
    for memory in material.sources[origin]:
        for link in _LINK.finditer(memory.text):
            text, target = link[1] or link[4], _target(link[2] or link[3], path, material.paths)
            if target and target != path and material.words(text) >= MIN_WORDS and not _names(text, target):
                yield Pseudo("link", plain(text), (scope, target), text, origin)


def _target(written: str, path: str, known: frozenset[str]) -> str | None:
    """Resolve a link to a known file; the extension and the root of a site may be left out."""
    place = written.partition("#")[0]
    near = posixpath.normpath(posixpath.join(posixpath.dirname(path), place))
    is_rooted = place.startswith("/")
    places = [f"{root}{place}".lstrip("/") for root in _folders(path)] if is_rooted else [near]
    choices = (f"{at}{ending}" for at in places for ending in ("", ".md", "/index.md"))
    return next((choice for choice in choices if choice in known), None)


def _folders(path: str) -> list[str]:
    """Return the parent folders of a file, from the outermost, which is ""."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]


def _names(text: str, path: str) -> bool:
    """Check for a link text that equals the name of its file: that would be a query by name."""
    stem = posixpath.splitext(posixpath.basename(path))[0]
    return name_key(text) in {name_key(path), name_key(stem), name_key(posixpath.basename(path))}


def _paraphrases(material: Material, origin: Origin, chance: random.Random) -> Iterator[Pseudo]:
    """Yield queries from sentences without their rarest words, as from a partial memory."""
    memories = [*material.sources[origin]]
    chance.shuffle(memories)
    for memory in memories:
        blocks = _BLOCK.split(memory.text)
        sentences = [found.group().strip() for block in blocks for found in _SENTENCE.finditer(block)]
        chance.shuffle(sentences)
        for sentence in sentences:
            said = plain(sentence)
            if material.words(said) in SENTENCE_WORDS and material.leaves_enough(origin, sentence):
                yield Pseudo("paraphrase", _without_rarest(said, material), origin, sentence, origin)
                break


def _without_rarest(sentence: str, material: Material) -> str:
    """Drop the rarest third of the content words; scripts without spaces keep theirs."""
    if unspaced_letters(sentence) * 2 > len(sentence):
        return sentence
    words = sentence.split()
    rarity = _rarity(words, material)
    content = [place for place in range(len(words)) if rarity[place] is not None]
    rarest = sorted(content, key=lambda place: (rarity[place], place))[: len(content) // DROPPED_SHARE]
    return " ".join(word for place, word in enumerate(words) if place not in rarest)


def _terms(material: Material, origin: Origin, chance: random.Random) -> Iterator[Pseudo]:
    """Yield a query of a few of a memory's rarest words, as for a thing seen before."""
    memory = chance.choice(material.sources[origin])
    if unspaced_letters(memory.text) * 2 > len(memory.text):
        return
    words = list(dict.fromkeys(word.strip(_PUNCTUATION) for word in plain(memory.text).split()))
    rarity = _rarity(words, material)
    ranked = sorted((count, place) for place, count in rarity.items() if count)
    if len(ranked) >= RAREST:
        drawn = sorted(place for _, place in chance.sample(ranked[:RAREST], TERMS))
        yield Pseudo("terms", " ".join(words[place] for place in drawn), origin)


def _rarity(words: Sequence[str], material: Material) -> dict[int, int | None]:
    """Return the document frequency of each word by its position; None for function words and marks."""
    tokens = {place: tokens_of(word, material.language)[:1] for place, word in enumerate(words)}
    counts = material.frequency({token for found in tokens.values() for token in found})
    return {
        place: counts.get(found[0]) if found and not _is_function_word(words[place], material.language) else None
        for place, found in tokens.items()
    }


def _is_function_word(word: str, language: str) -> bool:
    return all(token.is_stop_word for token in all_tokens(word, language))


def _name_parts(material: Material, origin: Origin, chance: random.Random) -> Iterator[Pseudo]:
    """Yield a query of two adjacent words of a longer name."""
    memory = material.sources[origin][0]
    words = name_words(memory.name)
    if len(words) > MIN_WORDS:
        start = chance.randrange(len(words) - MIN_WORDS + 1)
        part = " ".join(words[start : start + MIN_WORDS])
        if material.words(part) >= MIN_WORDS:
            yield Pseudo("name", part, origin)


_MAKERS: dict[str, Maker] = {
    "heading": _headings,
    "title": _titles,
    "link": _links,
    "paraphrase": _paraphrases,
    "terms": _terms,
    "name": _name_parts,
}
KINDS = tuple(_MAKERS)
