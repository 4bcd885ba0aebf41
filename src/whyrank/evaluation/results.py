"""Results of an evaluation, query by query: written to a file, read, compared."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from ..errors import BadDataset, ConfigError
from ..formatting import counted
from .abstention import Point
from .failures import FailureDocument, Story
from .harness import CEILING
from .measures import MAIN, MEASURES, hit
from .small_stores import Shares

Kind = TypeVar("Kind")
_CALLED: Mapping[type, str] = {
    dict: "an object", list: "a list", str: "a text", int: "a whole number", float: "a number"
}  # fmt: skip
_ROUNDING = 1e-9  # by which a mean of shares may miss 0 or 1
_LARGEST = 2**53  # above it whole numbers are no longer those that were written


class Node:
    """A value in results JSON together with its path, for error messages."""

    def __init__(self, value: object, place: str) -> None:
        self.value = value
        self.place = place

    def get(self, key: str, kind: type[Kind]) -> Kind:
        """Return the value under a key, which must be of this type."""
        place = f"{self.place}.{key}".lstrip(".")
        if not isinstance(self.value, dict) or key not in self.value:
            refuse(self.place or "the file", f"{key!r} is missing")
        return _of(self.value[key], kind, place)

    def maybe(self, key: str, kind: type[Kind]) -> Kind | None:
        """Return the value under a key, or None if it is null or missing."""
        is_there = isinstance(self.value, dict) and self.value.get(key) is not None
        return self.get(key, kind) if is_there else None

    def below(self, key: str) -> Node:
        """Return the object under a key."""
        return Node(self.get(key, dict), f"{self.place}.{key}".lstrip("."))

    def each(self, key: str) -> list[Node]:
        """Return the objects of the list under a key."""
        return [Node(self._member(key, at, dict), f"{self.place}.{key}[{at}]") for at in self._places(key)]

    def numbers(self, key: str) -> list[float]:
        """Return the finite numbers of the list under a key."""
        return [self._member(key, at, float) for at in self._places(key)]

    def share(self, key: str) -> float:
        """Return the number from 0 to 1 under a key."""
        return _share(self.get(key, float), f"{self.place}.{key}".lstrip("."))

    def shares(self, key: str) -> list[float]:
        """Return the numbers from 0 to 1 of the list under a key."""
        return [_share(value, f"{self.place}.{key}[{at}]".lstrip(".")) for at, value in enumerate(self.numbers(key))]

    def texts(self, key: str) -> list[str]:
        """Return the texts of the list under a key."""
        return [self._member(key, at, str) for at in self._places(key)]

    def names(self) -> list[str]:
        """Return the keys of an object."""
        return list(self.value) if isinstance(self.value, dict) else []

    def _places(self, key: str) -> range:
        return range(len(self.get(key, list)))

    def _member(self, key: str, at: int, kind: type[Kind]) -> Kind:
        return _of(self.get(key, list)[at], kind, f"{self.place}.{key}[{at}]".lstrip("."))


def read_json(file: Path, written_by: str) -> dict[str, Any]:
    """Read a results file; `written_by` is the command that makes one."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadDataset(f"{file} is not there", f"`{written_by}` writes one") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataset(f"{file} cannot be read: {error}", f"`{written_by}` writes one") from error
    except (ValueError, RecursionError) as error:
        raise BadDataset(f"{file} is no JSON: {error}", f"it is damaged; `{written_by}` writes another") from error
    if not isinstance(data, dict):
        raise BadDataset(f"{file} holds no results", f"`{written_by}` writes some")
    return data


def check_format(node: Node, known: int) -> None:
    """Refuse results of a newer format than this version knows, and invalid format numbers."""
    found = node.get("format", int)
    if found < 1:
        refuse("format", f"there is no format {found}")
    if found > known:
        raise BadDataset(
            f"these results have format {found}, and this whyrank reads up to {known}", "use the newer whyrank"
        )


def refuse(place: str, said: str) -> NoReturn:
    """Raise BadDataset for damaged results, with the path of the damage."""
    raise BadDataset(f"{place}: {said}", "these results are damaged, or of another kind; write them again")


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
    return {
        **({} if sets is None else {"sets": list(sets)}),
        **({} if abstention is None else {"abstention": list(abstention)}),
        **({} if not_drawn is None else {"not_drawn": list(not_drawn)}),
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
    lines, measures = tuple(node.below("lines").names()), node.texts("measures")
    for needed in (MAIN, FIRST):  # an earlier whyrank knew fewer of the others
        if needed not in measures:
            refuse(f"{node.place}.measures", f"{needed} is missing")
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
    return KeptStores(
        files=node.get("files", int),
        draws=node.get("draws", int),
        seed=node.get("seed", int),
        asked=node.get("asked", int),
        unasked=node.get("unasked", int),
        uncalibrated=node.get("uncalibrated", int),
        verdicts={group: _verdict_shares(verdicts.below(group)) for group in verdicts.names()},
    )


def _verdict_shares(node: Node) -> Shares:
    return Shares(node.get("questions", int), *(node.share(verdict) for verdict in Shares._fields[1:]))


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


def _told(node: Node) -> FailureDocument:
    said = (node.get(key, str) for key in ("title", "text", "trail"))
    return FailureDocument(node.get("document", str), node.get("gain", int), node.maybe("rank", int), *said)


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
