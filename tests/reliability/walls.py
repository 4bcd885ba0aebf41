"""The wall between scopes: a shared store answers as a store would that holds the scopes asked for, and nothing else.

Two stores live the same life, one with everybody's writes, one with those of the scopes somebody may see. Whatever that
somebody then does or asks must come to the same: outcomes, errors, results, scores, explanations, counts, notices.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import ExitStack, closing
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from whyrank.config.load import load
from whyrank.engine.engine import Engine
from whyrank.errors import WhyrankError
from whyrank.interfaces import serialize
from whyrank.storage.store import SqliteStore
from whyrank.testing.fakes import WordDirections
from whyrank.types.memory import Document, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NOW, DAY = 1_700_000_000, 86_400
SCOPES = ("global", "user:ann", "user:bob", "agent:mill", "user:ann/agent:mill")
# The global scope is seen beside them.
ASKED = (("global",), ("user:ann",), ("user:bob",), ("user:ann", "agent:mill"), ("user:ann/*",))
BELOW = {"user:ann/*": ("user:ann", "user:ann/agent:mill")}
WORDS = (
    "tea", "téa", "teas", "milk", "green", "pot", "oil", "engine", "remind", "note", "E-47", "kettle", "blue", "boat",
)  # fmt: skip
NAMES = ("", "", "Remind Me", "Tea Pot", "note")
QUESTIONS = ("Remind Me", "remnd me", "tea pot", "what is E47?", '"green tea"', "ketle", "te", "boats", "oil milk", "")
RECIPES = ("default", "default", "rrf", "keyword", "vector", "openvault")
FIRST, DEEDS = 10, 35  # writes of a world that only add, and all of them
LARGE, BULK = 10, 60  # every so manieth world begins with so many documents in every scope
IN_MEMORY = Path("/dev/shm")
TRIES = 4  # questions of each kind at the end

ADDED = ("add", "add", "add", "remember", "remember", "supersede", "documents")  # in a scope's own part alone
BY_ID = ("revise", "revise", "forget", "mark_used")  # what a scope sees may be everybody's
RARE = ("prune", "forget_scope")
METHODS = {  # of an engine, where they are not called as the deed is
    "remember": "facts.remember", "supersede": "facts.remember", "revise": "facts.revise", "near": "facts.near",
    "documents": "add_documents", "prune": "memories.prune", "forget_scope": "memories.forget_scope",
    "replaced": "memories.replaced",
    "find_fact": "memories.find_fact", "suggest_id": "memories.suggest_id",
    "backlog": "models.backlog", "waiting_notices": "models.waiting_notices",
}  # fmt: skip


class Deed(NamedTuple):
    """One call of an engine, by whom it is made."""

    scope: str
    verb: str
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = MappingProxyType({})


def told(engine: Engine, deed: Deed) -> object:
    """Make a call; return all that its caller is told, be it an error."""
    try:
        if deed.verb == "search":
            return _answer(engine, *deed.arguments, **deed.options)
        if deed.verb == "status":
            status = engine.status(**deed.options)
            return status.memories, status.files, status.scopes, status.spaces, status.without_vector, status.bytes
        return str(attrgetter(METHODS.get(deed.verb, deed.verb))(engine)(*deed.arguments, **deed.options))
    except WhyrankError as error:
        return f"{type(error).__name__}: {error}"


def _answer(engine: Engine, question: str, **options: Any) -> object:
    found = engine.search(question, **options)
    data = serialize.results(found, explain=True)
    return {**data, "timings": None, "told": [hit.explain() for hit in found], "evidence": found.evidence}


class Pair:
    """A shared store and one of some scopes alone, under one clock."""

    def __init__(self, folder: Path, asked: tuple[str, ...], near: str, stack: ExitStack) -> None:
        seen = (scope for one in asked for scope in BELOW.get(one, (one,)))
        self.seen, self.now = {*seen, "global"}, float(NOW)
        self.shared, self.alone = (stack.enter_context(closing(self._opened(folder / name, near))) for name in "sa")

    def _opened(self, folder: Path, near: str) -> Engine:
        folder.mkdir()
        given = {"store": str(folder / "memory.db"), "calibration": "manual", "dedup.near": near}
        config = load(given, workspace=folder, environment={})
        return Engine(SqliteStore(folder / "memory.db"), WordDirections(), config, clock=lambda: self.now)

    def do(self, deed: Deed) -> None:
        """Write; who sees the scope must be told the same in both stores."""
        here = told(self.shared, deed)
        if deed.scope in self.seen or deed.verb in (*BY_ID, "prune"):
            there = told(self.alone, deed)
            assert here == there or deed.scope not in self.seen, f"{deed}\n{here}\n{there}"

    def ask(self, deed: Deed) -> None:
        """Ask both stores the same."""
        here, there = told(self.shared, deed), told(self.alone, deed)
        assert here == there, f"{deed}\n{here}\n{there}"

    def ids(self, scope: str) -> list[str]:
        """Return the ids of one scope and of the global one, as its owner would know them."""
        return [one.id for one in self.shared.list(limit=1_000, scope=scope, include_superseded=True)]


def check(seed: int) -> Counter[str]:
    """Live one life in two stores and compare what they answer; where that can be, no disk is waited for."""
    with TemporaryDirectory(prefix="whyrank-wall-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        return _compared(Path(folder), seed)


def _compared(folder: Path, seed: int) -> Counter[str]:
    chance, counts = random.Random(seed), Counter[str](worlds=1)
    asked, texts = ASKED[seed % len(ASKED)], list[str]()
    with ExitStack() as stack:
        pair = Pair(folder, asked, chance.choice(("report", "merge", "keep")), stack)
        for scope in SCOPES if seed % LARGE == 0 else ():
            pair.do(Deed(scope, "documents", ([_document(chance, f"d{place}", scope) for place in range(BULK)],)))
        for number in range(DEEDS):
            scope = chance.choice(SCOPES)
            # Ids of other scopes are tried too: they must be as unknown as one that nobody has.
            ids = [*pair.ids(scope)] * 4 + [*pair.ids(chance.choice(SCOPES)), "m_nobody"]
            pair.do(drawn(chance, scope, ids, texts, ADDED if number < FIRST else (*ADDED, *BY_ID, *BY_ID)))
            pair.now += chance.choice((0.0, 60.0, DAY))
            counts["writes"] += 1
            if chance.random() < 0.2:
                pair.ask(_question(chance, asked))
                counts["questions"] += 1
        known = [identity for scope in SCOPES for identity in pair.ids(scope)]
        for question in questions(chance, asked, known, texts):
            pair.ask(question)
            counts["questions"] += 1
    return counts


def drawn(chance: random.Random, scope: str, ids: list[str], texts: list[str], verbs: Sequence[str]) -> Deed:
    """Draw a write; texts and keys are often those of other scopes."""
    verb = chance.choice(RARE if chance.random() < 0.05 else verbs)
    if verb in RARE:
        return Deed(scope, verb, (scope,)) if verb == "forget_scope" else Deed(scope, verb, (), {"scope": scope})
    text = chance.choice(texts) if texts and chance.random() < 0.3 else _text(chance)
    texts.append(text)
    identity = chance.choice(ids)
    if verb == "documents":
        return Deed(scope, verb, ([_document(chance, chance.choice(("a.md", "b.md")), scope)],))
    if verb == "revise":
        changes: list[dict[str, Any]] = [{"text": text}, {"importance": 3}, {"expires": NOW + 3 * DAY}, {"name": "Oil"}]
        return Deed(scope, verb, (identity,), {"scope": scope, **chance.choice(changes)})
    if verb in BY_ID:
        return Deed(scope, verb, (identity,), {"scope": scope})
    if verb == "supersede":
        return Deed(scope, verb, (text,), {"scope": scope, "supersedes": identity})
    fields: dict[str, Any] = {
        "name": chance.choice(NAMES),
        "tags": chance.sample(["x", "y"], chance.randint(0, 2)),
        "importance": chance.choice([None, 1, 5]),
        "expires": chance.choice([None, None, NOW + 5 * DAY, NOW + 50 * DAY]),
        "entities": chance.choice([[], ["Tea"], ["Blue Boat"]]),
        "key": chance.choice([None, None, "one", "two"]),
        "metadata": chance.choice([{}, {"n": chance.randint(1, 3)}, {"n": 2, "place": _text(chance)}]),
    }
    return Deed(scope, verb, (text,), {"scope": scope, **fields})


def _text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(1, 7)))


def _document(chance: random.Random, name: str, scope: str) -> Document:
    return Document(name, f"# {_text(chance)}\n\n{_text(chance)}", scope=Scope.parse(scope))


def _question(chance: random.Random, asked: tuple[str, ...]) -> Deed:
    text = chance.choice([*QUESTIONS, _text(chance), _text(chance)])
    filters: dict[str, Any] = chance.choice(
        [
            {},
            {},
            {"tags": ["x"]},
            {"kind": "fact"},
            {"include_superseded": True},
            {"path": "a*"},
            {"where": {"n": {"$gt": 1}}},
            {"where": {"place": {"$ne": "tea"}}},
        ]
    )
    options = {"scope": [*asked], "recipe": chance.choice(RECIPES), "limit": chance.choice((3, 50)), **filters}
    return Deed("", "search", (text,), options)


def questions(chance: random.Random, asked: tuple[str, ...], ids: list[str], texts: list[str]) -> Iterator[Deed]:
    """Yield all kinds of questions of one who sees some scopes, also about what is not theirs to see."""
    scope = {"scope": [*asked]}
    yield Deed("", "status", (), scope)
    yield Deed("", "backlog", (), scope)
    yield Deed("", "waiting_notices", (), scope)
    for listed in ({}, {"superseded": True}, {"expired": True}, {"include_superseded": True, "sort": "created"}):
        yield Deed("", "list", (), {**scope, "limit": 1_000, **listed})
    for _ in range(TRIES):
        yield _question(chance, asked)
        identity = chance.choice([*ids, "m_nobody"])
        yield Deed("", "why", (chance.choice([*QUESTIONS[:-1], *texts]), identity), scope)
        yield Deed("", "get", (identity,), scope)
        yield Deed("", "history", (identity,), scope)
        yield Deed("", "replaced", (identity,), scope)
        yield Deed("", "suggest_id", (identity[:-1] + "x",), scope)
        yield Deed("", "find_fact", (chance.choice(texts),), scope)
        yield Deed("", "near", (chance.choice(texts),), {"scope": asked[0], "cosine": 0.5})
