"""Results of an evaluation, query by query: written to a file, read, compared."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, TypeVar

from ..analysis.snippets import snippet
from ..errors import BadDataset, ConfigError, NotFound
from ..formatting import counted
from .abstention import Point
from .harness import CEILING, DEPTH, EvaluatedEngine, Evaluation
from .measures import MAIN, MEASURES, Judgements, hit
from .small_stores import VERDICTS, Shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ..types.memory import Scope
    from ..types.results import Hit, Results
    from .datasets import Question

WORST = 10  # queries shown per set: as many as a reader reads


class Explaining(EvaluatedEngine, Protocol):
    """Engine protocol for explaining failures: search and `why`."""

    def why(self, query: str, identity: str, *, recipe: str, scope: Scope, over: Any = None) -> object:
        """Explain the rank of a memory, or find the change that puts it over another."""


class FailureDocument(NamedTuple):
    """One document of a story: its rank, its text, and its trail."""

    document: str
    gain: int
    rank: int | None
    title: str
    text: str
    trail: str


class Story(NamedTuple):
    """One failed query: the first hit, the best expected document, and the change that would swap them."""

    id: str
    first: FailureDocument | None
    expected: FailureDocument
    flip: str


def worst(evaluation: Evaluation, engine: Explaining, count: int = WORST) -> list[Story]:
    """Run the worst queries of the first recipe again, and record a story for each."""
    recipe = evaluation.recipes[0]
    asked = {question.id: question for question in evaluation.questions}
    return [
        _failure_story(asked[identity], evaluation.judgements[identity], engine, recipe)
        for identity in worst_of(
            {one: scores[MAIN] for one, scores in evaluation.lines[recipe].scores.items()},
            {one: scores[MAIN] for one, scores in evaluation.lines[CEILING].scores.items()},
        )[:count]
    ]


def worst_of(values: Mapping[str, float], attainable: Mapping[str, float]) -> list[str]:
    """Sort the imperfect queries, worst first; ties by the best value a ranking could have attained."""
    short = [identity for identity, value in values.items() if value < 1.0]
    return sorted(short, key=lambda identity: (values[identity], -attainable[identity]))


def _failure_story(question: Question, judged: Judgements, engine: Explaining, recipe: str) -> Story:
    results = engine.search(question.text, limit=DEPTH, recipe=recipe, scope=question.scope)
    wanted = _best_expected(results, judged)
    first = _failure_document(results, results.hits[0], judged) if results.hits else None
    if wanted is None:
        return Story(question.id, first, _absent(question, judged, engine, recipe), "")
    flip = ""
    if results.hits and wanted.id != results.hits[0].id:
        over = results.hits[0].id
        flip = str(engine.why(question.text, wanted.id, over=over, recipe=recipe, scope=question.scope))
    return Story(question.id, first, _failure_document(results, wanted, judged), flip)


def _best_expected(results: Results, judged: Judgements) -> Hit | None:
    """Return the first expected hit, or the best dropped one."""
    shown = (hit for hit in results.hits if judged.get(_document(hit), 0) > 0)
    dropped = [hit for hit in results.dropped if judged.get(_document(hit), 0) > 0]
    return next(shown, None) or max(dropped, key=lambda hit: (hit.tier, hit.score), default=None)


def _failure_document(results: Results, hit: Hit, judged: Judgements) -> FailureDocument:
    document = _document(hit)
    return FailureDocument(
        document,
        judged.get(document, 0),
        rank_of(document, [_document(one) for one in results.hits]),
        hit.memory.title,
        snippet(hit.memory.text, results.analysis.terms).text,
        hit.explain(),
    )


def _absent(question: Question, judged: Judgements, engine: Explaining, recipe: str) -> FailureDocument:
    """Return the entry of an expected document that was not even a candidate."""
    document, gain = max(judged.items(), key=lambda item: item[1])
    try:
        said = str(engine.why(question.text, document, recipe=recipe, scope=question.scope))
    except NotFound:
        said = "no memory that may answer here comes from this document"
    return FailureDocument(document, gain, None, "", "", said)


def _document(hit: Hit) -> str:
    return hit.memory.source.path if hit.memory.source else ""


def rank_of(document: str, ranked: Sequence[str]) -> int | None:
    """Return the rank of a document in a ranked list, counted by the best chunk of each document."""
    distinct = list(dict.fromkeys(ranked))
    return distinct.index(document) + 1 if document in distinct else None


Kind = TypeVar("Kind")
_CALLED: Mapping[type, str] = {
    dict: "an object", list: "a list", str: "a text", int: "a whole number", float: "a number"
}  # fmt: skip
_ROUNDING = 1e-9  # by which a mean of shares may miss 0 or 1
_LARGEST = 2**53  # above it whole numbers are no longer those that were written


class Node:
    """A value in results JSON together with its path, for error messages."""

    def __init__(self, value: Any, place: str) -> None:
        self.value = value
        self.place = place

    def get(self, key: str, kind: type[Kind]) -> Kind:
        """Return the value under a key, which must be of this type."""
        if key not in self.names():
            refuse(self.place or "the file", f"{key!r} is missing")
        return _of(self.value[key], kind, self._place(key))

    def maybe(self, key: str, kind: type[Kind]) -> Kind | None:
        """Return the value under a key, or None if it is null or missing."""
        return self.get(key, kind) if key in self.names() and self.value[key] is not None else None

    def below(self, key: str) -> Node:
        """Return the object under a key."""
        return Node(self.get(key, dict), self._place(key))

    def each(self, key: str) -> list[Node]:
        """Return the objects of the list under a key."""
        return [Node(one, f"{self.place}.{key}[{at}]") for at, one in enumerate(self.members(key, dict))]

    def members(self, key: str, kind: type[Kind]) -> list[Kind]:
        """Return the members of the list under a key, which must be of this type."""
        return [_of(one, kind, f"{self._place(key)}[{at}]") for at, one in enumerate(self.get(key, list))]

    def share(self, key: str) -> float:
        """Return the number from 0 to 1 under a key."""
        return _share(self.get(key, float), self._place(key))

    def shares(self, key: str) -> list[float]:
        """Return the numbers from 0 to 1 of the list under a key."""
        return [_share(value, f"{self._place(key)}[{at}]") for at, value in enumerate(self.members(key, float))]

    def names(self) -> list[str]:
        """Return the keys of an object."""
        return [*self.value] if isinstance(self.value, dict) else []

    def _place(self, key: str) -> str:
        return f"{self.place}.{key}".lstrip(".")


def read_json(file: Path, written_by: str) -> dict[str, Any]:
    """Read a results file; `written_by` is the command that makes one."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadDataset(f"{file} is not there", f"`{written_by}` writes one") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataset(f"{file} cannot be read: {error}", f"`{written_by}` writes one") from error
    except (ValueError, RecursionError) as error:
        raise BadDataset(f"{file} is not JSON: {error}", f"it is damaged; `{written_by}` writes another") from error
    if not isinstance(data, dict):
        raise BadDataset(f"{file} holds no results", f"`{written_by}` writes some")
    return data


def check_format(node: Node, known: int) -> None:
    """Refuse results of a newer format than this version knows, and invalid format numbers."""
    found = node.get("format", int)
    if found < 1:
        refuse("format", f"there is no format {found}")
    if found > known:
        raise BadDataset(f"these results have format {found}, and this whyrank reads up to {known}", "upgrade whyrank")


def refuse(place: str, said: str) -> NoReturn:
    """Raise BadDataset for damaged results, with the path of the damage."""
    raise BadDataset(f"{place}: {said}", "these results are damaged or of another kind; create them again")


def _share(value: float, place: str) -> float:
    if not -_ROUNDING <= value <= 1 + _ROUNDING:
        refuse(place, "a number from 0 to 1 is expected here")
    return value


def _of(value: object, kind: type[Kind], place: str) -> Kind:
    if kind is float and type(value) is int and abs(value) < _LARGEST:
        value = float(value)
    is_number = isinstance(value, float) and math.isfinite(value)
    if not isinstance(value, kind) or isinstance(value, bool) or (kind is float and not is_number):
        refuse(place, f"{_CALLED[kind]} is expected here")
    return value


FORMAT = 1
KIND = "whyrank-eval"
WRITTEN_BY = "whyrank eval SET --keep FILE"
FIRST = hit(1).name


@dataclass(frozen=True)
class KeptQuery:
    """One query: its expected documents, and ranks and measures of each line."""

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
        """Return the identity of a query: text, scope and judgements."""
        return self.text, self.scope, tuple(sorted(self.expected.items()))


@dataclass(frozen=True)
class KeptStores:
    """Figures on small stores drawn from a set: numbers of stores and queries, and the verdicts."""

    files: int
    draws: int
    seed: int
    asked: int
    unasked: int
    uncalibrated: int
    verdicts: Mapping[str, Shares]


@dataclass(frozen=True)
class KeptSet:
    """All measurements on one set, or on small stores drawn from it.

    The lines hold the recipes, the single runs and the ceiling.
    """

    name: str
    digest: str
    recipes: tuple[str, ...]
    lines: tuple[str, ...]
    measures: tuple[str, ...]
    queries: tuple[KeptQuery, ...]
    worst: tuple[Story, ...]
    trails: int
    broken: int
    notices: Mapping[str, int]
    stores: KeptStores | None = None

    def values(self, line: str, measure: str = MAIN) -> list[float]:
        """Return one measure of a line for all queries, in their order."""
        return [query.figures[line][measure] for query in self.queries]

    def query(self, identity: str) -> KeptQuery:
        """Return one query."""
        return next(query for query in self.queries if query.id == identity)


@dataclass(frozen=True)
class KeptSide:
    """Answerable queries against one kind of unanswerable ones: the curve, and the verdict's point on it."""

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
    """Abstention figures of one set."""

    name: str
    sides: tuple[KeptSide, ...]
    uncalibrated: tuple[str, ...]


@dataclass(frozen=True)
class Kept:
    """All results of one `whyrank eval`, with its version and settings."""

    whyrank: str
    made: str
    settings: Mapping[str, str]
    sets: tuple[KeptSet, ...] = ()
    abstentions: tuple[KeptAbstention, ...] = ()


def drawn(stores: KeptStores) -> list[str]:
    """Describe the drawn stores and their queries in sentences."""
    said = [
        f"{counted(stores.draws, 'store')} of {counted(stores.files, 'file')}, seed {stores.seed}: "
        f"{counted(stores.asked, 'question')} asked, one asked of several stores counted once."
    ]
    if stores.unasked:
        said.append(f"{counted(stores.unasked, 'store')} could answer none.")
    if stores.uncalibrated:
        said.append(f"{counted(stores.uncalibrated, 'store')} had too few memories to calibrate by.")
    return said


def as_data(
    version: str,
    made: str,
    settings: Mapping[str, str],
    sets: Sequence[Mapping[str, Any]] | None = None,
    abstention: Sequence[Mapping[str, Any]] | None = None,
    not_drawn: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return evaluations or abstentions as plain data, as stored and as printed by `--json`."""
    parts = {"sets": sets, "abstention": abstention, "not_drawn": not_drawn}
    return {
        **{key: list(part) for key, part in parts.items() if part is not None},
        "kind": KIND,
        "whyrank": version,
        "made": made,
        "settings": dict(settings),
        "format": FORMAT,
    }


def is_kept(data: object) -> bool:
    """Check that plain data is marked as a stored evaluation."""
    return isinstance(data, dict) and data.get("kind") == KIND


def set_from(data: dict[str, Any]) -> KeptSet:
    """Parse plain data as the results of one set."""
    return _set(Node(data, ""))


def write(data: Mapping[str, Any], file: Path) -> None:
    """Write results to a file."""
    try:
        file.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", "check the folder of --keep") from error


def read_data(file: Path) -> dict[str, Any]:
    """Read stored results as plain data that `kept_from` accepts; damaged ones raise BadDataset."""
    data = read_json(file, WRITTEN_BY)
    try:
        kept_from(data)
    except BadDataset as error:
        raise BadDataset(f"{file}: {error.message}", error.hint) from error
    return data


def read(file: Path) -> Kept:
    """Read stored results; damaged ones raise BadDataset."""
    return kept_from(read_data(file))


def kept_from(data: dict[str, Any]) -> Kept:
    """Parse plain data as results."""
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
    lines, measures = tuple(node.below("lines").names()), node.members("measures", str)
    for needed in (MAIN, FIRST):  # an earlier whyrank knew fewer of the others
        if needed not in measures:
            refuse(f"{node.place}.measures", f"{needed} is missing")
    queries = tuple(_query(query, lines, measures) for query in node.each("per_query"))
    recipes = tuple(node.members("recipes", str))
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
        measures=tuple(measure.name for measure in MEASURES if measure.name in measures),
        queries=queries,
        worst=tuple(story for story in map(_story, node.each("worst")) if story.id in known),
        trails=trails.get("replayed", int),
        broken=trails.get("broken", int),
        notices={code: notices.get(code, int) for code in notices.names()},
        stores=_stores(node.below("stores")) if "stores" in node.names() else None,
    )


def _stores(node: Node) -> KeptStores:
    verdicts = node.below("verdicts")
    groups = {group: verdicts.below(group) for group in verdicts.names()}
    return KeptStores(
        **{key: node.get(key, int) for key in ("files", "draws", "seed", "asked", "unasked", "uncalibrated")},
        verdicts={name: Shares(one.get("questions", int), *map(one.share, VERDICTS)) for name, one in groups.items()},
    )


def _query(node: Node, lines: Sequence[str], measures: Sequence[str]) -> KeptQuery:
    expected, figures, ranks = (node.below(key) for key in ("expected", "figures", "ranks"))
    values = {line: figures.shares(line) for line in lines}
    for line, found in values.items():
        if len(found) != len(measures):
            refuse(f"{figures.place}.{line}", f"{len(measures)} figures are expected here")
    return KeptQuery(
        **{key: node.get(key, str) for key in ("id", "text", "kind", "scope", "verdict")},
        expected={document: expected.get(document, int) for document in expected.names()},
        evidence=node.get("evidence", float),
        ranks={line: ranks.maybe(line, int) for line in lines},
        figures={line: dict(zip(measures, found, strict=True)) for line, found in values.items()},
    )


def _story(node: Node) -> Story:
    first = _told(node.below("first")) if node.maybe("first", dict) is not None else None
    return Story(node.get("id", str), first, _told(node.below("expected")), node.get("flip", str))


def _told(node: Node) -> FailureDocument:
    said = (node.get(key, str) for key in ("title", "text", "trail"))
    return FailureDocument(node.get("document", str), node.get("gain", int), node.maybe("rank", int), *said)


def story_as_data(story: Story) -> dict[str, Any]:
    """Return a story as plain data."""
    first = story.first._asdict() if story.first else None
    return {"id": story.id, "first": first, "expected": story.expected._asdict(), "flip": story.flip}


def _abstention(node: Node) -> KeptAbstention:
    sides, uncalibrated = map(_side, node.each("sides")), node.members("uncalibrated", str)
    return KeptAbstention(node.get("set", str), tuple(sides), tuple(uncalibrated))


def _side(node: Node) -> KeptSide:
    asked, verdict = node.below("questions"), node.below("verdict")
    curve = node.below("points")
    columns = [curve.members("threshold", float), curve.shares("kept"), curve.shares("rejected")]
    if len({len(column) for column in columns}) > 1:
        refuse(curve.place, "a point has a threshold, what is kept and what is rejected")
    return KeptSide(
        name=node.get("unanswerable", str),
        answerable=asked.get("answerable", int),
        unanswerable=asked.get("unanswerable", int),
        auc=node.share("auc"),
        rejected_at_95_kept=node.share("rejected_at_95_kept"),
        points=tuple(map(Point, *columns)),
        kept=verdict.below("answerable").share("kept"),
        rejected=verdict.below("unanswerable").share("rejected"),
    )
