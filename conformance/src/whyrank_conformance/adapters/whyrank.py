"""whyrank itself: both keyword indexes, every recipe that ships, and its doors."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar
from unittest.mock import patch

from ..adapter import ABILITIES, Ability, Adapter, Answer, Door, Embed, Found, Note, Question, Setup

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from whyrank import Recipe
    from whyrank.protocols import Thresholds

    from ..adapter import Vector

_WEIGHT = 0.5  # of its vote: what whyrank gives a transformer
_DOOR_SECONDS = 120.0
# What each door needs beyond whyrank itself: the extras `mcp` and `serve`.
_MCP = ("mcp",)
_HTTP = ("starlette", "uvicorn", "prometheus_client")
_LEAST = 'check 9 with recipe=RECIPES["{recipe}"].with_stages(Evidence(m, m))'


class Given:
    """The embedder we were given, as whyrank takes one: with its name, its vote and its thresholds."""

    fingerprint = "testing/given@1/own/no-prompt"
    floor = 0.0
    languages: tuple[str, ...] = ()

    def __init__(self, embed: Embed) -> None:
        self._embed = embed

    @property
    def thresholds(self) -> Thresholds:
        """Return from which cosine on a match is weak, and from which it is found."""
        from whyrank.protocols import Thresholds

        return Thresholds(weak=0.3, found=0.6)

    def weight(self, language: str) -> float:
        """Return what its vote is worth: that of a transformer."""
        return _WEIGHT

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector per text."""
        return self._embed(texts)

    def query(self, text: str) -> Vector:
        """Return the vector of a question."""
        vector: Vector = self._embed([text])[0]
        return vector


class Whyrank(Adapter):
    """whyrank as it comes: the recipe `default` over its own postings."""

    name = "whyrank"
    about = "whyrank as it comes: the recipe default, its own keyword index"
    packages = ("whyrank",)
    install = "pip install whyrank"
    call = f"memory.search(text, limit=…, scope=…); {_LEAST.format(recipe='default')}"
    promises: ClassVar[frozenset[Ability]] = frozenset(ABILITIES)
    recipe: ClassVar[str] = "default"
    keyword: ClassVar[str] = "postings"

    def open(self, setup: Setup) -> None:
        """Open a store in the folder, with the embedder given."""
        import whyrank

        self._folder, self._store = setup.folder, setup.folder / "memory.db"
        self._ids: dict[str, str] = {}  # of ours by theirs
        chosen: dict[str, Any] = {"workspace": self._folder, "keyword": self.keyword, "recipe": self.recipe}
        if setup.own_model:
            self._engine = whyrank.open(self._store, **chosen)
            return
        # No settings of whoever runs the suite: neither from the environment nor from a file of theirs.
        with patch.dict(os.environ, {"HOME": str(self._folder)}, clear=True):
            self._engine = whyrank.open(self._store, embedder=Given(setup.embed), **chosen)

    def add(self, notes: Sequence[Note]) -> None:
        """Add facts one by one, as an agent does."""
        known = {ours: theirs for theirs, ours in self._ids.items()}
        for note in notes:
            added = self._engine.add(
                note.text, scope=_scope(note.scope), name=note.name, supersedes=known.get(note.supersedes)
            )
            self._ids[added.id] = note.id
            known[note.id] = added.id

    def delete(self, ids: Sequence[str]) -> None:
        """Forget facts."""
        self._engine.forget(*(theirs for theirs, ours in self._ids.items() if ours in ids))

    def search(self, question: Question) -> Answer:
        """Search with the recipe; a least relevance is a least cosine or coverage."""
        results = self._engine.search(
            question.text, limit=question.limit, scope=_scope(question.scope), recipe=self._recipe(question.minimum)
        )
        return Answer(tuple(Found(self._ids[hit.id], hit.confidence) for hit in results), results.verdict)

    def _recipe(self, minimum: float | None) -> Recipe:
        from whyrank import RECIPES
        from whyrank.ranking.stages import Evidence

        recipe = RECIPES[self.recipe]
        return recipe if minimum is None else recipe.with_stages(Evidence(minimum, minimum))

    def close(self) -> None:
        """Close the store."""
        self._engine.close()

    def doors(self) -> Mapping[str, Door]:
        """Return the asynchronous library, the command line and, where their packages are there, both servers."""
        doors: dict[str, Door] = {"asynchronous library": self._ask_async, "command line": self._ask_command_line}
        servers: dict[str, tuple[Door, tuple[str, ...]]] = {
            "MCP": (self._ask_mcp, _MCP),
            "HTTP": (self._ask_http, _HTTP),
        }
        return doors | {name: door for name, (door, needed) in servers.items() if all(map(find_spec, needed))}

    def _ask_async(self, question: Question) -> list[str]:
        from whyrank import AsyncEngine

        answer = asyncio.run(AsyncEngine(self._engine).search(question.text, limit=question.limit, recipe=self.recipe))
        return [self._ids[hit.id] for hit in answer]

    def _ask_command_line(self, question: Question) -> list[str]:
        command = ["search", question.text, "--limit", str(question.limit), "--recipe", self.recipe, "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "whyrank", *command, *self._place()],
            env=self._environment(),
            capture_output=True,
            check=True,
            timeout=_DOOR_SECONDS,
            encoding="utf-8",
        )
        return self._named(json.loads(done.stdout)["hits"])

    def _ask_mcp(self, question: Question) -> list[str]:
        return self._named(asyncio.run(self._called(question))["hits"])

    async def _called(self, question: Question) -> Any:
        from mcp import Client, StdioServerParameters

        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "whyrank", "mcp", *self._place()],
            cwd=self._folder,
            env=self._environment(),
        )
        async with Client(server, read_timeout_seconds=_DOOR_SECONDS) as client:
            told = await client.call_tool("memory_search", {"query": question.text, "limit": question.limit})
        return told.structured_content

    def _ask_http(self, question: Question) -> list[str]:
        import httpx

        asked = {"query": question.text, "limit": question.limit, "recipe": self.recipe}
        with self._served() as url:
            told = httpx.post(f"{url}/v1/search", json=asked, timeout=_DOOR_SECONDS, trust_env=False)
        return self._named(told.raise_for_status().json()["hits"])

    @contextmanager
    def _served(self) -> Iterator[str]:
        """Start `whyrank serve` on a free port of this machine, which says where, and end it."""
        options = ["--port", "0", "--no-token", "--json", *self._place()]
        log = self._folder / "serve.log"  # a file: nobody would empty a pipe
        with (
            log.open("w", encoding="utf-8") as errors,
            subprocess.Popen(
                [sys.executable, "-m", "whyrank", "serve", *options],
                cwd=self._folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
            ) as process,
        ):
            try:
                said = process.stdout.readline() if process.stdout else ""
                if not said:
                    raise RuntimeError(f"whyrank serve did not start: {log.read_text(encoding='utf-8').strip()}")
                yield json.loads(said)["url"]
            finally:
                process.terminate()
                process.wait(_DOOR_SECONDS)

    def _place(self) -> list[str]:
        return ["--store", str(self._store), "--workspace", str(self._folder)]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "WHYRANK_RECIPE": self.recipe}

    def _named(self, hits: Sequence[Mapping[str, Any]]) -> list[str]:
        return [self._ids[hit["id"]] for hit in hits]


def _scope(scope: str) -> str:
    return f"user:{scope}" if scope else "global"


class WhyrankFts5(Whyrank):
    """The same over SQLite's FTS5."""

    name = "whyrank-fts5"
    about = "the recipe default over SQLite's FTS5 as the keyword index (setting keyword = fts5)"
    keyword = "fts5"


_NAMELESS = {"names": "this recipe does not look at names; whyrank's default does"}
_WORDS_BRING = "in this recipe words bring candidates, but only vectors and names order them"
# What each recipe does not promise, and why.
_LACKING: Mapping[str, Mapping[Ability, str]] = {
    "rrf": {"names": _NAMELESS["names"]},
    "keyword": {"names": _NAMELESS["names"], "vectors": "this recipe asks the words alone"},
    "vector": {"names": _NAMELESS["names"], "words": "this recipe asks the vectors alone"},
    "openclaw": {"names": _NAMELESS["names"]},
    "openclaw-2026-02": {"names": _NAMELESS["names"]},
    "hybrid-mem": {"names": _NAMELESS["names"]},
    "clawhub": {"words": _WORDS_BRING},
    "clawhub-266": {"words": _WORDS_BRING},
    "openvault": {"names": _NAMELESS["names"]},
}
_SHOWN_ON_PURPOSE = "this recipe reproduces the faults on purpose, so that one can see what they cost"
_ALL_WORDS = {13: "of a query of one or two words it keeps only what holds every word, as its maintainer asked"}
_CHOICES: Mapping[str, Mapping[int, str]] = {
    "openclaw-2026-02": dict.fromkeys(range(1, 19), _SHOWN_ON_PURPOSE),
    "keyword": {9: "the coverage of a note that holds every word of a question once is below 0.5"},
    "clawhub": _ALL_WORDS,
    "clawhub-266": _ALL_WORDS,
    "openvault": {7: "in its formula a cosine below 0.5 counts as nothing"},
}


def with_recipe(recipe: str) -> type[Whyrank]:
    """Return the adapter for another recipe that ships."""
    lacking = _LACKING[recipe]
    return type(
        "WhyrankRecipe",
        (Whyrank,),
        {
            "name": f"whyrank-{recipe}",
            "about": f"whyrank with its recipe {recipe}",
            "call": f'memory.search(text, recipe="{recipe}", limit=…, scope=…); {_LEAST.format(recipe=recipe)}',
            "recipe": recipe,
            "promises": frozenset(ABILITIES) - lacking.keys(),
            "reasons": lacking,
            "choices": _CHOICES.get(recipe, {}),
            "__doc__": f"whyrank with the recipe {recipe}.",
        },
    )
