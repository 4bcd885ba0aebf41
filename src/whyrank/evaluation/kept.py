"""What an evaluation leaves behind: figures of every query, so that pages are made of it and versions compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BadDataset, ConfigError
from .abstention import Point
from .harness import CEILING
from .keeping import Node, check_format, read_json, refuse
from .measures import MAIN, MEASURES
from .stories import Story, Told

FORMAT = 1
KIND = "whyrank-eval"
WRITTEN_BY = "whyrank eval SET --keep FILE"


@dataclass(frozen=True)
class KeptQuery:
    """One query: what was expected, and what each line made of it."""

    id: str
    text: str
    kind: str
    scope: str
    expected: Mapping[str, int]
    evidence: float
    verdict: str
    ranks: Mapping[str, int | None]
    figures: Mapping[str, Mapping[str, float]]

    def main(self, line: str) -> float:
        """Return the main measure of a line."""
        return self.figures[line][MAIN]

    @property
    def asks(self) -> tuple[str, str, tuple[tuple[str, int], ...]]:
        """Return what makes two queries the same question: text, scope and judgements."""
        return self.text, self.scope, tuple(sorted(self.expected.items()))


@dataclass(frozen=True)
class KeptSet:
    """All that was measured on one set; the lines hold the recipes, the single runs and the ceiling."""

    name: str
    digest: str
    recipes: tuple[str, ...]
    lines: tuple[str, ...]
    queries: tuple[KeptQuery, ...]
    worst: tuple[Story, ...]
    trails: int
    broken: int
    notices: Mapping[str, int]

    def values(self, line: str, measure: str = MAIN) -> list[float]:
        """Return one measure of a line for all queries, in their order."""
        return [query.figures[line][measure] for query in self.queries]

    def query(self, identity: str) -> KeptQuery:
        """Return one query."""
        return next(query for query in self.queries if query.id == identity)


@dataclass(frozen=True)
class KeptSide:
    """The answerable questions of a set against one kind of unanswerable ones: the curve, and where the verdict is."""

    name: str
    answerable: int
    unanswerable: int
    auc: float
    rejected_at_95_kept: float
    points: tuple[Point, ...]
    kept: float
    rejected: float


@dataclass(frozen=True)
class KeptAbstention:
    """How well one set's searches said that nothing relevant was there."""

    name: str
    sides: tuple[KeptSide, ...]
    uncalibrated: tuple[str, ...]


@dataclass(frozen=True)
class Kept:
    """Everything one `whyrank eval` found, with what it was found by."""

    whyrank: str
    made: str
    settings: Mapping[str, str]
    sets: tuple[KeptSet, ...] = ()
    abstentions: tuple[KeptAbstention, ...] = ()


def as_data(
    version: str,
    made: str,
    settings: Mapping[str, str],
    sets: Sequence[Mapping[str, Any]] | None = None,
    abstention: Sequence[Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return what is kept, and printed by `--json`, of evaluations or abstentions as plain data."""
    return {
        **({} if sets is None else {"sets": list(sets)}),
        **({} if abstention is None else {"abstention": list(abstention)}),
        "kind": KIND,
        "whyrank": version,
        "made": made,
        "settings": dict(settings),
        "format": FORMAT,
    }


def is_kept(data: object) -> bool:
    """Tell whether plain data says that it is an evaluation that was kept."""
    return isinstance(data, dict) and data.get("kind") == KIND


def set_from(data: dict[str, Any]) -> KeptSet:
    """Read plain data as what was measured on one set."""
    return _set(Node(data, ""))


def write(data: Mapping[str, Any], file: Path) -> None:
    """Keep results in a file."""
    try:
        file.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", "check the folder of --keep") from error


def read_data(file: Path) -> dict[str, Any]:
    """Read kept results as plain data that `kept_from` accepts, or say what is wrong with them."""
    data = read_json(file, WRITTEN_BY)
    try:
        kept_from(data)
    except BadDataset as error:
        raise BadDataset(f"{file}: {error.message}", error.hint) from error
    return data


def read(file: Path) -> Kept:
    """Read kept results, or say what is wrong with them."""
    return kept_from(read_data(file))


def kept_from(data: dict[str, Any]) -> Kept:
    """Read plain data as results."""
    node = Node(data, "")
    if node.maybe("kind", str) != KIND:
        raise BadDataset(
            "these are not the results of an evaluation with the figures of each query", f"`{WRITTEN_BY}` keeps them"
        )
    check_format(node, FORMAT)
    settings = node.below("settings")
    return Kept(
        node.get("whyrank", str),
        node.get("made", str),
        {key: settings.get(key, str) for key in settings.names()},
        tuple(map(_set, node.each("sets"))) if "sets" in node.names() else (),
        tuple(map(_abstention, node.each("abstention"))) if "abstention" in node.names() else (),
    )


def _set(node: Node) -> KeptSet:
    trails, notices = node.below("trails"), node.below("notices")
    lines, measures = tuple(node.below("lines").names()), node.texts("measures")
    missing = [measure.name for measure in MEASURES if measure.name not in measures]
    if missing:
        refuse(f"{node.place}.measures", f"{missing[0]} is missing")
    queries = tuple(_query(query, lines, measures) for query in node.each("per_query"))
    recipes = tuple(node.texts("recipes"))
    if not queries or not recipes or not {*recipes, CEILING} <= set(lines):
        refuse(node.place, "a set needs queries, a ceiling, and recipes that are among its lines")
    known = Counter(query.id for query in queries)
    [(most, times)] = known.most_common(1)
    if times > 1:
        refuse(f"{node.place}.per_query", f"{most} stands there {times} times")
    return KeptSet(
        name=node.get("set", str),
        digest=node.get("digest", str),
        recipes=recipes,
        lines=lines,
        queries=queries,
        worst=tuple(story for story in map(_story, node.each("worst")) if story.id in known),
        trails=trails.get("replayed", int),
        broken=trails.get("broken", int),
        notices={code: notices.get(code, int) for code in notices.names()},
    )


def _query(node: Node, lines: Sequence[str], measures: Sequence[str]) -> KeptQuery:
    expected, figures, ranks = (node.below(key) for key in ("expected", "figures", "ranks"))
    values = {line: figures.shares(line) for line in lines}
    for line, found in values.items():
        if len(found) != len(measures):
            refuse(f"{figures.place}.{line}", f"{len(measures)} figures are expected here")
    return KeptQuery(
        id=node.get("id", str),
        text=node.get("text", str),
        kind=node.get("kind", str),
        scope=node.get("scope", str),
        expected={document: expected.get(document, int) for document in expected.names()},
        evidence=node.get("evidence", float),
        verdict=node.get("verdict", str),
        ranks={line: ranks.maybe(line, int) for line in lines},
        figures={line: dict(zip(measures, found, strict=True)) for line, found in values.items()},
    )


def _story(node: Node) -> Story:
    first = _told(node.below("first")) if node.maybe("first", dict) is not None else None
    return Story(node.get("id", str), first, _told(node.below("expected")), node.get("flip", str))


def _told(node: Node) -> Told:
    said = (node.get(key, str) for key in ("title", "text", "trail"))
    return Told(node.get("document", str), node.get("gain", int), node.maybe("rank", int), *said)


def story_as_data(story: Story) -> dict[str, Any]:
    """Return a story as plain data."""
    first = story.first._asdict() if story.first else None
    return {"id": story.id, "first": first, "expected": story.expected._asdict(), "flip": story.flip}


def _abstention(node: Node) -> KeptAbstention:
    return KeptAbstention(
        node.get("set", str), tuple(map(_side, node.each("sides"))), tuple(node.texts("uncalibrated"))
    )


def _side(node: Node) -> KeptSide:
    asked, verdict = node.below("questions"), node.below("verdict")
    curve = node.below("points")
    return KeptSide(
        name=node.get("unanswerable", str),
        answerable=asked.get("answerable", int),
        unanswerable=asked.get("unanswerable", int),
        auc=node.share("auc"),
        rejected_at_95_kept=node.share("rejected_at_95_kept"),
        points=tuple(map(Point, *_curve(curve))),
        kept=verdict.below("answerable").share("kept"),
        rejected=verdict.below("unanswerable").share("rejected"),
    )


def _curve(node: Node) -> list[list[float]]:
    columns = [node.numbers("threshold"), node.shares("kept"), node.shares("rejected")]
    if len({len(column) for column in columns}) > 1:
        refuse(node.place, "a point has a threshold, what is kept and what is rejected")
    return columns
